//! ShareFetch: what is acquired, in which entries, and when a waiting fetch is answered.

use ottla_protocol::ErrorCode;
use ottla_tests::{
    ACCEPT, Ask, At, Member, OK, Queue, RELEASE, Settings, ShareFetched, bare, batch_of, says,
    values,
};

/// What a sequence of fetches of one member acquires in the records 0-9, 10-19, 20-24.
async fn acquires(ask: Ask, times: usize) -> Vec<String> {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let mut acquired = vec![];
    let mut ask = ask.and(queue.at);
    for _ in 0..times {
        acquired.push(a.fetch(&ask).await.acquired(queue.at));
        ask = ask.clone();
    }
    acquired
}

#[tokio::test]
async fn whole_batches_round_up() {
    assert_eq!(acquires(Ask::new().max_records(3), 1).await, ["0-9#1"]);
}

#[tokio::test]
async fn consecutive_batches_are_one_entry_up_to_the_batch_size() {
    assert_eq!(acquires(Ask::new().max_records(12), 1).await, ["0-19#1"]);
    assert_eq!(
        acquires(Ask::new().max_records(3).batch_size(2), 1).await,
        ["0-9#1"],
        "a batch is never split"
    );
    for batch_size in [1, 7] {
        assert_eq!(
            acquires(Ask::new().batch_size(batch_size), 1).await,
            ["0-9#1 10-19#1 20-24#1"],
            "batch size {batch_size}"
        );
    }
}

// Kafka puts an entry 0-(-1) in front.
#[tokio::test]
async fn batch_size_zero_has_no_bogus_entry() {
    assert_eq!(
        acquires(Ask::new().batch_size(0), 1).await,
        ["0-9#1 10-19#1 20-24#1"]
    );
}

#[tokio::test]
async fn one_byte_still_gives_a_batch() {
    assert_eq!(
        acquires(Ask::new().max_bytes(1), 4).await,
        ["0-9#1", "10-19#1", "20-24#1", ""]
    );
}

// D9
#[tokio::test]
async fn a_record_limit_is_exact_and_the_batch_comes_along_whole() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    for expected in ["0-2#1", "3-5#1"] {
        let fetched = a.fetch(&Ask::of(queue.at).exactly(3)).await;
        assert_eq!(fetched.acquired(queue.at), expected);
        assert_eq!(fetched.batches(queue.at), "0-9");
    }
    assert_eq!(
        acquires(Ask::new().exactly(12), 3).await,
        ["0-11#1", "12-19#1 20-23#1", "24-24#1"],
        "an entry that begins in a split batch is one of its own"
    );
}

// D9
#[tokio::test]
async fn ten_of_a_batch_of_five_hundred_are_ten() {
    let mut queue = Queue::start().await;
    queue.produce(500).await;
    let mut a = queue.member("a").await;
    let fetched = a.fetch(&Ask::of(queue.at).exactly(10)).await;
    assert_eq!(fetched.acquired(queue.at), "0-9#1");
    let fetched = a.fetch(&Ask::of(queue.at).max_records(10)).await;
    assert_eq!(
        fetched.acquired(queue.at),
        "10-499#1",
        "batch mode takes the rest"
    );
}

#[tokio::test]
async fn a_record_limit_goes_on_over_batch_borders() {
    let mut queue = Queue::start().await;
    for records in [10, 10, 10, 10, 10, 10, 10] {
        queue.produce(records).await;
    }
    let mut a = queue.member("a").await;
    let mut acquired = vec![];
    for _ in 0..2 {
        let fetched = a.fetch(&Ask::of(queue.at).exactly(33)).await;
        acquired.push(fetched.acquired(queue.at));
    }
    assert_eq!(acquired, ["0-32#1", "33-39#1 40-65#1"]);
}

#[tokio::test]
async fn no_records_wanted_waits_and_gives_none() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(1)).await;
    let none = a.fetch(&Ask::new().max_records(0).max_wait(30)).await;
    assert_eq!(none.listed(), []);
    let refused = a.fetch(&Ask::of(queue.at).max_records(-1)).await;
    assert_eq!(refused.fetch_error(queue.at), OK);
    assert_eq!(
        refused.acquired(queue.at),
        "",
        "listed because it is named, but empty"
    );
    assert_eq!(refused.listed(), [queue.at]);
}

