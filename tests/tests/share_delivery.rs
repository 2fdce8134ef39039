//! Delivery counts, locks and their limits, throttling near the last delivery, and the window of
//! records in flight.

use ottla_protocol::ErrorCode;
use ottla_tests::{ACCEPT, Ask, Member, OK, Queue, RELEASE, ShareFetched, bare};

/// What one member gets of a batch of 16, always released, with a delivery limit: how many records a
/// fetch, until nothing comes any more.
async fn always_released(limit: &str, mode: i8) -> Vec<usize> {
    let mut queue = Queue::with(&[("share.delivery.count.limit", limit)]).await;
    queue.produce(16).await;
    let mut a = queue.member("a").await;
    let mut counts = vec![];
    let mut ask = Ask::of(queue.at);
    loop {
        let fetched = a.fetch(&ask.mode(mode)).await;
        let offsets = fetched.offsets(queue.at);
        let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
            return counts;
        };
        counts.push(offsets.len());
        assert_eq!(a.ack(queue.at, first, last, RELEASE).await, OK);
        ask = Ask::new();
    }
}

// D10
#[tokio::test]
async fn suspicious_batches_are_delivered_in_ever_smaller_parts() {
    for mode in [0, 1] {
        let five = always_released("5", mode).await;
        assert_eq!(five[..4], [16, 16, 16, 8], "mode {mode}: {five:?}");
        assert_eq!(five[4..12], [1; 8], "mode {mode}: {five:?}");
        assert_eq!(five[12], 8, "mode {mode}: {five:?}");
        assert_eq!(five[13..], [1; 8], "mode {mode}: {five:?}");
        let ten = always_released("10", mode).await;
        assert_eq!(
            ten[..9],
            [16, 16, 16, 16, 16, 8, 4, 2, 1],
            "mode {mode}: {ten:?}"
        );
        let three = always_released("3", mode).await;
        assert_eq!(three[..2], [16, 16], "mode {mode}: {three:?}");
        assert_eq!(three[2..], [1; 16], "mode {mode}: {three:?}");
        assert_eq!(always_released("2", mode).await, [16, 16], "mode {mode}");
    }
}

// D10
#[tokio::test]
async fn one_bad_record_does_not_drag_its_batch_past_the_limit() {
    let mut queue = Queue::with(&[("share.delivery.count.limit", "5")]).await;
    queue.produce(100).await;
    let mut a = queue.member("a").await;
    let bad = 37;
    let mut accepted = vec![];
    let mut deliveries_of_bad = 0;
    let mut ask = Ask::of(queue.at);
    loop {
        let offsets = a.fetch(&ask).await.offsets(queue.at);
        if offsets.is_empty() {
            break;
        }
        deliveries_of_bad += usize::from(offsets.contains(&bad));
        // A fetch with the bad record in it fails as a whole.
        let kind = if offsets.contains(&bad) {
            RELEASE
        } else {
            ACCEPT
        };
        for &offset in &offsets {
            assert_eq!(a.ack(queue.at, offset, offset, kind).await, OK);
            if kind == ACCEPT {
                accepted.push(offset);
            }
        }
        ask = Ask::new();
    }
    assert_eq!(deliveries_of_bad, 5);
    accepted.sort_unstable();
    let expected: Vec<i64> = (0..100).filter(|&offset| offset != bad).collect();
    assert_eq!(accepted, expected, "all its neighbours were accepted");
}

#[tokio::test]
async fn each_acquisition_counts_and_renewals_do_not() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-24#1"
    );
    assert_eq!(a.renew(queue.at, 0, 24).await, OK);
    assert_eq!(a.ack(queue.at, 0, 24, RELEASE).await, OK);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "0-24#2");
    queue.broker.advance_holding_sessions(30_000).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "0-24#3");
    a.close_session().await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.offsets(queue.at)[0],
        0,
        "closing releases as well"
    );
}

