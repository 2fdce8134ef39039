//! Every sequence of calls of a length, over three records and two members, against the naive model:
//! from the beginning, and from a window that both members hold, once and at the delivery limit; and
//! the same with dead letters, their outcomes and pauses, also from a state that was loaded with some.
//! `OTTLA_EXHAUSTIVE_DEPTH` sets the length (default 6).

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AcquireMode, AcquireRequest, InFlight, Limits, OffsetRange, PersistedState,
    RecordState, StateBatch,
};
use support::naive::Pair;

const LIMITS: Limits = Limits {
    max_record_locks: 3,
    delivery_count_limit: 2,
    lock_duration_ms: 10,
    renew_enabled: true,
    dead_letters: false,
    dlq_write_timeout_ms: None,
};

const LETTERS: Limits = Limits {
    dead_letters: true,
    dlq_write_timeout_ms: Some(15),
    ..LIMITS
};

#[derive(Clone, Copy, Debug)]
enum Call {
    Acquire(&'static str, i32, AcquireMode),
    Ack(&'static str, i64, i64, i8),
    Release(&'static str),
    /// To the next deadline, or half a lock further.
    Advance,
    Take,
    Settle(bool),
    LogStart,
    /// The unit in this place was written: all of it, or its first record.
    Written(usize, bool),
    /// The unit in this place was given up.
    GivenUp(usize),
    /// Paused, or resumed with the next generation.
    Pause(bool),
}

const CALLS: [Call; 15] = [
    Call::Acquire("a", 1, AcquireMode::RecordLimit),
    Call::Acquire("a", 1, AcquireMode::BatchOptimized),
    Call::Acquire("b", 2, AcquireMode::RecordLimit),
    Call::Ack("a", 0, 0, 1),
    Call::Ack("a", 0, 1, 2),
    Call::Ack("a", 1, 2, 4),
    Call::Ack("b", 1, 1, 1),
    Call::Ack("b", 1, 2, 2),
    Call::Ack("b", 0, 1, 3),
    Call::Release("a"),
    Call::Advance,
    Call::Take,
    Call::Settle(true),
    Call::Settle(false),
    Call::LogStart,
];

const LETTER_CALLS: [Call; 15] = [
    Call::Acquire("b", 2, AcquireMode::RecordLimit),
    Call::Ack("a", 0, 0, 3),
    Call::Ack("b", 1, 2, 3),
    Call::Ack("b", 1, 1, 1),
    Call::Release("b"),
    Call::Advance,
    Call::Take,
    Call::Settle(true),
    Call::Settle(false),
    Call::LogStart,
    Call::Written(0, true),
    Call::Written(0, false),
    Call::GivenUp(1),
    Call::Pause(true),
    Call::Pause(false),
];

fn run(pair: &mut Pair, call: Call, limits: &Limits) {
    match call {
        Call::Acquire(member, max_records, mode) => {
            let Some(fetch_offset) = pair.next_fetch_offset(limits) else {
                return;
            };
            let request = AcquireRequest {
                max_records,
                batch_size: 3,
                mode,
                fetch_offset,
                batches: &[OffsetRange::new(0, 2)],
                upper: 3,
                aborted: &[],
                non_data: &[],
            };
            pair.acquire(member, limits, &request);
        }
        Call::Ack(member, first, last, kind) => {
            let batch = AckBatch {
                first,
                last,
                types: &[kind],
            };
            pair.acknowledge(member, &[batch], true, limits);
        }
        Call::Release(member) => pair.release_member(member, limits),
        Call::Advance => {
            pair.now = pair
                .part
                .next_deadline(limits)
                .unwrap_or(pair.now)
                .max(pair.now + 5);
            pair.on_deadline(limits);
        }
        Call::Take => drop(pair.take()),
        Call::Settle(ok) => pair.settle(ok, limits),
        Call::LogStart => pair.log_start_moved(pair.part.start_offset() + 1, limits),
        Call::Written(at, whole) => {
            if let Some(unit) = pair.post.units.get(at).copied() {
                let range = unit.range;
                let last = if whole { range.last } else { range.first };
                pair.write_letters(unit.id, OffsetRange { last, ..range }, limits);
            }
        }
        Call::GivenUp(at) => {
            if let Some(unit) = pair.post.units.get(at).copied() {
                pair.give_up_letters(unit.id, unit.range, limits);
            }
        }
        Call::Pause(paused) if paused != pair.post.paused => {
            let generation = pair.post.generation + u64::from(!paused);
            pair.set_delivery(paused, generation, limits);
        }
        Call::Pause(_) => {}
    }
}

fn explore(world: &World, pair: &Pair, path: &mut Vec<Call>, depth: usize, sequences: &mut u64) {
    let (calls, limits) = (world.calls, &world.limits);
    if depth == 0 {
        *sequences += 1;
        // Whatever happened, nothing stays locked or pending for ever.
        let mut pair = pair.clone();
        for _ in 0..2 {
            pair.now += 1000;
            pair.on_deadline(limits);
            pair.settle_all(limits);
        }
        assert_eq!(pair.part.next_deadline(limits), None, "{path:?}");
        let stuck = |run: &InFlight| run.state == RecordState::Archiving || run.pending.is_some();
        assert_eq!(pair.part.lock_count(), 0, "{path:?}");
        assert!(!pair.part.in_flight().iter().any(stuck), "{path:?}");
        return;
    }
    for &call in calls {
        path.push(call);
        let mut next = pair.clone();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&mut next, call, limits);
        }));
        assert!(outcome.is_ok(), "after {path:?}");
        if next == *pair {
            // Refused, or without effect: all that may follow is tried from here anyway, shorter.
            *sequences += (calls.len() as u64).pow(depth as u32 - 1);
        } else {
            explore(world, &next, path, depth - 1, sequences);
        }
        path.pop();
    }
}

