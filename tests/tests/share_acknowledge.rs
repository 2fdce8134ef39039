//! Acknowledgements: what is accepted, what is refused with which code and text, and that it is all
//! or nothing by partition.

use ottla_protocol::ErrorCode;
use ottla_tests::{
    ACCEPT, Ask, At, Code, GAP, Member, OK, Queue, REJECT, RELEASE, RENEW, Settings, bare, says,
};

const INVALID_REQUEST: ErrorCode = ErrorCode::INVALID_REQUEST;
const INVALID_STATE: ErrorCode = ErrorCode::INVALID_RECORD_STATE;
const OFFSET_NOT_ACQUIRED: &str = "The offset cannot be acknowledged. The offset is not acquired.";
const BATCH_NOT_ACQUIRED: &str =
    "The batch cannot be acknowledged. The batch is not in the acquired state.";
const NOT_OWNER: &str = "Member is not the owner of offset";
const FIRST_PAST: &str =
    "Batch record not found. The first offset in request is past acquired records.";
const LAST_PAST: &str =
    "Batch record not found. The last offset in request is past acquired records.";
const NOT_CACHED: &str =
    "Batch record not found. The request batch offsets are not found in the cache.";

/// A member that holds 0-9 and 10-19 of 25 records.
async fn holding_20() -> (Queue, Member) {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let fetched = a.fetch(&Ask::of(queue.at).max_records(20)).await;
    assert_eq!(fetched.acquired(queue.at), "0-19#1");
    (queue, a)
}

/// An acknowledgement is refused on both paths, and leaves everything acquired.
async fn refused(ask: impl Fn(At) -> Ask, expected: Code) {
    let (queue, mut a) = holding_20().await;
    let ask = ask(queue.at);
    let acknowledged = a.acknowledge(&ask).await;
    assert_eq!(
        acknowledged.of(queue.at),
        Some(expected.clone()),
        "ShareAcknowledge"
    );
    let fetched = a.fetch(&ask.clone().max_records(0)).await;
    assert_eq!(
        fetched.acknowledge_error(queue.at),
        expected,
        "on a ShareFetch"
    );
    assert_eq!(fetched.fetch_error(queue.at), OK);
    assert_eq!(
        a.ack(queue.at, 0, 19, ACCEPT).await,
        OK,
        "nothing was applied"
    );
}

#[tokio::test]
async fn acquired_records_are_accepted_released_and_rejected() {
    let (queue, mut a) = holding_20().await;
    assert_eq!(a.ack(queue.at, 0, 4, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 5, 9, RELEASE).await, OK);
    assert_eq!(a.ack(queue.at, 10, 18, REJECT).await, OK);
    assert_eq!(a.ack(queue.at, 19, 19, GAP).await, OK);
    assert_eq!(
        a.fetch(&Ask::new()).await.acquired(queue.at),
        "5-9#2 20-24#1"
    );
}

// D22
#[tokio::test]
async fn one_type_for_all_or_one_for_each_offset() {
    let (queue, mut a) = holding_20().await;
    let kinds = [ACCEPT, RELEASE, REJECT, GAP, RELEASE];
    assert_eq!(a.acks(queue.at, 0, 4, &kinds).await, OK);
    let fetched = a.fetch(&Ask::new()).await;
    assert_eq!(
        fetched.acquired(queue.at),
        "1-1#2 4-4#2 20-24#1",
        "each offset by its own type"
    );
}

#[tokio::test]
async fn any_other_number_of_types_is_refused() {
    for kinds in [&[][..], &[ACCEPT; 4], &[ACCEPT; 6], &[ACCEPT; 2]] {
        refused(|at| Ask::new().acks(at, 0, 4, kinds), bare(INVALID_REQUEST)).await;
    }
}

#[tokio::test]
async fn unknown_types_are_refused() {
    for kind in [9, 5, -1] {
        refused(|at| Ask::new().ack(at, 0, 4, kind), bare(INVALID_REQUEST)).await;
    }
}

#[tokio::test]
async fn renewals_need_version_2_and_the_renew_flag() {
    refused(|at| Ask::new().ack(at, 0, 4, RENEW), bare(INVALID_REQUEST)).await;
    refused(
        |at| Ask::new().ack(at, 0, 4, RENEW).v1(),
        bare(INVALID_REQUEST),
    )
    .await;
}

