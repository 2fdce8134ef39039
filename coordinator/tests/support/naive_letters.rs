//! The naive model's dead letters, delivery and reports: a letter is one record, whatever its unit.

use std::collections::BTreeMap;

use ottla_coordinator::share::letters::{LetterCause, LetterUnit, Reports, UnitId, Written};
use ottla_coordinator::share::types::{Limits, OffsetRange, RecordState};

use super::naive::{Next, Pair};

/// A record that is on its way to the dead letter queue and has no outcome yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Letter {
    pub(super) cause: LetterCause,
    pub(super) count: i16,
    pub(super) since: i64,
    pub(super) generation: Option<u64>,
    /// Set when the unit was handed out.
    unit: Option<UnitId>,
}

/// What the model knows beside the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Post {
    pub(super) letters: BTreeMap<i64, Letter>,
    pub(super) timed_out: Vec<i64>,
    pub(super) delivered: u64,
    pub(super) written: u64,
    pub(crate) paused: bool,
    pub(crate) generation: u64,
    /// Every unit that was handed out.
    pub(crate) units: Vec<LetterUnit>,
}

/// What becomes of a record that ends without being accepted.
pub(super) fn ended(cause: LetterCause, limits: &Limits) -> Next {
    if limits.dead_letters {
        (RecordState::Archiving, Some(cause))
    } else {
        (RecordState::Archived, None)
    }
}

fn offsets(range: OffsetRange) -> std::ops::RangeInclusive<i64> {
    range.first..=range.last
}

impl Post {
    pub(super) fn arise(
        &mut self,
        offset: i64,
        letter: (LetterCause, i16, Option<u64>),
        since: i64,
    ) {
        let (cause, count, generation) = letter;
        let unit = None;
        let letter = Letter {
            cause,
            count,
            since,
            generation,
            unit,
        };
        assert!(self.letters.insert(offset, letter).is_none());
    }

    /// Letters with this unit in this range: each has one outcome, so each is taken once.
    fn decide(&mut self, unit: UnitId, range: OffsetRange) -> Vec<i64> {
        let wanted = |letter: &Letter| letter.unit == Some(unit);
        let decided: Vec<i64> = offsets(range)
            .filter(|at| self.letters.get(at).is_some_and(wanted))
            .collect();
        for at in &decided {
            self.letters.remove(at);
        }
        decided
    }

    pub(super) fn due(letter: &Letter, limits: &Limits) -> Option<i64> {
        Some(letter.since + limits.dlq_write_timeout_ms?)
    }

    /// The reports tell what happened since the last time, no more and no less.
    pub(super) fn check(&mut self, reports: &Reports) {
        for unit in &reports.letters {
            assert!(self.units.last().is_none_or(|last| last.id < unit.id));
            assert!(!unit.range.is_empty());
            for at in offsets(unit.range) {
                let letter = self.letters.get_mut(&at).expect("a letter");
                assert_eq!(letter.unit.replace(unit.id), None, "handed out once");
                let told = (unit.cause, unit.delivery_count, unit.since, unit.generation);
                let known = (letter.cause, letter.count, letter.since, letter.generation);
                assert_eq!(told, known);
            }
            self.units.push(*unit);
        }
        assert!(self.letters.values().all(|letter| letter.unit.is_some()));
        let joined = reports.letters.windows(2).all(|pair| {
            let alike = |u: &LetterUnit| (u.cause, u.delivery_count, u.generation);
            pair[0].range.last + 1 != pair[1].range.first || alike(&pair[0]) != alike(&pair[1])
        });
        assert!(joined, "{:?}", reports.letters);
        let told = reports
            .timed_out
            .iter()
            .flat_map(|(_, range)| offsets(*range));
        let mut told: Vec<i64> = told.collect();
        told.sort_unstable();
        let mut known = std::mem::take(&mut self.timed_out);
        known.sort_unstable();
        assert_eq!(told, known);
        assert_eq!(reports.delivered, std::mem::take(&mut self.delivered));
        assert_eq!(reports.written, std::mem::take(&mut self.written));
    }
}

impl Pair {
    pub(crate) fn set_delivery(&mut self, paused: bool, generation: u64, limits: &Limits) {
        self.part.set_delivery(paused, generation);
        (self.post.paused, self.post.generation) = (paused, generation);
        self.compare(limits);
    }

    /// Reports letters as written, as whoever appends them does: also when they are not wanted any more.
    pub(crate) fn write_letters(&mut self, unit: UnitId, range: OffsetRange, limits: &Limits) {
        let wanted = |letter: &Letter| letter.unit == Some(unit);
        let letters = &self.post.letters;
        let all = offsets(range).all(|at| letters.get(&at).is_some_and(wanted));
        assert_eq!(self.part.claim_letters(unit, range), all);
        let written = self.part.letters_written(unit, range, self.now, limits);
        self.expire(limits);
        let sample = self.post.units.iter().any(|known| {
            known.id == unit && known.generation == Some(self.post.generation) && !self.post.paused
        });
        let decided = self.post.decide(unit, range);
        let counted = decided.len() as i64;
        let late = range.len() - counted;
        assert_eq!(written, Written { counted, late });
        if sample {
            self.post.written += counted as u64;
        }
        self.archive_letters(&decided);
        self.compare(limits);
    }

    pub(crate) fn give_up_letters(&mut self, unit: UnitId, range: OffsetRange, limits: &Limits) {
        let counts = self.part.letters_given_up(unit, range, self.now, limits);
        self.expire(limits);
        let decided = self.post.decide(unit, range);
        assert_eq!(counts, !decided.is_empty());
        self.archive_letters(&decided);
        self.compare(limits);
    }

    pub(super) fn time_out_letters(&mut self, limits: &Limits) {
        let due = |letter: &Letter| Post::due(letter, limits).is_some_and(|due| due <= self.now);
        let letters = self.post.letters.iter();
        let overdue: Vec<i64> = letters
            .filter(|(_, letter)| due(letter))
            .map(|(&at, _)| at)
            .collect();
        for at in &overdue {
            self.post.letters.remove(at);
        }
        self.archive_letters(&overdue);
        self.post.timed_out.extend(overdue);
    }

    fn archive_letters(&mut self, decided: &[i64]) {
        let mut changes = Vec::new();
        for at in decided {
            if let Some(record) = self.records.get_mut(at) {
                assert_eq!(
                    (record.state, record.pending),
                    (RecordState::Archiving, None)
                );
                record.pending = Some(RecordState::Archived);
                changes.push((*at, (RecordState::Archived, None)));
            }
        }
        self.propose(changes, true);
    }
}
