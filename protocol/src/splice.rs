#![allow(
    unsafe_code,
    reason = "BufMut is an unsafe trait; this file holds its one implementation"
)]
//! Encoding without copying records.
//!
//! [`Splice`] is the buffer that a message is encoded into. It knows some `Bytes` by address (the
//! records of a fetch, slices of a mapped segment). When the encoder writes one of them, it is kept by
//! reference; all else is copied into one buffer. [`Spliced`] is the outcome: what a plain encode would
//! have given, byte for byte, as a chain of parts.

use std::io::IoSlice;

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::buf::ByteBufMut;

/// Shorter slices are copied: a part of its own costs more than copying this many bytes.
const MIN_SPLICE: usize = 512;

/// A growing buffer that keeps registered `Bytes` by reference.
#[derive(Debug)]
pub(crate) struct Splice<'a> {
    /// What may be kept by reference.
    known: &'a [Bytes],
    /// Where in `known` the next match is expected: messages are encoded in the order they were built.
    next: usize,
    /// All that was copied.
    copied: BytesMut,
    /// What was kept, each with the length of `copied` at that moment.
    kept: Vec<(usize, Bytes)>,
    /// Bytes in `kept`.
    kept_len: usize,
}

impl<'a> Splice<'a> {
    pub(crate) fn new(known: &'a [Bytes]) -> Self {
        Self {
            known,
            next: 0,
            copied: BytesMut::with_capacity(256),
            kept: Vec::new(),
            kept_len: 0,
        }
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.copied.len() + self.kept_len
    }

    /// Overwrites the first four bytes, once they were written.
    pub(crate) fn set_prefix(&mut self, prefix: [u8; 4]) {
        if let Some(front) = self.copied.first_chunk_mut() {
            *front = prefix;
        }
    }

    /// The parts, in order, none of them empty.
    pub(crate) fn finish(self) -> Spliced {
        let total = self.len();
        let mut copied = self.copied.freeze();
        let mut cut = 0;
        let mut parts = Vec::with_capacity(2 * self.kept.len() + 1);
        for (at, kept) in self.kept {
            if at > cut {
                parts.push(copied.split_to(at - cut));
                cut = at;
            }
            parts.push(kept);
        }
        if !copied.is_empty() {
            parts.push(copied);
        }
        Spliced {
            parts,
            first: 0,
            remaining: total,
        }
    }

    /// The registered `Bytes` that `slice` is, if it is one.
    fn registered(&mut self, slice: &[u8]) -> Option<&'a Bytes> {
        let same = |known: &Bytes| std::ptr::eq::<[u8]>(&raw const **known, slice);
        let (before, after) = self.known.split_at(self.next.min(self.known.len()));
        let from = before.len();
        let at = match after.iter().position(same) {
            Some(at) => from + at,
            None => before.iter().position(same)?,
        };
        self.next = at + 1;
        self.known.get(at)
    }
}

// SAFETY: all three methods are those of `BytesMut` on the field `copied`, which upholds the contract
// of the trait; `put_slice` is overridden with a safe body that appends exactly the bytes it is given.
unsafe impl BufMut for Splice<'_> {
    fn remaining_mut(&self) -> usize {
        self.copied.remaining_mut()
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller promises that the next `count` bytes of `chunk_mut` are initialised, and
        // `chunk_mut` is that of `copied`.
        unsafe { self.copied.advance_mut(count) }
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.copied.chunk_mut()
    }

    #[inline]
    fn put_slice(&mut self, src: &[u8]) {
        if src.len() >= MIN_SPLICE
            && let Some(bytes) = self.registered(src)
        {
            self.kept.push((self.copied.len(), bytes.clone()));
            self.kept_len += bytes.len();
        } else {
            self.copied.extend_from_slice(src);
        }
    }
}

/// What `kafka-protocol` asks of a buffer on top. Messages only ever append; gaps and ranges belong to
/// its record encoder, which we do not use, and reach the copied bytes only.
impl ByteBufMut for Splice<'_> {
    fn offset(&self) -> usize {
        self.len()
    }

    fn seek(&mut self, offset: usize) {
        self.copied.resize(offset.saturating_sub(self.kept_len), 0);
    }

    fn range(&mut self, range: std::ops::Range<usize>) -> &mut [u8] {
        let start = range.start.saturating_sub(self.kept_len);
        let end = range.end.saturating_sub(self.kept_len);
        self.copied.get_mut(start..end).unwrap_or_default()
    }
}

/// A chain of `Bytes` that reads as one buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spliced {
    parts: Vec<Bytes>,
    /// The first part that still has bytes.
    first: usize,
    remaining: usize,
}

impl Spliced {
    /// The parts that still have bytes.
    pub(crate) fn parts(&self) -> &[Bytes] {
        self.parts.get(self.first..).unwrap_or_default()
    }
}

impl Buf for Spliced {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.parts().first().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let parts = self.parts().iter();
        into.iter_mut()
            .zip(parts)
            .map(|(slot, part)| *slot = IoSlice::new(part))
            .count()
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "advanced past the end");
        self.remaining -= count;
        while count > 0 {
            let part = &mut self.parts[self.first];
            if count < part.len() {
                part.advance(count);
                return;
            }
            count -= part.len();
            // Lets go of a sent part at once: it may hold a mapping.
            *part = Bytes::new();
            self.first += 1;
        }
    }
}
