//! AlterReplicaLogDirs (key 34), versions 1-2. KIP-113.
//!
//! There is one log directory, in which every replica is already: a move to it is done at once, a move
//! to another one gets LOG_DIR_NOT_FOUND. Of a partition that is named twice the last place counts.

use std::collections::BTreeMap;

use ottla_protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsResponse,
};
use ottla_protocol::messages::{AlterReplicaLogDirsRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};

use super::describe_log_dirs::log_dir;
use crate::context::Cx;

pub(super) async fn handle(
    cx: &Cx,
    request: AlterReplicaLogDirsRequest,
) -> AlterReplicaLogDirsResponse {
    let mut wanted: BTreeMap<&TopicName, BTreeMap<i32, &StrBytes>> = BTreeMap::new();
    for dir in &request.dirs {
        for topic in &dir.topics {
            let places = wanted.entry(&topic.name).or_default();
            places.extend(topic.partitions.iter().map(|&index| (index, &dir.path)));
        }
    }
    let here = log_dir(cx);
    let results = wanted.into_iter().map(|(name, places)| {
        let partitions = places.into_iter().map(|(index, path)| {
            let code = check(cx, name, index, **path == *here);
            AlterReplicaLogDirPartitionResult::default()
                .with_partition_index(index)
                .with_error_code(code.0)
        });
        AlterReplicaLogDirTopicResult::default()
            .with_topic_name(name.clone())
            .with_partitions(partitions.collect())
    });
    AlterReplicaLogDirsResponse::default().with_results(results.collect())
}

fn check(cx: &Cx, topic: &str, index: i32, here: bool) -> ErrorCode {
    if !here {
        return ErrorCode::LOG_DIR_NOT_FOUND;
    }
    let topic = cx.broker.cluster.topic(topic);
    match topic.and_then(|topic| topic.partition(index)) {
        None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Some(p) if p.leadership().replicas.contains(&cx.node.id) => ErrorCode::NONE,
        Some(_) => ErrorCode::NOT_LEADER_OR_FOLLOWER,
    }
}
