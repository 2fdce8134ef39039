//! What a share fetch acquires: the rows that were measured on Apache Kafka 4.4.0.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::types::{
    AcquireMode, AcquireRequest, OffsetRange, PersistedState, StateBatch,
};
use support::{ACCEPT, Bench, REJECT, RELEASE, batches, text};

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

/// All that a member gets when it releases everything it gets, `rounds` times.
fn always_released(limit: i16, rounds: usize, exact: bool) -> Vec<i64> {
    let mut bench = Bench::new(&[16]);
    bench.limits.delivery_count_limit = limit;
    let mut sizes = Vec::new();
    for _ in 0..rounds {
        let mode = if exact {
            AcquireMode::RecordLimit
        } else {
            AcquireMode::BatchOptimized
        };
        let got = bench.fetch("m", mode, 500);
        sizes.push(got.iter().map(|range| range.last - range.first + 1).sum());
        bench.release_member("m");
    }
    sizes
}

#[test]
fn deliveries_shrink_near_the_limit() {
    for exact in [false, true] {
        let mut expected = vec![16, 16, 16, 8];
        expected.extend([1; 8]);
        expected.push(8);
        expected.extend([1; 8]);
        expected.push(0);
        assert_eq!(always_released(5, expected.len(), exact), expected);
        let mut expected = vec![16, 16];
        expected.extend([1; 16]);
        expected.push(0);
        assert_eq!(always_released(3, expected.len(), exact), expected);
        assert_eq!(always_released(2, 3, exact), [16, 16, 0]);
        assert_eq!(always_released(1, 2, exact), [16, 0]);
        let sizes = always_released(10, 10, exact);
        assert_eq!(sizes, [16, 16, 16, 16, 16, 8, 4, 2, 1, 1]);
    }
}

/// Raises the counts of some records of an extent of 16, releases everything, and fetches.
fn throttled(limit: i16, raised: &[(i64, i64, i16)], more: i64, max: Option<i32>) -> Vec<String> {
    let mut bench = Bench::new(&[16, more]);
    if more == 0 {
        bench.log.truncate(1);
        bench.upper = 16;
    }
    bench.limits.delivery_count_limit = limit;
    bench.whole("m", 1);
    for &(first, last, times) in raised {
        for _ in 0..times {
            bench.acked("m", first, last, RELEASE);
            let got = bench.exact("m", (last - first + 1) as i32);
            assert!(got.starts_with(&format!("{first}-{last}#")), "{got}");
        }
    }
    bench.whole("m", 500);
    bench.release_member("m");
    let mut got = Vec::new();
    loop {
        let text = match max {
            Some(max) => bench.exact("m", max),
            None => bench.whole("m", 500),
        };
        if text.is_empty() {
            return got;
        }
        got.push(text);
    }
}

#[test]
fn a_bad_record_is_delivered_apart_from_its_neighbours() {
    assert_eq!(
        throttled(5, &[(7, 7, 3)], 0, None),
        ["0-6#2", "7-7#5", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(7, 7, 2)], 0, None),
        ["0-6#2 7-7#4", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(0, 1, 2)], 0, None),
        ["0-1#4 2-7#2", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(3, 3, 2), (7, 7, 3)], 0, None),
        ["0-2#2 3-3#4 4-6#2", "7-7#5", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(3, 3, 3), (7, 7, 2)], 0, None),
        ["0-2#2", "3-3#5", "4-6#2 7-7#4 8-11#2", "12-15#2"]
    );
    assert_eq!(
        throttled(5, &[(3, 3, 3), (7, 7, 2)], 0, Some(5)),
        ["0-2#2", "3-3#5", "4-6#2 7-7#4 8-8#2", "9-13#2", "14-15#2"]
    );
    assert_eq!(
        throttled(10, &[(12, 12, 6)], 0, None),
        ["0-11#2 12-12#8 13-15#2"]
    );
    assert_eq!(
        throttled(10, &[(0, 1, 4), (12, 12, 6)], 0, None),
        ["0-1#6 2-7#2", "8-11#2 12-12#8 13-15#2"]
    );
    assert_eq!(
        throttled(10, &[(0, 0, 6), (5, 5, 4)], 0, None),
        ["0-0#8 1-1#2", "2-4#2 5-5#6 6-9#2", "10-15#2"]
    );
    assert_eq!(
        throttled(10, &[(3, 3, 7), (12, 12, 8)], 0, None),
        ["0-2#2 3-3#9 4-11#2", "12-12#10", "13-15#2"]
    );
    assert_eq!(
        throttled(10, &[(0, 0, 4), (1, 1, 6)], 0, None),
        ["0-0#6 1-1#8 2-7#2", "8-15#2"]
    );
}