struct World {
    calls: &'static [Call],
    limits: Limits,
}

const PLAIN: World = World {
    calls: &CALLS,
    limits: LIMITS,
};

const WITH_LETTERS: World = World {
    calls: &LETTER_CALLS,
    limits: LETTERS,
};

fn loaded(world: &World, state: &PersistedState) -> Pair {
    let part = SharePartition::load(state, 0, 0, &world.limits);
    Pair::new(part, &world.limits)
}

/// a holds the first record and b the others, delivered `deliveries` times.
fn held(world: &World, deliveries: i16) -> Pair {
    let limits = &world.limits;
    let mut pair = loaded(world, &PersistedState::default());
    for delivery in 1..=deliveries {
        for (member, records) in [("a", 1), ("b", 2)] {
            let acquire = Call::Acquire(member, records, AcquireMode::RecordLimit);
            run(&mut pair, acquire, limits);
        }
        if delivery < deliveries {
            pair.release_member("a", limits);
            pair.release_member("b", limits);
            pair.settle_all(limits);
        }
    }
    pair
}

#[allow(
    clippy::print_stdout,
    reason = "how much was tried is part of the result"
)]
fn explore_from(name: &str, world: &World, start: &Pair) {
    let depth = std::env::var("OTTLA_EXHAUSTIVE_DEPTH").map_or(6, |depth| depth.parse().unwrap());
    let mut sequences = 0;
    explore(world, start, &mut Vec::new(), depth, &mut sequences);
    println!("{name}: {sequences} sequences of {depth} calls");
    assert_eq!(sequences, (world.calls.len() as u64).pow(depth as u32));
}

#[test]
fn every_short_sequence_of_calls_agrees_with_the_naive_model() {
    let start = loaded(&PLAIN, &PersistedState::default());
    explore_from("from the beginning", &PLAIN, &start);
}

#[test]
fn every_short_sequence_agrees_while_two_members_hold_the_window() {
    explore_from("held once", &PLAIN, &held(&PLAIN, 1));
}

#[test]
fn every_short_sequence_agrees_at_the_delivery_limit() {
    let start = held(&PLAIN, LIMITS.delivery_count_limit);
    explore_from("held at the limit", &PLAIN, &start);
}

#[test]
fn every_short_sequence_with_dead_letters_agrees() {
    explore_from("letters", &WITH_LETTERS, &held(&WITH_LETTERS, 1));
}

#[test]
fn every_short_sequence_with_dead_letters_agrees_at_the_delivery_limit() {
    let start = held(&WITH_LETTERS, LETTERS.delivery_count_limit);
    explore_from("letters at the limit", &WITH_LETTERS, &start);
}

#[test]
fn every_short_sequence_agrees_after_dead_letters_were_loaded() {
    let batch = |offset, state, delivery_count| StateBatch {
        first: offset,
        last: offset,
        state,
        delivery_count,
    };
    let state = PersistedState {
        batches: vec![batch(0, 3, 2), batch(1, 0, 1), batch(2, 3, 1)],
        ..PersistedState::default()
    };
    let start = loaded(&WITH_LETTERS, &state);
    explore_from("loaded letters", &WITH_LETTERS, &start);
}
