//! One share partition (KIP-932): a pure machine that decides which records a member gets, what an
//! acknowledgement does, and what must be written.
//!
//! Time is an argument; a lock runs until its deadline and ends at it, in whichever call first sees
//! that time. Acquisition is in `acquire.rs`, acknowledgement in `acknowledge.rs`, loading and writes
//! in `persist.rs`.

use super::in_flight::{Record, Window};
use super::locks::{Locks, NONE};
use super::persist::{Changes, Outbox, given_back};
use super::types::{InFlight, Limits, OffsetRange, RecordState};
use crate::types::Ts;

/// A share partition's records in flight. Memory is bounded by the window, which is bounded by
/// [`Limits::max_record_locks`] and one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharePartition {
    pub(super) window: Window,
    pub(super) locks: Locks,
    pub(super) outbox: Outbox,
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

    /// Bytes that the partition holds on the heap, without member names and writes that wait.
    pub fn heap_bytes(&self) -> usize {
        self.window.heap_bytes() + self.locks.heap_bytes()
    }

    /// Where a fetch should read: the first available record, else the end of the window. None when
    /// no record is available and the window is full.
    pub fn next_fetch_offset(&mut self, limits: &Limits) -> Option<i64> {
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

    /// The earliest deadline of a lock.
    pub fn next_deadline(&self) -> Option<Ts> {
        self.locks.first_due().map(|(_, deadline)| deadline)
    }

    /// Ends the locks whose deadline has come: their records are given back, or archived at the
    /// delivery limit, once the proposal of it is settled.
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
            self.end_lock(lock, limits, &mut changes);
        }
        self.propose(changes, true);
    }

    /// Stops `lock`. Its records are marked to be given back, but for those that are being written:
    /// they are looked at again when that write is settled.
    fn end_lock(&mut self, lock: u32, limits: &Limits, changes: &mut Changes) {
        self.locks.stop(lock);
        let held = *self.locks.get(lock);
        let range = self.window.clip(OffsetRange::new(held.first, held.last));
        for offset in range.first..=range.last {
            let record = self.window.get(offset);
            if record.lock == lock && record.pending.is_none() {
                let next = given_back(record.delivery_count, limits);
                self.window.set(
                    offset,
                    Record {
                        pending: Some(next),
                        ..record
                    },
                );
                changes.add(offset, next);
            }
        }
    }

    /// Moves the start offset over the records that are done.
    pub(super) fn advance(&mut self) {
        if self.window.pop_done() {
            self.wake = true;
        }
    }
}

impl RecordState {
    /// Whether an acknowledgement may change a record in this state.
    pub(super) fn is_acquired(self) -> bool {
        self == Self::Acquired
    }
}
