//! Reading: a slice of the mapped segment by reference, found by index and header walk.

use std::io;

use bytes::Bytes;

use crate::error::ReadError;
use crate::log::Log;
use crate::segment::Segment;
use crate::sync::Arc as KernelArc;
use crate::txn_index::AbortedTxn;
use crate::view::{View, Walk};

/// Up to where a read may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bound {
    /// Everything (`read_uncommitted`).
    #[default]
    LogEnd,
    /// Below the first undecided transaction (`read_committed`).
    LastStable,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSlice {
    /// Whole record batches, back to back; the first holds the offset asked for, so that it may
    /// begin with smaller offsets, or follows it where compaction left a hole. Empty if there is
    /// nothing to read yet.
    pub bytes: Bytes,
    /// Base offset of the first batch; the offset asked for if there is none.
    pub first_offset: i64,
    /// Offset behind the last batch; the offset asked for if there is none.
    pub next_offset: i64,
    /// The last stable offset.
    pub last_stable_offset: i64,
    /// The log end offset.
    pub high_watermark: i64,
    /// The log start offset.
    pub log_start_offset: i64,
    /// Transactions that were aborted and touch the slice, by first offset; for
    /// [`Bound::LastStable`] only.
    pub aborted: Vec<AbortedTxn>,
}

/// A part of a segment: whole batches.
#[derive(Debug, Clone, Copy)]
struct Span {
    position: u64,
    len: usize,
    first_offset: i64,
    next_offset: i64,
}

impl Log {
    /// Reads whole batches from the one that holds `from`, up to `max_bytes`.
    ///
    /// With `at_least_one` the first batch is read whatever its size. A read ends with its segment
    /// at the latest: call again from `next_offset` to go on. Nothing is copied where the segment
    /// can be mapped.
    pub fn read(
        &self,
        from: i64,
        max_bytes: usize,
        at_least_one: bool,
        bound: Bound,
    ) -> Result<ReadSlice, ReadError> {
        loop {
            match self.try_read(from, max_bytes, at_least_one, bound) {
                // The segment was removed between being found and being opened: look again.
                Err(ReadError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && self.is_trimmed(from) => {}
                other => return other,
            }
        }
    }

    fn is_trimmed(&self, from: i64) -> bool {
        let first = self.published.segments().first().map_or(0, |s| s.base);
        from < first
    }

    fn try_read(
        &self,
        from: i64,
        max_bytes: usize,
        at_least_one: bool,
        bound: Bound,
    ) -> Result<ReadSlice, ReadError> {
        let bounds = self.published.bounds();
        let segments = self.published.segments();
        let first = segments.first().map_or(0, |s| s.base);
        if from < bounds.start.max(first) || from > bounds.end {
            let bounds = self.published.bounds();
            return Err(ReadError::OffsetOutOfRange {
                offset: from,
                start: bounds.start,
                end: bounds.end,
            });
        }
        let upper = match bound {
            Bound::LogEnd => bounds.end,
            Bound::LastStable => bounds.stable,
        };
        let mut slice = ReadSlice {
            bytes: Bytes::new(),
            first_offset: from,
            next_offset: from,
            last_stable_offset: bounds.stable,
            high_watermark: bounds.end,
            log_start_offset: bounds.start,
            aborted: Vec::new(),
        };
        if from >= upper {
            return Ok(slice);
        }
        let limits = (max_bytes, at_least_one);
        let start = segments
            .partition_point(|s| s.base <= from)
            .saturating_sub(1);
        for segment in segments.iter().skip(start) {
            if let Some((view, span)) = self.locate(segment, from, upper, limits)? {
                slice.bytes = view
                    .bytes(span.position, span.len)
                    .map_err(|source| self.read_error(source))?;
                slice.first_offset = span.first_offset;
                slice.next_offset = span.next_offset;
                break;
            }
        }
        if bound == Bound::LastStable && !slice.bytes.is_empty() {
            slice.aborted = aborted_in(&segments[start..], from, slice.next_offset);
        }
        Ok(slice)
    }

    pub(crate) fn read_error(&self, source: io::Error) -> ReadError {
        ReadError::Io {
            log: self.name.clone(),
            source,
        }
    }

    /// Finds the batches to read in one segment; `None` if it has none from `from` on. A span of no
    /// length: there are some, but the first does not fit.
    fn locate(
        &self,
        segment: &Segment,
        from: i64,
        upper: i64,
        (max_bytes, at_least_one): (usize, bool),
    ) -> Result<Option<(View, Span)>, ReadError> {
        let error = |source| self.read_error(source);
        let size = segment.len();
        if size == 0 {
            return Ok(None);
        }
        let view = segment.view().map_err(error)?;
        let at = segment.position_before(from).map_err(error)?;
        let mut walk = Walk::new(&view, at, size);
        let (position, first) = loop {
            match walk.next().map_err(error)? {
                None => return Ok(None),
                Some((_, header)) if header.base_offset >= upper => return Ok(None),
                Some((_, header)) if header.last_offset() < from => {}
                Some(found) => break found,
            }
        };
        let mut span = Span {
            position,
            len: first.size(),
            first_offset: first.base_offset,
            next_offset: first.next_offset(),
        };
        if first.size() > max_bytes {
            if !at_least_one {
                span.len = 0;
                span.first_offset = from;
                span.next_offset = from;
            }
            return Ok(Some((view, span)));
        }
        // Everything up to an indexed batch inside the limit fits; walk on from there.
        let limit = position.saturating_add(max_bytes as u64);
        let jump = segment.boundary_before(limit, upper).map_err(error)?;
        if jump > position {
            walk = Walk::new(&view, jump, size);
        }
        while let Some((at, header)) = walk.next().map_err(error)? {
            let end = at + header.size() as u64;
            if end > limit || header.base_offset >= upper {
                // Behind a jump this is the indexed batch itself: what is before it still counts.
                if at > position && span.len < (at - position) as usize {
                    span.len = (at - position) as usize;
                    span.next_offset = header.base_offset;
                }
                break;
            }
            span.len = (end - position) as usize;
            span.next_offset = header.next_offset();
        }
        Ok(Some((view, span)))
    }
}

/// The aborted transactions that touch `from..next`, oldest first.
fn aborted_in(segments: &[KernelArc<Segment>], from: i64, next: i64) -> Vec<AbortedTxn> {
    let mut found = Vec::new();
    for segment in segments {
        for entry in segment.aborted().iter() {
            // Its marker may be far behind: what counts is whether its records may be here.
            if entry.last_offset >= from && entry.first_offset < next {
                found.push(AbortedTxn {
                    producer_id: entry.producer_id,
                    first_offset: entry.first_offset,
                });
            }
        }
    }
    found.sort_unstable_by_key(|txn| (txn.first_offset, txn.producer_id));
    found
}
