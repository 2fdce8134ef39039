//! Putting a compacted segment into the place of those that it was made of, and finishing or undoing
//! at the next start what a crash interrupted.
//!
//! Kafka's protocol of file names, so that either broker goes on where the other one died:
//! 1. `<base>.log.cleaned` and its indexes are written and synced. A crash until here leaves `.cleaned`
//!    files: they go.
//! 2. They are renamed to `.swap`. As long as one `.cleaned` is left, the old segments are whole and
//!    the `.swap` files go too.
//! 3. The old files are renamed to `.deleted`, and go later.
//! 4. `.swap` comes off. From 2 on a start finishes the work: it removes the old files in the range of
//!    the new segment and takes `.swap` off.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::output::CLEANED;
use crate::error::StorageError;
use crate::file::{remove_file, sync_dir};
use crate::log::Log;
use crate::segment::{Segment, segment_path, with_suffix};
use crate::sync::Arc as KernelArc;
use ottla_protocol::batch::BatchHeader;

const SWAP: &str = ".swap";
/// What a compacted segment has, in the order in which it is renamed. The log comes first: while
/// there is a `.log.swap`, a start removes what has the segment's other names.
const PARTS: [&str; 4] = ["log", "index", "timeindex", "txnindex"];

impl Log {
    /// Puts `new` into the place of `group`. Nothing happens if the group is no longer part of the
    /// log, because retention or a deletion was quicker.
    pub(super) fn swap(
        &self,
        group: &[KernelArc<Segment>],
        new: Segment,
        now: i64,
    ) -> Result<(), StorageError> {
        let what = || StorageError::io(format!("replacing segments of {}", self.name));
        let prepared = group
            .iter()
            .try_for_each(|segment| segment.pin())
            .and_then(|()| new.pin())
            .and_then(|()| self.rename_cleaned(new.base));
        if let Err(error) = prepared {
            self.remove_cleaned(new.base, CLEANED);
            self.remove_cleaned(new.base, SWAP);
            unpin(group);
            return Err(what()(error));
        }
        let new = KernelArc::new(new);
        let renamed = {
            let writer = self.lock_writer();
            let segments = self.published.segments();
            let at = segments
                .iter()
                .position(|segment| KernelArc::ptr_eq(segment, &group[0]));
            let Some(at) = at.filter(|_| !writer.closed) else {
                drop(writer);
                self.remove_cleaned(new.base, SWAP);
                unpin(group);
                return Ok(());
            };
            let renamed = self.take_names(group, new.base, now);
            // From here on the new segment is the one that counts, whatever names it has: if a rename
            // failed, the next start goes on with it.
            let mut list = segments[..at].to_vec();
            list.push(KernelArc::clone(&new));
            list.extend_from_slice(&segments[at + group.len()..]);
            self.published.replace(list);
            renamed
        };
        let settled = renamed.and_then(|()| match self.dir.path() {
            Some(dir) => self.env.sync_dir(&dir),
            None => Ok(()),
        });
        match settled {
            Ok(()) => {
                new.unpin();
                Ok(())
            }
            Err(error) => {
                self.cleaning.give_up();
                Err(what()(error))
            }
        }
    }

    /// Step 2.
    fn rename_cleaned(&self, base: i64) -> io::Result<()> {
        let Some(dir) = self.dir.path() else {
            return Ok(());
        };
        for part in PARTS {
            let path = segment_path(&dir, base, part);
            self.rename_if_there(&with_suffix(&path, CLEANED), &with_suffix(&path, SWAP))?;
        }
        self.env.sync_dir(&dir)
    }

    /// Steps 3 and 4.
    fn take_names(&self, group: &[KernelArc<Segment>], base: i64, now: i64) -> io::Result<()> {
        let Some(dir) = self.dir.path() else {
            return Ok(());
        };
        let delay = self.config().file_delete_delay_ms.max(0);
        for segment in group {
            for part in PARTS {
                let path = segment_path(&dir, segment.base, part);
                let doomed = with_suffix(&path, ".deleted");
                if self.rename_if_there(&path, &doomed)? {
                    self.env.doom(doomed, now.saturating_add(delay));
                }
            }
            if segment.base != base {
                // Where no segment begins, no recovery does.
                self.env
                    .remove(&segment_path(&dir, segment.base, "snapshot"))?;
            }
        }
        for part in PARTS {
            let path = segment_path(&dir, base, part);
            self.rename_if_there(&with_suffix(&path, SWAP), &path)?;
        }
        Ok(())
    }

