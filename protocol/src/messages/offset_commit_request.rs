//! `OffsetCommit` request, versions 2 to 10; 10 names topics by id (KIP-848).

use super::codec::{messages, request};
use super::{GroupId, OffsetCommitResponse, TopicName};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 2..=10, flexible 8;

    /// Offsets that a group commits.
    pub struct OffsetCommitRequest {
        /// The group.
        pub group_id: GroupId = GroupId::default();
        /// Generation or member epoch; -1 from outside the group.
        pub generation_id_or_member_epoch: i32 = -1;
        /// The member; empty from outside the group.
        pub member_id: StrBytes = StrBytes::default();
        /// The static member's instance, or null.
        pub group_instance_id: Option<StrBytes> = None, since 7;
        /// How long to keep the offsets, in ms; -1 = as long as the broker says.
        pub retention_time_ms: i64 = -1, until 4;
        /// The topics.
        pub topics: Vec<OffsetCommitRequestTopic> = Vec::new();
    }

    /// One topic.
    pub struct OffsetCommitRequestTopic {
        /// Its name.
        pub name: TopicName = TopicName::default(), until 9;
        /// Its id.
        pub topic_id: Uuid = Uuid::nil(), since 10;
        /// Its partitions.
        pub partitions: Vec<OffsetCommitRequestPartition> = Vec::new();
    }

    /// One partition.
    pub struct OffsetCommitRequestPartition {
        /// Its index.
        pub partition_index: i32 = 0;
        /// The offset of the next record to consume.
        pub committed_offset: i64 = 0;
        /// The leader epoch of the last consumed record; -1 when unknown.
        pub committed_leader_epoch: i32 = -1, since 6;
        /// What the client wants to keep with it.
        pub committed_metadata: Option<StrBytes> = None;
    }
}

request!(OffsetCommitRequest = api_key::OFFSET_COMMIT => OffsetCommitResponse);
