//! AlterPartitionReassignments (key 45), versions 0-1. KIP-455, KIP-860 (v1: the replication factor may be kept).
//!
//! - Storage is shared by the logical brokers: a move to brokers that are up is over with the answer, and
//!   the leader moves where it is not among the new replicas. While a broker that is added is stopped the
//!   move is in progress.
//! - A request that names more than 100 000 partitions is refused as a whole.
//! - Null replicas take a move that is in progress back.

use std::sync::Arc;

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::AlterPartitionReassignmentsRequest;
use ottla_protocol::messages::alter_partition_reassignments_request::ReassignableTopic;
use ottla_protocol::messages::alter_partition_reassignments_response::{
    AlterPartitionReassignmentsResponse, ReassignablePartitionResponse, ReassignableTopicResponse,
};

use super::named::PARTITIONS_MAX;
use crate::cluster::Reassignment;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let named = request.topics.iter().map(|topic| topic.partitions.len());
    if named.sum::<usize>() > PARTITIONS_MAX {
        return AlterPartitionReassignmentsResponse::default()
            .with_error_code(ErrorCode::INVALID_REQUEST.0)
            .with_error_message(None);
    }
    let same_factor = cx.version >= 1 && !request.allow_replication_factor_change;
    let moves: Vec<Reassignment> = request.topics.iter().flat_map(moves).collect();
    let mut outcomes = cx.broker.reassign(&moves, same_factor).into_iter();
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().zip(&mut outcomes);
        let partitions = partitions.map(|(partition, outcome)| {
            let (code, message) = ApiError::told(outcome);
            ReassignablePartitionResponse::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(code)
                .with_error_message(message)
        });
        ReassignableTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    AlterPartitionReassignmentsResponse::default()
        .with_error_message(None)
        .with_allow_replication_factor_change(!same_factor)
        .with_responses(topics.collect())
}

fn moves(topic: &ReassignableTopic) -> impl Iterator<Item = Reassignment> {
    let name: Arc<str> = Arc::from(&**topic.name);
    topic.partitions.iter().map(move |partition| Reassignment {
        topic: Arc::clone(&name),
        partition: partition.partition_index,
        replicas: partition
            .replicas
            .as_ref()
            .map(|ids| ids.iter().map(|id| id.0).collect()),
    })
}
