//! One share partition (KIP-932): a pure machine that decides which records a member gets, what an
//! acknowledgement does, and what must be written.
//!
//! Time is an argument; a lock runs until its deadline and ends at it, in whichever call first sees
//! that time. Acquisition is in `acquire.rs`, acknowledgement in `acknowledge.rs`, loading and writes
//! in `persist.rs`, dead letters in `letters.rs`.

use super::in_flight::{Record, Window};
use super::letters::Letters;
use super::locks::{Locks, NONE};
use super::persist::{Changes, Outbox, given_back};
use super::spans::Spans;
use super::types::{InFlight, Limits, OffsetRange, RecordState};
use crate::types::Ts;

/// Whether the group gets records, and how often that has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) paused: bool,
    pub(super) generation: u64,
}

impl Delivery {
    /// Whether records that were acquired in `generation` count for the breaker.
    pub(super) fn samples(self, generation: Option<u64>) -> bool {
        !self.paused && generation == Some(self.generation)
    }
}

/// A share partition's records in flight. Memory is bounded by the window, which is bounded by
/// [`Limits::max_record_locks`] and one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharePartition {
    pub(super) window: Window,
    pub(super) locks: Locks,
    pub(super) outbox: Outbox,
    pub(super) letters: Letters,
    pub(super) delivery: Delivery,
    /// Offsets of the window that hold no data.
    pub(super) non_data: Spans,
    pub(super) wake: bool,
}

impl SharePartition {
    /// Offsets below are done.
    pub fn start_offset(&self) -> i64 {
        self.window.start()
    }

    /// The last offset that was ever acquired or loaded; `start_offset() - 1` when nothing is in
    /// flight.
    pub fn end_offset(&self) -> i64 {
        self.window.end()
    }

    /// How many records at or after the start offset are done.
    pub fn delivery_complete_count(&self) -> i32 {
        self.window.done() as i32
    }

    /// How many acquisition locks there are, each over one acquired range or a part of it.
    pub fn lock_count(&self) -> usize {
        self.locks.len()
    }

    /// Bytes that the partition holds on the heap, without member names, writes that wait and reports.
    pub fn heap_bytes(&self) -> usize {
        self.window.heap_bytes()
            + self.locks.heap_bytes()
            + self.letters.heap_bytes()
            + self.non_data.heap_bytes()
    }

    /// Pauses the group's delivery or lets it run, as of `generation`: while it is paused nothing is
    /// acquired, and all else goes on. Records that were acquired in an earlier generation are no
    /// samples for the breaker any more.
    pub fn set_delivery(&mut self, paused: bool, generation: u64) {
        self.wake |= self.delivery.paused && !paused;
        self.delivery = Delivery { paused, generation };
    }

    /// Where a fetch should read: the first available record, else the end of the window. None when
    /// no record is available and the window is full, and while delivery is paused.
    pub fn next_fetch_offset(&mut self, limits: &Limits) -> Option<i64> {
        if self.delivery.paused {
            return None;
        }
        let room = (self.window.len() as i64) < i64::from(limits.max_record_locks);
        self.window
            .first_free()
            .or_else(|| room.then(|| self.window.end() + 1))
    }

