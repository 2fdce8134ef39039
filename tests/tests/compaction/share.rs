//! Share groups over the holes that compaction leaves.

use ottla_tests::{ACCEPT, Ask, GAP, OK, Queue};

use crate::{A_REST_MS, COMPACTED, put, roll};

/// A queue whose topic is compacted.
async fn queue() -> Queue {
    let mut queue = Queue::start().await;
    let set = queue.admin.alter_configs(2, Queue::TOPIC, &COMPACTED).await;
    assert_eq!(set.error_code, 0);
    queue
}

// D14
#[tokio::test]
async fn a_batch_that_vanished_while_it_was_acquirable_does_not_hold_the_start() {
    let mut queue = queue().await;
    let mut a = queue.member("a").await;
    // 0-9, of which the first two are taken, so that the partition knows all ten.
    let tens: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
    let pairs: Vec<_> = tens.iter().map(|key| (key.as_str(), Some("old"))).collect();
    put(&mut queue.admin, &pairs).await;
    let fetched = a.fetch(&Ask::of(queue.at).exactly(2)).await;
    assert_eq!(fetched.offsets(queue.at), [0, 1]);
    assert_eq!(a.ack(queue.at, 0, 1, ACCEPT).await, OK);
    // 10-19 replace them all.
    let pairs: Vec<_> = tens.iter().map(|key| (key.as_str(), Some("new"))).collect();
    put(&mut queue.admin, &pairs).await;
    roll(&mut queue.admin).await;
    queue.broker.advance_holding_sessions(A_REST_MS).await;
    let mut offsets = vec![];
    for _ in 0..3 {
        let fetched = a.fetch(&Ask::of(queue.at)).await;
        offsets.extend(fetched.offsets(queue.at));
    }
    assert_eq!(offsets, (10..22).collect::<Vec<_>>());
    assert_eq!(a.ack(queue.at, 10, 21, ACCEPT).await, OK);
    // What is written with an acknowledgement is the start from before it.
    assert_eq!(queue.start_and_lag().await, (10, 0));
}

#[tokio::test]
async fn records_that_vanish_while_they_are_held_are_acknowledged_all_the_same() {
    let mut queue = queue().await;
    let mut a = queue.member("a").await;
    put(&mut queue.admin, &[("a", Some("1")), ("b", Some("1"))]).await;
    let fetched = a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.offsets(queue.at), [0, 1]);
    put(&mut queue.admin, &[("a", Some("2")), ("b", Some("2"))]).await;
    roll(&mut queue.admin).await;
    queue.broker.advance_holding_sessions(A_REST_MS).await;
    assert_eq!(a.ack(queue.at, 0, 0, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 1, 1, GAP).await, OK);
    // What is written with an acknowledgement is the start from before it.
    assert_eq!(queue.start_and_lag().await.0, 1);
}

// D15
#[tokio::test]
async fn a_batch_that_lost_its_first_records_is_fetched_from_its_middle() {
    let mut queue = queue().await;
    let pairs = [
        ("a", Some("1")),
        ("b", Some("1")),
        ("c", Some("1")),
        ("d", Some("1")),
    ];
    put(&mut queue.admin, &pairs).await;
    put(&mut queue.admin, &[("a", Some("2")), ("c", Some("2"))]).await;
    roll(&mut queue.admin).await;
    queue.broker.advance(A_REST_MS).await;
    // Of 0-3 only 1 and 3 are left. The group starts within the batch.
    let mut a = queue.member("a").await;
    let fetched = a.fetch(&Ask::of(queue.at).exactly(2)).await;
    assert_eq!(fetched.batches(queue.at), "0-3");
    let keys = |fetched: &ottla_tests::ShareFetched| -> Vec<i64> {
        fetched.records(queue.at).iter().map(|r| r.offset).collect()
    };
    let mut seen = keys(&fetched);
    let mut last = fetched.offsets(queue.at);
    for _ in 0..4 {
        let fetched = a.fetch(&Ask::of(queue.at).exactly(2)).await;
        seen.extend(keys(&fetched));
        last.extend(fetched.offsets(queue.at));
    }
    assert_eq!(seen, [1, 3, 4, 5, 6, 7]);
    // Acknowledged as a client does: what it did not find is a gap.
    for offset in last {
        let kind = if seen.contains(&offset) { ACCEPT } else { GAP };
        assert_eq!(a.ack(queue.at, offset, offset, kind).await, OK, "{offset}");
    }
    assert_eq!(queue.start_and_lag().await.1, 0);
}
