//! A share partition that is loaded from its persisted state.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::types::{OffsetRange, PersistedState, StateBatch};
use support::{ACCEPT, Bench, REJECT, batch, batches};

#[test]
fn a_loaded_partition_serves_what_was_in_flight_and_what_was_never_written() {
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
fn a_state_that_no_broker_wrote_loads_without_harm() {
    let batch = |first, last| StateBatch {
        first,
        last,
        state: 2,
        delivery_count: -1,
    };
    for start_offset in [0, 7, i64::MAX - 1, i64::MAX, i64::MIN] {
        let state = PersistedState {
            start_offset,
            batches: vec![
                batch(i64::MIN, i64::MAX),
                batch(9, 3),
                batch(8, 9),
                batch(1 << 40, (1 << 40) + 5),
                batch(i64::MAX, i64::MAX),
            ],
            ..PersistedState::default()
        };
        let mut bench = Bench::over(batches(&[20]), &state);
        assert!(bench.part.heap_bytes() < 1000);
        bench.whole("m", 500);
        assert!(bench.ack("m", i64::MIN, i64::MAX, ACCEPT).is_err());
        bench.part.log_start_moved(i64::MAX);
        bench.whole("m", 500);
    }
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
    assert_eq!(bench.window(), "3-5g5");
    assert_eq!(bench.whole("m", 500), "6-9#1", "the others go on");
    assert!(bench.writes.is_empty());
    let letters = bench.part.take_reports().letters;
    assert_eq!(letters.len(), 1);
    let (unit, range) = (letters[0].id, letters[0].range);
    assert_eq!(range, OffsetRange::new(3, 5));
    assert!(bench.part.letters_given_up(unit, range, 0, &bench.limits));
    bench.settle_all(true);
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
