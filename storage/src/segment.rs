//! One segment of a log: its file, its mapping, its indexes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ottla_protocol::batch::BatchHeader;

use crate::env::{Env, PAGE, lock};
use crate::error::StorageError;
use crate::file::File;
use crate::mapping::Mapping;
use crate::publish::{ByteStore, Watermark};
use crate::segment_meta::{Meta, Newest, store_meta, stored_meta};
use crate::sync::Arc as KernelArc;
use crate::txn_index::Aborted;
use crate::view::{View, Walk};

const RESERVE_MIN: u64 = 64 << 10;
const RESERVE_MAX: u64 = 64 << 20;
/// The files of one segment.
pub(crate) const SUFFIXES: [&str; 5] = ["log", "index", "timeindex", "txnindex", "snapshot"];
const MAP_MIN: u64 = 1 << 20;

/// The directory of a log, which is renamed when the log is deleted. `None` in memory.
#[derive(Debug)]
pub(crate) struct LogDir(RwLock<Option<PathBuf>>);

impl LogDir {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self(RwLock::new(path))
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether there is a directory, so that files and not memory are behind the log.
    pub(crate) fn on_disk(&self) -> bool {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    pub(crate) fn moved(&self, path: PathBuf) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(path);
    }
}

/// `<base>.<suffix>` in `dir`.
pub(crate) fn segment_path(dir: &Path, base: i64, suffix: &str) -> PathBuf {
    dir.join(format!("{base:020}.{suffix}"))
}

/// `path` with more behind its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[derive(Debug)]
struct Handles {
    file: Option<Arc<File>>,
    mapping: Option<Arc<Mapping>>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) base: i64,
    size: KernelArc<Watermark>,
    env: Arc<Env>,
    dir: Arc<LogDir>,
    handles: Mutex<Handles>,
    /// `None` for a sealed segment whose index files have not been needed yet.
    meta: RwLock<Option<Meta>>,
    aborted: RwLock<Vec<Aborted>>,
    /// Of a sealed segment, once asked for: kept when the indexes are let go.
    newest: OnceLock<Option<Newest>>,
    sealed: AtomicBool,
    /// When the segment was made, and last written, in milliseconds since the epoch.
    pub(crate) created: i64,
    modified: AtomicI64,
    /// Bytes taken from the memory pool, or reserved on the disk.
    reserved: AtomicU64,
    used: AtomicBool,
    /// Its files go or went under another name: what is open stays open, see [`Segment::pin`].
    pinned: AtomicBool,
}

/// What recovery knows of a segment.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) base: i64,
    pub(crate) size: u64,
    pub(crate) file: Option<File>,
    pub(crate) meta: Option<Meta>,
    pub(crate) aborted: Vec<Aborted>,
    pub(crate) sealed: bool,
    pub(crate) modified: i64,
    /// Bytes taken from the memory pool.
    pub(crate) reserved: u64,
}

impl Segment {
    /// A segment as recovery found it.
    pub(crate) fn recovered(env: &Arc<Env>, dir: &Arc<LogDir>, found: Recovered) -> Self {
        Self {
            base: found.base,
            size: KernelArc::new(Watermark::new(found.size)),
            env: Arc::clone(env),
            dir: Arc::clone(dir),
            handles: Mutex::new(Handles {
                file: found.file.map(Arc::new),
                mapping: None,
            }),
            meta: RwLock::new(found.meta),
            aborted: RwLock::new(found.aborted),
            newest: OnceLock::new(),
            sealed: AtomicBool::new(found.sealed),
            created: found.modified,
            modified: AtomicI64::new(found.modified),
            reserved: AtomicU64::new(found.reserved),
            used: AtomicBool::new(false),
            pinned: AtomicBool::new(false),
        }
    }

