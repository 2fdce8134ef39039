//! The segment that a group of segments becomes: written beside them under names that end in
//! `.cleaned`, or in memory.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use ottla_protocol::batch::BatchHeader;

use crate::env::{Env, PAGE};
use crate::error::StorageError;
use crate::file::File;
use crate::segment::{LogDir, Recovered, Segment, segment_path, with_suffix};
use crate::segment_meta::Meta;
use crate::txn_index::{self, Aborted};

/// The end of the names of files that are being written.
pub(crate) const CLEANED: &str = ".cleaned";
/// Bytes that are collected for one write.
const BUFFER: usize = 512 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Output {
    env: Arc<Env>,
    dir: Arc<LogDir>,
    base: i64,
    interval: u32,
    file: File,
    written: u64,
    buffer: Vec<u8>,
    meta: Meta,
    aborted: Vec<Aborted>,
    /// Bytes taken from the memory pool; given back unless the segment takes them over.
    taken: u64,
}

impl Output {
    pub(crate) fn create(
        env: &Arc<Env>,
        dir: &Arc<LogDir>,
        base: i64,
        interval: u32,
    ) -> io::Result<Self> {
        let path = dir.path().map(|dir| cleaned_path(&dir, base, "log"));
        Ok(Self {
            env: Arc::clone(env),
            dir: Arc::clone(dir),
            base,
            interval,
            file: env.create_file(path.as_deref())?,
            written: 0,
            buffer: Vec::new(),
            meta: Meta::new(),
            aborted: Vec::new(),
            taken: 0,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Adds a batch; with it the aborted transaction whose marker it is.
    pub(crate) fn push(
        &mut self,
        header: &BatchHeader,
        batch: &Bytes,
        aborted: Option<Aborted>,
    ) -> Result<(), StorageError> {
        if self.len() + batch.len() as u64 > i32::MAX as u64 {
            return Err(StorageError::io("compacting")(io::Error::other(
                "a compacted segment would be larger than a segment can be",
            )));
        }
        self.meta.add(self.base, self.len(), header, self.interval);
        self.aborted.extend(aborted);
        if self.buffer.len() + batch.len() > BUFFER {
            self.write_out()?;
        }
        self.buffer.extend_from_slice(batch);
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), StorageError> {
        if !self.file.is_durable() {
            let want = self.len().next_multiple_of(PAGE);
            self.env.memory.take(want - self.taken)?;
            self.taken = want;
        }
        self.file
            .write_at(self.written, [&self.buffer, &[]])
            .map_err(StorageError::io("writing a compacted segment"))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Completes the files and syncs them. What comes back has the final names, which it does not
    /// have yet: it is pinned to its open file until it is [settled](Segment::settled).
    pub(crate) fn finish(mut self, modified: i64) -> Result<Segment, StorageError> {
        self.write_out()?;
        if modified > 0 {
            // Retention goes by it where records have no time. Best effort.
            let at = UNIX_EPOCH + Duration::from_millis(modified.unsigned_abs());
            let _ = self.file.inner().set_modified(at);
        }
        self.meta.note_newest(self.base);
        if let Some(dir) = self.dir.path() {
            self.store(&dir)
                .map_err(StorageError::io("syncing a compacted segment"))?;
        }
        let file = match &self.file {
            File::Disk(file, platform) => file.try_clone().map(|file| File::Disk(file, *platform)),
            File::Memory(file, platform) => {
                file.try_clone().map(|file| File::Memory(file, *platform))
            }
            File::Faulty(faulty) => Ok(File::Faulty(Arc::clone(faulty))),
        };
        let found = Recovered {
            base: self.base,
            size: self.written,
            file: Some(file.map_err(StorageError::io("opening a compacted segment"))?),
            meta: Some(self.meta.clone()),
            aborted: std::mem::take(&mut self.aborted),
            sealed: true,
            modified,
            reserved: std::mem::take(&mut self.taken),
        };
        Ok(Segment::recovered(&self.env, &self.dir, found))
    }

    fn store(&self, dir: &Path) -> io::Result<()> {
        self.file.sync()?;
        let write = |suffix, bytes: &[u8]| {
            let path = cleaned_path(dir, self.base, suffix);
            self.env.write_synced(&path, bytes)
        };
        write("index", &self.meta.offsets.to_bytes())?;
        write("timeindex", &self.meta.times.to_bytes())?;
        if !self.aborted.is_empty() {
            write("txnindex", &txn_index::encode(&self.aborted))?;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.env.memory.give_back(self.taken);
    }
}

/// `<base>.<suffix>.cleaned` in `dir`.
pub(crate) fn cleaned_path(dir: &Path, base: i64, suffix: &str) -> std::path::PathBuf {
    with_suffix(&segment_path(dir, base, suffix), CLEANED)
}
