//! Records whose outcome is decided in this life of the process while their state does not say so yet.
//!
//! A share partition that is loaded anew meanwhile, by another leader, finds them on their way to the
//! dead letter topic and hands them over again. They are in here, so no letter is stored twice.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::share::types::{OffsetRange, RecordState, StateWrite};

/// The ranges of one life of a share partition's state, by first offset; disjoint.
#[derive(Debug)]
struct Decided {
    state_epoch: i32,
    ranges: BTreeMap<i64, i64>,
}

/// The part of a range that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Decided already.
    Decided(OffsetRange),
    /// Not decided.
    Open(OffsetRange),
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<BTreeMap<ShareKey, Decided>>);

impl Ledger {
    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<ShareKey, Decided>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The outcome of these records is decided. What is kept of an earlier state epoch goes.
    pub(super) fn decide(&self, key: &ShareKey, state_epoch: i32, range: OffsetRange) {
        self.with(|all| {
            let fresh = || Decided {
                state_epoch,
                ranges: BTreeMap::new(),
            };
            let kept = all.entry(key.clone()).or_insert_with(fresh);
            if kept.state_epoch < state_epoch {
                *kept = fresh();
            }
            if kept.state_epoch == state_epoch {
                kept.cut(range);
                kept.ranges.insert(range.first, range.last);
            }
        });
    }

    /// What is decided of `ranges`, and what is open.
    pub(super) fn split(
        &self,
        key: &ShareKey,
        state_epoch: i32,
        ranges: impl IntoIterator<Item = OffsetRange>,
    ) -> (Vec<OffsetRange>, Vec<OffsetRange>) {
        let (mut decided, mut open) = (vec![], vec![]);
        for mut rest in ranges {
            while !rest.is_empty() {
                let (list, part) = match self.first_part(key, state_epoch, rest) {
                    Part::Decided(part) => (&mut decided, part),
                    Part::Open(part) => (&mut open, part),
                };
                list.push(part);
                rest.first = part.last + 1;
            }
        }
        (decided, open)
    }

    /// The first part of `range`, which must not be empty, that is all decided or all open.
    fn first_part(&self, key: &ShareKey, state_epoch: i32, range: OffsetRange) -> Part {
        self.with(|all| {
            let kept = all.get(key).filter(|kept| kept.state_epoch == state_epoch);
            kept.map_or(Part::Open(range), |kept| kept.first_part(range))
        })
    }

    /// A share partition's state was written: what it says of these records need not be kept.
    pub(super) fn persisted(&self, key: &ShareKey, state_epoch: i32, write: &StateWrite) {
        self.with(|all| {
            let Some(kept) = all.get_mut(key) else {
                return;
            };
            if kept.state_epoch == state_epoch {
                kept.cut(OffsetRange::new(i64::MIN, write.start_offset - 1));
                let archived = RecordState::Archived.code();
                for batch in write.batches.iter().filter(|batch| batch.state == archived) {
                    kept.cut(OffsetRange::new(batch.first, batch.last));
                }
            }
            if kept.state_epoch < state_epoch || kept.ranges.is_empty() {
                all.remove(key);
            }
        });
    }

    /// Forgets the share partitions that `gone` names.
    pub(super) fn forget(&self, gone: impl Fn(&ShareKey) -> bool) {
        self.with(|all| all.retain(|key, _| !gone(key)));
    }

    /// How many ranges are kept.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.with(|all| all.values().map(|kept| kept.ranges.len()).sum())
    }
}

impl Decided {
    fn first_part(&self, range: OffsetRange) -> Part {
        let before = self.ranges.range(..=range.first).next_back();
        if let Some((_, &last)) = before.filter(|&(_, &last)| last >= range.first) {
            return Part::Decided(OffsetRange::new(range.first, last.min(range.last)));
        }
        let after = self.ranges.range(range.first..).next();
        let last = after.map_or(range.last, |(&first, _)| range.last.min(first - 1));
        Part::Open(OffsetRange::new(range.first, last))
    }

