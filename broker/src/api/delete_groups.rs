//! DeleteGroups (key 42), versions 0-3. KIP-229; v3 has a message for each group.
//!
//! - Groups of every type, if they are empty. With a share group goes the state of its share partitions,
//!   with other groups what they have committed.

use std::collections::BTreeSet;

use ottla_protocol::messages::delete_groups_response::{
    DeletableGroupResult, DeleteGroupsResponse,
};
use ottla_protocol::messages::{DeleteGroupsRequest, GroupId};

use super::coordinator::shard;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    // A group that is named twice is deleted, and answered, once.
    let ids: BTreeSet<_> = request.groups_names.iter().collect();
    let results = ids.into_iter().map(|id| {
        let (code, message) = ApiError::told(delete(cx, id));
        DeletableGroupResult {
            group_id: id.clone(),
            error_code: code,
            error_message: message,
            ..Default::default()
        }
    });
    DeleteGroupsResponse {
        results: results.collect(),
        ..Default::default()
    }
}

fn delete(cx: &Cx, id: &GroupId) -> Result<(), ApiError> {
    shard(cx, id)?.change(&cx.broker, |machine, _| Ok(machine.delete_group(id)?))
}
