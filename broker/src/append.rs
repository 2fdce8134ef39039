//! Storing a batch of records in a partition: what a produce request and a dead letter have in common.
//!
//! The batch is checked against the topic's rules, stored in the topic's own codec, and refused while
//! the ISR is under `min.insync.replicas` if all replicas in sync are to have it.

use bytes::Bytes;
use ottla_protocol::ErrorCode;
use ottla_protocol::batch::{self, BatchError, BatchHeader, RecordFault, ValidBatch};
use ottla_protocol::compression::Compression;
use ottla_storage::{AppendInfo, AppendOptions, Origin};

use crate::broker::Broker;
use crate::cluster::{Leadership, Partition, Topic};
use crate::config::{CompressionType, TimestampType, TopicConfig};
use crate::error_code::ApiError;
use crate::log_config::produce_checks;

/// A batch to be stored.
pub(crate) struct Write<'a> {
    /// Exactly one batch.
    pub(crate) records: &'a Bytes,
    /// The partition's leadership, as the caller found it good.
    pub(crate) leadership: &'a Leadership,
    /// Whether `min.insync.replicas` holds (acks=all).
    pub(crate) all_in_sync: bool,
    /// The version of Produce whose rules hold.
    pub(crate) produce_version: i16,
}

/// A batch that was stored.
pub(crate) struct Stored {
    /// Where.
    pub(crate) info: AppendInfo,
    /// Whether the ISR has fallen under `min.insync.replicas` meanwhile.
    pub(crate) replica_lost: bool,
}

/// Stores a batch.
pub(crate) fn append(
    broker: &Broker,
    topic: &Topic,
    partition: &Partition,
    write: &Write<'_>,
) -> Result<Stored, Refused> {
    let config = topic.config();
    let leadership = write.leadership;
    let need = if write.all_in_sync {
        leadership.min_isr(config.min_insync_replicas)
    } else {
        0
    };
    if leadership.isr.len() < need {
        let message = format!(
            "The size of the current ISR {:?} is insufficient to satisfy the min.isr requirement of {need} for partition {partition:?}",
            leadership.isr
        );
        return Err(ApiError::new(ErrorCode::NOT_ENOUGH_REPLICAS, message).into());
    }
    let now = broker.clock.now();
    let checks = produce_checks(&config, now, write.produce_version);
    let checked = batch::validate_produce(write.records, &checks)
        .and_then(|valid| recode(valid, stored_codec(&config), checks.max_message_bytes));
    let valid = checked.map_err(|error| {
        broker.metrics.produce_refused.inc();
        Refused::batch(&error, &format!("{}-{}", topic.name, partition.index))
    })?;
    if valid.header.is_transactional() || valid.header.is_control() {
        return Err(ApiError::new(
            ErrorCode::INVALID_TXN_STATE,
            "Transactions are not served by this version.",
        )
        .into());
    }
    let options = AppendOptions {
        leader_epoch: leadership.leader_epoch,
        now,
        log_append_time: config.message_timestamp_type == TimestampType::LogAppendTime,
        origin: Origin::Client,
    };
    let info = partition
        .log
        .append(&valid.records, &valid.header, options)?;
    broker
        .metrics
        .produced(valid.records.len(), valid.header.count);
    Ok(Stored {
        info,
        replica_lost: need > 0 && partition.leadership().isr.len() < need,
    })
}

/// The codec that a topic's batches are stored with, and its level where one is set; `None`: as they
/// come.
fn stored_codec(topic: &TopicConfig) -> Option<(Compression, Option<i32>)> {
    Some(match topic.compression_type {
        CompressionType::Producer => return None,
        CompressionType::Uncompressed => (Compression::None, None),
        CompressionType::Gzip => {
            let level = topic.compression_gzip_level;
            (Compression::Gzip, (level != -1).then_some(level))
        }
        CompressionType::Snappy => (Compression::Snappy, None),
        CompressionType::Lz4 => (Compression::Lz4, Some(topic.compression_lz4_level)),
        CompressionType::Zstd => (Compression::Zstd, Some(topic.compression_zstd_level)),
    })
}

/// The batch in the topic's own codec, if it has one.
fn recode(
    valid: ValidBatch,
    codec: Option<(Compression, Option<i32>)>,
    limit: usize,
) -> Result<ValidBatch, BatchError> {
    let Some((codec, level)) = codec else {
        return Ok(valid);
    };
    if valid.header.compression()? == codec {
        return Ok(valid);
    }
    let records = batch::recompress(&valid.records, codec, level)?;
    if records.len() > limit {
        let size = records.len();
        return Err(BatchError::TooLarge { size, limit });
    }
    let header = BatchHeader::parse(&records)?;
    Ok(ValidBatch {
        header,
        records,
        ..valid
    })
}

/// Why a partition's records were not stored, and what is wrong with which of them.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Why, as the protocol says it.
    pub(crate) error: ApiError,
    /// Records by their place in the batch, and what is wrong with each.
    pub(crate) records: Vec<(i32, String)>,
}

impl<E: Into<ApiError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            records: vec![],
        }
    }
}

impl Refused {
    /// A batch that was refused for `partition`, a topic and an index as `orders-3`.
    fn batch(error: &BatchError, partition: &str) -> Self {
        let BatchError::Rejected(rejected) = error else {
            return ApiError::from(error).into();
        };
        let faults: Vec<(i32, String)> = rejected
            .first
            .iter()
            .map(|(index, fault)| (*index, record_fault(*index, fault, partition)))
            .collect();
        let message = if rejected.is_timestamp() {
            "One or more records have been rejected due to invalid timestamp".to_owned()
        } else {
            let shown: Vec<String> = faults
                .iter()
                .take(3)
                .map(|(index, text)| format!("RecordError(batchIndex={index}, message='{text}')"))
                .collect();
            format!(
                "One or more records have been rejected due to {} record errors in total, and only \
                 showing the first three errors at most: [{}]",
                rejected.total,
                shown.join(", ")
            )
        };
        Self {
            error: ApiError::new(ApiError::from(error).code, message),
            records: faults,
        }
    }
}

/// What Kafka says of a record that breaks its topic's rules.
fn record_fault(index: i32, fault: &RecordFault, partition: &str) -> String {
    match fault {
        RecordFault::Timestamp {
            timestamp,
            from,
            to,
        } => format!(
            "Timestamp {timestamp} of message with offset {index} is out of range. \
             The timestamp should be within [{from}, {to}]"
        ),
        RecordFault::NullKey => format!(
            "Compacted topic cannot accept message without key in topic partition {partition}"
        ),
        other => other.to_string(),
    }
}
