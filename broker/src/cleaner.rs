//! When compaction runs, and where: on a thread of its own, every `log.cleaner.backoff.ms` of state
//! time. What is compacted and how is the store's business.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use ottla_coordinator::types::Ts;
use ottla_storage::{CleanerOptions, Store};

use crate::broker::Broker;
use crate::config::LogDefaults;
use crate::deadlines::Due;

/// A shorter rest would be no rest.
const MIN_BACKOFF_MS: i64 = 100;

#[derive(Debug, Default)]
struct State {
    /// The next run: its time and what it runs with.
    job: Option<(Ts, CleanerOptions)>,
    busy: bool,
    stopped: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run, once there is one; `None` at the end.
    fn next(&self) -> Option<(Ts, CleanerOptions)> {
        let mut state = self.lock();
        state.busy = false;
        self.changed.notify_all();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(job) = state.job.take() {
                state.busy = true;
                return Some(job);
            }
            state = self.wait(state);
        }
    }
}

/// Compaction's deadlines. Dropped, the thread ends after what it is doing.
#[derive(Debug)]
pub(crate) struct LogCleaner {
    broker: Weak<Broker>,
    shared: Arc<Shared>,
}

impl LogCleaner {
    /// Starts the thread, which waits for the first deadline.
    pub(crate) fn start(broker: Weak<Broker>, store: Arc<Store>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let work = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("ottla-cleaner".into())
            .spawn(move || {
                while let Some((now, options)) = work.next() {
                    store.clean(now, &options);
                }
            })?;
        Ok(Self { broker, shared })
    }
}

/// The first deadline after `now`, if compaction is on.
pub(crate) fn first_run(log: &LogDefaults, now: Ts) -> Option<Ts> {
    log.cleaner_enable
        .then(|| now.saturating_add(log.cleaner_backoff_ms.max(MIN_BACKOFF_MS)))
}

impl Due for LogCleaner {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.broker.upgrade()?;
        let log = &broker.config().log;
        if broker.store().has_compacted_logs() {
            let options = CleanerOptions {
                dedupe_buffer_bytes: u64::try_from(log.cleaner_dedupe_buffer_size).unwrap_or(0),
                load_factor: log.cleaner_load_factor,
            };
            self.shared.lock().job = Some((now, options));
            self.shared.changed.notify_all();
        }
        first_run(log, now)
    }

    fn settle(&self) {
        let mut state = self.shared.lock();
        while !state.stopped && (state.busy || state.job.is_some()) {
            state = self.shared.wait(state);
        }
    }
}

impl Drop for LogCleaner {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }
}
