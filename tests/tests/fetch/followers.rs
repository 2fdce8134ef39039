//! Consumers that read from a replica in their rack (KIP-392).

use ottla_protocol::messages::FetchRequest;
use ottla_protocol::messages::fetch_response::PartitionData;
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, Settings, decode_batches};

const SELECTOR: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

/// Three brokers in the racks a, b and b.
async fn racks(selector: &str) -> Embedded {
    let settings = Settings::new()
        .brokers(3)
        .set("ottla.override.0.broker.rack", "a")
        .set("ottla.override.1.broker.rack", "b")
        .set("ottla.override.2.broker.rack", "b");
    let settings = match selector {
        "" => settings,
        class => settings.set("replica.selector.class", class),
    };
    settings.start().await
}

fn from_rack(rack: &str, offset: i64) -> FetchRequest {
    Client::fetch_request("t", 0, offset).with_rack_id(StrBytes::from_string(rack.to_owned()))
}

async fn ask(broker: &Embedded, id: i32, version: i16, request: &FetchRequest) -> PartitionData {
    let mut client = broker.client_of(id).await;
    let mut response = client.call(version, request).await;
    response.responses.swap_remove(0).partitions.swap_remove(0)
}

#[tokio::test]
async fn the_leader_names_a_replica_in_the_consumers_rack() {
    let broker = racks(SELECTOR).await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1, 2]]).await;
    client.produce_values("t", 0, &["a"]).await;
    let told = ask(&broker, 0, 12, &from_rack("b", 0)).await;
    assert_eq!((told.error_code, told.preferred_read_replica.0), (0, 2));
    assert_eq!((told.high_watermark, told.log_start_offset), (1, 0));
    assert!(told.records.is_some_and(|r| r.is_empty()));
    // Its own rack, a rack without replicas, no rack, a version without racks.
    for (version, rack) in [(12, "a"), (12, "z"), (12, ""), (10, "b")] {
        let rack = if version == 10 { "" } else { rack };
        let told = ask(&broker, 0, version, &from_rack(rack, 0)).await;
        assert_eq!(told.preferred_read_replica.0, -1, "v{version} {rack}");
        assert!(told.records.is_some_and(|r| !r.is_empty()));
    }
    // An offset that no replica has is the leader's to refuse.
    let beyond = ask(&broker, 0, 12, &from_rack("b", 9)).await;
    assert_eq!(ErrorCode(beyond.error_code), ErrorCode::OFFSET_OUT_OF_RANGE);
    // The other one in that rack, once the first is out of sync; then nobody.
    broker.stop_node(2).await;
    let told = ask(&broker, 0, 12, &from_rack("b", 0)).await;
    assert_eq!(told.preferred_read_replica.0, 1);
    broker.stop_node(1).await;
    let told = ask(&broker, 0, 12, &from_rack("b", 0)).await;
    assert_eq!(told.preferred_read_replica.0, -1);
}

#[tokio::test]
async fn a_waiting_fetch_is_sent_to_the_nearer_replica_at_once() {
    let broker = racks(SELECTOR).await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let waits = from_rack("b", 0)
        .with_max_wait_ms(i32::MAX)
        .with_min_bytes(1);
    let told = ask(&broker, 0, 12, &waits).await;
    assert_eq!(told.preferred_read_replica.0, 1);
}

#[tokio::test]
async fn without_a_selector_the_leader_serves_every_rack() {
    let broker = racks("").await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    client.produce_values("t", 0, &["a"]).await;
    let told = ask(&broker, 0, 12, &from_rack("b", 0)).await;
    assert_eq!(told.preferred_read_replica.0, -1);
    assert!(told.records.is_some_and(|r| !r.is_empty()));
}

#[tokio::test]
async fn a_replica_serves_consumers_since_version_11_and_others_never() {
    let broker = racks("").await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    client.produce_values("t", 0, &["a", "b"]).await;
    let plain = Client::fetch_request("t", 0, 0);
    let served = ask(&broker, 1, 11, &plain).await;
    assert_eq!((served.error_code, served.high_watermark), (0, 2));
    assert_eq!(served.preferred_read_replica.0, -1);
    let batches = decode_batches(served.records.as_deref().unwrap());
    assert_eq!(batches[0].1.len(), 2);
    let beyond = ask(&broker, 1, 11, &Client::fetch_request("t", 0, 7)).await;
    assert_eq!(ErrorCode(beyond.error_code), ErrorCode::OFFSET_OUT_OF_RANGE);
    let moved = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    for (id, version) in [(1, 10), (2, 11), (2, 10)] {
        let refused = ask(&broker, id, version, &plain).await;
        assert_eq!(ErrorCode(refused.error_code), moved, "{id} v{version}");
    }
    // Whoever claims to be a replicating broker is none.
    let follower = plain.clone().with_replica_id(5.into());
    let refused = ask(&broker, 0, 11, &follower).await;
    assert_eq!(ErrorCode(refused.error_code), moved);
}

#[tokio::test]
async fn a_fetch_that_waits_at_a_replica_is_woken_by_a_produce_at_the_leader() {
    let broker = racks("").await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let mut consumer = broker.client_of(1).await;
    let waits = Client::fetch_request("t", 0, 0)
        .with_max_wait_ms(i32::MAX)
        .with_min_bytes(1);
    let sent = consumer.send(12, &waits).await;
    client.produce_values("t", 0, &["a"]).await;
    let response = consumer.receive(sent).await;
    assert_eq!(response.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn metadata_tells_the_racks() {
    let broker = racks("").await;
    let mut client = broker.client_of(0).await;
    let request = ottla_protocol::messages::MetadataRequest::default().with_topics(Some(vec![]));
    let brokers = client.call(12, &request).await.brokers;
    let racks: Vec<_> = brokers.iter().map(|b| b.rack.as_deref()).collect();
    assert_eq!(racks, [Some("a"), Some("b"), Some("b")]);
}
