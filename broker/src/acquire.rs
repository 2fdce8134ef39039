//! From a share partition's next offset to acquired records: the read that feeds an acquisition.
//!
//! The cell says where to look, the log gives whole batches by reference, and the cell says which of
//! their offsets this member gets. Nothing is locked while the log is read; a range that another
//! member took meanwhile is simply not acquired.

use std::collections::BTreeSet;

use bytes::Bytes;
use ottla_coordinator::share::types::{
    AcquireMode, AcquireRequest, AcquiredRange, Limits, OffsetRange,
};
use ottla_protocol::batch::{self, BatchHeader, Batches, EndTxnMarker};
use ottla_storage::{Bound, ReadError, ReadSlice};

use crate::broker::Broker;
use crate::error_code::ApiError;
use crate::shares::Slot;

/// How often a pass looks again when others were quicker.
const TRIES: usize = 8;

/// What a member asks of one share partition.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The member.
    pub member: &'a str,
    /// Where `AcquiredRecords` entries are cut, in records.
    pub batch_size: i32,
    /// Whole batches, or exactly up to the limit.
    pub mode: AcquireMode,
    /// Read committed.
    pub committed: bool,
    /// The group's limits.
    pub limits: &'a Limits,
}

/// What is left of a request's limits.
#[derive(Debug)]
pub struct Room {
    /// Records.
    pub records: i32,
    /// Bytes.
    pub bytes: usize,
    /// Whether nothing was taken yet: the first batch is whole whatever the limit says.
    pub first: bool,
}

/// Records that a member got.
#[derive(Debug)]
pub struct Acquisition {
    /// The offsets that count.
    pub ranges: Vec<AcquiredRange>,
    /// The whole batches that hold them.
    pub bytes: Bytes,
}

fn bound(committed: bool) -> Bound {
    if committed {
        Bound::LastStable
    } else {
        Bound::LogEnd
    }
}

/// Acquires from one share partition, within what is left of the request's limits.
pub fn acquire(
    broker: &Broker,
    slot: &Slot,
    ask: &Ask<'_>,
    room: &mut Room,
) -> Result<Option<Acquisition>, ApiError> {
    let mut looked = None;
    for _ in 0..TRIES {
        let now = broker.clock.now();
        slot.follow_log_start();
        let Some(offset) = slot.cell.next_fetch_offset(ask.limits)? else {
            return Ok(None);
        };
        if looked == Some(offset) {
            return Ok(None);
        }
        looked = Some(offset);
        let slice =
            match slot
                .partition
                .log
                .read(offset, room.bytes, room.first, bound(ask.committed))
            {
                Ok(slice) => slice,
                Err(ReadError::OffsetOutOfRange { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
        let view = View::new(&slice);
        if view.ranges.is_empty() {
            return Ok(None);
        }
        let upper = if ask.committed {
            slice.last_stable_offset
        } else {
            slice.high_watermark
        };
        let request = AcquireRequest {
            max_records: room.records,
            batch_size: ask.batch_size,
            mode: ask.mode,
            fetch_offset: offset,
            batches: &view.ranges,
            upper,
            aborted: &if ask.committed {
                aborted_ranges(&slice)
            } else {
                vec![]
            },
        };
        let ranges = slot.cell.acquire(now, ask.member, ask.limits, &request)?;
        slot.settle(broker, now, ask.limits);
        if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
            let bytes = view.cut(&slice.bytes, first.first, last.last);
            room.take(&ranges, bytes.len());
            return Ok(Some(Acquisition { ranges, bytes }));
        }
    }
    Ok(None)
}

impl Room {
    fn take(&mut self, ranges: &[AcquiredRange], bytes: usize) {
        let records: i64 = ranges.iter().map(|r| r.last - r.first + 1).sum();
        self.records = i64::from(self.records).saturating_sub(records).max(0) as i32;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.first = false;
    }
}

/// How many bytes could be read for one share partition without acquiring them; counts no further
/// than `enough`. None where the window is full.
pub fn readable_bytes(slot: &Slot, limits: &Limits, committed: bool, enough: usize) -> usize {
    let Ok(Some(mut offset)) = slot.cell.next_fetch_offset(limits) else {
        return 0;
    };
    let mut seen = 0;
    // A read ends with its segment.
    while seen < enough {
        let read = slot
            .partition
            .log
            .read(offset, usize::MAX, true, bound(committed));
        match read {
            Ok(slice) if slice.next_offset > offset => {
                seen += slice.bytes.len();
                offset = slice.next_offset;
            }
            _ => break,
        }
    }
    seen
}

/// The batches of a slice: their offsets, and where each ends.
struct View {
    ranges: Vec<OffsetRange>,
    ends: Vec<usize>,
}

impl View {
    fn new(slice: &ReadSlice) -> Self {
        let mut view = Self {
            ranges: vec![],
            ends: vec![],
        };
        let mut end = 0;
        for (header, bytes) in Batches::new(&slice.bytes).map_while(Result::ok) {
            end += bytes.len();
            view.ranges
                .push(OffsetRange::new(header.base_offset, header.last_offset()));
            view.ends.push(end);
        }
        view
    }

    /// The whole batches from the one that holds `first` to the one that holds `last`.
    fn cut(&self, bytes: &Bytes, first: i64, last: i64) -> Bytes {
        let from = self.ranges.partition_point(|range| range.last < first);
        let to = self.ranges.partition_point(|range| range.first <= last);
        let start = if from == 0 { 0 } else { self.ends[from - 1] };
        let end = if to == 0 { 0 } else { self.ends[to - 1] };
        bytes.slice(start..end.max(start))
    }
}

/// The batches of aborted transactions in a slice: from a transaction's first offset to its marker.
fn aborted_ranges(slice: &ReadSlice) -> Vec<OffsetRange> {
    let mut upcoming = slice.aborted.iter().peekable();
    let mut open = BTreeSet::new();
    let mut ranges = vec![];
    for (header, bytes) in Batches::new(&slice.bytes).map_while(Result::ok) {
        while let Some(txn) = upcoming.next_if(|txn| txn.first_offset <= header.last_offset()) {
            open.insert(txn.producer_id);
        }
        if !open.contains(&header.producer_id) || !header.is_transactional() {
            continue;
        }
        if header.is_control() {
            if is_abort(&header, bytes) {
                open.remove(&header.producer_id);
            }
        } else {
            ranges.push(OffsetRange::new(header.base_offset, header.last_offset()));
        }
    }
    ranges
}

fn is_abort(header: &BatchHeader, bytes: &[u8]) -> bool {
    header.is_control()
        && batch::records(bytes).is_ok_and(|records| {
            records.iter().any(|record| {
                let marker = record
                    .ok()
                    .and_then(|r| EndTxnMarker::decode(r.key?, r.value?));
                marker.is_some_and(|marker| !marker.commit)
            })
        })
}
