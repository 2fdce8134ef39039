//! Our own messages against bytes that Apache Kafka 4.4.0's classes wrote from the same values.

#![allow(clippy::unwrap_used, reason = "tests")]

mod admin;
mod delivery;
mod log_dirs;
mod offsets;
mod share;

use bytes::{Bytes, BytesMut};
use ottla_protocol::messages::*;
use ottla_protocol::{Decodable, Encodable, Message, StrBytes, Uuid};

const ID: Uuid = Uuid::from_u64_pair(1, 2);

fn text(s: &'static str) -> StrBytes {
    StrBytes::from_static_str(s)
}

fn hex_of(bytes: &[u8]) -> String {
    let nibbles = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    nibbles
        .filter_map(|n| char::from_digit(n.into(), 16))
        .collect()
}

/// Encodes each version, compares with Kafka's bytes, and reads them back.
fn writes<M>(message: &M, kafka: &[(i16, &str)])
where
    M: Message + Encodable + Decodable + PartialEq + std::fmt::Debug,
{
    for (version, hex) in kafka {
        let mut encoded = BytesMut::new();
        message.encode(&mut encoded, *version).unwrap();
        assert_eq!(hex_of(&encoded), *hex, "version {version}");
        assert_eq!(message.compute_size(*version).unwrap(), encoded.len());

        let mut bytes = encoded.clone().freeze();
        let read = M::decode(&mut bytes, *version).unwrap();
        assert!(bytes.is_empty());
        if *version == M::VERSIONS.max {
            assert_eq!(read, *message);
        }
        for end in 0..encoded.len() {
            let mut cut = encoded.clone().freeze().slice(..end);
            assert!(
                M::decode(&mut cut, *version).is_err(),
                "version {version} cut at {end}"
            );
        }
    }
    assert!(
        message
            .encode(&mut BytesMut::new(), M::VERSIONS.max + 1)
            .is_err()
    );
}

#[test]
fn unknown_tagged_fields_are_kept() {
    let mut request = ShareAcknowledgeRequest::default();
    request
        .unknown_tagged_fields
        .insert(5, Bytes::from_static(b"later"));
    let mut bytes = BytesMut::new();
    request.encode(&mut bytes, 2).unwrap();
    assert_eq!(
        ShareAcknowledgeRequest::decode(&mut bytes, 2).unwrap(),
        request
    );
}
