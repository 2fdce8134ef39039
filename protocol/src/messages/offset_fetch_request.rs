//! `OffsetFetch` request, versions 1 to 10; 8 asks for several groups, 10 names topics by id.

use super::codec::{messages, request};
use super::{GroupId, OffsetFetchResponse, TopicName};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 1..=10, flexible 6;

    /// Groups whose committed offsets are asked for.
    pub struct OffsetFetchRequest {
        /// The group.
        pub group_id: GroupId = GroupId::default(), until 7;
        /// The topics; null (from version 2 on) = all.
        pub topics: Option<Vec<OffsetFetchRequestTopic>> = Some(Vec::new()), until 7;
        /// The groups.
        pub groups: Vec<OffsetFetchRequestGroup> = Vec::new(), since 8;
        /// Whether offsets that an open transaction may change are refused.
        pub require_stable: bool = false, since 7;
    }

    /// One topic, up to version 7.
    pub struct OffsetFetchRequestTopic {
        /// Its name.
        pub name: TopicName = TopicName::default();
        /// Its partitions.
        pub partition_indexes: Vec<i32> = Vec::new();
    }

    /// One group.
    pub struct OffsetFetchRequestGroup {
        /// Its id.
        pub group_id: GroupId = GroupId::default();
        /// The member that asks, or null.
        pub member_id: Option<StrBytes> = None, since 9;
        /// The member's epoch; -1 from outside the group.
        pub member_epoch: i32 = -1, since 9;
        /// The topics; null = all.
        pub topics: Option<Vec<OffsetFetchRequestTopics>> = Some(Vec::new());
    }

    /// One topic, from version 8 on.
    pub struct OffsetFetchRequestTopics {
        /// Its name.
        pub name: TopicName = TopicName::default(), until 9;
        /// Its id.
        pub topic_id: Uuid = Uuid::nil(), since 10;
        /// Its partitions.
        pub partition_indexes: Vec<i32> = Vec::new();
    }
}

request!(OffsetFetchRequest = api_key::OFFSET_FETCH => OffsetFetchResponse);
