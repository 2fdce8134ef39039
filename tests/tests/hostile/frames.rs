//! Frames that are none.

use ottla_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, ProduceRequest};
use ottla_protocol::{ErrorCode, frame as kafka_frame};
use ottla_tests::{Embedded, Launch, Settings};

use crate::support::{alive, ends_only_its_connection, frame, served};

// C8
#[tokio::test]
async fn a_negative_length_ends_the_connection() {
    ends_only_its_connection(&[0xff; 4]).await;
    ends_only_its_connection(&i32::MIN.to_be_bytes()).await;
}

// C8
#[tokio::test]
async fn a_length_of_two_gigabytes_ends_the_connection_before_anything_follows() {
    ends_only_its_connection(&i32::MAX.to_be_bytes()).await;
}

#[tokio::test]
async fn a_frame_one_byte_over_the_limit_ends_the_connection_and_one_at_the_limit_does_not() {
    let broker = Settings::new()
        .set("socket.request.max.bytes", "1000")
        .start()
        .await;
    let mut client = broker.client().await;
    let metadata = frame(3, 1, 7, &[0xff; 4]);
    // Bytes behind the last field are ignored, so that any length can be made.
    let mut padded = metadata.clone();
    padded.resize(4 + 1000, 0);
    padded[..4].copy_from_slice(&1000u32.to_be_bytes());
    client.send_bytes(&padded).await;
    assert_eq!(client.receive_frame().await[..4], 7i32.to_be_bytes());
    client.send_bytes(&1001u32.to_be_bytes()).await;
    client.expect_close().await;
    alive(&mut broker.client().await).await;
}

// C7
#[tokio::test]
async fn an_unknown_api_key_ends_the_connection() {
    for key in [9999, 95, -1, i16::MIN, i16::MAX] {
        ends_only_its_connection(&frame(key, 0, 1, &[])).await;
    }
}

#[tokio::test]
async fn an_api_of_kafka_that_is_not_served_ends_the_connection() {
    // LeaderAndIsr, which no broker serves any more; Vote, which only controllers serve.
    for key in [4, 52] {
        ends_only_its_connection(&frame(key, 0, 1, &[0; 32])).await;
    }
}

// C4
#[tokio::test]
async fn a_version_that_is_not_served_ends_the_connection() {
    for (key, version) in [(3, 14), (3, -1), (1, 3), (19, 1), (2, 0), (76, 0), (78, 0)] {
        ends_only_its_connection(&frame(key, version, 1, &[0; 32])).await;
    }
}

// C9
#[tokio::test]
async fn a_frame_too_short_for_a_header_ends_the_connection() {
    ends_only_its_connection(&[0, 0, 0, 2, 0, 18]).await;
    ends_only_its_connection(&[0, 0, 0, 0]).await;
    let whole = frame(18, 3, 1, &[1, 1, 0]);
    for length in 1..11u8 {
        let mut cut = vec![0, 0, 0, length];
        cut.extend(&whole[4..4 + usize::from(length)]);
        ends_only_its_connection(&cut).await;
    }
}

#[tokio::test]
async fn a_client_id_longer_than_its_frame_ends_the_connection() {
    ends_only_its_connection(&[0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff]).await;
    ends_only_its_connection(&[0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xfe]).await;
}

// C5, C6
#[tokio::test]
async fn http_and_tls_end_the_connection() {
    ends_only_its_connection(b"GET / HTTP/1.1\r\nHost: localhost:9092\r\n\r\n").await;
    ends_only_its_connection(b"POST /topics HTTP/1.1\r\nContent-Length: 0\r\n\r\n").await;
    let tls_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0x51, 0x80, 0xaa];
    ends_only_its_connection(&tls_hello).await;
}

