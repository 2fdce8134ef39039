//! `DescribeLogDirs` response, versions 1 to 5; 5 says which directories take no new partitions (KIP-1066).

use super::TopicName;
use super::codec::{messages, response};
use crate::{StrBytes, api_key};

messages! {
    versions 1..=5, flexible 2;

    /// The log directories of one broker.
    pub struct DescribeLogDirsResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// Error code, or 0.
        pub error_code: i16 = 0, since 3;
        /// The directories.
        pub results: Vec<DescribeLogDirsResult> = Vec::new();
    }

    /// One directory.
    pub struct DescribeLogDirsResult {
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// Its absolute path.
        pub log_dir: StrBytes = StrBytes::default();
        /// The topics in it.
        pub topics: Vec<DescribeLogDirsTopic> = Vec::new();
        /// Size of its volume in bytes; -1 when unknown.
        pub total_bytes: i64 = -1, since 4;
        /// Bytes of the volume that are free for use; -1 when unknown.
        pub usable_bytes: i64 = -1, since 4;
        /// Whether it takes no new partitions.
        pub is_cordoned: bool = false, since 5;
    }

    /// One topic.
    pub struct DescribeLogDirsTopic {
        /// Its name.
        pub name: TopicName = TopicName::default();
        /// Its partitions.
        pub partitions: Vec<DescribeLogDirsPartition> = Vec::new();
    }

    /// One partition.
    pub struct DescribeLogDirsPartition {
        /// Its index.
        pub partition_index: i32 = 0;
        /// Bytes of its log.
        pub partition_size: i64 = 0;
        /// How far it is behind the high watermark, or behind the log that it will replace.
        pub offset_lag: i64 = 0;
        /// Whether it will replace the log in another directory.
        pub is_future_key: bool = false;
    }
}

response!(DescribeLogDirsResponse = api_key::DESCRIBE_LOG_DIRS);
