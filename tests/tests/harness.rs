//! That the harness itself says and hears what it should, before anything rests on it.

use ottla_tests::{Child, Embedded, Launch, Settings, http, values, wall_ms};

#[tokio::test]
async fn records_come_back_from_an_embedded_broker() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    assert_eq!(client.produce_values("t", 1, &["a", "b"]).await, 0);
    assert_eq!(client.produce_values("t", 1, &["c"]).await, 2);
    let all = client.fetch_all("t", 1, 1).await;
    assert_eq!(values(&all), ["b", "c"]);
    assert_eq!(client.end_offset("t", 1).await, 3);
    assert_eq!(client.end_offset("t", 0).await, 0);
    broker.shutdown().await;
}

#[tokio::test]
async fn a_frozen_clock_moves_when_told() {
    let broker = Settings::new().at(1_000_000).start().await;
    broker.advance(500).await;
    assert_eq!(broker.now(), 1_000_500);
}

#[tokio::test]
async fn every_logical_broker_has_a_port_of_its_own() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("t", &[&[2], &[0]]).await;
    client.produce_values("t", 0, &["two"]).await;
    broker
        .client_of(0)
        .await
        .produce_values("t", 1, &["zero"])
        .await;
}

#[tokio::test]
async fn a_child_serves_and_moves_its_clock_over_http() {
    let child: Child = Launch::new().start().await;
    let mut client = child.client().await;
    client.create_topic("t", 1).await;
    client.produce_values("t", 0, &["a"]).await;
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["a"]);
    let before = http(child.admin(), "GET", "/api/clock").await.json()["now_ms"].as_i64();
    assert!(
        before.is_some_and(|now| (now - wall_ms()).abs() < 60_000),
        "{before:?}"
    );
    child.advance(3_600_000).await;
    let after = http(child.admin(), "GET", "/api/clock").await.json()["now_ms"].as_i64();
    assert!(
        after >= before.map(|now| now + 3_600_000),
        "{before:?} {after:?}"
    );
    assert!(child.resident_bytes() > 1 << 20);
    let exited = child.terminate().await;
    assert!(exited.status.success(), "{exited:?}");
}
