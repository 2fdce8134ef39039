//! What a share fetch acquires: the rows that were measured on Apache Kafka 4.4.0.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::types::{AcquireMode, AcquireRequest, OffsetRange, PersistedState};
use support::{ACCEPT, Bench, RELEASE, batches, text};

#[test]
fn batch_mode_rounds_up_to_whole_batches() {
    let log = [10, 10, 5];
    assert_eq!(Bench::new(&log).whole("m", 3), "0-9#1");
    assert_eq!(Bench::new(&log).whole("m", 12), "0-19#1");
    assert_eq!(Bench::new(&log).whole("m", 500), "0-24#1");
}

#[test]
fn a_range_is_cut_at_the_next_batch_border_once_it_has_batch_size_records() {
    for (batch_size, expected) in [
        (2, "0-9#1 10-19#1 20-24#1"),
        (1, "0-9#1 10-19#1 20-24#1"),
        (7, "0-9#1 10-19#1 20-24#1"),
        (12, "0-19#1 20-24#1"),
        (0, "0-9#1 10-19#1 20-24#1"),
        (-1, "0-9#1 10-19#1 20-24#1"),
    ] {
        let mut bench = Bench::new(&[10, 10, 5]);
        bench.batch_size = batch_size;
        assert_eq!(bench.whole("m", 500), expected, "batch size {batch_size}");
    }
    let mut bench = Bench::new(&[10, 10, 5]);
    bench.batch_size = 2;
    assert_eq!(bench.whole("m", 3), "0-9#1");
    let mut bench = Bench::new(&[10; 7]);
    bench.batch_size = 15;
    assert_eq!(bench.whole("m", 500), "0-19#1 20-39#1 40-59#1 60-69#1");
    bench.release_member("m");
    bench.batch_size = 500;
    assert_eq!(bench.whole("m", 500), "0-19#2 20-39#2 40-59#2 60-69#2");
}

#[test]
fn record_mode_stops_exactly() {
    let mut bench = Bench::new(&[10, 10, 5]);
    assert_eq!(bench.exact("m", 3), "0-2#1");
    assert_eq!(bench.exact("m", 3), "3-5#1");
    let mut bench = Bench::new(&[10, 10, 5]);
    assert_eq!(bench.exact("m", 12), "0-11#1");
    assert_eq!(bench.exact("m", 12), "12-19#1 20-23#1");
    let mut bench = Bench::new(&[10; 8]);
    assert_eq!(bench.exact("m", 33), "0-32#1");
    assert_eq!(bench.exact("m", 33), "33-39#1 40-65#1");
    let mut bench = Bench::new(&[10, 10, 5]);
    assert_eq!(bench.exact("m", 3), "0-2#1");
    assert_eq!(bench.whole("m", 500), "3-9#1 10-24#1");
    let mut bench = Bench::new(&[500]);
    assert_eq!(bench.exact("m", 10), "0-9#1");
}

#[test]
fn nothing_is_acquired_for_no_records() {
    for max in [0, -1] {
        assert_eq!(Bench::new(&[10]).whole("m", max), "");
        assert_eq!(Bench::new(&[10]).exact("m", max), "");
    }
}

#[test]
fn released_parts_come_back_within_their_extent() {
    let mut bench = Bench::new(&[10, 10, 5]);
    bench.whole("a", 500);
    bench.acked("a", 3, 6, RELEASE);
    assert_eq!(bench.whole("b", 500), "3-6#2");
    assert!(
        bench
            .propose("b", &[(4, 5, &[RELEASE]), (6, 6, &[ACCEPT])])
            .is_ok()
    );
    bench.settle_all(true);
    assert_eq!(bench.whole("b", 500), "4-5#3");
    bench.acked("a", 0, 2, RELEASE);
    bench.acked("a", 7, 24, RELEASE);
    assert_eq!(bench.whole("b", 3), "0-2#2 7-24#2");
    assert_eq!(bench.whole("b", 3), "");
}

/// Two batches of one record each: the second is released `times` times while the first is held, then
/// both are free.
fn behind_a_held_record(times: i16) -> Vec<String> {
    let mut bench = Bench::new(&[1, 1]);
    bench.limits.delivery_count_limit = 5;
    bench.exact("holder", 1);
    for _ in 0..times {
        bench.exact("m", 2);
        bench.release_member("m");
    }
    bench.release_member("holder");
    vec![bench.whole("m", 2), bench.whole("m", 2)]
}

#[test]
fn an_extent_near_the_limit_is_not_handed_out_behind_another() {
    assert_eq!(behind_a_held_record(2), ["0-0#2 1-1#3", ""]);
    assert_eq!(behind_a_held_record(3), ["0-0#2", "1-1#4"]);
    assert_eq!(behind_a_held_record(4), ["0-0#2", "1-1#5"]);
}

#[test]
fn the_window_bounds_what_is_acquired() {
    let mut bench = Bench::new(&[10; 30]);
    bench.limits.max_record_locks = 100;
    let got: Vec<String> = (0..4).map(|_| bench.whole("m", 40)).collect();
    assert_eq!(got, ["0-39#1", "40-79#1", "80-99#1", ""]);
    assert_eq!(bench.part.next_fetch_offset(&bench.limits), None);
    bench.acked("m", 50, 59, ACCEPT);
    assert_eq!(bench.whole("m", 40), "");
    bench.acked("m", 0, 4, ACCEPT);
    assert_eq!(bench.whole("m", 40), "100-109#1");
    assert_eq!(bench.whole("m", 40), "");
}

