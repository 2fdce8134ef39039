//! `ListOffsets` response, versions 1 to 11.

use super::TopicName;
use super::codec::{messages, response};
use crate::api_key;

messages! {
    versions 1..=11, flexible 6;

    /// The offsets found.
    pub struct ListOffsetsResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0, since 2;
        /// The topics.
        pub topics: Vec<ListOffsetsTopicResponse> = Vec::new();
    }

    /// One topic.
    pub struct ListOffsetsTopicResponse {
        /// Its name.
        pub name: TopicName = TopicName::default();
        /// Its partitions.
        pub partitions: Vec<ListOffsetsPartitionResponse> = Vec::new();
    }

    /// One partition.
    pub struct ListOffsetsPartitionResponse {
        /// Its index.
        pub partition_index: i32 = 0;
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// The timestamp of the record found, in ms; -1 when none.
        pub timestamp: i64 = -1;
        /// The offset found; -1 when none.
        pub offset: i64 = -1;
        /// The leader epoch of the record found; -1 when unknown.
        pub leader_epoch: i32 = -1, since 4;
    }
}

response!(ListOffsetsResponse = api_key::LIST_OFFSETS);
