//! Several members and segments: every record is given once.

use ottla_tests::{ACCEPT, Ask, Queue};

// D1
#[tokio::test]
async fn two_members_that_fetch_a_cold_partition_at_once_share_its_records() {
    for _ in 0..10 {
        let queue = Queue::filled(&[]).await;
        let mut a = queue.member("a").await;
        let mut b = queue.member("b").await;
        let ask = Ask::of(queue.at).max_records(10);
        let (to_a, to_b) = (a.send_fetch(&ask).await, b.send_fetch(&ask).await);
        let (got_a, got_b) = tokio::join!(a.receive_fetch(to_a), b.receive_fetch(to_b));
        let mut all = got_a.offsets(queue.at);
        all.extend(got_b.offsets(queue.at));
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<i64>>());
    }
}

#[tokio::test]
async fn a_log_of_several_segments_gives_every_record_once_to_small_fetches() {
    let mut queue = Queue::start().await;
    queue
        .admin
        .alter_configs(2, Queue::TOPIC, &[("segment.bytes", "1048576")])
        .await;
    let mut expected = 0;
    for size in [1, 7, 100, 3, 50].into_iter().cycle().take(80) {
        let record = "y".repeat(2_000 + size);
        let batch: Vec<&str> = vec![&record; size];
        queue.admin.produce_values(Queue::TOPIC, 0, &batch).await;
        expected += size as i64;
    }
    let mut a = queue.member("a").await;
    for (max_bytes, max_records, mode) in [(10_000, 500, 0), (1, 500, 0), (50_000, 13, 1)] {
        queue.broker.client().await.delete_group("none").await;
        let mut seen = vec![];
        let mut ask = Ask::of(queue.at);
        loop {
            let wanted = ask
                .clone()
                .max_bytes(max_bytes)
                .mode(mode)
                .max_records(max_records);
            let fetched = a.fetch(&wanted).await;
            let offsets = fetched.offsets(queue.at);
            let carried: Vec<i64> = fetched.records(queue.at).iter().map(|r| r.offset).collect();
            assert_eq!(carried, offsets, "each acquired record came along");
            let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
                break;
            };
            seen.extend(offsets);
            ask = Ask::new().ack(queue.at, first, last, ACCEPT);
        }
        assert_eq!(
            seen,
            (0..expected).collect::<Vec<i64>>(),
            "{max_bytes} bytes"
        );
        // Once more from the start, with other limits.
        a.close_session().await;
        a.leave().await;
        queue
            .admin
            .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 0)
            .await;
        a.join(&[Queue::TOPIC]).await;
    }
}

#[tokio::test]
async fn a_log_of_several_segments_gives_every_record_once_to_small_plain_fetches() {
    let mut queue = Queue::start().await;
    queue
        .admin
        .alter_configs(2, Queue::TOPIC, &[("segment.bytes", "1048576")])
        .await;
    for size in [1, 7, 100, 3, 50].into_iter().cycle().take(80) {
        let record = "y".repeat(2_000 + size);
        queue
            .admin
            .produce_values(Queue::TOPIC, 0, &vec![record.as_str(); size])
            .await;
    }
    let end = queue.admin.end_offset(Queue::TOPIC, 0).await;
    for max_bytes in [1, 10_000, 250_000] {
        let mut seen = vec![];
        let mut offset = 0;
        while offset < end {
            let mut request = ottla_tests::Client::fetch_request(Queue::TOPIC, 0, offset);
            request.topics[0].partitions[0].partition_max_bytes = max_bytes;
            let answer = queue.admin.call(12, &request).await;
            let data = answer.responses[0].partitions[0].records.clone();
            let batches = ottla_tests::decode_batches(data.as_deref().unwrap_or_default());
            let records = batches.iter().flat_map(|(_, records)| records);
            seen.extend(records.map(|r| r.offset).filter(|&o| o >= offset));
            let next = batches.last().map(|(header, _)| header.last_offset() + 1);
            offset = next.unwrap_or_else(|| panic!("nothing at {offset} of {end}"));
        }
        assert_eq!(seen, (0..end).collect::<Vec<i64>>(), "{max_bytes} bytes");
    }
}
