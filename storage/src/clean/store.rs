//! Which log is compacted when, and how far each one is.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::plan::Plan;
use crate::config::CleanerOptions;
use crate::env::lock;
use crate::error::StorageError;
use crate::log::Log;
use crate::store::Store;

/// How far a log is compacted.
#[derive(Debug)]
pub(crate) struct Cleaning {
    /// The first offset that was not compacted yet; -1 for unknown.
    offset: AtomicI64,
    /// Something was found that no further attempt can overcome.
    given_up: AtomicBool,
}

impl Cleaning {
    pub(crate) fn new(offset: Option<i64>) -> Self {
        Self {
            offset: AtomicI64::new(offset.unwrap_or(-1)),
            given_up: AtomicBool::new(false),
        }
    }

    pub(crate) fn offset(&self) -> Option<i64> {
        Some(self.offset.load(Ordering::Acquire)).filter(|&offset| offset >= 0)
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }
}

impl Store {
    /// Compacts every log that is due at `now` (`cleanup.policy=compact`), the dirtiest first. Takes
    /// as long as that takes, and ends early when the store is closed. Call it off the paths that
    /// serve; appends and reads go on. Errors are logged; the work comes again.
    pub fn clean(&self, now: i64, options: &CleanerOptions) {
        let _alone = lock(&self.cleaning);
        let mut failed = BTreeSet::new();
        while !self.env.is_stopping() {
            let Some((log, plan)) = self.dirtiest(now, &failed) else {
                return;
            };
            match log.clean(&plan, now, options) {
                Ok(end) => {
                    tracing::debug!(log = log.name(), end, "compacted");
                    log.cleaning.offset.store(end, Ordering::Release);
                    if end <= plan.first_dirty {
                        failed.insert(log.name().to_owned());
                    }
                }
                Err(StorageError::Closed(_)) => {
                    failed.insert(log.name().to_owned());
                    continue;
                }
                Err(error) => {
                    self.note_failure(&log, &error);
                    failed.insert(log.name().to_owned());
                }
            }
            if let Err(error) = self.checkpoint() {
                tracing::warn!(%error, "cannot write the checkpoints");
            }
        }
    }

    /// Whether a log is to be compacted at all.
    pub fn has_compacted_logs(&self) -> bool {
        self.any(|log| log.config().cleanup_compact)
    }

    fn note_failure(&self, log: &Log, error: &StorageError) {
        if self.log_by_name(log.name()).is_none() {
            return; // deleted meanwhile
        }
        if let StorageError::Io { source, .. } = error
            && source.kind() == io::ErrorKind::InvalidData
        {
            log.cleaning.give_up();
        }
        let given_up = log.cleaning.is_given_up();
        tracing::warn!(log = log.name(), %error, given_up, "compaction failed");
    }

    fn dirtiest(&self, now: i64, failed: &BTreeSet<String>) -> Option<(Arc<Log>, Plan)> {
        let mut best: Option<(Arc<Log>, Plan)> = None;
        for log in self.all() {
            if !log.config().cleanup_compact || failed.contains(log.name()) {
                continue;
            }
            let plan = match log.cleaning_plan(now) {
                Ok(Some(plan)) if plan.is_due(&log.config()) => plan,
                Ok(_) => continue,
                Err(error) => {
                    tracing::warn!(log = log.name(), %error, "cannot look what is to be compacted");
                    continue;
                }
            };
            if best
                .as_ref()
                .is_none_or(|(_, best)| best.ratio() < plan.ratio())
            {
                best = Some((log, plan));
            }
        }
        best
    }
}
