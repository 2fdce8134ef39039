//! A share cell with its drainer, and a stand-in for the log that may fail.
//!
//! Three records, in one batch, of which member a or b holds some when the threads start. A model ends
//! with the same audit: the log, replayed, says what the machine says, and no lock is left behind once
//! all deadlines have passed.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::task::{Context, Waker};

use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};
use ottla_coordinator::share::cell::{ShareCell, Ticket};
use ottla_coordinator::share::letters::Reports;
use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AckError, AcquireMode, AcquireRequest, AcquiredRange, Limits, OffsetRange,
    PersistedState, RecordState, StateWrite, WriteError,
};
use ottla_coordinator::wait::{Signal, Woken};

use super::Count;

pub(crate) const ACCEPT: i8 = 1;

pub(crate) const RELEASE: i8 = 2;

pub(crate) const REJECT: i8 = 3;

pub(crate) const RENEW: i8 = 4;

pub(crate) const LOCK_MS: i64 = 10;

/// Letters may take longer than a lock lasts.
pub(crate) const LETTER_MS: i64 = 20;

pub(crate) const LIMITS: Limits = Limits {
    max_record_locks: 3,
    delivery_count_limit: 5,
    lock_duration_ms: LOCK_MS,
    renew_enabled: true,
    dead_letters: true,
    dlq_write_timeout_ms: Some(LETTER_MS),
};

/// A stand-in for the share coordinator's log. Its lock is where a thread may be interrupted in the
/// middle of a write.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) written: Vec<StateWrite>,
    /// How many writes fail before one succeeds.
    pub(crate) failures: usize,
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) cell: Arc<ShareCell>,
    pub(crate) log: Arc<Mutex<Log>>,
    /// What the drains told. No part of what loom explores.
    pub(crate) reports: std::sync::Arc<std::sync::Mutex<Reports>>,
}

impl World {
    pub(crate) fn new(failures: usize) -> Self {
        let part = SharePartition::load(&PersistedState::default(), 0, 0, &LIMITS);
        let log = Log {
            failures,
            ..Log::default()
        };
        Self {
            cell: Arc::new(ShareCell::new(part)),
            log: Arc::new(Mutex::new(log)),
            reports: std::sync::Arc::default(),
        }
    }

    /// With `records` of the batch 0-2 acquired by a at time 0.
    pub(crate) fn held(failures: usize, records: i32) -> Self {
        let world = Self::new(failures);
        assert_eq!(world.acquire(0, "a", records).len(), 1);
        world
    }

    pub(crate) fn acquire(&self, now: i64, member: &str, max_records: i32) -> Vec<AcquiredRange> {
        let from = self
            .cell
            .next_fetch_offset(&LIMITS)
            .ok()
            .flatten()
            .unwrap_or(3);
        let request = AcquireRequest {
            max_records,
            batch_size: 3,
            mode: AcquireMode::RecordLimit,
            fetch_offset: from,
            batches: &[OffsetRange::new(0, 2)],
            upper: 3,
            aborted: &[],
            non_data: &[],
        };
        self.cell
            .acquire(now, member, &LIMITS, &request)
            .unwrap_or_default()
    }

    pub(crate) fn ack(
        &self,
        now: i64,
        member: &str,
        range: (i64, i64),
        kind: i8,
    ) -> Result<Ticket, AckError> {
        let batch = AckBatch {
            first: range.0,
            last: range.1,
            types: &[kind],
        };
        self.cell
            .acknowledge(now, member, &[batch], kind == RENEW, &LIMITS)
    }

    pub(crate) fn drain(&self, now: i64) {
        let reports = self.cell.drain(now, &LIMITS, &mut |write| {
            let mut log = self.log.lock().unwrap();
            if log.failures > 0 {
                log.failures -= 1;
                return Err(WriteError::Unavailable);
            }
            log.written.push(write.clone());
            Ok(())
        });
        let mut told = self.reports.lock().unwrap();
        told.letters.extend(reports.letters);
        told.timed_out.extend(reports.timed_out);
        told.delivered += reports.delivered;
        told.written += reports.written;
    }

