//! Long random runs of a share partition against the naive model: writes that fail or stay under way,
//! log starts that move, limits that change, time that passes, logs with holes and aborted records.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;

use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AcquireMode, AcquireRequest, InFlight, Limits, OffsetRange, PersistedState,
    RecordState, StateBatch,
};
use proptest::prelude::*;
use support::naive::Pair;

const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// A log: batches with holes between them, some of them aborted.
#[derive(Clone, Debug)]
struct Log {
    batches: Vec<OffsetRange>,
    aborted: Vec<OffsetRange>,
    /// Batches, or parts of them, that hold no data.
    non_data: Vec<OffsetRange>,
}

fn logs() -> impl Strategy<Value = Log> {
    let batch = (
        prop_oneof![8 => Just(0i64), 1 => 1..4i64],
        1..6i64,
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, (0..3i64, 0..3i64)),
    );
    prop::collection::vec(batch, 20..40).prop_map(|parts| {
        let (mut batches, mut aborted, mut non_data, mut next) = (vec![], vec![], vec![], 0);
        for (hole, len, abort, empty) in parts {
            let range = OffsetRange::new(next + hole, next + hole + len - 1);
            batches.push(range);
            if abort {
                aborted.push(range);
            }
            if let Some((skip, len)) = empty {
                let first = range.first + skip;
                let range = OffsetRange::new(first, range.last.min(first + len));
                non_data.extend(Some(range).filter(|range| !range.is_empty()));
            }
            next = range.last + 1;
        }
        Log {
            batches,
            aborted,
            non_data,
        }
    })
}

#[derive(Clone, Debug)]
enum Call {
    Acquire {
        member: usize,
        max: i32,
        exact: bool,
        batch_size: i32,
        reads: usize,
        committed: bool,
    },
    /// Offsets relative to the start of the window.
    Ack {
        member: usize,
        at: i64,
        lens: Vec<(i64, i64)>,
        types: Vec<i8>,
        each: bool,
        renew: bool,
    },
    /// Acknowledges a run that somebody holds, as clients do.
    AckHeld {
        pick: usize,
        kind: i8,
    },
    ReleaseMember(usize),
    Advance(i64),
    Take,
    Settle(bool),
    SettleAll,
    LogStart(i64),
    Limits(Limits),
    /// A unit that was handed out was written or given up; or the first so many of its records were.
    Letters {
        pick: usize,
        records: i64,
        written: bool,
    },
    /// Paused or not, and by how much the generation grows.
    Delivery(bool, u64),
    /// The log loses the batch at this place: compaction.
    Compact(usize),
}

fn limits() -> impl Strategy<Value = Limits> {
    let deliveries = prop_oneof![
        Just(1i16),
        Just(2),
        Just(3),
        Just(5),
        Just(10),
        Just(i16::MAX)
    ];
    let timeout = prop::option::weighted(0.7, 1..40i64);
    let letters = (prop::bool::weighted(0.7), timeout);
    let renews = prop::bool::weighted(0.9);
    (1..40i32, deliveries, 1..50i64, renews, letters).prop_map(
        |(max_record_locks, delivery_count_limit, lock_duration_ms, renew_enabled, letters)| {
            Limits {
                max_record_locks,
                delivery_count_limit,
                lock_duration_ms,
                renew_enabled,
                dead_letters: letters.0,
                dlq_write_timeout_ms: letters.1,
            }
        },
    )
}

