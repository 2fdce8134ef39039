//! `DescribeShareGroupOffsets` response, versions 0 and 1; 1 adds the lag (KIP-1226).

use super::codec::{messages, response};
use super::{GroupId, TopicName};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 0..=1, flexible 0;

    /// The start offsets of share groups.
    pub struct DescribeShareGroupOffsetsResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// One result per group asked for.
        pub groups: Vec<DescribeShareGroupOffsetsResponseGroup> = Vec::new();
    }

    /// One group.
    pub struct DescribeShareGroupOffsetsResponseGroup {
        /// Its id.
        pub group_id: GroupId = GroupId::default();
        /// Its topics.
        pub topics: Vec<DescribeShareGroupOffsetsResponseTopic> = Vec::new();
        /// Error code of the group, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
    }

    /// One topic of a group.
    pub struct DescribeShareGroupOffsetsResponseTopic {
        /// Its name.
        pub topic_name: TopicName = TopicName::default();
        /// Its id.
        pub topic_id: Uuid = Uuid::nil();
        /// Its partitions.
        pub partitions: Vec<DescribeShareGroupOffsetsResponsePartition> = Vec::new();
    }

    /// One share partition.
    pub struct DescribeShareGroupOffsetsResponsePartition {
        /// Its index.
        pub partition_index: i32 = 0;
        /// The start offset (SPSO); -1 when there is none yet.
        pub start_offset: i64 = 0;
        /// The leader epoch of the partition.
        pub leader_epoch: i32 = 0;
        /// Records still to be delivered; -1 when unknown.
        pub lag: i64 = -1, since 1;
        /// Error code of the partition, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
    }
}

response!(DescribeShareGroupOffsetsResponse = api_key::DESCRIBE_SHARE_GROUP_OFFSETS);
