//! A disk that fills up, fails, stalls and forgets on command: for tests and for the simulator.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::sys::Platform;

/// The faults of one data directory. Segment files opened through it obey.
///
/// ```
/// let faults = ottla_storage::Faults::new();
/// faults.set_room(Some(0)); // the disk is full
/// faults.set_room(None); // someone cleaned up
/// ```
#[derive(Debug)]
pub struct Faults {
    state: Mutex<State>,
    /// Told when writes that were held may go on.
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    room: Option<u64>,
    fail_syncs: bool,
    fail_opens: bool,
    /// Writes below directories whose name begins so wait.
    held: Option<String>,
    /// How many do.
    waiting: usize,
    /// Operations on files until the process counts as dead; `None` for a long life.
    left: Option<u64>,
    files: BTreeMap<PathBuf, Arc<FaultyFile>>,
}

#[derive(Debug)]
pub(crate) struct FaultyFile {
    file: fs::File,
    platform: Platform,
    /// The name of the directory that it is in: topic and partition.
    directory: String,
    synced_len: Mutex<u64>,
    faults: Arc<Faults>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// A disk that works, until told otherwise.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            released: Condvar::new(),
        })
    }

    /// Lets `bytes` more be written before the disk is full; `None` for a disk without end.
    /// The write that meets the end is cut short, as on a real disk.
    pub fn set_room(&self, bytes: Option<u64>) {
        lock(&self.state).room = bytes;
    }

    /// Makes every sync fail, or work again.
    pub fn fail_syncs(&self, fail: bool) {
        lock(&self.state).fail_syncs = fail;
    }

    /// Makes every opening and creation of a segment fail, or work again.
    pub fn fail_opens(&self, fail: bool) {
        lock(&self.state).fail_opens = fail;
    }

    /// Lets every write wait that goes to the directory of a partition whose name begins with `name`, as
    /// on a disk that stalls; `None` lets them go on.
    pub fn hold_writes(&self, name: Option<&str>) {
        lock(&self.state).held = name.map(str::to_owned);
        self.released.notify_all();
    }

    /// How many writes wait for [`Faults::hold_writes`].
    pub fn writes_held(&self) -> usize {
        lock(&self.state).waiting
    }

    /// Returns once writes to `directory` are not held.
    fn pass(&self, directory: &str) {
        let is_held =
            |state: &mut State| matches!(&state.held, Some(name) if directory.starts_with(name));
        let mut state = lock(&self.state);
        if is_held(&mut state) {
            state.waiting += 1;
            let released = self.released.wait_while(state, is_held);
            released.unwrap_or_else(PoisonError::into_inner).waiting -= 1;
        }
    }

    /// The process dies after `operations` more operations on files (writes, syncs, renames and the
    /// like): from then on each fails and does nothing. `None` lets it live. Operations that were
    /// done since are counted by [`Faults::operations_left`].
    pub fn die_after(&self, operations: Option<u64>) {
        lock(&self.state).left = operations;
    }

    /// How many of the operations of [`Faults::die_after`] are left; 0 means dead.
    pub fn operations_left(&self) -> Option<u64> {
        lock(&self.state).left
    }

    /// One operation on a file is about to be done.
    pub(crate) fn step(&self) -> io::Result<()> {
        match &mut lock(&self.state).left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("injected: the process is dead")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// The power went off: of what was appended to each file since its last sync only the first
    /// `keep` bytes are left. Drop the store without closing it, call this, open it again.
    pub fn crash(&self, keep: u64) -> io::Result<()> {
        let files = std::mem::take(&mut lock(&self.state).files);
        for file in files.values() {
            let synced = *lock(&file.synced_len);
            let len = file.file.metadata()?.len();
            file.file.set_len(len.min(synced.saturating_add(keep)))?;
        }
        Ok(())
    }

    pub(crate) fn check_open(&self) -> io::Result<()> {
        self.step()?;
        if lock(&self.state).fail_opens {
            return Err(io::Error::other("injected: cannot open the file"));
        }
        Ok(())
    }

    pub(crate) fn adopt(
        self: &Arc<Self>,
        path: &Path,
        file: fs::File,
        platform: Platform,
    ) -> io::Result<Arc<FaultyFile>> {
        let len = file.metadata()?.len();
        let mut state = lock(&self.state);
        if let Some(known) = state.files.get(path)
            && same_file(&known.file, &file)?
        {
            return Ok(Arc::clone(known));
        }
        let faulty = Arc::new(FaultyFile {
            file,
            platform,
            directory: directory_of(path),
            synced_len: Mutex::new(len),
            faults: Arc::clone(self),
        });
        state.files.insert(path.to_owned(), Arc::clone(&faulty));
        Ok(faulty)
    }
}

fn directory_of(path: &Path) -> String {
    let name = path.parent().and_then(Path::file_name);
    name.map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn same_file(a: &fs::File, b: &fs::File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (a.metadata()?, b.metadata()?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

impl FaultyFile {
    pub(crate) fn inner(&self) -> &fs::File {
        &self.file
    }

    pub(crate) fn write_at(&self, at: u64, parts: [&[u8]; 2]) -> io::Result<()> {
        self.faults.step()?;
        self.faults.pass(&self.directory);
        let total = (parts[0].len() + parts[1].len()) as u64;
        let fits = {
            let mut state = lock(&self.faults.state);
            let fits = state.room.unwrap_or(u64::MAX).min(total);
            if let Some(room) = &mut state.room {
                *room -= fits;
            }
            fits as usize
        };
        if fits as u64 == total {
            return self.platform.write_at(&self.file, at, parts);
        }
        let head = &parts[0][..fits.min(parts[0].len())];
        let tail = &parts[1][..fits - head.len()];
        self.platform.write_at(&self.file, at, [head, tail])?;
        Err(io::ErrorKind::StorageFull.into())
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.step()?;
        self.file.set_len(len)?;
        let mut synced = lock(&self.synced_len);
        *synced = (*synced).min(len);
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.faults.step()?;
        if lock(&self.faults.state).fail_syncs {
            return Err(io::Error::other("injected: sync failed"));
        }
        *lock(&self.synced_len) = self.file.metadata()?.len();
        Ok(())
    }
}
