//! What the clock removes.

use ottla_protocol::ErrorCode;
use ottla_tests::{Embedded, START_MS, batch_of};

const DAY_MS: i64 = 24 * 3600 * 1000;

#[tokio::test]
async fn records_past_their_retention_go_and_offsets_stay() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let configs = [("retention.ms", "86400000"), ("segment.ms", "3600000")];
    client.create_topic_with("t", 1, &configs).await;
    for hours in 0..3 {
        let batch = batch_of(START_MS + hours * 3_600_000, &["x"]);
        broker.advance(if hours == 0 { 0 } else { 3_600_001 }).await;
        assert_eq!(client.produce("t", 0, batch).await.error_code, 0);
    }
    broker.advance(2 * DAY_MS).await;
    let start = client.list_offset("t", 0, -2).await.offset;
    assert_eq!(start, 3, "everything is older than a day");
    assert_eq!(client.end_offset("t", 0).await, 3);
    let data = client.fetch("t", 0, 0).await;
    assert_eq!(ErrorCode(data.error_code), ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(
        client
            .produce("t", 0, batch_of(broker.now(), &["y"]))
            .await
            .base_offset,
        3
    );
}

#[tokio::test]
async fn a_log_larger_than_its_retention_loses_its_oldest_segments() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let configs = [("retention.bytes", "2097152"), ("segment.bytes", "1048576")];
    client.create_topic_with("t", 1, &configs).await;
    for _ in 0..50 {
        client.produce_values("t", 0, &[vec![1u8; 100_000]]).await;
    }
    broker.advance(3_600_000).await;
    let start = client.list_offset("t", 0, -2).await.offset;
    assert!((15..=35).contains(&start), "{start}");
    assert_eq!(
        client.fetch_all("t", 0, start).await.len() as i64,
        50 - start
    );
}