fn calls() -> impl Strategy<Value = Call> {
    let kind = prop_oneof![4 => Just(1i8), 4 => Just(2), 2 => Just(3), 2 => Just(0), 2 => Just(4)];
    let member = 0..MEMBERS.len();
    prop_oneof![
        10 => (member.clone(), 0..15i32, any::<bool>(), 1..8i32, 1..6usize, any::<bool>()).prop_map(
            |(member, max, exact, batch_size, reads, committed)| Call::Acquire {
                member, max, exact, batch_size, reads, committed,
            }
        ),
        3 => (
            member.clone(),
            -3..12i64,
            prop::collection::vec((-1..3i64, 0..6i64), 1..4),
            prop::collection::vec(-1..6i8, 1..7),
            any::<bool>(),
            any::<bool>(),
        ).prop_map(|(member, at, lens, types, each, renew)| Call::Ack {
            member, at, lens, types, each, renew,
        }),
        10 => (0..20usize, kind).prop_map(|(pick, kind)| Call::AckHeld { pick, kind }),
        2 => member.prop_map(Call::ReleaseMember),
        3 => (0..30i64).prop_map(Call::Advance),
        6 => Just(Call::Take),
        6 => any::<bool>().prop_map(Call::Settle),
        3 => Just(Call::SettleAll),
        1 => (0..6i64).prop_map(Call::LogStart),
        1 => limits().prop_map(Call::Limits),
        1 => (0..40usize).prop_map(Call::Compact),
        6 => (0..20usize, 1..8i64, any::<bool>())
            .prop_map(|(pick, records, written)| Call::Letters { pick, records, written }),
        1 => (prop::bool::weighted(0.4), 0..3u64).prop_map(|(paused, by)| Call::Delivery(paused, by)),
    ]
}

struct Run {
    pair: Pair,
    log: Log,
    limits: Limits,
}

impl Run {
    fn new(log: Log, limits: Limits) -> Self {
        let part = SharePartition::load(&PersistedState::default(), 0, 0, &limits);
        Self {
            pair: Pair::new(part, &limits),
            log,
            limits,
        }
    }

    fn call(&mut self, call: &Call) {
        let start = self.pair.part.start_offset();
        match call {
            Call::Acquire {
                member,
                max,
                exact,
                batch_size,
                reads,
                committed,
            } => {
                self.acquire(
                    MEMBERS[*member],
                    *max,
                    *exact,
                    *batch_size,
                    *reads,
                    *committed,
                );
            }
            Call::Ack {
                member,
                at,
                lens,
                types,
                each,
                renew,
            } => {
                let types = if *each { &types[..] } else { &types[..1] };
                self.ack(MEMBERS[*member], start + at, lens, types, *renew);
            }
            Call::AckHeld { pick, kind } => self.ack_held(*pick, *kind),
            Call::ReleaseMember(member) => {
                self.pair.release_member(MEMBERS[*member], &self.limits);
            }
            Call::Advance(ms) => {
                self.pair.now += ms;
                self.pair.on_deadline(&self.limits);
            }
            Call::Take => drop(self.pair.take()),
            Call::Settle(ok) => self.pair.settle(*ok, &self.limits),
            Call::SettleAll => self.pair.settle_all(&self.limits),
            Call::LogStart(by) => self.pair.log_start_moved(start + by, &self.limits),
            Call::Limits(limits) => self.limits = *limits,
            Call::Letters {
                pick,
                records,
                written,
            } => self.letters(*pick, *records, *written),
            Call::Delivery(paused, by) => {
                let generation = self.pair.post.generation + by;
                self.pair.set_delivery(*paused, generation, &self.limits);
            }
            Call::Compact(at) => {
                if *at < self.log.batches.len() - 1 {
                    let gone = self.log.batches.remove(*at);
                    self.log.aborted.retain(|range| *range != gone);
                }
            }
        }
    }