#[tokio::test]
async fn a_renewed_lock_starts_again() {
    let queue = Queue::filled(&[("share.record.lock.duration.ms", "1500")]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    for _ in 0..4 {
        queue.broker.advance(900).await;
        assert_eq!(a.renew(queue.at, 0, 24).await, OK);
    }
    queue.broker.advance(900).await;
    assert_eq!(
        a.ack(queue.at, 0, 24, ACCEPT).await,
        OK,
        "4.5 s after it was acquired"
    );
}

#[tokio::test]
async fn a_lock_ends_at_its_millisecond_and_the_limit_archives() {
    let queue = Queue::filled(&[
        ("share.record.lock.duration.ms", "1500"),
        ("share.delivery.count.limit", "2"),
    ])
    .await;
    let mut a = queue.member("a").await;
    let mut b = queue.member("b").await;
    a.fetch(&Ask::of(queue.at)).await;
    queue.broker.advance(1499).await;
    assert_eq!(b.fetch(&Ask::of(queue.at)).await.acquired(queue.at), "");
    queue.broker.advance(1).await;
    assert_eq!(b.fetch(&Ask::new()).await.acquired(queue.at), "0-24#2");
    queue.broker.advance(1500).await;
    assert_eq!(
        b.fetch(&Ask::new()).await.acquired(queue.at),
        "",
        "archived at the limit"
    );
}

#[tokio::test]
async fn a_changed_lock_duration_holds_for_new_locks_only() {
    let mut queue = Queue::filled(&[("share.record.lock.duration.ms", "20000")]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).max_records(10)).await;
    queue
        .configure(&[("share.record.lock.duration.ms", "1000")])
        .await;
    assert_eq!(
        a.fetch(&Ask::new().max_records(10))
            .await
            .acquired(queue.at),
        "10-19#1"
    );
    queue.broker.advance(1000).await;
    let mut b = queue.member("b").await;
    let fetched = b.fetch(&Ask::of(queue.at)).await;
    assert_eq!(
        fetched.acquired(queue.at),
        "10-19#2 20-24#1",
        "the older lock keeps its 20 s"
    );
    queue.broker.advance(18_999).await;
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
}

#[tokio::test]
async fn a_lowered_delivery_limit_archives_after_one_more_delivery() {
    let mut queue = Queue::with(&[("share.delivery.count.limit", "10")]).await;
    queue.produce(1).await;
    let mut a = queue.member("a").await;
    let mut ask = Ask::of(queue.at);
    for delivery in 1..=4 {
        let fetched = a.fetch(&ask).await;
        assert_eq!(fetched.acquired(queue.at), format!("0-0#{delivery}"));
        assert_eq!(a.ack(queue.at, 0, 0, RELEASE).await, OK);
        ask = Ask::new();
    }
    queue
        .configure(&[("share.delivery.count.limit", "3")])
        .await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "0-0#5");
    assert_eq!(a.ack(queue.at, 0, 0, RELEASE).await, OK);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "");
}

#[tokio::test]
async fn a_lock_duration_outside_the_brokers_range_is_refused() {
    let mut queue = Queue::start().await;
    for (value, fine) in [("9", false), ("10", true), ("60001", false)] {
        let answer = queue
            .admin
            .alter_configs(
                32,
                Queue::GROUP,
                &[("share.record.lock.duration.ms", value)],
            )
            .await;
        let expected = if fine {
            ErrorCode::NONE
        } else {
            ErrorCode::INVALID_CONFIG
        };
        assert_eq!(answer.error_code, expected.0, "{value}: {answer:?}");
    }
}

// --- The window ------------------------------------------------------------------------------

/// 13 batches of ten and a window of 100.
async fn window_of_100() -> (Queue, Member) {
    let mut queue = Queue::with(&[("share.partition.max.record.locks", "100")]).await;
    for _ in 0..13 {
        queue.produce(10).await;
    }
    let member = queue.member("a").await;
    (queue, member)
}

async fn again(member: &mut Member, mode: i8, records: i32) -> ShareFetched {
    member
        .fetch(&Ask::new().mode(mode).max_records(records))
        .await
}

