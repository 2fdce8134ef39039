//! What all logs of one store share: the platform, the memory that is left, files to be deleted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::StoreOptions;
use crate::error::StorageError;
use crate::faults::Faults;
use crate::file::File;
use crate::flusher::{Flusher, InlineFlusher, ThreadFlusher};
use crate::log::Listener;
use crate::publish::Watermark;
use crate::store::Space;
use crate::sync::Arc as KernelArc;
use crate::sys::Platform;

/// Takes a lock whatever a panicking holder left: what it guards is whole between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process may have 65,530 mappings; beyond this many, segments are read by copy until idle ones
/// are unmapped.
const MAPPINGS_MAX: usize = 32_768;

/// Start offsets that move are written at most this often.
pub(crate) const CHECKPOINT_MS: i64 = 1000;

/// Which files are read through mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mapped {
    /// All.
    All,
    /// Those that do not grow any more.
    Sealed,
    /// None: the mount does not keep mappings and writes together.
    Nothing,
}

#[derive(Debug)]
struct Doomed {
    path: PathBuf,
    due: i64,
}

/// See the module.
pub(crate) struct Env {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) platform: Platform,
    pub(crate) faults: Option<Arc<Faults>>,
    pub(crate) memory: MemoryPool,
    pub(crate) mappings: AtomicUsize,
    pub(crate) flusher: Box<dyn Flusher>,
    /// When the earliest `flush.ms` runs out; `i64::MAX` for none.
    pub(crate) flush_due: AtomicI64,
    /// When the checkpoints must say that a start offset moved; `i64::MAX` for never.
    pub(crate) starts_due: AtomicI64,
    /// The store is being closed.
    pub(crate) stopping: AtomicBool,
    deadline_listener: Mutex<Option<Listener>>,
    mapped: Mapped,
    doomed: Mutex<Vec<Doomed>>,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env")
            .field("data_dir", &self.data_dir)
            .field("mapped", &self.mapped)
            .finish_non_exhaustive()
    }
}

impl Env {
    pub(crate) fn new(options: &StoreOptions) -> io::Result<Self> {
        let platform = Platform::new(options.portable);
        let coherent = match &options.data_dir {
            Some(dir) => mappings_are_coherent(dir)?,
            None => true,
        };
        let mapped = match (coherent, platform.maps_growing_files()) {
            (true, true) => Mapped::All,
            (true, false) => Mapped::Sealed,
            (false, _) => Mapped::Nothing,
        };
        let flusher: Box<dyn Flusher> = if options.inline_flush || options.data_dir.is_none() {
            Box::new(InlineFlusher)
        } else {
            Box::new(ThreadFlusher::start()?)
        };
        Ok(Self {
            data_dir: options.data_dir.clone(),
            platform,
            faults: options.faults.clone(),
            memory: MemoryPool::new(options.memory_max_bytes),
            mappings: AtomicUsize::new(0),
            flusher,
            flush_due: AtomicI64::new(i64::MAX),
            starts_due: AtomicI64::new(i64::MAX),
            stopping: AtomicBool::new(false),
            deadline_listener: Mutex::default(),
            mapped,
            doomed: Mutex::default(),
        })
    }

    /// Whether a segment may be read through a mapping.
    pub(crate) fn may_map(&self, sealed: bool) -> bool {
        let allowed = match self.mapped {
            Mapped::All => true,
            Mapped::Sealed => sealed,
            Mapped::Nothing => false,
        };
        allowed && self.mappings.load(Ordering::Relaxed) < MAPPINGS_MAX
    }