    fn acquire(
        &mut self,
        member: &str,
        max_records: i32,
        exact: bool,
        batch_size: i32,
        reads: usize,
        committed: bool,
    ) {
        let Some(fetch_offset) = self.pair.next_fetch_offset(&self.limits) else {
            return;
        };
        let read = self
            .log
            .batches
            .iter()
            .filter(|batch| batch.last >= fetch_offset);
        let batches: Vec<OffsetRange> = read.take(reads).copied().collect();
        let Some(last) = batches.last() else { return };
        let aborted: Vec<OffsetRange> = self
            .log
            .aborted
            .iter()
            .filter(|range| batches.contains(range))
            .copied()
            .collect();
        let holds = |range: &&OffsetRange| {
            let mut batches = batches.iter();
            batches.any(|batch| batch.first <= range.first && range.last <= batch.last)
        };
        let non_data: Vec<OffsetRange> = self.log.non_data.iter().filter(holds).copied().collect();
        let request = AcquireRequest {
            max_records,
            batch_size,
            mode: if exact {
                AcquireMode::RecordLimit
            } else {
                AcquireMode::BatchOptimized
            },
            fetch_offset,
            batches: &batches,
            upper: if committed { last.first } else { last.last + 1 },
            aborted: if committed { &aborted } else { &[] },
            non_data: &non_data,
        };
        self.pair.acquire(member, &self.limits, &request);
        if exact {
            return;
        }
        // Whole batches: beyond what was in the window, at most one batch more than it takes.
        let window = self.pair.part.end_offset() - self.pair.part.start_offset() + 1;
        let longest = self
            .log
            .batches
            .iter()
            .map(|batch| batch.len())
            .max()
            .unwrap();
        assert!(window <= 40 + longest, "window of {window}");
    }

    /// Batches behind one another from `next` on, each so far from the one before and so long.
    fn ack(&mut self, member: &str, mut next: i64, lens: &[(i64, i64)], types: &[i8], renew: bool) {
        let mut batches = Vec::new();
        for &(skip, len) in lens {
            let first = next + skip;
            let last = first + len - 1;
            batches.push(AckBatch { first, last, types });
            next = first + len;
        }
        let limits = &self.limits;
        self.pair.acknowledge(member, &batches, renew, limits);
    }

    fn letters(&mut self, pick: usize, records: i64, written: bool) {
        let units = &self.pair.post.units;
        // The latest ones: the others have mostly had their outcome.
        let Some(unit) = units.iter().rev().nth(pick % units.len().clamp(1, 4)) else {
            return;
        };
        let (id, range) = (unit.id, unit.range);
        let last = range.last.min(range.first + records - 1);
        let range = OffsetRange { last, ..range };
        if written {
            self.pair.write_letters(id, range, &self.limits);
        } else {
            self.pair.give_up_letters(id, range, &self.limits);
        }
    }

    fn ack_held(&mut self, pick: usize, kind: i8) {
        let held: Vec<InFlight> = self
            .pair
            .part
            .in_flight()
            .into_iter()
            .filter(|run| run.member.is_some())
            .collect();
        let Some(run) = held.get(pick % held.len().max(1)) else {
            return;
        };
        let batch = AckBatch {
            first: run.first,
            last: run.last,
            types: &[kind],
        };
        let member = run.member.clone().unwrap();
        self.pair.acknowledge(&member, &[batch], true, &self.limits);
    }

    /// After the end of all locks and writes nothing is held, and a plain consumer drains the rest.
    fn finish(&mut self) {
        self.pair.now += 10_000;
        self.pair.on_deadline(&self.limits);
        self.pair.settle_all(&self.limits);
        assert_eq!(self.pair.part.lock_count(), 0);
        self.limits.renew_enabled = true;
        self.limits.dlq_write_timeout_ms = Some(1);
        self.pair.set_delivery(false, 0, &self.limits);
        for _ in 0..2000 {
            self.pair.now += 1;
            self.pair.on_deadline(&self.limits);
            self.acquire("z", 3, true, 3, 3, false);
            let held: Vec<InFlight> = self
                .pair
                .part
                .in_flight()
                .into_iter()
                .filter(|r| r.member.is_some())
                .collect();
            for run in held {
                let batch = AckBatch {
                    first: run.first,
                    last: run.last,
                    types: &[1],
                };
                assert!(self.pair.acknowledge("z", &[batch], false, &self.limits));
            }
            self.pair.settle_all(&self.limits);
        }
        let end = self.log.batches.last().unwrap().last;
        assert!(self.pair.part.start_offset() > end, "stuck below {end}");
    }
}