#[tokio::test]
async fn the_window_bounds_what_is_in_flight() {
    let (queue, mut a) = window_of_100().await;
    let fetched = a.fetch(&Ask::of(queue.at).max_records(40)).await;
    assert_eq!(fetched.acquired(queue.at), "0-39#1");
    for expected in ["40-79#1", "80-99#1"] {
        assert_eq!(again(&mut a, 0, 40).await.acquired(queue.at), expected);
    }
    assert_eq!(
        again(&mut a, 0, 40).await.listed(),
        [],
        "full: no error and not listed"
    );
    assert_eq!(a.ack(queue.at, 50, 59, ACCEPT).await, OK);
    assert_eq!(
        again(&mut a, 0, 40).await.acquired(queue.at),
        "",
        "the middle frees no room"
    );
    assert_eq!(a.ack(queue.at, 0, 4, ACCEPT).await, OK);
    assert_eq!(
        again(&mut a, 0, 40).await.acquired(queue.at),
        "100-109#1",
        "the head does, and a batch is taken whole"
    );
}

#[tokio::test]
async fn a_record_limit_stops_exactly_at_the_window() {
    let (queue, mut a) = window_of_100().await;
    a.fetch(&Ask::of(queue.at).exactly(96)).await;
    assert_eq!(again(&mut a, 1, 40).await.acquired(queue.at), "96-99#1");
    assert_eq!(again(&mut a, 1, 40).await.acquired(queue.at), "");
    assert_eq!(a.ack(queue.at, 0, 4, ACCEPT).await, OK);
    assert_eq!(again(&mut a, 1, 40).await.acquired(queue.at), "100-104#1");
}

// D7, D8
#[tokio::test]
async fn members_that_only_release_never_exceed_the_window_and_never_stall() {
    for members in [1, 8] {
        let (queue, first) = window_of_100().await;
        let mut all = vec![first];
        for n in 1..members {
            all.push(queue.member(&format!("member {n}")).await);
        }
        let mut deliveries = 0;
        // Until every record was delivered five times, which is the limit.
        for turn in 0.. {
            let member = &mut all[turn % members];
            let mut ask = Ask::of(queue.at);
            if member.epoch > 0 {
                ask = Ask::new();
            }
            let offsets = member.fetch(&ask.exactly(30)).await.offsets(queue.at);
            let in_flight = queue.in_flight();
            assert!(in_flight <= 100, "{in_flight} in flight");
            if offsets.is_empty() {
                break;
            }
            deliveries += offsets.len();
            let ask = offsets.iter().fold(Ask::new(), |ask, &offset| {
                ask.ack(queue.at, offset, offset, RELEASE)
            });
            assert_eq!(member.acknowledge(&ask).await.of(queue.at), Some(OK));
        }
        assert_eq!(deliveries, 130 * 5, "with {members} members");
    }
}

// D6
#[tokio::test]
async fn a_record_is_delivered_to_one_member_at_a_time() {
    let queue = Queue::filled(&[("share.delivery.count.limit", "10")]).await;
    let mut a = queue.member("a").await;
    let mut b = queue.member("b").await;
    let mut held = a.fetch(&Ask::of(queue.at)).await.offsets(queue.at);
    b.fetch(&Ask::of(queue.at)).await;
    for _ in 0..4 {
        // The release and the other member's fetch are on their way together.
        let mut ask = Ask::new().exactly(7);
        for &offset in &held {
            ask = ask.ack(queue.at, offset, offset, RELEASE);
        }
        let (to_a, to_b) = (
            a.send_fetch(&ask).await,
            b.send_fetch(&Ask::new().exactly(9)).await,
        );
        let (got_a, got_b) = tokio::join!(a.receive_fetch(to_a), b.receive_fetch(to_b));
        assert_eq!(got_a.acknowledge_error(queue.at), OK);
        let (mine, yours) = (got_a.offsets(queue.at), got_b.offsets(queue.at));
        assert!(
            mine.iter().all(|offset| !yours.contains(offset)),
            "{mine:?} {yours:?}"
        );
        for &offset in &yours {
            assert_eq!(b.ack(queue.at, offset, offset, RELEASE).await, OK);
        }
        held = mine;
    }
}

#[tokio::test]
async fn a_type_for_each_offset_is_needed_where_they_differ() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(
        a.acks(queue.at, 0, 24, &[ACCEPT, RELEASE]).await,
        bare(ErrorCode::INVALID_REQUEST)
    );
}
