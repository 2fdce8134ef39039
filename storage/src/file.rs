//! The one door to a segment's file: on the disk, in memory, or on a disk that fails on command.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::faults::{Faults, FaultyFile};
use crate::sys::Platform;

/// A file that log data is written to and read from.
#[derive(Debug)]
pub(crate) enum File {
    /// A file in the data directory.
    Disk(fs::File, Platform),
    /// A file without a name that goes away with its last user.
    Memory(fs::File, Platform),
    /// A file that fails and forgets as its [`Faults`] say.
    Faulty(Arc<FaultyFile>),
}

impl File {
    /// Makes a new file, or opens one that is left over from an attempt that failed, and empties it.
    pub(crate) fn create(
        path: &Path,
        platform: Platform,
        faults: Option<&Arc<Faults>>,
    ) -> io::Result<Self> {
        Self::with(path, platform, faults, |options| {
            options.create(true).truncate(true)
        })
    }

    /// Opens a file that exists.
    pub(crate) fn open(
        path: &Path,
        platform: Platform,
        faults: Option<&Arc<Faults>>,
    ) -> io::Result<Self> {
        Self::with(path, platform, faults, |options| options)
    }

    fn with(
        path: &Path,
        platform: Platform,
        faults: Option<&Arc<Faults>>,
        options: impl FnOnce(&mut fs::OpenOptions) -> &mut fs::OpenOptions,
    ) -> io::Result<Self> {
        if let Some(faults) = faults {
            faults.check_open()?;
        }
        let file = options(fs::File::options().read(true).write(true)).open(path)?;
        Ok(match faults {
            Some(faults) => Self::Faulty(faults.adopt(path, file, platform)?),
            None => Self::Disk(file, platform),
        })
    }

    /// A file in memory.
    pub(crate) fn memory(platform: Platform) -> io::Result<Self> {
        Ok(Self::Memory(platform.memory_file()?, platform))
    }

    /// The file itself, for mapping it.
    pub(crate) fn inner(&self) -> &fs::File {
        match self {
            Self::Disk(file, _) | Self::Memory(file, _) => file,
            Self::Faulty(faulty) => faulty.inner(),
        }
    }

    /// Whether the file is on a disk.
    pub(crate) fn is_durable(&self) -> bool {
        !matches!(self, Self::Memory(..))
    }

    /// Writes `parts` one after the other from `at` on. After an error, any of it may be there.
    pub(crate) fn write_at(&self, at: u64, parts: [&[u8]; 2]) -> io::Result<()> {
        match self {
            Self::Disk(file, platform) | Self::Memory(file, platform) => {
                platform.write_at(file, at, parts)
            }
            Self::Faulty(faulty) => faulty.write_at(at, parts),
        }
    }

    /// Fills `buffer` from `at` on; the end of the file before that is an error.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.inner().read_exact_at(buffer, at)
    }

    /// Cuts the file to `len` bytes, which also gives back blocks that were reserved beyond.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        match self {
            Self::Disk(file, _) | Self::Memory(file, _) => file.set_len(len),
            Self::Faulty(faulty) => faulty.set_len(len),
        }
    }

    /// Brings what was written to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Self::Disk(file, _) => file.sync_data(),
            Self::Memory(..) => Ok(()),
            Self::Faulty(faulty) => faulty.sync(),
        }
    }

    /// Reserves blocks ahead of appends. False where that is not possible or not wanted.
    pub(crate) fn reserve(&self, from: u64, len: u64) -> io::Result<bool> {
        match self {
            Self::Disk(file, platform) => platform.reserve(file, from, len),
            Self::Memory(..) | Self::Faulty(_) => Ok(false),
        }
    }
}

/// Writes a small file so that a crash leaves the old one or the new one, never half of either.
/// `sync` makes sure that the new one's bytes are on the disk before it takes the name.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let file = fs::File::create(&temporary)?;
    let written = file
        .write_all_at(bytes, 0)
        .and_then(|()| if sync { file.sync_data() } else { Ok(()) })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a small file where half of one would be noticed: before the clean-shutdown marker, or
/// before the next segment is begun.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)
}

/// Brings the names of a directory's files to the disk.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    fs::File::open(dir)?.sync_all()
}

/// Removes a file; that it is gone already is fine.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a file; `None` if there is none.
pub(crate) fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
