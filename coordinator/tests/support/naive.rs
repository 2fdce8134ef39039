//! The share partition once more, as plainly as it can be said: a map from offset to record, each with
//! a lock of its own, and no thought of speed. The tests drive both with the same calls.
//!
//! Which records a fetch gets near the delivery limit, or by whole batches, is left to the machine:
//! the model then checks that the choice was allowed, and follows it.

use std::collections::{BTreeMap, VecDeque};

use ottla_coordinator::share::letters::LetterCause;
use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{AckBatch, AckError, Limits, RecordState, StateWrite, Token};

use super::naive_letters::{Post, ended};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lock {
    pub(super) member: String,
    pub(super) deadline: i64,
    pub(super) running: bool,
    pub(super) generation: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) state: RecordState,
    pub(super) pending: Option<RecordState>,
    pub(super) count: i16,
    pub(super) lock: Option<Lock>,
    /// Whether the log has data there, as far as a fetch has told.
    pub(super) data: bool,
}

impl Record {
    pub(super) fn absent() -> Self {
        Self {
            state: RecordState::Archived,
            pending: None,
            count: 0,
            lock: None,
            data: true,
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.state == RecordState::Available && self.pending.is_none()
    }
}

/// The next state of a record, and why it becomes a letter, if it does.
pub(super) type Next = (RecordState, Option<LetterCause>);

#[derive(Clone, Debug, PartialEq)]
struct Proposal {
    changes: Vec<(i64, Next)>,
    forced: bool,
}

/// The model and the machine, in step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) part: SharePartition,
    pub(crate) now: i64,
    pub(super) start: i64,
    pub(super) records: BTreeMap<i64, Record>,
    waiting: VecDeque<Proposal>,
    taken: Option<(Token, Proposal)>,
    /// Offsets that an accepted and written acknowledgement ended: never delivered again.
    pub(super) ended: Vec<i64>,
    pub(crate) post: Post,
}

fn given_back(count: i16, limits: &Limits) -> Next {
    if count >= limits.delivery_count_limit {
        ended(LetterCause::DeliveryLimit, limits)
    } else {
        (RecordState::Available, None)
    }
}

impl Pair {
    /// The model of a partition that was just loaded, at time 0.
    pub(crate) fn new(part: SharePartition, limits: &Limits) -> Self {
        let mut records = BTreeMap::new();
        let mut post = Post::default();
        for run in part.in_flight() {
            for offset in run.first..=run.last {
                let record = Record {
                    state: run.state,
                    count: run.delivery_count,
                    ..Record::absent()
                };
                if record.state == RecordState::Archiving {
                    let cause = if record.count >= limits.delivery_count_limit {
                        LetterCause::DeliveryLimit
                    } else {
                        LetterCause::Rejected
                    };
                    post.arise(offset, (cause, record.count, None), 0);
                }
                records.insert(offset, record);
            }
        }
        let mut pair = Self {
            start: part.start_offset(),
            part,
            now: 0,
            records,
            waiting: VecDeque::new(),
            taken: None,
            ended: Vec::new(),
            post,
        };
        pair.compare(limits);
        pair
    }

    pub(super) fn end(&self) -> i64 {
        self.start + self.records.len() as i64 - 1
    }

    pub(super) fn advance_start(&mut self) {
        while let Some(record) = self.records.get(&self.start)
            && record.state.is_done()
            && record.pending.is_none()
        {
            self.records.remove(&self.start);
            self.start += 1;
        }
    }

    pub(super) fn propose(&mut self, changes: Vec<(i64, Next)>, forced: bool) {
        if !changes.is_empty() {
            self.waiting.push_back(Proposal { changes, forced });
        }
    }

    fn end_locks(&mut self, limits: &Limits, ends: impl Fn(&Lock) -> bool) {
        let mut changes = Vec::new();
        for (&offset, record) in &mut self.records {
            let Some(lock) = record
                .lock
                .as_mut()
                .filter(|lock| lock.running && ends(lock))
            else {
                continue;
            };
            lock.running = false;
            if record.pending.is_none() {
                let next = given_back(record.count, limits);
                record.pending = Some(next.0);
                changes.push((offset, next));
            }
        }
        self.propose(changes, true);
    }

    pub(super) fn expire(&mut self, limits: &Limits) {
        let now = self.now;
        self.end_locks(limits, |lock| lock.deadline <= now);
        self.time_out_letters(limits);
    }

    pub(crate) fn on_deadline(&mut self, limits: &Limits) {
        self.part.on_deadline(self.now, limits);
        self.expire(limits);
        self.compare(limits);
    }

