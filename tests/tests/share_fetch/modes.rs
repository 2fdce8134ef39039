//! Which records are acquired, in which entries: batches, record limits, versions.

use ottla_protocol::ErrorCode;
use ottla_tests::{Ask, OK, Queue};

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
