//! Kafka's wire protocol and record batches: bytes to typed values and back.
//!
//! No I/O, no time, no locks; no panic and no large allocation on any input. The types of most messages
//! are `kafka-protocol`'s; no other crate names it. Foreign bytes are decoded by [`guard::decode`] only.

pub mod api_key;
pub mod batch;
pub mod compression;
mod error_code;
pub mod frame;
pub mod guard;
pub mod internal;
pub mod messages;
mod reader;
mod splice;

pub use error_code::ErrorCode;
pub use kafka_protocol::protocol::{
    Decodable, Encodable, HeaderVersion, Message, Request, StrBytes, VersionRange,
};
pub use reader::Malformed;
pub use uuid::Uuid;
