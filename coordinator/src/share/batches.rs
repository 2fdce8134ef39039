//! The persisted record states of one share partition, merged as Apache Kafka 4.4.0 merges them.

use std::collections::BTreeMap;

use super::types::StateBatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    last: i64,
    /// The delivery count, then the state: the greater one wins, whatever came first.
    rank: (i16, u8),
}

/// Disjoint runs of records in the same state, none below the start offset, neighbours joined.
///
/// Of two states of one record the one with the greater delivery count wins, and at equal counts
/// the greater state: so a write that arrives late cannot undo a newer one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct StateBatches {
    runs: BTreeMap<i64, Run>,
}

impl StateBatches {
    pub(super) fn to_vec(&self) -> Vec<StateBatch> {
        let batch = |(&first, run): (&i64, &Run)| StateBatch {
            first,
            last: run.last,
            state: run.rank.1,
            delivery_count: run.rank.0,
        };
        self.runs.iter().map(batch).collect()
    }

    /// Merges one batch, without what lies below `start`.
    pub(super) fn merge(&mut self, batch: &StateBatch, start: i64) {
        let (first, last) = (batch.first.max(start), batch.last);
        if first > last {
            return;
        }
        let rank = (batch.delivery_count, batch.state);
        let mut pieces = Pieces::default();
        // The first offset of the batch that no piece covers yet; None beyond the last offset.
        let mut cursor = Some(first);
        for (from, run) in self.take_touching(first, last) {
            if from < first {
                pieces.push(from, run.last.min(first - 1), run.rank);
            }
            if let Some(at) = cursor.filter(|&at| at <= last && at < from) {
                pieces.push(at, last.min(from - 1), rank);
            }
            let (low, high) = (from.max(first), run.last.min(last));
            if low <= high {
                pieces.push(low, high, run.rank.max(rank));
            }
            if run.last > last {
                pieces.push(from.max(last + 1), run.last, run.rank);
            }
            cursor = cursor.and_then(|at| run.last.checked_add(1).map(|after| after.max(at)));
        }
        if let Some(at) = cursor.filter(|&at| at <= last) {
            pieces.push(at, last, rank);
        }
        for (from, run) in pieces.0 {
            self.runs.insert(from, run);
        }
    }

    /// Drops everything below `start`.
    pub(super) fn trim(&mut self, start: i64) {
        while let Some(entry) = self.runs.first_entry() {
            if *entry.key() >= start {
                return;
            }
            let run = entry.remove();
            if run.last >= start {
                self.runs.insert(start, run);
                return;
            }
        }
    }

    /// Removes and returns the runs that overlap or adjoin `first..=last`, ascending.
    fn take_touching(&mut self, first: i64, last: i64) -> Vec<(i64, Run)> {
        let reach = |offset: i64| offset.saturating_add(1);
        let before = self.runs.range(..first).next_back();
        let from = match before {
            Some((&from, run)) if reach(run.last) >= first => from,
            _ => first,
        };
        let touching: Vec<_> = self
            .runs
            .range(from..=reach(last))
            .map(|(&from, &run)| (from, run))
            .collect();
        for (from, _) in &touching {
            self.runs.remove(from);
        }
        touching
    }
}

/// Runs in ascending order, joined as they are pushed.
#[derive(Default)]
struct Pieces(Vec<(i64, Run)>);

impl Pieces {
    fn push(&mut self, first: i64, last: i64, rank: (i16, u8)) {
        match self.0.last_mut() {
            Some((_, run)) if run.rank == rank && run.last.checked_add(1) == Some(first) => {
                run.last = last;
            }
            _ => self.0.push((first, Run { last, rank })),
        }
    }
}
