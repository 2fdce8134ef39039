//! Every sequence of calls of a length, over three records and two members, against the naive model:
//! from the beginning, and from a window that both members hold, once and at the delivery limit.
//! `OTTLA_EXHAUSTIVE_DEPTH` sets the length (default 6).

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AcquireMode, AcquireRequest, Limits, OffsetRange, PersistedState,
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

fn run(pair: &mut Pair, call: Call) {
    match call {
        Call::Acquire(member, max_records, mode) => {
            let Some(fetch_offset) = pair.next_fetch_offset(&LIMITS) else {
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
            pair.acquire(member, &LIMITS, &request);
        }
        Call::Ack(member, first, last, kind) => {
            let batch = AckBatch {
                first,
                last,
                types: &[kind],
            };
            pair.acknowledge(member, &[batch], true, &LIMITS);
        }
        Call::Release(member) => pair.release_member(member, &LIMITS),
        Call::Advance => {
            pair.now = pair
                .part
                .next_deadline(&LIMITS)
                .unwrap_or(pair.now)
                .max(pair.now + 5);
            pair.on_deadline(&LIMITS);
        }
        Call::Take => drop(pair.take()),
        Call::Settle(ok) => pair.settle(ok, &LIMITS),
        Call::LogStart => pair.log_start_moved(pair.part.start_offset() + 1),
    }
}

fn explore(pair: &Pair, path: &mut Vec<Call>, depth: usize, sequences: &mut u64) {
    if depth == 0 {
        *sequences += 1;
        // Whatever happened, nothing stays locked or pending for ever.
        let mut pair = pair.clone();
        pair.now += 1000;
        pair.on_deadline(&LIMITS);
        pair.settle_all(&LIMITS);
        assert_eq!(pair.part.lock_count(), 0, "{path:?}");
        return;
    }
    for call in CALLS {
        path.push(call);
        let mut next = pair.clone();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&mut next, call);
        }));
        assert!(outcome.is_ok(), "after {path:?}");
        if next == *pair {
            // Refused, or without effect: all that may follow is tried from here anyway, shorter.
            *sequences += (CALLS.len() as u64).pow(depth as u32 - 1);
        } else {
            explore(&next, path, depth - 1, sequences);
        }
        path.pop();
    }
}

/// a holds the first record and b the others, delivered `deliveries` times.
fn held(deliveries: i16) -> Pair {
    let mut pair = Pair::new(SharePartition::load(
        &PersistedState::default(),
        0,
        0,
        &LIMITS,
    ));
    for delivery in 1..=deliveries {
        run(&mut pair, Call::Acquire("a", 1, AcquireMode::RecordLimit));
        run(&mut pair, Call::Acquire("b", 2, AcquireMode::RecordLimit));
        if delivery < deliveries {
            pair.release_member("a", &LIMITS);
            pair.release_member("b", &LIMITS);
            pair.settle_all(&LIMITS);
        }
    }
    pair
}

#[allow(
    clippy::print_stdout,
    reason = "how much was tried is part of the result"
)]
fn explore_from(name: &str, start: &Pair) {
    let depth = std::env::var("OTTLA_EXHAUSTIVE_DEPTH").map_or(6, |depth| depth.parse().unwrap());
    let mut sequences = 0;
    explore(start, &mut Vec::new(), depth, &mut sequences);
    println!("{name}: {sequences} sequences of {depth} calls");
    assert_eq!(sequences, (CALLS.len() as u64).pow(depth as u32));
}

#[test]
fn every_short_sequence_of_calls_agrees_with_the_naive_model() {
    let part = SharePartition::load(&PersistedState::default(), 0, 0, &LIMITS);
    explore_from("from the beginning", &Pair::new(part));
}

#[test]
fn every_short_sequence_agrees_while_two_members_hold_the_window() {
    explore_from("held once", &held(1));
}

#[test]
fn every_short_sequence_agrees_at_the_delivery_limit() {
    explore_from("held at the limit", &held(LIMITS.delivery_count_limit));
}
