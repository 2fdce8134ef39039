//! The indexes of a segment, being collected while it is written and as files when it is complete.

use std::io;
use std::path::Path;

use bytes::Bytes;
use ottla_protocol::batch::BatchHeader;

use crate::file::{read_file, write_file};
use crate::index::{Entries, OffsetEntry, TimeEntry, stored_offsets, stored_times};
use crate::segment::segment_path;

/// The newest timestamp of a segment and the last offset of the first batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

/// The indexes of a segment and what else is known of its batches.
#[derive(Debug, Clone)]
pub(crate) struct Meta {
    pub(crate) offsets: Entries<OffsetEntry>,
    pub(crate) times: Entries<TimeEntry>,
    pub(crate) newest: Option<Newest>,
    /// Largest timestamp of the first batch: what `segment.ms` counts from.
    pub(crate) first_timestamp: Option<i64>,
    bytes_since_entry: u64,
}

impl Meta {
    pub(crate) const fn new() -> Self {
        Self {
            offsets: Entries::new(),
            times: Entries::new(),
            newest: None,
            first_timestamp: None,
            bytes_since_entry: 0,
        }
    }

    /// Takes note of the batch at `position`, in the order of the log.
    pub(crate) fn add(&mut self, base: i64, position: u64, header: &BatchHeader, interval: u32) {
        if position == 0 {
            self.first_timestamp = Some(header.max_timestamp);
        }
        self.see_time(header);
        if self.bytes_since_entry > u64::from(interval) {
            self.offsets.push(OffsetEntry {
                relative: (header.last_offset() - base) as u32,
                position: position as u32,
            });
            self.note_newest(base);
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size() as u64;
    }

    /// Takes note of a batch's time.
    pub(crate) fn see_time(&mut self, header: &BatchHeader) {
        // A batch that compaction emptied has a time for its producer's sake, and no record.
        if header.count > 0
            && header.max_timestamp > self.newest.map_or(-1, |newest| newest.timestamp)
        {
            self.newest = Some(Newest {
                timestamp: header.max_timestamp,
                offset: header.last_offset(),
            });
        }
    }

    /// Goes on where index files end: `since_entry` bytes of batches came after the last entry.
    pub(crate) fn resume(&mut self, since_entry: u64, first_timestamp: i64) {
        self.bytes_since_entry = since_entry;
        self.first_timestamp = Some(first_timestamp);
    }

    /// Adds the time entry of the newest record so far, unless it is there.
    pub(crate) fn note_newest(&mut self, base: i64) {
        if let Some(newest) = self.newest
            && self
                .times
                .last()
                .is_none_or(|last| last.timestamp < newest.timestamp)
        {
            self.times.push(TimeEntry {
                timestamp: newest.timestamp,
                relative: (newest.offset - base) as u32,
            });
        }
    }
}

/// Loads the index files of a segment of `size` bytes, if they are there and sound.
pub(crate) fn stored_meta(dir: &Path, base: i64, size: u64) -> io::Result<Option<Meta>> {
    let read = |suffix| read_file(&segment_path(dir, base, suffix));
    let (Some(offsets), Some(times)) = (read("index")?, read("timeindex")?) else {
        return Ok(None);
    };
    let (Some(offsets), Some(times)) = (
        stored_offsets(Bytes::from(offsets), size),
        stored_times(Bytes::from(times)),
    ) else {
        return Ok(None);
    };
    let newest = times.last().map(|last| Newest {
        timestamp: last.timestamp,
        offset: base + i64::from(last.relative),
    });
    Ok(Some(Meta {
        offsets,
        times,
        newest,
        first_timestamp: None,
        bytes_since_entry: 0,
    }))
}

/// Writes the index files of a segment.
pub(crate) fn store_meta(dir: &Path, base: i64, meta: &Meta) -> io::Result<()> {
    let write = |suffix, bytes: Vec<u8>| write_file(&segment_path(dir, base, suffix), &bytes);
    write("index", meta.offsets.to_bytes())?;
    write("timeindex", meta.times.to_bytes())
}
