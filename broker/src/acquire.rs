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
use ottla_protocol::batch::{self, Batches, EndTxnMarker};
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
            non_data: &view.non_data,
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

/// The batches of a slice: their offsets, where each ends, and which offsets hold no data.
struct View {
    ranges: Vec<OffsetRange>,
    ends: Vec<usize>,
    non_data: Vec<OffsetRange>,
}

impl View {
    fn new(slice: &ReadSlice) -> Self {
        let mut view = Self {
            ranges: vec![],
            ends: vec![],
            non_data: vec![],
        };
        let mut end = 0;
        for (header, bytes) in Batches::new(&slice.bytes).map_while(Result::ok) {
            end += bytes.len();
            let range = OffsetRange::new(header.base_offset, header.last_offset());
            view.ranges.push(range);
            view.ends.push(end);
            if header.is_control() {
                view.non_data.push(range);
            } else if i64::from(header.count) < range.len() {
                push_holes(range, bytes, &mut view.non_data);
            }
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

/// The offsets of a compacted batch that it has no record of. A batch that cannot be read has none.
fn push_holes(range: OffsetRange, bytes: &[u8], holes: &mut Vec<OffsetRange>) {
    let Ok(records) = batch::records(bytes) else {
        return;
    };
    let kept = records.iter().map_while(Result::ok).map(|r| r.offset);
    let mut next = range.first;
    for offset in kept.chain([range.last + 1]) {
        if next < offset {
            holes.push(OffsetRange::new(next, offset - 1));
        }
        next = offset + 1;
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
            if is_abort(bytes) {
                open.remove(&header.producer_id);
            }
        } else {
            ranges.push(OffsetRange::new(header.base_offset, header.last_offset()));
        }
    }
    ranges
}

/// Whether a control batch says that its transaction was aborted.
fn is_abort(control: &[u8]) -> bool {
    batch::records(control).is_ok_and(|records| {
        records.iter().any(|record| {
            let marker = record
                .ok()
                .and_then(|r| EndTxnMarker::decode(r.key?, r.value?));
            marker.is_some_and(|marker| !marker.commit)
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::Arc;

    use ottla_protocol::batch::{
        BatchBuilder, BatchHeader, BatchOptions, emptied, end_txn_marker, retain,
    };
    use ottla_storage::{AppendOptions, Log, LogConfig, Origin, Store, StoreOptions};

    use super::*;

    fn append(log: &Log, batch: &Bytes, origin: Origin) {
        let header = BatchHeader::parse(batch).unwrap();
        let options = AppendOptions {
            leader_epoch: 0,
            now: 0,
            log_append_time: false,
            origin,
        };
        log.append(batch, &header, options).unwrap();
    }

    /// Appends `records` records of a producer's transaction; sequence numbers go on from `sequence`.
    fn write(log: &Log, producer_id: i64, sequence: i32, records: usize) {
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id,
            producer_epoch: 0,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        });
        for _ in 0..records {
            builder.push(0, None, Some(b"v"));
        }
        append(log, &builder.build().unwrap(), Origin::Client);
    }

    fn end(log: &Log, producer_id: i64, commit: bool) {
        let marker = end_txn_marker(producer_id, 0, commit, 0, 0).unwrap();
        append(log, &marker, Origin::Coordinator);
    }

    fn log() -> (Arc<Store>, Arc<Log>) {
        let store = Store::open(StoreOptions::default(), 0).unwrap();
        let log = store
            .create_log("t", 0, [1; 16], LogConfig::default(), 0)
            .unwrap();
        (store, log)
    }

    #[test]
    fn aborted_ranges_end_at_the_marker_and_never_hold_another_transaction() {
        let (_store, log) = log();
        write(&log, 1, 0, 3); // 0-2, aborted
        write(&log, 2, 0, 2); // 3-4, committed
        end(&log, 1, false); // 5
        write(&log, 1, 3, 2); // 6-7, the next transaction of the same producer, committed
        end(&log, 2, true); // 8
        end(&log, 1, true); // 9
        write(&log, 2, 2, 1); // 10, aborted
        end(&log, 2, false); // 11
        write(&log, 3, 0, 1); // 12, open
        let slice = log.read(0, 1 << 20, true, Bound::LastStable).unwrap();
        assert_eq!((slice.last_stable_offset, slice.high_watermark), (12, 13));
        let ranges = [OffsetRange::new(0, 2), OffsetRange::new(10, 10)];
        assert_eq!(aborted_ranges(&slice), ranges);
        let uncommitted = log.read(0, 1 << 20, true, Bound::LogEnd).unwrap();
        assert_eq!(aborted_ranges(&uncommitted), []);
    }

    #[test]
    fn a_cut_holds_the_whole_batches_of_what_was_acquired() {
        let (_store, log) = log();
        for sequence in [0, 3, 6] {
            write(&log, 1, sequence, 3);
        }
        end(&log, 1, true);
        let slice = log.read(0, 1 << 20, true, Bound::LogEnd).unwrap();
        let view = View::new(&slice);
        let offsets = |first, last| -> Vec<i64> {
            let cut = view.cut(&slice.bytes, first, last);
            Batches::new(&cut)
                .map(|batch| batch.unwrap().0.base_offset)
                .collect()
        };
        assert_eq!(offsets(4, 4), [3]);
        assert_eq!(offsets(2, 3), [0, 3]);
        assert_eq!(offsets(0, 9), [0, 3, 6, 9]);
    }

    #[test]
    fn control_batches_and_holes_of_compaction_hold_no_data() {
        let (_store, log) = log();
        write(&log, 1, 0, 6); // 0-5
        end(&log, 1, true); // 6
        write(&log, 1, 6, 2); // 7-8
        let slice = log.read(0, 1 << 20, true, Bound::LogEnd).unwrap();
        assert_eq!(View::new(&slice).non_data, [OffsetRange::new(6, 6)]);
        let (first, bytes) = Batches::new(&slice.bytes).next().unwrap().unwrap();
        let holes = |keep: &dyn Fn(i64) -> bool| -> Vec<(i64, i64)> {
            let kept: Vec<bool> = (0..6).map(keep).collect();
            let bytes = retain(&batch::records(bytes).unwrap(), &kept, None).unwrap();
            let mut holes = vec![];
            let range = OffsetRange::new(first.base_offset, first.last_offset());
            push_holes(range, &bytes, &mut holes);
            holes
                .iter()
                .map(|range| (range.first, range.last))
                .collect()
        };
        assert_eq!(holes(&|_| true), []);
        assert_eq!(holes(&|at| at == 2 || at == 3), [(0, 1), (4, 5)]);
        assert_eq!(holes(&|at| at % 2 == 0), [(1, 1), (3, 3), (5, 5)]);
        let emptied = emptied(&first).unwrap();
        let mut all = vec![];
        push_holes(OffsetRange::new(0, 5), &emptied, &mut all);
        assert_eq!(all, [OffsetRange::new(0, 5)]);
    }
}