fn held_by_time(part: &SharePartition, limits: &Limits) -> (Vec<InFlight>, i64, Option<i64>) {
    (
        part.in_flight(),
        part.start_offset(),
        part.next_deadline(limits),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_long_random_run_agrees_with_the_naive_model(
        log in logs(),
        limits in limits(),
        calls in prop::collection::vec(calls(), 1..150),
    ) {
        let mut run = Run::new(log, limits);
        for call in &calls {
            run.call(call);
        }
        run.finish();
    }

    #[test]
    fn advancing_by_n_equals_advancing_n_times_by_one(
        log in logs(),
        limits in limits(),
        calls in prop::collection::vec(calls(), 1..60),
        ms in 1..120i64,
        ok in any::<bool>(),
    ) {
        let mut run = Run::new(log, limits);
        for call in &calls {
            run.call(call);
        }
        let settle = |pair: &mut Pair| {
            while pair.take().is_some() {
                pair.settle(ok, &run.limits);
            }
        };
        run.pair.settle(ok, &run.limits);
        settle(&mut run.pair);
        let (mut step, mut leap) = (run.pair.clone(), run.pair.clone());
        let end = leap.now + ms;
        // A letter's time begins when the lock has ended: then the leap is one from deadline to deadline.
        while run.limits.dlq_write_timeout_ms.is_some()
            && let Some(next) = leap.part.next_deadline(&run.limits).filter(|next| *next < end)
        {
            leap.now = leap.now.max(next);
            leap.on_deadline(&run.limits);
            settle(&mut leap);
        }
        leap.now = end;
        leap.on_deadline(&run.limits);
        settle(&mut leap);
        for _ in 0..ms {
            step.now += 1;
            step.on_deadline(&run.limits);
            settle(&mut step);
        }
        prop_assert_eq!(held_by_time(&leap.part, &run.limits), held_by_time(&step.part, &run.limits));
    }

    #[test]
    fn what_was_written_loads_as_what_is_in_memory(
        log in logs(),
        limits in limits(),
        calls in prop::collection::vec(calls(), 1..100),
    ) {
        let mut run = Run::new(log, limits);
        let mut persisted: BTreeMap<i64, (u8, i16)> = BTreeMap::new();
        let mut start = 0;
        for call in &calls {
            if !matches!(call, Call::Take | Call::Settle(_) | Call::SettleAll) {
                run.call(call);
            }
            while let Some(write) = run.pair.take() {
                start = write.start_offset;
                for batch in &write.batches {
                    for offset in batch.first..=batch.last {
                        persisted.insert(offset, (batch.state, batch.delivery_count));
                    }
                }
                run.pair.settle(true, &run.limits);
            }
        }
        let batch = |(&first, &(state, delivery_count)): (&i64, &(u8, i16))| StateBatch {
            first,
            last: first,
            state,
            delivery_count,
        };
        let state = PersistedState {
            start_offset: start,
            batches: persisted.iter().map(batch).collect(),
            ..PersistedState::default()
        };
        let loaded = SharePartition::load(&state, start, 0, &run.limits);
        prop_assert!(loaded.start_offset() <= run.pair.part.start_offset());
        let mut shown = BTreeMap::new();
        for run in loaded.in_flight() {
            for offset in run.first..=run.last {
                shown.insert(offset, (run.state, run.delivery_count));
            }
        }
        for run in run.pair.part.in_flight() {
            for offset in run.first..=run.last {
                // Records that the log lost are found missing again, they need no write; neither do
                // acquisitions, which are lost.
                let written = persisted.get(&offset).copied();
                let expected = match run.state {
                    RecordState::Acquired => continue,
                    RecordState::Available if run.delivery_count == 0 => continue,
                    RecordState::Archived if written.is_none_or(|(state, _)| state != 4) => continue,
                    state => (state, run.delivery_count),
                };
                prop_assert_eq!(shown.get(&offset), Some(&expected));
            }
        }
    }
}
