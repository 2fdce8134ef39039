//! What an acknowledgement does: the rows that were measured on Apache Kafka 4.4.0.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::types::{AckBatch, AckError};
use support::{ACCEPT, Bench, GAP, REJECT, RELEASE, RENEW};

const INVALID: Result<(), AckError> = Err(AckError::InvalidRequest(None));

fn state(text: &'static str) -> Result<(), AckError> {
    Err(AckError::InvalidRecordState(Some(text)))
}

fn offset_not_acquired() -> Result<(), AckError> {
    state("The offset cannot be acknowledged. The offset is not acquired.")
}

fn batch_not_acquired() -> Result<(), AckError> {
    state("The batch cannot be acknowledged. The batch is not in the acquired state.")
}

/// Two extents, 0-9 and 10-19, held by a.
fn held() -> Bench {
    let mut bench = Bench::new(&[10, 10, 5]);
    assert_eq!(bench.whole("a", 10), "0-9#1");
    assert_eq!(bench.whole("a", 10), "10-19#1");
    bench
}

fn propose(bench: &mut Bench, batches: &[(i64, i64, &[i8])]) -> Result<(), AckError> {
    bench.propose("a", batches).map(|_| ())
}

#[test]
fn each_type_has_its_outcome() {
    let mut bench = held();
    bench.acked("a", 1, 1, ACCEPT);
    bench.acked("a", 2, 2, RELEASE);
    bench.acked("a", 3, 3, REJECT);
    bench.acked("a", 4, 4, GAP);
    bench.acked("a", 5, 5, RENEW);
    assert_eq!(
        bench.window(),
        "0-0q1 1-1c1 2-2a1 3-4v1 5-5q1 6-9q1 10-19q1"
    );
    assert_eq!(
        propose(&mut bench, &[(6, 9, &[ACCEPT, RELEASE, REJECT, GAP])]),
        Ok(())
    );
    bench.settle_all(true);
    assert_eq!(
        bench.window(),
        "0-0q1 1-1c1 2-2a1 3-4v1 5-5q1 6-6c1 7-7a1 8-9v1 10-19q1"
    );
}

#[test]
fn a_request_of_the_wrong_form_is_invalid_and_applies_nothing() {
    let mut bench = held();
    let before = bench.window();
    let wrong: [&[(i64, i64, &[i8])]; 16] = [
        &[(0, 2, &[1, 1])],
        &[(0, 2, &[1, 1, 1, 1])],
        &[(0, 2, &[])],
        &[(0, 2, &[9])],
        &[(0, 2, &[-1])],
        &[(0, 2, &[5])],
        &[(3, 2, &[1])],
        &[(5, 9, &[1]), (0, 4, &[1])],
        &[(0, 5, &[1]), (3, 9, &[1])],
        &[(0, 4, &[1]), (0, 4, &[1])],
        &[(0, 9, &[1]), (0, 9, &[1])],
        &[(-5, -2, &[1])],
        &[(0, 4, &[1]), (5, 9, &[9])],
        &[(50, 60, &[1]), (70, 80, &[9])],
        &[(i64::MIN, i64::MAX, &[1, 1])],
        &[(0, i64::MAX, &[1, 1])],
    ];
    for batches in wrong {
        assert_eq!(propose(&mut bench, batches), INVALID, "{batches:?}");
    }
    assert_eq!(bench.window(), before);
    assert!(!bench.part.has_writes());
}

#[test]
fn batches_that_share_an_offset_are_refused_as_not_acquired() {
    let mut bench = held();
    let overlap: &[(i64, i64, &[i8])] = &[(0, 5, &[RELEASE]), (5, 9, &[RELEASE])];
    assert_eq!(propose(&mut bench, overlap), offset_not_acquired());
    assert_eq!(bench.window(), "0-9q1 10-19q1");
    let renewing: &[(i64, i64, &[i8])] = &[(0, 5, &[RENEW]), (5, 9, &[RENEW])];
    assert_eq!(propose(&mut bench, renewing), Ok(()));
    let touching: &[(i64, i64, &[i8])] = &[(0, 5, &[RELEASE]), (6, 9, &[RELEASE])];
    assert_eq!(propose(&mut bench, touching), Ok(()));
}

#[test]
fn an_empty_request_is_fine() {
    assert_eq!(held().propose("a", &[]), Ok(None));
}

