//! ElectLeaders (key 43), versions 0-2. KIP-183, KIP-460 (v1: unclean elections).
//!
//! - Election type 0 makes the preferred replica lead, 1 any replica where nobody leads.
//! - Without a list of partitions all are looked at, and those that need no election are left out.
//! - A request that names more than 100 000 partitions is refused as a whole.
//! - Served by every broker, as all that the control plane does.

use std::sync::Arc;

use ottla_protocol::messages::elect_leaders_response::{
    ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};
use ottla_protocol::messages::{ElectLeadersRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};

use super::named::PARTITIONS_MAX;
use crate::cluster::Elected;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: ElectLeadersRequest) -> ElectLeadersResponse {
    let named = request.topic_partitions.iter().flatten();
    if named.map(|topic| topic.partitions.len()).sum::<usize>() > PARTITIONS_MAX {
        return ElectLeadersResponse::default().with_error_code(ErrorCode::INVALID_REQUEST.0);
    }
    let wanted = request.topic_partitions.as_ref().map(|topics| {
        let each = topics.iter().flat_map(|topic| {
            let name: Arc<str> = Arc::from(&**topic.topic);
            let indexes = topic.partitions.iter();
            indexes.map(move |&index| (Arc::clone(&name), index))
        });
        each.collect::<Vec<_>>()
    });
    match elect(cx, request.election_type, wanted.clone()) {
        Ok(elected) => {
            ElectLeadersResponse::default().with_replica_election_results(results(elected))
        }
        Err(error) => {
            let partitions = wanted.into_iter().flatten();
            let each = partitions.map(|(topic, index)| (topic, index, Err(error.clone())));
            ElectLeadersResponse::default()
                .with_error_code(error.number())
                .with_replica_election_results(results(each.collect()))
        }
    }
}

fn elect(
    cx: &Cx,
    election_type: i8,
    wanted: Option<Vec<(Arc<str>, i32)>>,
) -> Result<Vec<Elected>, ApiError> {
    let unclean = match election_type {
        0 => false,
        1 => true,
        other => {
            let message = format!("Unknown election type {other}");
            return Err(ApiError::new(ErrorCode::INVALID_REQUEST, message));
        }
    };
    Ok(cx.broker.elect_leaders(wanted, unclean))
}

/// The outcomes, those of a topic together.
fn results(elected: Vec<Elected>) -> Vec<ReplicaElectionResult> {
    let mut topics: Vec<ReplicaElectionResult> = vec![];
    for (topic, index, outcome) in elected {
        let (code, message) = ApiError::told(outcome);
        let result = PartitionResult::default()
            .with_partition_id(index)
            .with_error_code(code)
            .with_error_message(message);
        match topics.last_mut().filter(|last| **last.topic == *topic) {
            Some(last) => last.partition_result.push(result),
            None => topics.push(
                ReplicaElectionResult::default()
                    .with_topic(TopicName(StrBytes::from_string(topic.to_string())))
                    .with_partition_result(vec![result]),
            ),
        }
    }
    topics
}
