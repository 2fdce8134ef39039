//! OffsetDelete (key 47), version 0. KIP-496.
//!
//! - Topics that a living group subscribes to keep their offsets: GROUP_SUBSCRIBED_TO_TOPIC. A partition
//!   without offset is no error; one that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
//! - The group itself stays until offsets are looked through for expired ones.

use std::sync::Arc;

use ottla_coordinator::group::offsets::OffsetsToDelete;
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::OffsetDeleteRequest;
use ottla_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use ottla_protocol::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use super::coordinator::shard;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    let known = request.topics.iter().map(|topic| known(cx, topic));
    let known: Vec<OffsetsToDelete> = known.collect();
    match delete(cx, &request, &known) {
        Ok(codes) => {
            let topics = request.topics.iter().zip(&known).zip(codes);
            let topics = topics.map(|((wanted, known), code)| respond(wanted, known, code));
            OffsetDeleteResponse::default().with_topics(topics.collect())
        }
        Err(error) => OffsetDeleteResponse::default().with_error_code(error.number()),
    }
}

/// What exists of the partitions that are asked for.
fn known(cx: &Cx, wanted: &OffsetDeleteRequestTopic) -> OffsetsToDelete {
    let topic = cx.broker.cluster.topic(&wanted.name);
    let count = topic.as_ref().map_or(0, |topic| topic.partitions().len());
    let indexes = wanted.partitions.iter().map(|p| p.partition_index);
    let exists = |index: &i32| usize::try_from(*index).is_ok_and(|index| index < count);
    OffsetsToDelete {
        topic: topic.map_or_else(
            || Arc::from(&**wanted.name),
            |topic| Arc::clone(&topic.name),
        ),
        partitions: indexes.filter(exists).collect(),
    }
}

fn delete(
    cx: &Cx,
    request: &OffsetDeleteRequest,
    known: &[OffsetsToDelete],
) -> Result<Vec<i16>, ApiError> {
    let results = shard(cx, &request.group_id)?.change(&cx.broker, |machine, _| {
        Ok(machine.delete_offsets(&request.group_id, known)?)
    })?;
    let codes = results.into_iter().map(|result| match result {
        Ok(()) => 0,
        Err(error) => ApiError::from(error).number(),
    });
    Ok(codes.collect())
}

fn respond(
    wanted: &OffsetDeleteRequestTopic,
    known: &OffsetsToDelete,
    code: i16,
) -> OffsetDeleteResponseTopic {
    let exists: std::collections::BTreeSet<i32> = known.partitions.iter().copied().collect();
    let partitions = wanted.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let code = if exists.contains(&index) {
            code
        } else {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0
        };
        OffsetDeleteResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(code)
    });
    OffsetDeleteResponseTopic::default()
        .with_name(wanted.name.clone())
        .with_partitions(partitions.collect())
}