    pub(crate) fn ack_and_drain(
        &self,
        now: i64,
        member: &str,
        range: (i64, i64),
        kind: i8,
    ) -> Result<Ticket, AckError> {
        let ticket = self.ack(now, member, range, kind);
        self.drain(now);
        ticket
    }

    pub(crate) fn run<T: 'static>(&self, op: impl FnOnce(&Self) -> T + 'static) -> JoinHandle<T> {
        let world = self.clone();
        thread::spawn(move || op(&world))
    }

    /// Member b waits at time 1 for what `change` makes available in another thread: it gets that, or
    /// is woken, once.
    pub(crate) fn fetch_beside(&self, change: impl FnOnce(&Self) + 'static) {
        let change = self.run(change);
        let signal = Signal::new();
        let registration = self.cell.waiters().register(&signal);
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        signal.rearm();
        let got = self.acquire(1, "b", 3);
        let parked = got.is_empty()
            && signal
                .poll_woken(&mut Context::from_waker(&waker))
                .is_pending();
        change.join().unwrap();
        if got.is_empty() {
            assert_eq!(signal.woken(), Some(Woken::Fired));
            assert_eq!(count.get(), usize::from(parked));
        }
        drop(registration);
        self.audit(0, true);
    }

    /// The persisted state and delivery count of each record, and the start offset.
    pub(crate) fn replay(&self) -> (i64, BTreeMap<i64, (u8, i16)>) {
        let mut start = 0;
        let mut records = BTreeMap::new();
        for write in &self.log.lock().unwrap().written {
            start = write.start_offset;
            for batch in &write.batches {
                for offset in batch.first..=batch.last {
                    records.insert(offset, (batch.state, batch.delivery_count));
                }
            }
        }
        (start, records)
    }

    pub(crate) fn state(&self, offset: i64) -> Option<RecordState> {
        let runs = self.cell.in_flight();
        runs.iter()
            .find(|run| run.first <= offset && offset <= run.last)
            .map(|run| run.state)
    }

    /// After all threads: the log agrees with the machine, and nothing stays locked or pending.
    /// `log_start` is where the log begins; `strict` when no write of a lock's end may have failed.
    pub(crate) fn audit(&self, log_start: i64, strict: bool) {
        self.log.lock().unwrap().failures = 0;
        self.drain(0);
        let (start, durable) = self.replay();
        assert!(start <= self.cell.start_offset());
        let runs = self.cell.in_flight();
        for run in &runs {
            assert_eq!(run.pending, None, "a write was forgotten");
            for offset in run.first..=run.last {
                let persisted = durable.get(&offset).copied();
                match run.state {
                    RecordState::Acquired => {
                        assert!(persisted.is_none_or(|(state, _)| state == 0), "{run:?}");
                    }
                    RecordState::Available if !strict => {}
                    RecordState::Available if run.delivery_count == 0 => {}
                    state => assert_eq!(persisted, Some((state.code(), run.delivery_count))),
                }
            }
        }
        for offset in log_start..self.cell.start_offset() {
            assert!(
                matches!(durable.get(&offset), Some((2 | 4, _))),
                "{offset} was never written"
            );
        }
        self.cell.on_deadline(1000 * LOCK_MS, &LIMITS);
        self.drain(1000 * LOCK_MS);
        assert_eq!(self.cell.lock_count(), 0);
        assert_eq!(self.cell.next_deadline(&LIMITS), None);
        for run in self.cell.in_flight() {
            assert_ne!(run.state, RecordState::Acquired);
            assert_eq!(run.pending, None);
        }
    }
}

pub(crate) fn accepted(ticket: &Result<Ticket, AckError>) -> bool {
    matches!(ticket, Ok(ticket) if ticket.outcome().unwrap() == Ok(()))
}
