//! What consumers and producers see of a log that is compacted.

use ottla_protocol::ErrorCode;
use ottla_protocol::batch::BatchOptions;
use ottla_tests::{Embedded, batch_of, decode_batches};

use crate::{A_REST_MS, COMPACTED, keyed, last_values, put, roll};

// C32
#[tokio::test]
async fn a_consumer_of_a_compacted_log_reaches_the_end_from_every_offset() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, &COMPACTED).await;
    for n in 0..40 {
        put(&mut client, &[(&format!("once {n}"), Some("x"))]).await;
    }
    for n in 0..60 {
        put(
            &mut client,
            &[(&format!("k{}", n % 3), Some(&n.to_string()))],
        )
        .await;
    }
    roll(&mut client).await;
    let end = client.end_offset("t", 0).await;
    broker.advance(A_REST_MS).await;
    assert_eq!(client.end_offset("t", 0).await, end);
    assert_eq!(client.list_offset("t", 0, -2).await.offset, 0);
    let all = client.fetch_all("t", 0, 0).await;
    assert_eq!(all.len(), 40 + 3 + 2);
    for from in 0..end {
        let rest = client.fetch_all("t", 0, from).await;
        let expected = all.iter().filter(|record| record.offset >= from);
        assert!(rest.iter().eq(expected), "from {from}");
        // The batch that comes first may begin behind the offset, never end before it.
        let data = client.fetch("t", 0, from).await;
        let batches = decode_batches(&data.records.unwrap());
        assert!(batches[0].0.last_offset() >= from);
    }
    // By time too: what has the time and is gone does not count.
    let found = client.list_offset("t", 0, client.timestamp).await;
    assert_eq!(found.offset, all[0].offset);
}

// C33
#[tokio::test]
async fn the_empty_batch_of_a_producer_is_served_and_its_sequence_goes_on() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, &COMPACTED).await;
    let by = |base_sequence| BatchOptions {
        producer_id: 4711,
        producer_epoch: 0,
        base_sequence,
        ..BatchOptions::default()
    };
    let time = client.timestamp;
    let both = [("a", Some("1")), ("b", Some("1"))];
    assert_eq!(
        client
            .produce("t", 0, keyed(time, &both, by(0)))
            .await
            .error_code,
        0
    );
    put(&mut client, &[("a", Some("2")), ("b", Some("2"))]).await;
    roll(&mut client).await;
    broker.advance(A_REST_MS).await;
    let data = client.fetch("t", 0, 0).await;
    let batches = decode_batches(&data.records.unwrap());
    let (header, records) = &batches[0];
    assert_eq!((header.base_offset, header.last_offset()), (0, 1));
    assert_eq!((header.count, records.len()), (0, 0));
    assert_eq!(last_values(&client.fetch_all("t", 0, 0).await)["a"], "2");
    // What it sent is still known, and the next one follows.
    let again = client.produce("t", 0, keyed(time, &both, by(0))).await;
    assert_eq!((again.error_code, again.base_offset), (0, 0));
    let next = client
        .produce("t", 0, keyed(time, &[("c", Some("1"))], by(2)))
        .await;
    assert_eq!(next.error_code, 0);
    let gap = client
        .produce("t", 0, keyed(time, &[("c", Some("1"))], by(9)))
        .await;
    assert_eq!(
        ErrorCode(gap.error_code),
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
}

#[tokio::test]
async fn deletions_go_once_they_were_there_for_delete_retention() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, &COMPACTED).await;
    put(&mut client, &[("a", Some("1"))]).await;
    put(&mut client, &[("a", None)]).await;
    roll(&mut client).await;
    broker.advance(A_REST_MS).await;
    let left = client.fetch_all("t", 0, 0).await;
    assert_eq!((left[0].offset, left[0].value.clone()), (1, None));
    roll(&mut client).await;
    broker.advance(90_000).await;
    roll(&mut client).await;
    broker.advance(A_REST_MS).await;
    let left = client.fetch_all("t", 0, 0).await;
    assert!(left[0].offset > 1, "{:?}", left[0]);
}

#[tokio::test]
async fn a_record_without_a_key_is_refused() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, &COMPACTED).await;
    let refused = client
        .produce("t", 0, batch_of(client.timestamp, &["x"]))
        .await;
    assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_RECORD);
    assert_eq!(client.end_offset("t", 0).await, 0);
}

#[tokio::test]
async fn compaction_begins_when_the_policy_is_changed_and_ends_with_it() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let mut configs = COMPACTED;
    configs[0].1 = "delete";
    client.create_topic_with("t", 1, &configs).await;
    for value in ["1", "2"] {
        put(&mut client, &[("a", Some(value))]).await;
    }
    roll(&mut client).await;
    broker.advance(A_REST_MS).await;
    assert_eq!(client.fetch_all("t", 0, 0).await.len(), 4);
    let set = client
        .alter_configs(2, "t", &[("cleanup.policy", "compact,delete")])
        .await;
    assert_eq!(set.error_code, 0);
    broker.advance(A_REST_MS).await;
    assert_eq!(client.fetch_all("t", 0, 0).await.len(), 3);
    let set = client
        .alter_configs(2, "t", &[("cleanup.policy", "delete")])
        .await;
    assert_eq!(set.error_code, 0);
    put(&mut client, &[("a", Some("3"))]).await;
    roll(&mut client).await;
    broker.advance(A_REST_MS).await;
    assert_eq!(client.fetch_all("t", 0, 0).await.len(), 6);
}

#[tokio::test]
async fn both_policies_compact_and_delete() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let mut configs = COMPACTED.to_vec();
    configs[0].1 = "compact,delete";
    configs.push(("retention.ms", "3600000"));
    client.create_topic_with("t", 1, &configs).await;
    for n in 0..30 {
        put(
            &mut client,
            &[(&format!("k{}", n % 3), Some(&n.to_string()))],
        )
        .await;
    }
    roll(&mut client).await;
    broker.advance(A_REST_MS).await;
    assert_eq!(client.fetch_all("t", 0, 0).await.len(), 5);
    broker.advance(2 * 3_600_000).await;
    let start = client.list_offset("t", 0, -2).await.offset;
    assert_eq!(start, client.end_offset("t", 0).await);
}
