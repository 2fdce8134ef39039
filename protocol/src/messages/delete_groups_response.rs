//! `DeleteGroups` response, versions 0 to 3.

use super::GroupId;
use super::codec::{messages, response};
use crate::{StrBytes, api_key};

messages! {
    versions 0..=3, flexible 2;

    /// What became of each group.
    pub struct DeleteGroupsResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// One result per group asked for.
        pub results: Vec<DeletableGroupResult> = Vec::new();
    }

    /// What became of one group.
    pub struct DeletableGroupResult {
        /// The group.
        pub group_id: GroupId = GroupId::default();
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None, since 3;
    }
}

response!(DeleteGroupsResponse = api_key::DELETE_GROUPS);