// C4, C5, C6, C7
#[tokio::test]
async fn the_log_says_what_was_seen_and_what_to_do() {
    let child = Launch::new().start().await;
    let seen: [(&[u8], &[&str]); 6] = [
        (b"GET / HTTP/1.1\r\n\r\n", &["HTTP", "--admin-listen"]),
        (
            &[0x16, 3, 1, 2, 0, 1],
            &["TLS", "security.protocol", "PLAINTEXT"],
        ),
        (&[0xff; 4], &["negative length -1"]),
        (
            &i32::MAX.to_be_bytes(),
            &["2147483647", "socket.request.max.bytes=104857600"],
        ),
        (
            &frame(9999, 3, 1, &[]),
            &["unknown API key 9999 version 3", "client x"],
        ),
        (
            &frame(19, 0, 1, &[0; 32]),
            &["client \"x\" sent CreateTopics (19) v0", "2 to 7"],
        ),
    ];
    for (bytes, words) in seen {
        let before = child.stderr().len();
        let mut client = child.client().await;
        client.send_bytes(bytes).await;
        client.expect_close().await;
        // The line is written before the socket is closed.
        let line = child.stderr()[before..].to_owned();
        for word in words {
            assert!(line.contains(word), "{word} is missing in {line:?}");
        }
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    alive(&mut child.client().await).await;
}

// C1
#[tokio::test]
async fn an_api_versions_request_newer_than_ours_is_answered_in_the_layout_of_version_0() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    for version in [6, 99, i16::MAX] {
        client
            .send_bytes(&frame(18, version, 55, b"\x05tests\x04new\x00"))
            .await;
        let answer = client.receive_frame().await;
        let (id, response): (_, ApiVersionsResponse) =
            kafka_frame::decode_response(answer, 0).unwrap();
        assert_eq!(
            (id, response.error_code),
            (55, ErrorCode::UNSUPPORTED_VERSION.0)
        );
        let keys: Vec<_> = response
            .api_keys
            .iter()
            .map(|a| (a.api_key, a.min_version, a.max_version))
            .collect();
        assert_eq!(keys, [(18, 0, 5)]);
    }
    // The connection goes on, in a version that both know.
    let response = client
        .call(5, &software(ApiVersionsRequest::default()))
        .await;
    assert_eq!(response.error_code, 0);
    alive(&mut client).await;
}

fn software(mut request: ApiVersionsRequest) -> ApiVersionsRequest {
    request.client_software_name = ottla_protocol::StrBytes::from_static_str("tests");
    request.client_software_version = ottla_protocol::StrBytes::from_static_str("1.0");
    request.node_id = -1;
    request
}

// C2
#[tokio::test]
async fn produce_is_advertised_from_0_and_versions_0_to_2_end_the_connection() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let apis = served(&mut client).await;
    assert!(apis.contains(&(0, 0, 13)), "{apis:?}");
    client.create_topic("t", 1).await;
    for version in 0..=2i16 {
        let mut old = broker.client().await;
        // acks, timeout, one topic, one partition, no records.
        let mut body = vec![0, 1, 0, 0, 0, 9];
        body.extend([0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        old.send_bytes(&frame(0, version, 1, &body)).await;
        old.expect_close().await;
    }
    let empty = client
        .call(3, &ProduceRequest::default().with_acks(1))
        .await;
    assert!(empty.responses.is_empty());
    assert_eq!(client.end_offset("t", 0).await, 0);
}

#[tokio::test]
async fn a_client_that_leaves_within_a_frame_leaves_nothing_behind() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let request = ottla_protocol::messages::CreateTopicsRequest::default()
        .with_topics(vec![ottla_tests::Client::new_topic("half", 1, &[])]);
    let whole = client.encode(1, 7, &request);
    for length in 1..whole.len() {
        let mut half = broker.client().await;
        half.send_bytes(&whole[..length]).await;
        half.finish_sending().await;
        half.expect_close().await;
    }
    assert_eq!(client.topic_names().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_frame_may_arrive_byte_by_byte() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    for byte in frame(18, 0, 9, &[]) {
        client.send_bytes(&[byte]).await;
    }
    assert_eq!(client.receive_frame().await[..4], 9i32.to_be_bytes());
}
