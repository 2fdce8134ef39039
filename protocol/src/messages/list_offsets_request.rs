//! `ListOffsets` request, versions 1 to 11; 11 allows timestamp -6 and changes no field (KIP-1023).

use super::codec::{messages, request};
use super::{BrokerId, ListOffsetsResponse, TopicName};
use crate::api_key;

messages! {
    versions 1..=11, flexible 6;

    /// Partitions whose offsets at a point in time are asked for.
    pub struct ListOffsetsRequest {
        /// -1 for a client, else the id of the broker that asks.
        pub replica_id: BrokerId = BrokerId(0);
        /// 0 = read uncommitted, 1 = read committed.
        pub isolation_level: i8 = 0, since 2;
        /// The topics.
        pub topics: Vec<ListOffsetsTopic> = Vec::new();
        /// How long to wait for remote storage, in ms.
        pub timeout_ms: i32 = 0, since 10;
    }

    /// One topic.
    pub struct ListOffsetsTopic {
        /// Its name.
        pub name: TopicName = TopicName::default();
        /// Its partitions.
        pub partitions: Vec<ListOffsetsPartition> = Vec::new();
    }

    /// One partition.
    pub struct ListOffsetsPartition {
        /// Its index.
        pub partition_index: i32 = 0;
        /// The leader epoch that the client knows; -1 when none.
        pub current_leader_epoch: i32 = -1, since 4;
        /// Ms since the epoch, or -1 latest, -2 earliest, -3 max timestamp, -4 earliest local,
        /// -5 latest tiered, -6 earliest not yet tiered.
        pub timestamp: i64 = 0;
    }
}

request!(ListOffsetsRequest = api_key::LIST_OFFSETS => ListOffsetsResponse);
