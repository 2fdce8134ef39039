//! Request headers from any bytes, and response frames that equal a plain encode.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};
use ottla_protocol::frame::{self, EncodeError, FrameError, Sniffed};
use ottla_protocol::guard;
use ottla_protocol::messages::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, PartitionData,
};
use ottla_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, FetchResponse, HeartbeatRequest, MetadataRequest,
    MetadataResponse, ProduceRequest, ShareFetchResponse, TopicName, share_fetch_response,
};
use ottla_protocol::{Encodable, HeaderVersion, Malformed, StrBytes, Uuid, api_key};

/// The frame of a request, without its length prefix.
fn request_bytes(version: i16) -> Bytes {
    let request = ApiVersionsRequest {
        client_software_name: StrBytes::from_static_str("test"),
        client_software_version: StrBytes::from_static_str("1.0"),
        ..ApiVersionsRequest::default()
    };
    let mut frame = frame::encode_request(7, Some("me"), &request, version).unwrap();
    let mut bytes = frame.copy_to_bytes(frame.remaining());
    assert_eq!(bytes.get_i32() as usize, bytes.len());
    bytes
}

#[test]
fn a_header_is_read_and_the_body_left() {
    for version in 0..=5 {
        let mut bytes = request_bytes(version);
        let header = frame::request_header(&mut bytes).unwrap();
        assert_eq!(
            (header.api_key, header.api_version),
            (api_key::API_VERSIONS, version)
        );
        assert_eq!(header.correlation_id, 7);
        assert_eq!(header.client_id.as_deref(), Some("me"));
        guard::decode::<ApiVersionsRequest>(bytes, version).unwrap();
    }
}

#[test]
fn a_header_of_an_unserved_version_is_read_too() {
    let mut bytes = BytesMut::from(&[0, 18, 0, 99, 0, 0, 0, 1, 0xff, 0xff, 0, 1, 1][..]).freeze();
    let header = frame::request_header(&mut bytes).unwrap();
    assert_eq!((header.api_version, header.client_id), (99, None));
    assert_eq!(&bytes[..], [1, 1]);
}

#[test]
fn every_shorter_header_is_refused() {
    for version in [0, 3] {
        let mut whole = request_bytes(version);
        let length = whole.len();
        frame::request_header(&mut whole.clone()).unwrap();
        let header = length - {
            frame::request_header(&mut whole).unwrap();
            whole.len()
        };
        for end in 0..header {
            let mut short = request_bytes(version).slice(..end);
            let refused = frame::request_header(&mut short).unwrap_err();
            let problem = Malformed::Truncated;
            assert_eq!(
                refused,
                FrameError::Header {
                    length: end,
                    problem
                }
            );
        }
    }
    // The frame that a peer's broker answered as if it were whole.
    let refused = frame::request_header(&mut Bytes::from_static(&[0, 18])).unwrap_err();
    assert!(refused.to_string().contains("2 bytes"), "{refused}");
}

#[test]
fn no_short_frame_panics() {
    let values = [0u8, 1, 3, 18, 0x7f, 0x80, 0xff];
    let mut frames: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..4 {
        let longer = frames
            .iter()
            .flat_map(|f| values.map(|v| [&f[..], &[v]].concat()));
        frames = longer.collect();
        for frame in &frames {
            for tail in [0, 4, 6, 7, 9] {
                let whole = [&frame[..], &[1; 9][..tail]].concat();
                let _ = guard::parse_frame(Bytes::from(whole));
            }
        }
    }
}

