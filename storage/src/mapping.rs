//! Read-only mappings of files that only grow. The one home of `unsafe` in this crate.
//!
//! Writes go through the file, never through a mapping (a store into a sparse mapping on a full
//! disk kills the process). A mapping may be longer than its file; nothing beyond the published
//! size is ever touched, and a file is never shortened below that size while it can be mapped.

#![allow(
    unsafe_code,
    reason = "reading a shared mapping by reference needs raw pointers; the rules are above"
)]

use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::{MmapOptions, MmapRaw};

use crate::publish::Watermark;
use crate::sync::Arc as KernelArc;

/// A mapping of one file together with the size up to which that file's bytes are final.
#[derive(Debug)]
pub(crate) struct Mapping {
    raw: MmapRaw,
    published: KernelArc<Watermark>,
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, of which `published` says how many are final.
    ///
    /// The caller must be the only writer of the file (the data directory is locked; memory files
    /// have no name) and must not shorten it below the published size.
    pub(crate) fn new(
        file: &fs::File,
        len: usize,
        published: KernelArc<Watermark>,
    ) -> io::Result<Self> {
        let raw = MmapOptions::new().len(len).map_raw_read_only(file)?;
        Ok(Self { raw, published })
    }

    /// Bytes that the mapping covers, published or not.
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// The range as a reference, if it is mapped and published.
    fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        let published = usize::try_from(self.published.get()).unwrap_or(usize::MAX);
        if range.start > range.end || range.end > published.min(self.raw.len()) {
            return None;
        }
        // SAFETY: the range lies inside the mapping, which lives as long as `self`. Its bytes are
        // published: they were written before the size was raised (Release/Acquire in
        // `Watermark`), nobody writes them again, and the file is never shortened below them, so
        // the memory is initialised, immutable and backed for the life of the reference.
        Some(unsafe {
            std::slice::from_raw_parts(self.raw.as_ptr().add(range.start), range.end - range.start)
        })
    }

    /// Shows the range to `look`, if it is mapped and published.
    pub(crate) fn with<R>(&self, range: Range<usize>, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.get(range).map(look)
    }

    /// Copies `N` bytes from `at`, if they are mapped and published.
    pub(crate) fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let bytes = self.get(at..at.checked_add(N)?)?;
        bytes.try_into().ok()
    }

    /// The range by reference, kept alive by the returned `Bytes`, if it is mapped and published.
    pub(crate) fn slice(self: &Arc<Self>, range: Range<usize>) -> Option<Bytes> {
        self.get(range.clone())?;
        Some(Bytes::from_owner(Slice {
            mapping: Arc::clone(self),
            range,
        }))
    }
}

struct Slice {
    mapping: Arc<Mapping>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        // Checked when the slice was made; the published size only grows.
        self.mapping.get(self.range.clone()).unwrap_or_default()
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn only_published_bytes_can_be_reached() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"hello world", 0).unwrap();
        let published = Arc::new(Watermark::new(5));
        let mapping = Arc::new(Mapping::new(&file, 1 << 16, published).unwrap());
        assert_eq!(mapping.slice(0..5).unwrap(), "hello");
        assert_eq!(mapping.array::<2>(3).unwrap(), *b"lo");
        assert!(mapping.slice(0..6).is_none());
        assert!(mapping.array::<2>(4).is_none());
        assert!(mapping.array::<2>(usize::MAX).is_none());
    }

    #[test]
    fn a_slice_outlives_the_file_and_the_mapping_handle() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"hello", 0).unwrap();
        let published = Arc::new(Watermark::new(5));
        let mapping = Arc::new(Mapping::new(&file, 5, published).unwrap());
        let slice = mapping.slice(1..5).unwrap();
        drop(file);
        drop(mapping);
        assert_eq!(slice, "ello");
    }
}