    pub(crate) fn release_member(&mut self, member: &str, limits: &Limits) {
        self.part.release_member(self.now, member, limits);
        self.expire(limits);
        self.end_locks(limits, |lock| lock.member == member);
        self.compare(limits);
    }

    pub(crate) fn log_start_moved(&mut self, log_start: i64, limits: &Limits) {
        self.part.log_start_moved(log_start);
        while self.start < log_start {
            self.records.remove(&self.start);
            self.start += 1;
        }
        self.advance_start();
        self.compare(limits);
    }

    /// Takes the next write and checks what it carries.
    pub(crate) fn take(&mut self) -> Option<StateWrite> {
        let taken = self.part.take_write();
        if self.taken.is_some() {
            assert_eq!(taken, None, "one write at a time");
            return None;
        }
        let Some(mut proposal) = self.waiting.pop_front() else {
            assert_eq!(taken, None);
            return None;
        };
        let (token, write) = taken.expect("a write");
        proposal.changes.retain(|(offset, _)| *offset >= self.start);
        let mut carried = Vec::new();
        for batch in &write.batches {
            assert!(batch.first <= batch.last);
            for offset in batch.first..=batch.last {
                carried.push((offset, batch.state));
                assert_eq!(batch.delivery_count, self.records[&offset].count);
            }
        }
        let changes: Vec<(i64, u8)> = proposal
            .changes
            .iter()
            .map(|(offset, next)| (*offset, next.0.code()))
            .collect();
        assert_eq!(carried, changes);
        assert_eq!(write.start_offset, self.start);
        let done = self.records.values().filter(|r| r.state.is_done()).count()
            + proposal
                .changes
                .iter()
                .filter(|(_, next)| next.0.is_done())
                .count();
        assert_eq!(write.delivery_complete_count as usize, done);
        self.taken = Some((token, proposal));
        Some(write)
    }

    /// Settles the taken write, if there is one.
    pub(crate) fn settle(&mut self, ok: bool, limits: &Limits) {
        let Some((token, proposal)) = self.taken.take() else {
            return;
        };
        self.part.write_done(token, ok, self.now, limits);
        let mut again = Vec::new();
        for (offset, next) in proposal.changes {
            let Some(record) = self.records.get_mut(&offset) else {
                continue;
            };
            record.pending = None;
            if ok || proposal.forced {
                let (next, cause) = next;
                record.state = next;
                let lock = record.lock.take();
                let generation = lock.map(|lock| lock.generation);
                let counts = !self.post.paused && generation == Some(self.post.generation);
                if next == RecordState::Acknowledged && record.data && counts {
                    self.post.delivered += 1;
                }
                if let Some(cause) = cause {
                    let letter = (cause, record.count, generation);
                    self.post.arise(offset, letter, self.now);
                }
                if next.is_done() {
                    self.ended.push(offset);
                }
            } else if record.lock.as_ref().is_none_or(|lock| !lock.running) {
                let next = given_back(record.count, limits);
                record.pending = Some(next.0);
                again.push((offset, next));
            }
        }
        self.propose(again, true);
        self.advance_start();
        self.expire(limits);
        self.compare(limits);
    }

    pub(crate) fn settle_all(&mut self, limits: &Limits) {
        loop {
            self.settle(true, limits);
            if self.take().is_none() {
                return;
            }
        }
    }

