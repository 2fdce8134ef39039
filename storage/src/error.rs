//! What can go wrong, per operation.

use std::io;
use std::path::PathBuf;

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another broker holds the directory.
    #[error(
        "the data directory {0} is in use by another process; stop that broker, or give this one another directory (--data-dir)"
    )]
    InUse(PathBuf),
    /// A file or directory could not be used.
    #[error("cannot use {path}: {source}")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `meta.properties` makes no sense.
    #[error("{path} is not a meta.properties of version 1: {reason}")]
    BadMeta {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why an operation on a store or a log failed. The protocol's answer is `KAFKA_STORAGE_ERROR`
/// unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The system refused; the log is as it was before.
    #[error("{what} failed: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The memory of all logs together is used up.
    #[error("the memory for records is full ({max} bytes: ottla.memory.max.bytes)")]
    MemoryFull {
        /// The limit in bytes.
        max: u64,
    },
    /// A sync failed earlier, or the log is broken; it takes no more appends.
    #[error("log {0} failed earlier and takes no more appends until the broker is restarted")]
    Failed(String),
    /// The log was deleted, or its store is closed.
    #[error("log {0} is closed")]
    Closed(String),
    /// A log of that name exists.
    #[error("log {0} exists already")]
    Exists(String),
    /// No log of that name exists.
    #[error("log {0} does not exist")]
    NotFound(String),
    /// The topic's name cannot be a directory's.
    #[error("{0:?} cannot name a log")]
    BadName(String),
    /// An offset beyond the log's end: `OFFSET_OUT_OF_RANGE`.
    #[error("offset {offset} is beyond the end of the log, {end}")]
    BeyondEnd {
        /// The offset that was given.
        offset: i64,
        /// The log's end offset.
        end: i64,
    },
}

impl StorageError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Why a batch was not appended. The log is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The disk or the log failed: `KAFKA_STORAGE_ERROR`.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Written, but the sync that `flush.messages` asks for failed: `KAFKA_STORAGE_ERROR`.
    #[error("log {0}: the sync behind the append failed")]
    Sync(String),
    /// A sequence number is missing in between: `OUT_OF_ORDER_SEQUENCE_NUMBER`.
    #[error(
        "out of order sequence number for producer {producer_id}: {first} (incoming seq. number), {last} (current end sequence number)"
    )]
    OutOfOrderSequence {
        /// The producer.
        producer_id: i64,
        /// First sequence number of the batch.
        first: i32,
        /// Last sequence number in the log, -1 for none.
        last: i32,
    },
    /// A newer instance of the producer wrote already: `INVALID_PRODUCER_EPOCH`.
    #[error(
        "epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {current}"
    )]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: i64,
        /// The batch's epoch.
        epoch: i16,
        /// The log's.
        current: i16,
    },
    /// A batch outside a transaction while one is open: `INVALID_TXN_STATE`.
    #[error("expected a transactional write from producer {producer_id}")]
    InvalidTxnState {
        /// The producer.
        producer_id: i64,
    },
    /// A marker by a coordinator that was replaced: `TRANSACTION_COORDINATOR_FENCED`.
    #[error(
        "the marker for producer {producer_id} is of coordinator epoch {epoch}, {current} was seen"
    )]
    CoordinatorFenced {
        /// The producer.
        producer_id: i64,
        /// The marker's coordinator epoch.
        epoch: i32,
        /// The log's.
        current: i32,
    },
    /// The batch is no batch of format 2, or its offsets do not follow the log's: `CORRUPT_MESSAGE`.
    #[error("the batch cannot be appended: {0}")]
    BadBatch(&'static str),
    /// The batch is larger than a segment may be: `RECORD_LIST_TOO_LARGE`.
    #[error("a batch of {size} bytes does not fit a segment of {max} bytes")]
    TooLarge {
        /// The batch's size in bytes.
        size: usize,
        /// `segment.bytes`.
        max: u32,
    },
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such offset: `OFFSET_OUT_OF_RANGE`.
    #[error("offset {offset} is outside of {start} to {end}")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// The log's start offset.
        start: i64,
        /// The log's end offset.
        end: i64,
    },
    /// The file could not be read: `KAFKA_STORAGE_ERROR`.
    #[error("reading log {log} failed: {source}")]
    Io {
        /// Directory name of the log.
        log: String,
        /// What the system said.
        source: io::Error,
    },
    /// The log's bytes make no sense: `KAFKA_STORAGE_ERROR`.
    #[error("log {log} is damaged at offset {offset}")]
    Damaged {
        /// Directory name of the log.
        log: String,
        /// The last good offset before it.
        offset: i64,
    },
}