#[test]
fn record_mode_fills_the_window_exactly() {
    let mut bench = Bench::new(&[10; 30]);
    bench.limits.max_record_locks = 100;
    assert_eq!(bench.exact("m", 96), "0-95#1");
    assert_eq!(bench.exact("m", 40), "96-99#1");
    assert_eq!(bench.exact("m", 40), "");
    bench.acked("m", 30, 39, RELEASE);
    assert_eq!(
        bench.exact("m", 4),
        "30-33#2",
        "redelivery inside a full window goes on"
    );
    assert_eq!(bench.exact("m", 40), "34-39#2");
}

#[test]
fn many_members_that_always_release_never_pass_the_window_and_never_stall() {
    let mut bench = Bench::new(&[1; 40]);
    bench.limits.max_record_locks = 10;
    bench.limits.delivery_count_limit = i16::MAX;
    for turn in 0..400 {
        let member = format!("m{}", turn % 8);
        let got = bench.exact(&member, 4);
        assert!(bench.part.end_offset() - bench.part.start_offset() < 10);
        assert!(!got.is_empty(), "turn {turn}");
        bench.release_member(&member);
    }
}

#[test]
fn aborted_records_are_archived_and_control_records_are_not() {
    let log: Vec<OffsetRange> = [
        (0, 1),
        (2, 4),
        (5, 5),
        (6, 7),
        (8, 8),
        (9, 9),
        (10, 11),
        (12, 12),
    ]
    .iter()
    .map(|&(first, last)| OffsetRange::new(first, last))
    .collect();
    let mut uncommitted = Bench::over(log.clone(), &PersistedState::default());
    assert_eq!(uncommitted.whole("m", 500), "0-12#1");
    let mut committed = Bench::over(log, &PersistedState::default());
    committed.aborted = vec![OffsetRange::new(2, 4)];
    committed.upper = 10;
    assert_eq!(committed.whole("m", 500), "0-1#1 5-9#1");
    assert_eq!(committed.window(), "0-1q1 2-4v0 5-9q1");
    committed.upper = 14;
    committed.log.push(OffsetRange::new(13, 13));
    assert_eq!(committed.whole("m", 500), "10-13#1");
    committed.acked("m", 0, 1, ACCEPT);
    assert_eq!(
        committed.part.start_offset(),
        5,
        "the start passes the aborted range"
    );
}

#[test]
fn aborted_records_at_the_front_move_the_start_at_once() {
    let mut bench = Bench::new(&[5, 5]);
    bench.aborted = vec![OffsetRange::new(0, 4)];
    assert_eq!(bench.whole("m", 500), "5-9#1");
    assert_eq!(bench.window(), "5-9q1");
    let mut bench = Bench::new(&[5]);
    bench.aborted = vec![OffsetRange::new(0, 4)];
    assert_eq!(bench.whole("m", 500), "");
    assert_eq!(
        (bench.part.start_offset(), bench.window().as_str()),
        (5, "")
    );
}

#[test]
fn holes_between_batches_are_archived() {
    let log = vec![
        OffsetRange::new(5, 9),
        OffsetRange::new(20, 24),
        OffsetRange::new(25, 29),
    ];
    let mut bench = Bench::over(log, &PersistedState::default());
    assert_eq!(bench.whole("m", 500), "5-9#1 20-29#1");
    assert_eq!(bench.window(), "5-9q1 10-19v0 20-29q1");
    bench.acked("m", 5, 9, ACCEPT);
    assert_eq!(bench.part.start_offset(), 20);
}

#[test]
fn a_hole_wider_than_the_window_waits_for_the_front_and_is_then_jumped() {
    let log = vec![
        OffsetRange::new(0, 4),
        OffsetRange::new(1_000_000, 1_000_004),
    ];
    let mut bench = Bench::over(log, &PersistedState::default());
    assert_eq!(bench.whole("m", 500), "0-4#1");
    assert_eq!(bench.whole("m", 500), "");
    assert_eq!(bench.window(), "0-4q1");
    bench.acked("m", 0, 4, ACCEPT);
    assert_eq!(bench.whole("m", 500), "1000000-1000004#1");
    assert_eq!(bench.part.start_offset(), 1_000_000);
}

#[test]
fn a_batch_that_vanishes_while_it_is_available_is_jumped() {
    let mut bench = Bench::new(&[10, 10, 10]);
    bench.whole("m", 500);
    bench.release_member("m");
    bench.log.remove(0);
    assert_eq!(bench.whole("m", 500), "10-29#2");
    assert_eq!(bench.part.start_offset(), 10);
    bench.release_member("m");
    bench.log = vec![OffsetRange::new(10, 14), OffsetRange::new(22, 29)];
    assert_eq!(bench.whole("m", 500), "10-14#3 22-29#3");
    assert_eq!(bench.window(), "10-14q3 15-21v2 22-29q3");
}

#[test]
fn a_fetch_that_did_not_read_from_the_end_of_the_window_adds_nothing() {
    let mut bench = Bench::new(&[10]);
    bench.whole("m", 500);
    let read = batches(&[10, 10, 10]);
    let request = AcquireRequest {
        max_records: 500,
        batch_size: 500,
        mode: AcquireMode::BatchOptimized,
        fetch_offset: 20,
        batches: &read[2..],
        upper: 30,
        aborted: &[],
        non_data: &[],
    };
    assert_eq!(
        text(&bench.part.acquire(0, "m", &bench.limits, &request)),
        ""
    );
    assert_eq!(bench.window(), "0-9q1");
}
