//! One partition's log: its state and its plain questions. Appending is in `append.rs`, reading in
//! `read.rs`, times in `times.rs`, removal from the front in `trim.rs`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::clean::Cleaning;
use crate::config::LogConfig;
use crate::env::{Env, lock};
use crate::epochs::Epochs;
use crate::error::StorageError;
use crate::file::replace_file;
use crate::flush::GroupCommit;
use crate::flusher::Syncable;
use crate::producer::{ProducerView, Producers};
use crate::publish::{Bounds, Published};
use crate::segment::{LogDir, Segment, segment_path};
use crate::snapshot;
use crate::sync::Arc as KernelArc;

/// Called after something was published.
pub type Listener = Arc<dyn Fn() + Send + Sync>;

/// A partition's log. Share it as `Arc<Log>`; every method may be called from any thread, blocks
/// for its file work only, and reads take no lock that an append holds while it writes.
pub struct Log {
    pub(crate) name: String,
    topic_id: [u8; 16],
    pub(crate) env: Arc<Env>,
    pub(crate) dir: Arc<LogDir>,
    config: RwLock<Arc<LogConfig>>,
    pub(crate) published: Published<Segment>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) epochs: RwLock<Epochs>,
    pub(crate) sync: Arc<SyncState>,
    listeners: RwLock<Arc<[Listener]>>,
    /// When `flush.ms` runs out for the oldest unsynced record; `i64::MAX` for never.
    pub(crate) flush_due: AtomicI64,
    /// How far the log is compacted.
    pub(crate) cleaning: Cleaning,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("name", &self.name)
            .field("bounds", &self.published.bounds())
            .finish_non_exhaustive()
    }
}

/// What only the one who appends, rolls or trims may touch: the log's lock.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) active: KernelArc<Segment>,
    pub(crate) producers: Producers,
    pub(crate) closed: bool,
    /// Something changed since the log was opened, so that a clean stop must write files.
    pub(crate) dirty: bool,
}

/// What a log is made of when it is opened.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) topic_id: [u8; 16],
    pub(crate) dir: Arc<LogDir>,
    pub(crate) config: LogConfig,
    pub(crate) sealed: Vec<Segment>,
    pub(crate) active: Segment,
    pub(crate) producers: Producers,
    pub(crate) epochs: Epochs,
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Offset below which everything is on the disk.
    pub(crate) synced: i64,
    /// Offset below which everything is compacted, if it ever was.
    pub(crate) cleaned: Option<i64>,
    pub(crate) dirty: bool,
}

impl Log {
    pub(crate) fn from_parts(env: &Arc<Env>, parts: Parts) -> Self {
        let active = KernelArc::new(parts.active);
        let mut segments: Vec<_> = parts.sealed.into_iter().map(KernelArc::new).collect();
        segments.push(KernelArc::clone(&active));
        let stable = stable_offset(&parts.producers, parts.start, parts.end);
        let bounds = Bounds {
            start: parts.start,
            stable,
            end: parts.end,
        };
        let commit = GroupCommit::new(parts.synced);
        commit.wrote(parts.end);
        // What a killed broker had not synced yet.
        let unsynced = (1..segments.len())
            .filter(|&next| segments[next].base > parts.synced)
            .map(|next| KernelArc::clone(&segments[next - 1]))
            .collect();
        let sync = SyncState {
            name: parts.name.clone(),
            commit,
            durable: env.data_dir.is_some(),
            failed: AtomicBool::new(false),
            unsynced: Mutex::new(Unsynced {
                rolled: unsynced,
                active: KernelArc::clone(&active),
            }),
            dir: Arc::clone(&parts.dir),
            dir_changed: AtomicBool::new(true),
        };
        Self {
            name: parts.name,
            topic_id: parts.topic_id,
            env: Arc::clone(env),
            dir: parts.dir,
            config: RwLock::new(Arc::new(parts.config)),
            published: Published::new(segments, bounds),
            writer: Mutex::new(Writer {
                active,
                producers: parts.producers,
                closed: false,
                dirty: parts.dirty,
            }),
            epochs: RwLock::new(parts.epochs),
            sync: Arc::new(sync),
            listeners: RwLock::new(Arc::new([])),
            flush_due: AtomicI64::new(i64::MAX),
            cleaning: Cleaning::new(parts.cleaned),
        }
    }

