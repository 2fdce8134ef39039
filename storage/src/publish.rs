//! How appended bytes become visible: the kernel that every append and every read goes through.
//!
//! One writer at a time (the log's lock sees to that), any number of readers without it. Bytes are
//! written first, then the segment's size is raised, then the log's end: whoever sees an end sees
//! the bytes below it. A segment that left the list lives until its last reader lets go of it.
//! Checked by `tests/loom_publish.rs`.

use crate::sync::{
    Arc, RwLock,
    atomic::{AtomicI64, AtomicU64, Ordering},
};
use std::sync::PoisonError;

/// How many bytes of a segment are published. They never change and never go away again while
/// anyone can reach the segment.
#[derive(Debug)]
pub struct Watermark(AtomicU64);

impl Watermark {
    /// A segment whose first `size` bytes are published.
    pub fn new(size: u64) -> Self {
        Self(AtomicU64::new(size))
    }

    /// The published size in bytes. What lies below it may be read.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn raise(&self, size: u64) {
        self.0.store(size, Ordering::Release);
    }
}

/// What a segment must offer to be appended to.
pub trait ByteStore {
    /// Why a write failed.
    type Error;
    /// The published size.
    fn size(&self) -> &Watermark;
    /// Writes `parts` one after the other from `at` on, beyond everything that is published.
    /// After an error the bytes from `at` on may be anything.
    fn write(&self, at: u64, parts: [&[u8]; 2]) -> Result<(), Self::Error>;
}

/// The offsets that readers may rely on, taken together: `start <= end`, `stable <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// First offset that may be read.
    pub start: i64,
    /// Last stable offset: everything below it is decided.
    pub stable: i64,
    /// Log end offset, which here is the high watermark.
    pub end: i64,
}

/// A log's published state: its segments, oldest first, and its offsets.
#[derive(Debug)]
pub struct Published<S> {
    segments: RwLock<Arc<Vec<Arc<S>>>>,
    start: AtomicI64,
    stable: AtomicI64,
    end: AtomicI64,
}

impl<S> Published<S> {
    /// The state of a log that was just opened or made.
    pub fn new(segments: Vec<Arc<S>>, bounds: Bounds) -> Self {
        Self {
            segments: RwLock::new(Arc::new(segments)),
            start: AtomicI64::new(bounds.start),
            stable: AtomicI64::new(bounds.stable),
            end: AtomicI64::new(bounds.end),
        }
    }

    /// The segments as of now. Take the bounds first: the list then covers all of them, save what a
    /// trim removed meanwhile.
    pub fn segments(&self) -> Arc<Vec<Arc<S>>> {
        let list = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&list)
    }

    /// Replaces the list (a roll, a trim). Writer only.
    pub fn replace(&self, segments: Vec<Arc<S>>) {
        let next = Arc::new(segments);
        let mut list = self
            .segments
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *list, next);
        drop(list);
        drop(old);
    }

    /// The published offsets.
    pub fn bounds(&self) -> Bounds {
        // The end last: it only grows, so that the other two cannot be beyond it.
        let start = self.start.load(Ordering::Acquire);
        let stable = self.stable.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        Bounds { start, stable, end }
    }

    /// Raises the start offset. Writer only, and before the segments below it leave the list.
    pub fn raise_start(&self, start: i64) {
        self.start.store(start, Ordering::Release);
    }

    /// Raises the last stable offset without an append. Writer only.
    pub fn raise_stable(&self, stable: i64) {
        self.stable.store(stable, Ordering::Release);
    }
}

impl<S: ByteStore> Published<S> {
    /// Appends `parts` to `segment`, the last of the list, and publishes them. Writer only.
    ///
    /// `describe` runs between the write and the publication, with the position at which the bytes
    /// start; it updates what readers will look up (indexes, aborted transactions) and returns the
    /// new end and the new last stable offset. An error leaves everything as it was.
    pub fn append(
        &self,
        segment: &S,
        parts: [&[u8]; 2],
        describe: impl FnOnce(u64) -> (i64, i64),
    ) -> Result<(), S::Error> {
        let at = segment.size().get();
        segment.write(at, parts)?;
        let (end, stable) = describe(at);
        let len = parts[0].len() + parts[1].len();
        segment.size().raise(at + len as u64);
        self.end.store(end, Ordering::Release);
        // After the end, so that a reader who sees this stable offset sees that end too.
        self.stable.store(stable, Ordering::Release);
        Ok(())
    }
}
