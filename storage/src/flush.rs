//! Group commit: many appends, one sync. `GroupCommit` is the kernel (checked by
//! `tests/loom_flush.rs`), `Flusher` who runs the syncs.

use crate::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicI64, Ordering},
};
use std::sync::PoisonError;

/// The log's last sync failed, which is final: what the kernel still holds is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sync of this log failed; it takes no more appends until the broker is restarted")]
pub struct SyncFailed;

#[derive(Debug)]
struct State {
    synced: i64,
    queued: bool,
    failed: bool,
}

/// How far one log is written, and how far it is on the disk.
#[derive(Debug)]
pub struct GroupCommit {
    written: AtomicI64,
    state: Mutex<State>,
    done: Condvar,
}

impl GroupCommit {
    /// A log that is synced up to `offset`, exclusive.
    pub fn new(offset: i64) -> Self {
        Self {
            written: AtomicI64::new(offset),
            state: Mutex::new(State {
                synced: offset,
                queued: false,
                failed: false,
            }),
            done: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that everything below `end` has been handed to the kernel. Called in offset order.
    pub fn wrote(&self, end: i64) {
        self.written.store(end, Ordering::Release);
    }

    /// Asks for a sync of what is written by now. True if the caller must hand the log to the
    /// flusher; false if it waits there already, or has failed.
    pub fn request(&self) -> bool {
        let mut state = self.lock();
        if state.failed || state.queued {
            return false;
        }
        state.queued = true;
        true
    }

    /// Runs one sync for everyone who asked so far and tells them. The flusher calls this.
    pub fn run<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let target = {
            let mut state = self.lock();
            // From here on a request queues the log again: `target` may miss its bytes.
            state.queued = false;
            if state.failed {
                return Ok(());
            }
            self.written.load(Ordering::Acquire)
        };
        let result = sync();
        let mut state = self.lock();
        match &result {
            Ok(()) => state.synced = state.synced.max(target),
            Err(_) => state.failed = true,
        }
        self.done.notify_all();
        result
    }

    /// Waits until everything below `target` is on the disk. The caller wrote and requested it.
    pub fn wait(&self, target: i64) -> Result<(), SyncFailed> {
        let mut state = self.lock();
        loop {
            // First this: a sync that failed later says nothing of what an earlier one covered.
            if state.synced >= target {
                return Ok(());
            }
            if state.failed {
                return Err(SyncFailed);
            }
            state = self
                .done
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Someone else (a sync of the whole file system) synced everything that is written by now.
    pub fn synced_by_others(&self) {
        let mut state = self.lock();
        state.synced = state.synced.max(self.written.load(Ordering::Acquire));
        self.done.notify_all();
    }

    /// Offset below which everything is on the disk: the recovery point.
    pub fn synced(&self) -> i64 {
        self.lock().synced
    }

    /// Offset below which everything is written.
    pub fn written(&self) -> i64 {
        self.written.load(Ordering::Acquire)
    }

    /// Whether a sync failed.
    pub fn failed(&self) -> bool {
        self.lock().failed
    }

    /// Gives the log up, as a failed sync does, and lets every waiter know.
    pub fn fail(&self) {
        self.lock().failed = true;
        self.done.notify_all();
    }
}