#[tokio::test]
async fn an_unknown_acquire_mode_is_refused_as_a_whole() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    for mode in [2, -1] {
        let refused = a.try_fetch(&Ask::of(queue.at).mode(mode)).await;
        assert_eq!(refused.error(), ErrorCode::UNKNOWN_SERVER_ERROR);
        assert_eq!(refused.0.acquisition_lock_timeout_ms, 0);
    }
}

#[tokio::test]
async fn version_1_takes_whole_batches() {
    assert_eq!(acquires(Ask::new().max_records(3).v1(), 1).await, ["0-9#1"]);
}

#[tokio::test]
async fn every_successful_answer_names_the_lock_timeout() {
    let mut queue = Queue::filled(&[("share.record.lock.duration.ms", "20000")]).await;
    let mut a = queue.member("a").await;
    let fetched = a.fetch(&Ask::of(queue.at).exactly(1)).await;
    assert_eq!(fetched.0.acquisition_lock_timeout_ms, 20_000);
    queue
        .configure(&[("share.record.lock.duration.ms", "1000")])
        .await;
    let fetched = a.fetch(&Ask::new().exactly(1)).await;
    assert_eq!(fetched.0.acquisition_lock_timeout_ms, 1000);
}

/// One line a fetch: the partitions that gave records.
fn served(fetched: &ShareFetched, at: At, partitions: i32) -> String {
    let mut line = vec![];
    for partition in 0..partitions {
        let acquired = fetched.acquired(at.p(partition));
        if !acquired.is_empty() {
            line.push(format!("p{partition} {acquired}"));
        }
    }
    line.join("; ")
}

async fn three_partitions() -> (Queue, Member, Ask) {
    let mut queue = Queue::of(3, Settings::new(), &[]).await;
    for partition in 0..3 {
        queue.produce_to(partition, 10).await;
    }
    let member = queue.member("a").await;
    let ask = (0..3).fold(Ask::new(), |ask, p| ask.and(queue.at.p(p)));
    (queue, member, ask)
}

// D22
#[tokio::test]
async fn partitions_of_a_session_take_turns() {
    let (queue, mut a, ask) = three_partitions().await;
    let mut lines = vec![served(
        &a.fetch(&ask.max_records(5).mode(1)).await,
        queue.at,
        3,
    )];
    for _ in 0..5 {
        let fetched = a.fetch(&Ask::new().exactly(5)).await;
        lines.push(served(&fetched, queue.at, 3));
    }
    assert_eq!(lines[0], "p0 0-4#1");
    let first_half = &lines[..4];
    for partition in 0..3 {
        let first = format!("p{partition} 0-4#1");
        assert!(first_half.contains(&first), "{first} starved: {lines:?}");
    }
    lines.sort();
    let expected = [
        "p0 0-4#1", "p0 5-9#1", "p1 0-4#1", "p1 5-9#1", "p2 0-4#1", "p2 5-9#1",
    ];
    assert_eq!(
        lines, expected,
        "each fetch serves one partition, and each record comes once"
    );
}

#[tokio::test]
async fn whole_batches_of_several_partitions_take_turns_too() {
    let (queue, mut a, ask) = three_partitions().await;
    let mut lines = vec![served(&a.fetch(&ask.max_records(5)).await, queue.at, 3)];
    for _ in 0..2 {
        let fetched = a.fetch(&Ask::new().max_records(5)).await;
        lines.push(served(&fetched, queue.at, 3));
    }
    assert_eq!(lines, ["p0 0-9#1", "p1 0-9#1", "p2 0-9#1"]);
}

#[tokio::test]
async fn one_read_stops_at_a_segment_border() {
    let mut queue = Queue::start().await;
    queue
        .admin
        .alter_configs(2, Queue::TOPIC, &[("segment.bytes", "1048576")])
        .await;
    let large = "x".repeat(700_000);
    let at = queue.admin.timestamp;
    for _ in 0..2 {
        let answer = queue
            .admin
            .produce(Queue::TOPIC, 0, batch_of(at, &[&large]))
            .await;
        assert_eq!(answer.error_code, 0);
    }
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-0#1"
    );
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "1-1#1");
}

#[tokio::test]
async fn partitions_with_nothing_to_say_are_left_out_after_the_first_fetch() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    let mut a = queue.member("a").await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    let first = a.fetch(&Ask::of(p0).and(p1)).await;
    assert_eq!(first.listed(), [p0, p1], "named by the request");
    assert_eq!(a.fetch(&Ask::new()).await.listed(), []);
    queue.produce_to(1, 1).await;
    assert_eq!(a.fetch(&Ask::new()).await.listed(), [p1], "has records");
    let with_ack = a.fetch(&Ask::new().ack(p1, 0, 0, ACCEPT)).await;
    assert_eq!(with_ack.listed(), [p1], "carried an acknowledgement");
    assert_eq!(with_ack.acknowledge_error(p1), OK);
}

