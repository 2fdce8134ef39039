//! DescribeLogDirs (key 35), versions 1-5. KIP-113, KIP-827 (v4: sizes of the volume), KIP-1066 (v5: cordons).
//!
//! - There is one log directory; in memory it is called `memory`, and its volume is
//!   `ottla.memory.max.bytes`.
//! - A logical broker lists the partitions that it is a replica of. Without topics: all of them.
//! - A partition that is not there is left out.

use std::collections::BTreeMap;

use ottla_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use ottla_protocol::messages::{DescribeLogDirsRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_storage::Space;

use crate::cluster::{Partition, Topic};
use crate::context::Cx;

pub(super) async fn handle(cx: &Cx, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let topics = match &request.topics {
        None => cx
            .broker
            .cluster
            .image()
            .topics
            .values()
            .filter_map(|topic| describe(cx, topic, topic.partitions().iter()))
            .collect(),
        Some(topics) => {
            // A topic that is named twice is described once.
            let mut wanted: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
            for topic in topics {
                let partitions = wanted.entry(&topic.topic).or_default();
                partitions.extend(&topic.partitions);
            }
            wanted
                .into_iter()
                .filter_map(|(name, mut indexes)| {
                    indexes.sort_unstable();
                    indexes.dedup();
                    let topic = cx.broker.cluster.topic(name)?;
                    let found = indexes.into_iter().filter_map(|i| topic.partition(i));
                    describe(cx, &topic, found.collect::<Vec<_>>().iter())
                })
                .collect()
        }
    };
    let (total_bytes, usable_bytes) = match cx.broker.store().space() {
        Ok(Space { total, usable }) => (wire(total), wire(usable)),
        Err(error) => {
            tracing::warn!(%error, "the size of the data directory's volume is unknown");
            (-1, -1)
        }
    };
    DescribeLogDirsResponse {
        error_code: ErrorCode::NONE.0,
        results: vec![DescribeLogDirsResult {
            log_dir: StrBytes::from_string(log_dir(cx)),
            topics,
            total_bytes,
            usable_bytes,
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The name of the log directory: its absolute path, or `memory`.
pub(super) fn log_dir(cx: &Cx) -> String {
    let Some(dir) = cx.broker.store().data_dir() else {
        return "memory".to_owned();
    };
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    absolute.display().to_string()
}

fn describe<'a>(
    cx: &Cx,
    topic: &Topic,
    partitions: impl Iterator<Item = &'a std::sync::Arc<Partition>>,
) -> Option<DescribeLogDirsTopic> {
    let here = partitions.filter(|p| p.leadership().replicas.contains(&cx.node.id));
    let partitions: Vec<_> = here
        .map(|partition| DescribeLogDirsPartition {
            partition_index: partition.index,
            partition_size: wire(partition.log.size_bytes()),
            ..Default::default()
        })
        .collect();
    (!partitions.is_empty()).then(|| DescribeLogDirsTopic {
        name: TopicName(StrBytes::from_string(topic.name.to_string())),
        partitions,
        ..Default::default()
    })
}

fn wire(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
