//! AlterShareGroupOffsets (key 91), version 0. KIP-932.
//!
//! - Only for an empty group; a group that does not exist is made.
//! - Offsets are stored unchecked, -1 means the reset policy. Loaded share partitions are dropped, so
//!   that the next fetch starts at the new offset.

use ottla_coordinator::types::Uuid;
use ottla_protocol::StrBytes;
use ottla_protocol::messages::alter_share_group_offsets_response::{
    AlterShareGroupOffsetsResponse, AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
};
use ottla_protocol::messages::{AlterShareGroupOffsetsRequest, TopicName};

use super::coordinator::{shard, share_groups_on};
use crate::broker::Topics;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: AlterShareGroupOffsetsRequest,
) -> AlterShareGroupOffsetsResponse {
    match alter(cx, &request) {
        Ok(topics) => AlterShareGroupOffsetsResponse::default()
            .with_error_message(None)
            .with_responses(topics.into_iter().map(respond).collect()),
        Err(error) => AlterShareGroupOffsetsResponse::default()
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string)),
    }
}

fn alter(cx: &Cx, request: &AlterShareGroupOffsetsRequest) -> Result<Vec<Altered>, ApiError> {
    share_groups_on(cx)?;
    let topics: Vec<(String, Vec<(i32, i64)>)> = request
        .topics
        .iter()
        .map(|topic| {
            let offsets = topic
                .partitions
                .iter()
                .map(|p| (p.partition_index, p.start_offset));
            (topic.topic_name.to_string(), offsets.collect())
        })
        .collect();
    let image = Topics(&cx.broker.cluster);
    let (mut altered, failures) = shard(cx, &request.group_id)?
        .change_with(&cx.broker, |machine, _| {
            Ok(machine.alter_share_offsets(&request.group_id, &topics, &image)?)
        })?;
    let topics = altered.drain(..).map(|topic| {
        let partitions = topic.partitions.into_iter().map(|(index, result)| {
            let failed = failures
                .iter()
                .find(|(at, _)| at.topic_id == topic.topic_id && at.partition == index);
            let result = result.map_err(ApiError::from);
            (
                index,
                failed.map_or(result, |(_, error)| Err(error.clone())),
            )
        });
        let name = topic.topic_name;
        Altered {
            name,
            id: topic.topic_id,
            partitions: partitions.collect(),
        }
    });
    Ok(topics.collect())
}

/// What became of one topic: of each partition, by index.
struct Altered {
    name: String,
    id: Uuid,
    partitions: Vec<(i32, Result<(), ApiError>)>,
}

fn respond(topic: Altered) -> AlterShareGroupOffsetsResponseTopic {
    let partitions = topic.partitions.into_iter().map(|(index, result)| {
        let (code, message) = ApiError::told(result);
        AlterShareGroupOffsetsResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(code)
            .with_error_message(message)
    });
    AlterShareGroupOffsetsResponseTopic::default()
        .with_topic_name(TopicName(StrBytes::from_string(topic.name)))
        .with_topic_id(ottla_protocol::Uuid::from_bytes(topic.id.0))
        .with_partitions(partitions.collect())
}