#[test]
fn an_unknown_key_is_named_with_its_client() {
    let bytes = [0x27, 0x0f, 0, 2, 0, 0, 0, 5, 0, 2, b'm', b'e'];
    let refused = frame::request_header(&mut Bytes::copy_from_slice(&bytes)).unwrap_err();
    let client_id = Some(StrBytes::from_static_str("me"));
    let expected = FrameError::UnknownApi {
        key: 9_999,
        version: 2,
        correlation_id: 5,
        client_id,
    };
    assert_eq!(refused, expected);
    assert_eq!(
        refused.to_string(),
        "unknown API key 9999 version 2, client me"
    );
    let refused = frame::request_header(&mut Bytes::copy_from_slice(&bytes[..9])).unwrap_err();
    assert!(
        matches!(
            refused,
            FrameError::UnknownApi {
                client_id: None,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn header_versions_follow_the_api() {
    assert_eq!(frame::request_header_version(api_key::SASL_HANDSHAKE, 1), 1);
    assert_eq!(frame::request_header_version(api_key::PRODUCE, 8), 1);
    assert_eq!(frame::request_header_version(api_key::PRODUCE, 9), 2);
    assert_eq!(frame::response_header_version(api_key::PRODUCE, 9), 1);
    assert_eq!(frame::response_header_version(api_key::API_VERSIONS, 4), 0);
    assert_eq!(frame::request_header_version(api_key::API_VERSIONS, 4), 2);
    assert_eq!(HeartbeatRequest::header_version(4), 2);
}

#[test]
fn a_length_prefix_that_makes_no_sense_is_refused_with_advice() {
    let limit = 104_857_600;
    assert_eq!(frame::frame_length([0, 0, 1, 0], limit), Ok(256));
    assert_eq!(
        frame::frame_length(104_857_600i32.to_be_bytes(), limit),
        Ok(limit)
    );
    for prefix in [
        [0xff; 4],
        [0x7f, 0xff, 0xff, 0xff],
        104_857_601i32.to_be_bytes(),
    ] {
        assert!(frame::frame_length(prefix, limit).is_err());
    }
    let seen = |prefix| match frame::frame_length(prefix, limit) {
        Err(FrameError::Length { looks_like, .. }) => looks_like,
        other => panic!("{other:?}"),
    };
    assert_eq!(seen(*b"GET "), Some(Sniffed::Http));
    assert_eq!(seen([0x16, 3, 1, 2]), Some(Sniffed::Tls));
    assert_eq!(seen(*b"SSH-"), Some(Sniffed::Ssh));
    assert_eq!(seen(*b"PROX"), Some(Sniffed::Proxy));
    assert_eq!(seen([0xff; 4]), None);
    let text = frame::frame_length([0x16, 3, 1, 2], limit)
        .unwrap_err()
        .to_string();
    assert!(text.contains("TLS"), "{text}");
}

/// Encodes with records spliced in and compares with a plain encode; gives the number of parts.
fn same_as_plain<R: Encodable + HeaderVersion>(
    response: &R,
    version: i16,
    records: &[Bytes],
) -> usize {
    let mut plain = BytesMut::new();
    plain.extend_from_slice(&[0, 0, 0, 42]);
    if R::header_version(version) >= 1 {
        plain.extend_from_slice(&[0]);
    }
    response.encode(&mut plain, version).unwrap();
    let mut frame = frame::encode_response(42, response, version, records).unwrap();
    assert_eq!(frame.total_len(), plain.len() + 4);

    for record in records.iter().filter(|r| r.len() >= 512) {
        let place = (record.as_ptr(), record.len());
        let kept = frame
            .parts()
            .iter()
            .any(|part| (part.as_ptr(), part.len()) == place);
        assert!(
            kept,
            "a record of {} bytes is kept by reference",
            record.len()
        );
    }
    let parts = frame.parts().len();
    let mut slices = vec![IoSlice::new(&[]); parts + 3];
    assert_eq!(frame.chunks_vectored(&mut slices), parts);
    let sent: Vec<u8> = slices.iter().flat_map(|s| s.to_vec()).collect();
    assert_eq!(sent[..4], (plain.len() as i32).to_be_bytes());
    assert_eq!(sent[4..], plain[..]);

    // Written in odd pieces, as a socket takes it.
    let mut written = Vec::new();
    while frame.has_remaining() {
        let piece = frame.chunk().len().min(333);
        written.extend_from_slice(&frame.chunk()[..piece]);
        frame.advance(piece);
    }
    assert_eq!(written, sent);
    parts
}

fn records() -> Vec<Bytes> {
    let of = |length: usize| Bytes::from((0..length).map(|n| n as u8).collect::<Vec<_>>());
    let segment = of(8_000);
    vec![
        segment.slice(100..700),
        of(4_096),
        of(512),
        of(511),
        segment.slice(700..8_000),
        of(0),
    ]
}

#[test]
fn a_fetch_response_keeps_records_by_reference_in_every_version() {
    let records = records();
    for version in 4..=18 {
        let partitions = records.iter().enumerate().map(|(index, bytes)| {
            let aborted = AbortedTransaction::default().with_first_offset(index as i64);
            PartitionData::default()
                .with_partition_index(index as i32)
                .with_high_watermark(5)
                .with_aborted_transactions((index % 2 == 0).then(|| vec![aborted]))
                .with_records(Some(bytes.clone()))
        });
        let mut topic = FetchableTopicResponse::default().with_partitions(partitions.collect());
        if version < 13 {
            topic.topic = TopicName(StrBytes::from_string("t".repeat(249)));
        } else {
            topic.topic_id = Uuid::from_u128(77);
        }
        let response = FetchResponse::default().with_responses(vec![topic]);
        let parts = same_as_plain(&response, version, &records);
        assert_eq!(parts, 9, "four records and the fields around them");
        // Nothing registered, or registered in another order: the same bytes.
        assert_eq!(same_as_plain(&response, version, &[]), 1);
        let reversed: Vec<_> = records.iter().rev().cloned().collect();
        assert_eq!(same_as_plain(&response, version, &reversed), 9);
    }
}

#[test]
fn a_share_fetch_response_keeps_records_by_reference_in_every_version() {
    use share_fetch_response::{AcquiredRecords, PartitionData, ShareFetchableTopicResponse};
    let records = records();
    let partitions = records
        .iter()
        .enumerate()
        .map(|(index, bytes)| PartitionData {
            partition_index: index as i32,
            records: Some(bytes.clone()),
            acquired_records: vec![AcquiredRecords {
                last_offset: 9,
                ..Default::default()
            }],
            ..PartitionData::default()
        });
    let topic = ShareFetchableTopicResponse {
        partitions: partitions.collect(),
        ..ShareFetchableTopicResponse::default()
    };
    let response = ShareFetchResponse {
        responses: vec![topic],
        ..Default::default()
    };
    for version in 1..=2 {
        assert_eq!(same_as_plain(&response, version, &records), 9);
        let mut frame = frame::encode_response(3, &response, version, &records).unwrap();
        let bytes = frame.copy_to_bytes(frame.remaining()).slice(4..);
        assert_eq!(
            frame::decode_response(bytes, version),
            Ok((3, response.clone()))
        );
    }
}

#[test]
fn a_produce_request_survives_its_frame() {
    let batch = Bytes::from(vec![9; 2_000]);
    for version in 3..=13 {
        let partition = PartitionProduceData::default().with_records(Some(batch.clone()));
        let mut topic = TopicProduceData::default().with_partition_data(vec![partition]);
        if version < 13 {
            topic.name = TopicName(StrBytes::from_static_str("orders"));
        }
        let request = ProduceRequest::default()
            .with_acks(-1)
            .with_topic_data(vec![topic]);
        let mut frame = frame::encode_request(1, None, &request, version).unwrap();
        let mut bytes = frame.copy_to_bytes(frame.remaining()).slice(4..);
        frame::request_header(&mut bytes).unwrap();
        assert_eq!(guard::decode::<ProduceRequest>(bytes, version), Ok(request));
    }
}

#[test]
fn other_responses_are_one_part() {
    assert_eq!(
        same_as_plain(&MetadataResponse::default(), 13, &records()[..0]),
        1
    );
    assert_eq!(same_as_plain(&ApiVersionsResponse::default(), 0, &[]), 1);
    assert_eq!(same_as_plain(&ApiVersionsResponse::default(), 5, &[]), 1);
}

#[test]
fn a_version_that_the_message_lacks_is_an_error() {
    let refused = frame::encode_response(1, &MetadataResponse::default(), 99, &[]);
    assert!(matches!(
        refused,
        Err(EncodeError::Message { version: 99, .. })
    ));
    let refused = frame::encode_request(1, None, &MetadataRequest::default(), 99);
    assert!(refused.is_err());
}