    /// Whether waiting fetches should look again, since the last time this was asked: records became
    /// available, or the window moved.
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wake)
    }

    /// The earliest deadline of a lock, or of a letter.
    pub fn next_deadline(&self, limits: &Limits) -> Option<Ts> {
        let lock = self.locks.first_due().map(|(_, deadline)| deadline);
        lock.into_iter().chain(self.letters.first_due(limits)).min()
    }

    /// Ends the locks whose deadline has come: their records are given back, or end at the delivery
    /// limit, once the proposal of it is settled. Letters whose time has run out are archived likewise.
    pub fn on_deadline(&mut self, now: Ts, limits: &Limits) {
        self.expire(now, limits);
    }

    /// Gives back every record that `member` holds, as when their locks ended.
    pub fn release_member(&mut self, now: Ts, member: &str, limits: &Limits) {
        self.expire(now, limits);
        let member = self.locks.member(member);
        if member == NONE {
            return;
        }
        let mut changes = Changes::default();
        for lock in self.locks.running_of(member) {
            self.end_lock(lock, limits, &mut changes);
        }
        self.propose(changes, true);
    }

    /// The log begins at `log_start` now: records below are done, whatever their state.
    pub fn log_start_moved(&mut self, log_start: i64) {
        if log_start <= self.window.start() {
            return;
        }
        while self.window.start() < log_start {
            let Some(record) = self.window.pop() else {
                break;
            };
            if record.lock != NONE {
                self.locks.drop_one(record.lock);
            }
        }
        if self.window.is_empty() {
            self.window.jump(log_start.max(self.window.start()));
        }
        let rest = OffsetRange::new(self.window.start(), self.window.end());
        self.window.split_around(rest);
        self.advance();
        self.wake = true;
    }

    /// The records of the window, in runs of the same situation.
    pub fn in_flight(&self) -> Vec<InFlight> {
        let mut runs: Vec<InFlight> = Vec::new();
        let mut before: Option<Record> = None;
        for offset in self.window.start()..=self.window.end() {
            let record = self.window.get(offset);
            match runs.last_mut() {
                Some(run) if before == Some(record) => run.last = offset,
                _ => runs.push(self.describe(offset, record)),
            }
            before = Some(record);
        }
        runs
    }

    fn describe(&self, offset: i64, record: Record) -> InFlight {
        let lock = (record.lock != NONE).then(|| self.locks.get(record.lock));
        InFlight {
            first: offset,
            last: offset,
            state: record.state,
            pending: record.pending,
            delivery_count: record.delivery_count,
            member: lock.map(|lock| self.locks.member_name(lock.member).to_owned()),
            deadline: lock.map(|lock| lock.deadline),
        }
    }

    pub(super) fn expire(&mut self, now: Ts, limits: &Limits) {
        let mut changes = Changes::default();
        while let Some((lock, deadline)) = self.locks.first_due()
            && deadline <= now
        {
            self.letters.reports.expired += self.end_lock(lock, limits, &mut changes);
        }
        self.propose(changes, true);
        self.time_out_letters(now, limits);
    }

    /// Stops `lock`. Its records are marked to be given back, but for those that are being written:
    /// they are looked at again when that write is settled. How many are given back.
    fn end_lock(&mut self, lock: u32, limits: &Limits, changes: &mut Changes) -> u64 {
        self.locks.stop(lock);
        let held = *self.locks.get(lock);
        let range = self.window.clip(OffsetRange::new(held.first, held.last));
        let mut count = 0;
        for offset in range.first..=range.last {
            let record = self.window.get(offset);
            if record.lock == lock && record.pending.is_none() {
                let next = given_back(record.delivery_count, limits);
                self.window.set(offset, record.becoming(next.state));
                changes.add(offset, next);
                count += 1;
            }
        }
        count
    }

    /// Moves the start offset over the records that are done.
    pub(super) fn advance(&mut self) {
        if self.window.pop_done() {
            self.wake = true;
        }
        if !self.non_data.is_empty() {
            self.non_data
                .take(OffsetRange::new(0, self.window.start() - 1));
        }
    }

    /// The acceptance of records, still locked, is committed.
    pub(super) fn count_delivered(&mut self, range: OffsetRange) {
        let mut at = range.first;
        while at <= range.last {
            let record = self.window.get(at);
            let whole = self.locks.whole_to(record.lock).unwrap_or(at);
            let run = OffsetRange::new(at, whole.min(range.last));
            if self.delivery.samples(self.generation_of(record)) {
                let data = run.len() - self.non_data.count_in(run);
                self.letters.reports.delivered += data as u64;
            }
            at = run.last + 1;
        }
    }

    /// The delivery generation in which a record was acquired that is locked.
    pub(super) fn generation_of(&self, record: Record) -> Option<u64> {
        (record.lock != NONE).then(|| self.locks.get(record.lock).generation)
    }
}

impl RecordState {
    /// Whether an acknowledgement may change a record in this state.
    pub(super) fn is_acquired(self) -> bool {
        self == Self::Acquired
    }
}
