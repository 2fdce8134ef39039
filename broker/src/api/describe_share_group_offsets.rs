//! DescribeShareGroupOffsets (key 90), versions 0-1. KIP-932; v1 adds the lag (KIP-1226).
//!
//! - Start offsets are those that were persisted; the lag is the high watermark less the start offset
//!   less the records behind it that are done.
//! - Topics null: all that the group has state of. What is unknown answers -1 without an error.

use ottla_coordinator::types::{TopicPartition, Uuid};
use ottla_protocol::StrBytes;
use ottla_protocol::messages::DescribeShareGroupOffsetsRequest;
use ottla_protocol::messages::TopicName;
use ottla_protocol::messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use ottla_protocol::messages::describe_share_group_offsets_response::{
    DescribeShareGroupOffsetsResponse, DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition, DescribeShareGroupOffsetsResponseTopic,
};

use super::coordinator::{shard, share_groups_on};
use super::named::whole_once;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::key;

pub(super) async fn handle(
    cx: &Cx,
    request: DescribeShareGroupOffsetsRequest,
) -> DescribeShareGroupOffsetsResponse {
    let wanted = whole_once(&request.groups, |g| g.topics.is_none(), |g| &g.group_id);
    let groups = wanted.map(|wanted| {
        let group_id = wanted.group_id.clone();
        match describe(cx, wanted) {
            Ok(topics) => DescribeShareGroupOffsetsResponseGroup {
                group_id,
                topics,
                ..Default::default()
            },
            Err(error) => DescribeShareGroupOffsetsResponseGroup {
                group_id,
                error_code: error.number(),
                error_message: error.message.map(StrBytes::from_string),
                ..Default::default()
            },
        }
    });
    DescribeShareGroupOffsetsResponse {
        groups: groups.collect(),
        ..Default::default()
    }
}

fn describe(
    cx: &Cx,
    wanted: &DescribeShareGroupOffsetsRequestGroup,
) -> Result<Vec<DescribeShareGroupOffsetsResponseTopic>, ApiError> {
    share_groups_on(cx)?;
    let shard = shard(cx, &wanted.group_id)?;
    let topics: Vec<(String, Vec<i32>)> = match &wanted.topics {
        Some(topics) => topics
            .iter()
            .map(|t| (t.topic_name.to_string(), t.partitions.clone()))
            .collect(),
        None => shard
            .ask(&cx.broker, |machine| {
                machine.share_state_partitions(&wanted.group_id)
            })?
            .into_iter()
            .map(|topic| (topic.topic_name, topic.partitions))
            .collect(),
    };
    topics
        .into_iter()
        .map(|(name, indexes)| topic(cx, &wanted.group_id, &name, &indexes))
        .collect()
}

fn topic(
    cx: &Cx,
    group: &str,
    name: &str,
    indexes: &[i32],
) -> Result<DescribeShareGroupOffsetsResponseTopic, ApiError> {
    let topic = cx.broker.cluster.topic(name);
    let id = topic.as_ref().map(|topic| topic.id).unwrap_or_default();
    let partitions = indexes.iter().map(|&index| {
        let unknown = DescribeShareGroupOffsetsResponsePartition {
            partition_index: index,
            start_offset: -1,
            leader_epoch: 0,
            lag: -1,
            ..Default::default()
        };
        let Some(partition) = topic.as_ref().and_then(|t| t.partition(index)) else {
            return Ok(unknown);
        };
        let at = TopicPartition {
            topic_id: Uuid(*id.as_bytes()),
            partition: index,
        };
        let summary = cx
            .broker
            .share_states
            .summary(&cx.broker, &key(group, at))?;
        let Some(summary) = summary else {
            return Ok(unknown);
        };
        let lag = match (summary.start_offset, summary.delivery_complete_count) {
            (-1, _) | (_, -1) => -1,
            (start, done) => partition.log.end_offset() - start - i64::from(done),
        };
        Ok(DescribeShareGroupOffsetsResponsePartition {
            start_offset: summary.start_offset,
            leader_epoch: summary.leader_epoch,
            lag,
            ..unknown
        })
    });
    Ok(DescribeShareGroupOffsetsResponseTopic {
        topic_name: TopicName(StrBytes::from_string(name.to_owned())),
        topic_id: id,
        partitions: partitions.collect::<Result<_, ApiError>>()?,
        ..Default::default()
    })
}