#[tokio::test]
async fn renewals_can_be_switched_off_for_a_group() {
    let queue = Queue::filled(&[("share.renew.acknowledge.enable", "false")]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let disabled = "Renewing acquisition locks is not enabled for the group.";
    assert_eq!(a.renew(queue.at, 0, 4).await, says(INVALID_STATE, disabled));
    assert_eq!(a.ack(queue.at, 0, 4, ACCEPT).await, OK);
}

#[tokio::test]
async fn a_renewing_fetch_must_want_nothing_else() {
    let (queue, mut a) = holding_20().await;
    let with = |change: fn(Ask) -> Ask| change(Ask::new().ack(queue.at, 0, 4, RENEW).renew());
    let asks = [
        with(|ask| ask.max_wait(1)),
        with(|ask| ask.min_bytes(1)),
        with(|ask| ask.max_bytes(1)),
        with(|ask| ask.max_records(1)),
    ];
    for ask in asks {
        let answer = a.try_fetch(&ask).await;
        assert_eq!(answer.error(), INVALID_REQUEST, "{ask:?}");
        assert_eq!(a.epoch, 1, "the epoch is not used up");
    }
    let renewed = a
        .fetch(&Ask::new().ack(queue.at, 0, 4, RENEW).renew())
        .await;
    assert_eq!(renewed.acknowledge_error(queue.at), OK);
    assert_eq!(renewed.acquired(queue.at), "", "and it gets no records");
}

#[tokio::test]
async fn the_renew_flag_may_come_without_or_with_other_types() {
    let (queue, mut a) = holding_20().await;
    let ask = Ask::new().ack(queue.at, 0, 0, ACCEPT).renew();
    assert_eq!(a.acknowledge(&ask).await.of(queue.at), Some(OK));
    let ask = Ask::new().acks(queue.at, 1, 2, &[ACCEPT, RENEW]).renew();
    assert_eq!(a.acknowledge(&ask).await.of(queue.at), Some(OK));
    assert_eq!(
        a.ack(queue.at, 2, 19, ACCEPT).await,
        OK,
        "the renewed one is still held"
    );
}

// D22
#[tokio::test]
async fn ranges_must_ascend() {
    refused(|at| Ask::new().ack(at, 4, 3, ACCEPT), bare(INVALID_REQUEST)).await;
    refused(
        |at| Ask::new().ack(at, 10, 12, ACCEPT).ack(at, 0, 2, ACCEPT),
        bare(INVALID_REQUEST),
    )
    .await;
}

#[tokio::test]
async fn ranges_must_not_overlap() {
    refused(
        |at| Ask::new().ack(at, 0, 5, ACCEPT).ack(at, 5, 9, ACCEPT),
        says(INVALID_STATE, OFFSET_NOT_ACQUIRED),
    )
    .await;
}

#[tokio::test]
async fn a_partition_without_ranges_is_left_out_of_the_answer() {
    let (queue, mut a) = holding_20().await;
    let answer = a.acknowledge(&Ask::of(queue.at)).await;
    assert_eq!(answer.of(queue.at), None);
}

#[tokio::test]
async fn a_range_that_begins_below_zero_counts_from_the_start() {
    let (queue, mut a) = holding_20().await;
    assert_eq!(a.ack(queue.at, -1, 6, ACCEPT).await, OK);
    assert_eq!(
        a.ack(queue.at, 7, 19, ACCEPT).await,
        OK,
        "0 to 6 are done and the rest is held"
    );
}

#[tokio::test]
async fn offsets_that_are_done_are_ignored_whatever_the_type() {
    let (queue, mut a) = holding_20().await;
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 2, 5, RELEASE).await, OK);
    assert_eq!(a.renew(queue.at, 0, 3).await, OK);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "20-24#1");
}

