//! Producer ids and sequence numbers (KIP-98, KIP-360).

use bytes::Bytes;
use ottla_protocol::ErrorCode;
use ottla_protocol::batch::{BatchBuilder, BatchOptions};
use ottla_protocol::messages::InitProducerIdRequest;
use ottla_tests::{Client, Embedded, START_MS, Settings, values};

fn sequenced(producer_id: i64, producer_epoch: i16, base_sequence: i32, values: &[&str]) -> Bytes {
    sequenced_at(START_MS, producer_id, producer_epoch, base_sequence, values)
}

fn sequenced_at(
    timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    values: &[&str],
) -> Bytes {
    let options = BatchOptions {
        producer_id,
        producer_epoch,
        base_sequence,
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    for value in values {
        builder.push(timestamp, None, Some(value.as_bytes()));
    }
    builder.build().unwrap()
}

async fn producer_id(client: &mut Client) -> i64 {
    let request = InitProducerIdRequest::default().with_transactional_id(None);
    let response = client.call(4, &request).await;
    assert_eq!((response.error_code, response.producer_epoch), (0, 0));
    response.producer_id.0
}

async fn sent(client: &mut Client, batch: Bytes) -> (ErrorCode, i64) {
    let answer = client.produce("t", 0, batch).await;
    (ErrorCode(answer.error_code), answer.base_offset)
}

async fn with_topic(settings: Settings) -> (Embedded, Client, i64) {
    let broker = settings.start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let id = producer_id(&mut client).await;
    (broker, client, id)
}

// C17
#[tokio::test]
async fn a_gap_in_the_sequence_is_refused_and_the_log_untouched() {
    let (_broker, mut client, id) = with_topic(Settings::new()).await;
    assert_eq!(
        sent(&mut client, sequenced(id, 0, 0, &["0", "1"])).await,
        (ErrorCode::NONE, 0)
    );
    let gap = sent(&mut client, sequenced(id, 0, 3, &["3"])).await;
    assert_eq!(gap, (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    assert_eq!(client.end_offset("t", 0).await, 2);
    assert_eq!(
        sent(&mut client, sequenced(id, 0, 2, &["2"])).await,
        (ErrorCode::NONE, 2)
    );
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["0", "1", "2"]);
}

#[tokio::test]
async fn a_batch_that_is_sent_again_gets_its_old_offset_and_is_stored_once() {
    let (_broker, mut client, id) = with_topic(Settings::new()).await;
    for (sequence, offset) in [(0, 0), (2, 2), (4, 4), (6, 6), (8, 8)] {
        let batch = sequenced(id, 0, sequence, &["a", "b"]);
        assert_eq!(sent(&mut client, batch).await, (ErrorCode::NONE, offset));
    }
    // The last five batches are known.
    for (sequence, offset) in [(0, 0), (8, 8), (4, 4)] {
        let batch = sequenced(id, 0, sequence, &["a", "b"]);
        assert_eq!(sent(&mut client, batch).await, (ErrorCode::NONE, offset));
    }
    assert_eq!(client.end_offset("t", 0).await, 10);
}

// C18
#[tokio::test]
async fn a_producer_that_was_idle_past_its_expiration_goes_on_with_the_sequence_it_has() {
    let (broker, mut client, id) =
        with_topic(Settings::new().set("producer.id.expiration.ms", "1000")).await;
    assert_eq!(
        sent(&mut client, sequenced(id, 0, 0, &["0"])).await,
        (ErrorCode::NONE, 0)
    );
    broker.advance(3_600_000).await;
    let late = sequenced_at(broker.now(), id, 0, 7, &["7"]);
    assert_eq!(sent(&mut client, late).await, (ErrorCode::NONE, 1));
    let gap = sequenced_at(broker.now(), id, 0, 9, &["9"]);
    assert_eq!(
        sent(&mut client, gap).await.0,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
}

#[tokio::test]
async fn a_new_epoch_begins_at_0_and_fences_the_old_one() {
    let (_broker, mut client, id) = with_topic(Settings::new()).await;
    assert_eq!(
        sent(&mut client, sequenced(id, 1, 0, &["a"])).await,
        (ErrorCode::NONE, 0)
    );
    let old = sent(&mut client, sequenced(id, 0, 1, &["b"])).await;
    assert_eq!(old, (ErrorCode::INVALID_PRODUCER_EPOCH, -1));
    let skipped = sent(&mut client, sequenced(id, 2, 1, &["b"])).await;
    assert_eq!(skipped, (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    assert_eq!(
        sent(&mut client, sequenced(id, 2, 0, &["b"])).await,
        (ErrorCode::NONE, 1)
    );
}

#[tokio::test]
async fn sequences_go_on_from_0_after_the_greatest() {
    let (_broker, mut client, id) = with_topic(Settings::new()).await;
    let last = sequenced(id, 0, i32::MAX - 1, &["a", "b"]);
    assert_eq!(sent(&mut client, last).await, (ErrorCode::NONE, 0));
    assert_eq!(
        sent(&mut client, sequenced(id, 0, 0, &["c"])).await,
        (ErrorCode::NONE, 2)
    );
}

#[tokio::test]
async fn producer_ids_are_unique_over_connections_and_logical_brokers() {
    let broker = Settings::new().brokers(3).start().await;
    let mut ids = vec![];
    for node in [0, 1, 2, 0] {
        let mut client = broker.client_of(node).await;
        for _ in 0..10 {
            ids.push(producer_id(&mut client).await);
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

// C48
#[tokio::test]
async fn a_topic_that_is_made_again_knows_no_producer_of_the_old_one() {
    let (_broker, mut client, id) = with_topic(Settings::new()).await;
    assert_eq!(
        sent(&mut client, sequenced(id, 0, 0, &["0", "1"])).await,
        (ErrorCode::NONE, 0)
    );
    assert_eq!(client.delete_topic("t").await, ErrorCode::NONE);
    client.create_topic("t", 1).await;
    assert_eq!(
        sent(&mut client, sequenced(id, 0, 0, &["0"])).await,
        (ErrorCode::NONE, 0)
    );
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["0"]);
}
