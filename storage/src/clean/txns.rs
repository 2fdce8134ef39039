//! Transactions met on a walk through a log: whose records are aborted, and which markers still
//! have records.

use std::collections::{BTreeMap, BTreeSet};

use ottla_protocol::batch::BatchHeader;

use crate::producer::Marker;
use crate::txn_index::Aborted;

/// What is to become of a transaction's marker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MarkerFate {
    /// Records of its transaction are still there, so it stays; with the entry in the index of
    /// aborted transactions, if it was aborted.
    Needed(Option<Aborted>),
    /// Nothing that it decides is left.
    Idle,
}

#[derive(Debug)]
struct Open {
    entry: Aborted,
    seen: bool,
}

/// See the module. The batches of the walk come in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Txns {
    /// Not begun yet, the first one last.
    ahead: Vec<Aborted>,
    aborted: BTreeMap<i64, Open>,
    committed: BTreeSet<i64>,
}

impl Txns {
    /// A walk over segments whose aborted transactions are these.
    pub(crate) fn new(mut aborted: Vec<Aborted>) -> Self {
        aborted.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.first_offset));
        Self {
            ahead: aborted,
            ..Self::default()
        }
    }

    fn begin_up_to(&mut self, offset: i64) {
        while let Some(entry) = self.ahead.pop_if(|entry| entry.first_offset <= offset) {
            self.aborted
                .entry(entry.producer_id)
                .or_insert(Open { entry, seen: false });
        }
    }

    /// A batch of records: true if they were aborted.
    pub(crate) fn data(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some(open) = self.aborted.get_mut(&header.producer_id) {
            open.seen = true;
            return true;
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// A control batch. What is no marker of a transaction is always needed; a batch that was
    /// emptied is not.
    pub(crate) fn control(&mut self, header: &BatchHeader, marker: Option<Marker>) -> MarkerFate {
        self.begin_up_to(header.last_offset());
        let Some(marker) = marker else {
            return if header.count == 0 {
                MarkerFate::Idle
            } else {
                MarkerFate::Needed(None)
            };
        };
        if marker.commit {
            return if self.committed.remove(&header.producer_id) {
                MarkerFate::Needed(None)
            } else {
                MarkerFate::Idle
            };
        }
        match self.aborted.remove(&header.producer_id) {
            Some(open) if open.seen => MarkerFate::Needed(Some(open.entry)),
            _ => MarkerFate::Idle,
        }
    }
}