    /// Takes `range` out.
    fn cut(&mut self, range: OffsetRange) {
        let touched: Vec<(i64, i64)> = self
            .ranges
            .range(..=range.last)
            .rev()
            .map(|(&first, &last)| (first, last))
            .take_while(|&(_, last)| last >= range.first)
            .collect();
        for (first, last) in touched {
            self.ranges.remove(&first);
            if first < range.first {
                self.ranges.insert(first, range.first - 1);
            }
            if last > range.last {
                self.ranges.insert(range.last + 1, last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ottla_coordinator::share::types::StateBatch;
    use ottla_coordinator::types::{TopicPartition, Uuid};

    use super::*;

    fn key() -> ShareKey {
        ShareKey {
            group_id: "g".into(),
            partition: TopicPartition {
                topic_id: Uuid([1; 16]),
                partition: 0,
            },
        }
    }

    fn range(first: i64, last: i64) -> OffsetRange {
        OffsetRange::new(first, last)
    }

    fn parts(ledger: &Ledger, epoch: i32, mut left: OffsetRange) -> String {
        let mut text = vec![];
        while !left.is_empty() {
            let (word, part) = match ledger.first_part(&key(), epoch, left) {
                Part::Decided(part) => ("decided", part),
                Part::Open(part) => ("open", part),
            };
            text.push(format!("{word} {}-{}", part.first, part.last));
            left.first = part.last + 1;
        }
        text.join(", ")
    }

    fn write(start_offset: i64, archived: &[(i64, i64)]) -> StateWrite {
        let batch = |&(first, last)| StateBatch {
            first,
            last,
            state: 4,
            delivery_count: 1,
        };
        StateWrite {
            start_offset,
            delivery_complete_count: 0,
            batches: archived.iter().map(batch).collect(),
        }
    }

    #[test]
    fn a_range_falls_into_what_is_decided_and_what_is_open() {
        let ledger = Ledger::default();
        ledger.decide(&key(), 1, range(3, 4));
        ledger.decide(&key(), 1, range(8, 12));
        let told = "open 0-2, decided 3-4, open 5-7, decided 8-10";
        assert_eq!(parts(&ledger, 1, range(0, 10)), told);
        assert_eq!(parts(&ledger, 1, range(4, 4)), "decided 4-4");
        assert_eq!(parts(&ledger, 1, range(13, 14)), "open 13-14");
    }

    #[test]
    fn what_the_state_says_is_forgotten() {
        let ledger = Ledger::default();
        ledger.decide(&key(), 1, range(0, 9));
        ledger.persisted(&key(), 1, &write(2, &[(4, 5)]));
        let told = "open 0-1, decided 2-3, open 4-5, decided 6-9";
        assert_eq!(parts(&ledger, 1, range(0, 9)), told);
        ledger.persisted(&key(), 1, &write(10, &[]));
        assert_eq!(ledger.len(), 0);
        ledger.with(|all| assert!(all.is_empty()));
    }

    #[test]
    fn a_state_that_was_altered_knows_nothing_of_the_one_before() {
        let ledger = Ledger::default();
        ledger.decide(&key(), 1, range(0, 9));
        assert_eq!(parts(&ledger, 2, range(0, 9)), "open 0-9");
        ledger.decide(&key(), 2, range(5, 5));
        assert_eq!(
            parts(&ledger, 2, range(0, 9)),
            "open 0-4, decided 5-5, open 6-9"
        );
        ledger.decide(&key(), 1, range(7, 7));
        assert_eq!(ledger.len(), 1, "a late word of the old state");
    }

    #[test]
    fn deciding_twice_is_deciding_once() {
        let ledger = Ledger::default();
        ledger.decide(&key(), 1, range(0, 5));
        ledger.decide(&key(), 1, range(3, 8));
        assert_eq!(
            parts(&ledger, 1, range(0, 9)),
            "decided 0-2, decided 3-8, open 9-9"
        );
    }

    #[test]
    fn a_group_that_is_gone_is_forgotten() {
        let ledger = Ledger::default();
        ledger.decide(&key(), 1, range(0, 5));
        ledger.forget(|key| &*key.group_id == "g");
        assert_eq!(ledger.len(), 0);
    }
}
