//! What differs between operating systems. Everything has a portable form, which
//! `StoreOptions::portable` forces on Linux too, so that tests run it.

use std::fs;
use std::io;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::Space;

/// Chooses between the calls of this operating system and the portable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Platform {
    portable: bool,
}

impl Platform {
    pub(crate) fn new(portable: bool) -> Self {
        Self {
            portable: portable || !cfg!(target_os = "linux"),
        }
    }

    /// Whether a mapping may be longer than its file and shows what is appended later.
    pub(crate) fn maps_growing_files(self) -> bool {
        !self.portable
    }

    /// A file without a name, in memory where the system can.
    pub(crate) fn memory_file(self) -> io::Result<fs::File> {
        #[cfg(target_os = "linux")]
        if !self.portable {
            let fd = rustix::fs::memfd_create("ottla-log", rustix::fs::MemfdFlags::CLOEXEC)?;
            return Ok(fs::File::from(fd));
        }
        unlinked_file()
    }

    /// Writes `parts` one after the other from `at` on.
    pub(crate) fn write_at(self, file: &fs::File, at: u64, parts: [&[u8]; 2]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if !self.portable {
            return write_vectored_at(file, at, parts);
        }
        file.write_all_at(parts[0], at)?;
        file.write_all_at(parts[1], at + parts[0].len() as u64)
    }

    /// Reserves disk blocks for `from..from + len` without changing the file's size.
    /// False if this system or file system cannot.
    pub(crate) fn reserve(self, file: &fs::File, from: u64, len: u64) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        if !self.portable {
            use rustix::fs::FallocateFlags;
            use rustix::io::Errno;
            return match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, len) {
                Ok(()) => Ok(true),
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
                Err(error) => Err(error.into()),
            };
        }
        let _ = (file, from, len);
        Ok(false)
    }

    /// Something that changes whenever the machine starts, and with it the page cache.
    /// `None` where it is unknown: then no crash is taken for one that the page cache survived.
    pub(crate) fn boot_id(self) -> Option<String> {
        if self.portable {
            return None;
        }
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = id.trim().to_owned();
        (!id.is_empty()).then_some(id)
    }

    /// Syncs the whole file system that holds `dir`. False if each file must be synced by itself.
    pub(crate) fn sync_file_system(self, dir: &Path) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        if !self.portable {
            rustix::fs::syncfs(fs::File::open(dir)?)?;
            return Ok(true);
        }
        let _ = dir;
        Ok(false)
    }
}

#[cfg(target_os = "linux")]
fn write_vectored_at(file: &fs::File, at: u64, parts: [&[u8]; 2]) -> io::Result<()> {
    use io::IoSlice;
    let total = parts[0].len() + parts[1].len();
    let mut done = 0;
    while done < total {
        let head = parts[0].get(done..).unwrap_or_default();
        let tail = &parts[1][done.saturating_sub(parts[0].len())..];
        let slices = [IoSlice::new(head), IoSlice::new(tail)];
        match rustix::io::pwritev(file, &slices, at + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn unlinked_file() -> io::Result<fs::File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!(
            ".ottla-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        let made = fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        match made {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// The size of the volume that holds `dir`.
pub(crate) fn volume(dir: &Path) -> io::Result<Space> {
    let found = rustix::fs::statvfs(dir)?;
    Ok(Space {
        total: found.f_blocks.saturating_mul(found.f_frsize),
        usable: found.f_bavail.saturating_mul(found.f_frsize),
    })
}

/// The lock on a data directory. It ends when this is dropped, also while a child that was forked and
/// has not called `exec` yet holds a copy of the descriptor.
#[derive(Debug)]
pub(crate) struct DirLock(fs::File);

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing the file follows and would do, but for such a child.
        let _ = rustix::fs::flock(&self.0, rustix::fs::FlockOperation::Unlock);
    }
}

/// Locks `file` for this process alone, against other brokers (`flock`) and against Apache Kafka
/// (record locks). `None` if someone else holds it.
pub(crate) fn lock_exclusive(file: fs::File) -> io::Result<Option<DirLock>> {
    use rustix::fs::{FlockOperation, fcntl_lock, flock};
    use rustix::io::Errno;
    let taken = |error| match error {
        Errno::AGAIN | Errno::ACCESS => Ok(None),
        other => Err(io::Error::from(other)),
    };
    if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        return taken(error);
    }
    let lock = DirLock(file);
    match fcntl_lock(&lock.0, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        // Not every file system has record locks; `flock` is ours.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::INVAL) => Ok(Some(lock)),
        Err(error) => taken(error),
    }
}

/// Sixteen bytes that nobody can guess, for identifiers.
pub(crate) fn random_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_though_a_child_has_its_descriptor() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || file.reopen().unwrap();
        let lock = lock_exclusive(open()).unwrap().unwrap();
        let of_child = lock.0.try_clone().unwrap();
        assert!(lock_exclusive(open()).unwrap().is_none());
        drop(lock);
        assert!(lock_exclusive(open()).unwrap().is_some());
        drop(of_child);
    }

    #[test]
    fn both_platforms_write_both_parts_and_keep_the_size_exact() {
        for portable in [false, true] {
            let platform = Platform::new(portable);
            let file = platform.memory_file().unwrap();
            platform.write_at(&file, 3, [b"ab", b"cde"]).unwrap();
            assert_eq!(file.metadata().unwrap().len(), 8);
            let mut back = [0; 8];
            file.read_exact_at(&mut back, 0).unwrap();
            assert_eq!(&back, b"\0\0\0abcde");
        }
    }

    #[test]
    fn reserving_does_not_change_the_size() {
        let file = tempfile::tempfile().unwrap();
        Platform::new(false).reserve(&file, 0, 1 << 16).unwrap();
        assert!(!Platform::new(true).reserve(&file, 0, 1 << 16).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
