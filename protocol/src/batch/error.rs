//! Why a record batch was refused.

use crate::compression::{Compression, CompressionError};

/// One reason why bytes are not an acceptable record batch.
///
/// Each variant names the Kafka error that its producer gets. Where Apache Kafka 4.4.0 answers
/// `UNKNOWN_SERVER_ERROR` (-1), because a parser threw, or lets a batch pass that no reader can make
/// sense of, the variant says what this broker answers instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// No records at all where a batch must be. `INVALID_RECORD` (87).
    #[error("there must be exactly one record batch, and there is none")]
    Empty,
    /// Fewer bytes than a batch header, or than the batch says it has. `INVALID_RECORD` (87).
    #[error("the record batch is cut short: {needed} bytes are needed, {have} are here")]
    Truncated {
        /// Bytes that the header, or the whole batch, takes.
        needed: usize,
        /// Bytes that were given.
        have: usize,
    },
    /// More than one batch in a partition's records. `INVALID_RECORD` (87).
    #[error("there must be exactly one record batch, and there are more")]
    MoreThanOne,
    /// A batch length that cannot hold the header's own fields. `CORRUPT_MESSAGE` (2).
    #[error("the record batch declares a length of {0} bytes, less than its own header takes")]
    BadLength(i32),
    /// A message format other than 2: `INVALID_RECORD` (87) for formats 0 and 1, the old message
    /// sets; `CORRUPT_MESSAGE` (2) for any other.
    #[error("record batches must be of message format 2, this one is of format {0}")]
    UnsupportedMagic(i8),
    /// The batch is larger than the topic's `max.message.bytes`. `MESSAGE_TOO_LARGE` (10).
    #[error("the record batch has {size} bytes, more than the {limit} of max.message.bytes")]
    TooLarge {
        /// Bytes of the batch.
        size: usize,
        /// The topic's limit.
        limit: usize,
    },
    /// The checksum does not match the bytes. `CORRUPT_MESSAGE` (2).
    #[error(
        "the record batch fails its checksum: it says {stored:#010x}, its bytes give {computed:#010x}"
    )]
    Checksum {
        /// The checksum that the batch carries.
        stored: u32,
        /// CRC-32C of the bytes from the attributes on.
        computed: u32,
    },
    /// A producer's batch must begin at offset 0. `INVALID_RECORD` (87).
    #[error("the base offset of a produced record batch must be 0, not {0}")]
    BaseOffset(i64),
    /// The record count is not positive, or not what the last offset delta says.
    /// `INVALID_RECORD` (87).
    #[error(
        "the record batch declares {count} records, and a last offset delta of {last_offset_delta}"
    )]
    Count {
        /// The record count.
        count: i32,
        /// The last offset delta, which must be one less.
        last_offset_delta: i32,
    },
    /// Clients may not write control records. `INVALID_RECORD` (87).
    #[error("clients cannot write control records")]
    Control,
    /// A producer id without a sequence number. `INVALID_RECORD` (87).
    #[error("the record batch has producer id {producer_id} and the invalid sequence {sequence}")]
    Sequence {
        /// The producer id.
        producer_id: i64,
        /// The base sequence, below 0.
        sequence: i32,
    },
    /// A producer id with a negative epoch. `INVALID_PRODUCER_EPOCH` (47); Kafka takes -1.
    #[error("the record batch has producer id {producer_id} and the invalid epoch {epoch}")]
    ProducerEpoch {
        /// The producer id.
        producer_id: i64,
        /// The epoch, below 0.
        epoch: i16,
    },
    /// A transactional batch without a producer id. `INVALID_RECORD` (87); Kafka takes it.
    #[error("the record batch is transactional and has no producer id")]
    TransactionalWithoutProducer,
    /// An attribute value that names no known codec (5 to 7).
    /// `UNSUPPORTED_COMPRESSION_TYPE` (76); Kafka -1.
    #[error("the record batch names an unknown compression codec, {0}")]
    UnknownCodec(u8),
    /// Zstandard in a Produce request below version 7 (KIP-110).
    /// `UNSUPPORTED_COMPRESSION_TYPE` (76).
    #[error("zstd needs version 7 of Produce, the request has version {0}")]
    ZstdTooEarly(i16),
    /// The records cannot be decompressed, or to more than the limit.
    /// `INVALID_RECORD` (87); Kafka -1.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// A record's bytes do not parse. `INVALID_RECORD` (87).
    #[error("record {index} of the batch is broken: {fault}")]
    Record {
        /// The record's place in the batch, from 0.
        index: i32,
        /// What is wrong.
        fault: RecordFault,
    },
    /// Bytes behind the last record. `INVALID_RECORD` (87).
    #[error("the record batch goes on behind its last record")]
    Trailing,
    /// Records that parse, and that the topic's rules refuse: `INVALID_TIMESTAMP` (32) if one of
    /// them is [`RecordFault::Timestamp`] or [`RecordFault::LogAppendTime`], else
    /// `INVALID_RECORD` (87). Each fault goes into the response's record errors.
    #[error("{}", describe(.0))]
    Rejected(Rejected),
    /// A batch that would be larger than its length field can say (from the builder, never from
    /// a producer). `MESSAGE_TOO_LARGE` (10).
    #[error("a record batch cannot have {0} bytes")]
    TooLong(usize),
}

