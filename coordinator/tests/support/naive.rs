//! The share partition once more, as plainly as it can be said: a map from offset to record, each with
//! a lock of its own, and no thought of speed. The tests drive both with the same calls.
//!
//! Which records a fetch gets near the delivery limit, or by whole batches, is left to the machine:
//! the model then checks that the choice was allowed, and follows it.

use std::collections::{BTreeMap, VecDeque};

use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AckError, AcquireMode, AcquireRequest, AcquiredRange, Limits, OffsetRange,
    RecordState, StateWrite, Token,
};

#[derive(Clone, Debug, PartialEq)]
struct Lock {
    member: String,
    deadline: i64,
    running: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Record {
    state: RecordState,
    pending: Option<RecordState>,
    count: i16,
    lock: Option<Lock>,
}

impl Record {
    fn absent() -> Self {
        Self {
            state: RecordState::Archived,
            pending: None,
            count: 0,
            lock: None,
        }
    }

    fn is_free(&self) -> bool {
        self.state == RecordState::Available && self.pending.is_none()
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Proposal {
    changes: Vec<(i64, RecordState)>,
    forced: bool,
}

/// The model and the machine, in step.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) part: SharePartition,
    pub(crate) now: i64,
    start: i64,
    records: BTreeMap<i64, Record>,
    waiting: VecDeque<Proposal>,
    taken: Option<(Token, Proposal)>,
    /// Offsets that an accepted and written acknowledgement ended: never delivered again.
    ended: Vec<i64>,
}

fn given_back(count: i16, limits: &Limits) -> RecordState {
    if count >= limits.delivery_count_limit {
        RecordState::Archived
    } else {
        RecordState::Available
    }
}

fn contains(ranges: &[OffsetRange], offset: i64) -> bool {
    ranges
        .iter()
        .any(|range| range.first <= offset && offset <= range.last)
}

impl Pair {
    pub(crate) fn new(part: SharePartition) -> Self {
        Self {
            start: part.start_offset(),
            part,
            now: 0,
            records: BTreeMap::new(),
            waiting: VecDeque::new(),
            taken: None,
            ended: Vec::new(),
        }
    }

    fn end(&self) -> i64 {
        self.start + self.records.len() as i64 - 1
    }

    fn advance_start(&mut self) {
        while let Some(record) = self.records.get(&self.start)
            && record.state.is_done()
            && record.pending.is_none()
        {
            self.records.remove(&self.start);
            self.start += 1;
        }
    }

    fn propose(&mut self, changes: Vec<(i64, RecordState)>, forced: bool) {
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
                record.pending = Some(next);
                changes.push((offset, next));
            }
        }
        self.propose(changes, true);
    }

    fn expire(&mut self, limits: &Limits) {
        let now = self.now;
        self.end_locks(limits, |lock| lock.deadline <= now);
    }

    pub(crate) fn on_deadline(&mut self, limits: &Limits) {
        self.part.on_deadline(self.now, limits);
        self.expire(limits);
        self.compare();
    }

    pub(crate) fn release_member(&mut self, member: &str, limits: &Limits) {
        self.part.release_member(self.now, member, limits);
        self.expire(limits);
        self.end_locks(limits, |lock| lock.member == member);
        self.compare();
    }