#[test]
fn a_fetch_ends_after_a_throttled_extent() {
    assert_eq!(
        throttled(5, &[(7, 7, 3)], 16, None),
        ["0-6#2", "7-7#5", "8-15#2 16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(0, 0, 3)], 16, None),
        ["0-0#5", "1-15#2 16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(15, 15, 3)], 16, None),
        ["0-14#2", "15-15#5", "16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(15, 15, 2)], 16, None),
        ["0-14#2 15-15#4", "16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(15, 15, 2)], 16, Some(12)),
        ["0-11#2", "12-14#2 15-15#4", "16-27#2", "28-31#2"]
    );
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
fn records_whose_state_is_being_written_do_not_throttle_their_neighbours() {
    let mut bench = Bench::new(&[16]);
    for _ in 0..4 {
        bench.whole("m", 500);
        bench.release_member("m");
    }
    assert_eq!(bench.whole("m", 500), "0-0#5");
    bench.propose("m", &[(0, 0, &[RELEASE])]).unwrap();
    bench.take();
    assert_eq!(bench.window(), "0-0q*5 1-7a4 8-15a3");
    assert_eq!(bench.part.next_fetch_offset(&bench.limits), Some(1));
}

#[test]
fn a_lowered_limit_gives_one_more_delivery_to_what_is_available() {
    let mut bench = Bench::new(&[3]);
    bench.limits.delivery_count_limit = 10;
    for _ in 0..4 {
        bench.whole("m", 500);
        bench.release_member("m");
    }
    bench.limits.delivery_count_limit = 3;
    assert_eq!(bench.whole("m", 500), "0-0#5");
    bench.release_member("m");
    assert_eq!(bench.window(), "1-2a4");
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
    };
    assert_eq!(
        text(&bench.part.acquire(0, "m", &bench.limits, &request)),
        ""
    );
    assert_eq!(bench.window(), "0-9q1");
}

#[test]
fn a_loaded_partition_serves_what_was_in_flight_and_what_was_never_written() {
    let batch = |first, last, state, delivery_count| StateBatch {
        first,
        last,
        state,
        delivery_count,
    };
    let state = PersistedState {
        start_offset: 2,
        delivery_complete_count: 3,
        batches: vec![
            batch(0, 1, 2, 1),
            batch(4, 4, 2, 1),
            batch(5, 5, 0, 1),
            batch(6, 6, 4, 1),
            batch(7, 7, 2, 1),
        ],
        ..PersistedState::default()
    };
    let mut bench = Bench::over(batches(&[20]), &state);
    assert_eq!(bench.part.start_offset(), 2);
    assert_eq!(bench.part.delivery_complete_count(), 3);
    assert_eq!(bench.window(), "2-3a0 4-4c1 5-5a1 6-6v1 7-7c1");
    assert_eq!(bench.whole("m", 500), "2-3#1 5-5#2 8-19#1");
}

#[test]
fn loading_ends_at_the_first_offset_that_is_not_done() {
    let batch = |first, last, state, delivery_count| StateBatch {
        first,
        last,
        state,
        delivery_count,
    };
    let state = PersistedState {
        start_offset: 0,
        batches: vec![
            batch(0, 4, 2, 1),
            batch(5, 6, 4, 3),
            batch(7, 8, 1, 2),
            batch(9, 9, 77, 1),
        ],
        ..PersistedState::default()
    };
    let bench = Bench::over(batches(&[20]), &state);
    assert_eq!(
        (bench.part.start_offset(), bench.window().as_str()),
        (7, "7-8a2")
    );
}

#[test]
fn records_on_their_way_to_a_dead_letter_queue_are_driven_on_after_a_load() {
    let state = PersistedState {
        start_offset: 3,
        batches: vec![StateBatch {
            first: 3,
            last: 5,
            state: 3,
            delivery_count: 5,
        }],
        ..PersistedState::default()
    };
    let mut bench = Bench::over(batches(&[10]), &state);
    assert_eq!(bench.window(), "3-5g*5");
    assert_eq!(bench.whole("m", 500), "6-9#1", "the others go on");
    assert_eq!(bench.writes.len(), 1);
    assert_eq!(bench.writes[0].batches[0].state, 4);
    assert_eq!(bench.part.start_offset(), 6);
}

#[test]
fn a_stored_start_below_zero_counts_as_zero() {
    let state = PersistedState {
        start_offset: -5,
        ..PersistedState::default()
    };
    let mut bench = Bench::over(batches(&[10]), &state);
    assert_eq!(bench.whole("m", 500), "0-9#1");
}

#[test]
fn a_start_beyond_the_log_waits_for_it() {
    let state = PersistedState {
        start_offset: 15,
        ..PersistedState::default()
    };
    let mut bench = Bench::over(batches(&[10]), &state);
    assert_eq!(bench.whole("m", 500), "");
    bench.acked("m", 3, 9, REJECT);
    bench.log = batches(&[10, 10]);
    bench.upper = 20;
    assert_eq!(bench.whole("m", 500), "15-19#1");
}
