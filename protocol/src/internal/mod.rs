//! The records of Kafka's internal topics, in Kafka 4.4's own schemas, so that its tools can read
//! what this broker writes and this broker what Kafka wrote.
//!
//! The coordinators' topics have a key (`i16` record type, then its fields, never flexible) and a
//! value (`i16` version, then its fields), null for a tombstone. `__cluster_metadata` has a value
//! only: a frame version, the record's API key and its version as varints, then the fields
//! (KIP-631). A decode never panics and never reserves memory by a declared count.

mod cluster_metadata;
mod consumer_offsets;
mod schema;
mod share_group_state;
#[cfg(test)]
mod tests;
mod transaction_state;
mod wire;

pub use cluster_metadata::*;
pub use consumer_offsets::*;
pub use share_group_state::*;
pub use transaction_state::*;
pub use wire::Tags;

use bytes::Bytes;

use crate::Malformed;
use wire::{Decoder, Encoder, Wire};

/// Why a record of an internal topic could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InternalError {
    /// The bytes are not what the schema says.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A record type that this broker does not know.
    #[error("the record type {0} is unknown")]
    UnknownType(i32),
    /// A version that this broker does not know.
    #[error("version {version} of {record} is unknown, the newest known is {newest}")]
    UnknownVersion {
        /// The record's name.
        record: &'static str,
        /// Its version.
        version: i32,
        /// The newest version that can be read.
        newest: i16,
    },
    /// A metadata record in another framing than Kafka's.
    #[error("the frame version of a metadata record must be 1, this one is {0}")]
    FrameVersion(u32),
    /// A tagged field whose size is not that of its content.
    #[error("tagged field {0} does not have the size that it declares")]
    TagSize(u32),
    /// Tagged fields that do not ascend.
    #[error("tagged field {0} comes after one that is not below it")]
    TagOrder(u32),
}

/// The `i16` at the start of keys and values, and what follows it.
fn split_version(bytes: &[u8]) -> Result<(i16, &[u8]), InternalError> {
    let (version, rest) = bytes.split_first_chunk::<2>().ok_or(Malformed::Truncated)?;
    Ok((i16::from_be_bytes(*version), rest))
}

fn encode_key(record_type: i16, key: &impl Wire) -> Bytes {
    let mut encoder = Encoder::new();
    record_type.put(&mut encoder);
    key.put(&mut encoder);
    encoder.finish()
}

fn encode_value(value: &impl Wire, version: i16, flexible: bool) -> Bytes {
    let mut encoder = Encoder::new();
    version.put(&mut encoder);
    encoder.version = version;
    encoder.flexible = flexible;
    value.put(&mut encoder);
    encoder.finish()
}

fn decode_value<T: Wire>(
    record: &'static str,
    bytes: &[u8],
    newest: i16,
    flexible: i16,
) -> Result<T, InternalError> {
    let (version, rest) = split_version(bytes)?;
    if !(0..=newest).contains(&version) {
        return Err(InternalError::UnknownVersion {
            record,
            version: version.into(),
            newest,
        });
    }
    let mut decoder = Decoder::new(rest);
    decoder.version = version;
    decoder.flexible = version >= flexible;
    decoder.whole()
}