    /// Makes the file of a new segment: at `path`, or in memory.
    pub(crate) fn create_file(&self, path: Option<&Path>) -> io::Result<File> {
        match path {
            Some(path) => File::create(path, self.platform, self.faults.as_ref()),
            None => File::memory(self.platform),
        }
    }

    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        File::open(path, self.platform, self.faults.as_ref())
    }

    /// One operation on the disk, which injected faults may refuse.
    fn step(&self) -> io::Result<()> {
        self.faults.as_ref().map_or(Ok(()), |faults| faults.step())
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        fs::rename(from, to)
    }

    /// Removes a file; that it is gone already is fine.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        crate::file::remove_file(path)
    }

    /// Writes a small new file and syncs it.
    pub(crate) fn write_synced(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        crate::file::write_file(path, bytes)?;
        self.step()?;
        fs::File::open(path)?.sync_data()
    }

    /// Brings the names of a directory's files to the disk.
    pub(crate) fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.step()?;
        crate::file::sync_dir(dir)
    }

    /// Remembers to remove a file or directory at `due`.
    pub(crate) fn doom(&self, path: PathBuf, due: i64) {
        lock(&self.doomed).push(Doomed { path, due });
        self.deadline_moved();
    }

    /// Calls `f` whenever something may be due earlier than before.
    pub(crate) fn on_deadline(&self, f: Listener) {
        *lock(&self.deadline_listener) = Some(f);
    }

    fn deadline_moved(&self) {
        let listener = lock(&self.deadline_listener).clone();
        if let Some(listener) = listener {
            listener();
        }
    }

    /// Asks `tick` to write the checkpoints no later than `due`.
    pub(crate) fn checkpoint_by(&self, due: i64) {
        if due < self.starts_due.fetch_min(due, Ordering::AcqRel) {
            self.deadline_moved();
        }
    }

    /// Whether the store is being closed, so that long work should end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// When the next doomed file is due.
    pub(crate) fn next_doom(&self) -> Option<i64> {
        lock(&self.doomed).iter().map(|doomed| doomed.due).min()
    }

    /// Removes the doomed files that are due.
    pub(crate) fn purge(&self, now: i64) {
        let due = {
            let mut doomed = lock(&self.doomed);
            let (due, rest) = std::mem::take(&mut *doomed)
                .into_iter()
                .partition(|doomed| doomed.due <= now);
            *doomed = rest;
            let due: Vec<Doomed> = due;
            due
        };
        for Doomed { path, .. } in due {
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                self.remove(&path)
            };
            if let Err(error) = removed {
                tracing::warn!(path = %path.display(), %error, "cannot remove a deleted log file");
            }
        }
    }

    /// Asks `tick` to come back no later than `due` for a `flush.ms`.
    pub(crate) fn flush_by(&self, due: i64) {
        if due < self.flush_due.fetch_min(due, Ordering::AcqRel) {
            self.deadline_moved();
        }
    }
}

/// Tries whether this mount shows written bytes in a mapping at once. Some network and virtual
/// file systems do not, and some cannot map at all.
fn mappings_are_coherent(dir: &Path) -> io::Result<bool> {
    let path = dir.join(".ottla-probe");
    let file = fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    crate::file::remove_file(&path)?;
    let platform = Platform::new(true);
    platform.write_at(&file, 0, [b"a", b""])?;
    let published = KernelArc::new(Watermark::new(2));
    let Ok(mapping) = crate::mapping::Mapping::new(&file, 2, published) else {
        return Ok(false);
    };
    let before = mapping.array::<1>(0);
    platform.write_at(&file, 1, [b"b", b""])?;
    Ok(before == Some(*b"a") && mapping.array::<2>(0) == Some(*b"ab"))
}

/// The memory that the logs of a store may take together, in bytes of whole pages.
#[derive(Debug)]
pub(crate) struct MemoryPool {
    max: u64,
    used: AtomicU64,
}

/// Memory files grow by whole pages.
pub(crate) const PAGE: u64 = 4096;

impl MemoryPool {
    fn new(max: u64) -> Self {
        Self {
            max,
            used: AtomicU64::new(0),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn space(&self) -> Space {
        Space {
            total: self.max,
            usable: self.max.saturating_sub(self.used()),
        }
    }

    /// Takes `bytes`, or nothing if they are not there.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), StorageError> {
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&used| used <= self.max)
            });
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(StorageError::MemoryFull { max: self.max }),
        }
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
