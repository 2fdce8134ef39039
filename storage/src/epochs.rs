//! Leader epochs: which epoch began at which offset (`leader-epoch-checkpoint`, KIP-101).

use crate::checkpoint::{Checkpoint, parse_rows};

/// The epochs of a log in order, each with its first offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Epochs(Vec<(i32, i64)>);

impl Epochs {
    /// Takes note that `epoch` writes at `offset`. True if it is a new epoch.
    pub(crate) fn assign(&mut self, epoch: i32, offset: i64) -> bool {
        if epoch < 0 || self.0.last().is_some_and(|&(last, _)| last >= epoch) {
            return false;
        }
        self.0.push((epoch, offset));
        true
    }

    pub(crate) fn latest(&self) -> Option<i32> {
        self.0.last().map(|&(epoch, _)| epoch)
    }

    /// The epoch that wrote `offset`.
    pub(crate) fn epoch_for_offset(&self, offset: i64) -> Option<i32> {
        let after = self.0.partition_point(|&(_, start)| start <= offset);
        after.checked_sub(1).map(|at| self.0[at].0)
    }

    /// Where `epoch` ended: the largest known epoch up to it and the first offset behind that one;
    /// (-1, -1) if `epoch` is newer than any. `log_end` ends the newest.
    pub(crate) fn end_offset_for(&self, epoch: i32, log_end: i64) -> (i32, i64) {
        let after = self.0.partition_point(|&(known, _)| known <= epoch);
        match (after.checked_sub(1), self.0.get(after)) {
            (Some(at), Some(&(_, next_start))) => (self.0[at].0, next_start),
            (Some(at), None) if self.0[at].0 == epoch => (epoch, log_end),
            (None, Some(&(_, next_start))) => (epoch, next_start),
            _ => (-1, -1),
        }
    }

    /// The log now starts at `start`: older epochs go, the one that wrote there starts there.
    /// True if something changed.
    pub(crate) fn trim_start(&mut self, start: i64) -> bool {
        let after = self.0.partition_point(|&(_, first)| first <= start);
        let Some(at) = after.checked_sub(1) else {
            return false;
        };
        let changed = at > 0 || self.0[at].1 < start;
        self.0.drain(..at);
        self.0[0].1 = start;
        changed
    }

    /// The log now ends at `end`: epochs that began there or later never wrote.
    pub(crate) fn trim_end(&mut self, end: i64) {
        self.0.retain(|&(_, start)| start < end);
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut checkpoint = Checkpoint::new(self.0.len());
        for (epoch, start) in &self.0 {
            checkpoint.row(format_args!("{epoch} {start}"));
        }
        checkpoint.into_bytes()
    }

    /// Reads the file's content; `None` if it makes no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut epochs = Self::default();
        for row in parse_rows(bytes)? {
            let (epoch, start) = row.split_once(' ')?;
            epochs
                .assign(epoch.parse().ok()?, start.trim().parse().ok()?)
                .then_some(())?;
        }
        Some(epochs)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn epochs() -> Epochs {
        let mut epochs = Epochs::default();
        assert!(epochs.assign(2, 10));
        assert!(epochs.assign(4, 20));
        assert!(epochs.assign(5, 30));
        assert!(!epochs.assign(5, 31));
        assert!(!epochs.assign(3, 31));
        assert!(!epochs.assign(-1, 31));
        epochs
    }

    #[test]
    fn epochs_end_where_the_next_begins() {
        let epochs = epochs();
        assert_eq!(epochs.end_offset_for(1, 40), (1, 10));
        assert_eq!(epochs.end_offset_for(2, 40), (2, 20));
        assert_eq!(epochs.end_offset_for(3, 40), (2, 20));
        assert_eq!(epochs.end_offset_for(5, 40), (5, 40));
        assert_eq!(epochs.end_offset_for(6, 40), (-1, -1));
        assert_eq!(Epochs::default().end_offset_for(0, 0), (-1, -1));
    }

    #[test]
    fn each_offset_has_the_epoch_that_wrote_it() {
        let epochs = epochs();
        let found: Vec<_> = [9, 10, 29, 30, 99]
            .map(|offset| epochs.epoch_for_offset(offset))
            .into();
        assert_eq!(found, [None, Some(2), Some(4), Some(5), Some(5)]);
    }

    #[test]
    fn trimming_keeps_the_epoch_that_the_log_starts_in() {
        let mut epochs = epochs();
        assert!(!epochs.trim_start(5));
        assert!(epochs.trim_start(25));
        assert_eq!(epochs.0, [(4, 25), (5, 30)]);
        epochs.trim_end(30);
        assert_eq!(epochs.0, [(4, 25)]);
        assert_eq!(Epochs::decode(&epochs.encode()), Some(epochs));
        assert_eq!(Epochs::decode(b"0\n1\n4 x\n"), None);
    }
}
