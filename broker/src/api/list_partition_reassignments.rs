//! ListPartitionReassignments (key 46), version 0. KIP-455.
//!
//! Storage is shared by the logical brokers, so a reassignment is over when it was accepted: none is
//! ever in progress.

use ottla_protocol::messages::ListPartitionReassignmentsRequest;
use ottla_protocol::messages::list_partition_reassignments_response::ListPartitionReassignmentsResponse;

use crate::context::Cx;

pub(super) async fn handle(
    _cx: &Cx,
    _request: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse::default().with_error_message(None)
}
