//! Who runs the syncs: one thread for a data directory, or the caller itself (the simulator's way).

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam::channel::{Sender, unbounded};

/// Something that can be synced: one log.
pub(crate) trait Syncable: Send + Sync {
    /// Runs one group commit. Errors are recorded in the log itself.
    fn sync_now(&self);
}

/// Runs syncs on request.
pub(crate) trait Flusher: Send + Sync {
    /// Takes a log whose `GroupCommit::request` answered true.
    fn submit(&self, log: Arc<dyn Syncable>);
    /// Runs what was submitted and takes nothing more.
    fn stop(&self);
}

/// Syncs inside `submit`: no thread, the same order every time.
#[derive(Debug, Default)]
pub(crate) struct InlineFlusher;

impl Flusher for InlineFlusher {
    fn submit(&self, log: Arc<dyn Syncable>) {
        log.sync_now();
    }

    fn stop(&self) {}
}

/// One thread that syncs logs in the order in which they asked.
#[derive(Debug)]
pub(crate) struct ThreadFlusher {
    queue: Sender<Option<Arc<dyn Syncable>>>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for dyn Syncable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Syncable")
    }
}

impl ThreadFlusher {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (queue, requests) = unbounded::<Option<Arc<dyn Syncable>>>();
        let thread = std::thread::Builder::new()
            .name("ottla-flusher".into())
            .spawn(move || {
                while let Ok(Some(log)) = requests.recv() {
                    log.sync_now();
                }
            })?;
        Ok(Self {
            queue,
            thread: std::sync::Mutex::new(Some(thread)),
        })
    }
}

impl Flusher for ThreadFlusher {
    fn submit(&self, log: Arc<dyn Syncable>) {
        // After `stop` nobody receives: the caller syncs for itself, so that no waiter is left.
        if let Err(back) = self.queue.send(Some(log))
            && let Some(log) = back.into_inner()
        {
            log.sync_now();
        }
    }

    fn stop(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        // The last user of a store may be the flusher itself, which cannot wait for its own end.
        let itself = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != itself) {
            let _ = self.queue.send(None);
            if thread.join().is_err() {
                tracing::error!("the flusher thread had panicked");
            }
        }
    }
}

impl Drop for ThreadFlusher {
    fn drop(&mut self) {
        self.stop();
    }
}
