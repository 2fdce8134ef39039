//! Records on their way to the dead letter queue (KIP-1191), and the time in which they must get there.
//!
//! Records that become [`RecordState::Archiving`] together are a *unit*. It is handed out once, through
//! [`SharePartition::take_reports`], and stays pending until each of its records has one of three
//! outcomes: written, given up, or timed out. Whichever is reported first counts, and archives the
//! record; what comes later is told so. A unit outlives its records in the window: where the log start
//! has passed them, their letters are written all the same.

use std::collections::BTreeMap;

use super::partition::SharePartition;
use super::persist::{Changes, Next};
use super::spans::Spans;
use super::types::{Limits, OffsetRange, RecordState};
use crate::types::Ts;

/// Why a record becomes a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LetterCause {
    /// A client rejected it.
    Rejected,
    /// It was given back after as many deliveries as the group allows.
    DeliveryLimit,
}

/// Names a unit of one loaded share partition. Ascending in the order in which units arise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(pub u64);

/// Consecutive records that became [`RecordState::Archiving`] together, for the same cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterUnit {
    /// Its name.
    pub id: UnitId,
    /// The records.
    pub range: OffsetRange,
    /// Why.
    pub cause: LetterCause,
    /// How often each of them was delivered.
    pub delivery_count: i16,
    /// Since when they are `Archiving`, in state time; when they were loaded so, since then.
    pub since: Ts,
    /// The delivery generation in which they were acquired; none when they were loaded.
    pub generation: Option<u64>,
}

/// What became of letters that were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Written {
    /// Letters for which the append is the outcome.
    pub counted: i64,
    /// Letters that had another outcome before.
    pub late: i64,
}

/// What happened inside a share partition that others must know, each thing once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Reports {
    /// Units to be written from now on.
    pub letters: Vec<LetterUnit>,
    /// Records of units whose time ran out, for which that is the outcome.
    pub timed_out: Vec<(LetterUnit, OffsetRange)>,
    /// Data records whose acceptance was committed, acquired in the generation that runs.
    pub delivered: u64,
    /// Letters whose append was the outcome, of records acquired in the generation that runs.
    pub written: u64,
    /// Records given back because their lock expired.
    pub expired: u64,
}

/// What the letters of a unit have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) cause: LetterCause,
    pub(super) delivery_count: i16,
    pub(super) generation: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    unit: LetterUnit,
    /// The records without an outcome.
    left: Spans,
}

/// The pending units, and what is to be reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters {
    last_id: u64,
    /// When the latest unit arose. Time does not go back from one unit to the next.
    latest: Ts,
    pending: BTreeMap<UnitId, Pending>,
    pub(super) reports: Reports,
}

impl Letters {
    /// The record at `offset` is a letter from now on. It joins the unit right before it where that
    /// one arose in the same call: it stands at position `from` of the reported units, or behind.
    pub(super) fn arise(&mut self, from: usize, offset: i64, kind: Kind, now: Ts) {
        if let Some(before) = self.reports.letters[from..].last_mut()
            && before.range.last + 1 == offset
            && before.kind() == kind
        {
            before.range.last = offset;
            return;
        }
        self.last_id += 1;
        self.latest = self.latest.max(now);
        self.reports.letters.push(LetterUnit {
            id: UnitId(self.last_id),
            range: OffsetRange::new(offset, offset),
            cause: kind.cause,
            delivery_count: kind.delivery_count,
            since: self.latest,
            generation: kind.generation,
        });
    }

    /// The reported units from position `from` on are complete: they are pending now.
    pub(super) fn enlist(&mut self, from: usize) {
        for &unit in &self.reports.letters[from..] {
            let mut left = Spans::default();
            left.add(unit.range);
            self.pending.insert(unit.id, Pending { unit, left });
        }
    }

    /// When the oldest pending unit runs out of time.
    pub(super) fn first_due(&self, limits: &Limits) -> Option<Ts> {
        let timeout = limits.dlq_write_timeout_ms?;
        let (_, oldest) = self.pending.first_key_value()?;
        Some(oldest.unit.since.saturating_add(timeout))
    }

    /// Takes what has no outcome yet of `range` away from `unit`: how many records, and of what unit.
    fn decide(&mut self, unit: UnitId, range: OffsetRange) -> Option<(LetterUnit, i64)> {
        let pending = self.pending.get_mut(&unit)?;
        let (unit, decided) = (pending.unit, pending.left.take(range));
        if pending.left.is_empty() {
            self.pending.remove(&unit.id);
        }
        Some((unit, decided))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let ranges = |pending: &Pending| pending.left.heap_bytes();
        self.pending.len() * size_of::<(UnitId, Pending)>()
            + self.pending.values().map(ranges).sum::<usize>()
    }
}

