//! Requests in flight, and those that get no answer.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use ottla_tests::{Client, Embedded, batch_of, values};

fn all_topics() -> MetadataRequest {
    MetadataRequest::default().with_topics(None)
}

/// A fetch that waits for a first byte as long as a test may take.
fn patient_fetch(topic: &str, offset: i64) -> ottla_protocol::messages::FetchRequest {
    Client::fetch_request(topic, 0, offset)
        .with_min_bytes(1)
        .with_max_wait_ms(25_000)
}

// C12
#[tokio::test]
async fn a_produce_with_acks_0_gets_no_answer_and_the_next_request_gets_its_own() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let produce = Client::produce_request("t", 0, 0, batch_of(client.timestamp, &["a"]));
    for version in 3..=13 {
        let mut produce = produce.clone();
        if version == 13 {
            produce.topic_data[0].topic_id = client.describe_topic("t", false).await.topic_id;
        }
        let unanswered = client.send(version, &produce).await;
        let sent = client.send(12, &all_topics()).await;
        assert_eq!(sent.correlation_id, unanswered.correlation_id + 1);
        assert_eq!(client.receive(sent).await.topics.len(), 1);
    }
    assert_eq!(client.end_offset("t", 0).await, 11);
}

// C13
#[tokio::test]
async fn what_was_sent_with_acks_0_before_a_close_is_stored() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let mut hasty = broker.client().await;
    let mut bytes = vec![];
    for n in 0..1000 {
        let batch = batch_of(client.timestamp, &[format!("{n}")]);
        bytes.extend(hasty.encode(n, 9, &Client::produce_request("t", 0, 0, batch)));
    }
    hasty.send_bytes(&bytes).await;
    hasty.finish_sending().await;
    // The broker closes its side once it has dealt with everything before the end.
    hasty.expect_close().await;
    let stored = client.fetch_all("t", 0, 0).await;
    let want: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    assert_eq!(values(&stored), want);
}

// C14
#[tokio::test]
async fn requests_without_an_answer_between_others_disturb_no_order() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let timestamp = client.timestamp;
    let produce = |value| Client::produce_request("t", 0, 0, batch_of(timestamp, &[value]));
    let _ = client.send(9, &produce("one")).await;
    let fetch = client.send(12, &Client::fetch_request("t", 0, 0)).await;
    let _ = client.send(9, &produce("two")).await;
    let metadata = client.send(12, &all_topics()).await;
    let fetched = client.receive(fetch).await;
    let records = fetched.responses[0].partitions[0].records.clone().unwrap();
    assert_eq!(ottla_tests::decode_batches(&records).len(), 1);
    assert_eq!(client.receive(metadata).await.topics.len(), 1);
    assert_eq!(client.end_offset("t", 0).await, 2);
}

// C15
#[tokio::test]
async fn five_requests_in_flight_are_answered_in_their_order_though_the_first_must_wait() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let slow = client.send(12, &patient_fetch("t", 0)).await;
    let first = client.send(12, &all_topics()).await;
    let second = client
        .send(11, &Client::list_offsets_request("t", 0, -1))
        .await;
    let third = client.send(0, &ApiVersionsRequest::default()).await;
    let last = client.send(12, &Client::fetch_request("t", 0, 0)).await;
    broker
        .client()
        .await
        .produce_values("t", 0, &["wakes"])
        .await;
    let fetched = client.receive(slow).await;
    assert!(
        !fetched.responses[0].partitions[0]
            .records
            .clone()
            .unwrap()
            .is_empty()
    );
    assert_eq!(client.receive(first).await.topics.len(), 1);
    // What was asked behind the fetch was looked at after it.
    assert_eq!(
        client.receive(second).await.topics[0].partitions[0].offset,
        1
    );
    assert_eq!(client.receive(third).await.error_code, 0);
    assert_eq!(client.receive(last).await.error_code, 0);
}

#[tokio::test]
async fn a_produce_with_acks_0_that_fails_ends_the_connection_so_that_the_client_looks_again() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let batch = batch_of(client.timestamp, &["a"]);
    let _ = client
        .send(9, &Client::produce_request("no", 0, 0, batch))
        .await;
    client.expect_close().await;
}

#[tokio::test]
async fn acks_1_and_all_are_answered_and_others_are_invalid() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let batch = batch_of(client.timestamp, &["a"]);
    for (acks, want) in [
        (1, ErrorCode::NONE),
        (-1, ErrorCode::NONE),
        (2, ErrorCode::INVALID_REQUIRED_ACKS),
        (-2, ErrorCode::INVALID_REQUIRED_ACKS),
    ] {
        let response = client
            .call(9, &Client::produce_request("t", 0, acks, batch.clone()))
            .await;
        let code = response.responses[0].partition_responses[0].error_code;
        assert_eq!(ErrorCode(code), want, "acks {acks}");
    }
    assert_eq!(client.end_offset("t", 0).await, 2);
}

#[tokio::test]
async fn a_client_that_leaves_a_waiting_fetch_is_seen_to_leave() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let mut waiting = broker.client().await;
    let _ = waiting.send(12, &patient_fetch("t", 0)).await;
    waiting.finish_sending().await;
    // Far sooner than the fetch would have waited.
    waiting.expect_close().await;
    client.produce_values("t", 0, &["a"]).await;
}

#[tokio::test]
async fn a_waiting_fetch_answers_with_nothing_after_its_own_time_though_the_clock_stands() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let request = patient_fetch("t", 0).with_max_wait_ms(50);
    let response = client.call(12, &request).await;
    let partition = &response.responses[0].partitions[0];
    assert_eq!((partition.error_code, partition.high_watermark), (0, 0));
    assert_eq!(partition.records.as_deref(), Some(&[][..]));
}

#[tokio::test]
async fn a_waiting_fetch_is_answered_when_its_topic_is_deleted() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let mut waiting = broker.client().await;
    let sent = waiting.send(12, &patient_fetch("t", 0)).await;
    // The fetch is parked, or will find no topic: either way the answer comes.
    assert_eq!(client.delete_topic("t").await, ErrorCode::NONE);
    let response = waiting.receive(sent).await;
    let code = ErrorCode(response.responses[0].partitions[0].error_code);
    assert!(
        matches!(
            code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::NOT_LEADER_OR_FOLLOWER
        ),
        "{}",
        code.name()
    );
}
