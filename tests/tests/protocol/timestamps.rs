//! Times of records: whose they are, what they may be, and how they are found.

use ottla_protocol::ErrorCode;
use ottla_protocol::batch::{BatchBuilder, BatchOptions, TimestampType};
use ottla_protocol::compression::Compression;
use ottla_tests::{Client, Embedded, START_MS, batch_of, decode_batches};

async fn with_topic(configs: &[(&str, &str)]) -> (Embedded, Client) {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic_with("t", 1, configs).await;
    (broker, client)
}

fn of_times(times: &[i64], compression: Compression) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        ..BatchOptions::default()
    });
    for &time in times {
        builder.push(time, None, Some(b"v"));
    }
    builder.build().unwrap()
}

// C41
#[tokio::test]
async fn the_greatest_timestamp_is_found_at_its_record_not_at_the_edge_of_its_batch() {
    for codec in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let (_broker, mut client) = with_topic(&[]).await;
        let answer = client.produce("t", 0, of_times(&[1, 5, 3], codec)).await;
        assert_eq!(answer.error_code, 0);
        let found = client.list_offset("t", 0, -3).await;
        assert_eq!(
            (found.error_code, found.offset, found.timestamp),
            (0, 1, 5),
            "{codec:?}"
        );
        // A later batch with an earlier greatest time changes nothing; one with the same keeps the first.
        client.produce("t", 0, of_times(&[4, 5, 2], codec)).await;
        assert_eq!(client.list_offset("t", 0, -3).await.offset, 1);
        client.produce("t", 0, of_times(&[0, 6], codec)).await;
        let found = client.list_offset("t", 0, -3).await;
        assert_eq!((found.offset, found.timestamp), (7, 6), "{codec:?}");
    }
}

#[tokio::test]
async fn a_time_finds_the_first_record_that_is_not_older() {
    let (_broker, mut client) = with_topic(&[]).await;
    client
        .produce("t", 0, of_times(&[10, 30, 20], Compression::None))
        .await;
    client
        .produce("t", 0, of_times(&[40, 50], Compression::Gzip))
        .await;
    for (time, offset, timestamp) in [
        (0, 0, 10),
        (10, 0, 10),
        (11, 1, 30),
        (30, 1, 30),
        (31, 3, 40),
        (50, 4, 50),
        (51, -1, -1),
    ] {
        let found = client.list_offset("t", 0, time).await;
        assert_eq!(
            (found.offset, found.timestamp),
            (offset, timestamp),
            "time {time}"
        );
    }
    assert_eq!(client.list_offset("t", 0, -1).await.offset, 5);
    assert_eq!(client.list_offset("t", 0, -2).await.offset, 0);
    assert_eq!(client.list_offset("t", 0, -4).await.offset, 0);
    assert_eq!(client.list_offset("t", 0, -5).await.offset, -1);
    assert_eq!(client.list_offset("t", 0, -6).await.offset, -1);
}

#[tokio::test]
async fn the_ends_of_an_empty_log_have_its_leaders_epoch() {
    let (_broker, mut client) = with_topic(&[]).await;
    for timestamp in [-1, -2, -4] {
        let found = client.list_offset("t", 0, timestamp).await;
        let got = (found.offset, found.timestamp, found.leader_epoch);
        assert_eq!(got, (0, -1, 0), "{timestamp}");
    }
    let found = client.list_offset("t", 0, -3).await;
    assert_eq!(
        (found.offset, found.timestamp, found.leader_epoch),
        (-1, -1, -1)
    );
}

// C42
#[tokio::test]
async fn a_record_without_a_time_keeps_none_under_create_time_and_gets_the_brokers_otherwise() {
    let (_broker, mut client) = with_topic(&[]).await;
    assert_eq!(
        client
            .produce("t", 0, batch_of(-1, &["a", "b"]))
            .await
            .error_code,
        0
    );
    let all = client.fetch_all("t", 0, 0).await;
    assert_eq!(
        all.iter().map(|r| r.timestamp).collect::<Vec<_>>(),
        [-1, -1]
    );

    let (_broker, mut client) = with_topic(&[("message.timestamp.type", "LogAppendTime")]).await;
    assert_eq!(
        client
            .produce("t", 0, batch_of(-1, &["a", "b"]))
            .await
            .error_code,
        0
    );
    let all = client.fetch_all("t", 0, 0).await;
    assert_eq!(
        all.iter().map(|r| r.timestamp).collect::<Vec<_>>(),
        [START_MS; 2]
    );
}

