//! Topic configurations as the log and the batch checks want them.

use ottla_protocol::batch::{self, ProduceChecks};
use ottla_storage::LogConfig;

use crate::config::{LogDefaults, TimestampType, TopicConfig};

/// What a topic's logs run with.
pub(crate) fn log_config(topic: &TopicConfig, log: &LogDefaults) -> LogConfig {
    LogConfig {
        segment_bytes: topic.segment_size().unsigned_abs(),
        segment_ms: topic.segment_ms,
        segment_jitter_ms: topic.segment_jitter_ms,
        segment_index_bytes: topic.segment_index_bytes.unsigned_abs(),
        index_interval_bytes: topic.index_interval_bytes.unsigned_abs(),
        flush_messages: topic.flush_messages,
        flush_ms: topic.flush_ms,
        file_delete_delay_ms: topic.file_delete_delay_ms,
        producer_id_expiration_ms: i64::from(log.producer_id_expiration_ms),
        retention_ms: topic.retention_ms,
        retention_bytes: topic.retention_bytes,
        cleanup_delete: topic.cleanup_policy.delete,
        cleanup_compact: topic.cleanup_policy.compact,
        min_cleanable_dirty_ratio: topic.min_cleanable_dirty_ratio,
        delete_retention_ms: topic.delete_retention_ms,
        min_compaction_lag_ms: topic.min_compaction_lag_ms,
        max_compaction_lag_ms: topic.max_compaction_lag_ms,
        preallocate: topic.preallocate,
    }
}

/// What the metadata log runs with: nothing in it expires, and nothing is compacted.
pub(crate) fn metadata_log_config() -> LogConfig {
    LogConfig {
        retention_ms: -1,
        retention_bytes: -1,
        ..LogConfig::default()
    }
}

/// What a batch that is produced to a topic must satisfy.
pub(crate) fn produce_checks(topic: &TopicConfig, now: i64, version: i16) -> ProduceChecks {
    ProduceChecks {
        now,
        produce_version: version,
        max_message_bytes: usize::try_from(topic.max_message_bytes).unwrap_or(0),
        timestamp_type: match topic.message_timestamp_type {
            TimestampType::CreateTime => batch::TimestampType::CreateTime,
            TimestampType::LogAppendTime => batch::TimestampType::LogAppendTime,
        },
        before_max_ms: topic.message_timestamp_before_max_ms,
        after_max_ms: topic.message_timestamp_after_max_ms,
        compacted: topic.cleanup_policy.compact,
        decompressed_limit: usize::try_from(topic.max_decompressed_message_bytes)
            .unwrap_or(0)
            .min(batch::DECOMPRESSED_LIMIT),
    }
}