#[test]
fn a_renewal_needs_the_flag_of_the_request_and_of_the_group() {
    let mut bench = held();
    let batch = [AckBatch {
        first: 0,
        last: 9,
        types: &[RENEW],
    }];
    let limits = bench.limits;
    let refused = bench.part.acknowledge(0, "a", &batch, false, &limits);
    assert_eq!(refused, Err(AckError::InvalidRequest(None)));
    bench.limits.renew_enabled = false;
    assert_eq!(
        bench.ack("a", 0, 9, RENEW),
        state("Renewing acquisition locks is not enabled for the group.")
    );
    bench.limits.renew_enabled = true;
    let limits = bench.limits;
    let plain = [AckBatch {
        first: 0,
        last: 9,
        types: &[ACCEPT],
    }];
    assert!(
        bench
            .part
            .acknowledge(0, "a", &plain, true, &limits)
            .is_ok(),
        "no type 4 inside"
    );
    let mixed: &[(i64, i64, &[i8])] = &[(10, 11, &[ACCEPT, RENEW])];
    assert_eq!(propose(&mut bench, mixed), Ok(()));
}

#[test]
fn offsets_below_the_start_are_ignored() {
    let mut bench = held();
    bench.acked("a", 0, 4, ACCEPT);
    for kind in [GAP, ACCEPT, RELEASE, REJECT, RENEW] {
        assert_eq!(bench.propose("a", &[(0, 3, &[kind])]), Ok(None));
    }
    bench.acked("a", 2, 6, ACCEPT);
    assert_eq!(bench.part.start_offset(), 7);
    let mut bench = held();
    bench.acked("a", -1, 6, ACCEPT);
    assert_eq!(bench.part.start_offset(), 7);
}

#[test]
fn offsets_that_are_not_acquired_are_refused() {
    let mut bench = held();
    bench.acked("a", 1, 1, ACCEPT);
    bench.acked("a", 2, 2, RELEASE);
    bench.acked("a", 3, 3, REJECT);
    for offset in 1..=3 {
        assert_eq!(
            bench.ack("a", offset, offset, ACCEPT),
            offset_not_acquired()
        );
        assert_eq!(
            bench.ack("b", offset, offset, ACCEPT),
            offset_not_acquired()
        );
        assert_eq!(bench.ack("a", 0, offset, ACCEPT), offset_not_acquired());
    }
    assert_eq!(bench.window(), "0-0q1 1-1c1 2-2a1 3-3v1 4-9q1 10-19q1");
}

#[test]
fn a_whole_extent_that_is_not_acquired_is_named_as_a_batch() {
    let mut bench = held();
    bench.acked("a", 10, 19, ACCEPT);
    for (first, last) in [(10, 19), (10, 12), (5, 12), (9, 10)] {
        assert_eq!(bench.ack("a", first, last, ACCEPT), batch_not_acquired());
    }
    bench.advance(1000);
    assert_eq!(bench.ack("a", 0, 9, ACCEPT), batch_not_acquired());
}

#[test]
fn records_of_another_member_are_refused() {
    let mut bench = held();
    let not_owner = state("Member is not the owner of offset");
    for (first, last) in [(0, 9), (0, 3), (0, 19), (5, 12)] {
        assert_eq!(bench.ack("b", first, last, ACCEPT), not_owner);
    }
    bench.acked("a", 0, 9, RELEASE);
    assert_eq!(bench.whole("b", 1), "0-9#2");
    bench.acked("b", 3, 4, RELEASE);
    assert_eq!(bench.ack("a", 0, 9, ACCEPT), not_owner);
    assert_eq!(bench.ack("b", 3, 5, ACCEPT), offset_not_acquired());
    assert_eq!(bench.ack("a", 5, 5, ACCEPT), not_owner);
}

#[test]
fn offsets_past_what_was_acquired_are_refused() {
    let mut bench = held();
    let past = |text| Err(AckError::InvalidRequest(Some(text)));
    assert_eq!(
        bench.ack("a", 20, 22, ACCEPT),
        past("Batch record not found. The first offset in request is past acquired records.")
    );
    assert_eq!(
        bench.ack("a", 15, 22, ACCEPT),
        past("Batch record not found. The last offset in request is past acquired records.")
    );
    assert_eq!(
        Bench::new(&[10]).ack("a", 0, 4, ACCEPT),
        state("Batch record not found. The request batch offsets are not found in the cache.")
    );
}

#[test]
fn a_good_batch_is_not_applied_next_to_a_bad_one() {
    let mut bench = held();
    bench.acked("a", 10, 19, RELEASE);
    let mixed: &[(i64, i64, &[i8])] = &[(0, 9, &[ACCEPT]), (10, 12, &[ACCEPT])];
    assert_eq!(propose(&mut bench, mixed), batch_not_acquired());
    assert_eq!(bench.window(), "0-9q1 10-19a1");
    bench.acked("a", 0, 9, ACCEPT);
}

#[test]
fn a_lock_that_ends_gives_its_records_back_with_their_count() {
    let mut bench = Bench::new(&[10]);
    bench.limits.delivery_count_limit = 3;
    bench.whole("a", 10);
    bench.advance(999);
    assert_eq!(bench.window(), "0-9q1");
    bench.advance(1);
    assert_eq!(bench.window(), "0-9a1");
    assert_eq!(bench.whole("a", 10), "0-9#2");
    bench.advance(1000);
    assert_eq!(bench.whole("a", 10), "0-0#3");
    bench.advance(1000);
    assert_eq!(bench.window(), "1-9a2");
}