    /// Says whether the acknowledgement was accepted.
    pub(crate) fn acknowledge(
        &mut self,
        member: &str,
        batches: &[AckBatch<'_>],
        renew: bool,
        limits: &Limits,
    ) -> bool {
        let answer = self
            .part
            .acknowledge(self.now, member, batches, renew, limits);
        self.expire(limits);
        let expected = self.check(member, batches, renew, limits);
        let kind = answer.map(|_| ()).map_err(|error| match error {
            AckError::InvalidRequest(_) => 42,
            AckError::InvalidRecordState(_) => 121,
            AckError::Closed(_) => 6,
        });
        assert_eq!(kind, expected, "{batches:?} {answer:?} {:?}", self.records);
        if expected.is_ok() {
            let mut changes = Vec::new();
            for batch in batches {
                self.apply(member, batch, limits, &mut changes);
            }
            assert_eq!(answer.unwrap().is_some(), !changes.is_empty());
            self.propose(changes, false);
        }
        self.compare(limits);
        expected.is_ok()
    }

    fn check(
        &self,
        member: &str,
        batches: &[AckBatch<'_>],
        renew: bool,
        limits: &Limits,
    ) -> Result<(), i32> {
        let mut last = -1;
        for batch in batches {
            let len = batch.types.len() as i64;
            if batch.first > batch.last
                || batch.first < last
                || (len != 1 && len != batch.last - batch.first + 1)
                || batch
                    .types
                    .iter()
                    .any(|t| !(0..=4).contains(t) || (*t == 4 && !renew))
            {
                return Err(42);
            }
            last = batch.last;
        }
        if !limits.renew_enabled && batches.iter().any(|batch| batch.types.contains(&4)) {
            return Err(121);
        }
        let mut last: Option<(i64, i8)> = None;
        for batch in batches {
            if batch.last < self.start {
                continue;
            }
            if last.is_some_and(|(o, t)| o == batch.first && o >= self.start && t != 4) {
                return Err(121);
            }
            last = batch.types.last().map(|t| (batch.last, *t));
            if self.records.is_empty() {
                return Err(121);
            }
            if batch.last > self.end() {
                return Err(42);
            }
            for offset in batch.first.max(self.start)..=batch.last {
                let record = &self.records[&offset];
                let held = record.state == RecordState::Acquired
                    && record.pending.is_none()
                    && record
                        .lock
                        .as_ref()
                        .is_some_and(|lock| lock.member == member);
                if !held {
                    return Err(121);
                }
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        member: &str,
        batch: &AckBatch<'_>,
        limits: &Limits,
        changes: &mut Vec<(i64, Next)>,
    ) {
        for offset in batch.first.max(self.start)..=batch.last {
            let kind = if batch.types.len() == 1 {
                batch.types[0]
            } else {
                batch.types[(offset - batch.first) as usize]
            };
            let record = self.records.get_mut(&offset).unwrap();
            let next = match kind {
                1 => (RecordState::Acknowledged, None),
                3 => ended(LetterCause::Rejected, limits),
                2 => given_back(record.count, limits),
                4 => {
                    record.lock = Some(Lock {
                        member: member.to_owned(),
                        deadline: self.now + limits.lock_duration_ms,
                        running: true,
                        generation: record.lock.as_ref().unwrap().generation,
                    });
                    continue;
                }
                _ => (RecordState::Archived, None),
            };
            record.pending = Some(next.0);
            changes.push((offset, next));
        }
    }

    /// The machine shows what the model knows.
    pub(super) fn compare(&mut self, limits: &Limits) {
        self.post.check(&self.part.take_reports());
        assert_eq!(self.part.start_offset(), self.start);
        assert_eq!(self.part.end_offset(), self.end());
        let mut shown = BTreeMap::new();
        for run in self.part.in_flight() {
            for offset in run.first..=run.last {
                let (member, deadline) = (run.member.clone(), run.deadline);
                shown.insert(
                    offset,
                    (run.state, run.pending, run.delivery_count, member, deadline),
                );
            }
        }
        let known: BTreeMap<_, _> = self
            .records
            .iter()
            .map(|(&offset, r)| {
                let member = r.lock.as_ref().map(|lock| lock.member.clone());
                let deadline = r.lock.as_ref().map(|lock| lock.deadline);
                (offset, (r.state, r.pending, r.count, member, deadline))
            })
            .collect();
        assert_eq!(shown, known);
        let running = self
            .records
            .values()
            .filter_map(|r| r.lock.as_ref())
            .filter(|l| l.running);
        let letters = self.post.letters.values();
        let due = letters.filter_map(|letter| Post::due(letter, limits));
        assert_eq!(
            self.part.next_deadline(limits),
            running.map(|lock| lock.deadline).chain(due).min()
        );
        let locked = self.records.values().filter(|r| r.lock.is_some()).count();
        assert!(self.part.lock_count() <= locked);
        assert_eq!(self.part.lock_count() == 0, locked == 0);
        assert_eq!(self.part.has_writes(), !self.waiting.is_empty());
        let done = self
            .records
            .values()
            .filter(|r| r.state.is_done() && r.pending.is_none());
        assert_eq!(self.part.delivery_complete_count() as usize, done.count());
        for record in self.records.values() {
            assert_eq!(record.state == RecordState::Acquired, record.lock.is_some());
        }
    }

    /// The lowest free offset, as the machine must find it.
    pub(crate) fn next_fetch_offset(&mut self, limits: &Limits) -> Option<i64> {
        let found = self.part.next_fetch_offset(limits);
        if self.post.paused {
            assert_eq!(found, None);
            return None;
        }
        let free = self
            .records
            .iter()
            .find(|(_, record)| record.is_free())
            .map(|(o, _)| *o);
        let room = (self.records.len() as i64) < i64::from(limits.max_record_locks);
        assert_eq!(found, free.or_else(|| room.then(|| self.end() + 1)));
        found
    }
}
