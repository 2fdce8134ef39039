//! What a broker demands of a batch that a producer sent, before it takes the log's lock.
//!
//! One pass for the checksum and one walk over the records' lengths; compressed records are walked
//! while they are decompressed, in a window of fixed size. Every rule was measured on Apache Kafka
//! 4.4.0.

use bytes::Bytes;

use super::error::{BatchError, RecordFault, Rejected};
use super::header::{
    ATTR_LOG_APPEND_TIME, BatchHeader, HEADER_LEN, LOG_OVERHEAD, TimestampType, at, crc_of, put,
};
use super::walk::{Slice, Source, Stream, Walk};
use crate::compression::{Compression, Decoder};

/// The most that a batch's records may decompress to, by default: 256 MiB.
pub const DECOMPRESSED_LIMIT: usize = 256 << 20;

/// The topic's rules, and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceChecks {
    /// The time in milliseconds since the epoch.
    pub now: i64,
    /// Version of the Produce request; zstd needs 7.
    pub produce_version: i16,
    /// `max.message.bytes`: the most bytes of a batch as it was sent.
    pub max_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far record timestamps may be behind `now`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far they may be ahead.
    pub after_max_ms: i64,
    /// Whether `cleanup.policy` has `compact`, so that every record needs a key.
    pub compacted: bool,
    /// The most bytes that the records may decompress to.
    pub decompressed_limit: usize,
}

impl ProduceChecks {
    /// Kafka's defaults, for a request of the newest version at `now`.
    pub const fn at(now: i64) -> Self {
        Self {
            now,
            produce_version: i16::MAX,
            max_message_bytes: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            compacted: false,
            decompressed_limit: DECOMPRESSED_LIMIT,
        }
    }
}

/// A batch that may be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidBatch {
    /// The header of `records`.
    pub header: BatchHeader,
    /// The batch to append: the producer's own bytes, by reference. A copy where the header had to
    /// be put right, as Kafka does: a max timestamp that is not the records', or the mark of log
    /// append time in a topic of create time.
    pub records: Bytes,
    /// Largest timestamp in milliseconds since the epoch, -1 if no record has one. Under log
    /// append time it is `now`, and not in the header: an append that is told to sets it there
    /// ([`set_log_append_time`](super::set_log_append_time)).
    pub max_timestamp: i64,
    /// Offset of the first record with that timestamp, less the base offset. Under log append
    /// time, of the last record.
    pub offset_of_max_timestamp_delta: i32,
}

/// Checks what a producer sent for one partition: exactly one batch, from its length to its last
/// record. Bytes behind the batch that make no batch are left out of the answer.
pub fn validate_produce(records: &Bytes, checks: &ProduceChecks) -> Result<ValidBatch, BatchError> {
    let header = one_batch(records)?;
    check_header(&header, checks)?;
    let batch = records.slice(..header.size());
    if batch.len() > checks.max_message_bytes {
        return Err(BatchError::TooLarge {
            size: batch.len(),
            limit: checks.max_message_bytes,
        });
    }
    let computed = crc_of(&batch);
    if computed != header.crc {
        return Err(BatchError::Checksum {
            stored: header.crc,
            computed,
        });
    }
    check_contents(&header)?;
    let payload = batch.get(HEADER_LEN..).unwrap_or_default();
    let found = match header.compression()? {
        Compression::None => check_records(Walk::new(Slice(payload)), &header, checks)?,
        codec => {
            let stream = Stream::new(Decoder::new(codec, payload)?, checks.decompressed_limit);
            check_records(Walk::new(stream), &header, checks)?
        }
    };
    Ok(put_right(batch, header, found, checks))
}

/// The header of the first batch, if it is whole and the only one.
fn one_batch(records: &[u8]) -> Result<BatchHeader, BatchError> {
    if records.is_empty() {
        return Err(BatchError::Empty);
    }
    let header = BatchHeader::parse(records)?;
    let Some(rest) = records.get(header.size()..) else {
        return Err(BatchError::Truncated {
            needed: header.size(),
            have: records.len(),
        });
    };
    // A tail that could not be the head of a message is no second batch; nor is one that is cut.
    if let Some(length) = rest
        .get(at::LENGTH..LOG_OVERHEAD)
        .and_then(|b| b.try_into().ok())
    {
        let length = i32::from_be_bytes(length);
        if length < 14 {
            return Err(BatchError::BadLength(length));
        }
        if rest.len() > at::MAGIC && rest.len() - LOG_OVERHEAD >= length as usize {
            return Err(BatchError::MoreThanOne);
        }
    }
    Ok(header)
}

/// The rules that come before the checksum.
fn check_header(header: &BatchHeader, checks: &ProduceChecks) -> Result<(), BatchError> {
    if header.compression()? == Compression::Zstd && checks.produce_version < 7 {
        return Err(BatchError::ZstdTooEarly(checks.produce_version));
    }
    if header.base_offset != 0 {
        return Err(BatchError::BaseOffset(header.base_offset));
    }
    Ok(())
}