// C43
#[tokio::test]
async fn log_append_time_is_set_in_the_batch_and_told_to_the_producer() {
    for codec in [Compression::None, Compression::Lz4] {
        let (broker, mut client) = with_topic(&[("message.timestamp.type", "LogAppendTime")]).await;
        broker.advance(1234).await;
        let answer = client.produce("t", 0, of_times(&[5, 9, 7], codec)).await;
        assert_eq!(
            (answer.error_code, answer.log_append_time_ms),
            (0, START_MS + 1234)
        );
        let records = client.fetch("t", 0, 0).await.records.unwrap();
        let batches = decode_batches(&records);
        let (header, records) = &batches[0];
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(header.max_timestamp, START_MS + 1234);
        assert!(
            records.iter().all(|r| r.timestamp == START_MS + 1234),
            "{records:?}"
        );
        assert!(ottla_protocol::batch::crc_ok(
            &client.fetch("t", 0, 0).await.records.unwrap()
        ));
        let found = client.list_offset("t", 0, START_MS + 1234).await;
        assert_eq!(found.offset, 0);
    }
    let (_broker, mut client) = with_topic(&[]).await;
    let answer = client.produce("t", 0, batch_of(5, &["a"])).await;
    assert_eq!((answer.error_code, answer.log_append_time_ms), (0, -1));
}

#[tokio::test]
async fn the_timestamp_type_of_a_topic_may_change_between_batches() {
    let (_broker, mut client) = with_topic(&[]).await;
    client.produce("t", 0, batch_of(5, &["a"])).await;
    let changed = client
        .alter_configs(2, "t", &[("message.timestamp.type", "LogAppendTime")])
        .await;
    assert_eq!(changed.error_code, 0);
    client.produce("t", 0, batch_of(5, &["b"])).await;
    let times: Vec<i64> = client
        .fetch_all("t", 0, 0)
        .await
        .iter()
        .map(|r| r.timestamp)
        .collect();
    assert_eq!(times, [5, START_MS]);
}

// C44
#[tokio::test]
async fn a_time_more_than_an_hour_ahead_is_refused_record_by_record() {
    let (_broker, mut client) = with_topic(&[]).await;
    let hour = 3_600_000;
    assert_eq!(
        client
            .produce("t", 0, batch_of(START_MS + hour, &["a"]))
            .await
            .error_code,
        0
    );
    let mut mixed = BatchBuilder::default();
    mixed.push(START_MS, None, Some(b"fine"));
    mixed.push(START_MS * 1000, None, Some(b"microseconds"));
    let answer = client.produce("t", 0, mixed.build().unwrap()).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::INVALID_TIMESTAMP);
    assert_eq!(
        answer.error_message.as_deref(),
        Some("One or more records have been rejected due to invalid timestamp")
    );
    let errors = &answer.record_errors;
    assert_eq!(
        errors.iter().map(|e| e.batch_index).collect::<Vec<_>>(),
        [1]
    );
    let text = errors[0].batch_index_error_message.as_deref().unwrap();
    let from = START_MS.wrapping_sub(i64::MAX);
    assert_eq!(
        text,
        format!(
            "Timestamp {} of message with offset 1 is out of range. The timestamp should be within [{from}, {}]",
            START_MS * 1000,
            START_MS + hour
        )
    );
    assert_eq!(client.end_offset("t", 0).await, 1);
    // A topic may allow it, and log append time does not ask.
    client
        .create_topic_with(
            "any",
            1,
            &[("message.timestamp.after.max.ms", "9223372036854775807")],
        )
        .await;
    assert_eq!(
        client
            .produce("any", 0, batch_of(START_MS * 1000, &["a"]))
            .await
            .error_code,
        0
    );
    client
        .create_topic_with("broker", 1, &[("message.timestamp.type", "LogAppendTime")])
        .await;
    assert_eq!(
        client
            .produce("broker", 0, batch_of(START_MS * 1000, &["a"]))
            .await
            .error_code,
        0
    );
}

#[tokio::test]
async fn a_time_before_what_the_topic_allows_is_refused() {
    let (_broker, mut client) = with_topic(&[("message.timestamp.before.max.ms", "1000")]).await;
    assert_eq!(
        client
            .produce("t", 0, batch_of(START_MS - 1000, &["a"]))
            .await
            .error_code,
        0
    );
    let answer = client
        .produce("t", 0, batch_of(START_MS - 1001, &["a"]))
        .await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::INVALID_TIMESTAMP);
}