impl Kind {
    /// Of records that were loaded as letters.
    pub(super) fn loaded(delivery_count: i16, limits: &Limits) -> Self {
        let cause = if delivery_count >= limits.delivery_count_limit {
            LetterCause::DeliveryLimit
        } else {
            LetterCause::Rejected
        };
        Self {
            cause,
            delivery_count,
            generation: None,
        }
    }
}

impl LetterUnit {
    fn kind(&self) -> Kind {
        Kind {
            cause: self.cause,
            delivery_count: self.delivery_count,
            generation: self.generation,
        }
    }
}

impl SharePartition {
    /// Whether the letters of `range` are still wanted: none of them has an outcome. To be asked right
    /// before they are appended.
    pub fn claim_letters(&self, unit: UnitId, range: OffsetRange) -> bool {
        let pending = self.letters.pending.get(&unit);
        pending.is_some_and(|pending| pending.left.covers(range))
    }

    /// The append of the letters of `range` is committed.
    pub fn letters_written(
        &mut self,
        unit: UnitId,
        range: OffsetRange,
        now: Ts,
        limits: &Limits,
    ) -> Written {
        let counted = match self.decide_letters(unit, range, now, limits) {
            Some((unit, counted)) => {
                if self.delivery.samples(unit.generation) {
                    self.letters.reports.written += counted as u64;
                }
                counted
            }
            None => 0,
        };
        Written {
            counted,
            late: range.len() - counted,
        }
    }

    /// The letters of `range` will not be written. False when none of them waits for an outcome.
    pub fn letters_given_up(
        &mut self,
        unit: UnitId,
        range: OffsetRange,
        now: Ts,
        limits: &Limits,
    ) -> bool {
        let decided = self.decide_letters(unit, range, now, limits);
        decided.is_some_and(|(_, records)| records > 0)
    }

    /// What happened since this was last asked. Allocates nothing where nothing happened.
    pub fn take_reports(&mut self) -> Reports {
        std::mem::take(&mut self.letters.reports)
    }

    /// Forgets the letters that have no outcome.
    pub fn drop_letters(&mut self) {
        self.letters.pending.clear();
        self.letters.reports.letters.clear();
    }

    fn decide_letters(
        &mut self,
        unit: UnitId,
        range: OffsetRange,
        now: Ts,
        limits: &Limits,
    ) -> Option<(LetterUnit, i64)> {
        self.expire(now, limits);
        let decided = self.letters.decide(unit, range)?;
        let mut changes = Changes::default();
        self.archive_letters(range, &mut changes);
        self.propose(changes, true);
        Some(decided)
    }

    /// The units whose time has run out have that as their outcome.
    pub(super) fn time_out_letters(&mut self, now: Ts, limits: &Limits) {
        let mut changes = Changes::default();
        while self.letters.first_due(limits).is_some_and(|due| due <= now)
            && let Some((_, Pending { unit, left })) = self.letters.pending.pop_first()
        {
            for range in left.iter() {
                self.archive_letters(range, &mut changes);
                self.letters.reports.timed_out.push((unit, range));
            }
        }
        self.propose(changes, true);
    }

    /// Marks what is `Archiving` of `range`, and in the window, to be archived.
    fn archive_letters(&mut self, range: OffsetRange, changes: &mut Changes) {
        let range = self.window.clip(range);
        for offset in range.first..=range.last {
            let record = self.window.get(offset);
            if record.state == RecordState::Archiving && record.pending.is_none() {
                let next = Next::to(RecordState::Archived);
                self.window.set(offset, record.becoming(next.state));
                changes.add(offset, next);
            }
        }
    }

    /// Records, still locked if they were, are `Archiving` from now on: they are units from position
    /// `from` of the reported ones on.
    pub(super) fn make_letters(
        &mut self,
        from: usize,
        range: OffsetRange,
        cause: LetterCause,
        now: Ts,
    ) {
        for offset in range.first..=range.last {
            let record = self.window.get(offset);
            let kind = Kind {
                cause,
                delivery_count: record.delivery_count,
                generation: self.generation_of(record),
            };
            self.letters.arise(from, offset, kind, now);
        }
    }
}
