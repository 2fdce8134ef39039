//! OffsetCommit (key 8), versions 2-10. KIP-211 (retention), KIP-345 (instances), KIP-848 (member
//! epochs from v9 on, topic ids from v10 on).
//!
//! - One record a partition, one append a request; answered when the append is done.
//! - Unknown topics and partitions, and metadata that is too long, are errors of their own; the rest is
//!   committed. What the group refuses, it refuses for every partition that exists.
//! - The offset itself is not checked. A commit from outside (negative generation) needs a group
//!   without members, or makes one; the empty group id is one like others.

use std::sync::Arc;

use ottla_coordinator::group::offsets::{CommitRequest, OffsetToCommit, metadata_fits};
use ottla_coordinator::types::Uuid;
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::OffsetCommitRequest;
use ottla_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use ottla_protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::coordinator::shard;
use crate::cluster::Topic;
use crate::context::Cx;
use crate::error_code::ApiError;

/// First version that names topics by id.
const BY_ID: i16 = 10;
/// First version with the errors of KIP-848.
const WITH_EPOCHS: i16 = 9;
/// Last version that says how long offsets are to be kept.
const WITH_RETENTION: i16 = 4;

pub(super) async fn handle(cx: &Cx, request: OffsetCommitRequest) -> OffsetCommitResponse {
    let metadata_max = cx.config().offsets.metadata_max_bytes;
    let mut offsets = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for wanted in &request.topics {
        let topic = if cx.version >= BY_ID {
            cx.broker.cluster.topic_by_id(wanted.topic_id)
        } else {
            cx.broker.cluster.topic(&wanted.name)
        };
        topics.push(sort_out(
            cx,
            wanted,
            topic.as_deref(),
            metadata_max,
            &mut offsets,
        ));
    }
    topics.retain(|topic: &OffsetCommitResponseTopic| !topic.partitions.is_empty());
    if let Err(error) = commit(cx, &request, offsets) {
        refuse(&mut topics, error.code);
    }
    OffsetCommitResponse::default().with_topics(topics)
}

/// Adds what may be committed of a topic to `offsets`, and answers the topic's response for when the
/// group takes it.
fn sort_out(
    cx: &Cx,
    wanted: &OffsetCommitRequestTopic,
    topic: Option<&Topic>,
    metadata_max: i32,
    offsets: &mut Vec<OffsetToCommit>,
) -> OffsetCommitResponseTopic {
    let none: Arc<str> = Arc::default();
    let known = topic.map_or(0, |topic| topic.partitions().len());
    let unknown = if cx.version >= BY_ID && topic.is_none() {
        ErrorCode::UNKNOWN_TOPIC_ID
    } else {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    };
    offsets.reserve(wanted.partitions.len().min(known));
    let partitions = wanted.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let metadata = partition.committed_metadata.as_deref().unwrap_or("");
        let exists = usize::try_from(index).is_ok_and(|index| index < known);
        let code = match topic.filter(|_| exists) {
            None => unknown,
            Some(_) if !metadata_fits(metadata, metadata_max) => {
                ErrorCode::OFFSET_METADATA_TOO_LARGE
            }
            Some(topic) => {
                offsets.push(OffsetToCommit {
                    topic: Arc::clone(&topic.name),
                    topic_id: Uuid(*topic.id.as_bytes()),
                    partition: index,
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata: if metadata.is_empty() {
                        Arc::clone(&none)
                    } else {
                        metadata.into()
                    },
                });
                ErrorCode::NONE
            }
        };
        OffsetCommitResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(code.0)
    });
    OffsetCommitResponseTopic::default()
        .with_name(wanted.name.clone())
        .with_topic_id(wanted.topic_id)
        .with_partitions(partitions.collect())
}

fn commit(
    cx: &Cx,
    request: &OffsetCommitRequest,
    offsets: Vec<OffsetToCommit>,
) -> Result<(), ApiError> {
    let committed = offsets.len();
    let keeps = cx.version <= WITH_RETENTION && request.retention_time_ms != -1;
    let commit = CommitRequest {
        group_id: Arc::from(&**request.group_id),
        member_id: &request.member_id,
        instance_id: request.group_instance_id.as_deref(),
        generation: request.generation_id_or_member_epoch,
        knows_epochs: cx.version >= WITH_EPOCHS,
        retention_ms: keeps.then_some(request.retention_time_ms),
        offsets,
    };
    shard(cx, &request.group_id)?.change(&cx.broker, |machine, now| {
        Ok(machine.commit_offsets(now, commit)?)
    })?;
    cx.broker.metrics.offsets.commits.inc_by(committed as u64);
    Ok(())
}

/// The group takes nothing: every partition that exists gets its error.
fn refuse(topics: &mut [OffsetCommitResponseTopic], code: ErrorCode) {
    for partition in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        let is_unknown = [
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0,
            ErrorCode::UNKNOWN_TOPIC_ID.0,
        ];
        if !is_unknown.contains(&partition.error_code) {
            partition.error_code = code.0;
        }
    }
}