    /// Directory name: `<topic>-<partition>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Id of the topic, zeros if the directory does not say.
    pub fn topic_id(&self) -> [u8; 16] {
        self.topic_id
    }

    /// First offset that may be read.
    pub fn start_offset(&self) -> i64 {
        self.published.bounds().start
    }

    /// Offset that the next record gets. Everything below is readable: it is the high watermark too.
    pub fn end_offset(&self) -> i64 {
        self.published.bounds().end
    }

    /// Offset below which every transaction is decided.
    pub fn last_stable_offset(&self) -> i64 {
        self.published.bounds().stable
    }

    /// Start, last stable and end offset, taken together.
    pub fn bounds(&self) -> Bounds {
        self.published.bounds()
    }

    /// Bytes of all record batches in the log's segments.
    pub fn size_bytes(&self) -> u64 {
        self.published.segments().iter().map(|s| s.len()).sum()
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.published.segments().len()
    }

    /// Whether the log takes no more appends because a sync failed.
    pub fn is_failed(&self) -> bool {
        self.sync.failed.load(Ordering::Acquire)
    }

    /// Offset below which everything is synced to the disk (`recovery-point`).
    pub fn recovery_point(&self) -> i64 {
        self.sync.commit.synced()
    }

    /// The configuration as of now.
    pub fn config(&self) -> Arc<LogConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&config)
    }

    /// Changes the configuration; the next append and the next `tick` follow it.
    pub fn set_config(&self, config: LogConfig) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Calls `f` after every append and every change of the start offset, on the thread that made
    /// it, with no lock held. `f` must be quick and must not block.
    pub fn on_publish(&self, f: Listener) {
        let mut listeners = self
            .listeners
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *listeners = listeners.iter().cloned().chain([f]).collect();
    }

    pub(crate) fn announce(&self) {
        let listeners = {
            let current = self
                .listeners
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&current)
        };
        listeners.iter().for_each(|listener| listener());
    }

    pub(crate) fn epochs(&self) -> RwLockReadGuard<'_, Epochs> {
        self.epochs.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn epochs_mut(&self) -> RwLockWriteGuard<'_, Epochs> {
        self.epochs.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest leader epoch that wrote here.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.epochs().latest()
    }

    /// The leader epoch that wrote `offset`.
    pub fn epoch_for_offset(&self, offset: i64) -> Option<i32> {
        self.epochs().epoch_for_offset(offset)
    }

    /// `OffsetsForLeaderEpoch`: the largest epoch up to `epoch` that wrote here, and the first
    /// offset behind it; (-1, -1) if `epoch` is newer than any.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        self.epochs().end_offset_for(epoch, self.end_offset())
    }

    /// The producers that the log remembers, by id (`DescribeProducers`).
    pub fn producers(&self) -> Vec<ProducerView> {
        self.lock_writer().producers.views()
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// Syncs everything that is written by now and waits for it.
    pub fn flush(&self) -> Result<(), StorageError> {
        let target = self.sync.commit.written();
        self.request_sync();
        self.sync
            .commit
            .wait(target)
            .map_err(|_| StorageError::Failed(self.name.clone()))
    }

    /// Hands the log to the flusher unless it waits there already.
    pub(crate) fn request_sync(&self) {
        self.flush_due.store(i64::MAX, Ordering::Release);
        if self.sync.commit.request() {
            self.env
                .flusher
                .submit(Arc::clone(&self.sync) as Arc<dyn Syncable>);
        }
    }

    /// Writes the epochs where the disk has them.
    pub(crate) fn store_epochs(&self) {
        let Some(dir) = self.dir.path() else { return };
        let bytes = self.epochs().encode();
        if let Err(error) = replace_file(&dir.join(EPOCHS_FILE), &bytes, false) {
            // Batches carry their epochs: recovery finds them again.
            tracing::warn!(log = self.name, %error, "cannot write the leader epochs");
        }
    }

    /// Takes no more appends, and writes what a clean start needs: indexes and producers.
    /// True if that wrote something, which the caller syncs.
    pub(crate) fn close(&self) -> Result<bool, StorageError> {
        let mut writer = self.lock_writer();
        writer.closed = true;
        let Some(dir) = self.dir.path() else {
            return Ok(false);
        };
        writer.active.give_back_reserve();
        if !writer.dirty {
            return Ok(false);
        }
        let what = || format!("closing {}", self.name);
        writer
            .active
            .store_indexes()
            .map_err(StorageError::io(what()))?;
        let path = segment_path(&dir, self.end_offset(), "snapshot");
        snapshot::store(&path, &writer.producers).map_err(StorageError::io(what()))?;
        writer.dirty = false;
        Ok(true)
    }

    /// The log was deleted: it takes no more appends and syncs nothing.
    pub(crate) fn abandon(&self) {
        self.lock_writer().closed = true;
    }
}