/// The rules of fields that the checksum covers.
fn check_contents(header: &BatchHeader) -> Result<(), BatchError> {
    let BatchHeader {
        count,
        last_offset_delta,
        producer_id,
        ..
    } = *header;
    if count <= 0 || last_offset_delta != count - 1 {
        return Err(BatchError::Count {
            count,
            last_offset_delta,
        });
    }
    if header.is_control() {
        return Err(BatchError::Control);
    }
    if !header.has_producer_id() {
        return if header.is_transactional() {
            Err(BatchError::TransactionalWithoutProducer)
        } else {
            Ok(())
        };
    }
    if header.base_sequence < 0 {
        return Err(BatchError::Sequence {
            producer_id,
            sequence: header.base_sequence,
        });
    }
    if header.producer_epoch < 0 {
        return Err(BatchError::ProducerEpoch {
            producer_id,
            epoch: header.producer_epoch,
        });
    }
    Ok(())
}

/// Largest timestamp, and which record has it.
#[derive(Clone, Copy)]
struct Newest {
    timestamp: i64,
    index: i32,
}

fn check_records<S: Source>(
    mut walk: Walk<S>,
    header: &BatchHeader,
    checks: &ProduceChecks,
) -> Result<Newest, BatchError> {
    let rules = Rules::new(header, checks);
    let mut rejected = Rejected {
        total: 0,
        first: Vec::new(),
    };
    let mut newest = Newest {
        timestamp: -1,
        index: 0,
    };
    for index in 0..header.count {
        let record = walk.record()?;
        if record.offset_delta != index {
            return Err(BatchError::record(
                index,
                RecordFault::OffsetDelta(record.offset_delta),
            ));
        }
        let timestamp = rules.base_timestamp.wrapping_add(record.timestamp_delta);
        if timestamp > newest.timestamp {
            newest = Newest { timestamp, index };
        }
        if let Some(fault) = rules.fault(record.has_key, timestamp) {
            rejected.total += 1;
            if rejected.first.len() < Rejected::KEPT {
                rejected.first.push((index, fault));
            }
        }
    }
    if !walk.at_end()? {
        return Err(BatchError::Trailing);
    }
    if rejected.total > 0 {
        Err(BatchError::Rejected(rejected))
    } else {
        Ok(newest)
    }
}

/// The topic's rules for one record.
struct Rules {
    compacted: bool,
    create_time: bool,
    /// The producer's batch says log append time.
    marked: bool,
    base_timestamp: i64,
    earliest: i64,
    latest: i64,
}

impl Rules {
    fn new(header: &BatchHeader, checks: &ProduceChecks) -> Self {
        Self {
            compacted: checks.compacted,
            create_time: checks.timestamp_type == TimestampType::CreateTime,
            marked: header.timestamp_type() == TimestampType::LogAppendTime,
            base_timestamp: header.base_timestamp,
            earliest: checks.now.saturating_sub(checks.before_max_ms),
            latest: checks.now.saturating_add(checks.after_max_ms),
        }
    }

    #[inline]
    fn fault(&self, has_key: bool, timestamp: i64) -> Option<RecordFault> {
        if self.compacted && !has_key {
            return Some(RecordFault::NullKey);
        }
        if !self.create_time {
            return self.marked.then_some(RecordFault::LogAppendTime);
        }
        // -1 says that a record has no timestamp.
        let in_bounds = timestamp == -1 || (self.earliest..=self.latest).contains(&timestamp);
        (!in_bounds).then_some(RecordFault::Timestamp {
            timestamp,
            from: self.earliest,
            to: self.latest,
        })
    }
}

/// Gives the header of a batch of create time the records' max timestamp, and takes away a mark of
/// log append time; in a copy if it had others.
fn put_right(
    batch: Bytes,
    mut header: BatchHeader,
    newest: Newest,
    checks: &ProduceChecks,
) -> ValidBatch {
    if checks.timestamp_type == TimestampType::LogAppendTime {
        return ValidBatch {
            header,
            records: batch,
            max_timestamp: checks.now,
            offset_of_max_timestamp_delta: header.last_offset_delta,
        };
    }
    let max_timestamp = newest.timestamp;
    let attributes = header.attributes & !ATTR_LOG_APPEND_TIME;
    let records = if header.max_timestamp == max_timestamp && header.attributes == attributes {
        batch
    } else {
        let mut copy = batch.to_vec();
        put(&mut copy, at::ATTRIBUTES, attributes.to_be_bytes());
        put(&mut copy, at::MAX_TIMESTAMP, max_timestamp.to_be_bytes());
        let crc = crc_of(&copy);
        put(&mut copy, at::CRC, crc.to_be_bytes());
        header = BatchHeader {
            crc,
            attributes,
            max_timestamp,
            ..header
        };
        Bytes::from(copy)
    };
    ValidBatch {
        header,
        records,
        max_timestamp,
        offset_of_max_timestamp_delta: newest.index,
    }
}

#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod tests;
