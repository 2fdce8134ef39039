//! `DeleteGroups` request, versions 0 to 3.

use super::codec::{messages, request};
use super::{DeleteGroupsResponse, GroupId};
use crate::api_key;

messages! {
    versions 0..=3, flexible 2;

    /// Groups to delete.
    pub struct DeleteGroupsRequest {
        /// Their ids.
        pub groups_names: Vec<GroupId> = Vec::new();
    }
}

request!(DeleteGroupsRequest = api_key::DELETE_GROUPS => DeleteGroupsResponse);
