//! `DescribeLogDirs` request, versions 1 to 5.

use super::codec::{messages, request};
use super::{DescribeLogDirsResponse, TopicName};
use crate::api_key;

messages! {
    versions 1..=5, flexible 2;

    /// Which partitions' sizes are asked for.
    pub struct DescribeLogDirsRequest {
        /// The topics; null for all.
        pub topics: Option<Vec<DescribableLogDirTopic>> = Some(Vec::new());
    }

    /// One topic.
    pub struct DescribableLogDirTopic {
        /// Its name.
        pub topic: TopicName = TopicName::default();
        /// Its partitions.
        pub partitions: Vec<i32> = Vec::new();
    }
}

request!(DescribeLogDirsRequest = api_key::DESCRIBE_LOG_DIRS => DescribeLogDirsResponse);