#[test]
fn an_acknowledgement_at_the_deadline_is_too_late() {
    let mut bench = Bench::new(&[10]);
    bench.whole("a", 10);
    bench.now = 1000;
    assert_eq!(bench.ack("a", 0, 9, ACCEPT), batch_not_acquired());
    assert_eq!(bench.window(), "0-9a1");
}

#[test]
fn release_reject_and_close_at_the_limit_archive() {
    for limit in [1, 0, -3] {
        let mut bench = Bench::new(&[6]);
        bench.limits.delivery_count_limit = limit;
        bench.whole("a", 10);
        bench.acked("a", 1, 2, RELEASE);
        assert_eq!(bench.window(), "0-0q1 1-2v1 3-5q1");
        bench.release_member("a");
        assert_eq!(
            (bench.window().as_str(), bench.part.start_offset()),
            ("", 6)
        );
    }
}

#[test]
fn renewal_restarts_the_lock_and_keeps_the_count() {
    let mut bench = Bench::new(&[10]);
    bench.whole("a", 10);
    for _ in 0..5 {
        bench.advance(900);
        assert_eq!(bench.propose("a", &[(0, 4, &[RENEW])]), Ok(None));
    }
    assert_eq!(bench.window(), "0-4q1 5-9a1");
    bench.acked("a", 0, 4, ACCEPT);
    assert_eq!(bench.part.start_offset(), 5);
    assert_eq!(bench.part.lock_count(), 0);
}

#[test]
fn a_changed_lock_duration_governs_new_locks_only() {
    let mut bench = Bench::new(&[10, 10]);
    bench.limits.lock_duration_ms = 20_000;
    bench.whole("a", 10);
    bench.limits.lock_duration_ms = 1000;
    bench.whole("a", 10);
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(1000));
    bench.advance(1000);
    assert_eq!(bench.window(), "0-9q1 10-19a1");
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(20_000));
    bench.advance(19_000);
    assert_eq!(bench.window(), "0-19a1");
    assert_eq!(bench.part.next_deadline(&bench.limits), None);
}

#[test]
fn a_session_that_ends_releases_what_its_member_holds_and_nothing_else() {
    let mut bench = Bench::new(&[10, 10, 10]);
    bench.whole("a", 10);
    bench.whole("b", 10);
    bench.whole("a", 10);
    bench.acked("a", 2, 3, ACCEPT);
    bench.release_member("a");
    bench.release_member("nobody");
    assert_eq!(bench.window(), "0-1a1 2-3c1 4-9a1 10-19q1 20-29a1");
    assert_eq!(bench.whole("b", 1), "0-1#2 4-9#2");
}

#[test]
fn a_log_start_that_moves_completes_what_it_passes() {
    let mut bench = Bench::new(&[10, 10, 5]);
    bench.whole("a", 500);
    bench.acked("a", 18, 19, RELEASE);
    bench.part.log_start_moved(15);
    assert_eq!(bench.part.start_offset(), 15);
    for kind in [ACCEPT, RELEASE, REJECT, RENEW] {
        assert_eq!(bench.propose("a", &[(0, 14, &[kind])]), Ok(None));
    }
    assert_eq!(bench.window(), "15-17q1 18-19a1 20-24q1");
    bench.acked("a", 10, 17, ACCEPT);
    bench.part.log_start_moved(3);
    assert_eq!(bench.part.start_offset(), 18);
    bench.part.log_start_moved(100);
    assert_eq!(
        (bench.part.start_offset(), bench.window().as_str()),
        (100, "")
    );
    assert_eq!(bench.part.lock_count(), 0);
    bench.advance(5000);
}

#[test]
fn what_frees_records_or_room_wakes_fetches() {
    let mut bench = held();
    bench.part.take_wake();
    for kind in [RENEW, ACCEPT, REJECT, GAP] {
        bench.acked("a", 5, 5, kind);
        assert!(!bench.part.take_wake(), "type {kind} in the middle");
        bench.part.log_start_moved(0);
        bench = held();
        bench.part.take_wake();
    }
    bench.acked("a", 5, 5, RELEASE);
    assert!(bench.part.take_wake(), "release");
    bench.acked("a", 0, 0, ACCEPT);
    assert!(bench.part.take_wake(), "start moved");
    bench.release_member("a");
    assert!(bench.part.take_wake(), "disconnect");
    bench.whole("a", 10);
    assert!(!bench.part.take_wake());
    bench.advance(1000);
    assert!(bench.part.take_wake(), "expiry");
    bench.part.log_start_moved(2);
    assert!(bench.part.take_wake(), "log start");
}