/// File name of the leader epochs.
pub(crate) const EPOCHS_FILE: &str = "leader-epoch-checkpoint";

/// The last stable offset of a log with these producers.
pub(crate) fn stable_offset(producers: &Producers, start: i64, end: i64) -> i64 {
    producers
        .first_open()
        .map_or(end, |first| first.max(start).min(end))
}

/// The part of a log that the flusher needs.
#[derive(Debug)]
pub(crate) struct SyncState {
    name: String,
    pub(crate) commit: GroupCommit,
    durable: bool,
    failed: AtomicBool,
    unsynced: Mutex<Unsynced>,
    dir: Arc<LogDir>,
    dir_changed: AtomicBool,
}

#[derive(Debug)]
struct Unsynced {
    /// Rolled segments that were not synced since.
    rolled: Vec<KernelArc<Segment>>,
    active: KernelArc<Segment>,
}

impl SyncState {
    /// The log has a new active segment.
    pub(crate) fn rolled(&self, active: &KernelArc<Segment>) {
        let mut unsynced = lock(&self.unsynced);
        let old = std::mem::replace(&mut unsynced.active, KernelArc::clone(active));
        if self.durable {
            unsynced.rolled.push(old);
        }
        self.dir_changed.store(true, Ordering::Release);
    }

    fn sync_files(&self) -> std::io::Result<()> {
        let (rolled, active) = {
            let mut unsynced = lock(&self.unsynced);
            (
                std::mem::take(&mut unsynced.rolled),
                KernelArc::clone(&unsynced.active),
            )
        };
        for segment in rolled {
            if_there(segment.file().and_then(|file| file.sync()))?;
            segment.sync_index_files()?;
            segment.close_file();
        }
        if_there(active.file().and_then(|file| file.sync()))?;
        if self.dir_changed.swap(false, Ordering::AcqRel)
            && let Some(dir) = self.dir.path()
        {
            let sync = |dir: &Path| std::fs::File::open(dir).and_then(|dir| dir.sync_all());
            // The names of the files, and the name of a directory that may be new itself.
            if_there(sync(&dir))?;
            return dir.parent().map_or(Ok(()), sync);
        }
        Ok(())
    }
}

/// What is gone (retention, a deleted topic) needs no sync.
fn if_there(synced: std::io::Result<()>) -> std::io::Result<()> {
    match synced {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Syncable for SyncState {
    fn sync_now(&self) {
        let result = self.commit.run(|| {
            if self.durable {
                let result = self.sync_files();
                if result.is_err() {
                    self.failed.store(true, Ordering::Release);
                }
                return result;
            }
            Ok(())
        });
        if let Err(error) = result {
            tracing::error!(log = self.name, %error, "a sync failed; the log takes no more appends");
        }
    }
}
