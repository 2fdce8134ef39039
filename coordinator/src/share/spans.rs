//! A set of offsets as disjoint ranges.

use super::types::OffsetRange;

/// Ascending ranges, neither overlapping nor adjoining. Without a range there is no memory behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<OffsetRange>);

impl Spans {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = OffsetRange> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<OffsetRange>()
    }

    /// Whether all of `range`, which is not empty, is in the set.
    pub(super) fn covers(&self, range: OffsetRange) -> bool {
        let at = self.0.partition_point(|held| held.last < range.first);
        let held = self.0.get(at);
        held.is_some_and(|held| held.first <= range.first && range.last <= held.last)
    }

    /// How many offsets of `range` are in the set.
    pub(super) fn count_in(&self, range: OffsetRange) -> i64 {
        let from = self.0.partition_point(|held| held.last < range.first);
        let held = self.0[from..]
            .iter()
            .take_while(|held| held.first <= range.last);
        held.map(|held| {
            let (first, last) = (held.first.max(range.first), held.last.min(range.last));
            OffsetRange::new(first, last).len()
        })
        .sum()
    }

    /// Adds `range`.
    pub(super) fn add(&mut self, range: OffsetRange) {
        if range.is_empty() || self.covers(range) {
            return;
        }
        let from = self.0.partition_point(|held| held.last + 1 < range.first);
        let to = self.0.partition_point(|held| held.first <= range.last + 1);
        let mut joined = range;
        if from < to {
            joined.first = joined.first.min(self.0[from].first);
            joined.last = joined.last.max(self.0[to - 1].last);
        }
        self.0.splice(from..to, [joined]);
    }

    /// Removes `range`; says how many of its offsets were in the set.
    pub(super) fn take(&mut self, range: OffsetRange) -> i64 {
        let from = self.0.partition_point(|held| held.last < range.first);
        let to = self.0.partition_point(|held| held.first <= range.last);
        if range.is_empty() || from == to {
            return 0;
        }
        let (first, last) = (self.0[from].first, self.0[to - 1].last);
        let held: i64 = self.0[from..to].iter().map(|held| held.len()).sum();
        let before = OffsetRange::new(first, range.first - 1);
        let after = OffsetRange::new(range.last + 1, last);
        let rest = [before, after].into_iter().filter(|rest| !rest.is_empty());
        self.0.splice(from..to, rest);
        held - before.len() - after.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Spans;
    use crate::share::types::OffsetRange;

    proptest! {
        #[test]
        fn a_set_of_ranges_is_the_set_of_their_offsets(
            steps in prop::collection::vec((any::<bool>(), 0..40i64, 0..8i64), 1..60),
        ) {
            let (mut spans, mut offsets) = (Spans::default(), BTreeSet::new());
            for (add, first, len) in steps {
                let range = OffsetRange::new(first, first + len - 1);
                let held = (range.first..=range.last).filter(|at| offsets.contains(at)).count();
                if !range.is_empty() {
                    prop_assert_eq!(spans.covers(range), held as i64 == len);
                }
                prop_assert_eq!(spans.count_in(range), held as i64);
                if add {
                    spans.add(range);
                    offsets.extend(range.first..=range.last);
                } else {
                    prop_assert_eq!(spans.take(range), held as i64);
                    offsets.retain(|at| *at < range.first || range.last < *at);
                }
                let shown: Vec<i64> = spans.iter().flat_map(|range| range.first..=range.last).collect();
                prop_assert_eq!(&shown, &offsets.iter().copied().collect::<Vec<_>>());
                let ranges: Vec<OffsetRange> = spans.iter().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
            }
        }
    }
}