// D41, C23
#[tokio::test]
async fn records_of_an_empty_partition_are_empty_and_not_null() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    queue.produce_to(1, 3).await;
    let mut a = queue.member("a").await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    for version in [1, 2] {
        let ask = Ask::of(p0).and(p1);
        let ask = if version == 1 { ask.v1() } else { ask };
        a.epoch = 0;
        let fetched = a.fetch(&ask).await;
        for at in [p0, p1] {
            let data = fetched.partition(at).map(|p| p.records.is_some());
            assert_eq!(data, Some(true), "{fetched:?}");
        }
    }
    let failed = a
        .fetch(&Ask::of(At {
            topic: ottla_protocol::Uuid::from_u128(7),
            partition: 0,
        }))
        .await;
    let all = failed.0.responses.iter().flat_map(|t| &t.partitions);
    assert!(all.clone().count() > 0 && all.clone().all(|p| p.records.is_some()));
}

#[tokio::test]
async fn membership_is_not_checked_once_the_group_has_initialised_the_partition() {
    let queue = Queue::filled(&[]).await;
    queue.member("a").await;
    let mut stranger = queue.stranger("not even a uuid, and never joined").await;
    let fetched = stranger.fetch(&Ask::of(queue.at).exactly(5)).await;
    assert_eq!(fetched.acquired(queue.at), "0-4#1");
    assert_eq!(stranger.ack(queue.at, 0, 4, ACCEPT).await, OK);
}

// Kafka says UNKNOWN_SERVER_ERROR and nothing more.
#[tokio::test]
async fn a_group_that_was_never_initialised_is_told_so_by_partition_on_each_fetch() {
    let queue = Queue::filled(&[]).await;
    let uninitialised = says(
        ErrorCode::INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    );
    let mut stranger = Member::new(queue.broker.client().await, "never", "a");
    let fetched = stranger.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.fetch_error(queue.at), uninitialised);
    let again = stranger.fetch(&Ask::new()).await;
    assert_eq!(again.fetch_error(queue.at), uninitialised);
    let mut nameless = Member::new(queue.broker.client().await, "", "a");
    let fetched = nameless.fetch(&Ask::of(queue.at)).await;
    assert_eq!(
        fetched.fetch_error(queue.at).0,
        ErrorCode::INVALID_REQUEST.0
    );
}

#[tokio::test]
async fn unknown_topics_and_partitions_fail_on_each_fetch_until_they_are_forgotten() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let no_topic = At {
        topic: ottla_protocol::Uuid::from_u128(0xdead),
        partition: 0,
    };
    let no_partition = queue.at.p(9);
    let first = a
        .fetch(&Ask::of(queue.at).and(no_topic).and(no_partition).exactly(1))
        .await;
    assert_eq!(
        first.acquired(queue.at),
        "0-0#1",
        "a good partition is served beside them"
    );
    for fetched in [first, a.fetch(&Ask::new().exactly(1)).await] {
        assert_eq!(
            fetched.fetch_error(no_topic),
            bare(ErrorCode::UNKNOWN_TOPIC_ID)
        );
        let unknown = bare(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        assert_eq!(fetched.fetch_error(no_partition), unknown);
    }
    let ask = Ask::new().forget(no_topic).forget(no_partition).exactly(1);
    assert_eq!(a.fetch(&ask).await.listed(), [queue.at]);
}

// --- Waiting ---------------------------------------------------------------------------------

#[tokio::test]
async fn with_nothing_to_acquire_the_answer_comes_after_the_wait() {
    let queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let fetched = a.fetch(&Ask::of(queue.at).max_wait(40)).await;
    assert_eq!(fetched.acquired(queue.at), "");
    assert_eq!(a.fetch(&Ask::new().max_wait(40)).await.listed(), []);
}

#[tokio::test]
async fn a_produce_answers_a_waiting_fetch() {
    let mut queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let sent = a.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.produce(3).await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(queue.at), "0-2#1");
    assert_eq!(
        values(&fetched.records(queue.at)),
        ["value 0", "value 1", "value 2"]
    );
}

