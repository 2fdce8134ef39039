//! `DescribeShareGroupOffsets` request, versions 0 and 1 (KIP-932, KIP-1226).

use super::codec::{messages, request};
use super::{DescribeShareGroupOffsetsResponse, GroupId, TopicName};
use crate::api_key;

messages! {
    versions 0..=1, flexible 0;

    /// Groups whose start offsets are asked for.
    pub struct DescribeShareGroupOffsetsRequest {
        /// The groups.
        pub groups: Vec<DescribeShareGroupOffsetsRequestGroup> = Vec::new();
    }

    /// One group.
    pub struct DescribeShareGroupOffsetsRequestGroup {
        /// Its id.
        pub group_id: GroupId = GroupId::default();
        /// The topics asked for; null for all.
        pub topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>> = Some(Vec::new());
    }

    /// One topic.
    pub struct DescribeShareGroupOffsetsRequestTopic {
        /// Its name.
        pub topic_name: TopicName = TopicName::default();
        /// The partitions asked for.
        pub partitions: Vec<i32> = Vec::new();
    }
}

request!(
    DescribeShareGroupOffsetsRequest = api_key::DESCRIBE_SHARE_GROUP_OFFSETS
        => DescribeShareGroupOffsetsResponse
);
