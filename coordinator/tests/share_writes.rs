//! What is written of a share partition, and what becomes of records while a write is under way.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::types::{PersistedState, StateBatch, StateWrite};
use support::{ACCEPT, Bench, GAP, REJECT, RELEASE, RENEW, batches};

fn write(start: i64, complete: i32, batches: &[(i64, i64, u8, i16)]) -> StateWrite {
    let batch = |&(first, last, state, delivery_count): &(i64, i64, u8, i16)| StateBatch {
        first,
        last,
        state,
        delivery_count,
    };
    StateWrite {
        start_offset: start,
        delivery_complete_count: complete,
        batches: batches.iter().map(batch).collect(),
    }
}

/// 0-24 held by a.
fn held() -> Bench {
    let mut bench = Bench::new(&[10, 10, 5]);
    bench.whole("a", 500);
    bench
}

#[test]
fn the_written_start_trails_by_one_write() {
    let mut bench = held();
    bench.acked("a", 0, 1, ACCEPT);
    assert_eq!(bench.writes, [write(0, 2, &[(0, 1, 2, 1)])]);
    assert_eq!(bench.part.start_offset(), 2);
    bench.acked("a", 4, 4, ACCEPT);
    assert_eq!(bench.writes[1], write(2, 1, &[(4, 4, 2, 1)]));
}

#[test]
fn a_write_carries_the_changed_records_only_in_runs() {
    let mut bench = held();
    bench.acked("a", 20, 24, ACCEPT);
    bench
        .propose(
            "a",
            &[
                (2, 5, &[ACCEPT, ACCEPT, REJECT, GAP]),
                (6, 8, &[RELEASE]),
                (9, 9, &[1]),
            ],
        )
        .unwrap();
    bench.settle_all(true);
    assert_eq!(
        bench.writes[1],
        write(
            0,
            10,
            &[(2, 3, 2, 1), (4, 5, 4, 1), (6, 8, 0, 1), (9, 9, 2, 1)]
        )
    );
    bench.release_member("a");
    assert_eq!(
        bench.writes[2],
        write(0, 10, &[(0, 1, 0, 1), (10, 19, 0, 1)])
    );
}

#[test]
fn acquisition_and_renewal_write_nothing() {
    let mut bench = held();
    bench.acked("a", 0, 24, RENEW);
    assert!(bench.writes.is_empty());
    assert!(!bench.part.has_writes());
}

#[test]
fn what_is_written_loads_as_it_was() {
    let mut bench = held();
    bench.acked("a", 0, 1, ACCEPT);
    bench.acked("a", 4, 4, ACCEPT);
    bench.acked("a", 5, 5, RELEASE);
    bench.acked("a", 6, 6, REJECT);
    assert_eq!(bench.whole("a", 1), "5-5#2");
    bench.acked("a", 7, 7, ACCEPT);
    let last = bench.writes.last().unwrap();
    let state = PersistedState {
        start_offset: last.start_offset,
        delivery_complete_count: last.delivery_complete_count,
        batches: bench
            .writes
            .iter()
            .flat_map(|write| write.batches.clone())
            .collect(),
        ..PersistedState::default()
    };
    assert_eq!((state.start_offset, state.delivery_complete_count), (2, 3));
    let mut loaded = Bench::over(batches(&[20]), &state);
    assert_eq!(loaded.whole("b", 500), "2-3#1 5-5#2 8-19#1");
}

#[test]
fn a_record_whose_release_is_being_written_is_neither_acquirable_nor_acknowledgeable() {
    let mut bench = held();
    bench.propose("a", &[(0, 4, &[RELEASE])]).unwrap();
    bench.take();
    assert_eq!(bench.window(), "0-4q*1 5-24q1");
    assert_eq!(bench.whole("b", 500), "");
    assert!(bench.ack("a", 0, 4, ACCEPT).is_err());
    bench.settle(true);
    assert_eq!(bench.whole("b", 500), "0-4#2");
}

#[test]
fn a_failed_write_leaves_the_records_as_they_were() {
    let mut bench = held();
    bench
        .propose("a", &[(0, 4, &[ACCEPT]), (5, 9, &[RELEASE])])
        .unwrap();
    bench.take();
    bench.settle(false);
    assert_eq!(bench.window(), "0-24q1");
    bench.acked("a", 0, 9, ACCEPT);
    assert_eq!(bench.part.start_offset(), 10);
}