#[tokio::test]
async fn an_expired_lock_answers_a_waiting_fetch() {
    let queue = Queue::filled(&[("share.record.lock.duration.ms", "1000")]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.broker.advance(999).await;
    queue.parked(queue.at, 1).await;
    queue.broker.advance(1).await;
    assert_eq!(
        b.receive_fetch(sent).await.offsets(queue.at).len(),
        25,
        "all of them at once"
    );
}

// Kafka lets it wait for MaxWaitMs.
#[tokio::test]
async fn a_release_answers_a_waiting_fetch() {
    for (first, last) in [(0, 24), (0, 9), (20, 24), (7, 7)] {
        let queue = Queue::filled(&[]).await;
        let mut a = queue.member("a").await;
        a.fetch(&Ask::of(queue.at)).await;
        let mut b = queue.member("b").await;
        let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
        queue.parked(queue.at, 1).await;
        assert_eq!(a.ack(queue.at, first, last, RELEASE).await, OK);
        let released: Vec<i64> = (first..=last).collect();
        assert_eq!(b.receive_fetch(sent).await.offsets(queue.at), released);
    }
}

// Kafka lets it wait for MaxWaitMs. D18
#[tokio::test]
async fn a_disconnect_answers_a_waiting_fetch() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    drop(a);
    let fetched = b.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(queue.at), "0-24#2");
}

#[tokio::test]
async fn a_closed_session_answers_a_waiting_fetch() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    a.close_session().await;
    assert_eq!(b.receive_fetch(sent).await.acquired(queue.at), "0-24#2");
}

#[tokio::test]
async fn room_in_the_window_answers_a_waiting_fetch() {
    let mut queue = Queue::with(&[("share.partition.max.record.locks", "100")]).await;
    for _ in 0..12 {
        queue.produce(10).await;
    }
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
    assert_eq!(b.receive_fetch(sent).await.acquired(queue.at), "100-109#1");
}

#[tokio::test]
async fn a_deleted_topic_answers_a_waiting_fetch() {
    let mut queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let sent = a.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.admin.delete_topic(Queue::TOPIC).await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(
        fetched.fetch_error(queue.at),
        bare(ErrorCode::UNKNOWN_TOPIC_ID)
    );
}

#[tokio::test]
async fn too_few_bytes_wait_and_then_come_anyway() {
    let mut queue = Queue::start().await;
    queue.produce(2).await;
    let mut a = queue.member("a").await;
    let ask = Ask::of(queue.at).min_bytes(1_000_000);
    assert_eq!(
        a.fetch(&ask.max_wait(40)).await.acquired(queue.at),
        "0-1#1",
        "after the wait, what there is"
    );
    let sent = a
        .send_fetch(&Ask::new().min_bytes(1_000_000).patient())
        .await;
    queue.parked(queue.at, 1).await;
    queue.produce(2).await;
    queue.parked(queue.at, 1).await;
    let large = "x".repeat(1_000_000);
    queue
        .admin
        .produce_values(Queue::TOPIC, 0, &[large.as_str()])
        .await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(queue.at), "2-4#1");
}

#[tokio::test]
async fn a_full_window_counts_for_no_bytes() {
    let mut queue = Queue::of(
        2,
        Settings::new(),
        &[("share.partition.max.record.locks", "100")],
    )
    .await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    for _ in 0..11 {
        queue.produce_to(1, 10).await;
    }
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(p1)).await;
    queue.produce_to(0, 1).await;
    for ask in [Ask::new().and(p0), Ask::new()] {
        let ask = ask.min_bytes(100_000).max_wait(30);
        let fetched = a.fetch(&ask).await;
        assert_eq!(fetched.acquired(p1), "");
    }
}

// D24
#[tokio::test]
async fn acknowledgements_of_another_connection_are_heard_while_a_fetch_waits() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let sent = a.send_fetch(&Ask::new().patient()).await;
    queue.parked(queue.at, 1).await;
    // The same member, over another connection, at the session's next epoch.
    let mut second = queue.stranger("a").await;
    second.epoch = a.epoch + 1;
    assert_eq!(second.ack(queue.at, 0, 9, ACCEPT).await, OK);
    assert_eq!(second.ack(queue.at, 10, 24, ACCEPT).await, OK);
    queue.produce(1).await;
    assert_eq!(a.receive_fetch(sent).await.acquired(queue.at), "25-25#1");
    assert_eq!(a.client.end_offset(Queue::TOPIC, 0).await, 26);
}

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
