//! Record batches of message format 2: the unit that producers send, logs store and consumers read.
//!
//! Source: Kafka's protocol guide, "Record Batch"; KIP-98. Everything here reads foreign bytes: it
//! never panics and never reserves memory by a declared count or length.

mod builder;
mod error;
mod header;
mod records;
mod rewrite;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod validate;
mod varint;
mod walk;

pub use builder::{BatchBuilder, BatchOptions, EndTxnMarker, end_txn_marker, recompress};
pub use error::{BatchError, RecordFault, Rejected};
pub use header::{
    ATTR_CODEC, ATTR_CONTROL, ATTR_DELETE_HORIZON, ATTR_LOG_APPEND_TIME, ATTR_TRANSACTIONAL,
    BatchHeader, Batches, HEADER_LEN, LOG_OVERHEAD, TimestampType, at, crc_of, crc_ok,
    sequence_add, set_log_append_time, stamp,
};
pub use records::{HeaderIter, Headers, Record, RecordSet, Records, records, records_up_to};
pub use rewrite::{emptied, retain};
pub use validate::{DECOMPRESSED_LIMIT, ProduceChecks, ValidBatch, validate_produce};