#[test]
fn a_lock_that_ends_during_a_failing_write_gives_the_record_back() {
    let mut bench = held();
    bench.propose("a", &[(0, 4, &[ACCEPT])]).unwrap();
    bench.take();
    bench.now = 1000;
    bench.part.on_deadline(1000, &bench.limits);
    assert_eq!(bench.window(), "0-4q*1 5-24q*1");
    bench.settle(false);
    bench.settle_all(false);
    assert_eq!(bench.window(), "0-24a1", "whether or not the log takes it");
    assert_eq!(bench.part.next_deadline(&bench.limits), None);
    assert_eq!(bench.part.lock_count(), 0);
}

#[test]
fn a_member_that_goes_during_a_failing_write_leaves_nothing_behind() {
    let mut bench = held();
    bench
        .propose("a", &[(0, 4, &[ACCEPT]), (5, 5, &[RENEW])])
        .unwrap();
    bench.take();
    bench.part.release_member(0, "a", &bench.limits);
    bench.settle(false);
    bench.settle_all(true);
    assert_eq!(bench.window(), "0-24a1");
    assert_eq!(bench.part.lock_count(), 0);
}

#[test]
fn a_lock_that_ends_during_a_succeeding_write_changes_nothing() {
    let mut bench = held();
    bench.propose("a", &[(3, 4, &[ACCEPT])]).unwrap();
    bench.take();
    bench.now = 1000;
    bench.part.on_deadline(1000, &bench.limits);
    bench.settle(true);
    bench.settle_all(true);
    assert_eq!(bench.window(), "0-2a1 3-4c1 5-24a1");
    assert_eq!(bench.part.lock_count(), 0);
}

#[test]
fn a_late_expiry_does_not_open_an_accepted_record() {
    let mut bench = held();
    bench.acked("a", 5, 9, ACCEPT);
    bench.advance(10_000);
    assert_eq!(bench.window(), "0-4a1 5-9c1 10-24a1");
}

#[test]
fn a_log_start_that_moves_during_a_write_wins() {
    for ok in [true, false] {
        let mut bench = held();
        bench.propose("a", &[(0, 14, &[RELEASE])]).unwrap();
        bench.take();
        bench.part.log_start_moved(10);
        bench.settle(ok);
        assert_eq!(bench.part.start_offset(), 10);
        let expected = if ok { "10-14a1 15-24q1" } else { "10-24q1" };
        assert_eq!(bench.window(), expected);
        bench.propose("a", &[(15, 19, &[RELEASE])]).unwrap();
        bench.take();
        bench.part.log_start_moved(40);
        bench.settle(ok);
        assert_eq!(
            (bench.part.start_offset(), bench.window().as_str()),
            (40, "")
        );
        assert_eq!(bench.part.lock_count(), 0);
    }
}

#[test]
fn a_write_that_the_log_start_has_passed_is_empty() {
    let mut bench = held();
    bench.propose("a", &[(0, 9, &[ACCEPT])]).unwrap();
    bench.part.log_start_moved(10);
    assert_eq!(bench.take(), write(10, 0, &[]));
    bench.settle(true);
    assert_eq!(bench.window(), "10-24q1");
}

#[test]
fn writes_are_taken_one_at_a_time_in_the_order_of_proposal() {
    let mut bench = held();
    bench.propose("a", &[(0, 4, &[ACCEPT])]).unwrap();
    bench.propose("a", &[(5, 9, &[ACCEPT])]).unwrap();
    assert_eq!(bench.take(), write(0, 5, &[(0, 4, 2, 1)]));
    assert!(bench.part.take_write().is_none());
    bench.settle(true);
    assert_eq!(bench.take(), write(5, 5, &[(5, 9, 2, 1)]));
    bench.settle(false);
    assert_eq!(bench.window(), "5-24q1");
}

#[test]
fn the_complete_count_is_that_of_the_window_after_the_write() {
    let mut bench = held();
    bench.acked("a", 5, 9, ACCEPT);
    bench.acked("a", 12, 13, REJECT);
    bench.acked("a", 14, 14, RELEASE);
    let counts: Vec<i32> = bench
        .writes
        .iter()
        .map(|w| w.delivery_complete_count)
        .collect();
    assert_eq!(counts, [5, 7, 7]);
    bench.acked("a", 0, 4, ACCEPT);
    assert_eq!(bench.part.delivery_complete_count(), 2);
    assert_eq!(bench.writes[3].delivery_complete_count, 12);
}