    pub(crate) fn log_start_moved(&mut self, log_start: i64) {
        self.part.log_start_moved(log_start);
        while self.start < log_start {
            self.records.remove(&self.start);
            self.start += 1;
        }
        self.advance_start();
        self.compare();
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
            .map(|(offset, next)| (*offset, next.code()))
            .collect();
        assert_eq!(carried, changes);
        assert_eq!(write.start_offset, self.start);
        let done = self.records.values().filter(|r| r.state.is_done()).count()
            + proposal
                .changes
                .iter()
                .filter(|(_, next)| next.is_done())
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
                record.state = next;
                record.lock = None;
                if next.is_done() {
                    self.ended.push(offset);
                }
            } else if record.lock.as_ref().is_none_or(|lock| !lock.running) {
                let next = given_back(record.count, limits);
                record.pending = Some(next);
                again.push((offset, next));
            }
        }
        self.propose(again, true);
        self.advance_start();
        self.expire(limits);
        self.compare();
    }

    pub(crate) fn settle_all(&mut self, limits: &Limits) {
        loop {
            self.settle(true, limits);
            if self.take().is_none() {
                return;
            }
        }
    }

    pub(crate) fn acquire(
        &mut self,
        member: &str,
        limits: &Limits,
        request: &AcquireRequest<'_>,
    ) -> Vec<AcquiredRange> {
        let got = self.part.acquire(self.now, member, limits, request);
        self.expire(limits);
        if request.max_records < 1 || request.batches.is_empty() {
            assert!(got.is_empty());
            return got;
        }
        let last = request.batches.last().map_or(-1, |batch| batch.last);
        let in_log =
            |offset: i64| contains(request.batches, offset) && !contains(request.aborted, offset);
        for (&offset, record) in &mut self.records {
            let read = offset >= request.fetch_offset && offset <= last;
            let absent =
                contains(request.aborted, offset) || (read && !contains(request.batches, offset));
            if absent && record.is_free() {
                record.state = RecordState::Archived;
            }
        }
        self.advance_start();
        let throttles = limits.delivery_count_limit > 2 && limits.delivery_count_limit < 1000;
        if request.mode == AcquireMode::RecordLimit {
            let expected = self.expect_exact(limits, request);
            let offsets: Vec<i64> = got.iter().flat_map(|r| r.first..=r.last).collect();
            if throttles {
                assert!(offsets.len() as i32 <= request.max_records);
                assert_eq!(offsets.is_empty(), expected.is_empty());
            } else {
                assert_eq!(offsets, expected);
            }
        }
        self.follow(member, limits, request, &got, &in_log);
        self.advance_start();
        self.compare();
        got
    }

    /// The offsets of an exact acquisition without throttling.
    fn expect_exact(&self, limits: &Limits, request: &AcquireRequest<'_>) -> Vec<i64> {
        let (first, last) = (
            request.batches[0].first,
            request.batches.last().unwrap().last,
        );
        let max = request.max_records as usize;
        let mut got: Vec<i64> = self
            .records
            .iter()
            .filter(|&(&offset, record)| {
                record.is_free() && offset >= first && offset <= last && offset < request.upper
            })
            .map(|(&offset, _)| offset)
            .take(max)
            .collect();
        let mut room = i64::from(limits.max_record_locks) - self.records.len() as i64;
        let mut next = self.end() + 1;
        for batch in request.batches {
            let from = batch.first.max(next);
            let to = batch.last.min(request.upper - 1);
            if to < from {
                continue;
            }
            let hole = from - next;
            let empty = self.records.is_empty() && next == self.end() + 1;
            if room <= 0 || (hole > 0 && next < request.fetch_offset) {
                return got;
            }
            if hole > 0 && !empty {
                if hole >= room {
                    return got;
                }
                room -= hole;
            }
            for offset in from..=to {
                if room <= 0 || got.len() >= max {
                    return got;
                }
                room -= 1;
                if !contains(request.aborted, offset) {
                    got.push(offset);
                }
            }
            next = to + 1;
        }
        got
    }

    /// Checks what the machine gave and applies it.
    fn follow(
        &mut self,
        member: &str,
        limits: &Limits,
        request: &AcquireRequest<'_>,
        got: &[AcquiredRange],
        in_log: &impl Fn(i64) -> bool,
    ) {
        let lock = Lock {
            member: member.to_owned(),
            deadline: self.now + limits.lock_duration_ms,
            running: true,
        };
        let mut previous = -1;
        for range in got {
            assert!(
                previous < range.first && range.first <= range.last,
                "{got:?}"
            );
            previous = range.last;
            for offset in range.first..=range.last {
                assert!(
                    in_log(offset) && offset < request.upper,
                    "{offset} in {request:?}"
                );
                assert!(
                    !self.ended.contains(&offset),
                    "{offset} was delivered after its end"
                );
                while self.end() + 1 < offset {
                    let next = self.end() + 1;
                    assert!(!in_log(next), "{next} was skipped");
                    self.records.insert(next, Record::absent());
                }
                let record = self.records.entry(offset).or_insert(Record {
                    state: RecordState::Available,
                    ..Record::absent()
                });
                assert!(record.is_free(), "{offset} was not free");
                record.state = RecordState::Acquired;
                record.count += 1;
                record.lock = Some(lock.clone());
                assert_eq!(record.count, range.delivery_count);
            }
        }
        while self.end() < self.part.end_offset() {
            let next = self.end() + 1;
            assert!(!in_log(next), "{next} was skipped");
            self.records.insert(next, Record::absent());
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
        self.compare();
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
        changes: &mut Vec<(i64, RecordState)>,
    ) {
        for offset in batch.first.max(self.start)..=batch.last {
            let kind = if batch.types.len() == 1 {
                batch.types[0]
            } else {
                batch.types[(offset - batch.first) as usize]
            };
            let record = self.records.get_mut(&offset).unwrap();
            let next = match kind {
                1 => RecordState::Acknowledged,
                2 => given_back(record.count, limits),
                4 => {
                    record.lock = Some(Lock {
                        member: member.to_owned(),
                        deadline: self.now + limits.lock_duration_ms,
                        running: true,
                    });
                    continue;
                }
                _ => RecordState::Archived,
            };
            record.pending = Some(next);
            changes.push((offset, next));
        }
    }

    /// The machine shows what the model knows.
    fn compare(&mut self) {
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
        assert_eq!(
            self.part.next_deadline(),
            running.map(|lock| lock.deadline).min()
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
