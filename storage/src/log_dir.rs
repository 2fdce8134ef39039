//! What lies in a log's directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::clean::swap::finish_swaps;
use crate::file::remove_file;
use crate::segment::segment_path;

/// A segment's files, as found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) base: i64,
    pub(crate) size: u64,
    pub(crate) modified: i64,
}

/// Removes what interrupted work left behind; returns the offsets of the producer snapshots.
pub(crate) fn tidy(path: &Path) -> io::Result<Vec<i64>> {
    finish_swaps(path)?;
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|e| e.to_str());
        if matches!(extension, Some("deleted" | "tmp")) {
            remove_file(&path)?;
        }
    }
    list(path, "snapshot")
}

/// The offsets in the names of the files with this suffix, in order.
pub(crate) fn list(path: &Path, suffix: &str) -> io::Result<Vec<i64>> {
    let mut offsets = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = PathBuf::from(entry?.file_name());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if path
            .extension()
            .is_some_and(|extension| extension == suffix)
            && let Some(Ok(offset)) = stem.map(str::parse::<i64>)
            && offset >= 0
        {
            offsets.push(offset);
        }
    }
    offsets.sort_unstable();
    Ok(offsets)
}

/// The segments in order; a directory without any gets an empty one.
pub(crate) fn list_segments(path: &Path, start: i64) -> io::Result<Vec<Found>> {
    let mut bases = list(path, "log")?;
    if bases.is_empty() {
        let base = start.max(0);
        fs::File::create(segment_path(path, base, "log"))?;
        bases.push(base);
    }
    bases
        .into_iter()
        .map(|base| {
            let metadata = fs::metadata(segment_path(path, base, "log"))?;
            let modified = metadata
                .modified()
                .ok()
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                .map_or(0, |age| age.as_millis() as i64);
            Ok(Found {
                base,
                size: metadata.len(),
                modified,
            })
        })
        .collect()
}