/// The records of a batch that the topic's rules refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// How many.
    pub total: usize,
    /// The first of them, at most [`Rejected::KEPT`]: place in the batch and fault.
    pub first: Vec<(i32, RecordFault)>,
}

impl Rejected {
    /// So many faults are kept, so that an answer stays smaller than its request.
    pub const KEPT: usize = 1000;

    /// Whether the answer is `INVALID_TIMESTAMP`, as it is when one record's timestamp was refused.
    pub fn is_timestamp(&self) -> bool {
        self.first.iter().any(|(_, fault)| {
            matches!(
                fault,
                RecordFault::Timestamp { .. } | RecordFault::LogAppendTime
            )
        })
    }
}

fn describe(rejected: &Rejected) -> String {
    use std::fmt::Write as _;

    let mut text = format!("{} records of the batch are refused", rejected.total);
    for (index, fault) in rejected.first.iter().take(3) {
        let _ = write!(text, "; record {index}: {fault}");
    }
    text
}

/// What is wrong with one record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// The batch ends inside it.
    #[error("the batch ends inside it")]
    Cut,
    /// Its length is negative, or other than what its fields take.
    #[error("its length is {0}, other than its fields take")]
    Length(i64),
    /// A variable-length integer of more bytes than its type can have.
    #[error("an integer in it is too long")]
    Varint,
    /// A length or count in it that is negative, or beyond the record's end.
    #[error("the {what} in it is {value}")]
    Field {
        /// Which length or count.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// Its offset delta is not its place in the batch. Kafka checks this in compressed batches
    /// (and answers -1), and otherwise stores records whose offsets go astray.
    #[error("its offset delta is {0}, other than its place")]
    OffsetDelta(i32),
    /// It has no key, and the topic is compacted.
    #[error("a compacted topic cannot take a record without a key")]
    NullKey,
    /// Its timestamp is outside `message.timestamp.before.max.ms` or `.after.max.ms`.
    #[error("its timestamp {timestamp} is outside of [{from}, {to}]")]
    Timestamp {
        /// The record's timestamp, milliseconds since the epoch.
        timestamp: i64,
        /// Earliest timestamp taken.
        from: i64,
        /// Latest timestamp taken.
        to: i64,
    },
    /// The producer marked the batch as one of log append time, which the topic sets by itself.
    #[error("a producer cannot set the timestamp type to LogAppendTime")]
    LogAppendTime,
}

impl BatchError {
    pub(crate) fn record(index: i32, fault: RecordFault) -> Self {
        Self::Record { index, fault }
    }

    /// Whether the bytes end too early, so that more of them might make a batch.
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::Truncated { .. })
    }

    /// The codec at fault, for messages.
    pub fn codec(&self) -> Option<Compression> {
        match self {
            Self::Compression(
                CompressionError::Corrupt { codec, .. }
                | CompressionError::TooLarge { codec, .. }
                | CompressionError::Compress { codec, .. },
            ) => Some(*codec),
            _ => None,
        }
    }
}