#[tokio::test]
async fn records_in_the_window_that_are_not_acquired_are_refused() {
    let (queue, mut a) = holding_20().await;
    assert_eq!(a.ack(queue.at, 3, 3, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 4, 4, REJECT).await, OK);
    assert_eq!(a.ack(queue.at, 5, 5, RELEASE).await, OK);
    let not_acquired = says(INVALID_STATE, OFFSET_NOT_ACQUIRED);
    for (offset, what) in [(3, "acknowledged"), (4, "archived"), (5, "available")] {
        assert_eq!(
            a.ack(queue.at, offset, offset, ACCEPT).await,
            not_acquired,
            "{what}"
        );
    }
    assert_eq!(
        a.ack(queue.at, 2, 6, ACCEPT).await,
        not_acquired,
        "partly acquired"
    );
    assert_eq!(a.ack(queue.at, 2, 2, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 6, 19, ACCEPT).await, OK);
}

// D22
#[tokio::test]
async fn a_batch_whose_lock_has_expired_is_refused() {
    let (queue, mut a) = holding_20().await;
    queue.broker.advance_holding_sessions(30_000).await;
    let expired = says(INVALID_STATE, BATCH_NOT_ACQUIRED);
    assert_eq!(a.ack(queue.at, 0, 19, ACCEPT).await, expired);
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, expired);
}

#[tokio::test]
async fn records_of_another_member_are_refused() {
    let (queue, mut a) = holding_20().await;
    let mut b = queue.member("b").await;
    assert_eq!(
        b.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "20-24#1"
    );
    let not_owner = says(INVALID_STATE, NOT_OWNER);
    assert_eq!(b.ack(queue.at, 0, 9, ACCEPT).await, not_owner);
    assert_eq!(b.ack(queue.at, 4, 4, RELEASE).await, not_owner);
    assert_eq!(a.ack(queue.at, 20, 24, ACCEPT).await, not_owner);
    assert_eq!(a.ack(queue.at, 0, 19, ACCEPT).await, OK);
}

#[tokio::test]
async fn offsets_past_everything_acquired_are_invalid_requests() {
    refused(
        |at| Ask::new().ack(at, 20, 24, ACCEPT),
        says(INVALID_REQUEST, FIRST_PAST),
    )
    .await;
    refused(
        |at| Ask::new().ack(at, 15, 24, ACCEPT),
        says(INVALID_REQUEST, LAST_PAST),
    )
    .await;
}

#[tokio::test]
async fn with_nothing_in_flight_the_range_is_not_in_the_cache() {
    let queue = Queue::start().await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(
        a.ack(queue.at, 0, 4, ACCEPT).await,
        says(INVALID_STATE, NOT_CACHED)
    );
}

#[tokio::test]
async fn an_error_in_one_range_leaves_the_others_of_its_partition_alone() {
    refused(
        |at| Ask::new().ack(at, 0, 4, ACCEPT).ack(at, 15, 30, ACCEPT),
        says(INVALID_REQUEST, LAST_PAST),
    )
    .await;
    refused(
        |at| Ask::new().ack(at, 0, 4, ACCEPT).ack(at, 10, 12, 9),
        bare(INVALID_REQUEST),
    )
    .await;
}

#[tokio::test]
async fn partitions_fail_and_succeed_on_their_own() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    queue.produce_to(0, 5).await;
    queue.produce_to(1, 5).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(p0).and(p1)).await;
    let unknown_topic = At {
        topic: ottla_protocol::Uuid::from_u128(0xbad),
        partition: 0,
    };
    let unknown_partition = p0.p(9);
    let ask = Ask::new()
        .ack(p0, 0, 4, ACCEPT)
        .ack(p1, 0, 9, ACCEPT)
        .ack(unknown_topic, 0, 4, ACCEPT)
        .ack(unknown_partition, 0, 4, ACCEPT);
    let answer = a.acknowledge(&ask).await;
    assert_eq!(answer.of(p0), Some(OK));
    assert_eq!(answer.of(p1), Some(says(INVALID_REQUEST, LAST_PAST)));
    assert_eq!(
        answer.of(unknown_topic),
        Some(bare(ErrorCode::UNKNOWN_TOPIC_ID))
    );
    assert_eq!(
        answer.of(unknown_partition),
        Some(bare(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))
    );
    assert_eq!(a.ack(p1, 0, 4, ACCEPT).await, OK);
}

