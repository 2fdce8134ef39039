//! What one topic runs with: its own configs over the broker's.

use super::snapshot::{Field, snapshot};

/// What becomes of old records (`cleanup.policy`). Both may hold; an empty list keeps everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CleanupPolicy {
    /// Segments beyond retention go.
    pub delete: bool,
    /// Only the last record of each key stays.
    pub compact: bool,
}

impl Field for CleanupPolicy {
    fn read(text: Option<&str>) -> Option<Self> {
        let mut policy = Self::default();
        for word in super::value::list(text?) {
            match word.as_str() {
                "delete" => policy.delete = true,
                "compact" => policy.compact = true,
                _ => return None,
            }
        }
        Some(policy)
    }
}

/// What a topic's batches are stored with (`compression.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CompressionType {
    /// As they came.
    #[default]
    Producer,
    /// Not compressed.
    Uncompressed,
    /// gzip.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// zstd.
    Zstd,
}

impl Field for CompressionType {
    fn read(text: Option<&str>) -> Option<Self> {
        Some(match text? {
            "producer" => Self::Producer,
            "uncompressed" => Self::Uncompressed,
            "gzip" => Self::Gzip,
            "snappy" => Self::Snappy,
            "lz4" => Self::Lz4,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }
}

/// Whose time a record carries (`message.timestamp.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimestampType {
    /// The producer's.
    #[default]
    CreateTime,
    /// The broker's at the append.
    LogAppendTime,
}

impl Field for TimestampType {
    fn read(text: Option<&str>) -> Option<Self> {
        Some(match text? {
            "CreateTime" => Self::CreateTime,
            "LogAppendTime" => Self::LogAppendTime,
            _ => return None,
        })
    }
}

snapshot! {
    /// What one topic runs with. Times are milliseconds, sizes bytes; -1 in a retention is no limit.
    pub struct TopicConfig {
        /// What becomes of old records.
        pub cleanup_policy: CleanupPolicy = "cleanup.policy",
        /// The level of gzip, -1 for the codec's own default.
        pub compression_gzip_level: i32 = "compression.gzip.level",
        /// The level of lz4.
        pub compression_lz4_level: i32 = "compression.lz4.level",
        /// The level of zstd.
        pub compression_zstd_level: i32 = "compression.zstd.level",
        /// What batches are stored with.
        pub compression_type: CompressionType = "compression.type",
        /// How long a tombstone stays in a compacted log.
        pub delete_retention_ms: i64 = "delete.retention.ms",
        /// Whether the topic may receive dead letters (KIP-1191).
        pub dlq_group_enable: bool = "errors.deadletterqueue.group.enable",
        /// How long files of a deleted segment or topic stay.
        pub file_delete_delay_ms: i64 = "file.delete.delay.ms",
        /// Records after which the log is synced.
        pub flush_messages: i64 = "flush.messages",
        /// Time after which the log is synced.
        pub flush_ms: i64 = "flush.ms",
        /// Log bytes between two index entries.
        pub index_interval_bytes: i32 = "index.interval.bytes",
        /// The longest time until a record is compacted.
        pub max_compaction_lag_ms: i64 = "max.compaction.lag.ms",
        /// The largest record batch, decompressed.
        pub max_decompressed_message_bytes: i32 = "max.decompressed.message.bytes",
        /// The largest record batch.
        pub max_message_bytes: i32 = "max.message.bytes",
        /// How far a record's time may be ahead of the broker's.
        pub message_timestamp_after_max_ms: i64 = "message.timestamp.after.max.ms",
        /// How far a record's time may be behind the broker's.
        pub message_timestamp_before_max_ms: i64 = "message.timestamp.before.max.ms",
        /// Whose time a record carries.
        pub message_timestamp_type: TimestampType = "message.timestamp.type",
        /// The part of the log that is not compacted yet at which compaction starts.
        pub min_cleanable_dirty_ratio: f64 = "min.cleanable.dirty.ratio",
        /// The time for which a record is not compacted.
        pub min_compaction_lag_ms: i64 = "min.compaction.lag.ms",
        /// Replicas that must be in sync for `acks=all`.
        pub min_insync_replicas: i32 = "min.insync.replicas",
        /// Whether a segment's file is allocated at once.
        pub preallocate: bool = "preallocate",
        /// Bytes of a partition that are kept.
        pub retention_bytes: i64 = "retention.bytes",
        /// Time for which records are kept.
        pub retention_ms: i64 = "retention.ms",
        /// The size of a segment, before `internal.segment.bytes` (see [`TopicConfig::segment_size`]).
        pub segment_bytes: i32 = "segment.bytes",
        /// A segment size below Kafka's lower bound, for tests.
        pub internal_segment_bytes: Option<i32> = "internal.segment.bytes",
        /// The size of a segment's index.
        pub segment_index_bytes: i32 = "segment.index.bytes",
        /// The most by which `segment_ms` is shortened at random.
        pub segment_jitter_ms: i64 = "segment.jitter.ms",
        /// Time after which a segment is rolled.
        pub segment_ms: i64 = "segment.ms",
        /// Whether a replica that is not in sync may lead.
        pub unclean_leader_election_enable: bool = "unclean.leader.election.enable",
    }
}

impl TopicConfig {
    /// The size of a segment in bytes; `internal.segment.bytes`, where set, wins.
    pub fn segment_size(&self) -> i32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }
}