    /// A new, empty segment.
    pub(crate) fn create(
        env: &Arc<Env>,
        dir: &Arc<LogDir>,
        base: i64,
        now: i64,
    ) -> io::Result<Self> {
        let path = dir.path().map(|dir| segment_path(&dir, base, "log"));
        // A memory file is made by the first append: a topic that is never used costs none.
        let file = match &path {
            Some(path) => Some(env.create_file(Some(path))?),
            None => None,
        };
        let found = Recovered {
            base,
            size: 0,
            file,
            meta: Some(Meta::new()),
            aborted: Vec::new(),
            sealed: false,
            modified: now,
            reserved: 0,
        };
        Ok(Self::recovered(env, dir, found))
    }

    pub(crate) fn len(&self) -> u64 {
        self.size.get()
    }

    pub(crate) fn modified(&self) -> i64 {
        self.modified.load(Ordering::Relaxed)
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    fn path(&self, suffix: &str) -> Option<PathBuf> {
        self.dir
            .path()
            .map(|dir| segment_path(&dir, self.base, suffix))
    }

    /// The open file, opened now if need be.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        self.file_of(&mut lock(&self.handles))
    }

    fn file_of(&self, handles: &mut Handles) -> io::Result<Arc<File>> {
        if let Some(file) = &handles.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(match self.path("log") {
            Some(path) => self.env.open_file(&path)?,
            None => self.env.create_file(None)?,
        });
        handles.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// A way to read what is published by now.
    pub(crate) fn view(&self) -> io::Result<View> {
        let size = self.size.get();
        self.used.store(true, Ordering::Relaxed);
        let mut handles = lock(&self.handles);
        if let Some(mapping) = &handles.mapping
            && mapping.len() as u64 >= size
        {
            return Ok(View::Mapped(Arc::clone(mapping)));
        }
        let file = self.file_of(&mut handles)?;
        let sealed = self.is_sealed();
        if size > 0 && self.env.may_map(sealed) {
            let len = if sealed {
                size
            } else {
                size.saturating_mul(2).next_power_of_two().max(MAP_MIN)
            };
            let published = KernelArc::clone(&self.size);
            // Out of mappings or address space: reading by copy still works.
            if let Ok(mapping) = Mapping::new(file.inner(), len as usize, published) {
                let mapping = Arc::new(mapping);
                if handles.mapping.is_none() {
                    self.env.mappings.fetch_add(1, Ordering::Relaxed);
                }
                handles.mapping = Some(Arc::clone(&mapping));
                if sealed && file.is_durable() && !self.is_pinned() {
                    handles.file = None;
                }
                return Ok(View::Mapped(mapping));
            }
        }
        Ok(View::Copied(file, size))
    }

    /// Lets go of what can be had again, if nobody used it since the last call.
    pub(crate) fn sweep(&self) {
        if self.used.swap(false, Ordering::Relaxed) || self.is_pinned() {
            return;
        }
        let sealed_on_disk = self.is_sealed() && self.dir.on_disk();
        let mut handles = lock(&self.handles);
        if self.is_pinned() {
            return;
        }
        if handles.file.is_some() || sealed_on_disk {
            if handles.mapping.take().is_some() {
                self.env.mappings.fetch_sub(1, Ordering::Relaxed);
            }
            if sealed_on_disk {
                handles.file = None;
            }
        }
        drop(handles);
        if sealed_on_disk {
            let mut meta = self.meta_mut();
            if !self.is_pinned() {
                *meta = None;
            }
        }
    }

    fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Acquire)
    }

    /// Opens the file and loads the indexes, and keeps both for as long as the segment lives: its
    /// files are about to be renamed, and another segment takes their names. Whoever reads it can go
    /// on, and never finds the other one's bytes.
    pub(crate) fn pin(&self) -> io::Result<()> {
        {
            let mut handles = lock(&self.handles);
            self.file_of(&mut handles)?;
            self.pinned.store(true, Ordering::Release);
        }
        self.with_meta(|_| ())
    }

    /// The segment's files have its names now.
    pub(crate) fn unpin(&self) {
        self.pinned.store(false, Ordering::Release);
    }

    /// Reserves the blocks of a whole segment of `bytes` (`preallocate`), where that is possible.
    pub(crate) fn preallocate(&self, bytes: u64) {
        let Ok(file) = self.file() else { return };
        if file.is_durable() && matches!(file.reserve(0, bytes), Ok(true)) {
            self.reserved.store(bytes, Ordering::Relaxed);
        }
    }

    fn meta_ref(&self) -> RwLockReadGuard<'_, Option<Meta>> {
        self.meta.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn meta_mut(&self) -> RwLockWriteGuard<'_, Option<Meta>> {
        self.meta.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks something up in the indexes, loading them first if need be.
    pub(crate) fn with_meta<R>(&self, look: impl FnOnce(&Meta) -> R) -> io::Result<R> {
        if let Some(meta) = &*self.meta_ref() {
            return Ok(look(meta));
        }
        self.used.store(true, Ordering::Relaxed);
        let (meta, rebuilt) = self.load_meta()?;
        let mut held = self.meta_mut();
        // Who was quicker wins: a pinned segment's file names are no longer its own.
        if held.is_none()
            && rebuilt
            && let Some(dir) = self.dir.path()
        {
            store_meta(&dir, self.base, &meta)?;
        }
        Ok(look(held.get_or_insert(meta)))
    }

    /// The newest timestamp and where it is; `None` without timestamps.
    pub(crate) fn newest(&self) -> io::Result<Option<Newest>> {
        if let Some(newest) = self.newest.get() {
            return Ok(*newest);
        }
        // Asked first: what is read of a segment that was sealed by then is final.
        let sealed = self.is_sealed();
        let newest = self.with_meta(|meta| meta.newest)?;
        if sealed {
            return Ok(*self.newest.get_or_init(|| newest));
        }
        Ok(newest)
    }

    /// Takes note of a batch that was just written. Writer only.
    pub(crate) fn add(&self, position: u64, header: &BatchHeader, interval: u32, now: i64) {
        self.modified.store(now, Ordering::Relaxed);
        if let Some(meta) = &mut *self.meta_mut() {
            meta.add(self.base, position, header, interval);
        }
    }

    pub(crate) fn add_aborted(&self, aborted: Aborted) {
        self.aborted
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(aborted);
    }

    pub(crate) fn aborted(&self) -> RwLockReadGuard<'_, Vec<Aborted>> {
        self.aborted.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The indexes, and whether their files must be written anew.
    fn load_meta(&self) -> io::Result<(Meta, bool)> {
        if let Some(dir) = self.dir.path()
            && let Some(meta) = stored_meta(&dir, self.base, self.len())?
        {
            return Ok((meta, false));
        }
        tracing::warn!(
            base = self.base,
            "a segment's index is missing or damaged, rebuilding it"
        );
        Ok((self.rebuild_meta()?, true))
    }

    fn rebuild_meta(&self) -> io::Result<Meta> {
        let size = self.len();
        let view = self.view()?;
        let mut meta = Meta::new();
        let mut walk = Walk::new(&view, 0, size);
        while let Some((position, header)) = walk.next()? {
            meta.add(self.base, position, &header, 4096);
        }
        meta.note_newest(self.base);
        Ok(meta)
    }

    /// Writes the index files as they are now, with the final time entry.
    pub(crate) fn store_indexes(&self) -> io::Result<()> {
        let Some(dir) = self.dir.path() else {
            return Ok(());
        };
        let meta = self.meta_ref().clone();
        if let Some(mut meta) = meta {
            meta.note_newest(self.base);
            store_meta(&dir, self.base, &meta)?;
        }
        crate::txn_index::store(&segment_path(&dir, self.base, "txnindex"), &self.aborted())
    }

    /// The segment is complete. Writer only.
    pub(crate) fn seal(&self) {
        if let Some(meta) = &mut *self.meta_mut() {
            meta.note_newest(self.base);
        }
        self.sealed.store(true, Ordering::Release);
        self.give_back_reserve();
    }

    /// Gives back disk blocks beyond the end.
    pub(crate) fn give_back_reserve(&self) {
        if self.dir.on_disk()
            && self.reserved.swap(0, Ordering::Relaxed) > 0
            && let Ok(file) = self.file()
        {
            let _ = file.set_len(self.len());
        }
    }

    /// Closes a durable sealed file once it is synced; reads open it again.
    pub(crate) fn close_file(&self) {
        if self.is_sealed() && self.dir.on_disk() {
            let mut handles = lock(&self.handles);
            if !self.is_pinned() {
                handles.file = None;
            }
        }
    }

    /// Syncs the index files of a sealed segment.
    pub(crate) fn sync_index_files(&self) -> io::Result<()> {
        for suffix in ["index", "timeindex", "txnindex"] {
            let Some(path) = self.path(suffix) else { break };
            match std::fs::File::open(path) {
                Ok(file) => file.sync_data()?,
                // Removed by retention meanwhile, or never written.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the segment's files `delay` milliseconds from `now`; they are renamed at once.
    /// Whoever reads the segment still can.
    pub(crate) fn discard(&self, now: i64, delay: i64) {
        for suffix in SUFFIXES {
            let Some(path) = self.path(suffix) else { break };
            let doomed = with_suffix(&path, ".deleted");
            match self.env.rename(&path, &doomed) {
                Ok(()) => self.env.doom(doomed, now.saturating_add(delay)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot rename a deleted file");
                }
            }
        }
        if delay <= 0 {
            self.env.purge(now);
        }
    }

    /// Position of the last indexed batch that ends at or before `offset`, or 0.
    pub(crate) fn position_before(&self, offset: i64) -> io::Result<u64> {
        if offset <= self.base {
            return Ok(0);
        }
        let relative = u32::try_from(offset.saturating_sub(self.base)).unwrap_or(u32::MAX);
        self.with_meta(|meta| {
            meta.offsets
                .last_where(|entry| entry.relative <= relative)
                .map_or(0, |entry| u64::from(entry.position))
        })
    }

    /// The last indexed batch boundary at or before `position` whose batch ends below `upper`.
    pub(crate) fn boundary_before(&self, position: u64, upper: i64) -> io::Result<u64> {
        self.with_meta(|meta| {
            meta.offsets
                .last_where(|entry| {
                    u64::from(entry.position) <= position
                        && self.base + i64::from(entry.relative) < upper
                })
                .map_or(0, |entry| u64::from(entry.position))
        })
    }

    fn reserve(&self, file: &File, end: u64) -> Result<(), StorageError> {
        let have = self.reserved.load(Ordering::Relaxed);
        if end <= have {
            return Ok(());
        }
        if file.is_durable() {
            let step = have.clamp(RESERVE_MIN, RESERVE_MAX);
            let want = end.saturating_add(step).next_multiple_of(PAGE);
            // A full disk may still take the batch itself; the write will tell.
            let from = have.max(self.len());
            let reserved = match file.reserve(from, want - from) {
                Ok(true) => want,
                Ok(false) => u64::MAX,
                Err(_) => end,
            };
            self.reserved.store(reserved, Ordering::Relaxed);
            return Ok(());
        }
        let want = end.next_multiple_of(PAGE);
        self.env.memory.take(want - have)?;
        self.reserved.store(want, Ordering::Relaxed);
        Ok(())
    }
}

impl ByteStore for Segment {
    type Error = StorageError;

    fn size(&self) -> &Watermark {
        &self.size
    }

    fn write(&self, at: u64, parts: [&[u8]; 2]) -> Result<(), StorageError> {
        let file = self.file().map_err(StorageError::io("opening a segment"))?;
        self.reserve(&file, at + (parts[0].len() + parts[1].len()) as u64)?;
        file.write_at(at, parts).map_err(|source| {
            // Only what is not published goes; the next append writes here again anyway.
            let _ = file.set_len(at);
            if file.is_durable() {
                self.reserved.store(at, Ordering::Relaxed);
            }
            StorageError::Io {
                what: "appending".into(),
                source,
            }
        })
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if !self.dir.on_disk() {
            self.env
                .memory
                .give_back(self.reserved.load(Ordering::Relaxed));
        }
        if lock(&self.handles).mapping.is_some() {
            self.env.mappings.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