#[tokio::test]
async fn acknowledging_what_was_never_loaded_is_refused() {
    let queue = Queue::of(2, Settings::new(), &[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(
        a.ack(queue.at.p(1), 0, 4, ACCEPT).await,
        says(
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition."
        )
    );
}

// D12
#[tokio::test]
async fn records_below_a_moved_log_start_are_silently_done() {
    let (mut queue, mut a) = holding_20().await;
    assert_eq!(queue.admin.delete_records(Queue::TOPIC, 0, 15).await, 15);
    assert_eq!(a.ack(queue.at, 0, 4, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 5, 9, RELEASE).await, OK);
    assert_eq!(a.renew(queue.at, 10, 14).await, OK);
    assert_eq!(a.ack(queue.at, 15, 19, RELEASE).await, OK);
    assert_eq!(
        a.fetch(&Ask::new()).await.acquired(queue.at),
        "15-19#2 20-24#1",
        "trimmed ones never come back"
    );
    assert_eq!(a.ack(queue.at, 15, 24, ACCEPT).await, OK);
    assert_eq!(queue.produce(1).await, 25);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "25-25#1");
}

#[tokio::test]
async fn acknowledgements_are_persisted_before_they_are_answered() {
    let (mut queue, mut a) = holding_20().await;
    assert_eq!(queue.start_and_lag().await, (-1, -1), "nothing written yet");
    assert_eq!(a.ack(queue.at, 0, 1, ACCEPT).await, OK);
    let (start, lag) = queue.start_and_lag().await;
    assert_eq!(lag, 23);
    assert!(start == 0 || start == 2, "{start}");
}

// D35
#[tokio::test]
async fn the_lag_counts_records_that_are_done_in_the_middle() {
    let (mut queue, mut a) = holding_20().await;
    assert_eq!(a.ack(queue.at, 10, 14, ACCEPT).await, OK);
    assert_eq!(queue.start_and_lag().await, (0, 20));
    assert_eq!(a.ack(queue.at, 15, 15, REJECT).await, OK);
    assert_eq!(queue.start_and_lag().await, (0, 19));
    assert_eq!(a.ack(queue.at, 16, 16, RELEASE).await, OK);
    assert_eq!(queue.start_and_lag().await, (0, 19));
}

// D2, D7
#[tokio::test]
async fn members_that_come_and_go_with_mixed_acknowledgements_lose_and_double_nothing() {
    for round in 0..8_i64 {
        let mut queue = Queue::with(&[("share.delivery.count.limit", "10")]).await;
        let mut members = vec![];
        let mut accepted = vec![];
        for stage in 0..4 {
            members.push(queue.member(&format!("member {stage}")).await);
            queue.produce(7).await;
            for (turn, member) in members.iter_mut().enumerate() {
                let ask = Ask::of(queue.at).exactly(5);
                let ask = if member.epoch == 0 {
                    ask
                } else {
                    Ask::new().exactly(5)
                };
                let offsets = member.fetch(&ask).await.offsets(queue.at);
                for offset in offsets {
                    let keep = (offset + round + turn as i64) % 3 != 0;
                    let kind = if keep { ACCEPT } else { RELEASE };
                    assert_eq!(member.ack(queue.at, offset, offset, kind).await, OK);
                    if keep {
                        accepted.push(offset);
                    }
                }
            }
            if stage % 2 == 1 {
                members.remove(0);
            }
        }
        let mut last = queue.member("last").await;
        let mut ask = Ask::of(queue.at);
        loop {
            let offsets = last.fetch(&ask.max_wait(20)).await.offsets(queue.at);
            if offsets.is_empty() {
                break;
            }
            for &offset in &offsets {
                assert_eq!(last.ack(queue.at, offset, offset, ACCEPT).await, OK);
            }
            accepted.extend(offsets);
            ask = Ask::new();
        }
        accepted.sort_unstable();
        assert_eq!(accepted, (0..28).collect::<Vec<i64>>(), "round {round}");
    }
}

// D42
#[tokio::test]
async fn without_a_dead_letter_topic_a_reject_just_archives() {
    let (mut queue, mut a) = holding_20().await;
    let before = queue.admin.topic_names().await;
    assert_eq!(a.ack(queue.at, 0, 9, REJECT).await, OK);
    assert_eq!(a.ack(queue.at, 10, 19, ACCEPT).await, OK);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "20-24#1");
    assert_eq!(queue.admin.topic_names().await, before);
}
