//! CreatePartitions (key 37), versions 0-3. KIP-195.
//!
//! - The count is the new total and must be an increase; replicas of the new partitions may be given.
//! - A topic that is named twice in a request is refused, once.
//! - More than 10,000 new partitions in one request are refused, all of them, with POLICY_VIOLATION.

use ottla_protocol::messages::CreatePartitionsRequest;
use ottla_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use ottla_protocol::messages::create_partitions_response::{
    CreatePartitionsResponse, CreatePartitionsTopicResult,
};

use super::new_partitions::each_once;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
    let excess = "Excessively large number of additional partitions per request.";
    let count = |topic: &CreatePartitionsTopic| increase(cx, topic);
    let results = each_once(&request.topics, |topic| &*topic.name, count, excess);
    let results = results.map(|(wanted, allowed)| {
        let result = allowed.and_then(|()| create(cx, wanted, request.validate_only));
        let (code, message) = ApiError::told(result);
        CreatePartitionsTopicResult::default()
            .with_name(wanted.name.clone())
            .with_error_code(code)
            .with_error_message(message)
    });
    CreatePartitionsResponse::default().with_results(results.collect())
}

/// The partitions that a topic would get; none if it is not there.
fn increase(cx: &Cx, wanted: &CreatePartitionsTopic) -> i64 {
    let topic = cx.broker.cluster.topic(&wanted.name);
    topic.map_or(0, |t| {
        (i64::from(wanted.count) - t.partitions().len() as i64).max(0)
    })
}

fn create(cx: &Cx, wanted: &CreatePartitionsTopic, validate_only: bool) -> Result<(), ApiError> {
    let assignments = wanted.assignments.as_ref().map(|lists| {
        lists
            .iter()
            .map(|list| list.broker_ids.iter().map(|id| id.0).collect())
            .collect()
    });
    cx.broker
        .create_partitions(&wanted.name, wanted.count, assignments, validate_only)
}