    fn rename_if_there(&self, from: &Path, to: &Path) -> io::Result<bool> {
        match self.env.rename(from, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes what an attempt left behind.
    pub(super) fn remove_cleaned(&self, base: i64, suffix: &str) {
        let Some(dir) = self.dir.path() else { return };
        for part in PARTS {
            let path = with_suffix(&segment_path(&dir, base, part), suffix);
            if let Err(error) = self.env.remove(&path) {
                // The next start removes it.
                tracing::debug!(path = %path.display(), %error, "cannot remove a temporary file");
            }
        }
    }
}

/// Nothing became of it: the segments have their names still.
fn unpin(group: &[KernelArc<Segment>]) {
    for segment in group {
        segment.unpin();
    }
}

/// A file whose name ends in `suffix`: its path without that, and the offset that it begins with.
fn stripped(path: &Path, suffix: &str) -> Option<(PathBuf, i64)> {
    let name = path.file_name()?.to_str()?.strip_suffix(suffix)?;
    let (offset, part) = name.split_once('.')?;
    let known = PARTS.contains(&part);
    Some((path.with_file_name(name), offset.parse().ok()?)).filter(|_| known)
}

/// Finishes or undoes what a crash interrupted, as the module says.
pub(crate) fn finish_swaps(dir: &Path) -> io::Result<()> {
    let (mut cleaned, mut swaps) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if let Some((_, offset)) = stripped(&path, CLEANED) {
            cleaned.push((path, offset));
        } else if let Some((name, offset)) = stripped(&path, SWAP) {
            swaps.push((path, name, offset));
        }
    }
    if cleaned.is_empty() && swaps.is_empty() {
        return Ok(());
    }
    let undone = cleaned.iter().map(|(_, offset)| *offset).min();
    // First the swaps, then what says that they do not count.
    for (path, _, offset) in &swaps {
        if undone.is_some_and(|undone| *offset >= undone) {
            remove_file(path)?;
        }
    }
    cleaned.iter().try_for_each(|(path, _)| remove_file(path))?;
    swaps.retain(|(_, _, offset)| undone.is_none_or(|undone| *offset < undone));
    let logs = swaps
        .iter()
        .filter(|(_, name, _)| name.extension().is_some_and(|part| part == "log"));
    let (mut from, mut to) = (i64::MAX, i64::MIN);
    for (path, _, base) in logs {
        from = from.min(*base);
        // An empty one takes at least the place of the segment that begins there.
        to = to.max(end_of(path)?.max(base + 1));
    }
    for part in PARTS {
        for offset in crate::log_dir::list(dir, part)? {
            if (from..to).contains(&offset) {
                remove_file(&segment_path(dir, offset, part))?;
            }
        }
    }
    for part in PARTS {
        for (path, name, _) in &swaps {
            if name.extension().is_some_and(|found| found == part) {
                fs::rename(path, name)?;
            }
        }
    }
    tracing::info!(dir = %dir.display(), "finished an interrupted replacement of segments");
    sync_dir(dir)
}

/// The offset behind the last batch of a segment's file.
fn end_of(path: &Path) -> io::Result<i64> {
    use std::os::unix::fs::FileExt;
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    let (mut at, mut end) = (0, i64::MIN);
    let mut head = [0; ottla_protocol::batch::HEADER_LEN];
    while at + head.len() as u64 <= size {
        file.read_exact_at(&mut head, at)?;
        let Ok(header) = BatchHeader::parse(&head) else {
            break;
        };
        at += header.size() as u64;
        if at > size {
            break;
        }
        end = header.next_offset();
    }
    Ok(end)
}
