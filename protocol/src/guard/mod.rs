//! The only way to decode foreign bytes.
//!
//! `kafka-protocol` reserves memory for whatever count it is sent, so a frame of a few bytes could end
//! the process. Before anything is decoded, the bytes are walked once by the request's shape (one table
//! for all requests of Kafka 4.4) and refused unless every length lies within the frame, every
//! collection within Kafka's limits, and the decoded message within a budget of 1 MiB plus eight times
//! the frame. The walk allocates nothing, and skips records by their length.

mod any;
mod sample;
mod shape;
mod table;
mod walk;

#[cfg(test)]
mod tests;

use bytes::{Buf, Bytes};

pub use self::any::{ParseError, decode_any, parse_frame};
pub use self::sample::{LengthField, Sample, Variety, sample, versions};

use self::shape::Field;
use crate::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use crate::reader::{Malformed, Reader};
use crate::{Decodable, Message, Request, api_key, frame};

/// Bytes that are not the message that they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message has no such version.
    #[error("{api} has no version {version}")]
    UnsupportedVersion {
        /// The name of the API.
        api: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The bytes are not such a message.
    #[error("malformed {api} version {version} at byte {at}: {problem}")]
    Malformed {
        /// The name of the API.
        api: &'static str,
        /// The version.
        version: i16,
        /// Where in the body.
        at: usize,
        /// What is wrong.
        problem: Malformed,
    },
    /// The codec refuses what the walk accepted.
    #[error("cannot decode {api} version {version}: {reason}")]
    Refused {
        /// The name of the API.
        api: &'static str,
        /// The version.
        version: i16,
        /// What the codec says.
        reason: String,
    },
}

/// Decodes the body of a request. Bytes behind the last field are ignored, as in Kafka: librdkafka 2
/// sends three of them with Metadata v13.
///
/// Strings, blobs and records of the result are slices of `body`: copy what is to outlive the request,
/// or the whole frame stays in memory with it.
pub fn decode<R: Request>(body: Bytes, version: i16) -> Result<R, DecodeError> {
    let api = api_name(R::KEY);
    if !(R::VERSIONS.min..=R::VERSIONS.max).contains(&version) {
        return Err(DecodeError::UnsupportedVersion { api, version });
    }
    let end = measure(R::KEY, version, &body)?;
    decode_walked(body.slice(..end), api, version)
}

/// Walks the body of a request of any API without decoding it: what [`decode`] does first.
pub fn check(key: i16, version: i16, body: &[u8]) -> Result<(), DecodeError> {
    measure(key, version, body).map(drop)
}

/// As [`check`]; answers where the last field ends.
pub fn measure(key: i16, version: i16, body: &[u8]) -> Result<usize, DecodeError> {
    let api = api_name(key);
    let shape = table::shape(key)
        .filter(|shape| (shape.min..=shape.max).contains(&version))
        .ok_or(DecodeError::UnsupportedVersion { api, version })?;
    let malformed = |at, problem| DecodeError::Malformed {
        api,
        version,
        at,
        problem,
    };
    walk::walk(
        body,
        shape.fields,
        version,
        frame::is_flexible(key, version),
    )
    .map_err(|(at, problem)| malformed(at, problem))
}

/// The memory, in bytes, that decoding a body of this length may take on top of it.
pub const fn memory_budget(length: usize) -> usize {
    walk::budget(length)
}

/// Decodes the metadata that a consumer sends in `JoinGroup` (protocol type "consumer").
///
/// Its first two bytes are a version; one above 3 is read as 3, and what is left over is ignored, so
/// that newer consumers can join, as in Kafka.
pub fn decode_subscription(blob: Bytes) -> Result<ConsumerProtocolSubscription, DecodeError> {
    decode_blob(blob, "ConsumerProtocolSubscription", table::SUBSCRIPTION)
}

/// Decodes an assignment that a group's leader sends in `SyncGroup` (protocol type "consumer").
///
/// Versions are treated as by [`decode_subscription`].
pub fn decode_assignment(blob: Bytes) -> Result<ConsumerProtocolAssignment, DecodeError> {
    decode_blob(blob, "ConsumerProtocolAssignment", table::ASSIGNMENT)
}

fn decode_blob<M: Message + Decodable>(
    mut blob: Bytes,
    name: &'static str,
    fields: &'static [Field],
) -> Result<M, DecodeError> {
    let malformed = |at, version, problem| DecodeError::Malformed {
        api: name,
        version,
        at,
        problem,
    };
    let declared = Reader::new(&blob)
        .i16()
        .map_err(|problem| malformed(0, 0, problem))?;
    if declared < M::VERSIONS.min {
        return Err(DecodeError::UnsupportedVersion {
            api: name,
            version: declared,
        });
    }
    let version = declared.min(M::VERSIONS.max);
    blob.advance(2);
    let end = walk::walk(&blob, fields, version, false)
        .map_err(|(at, problem)| malformed(at + 2, version, problem))?;
    decode_walked(blob.split_to(end), name, version)
}

/// Decodes bytes that the walk accepted.
fn decode_walked<M: Decodable>(
    mut bytes: Bytes,
    api: &'static str,
    version: i16,
) -> Result<M, DecodeError> {
    let length = bytes.len();
    let message = M::decode(&mut bytes, version).map_err(|e| DecodeError::Refused {
        api,
        version,
        reason: format!("{e:#}"),
    })?;
    match bytes.remaining() {
        0 => Ok(message),
        rest => Err(DecodeError::Malformed {
            api,
            version,
            at: length - rest,
            problem: Malformed::Trailing(rest),
        }),
    }
}

fn api_name(key: i16) -> &'static str {
    api_key::name(key).unwrap_or("an unknown API")
}
