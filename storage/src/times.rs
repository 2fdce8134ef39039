//! Finding records by time (`ListOffsets`).

use std::io;

use ottla_protocol::batch::{BatchHeader, records};

use crate::log::Log;
use crate::segment::Segment;
use crate::segment_meta::Newest;
use crate::view::{View, Walk};

/// A record's offset and its timestamp in milliseconds since the epoch.
pub type TimedOffset = (i64, i64);

impl Log {
    /// The first record, from the log's start on, whose timestamp is at least `timestamp`.
    /// `None` without one, and where the log cannot be read.
    pub fn offset_for_timestamp(&self, timestamp: i64) -> Option<TimedOffset> {
        self.logged(self.find_time(timestamp)).flatten()
    }

    /// The record with the largest timestamp; of several the first.
    pub fn max_timestamp(&self) -> Option<TimedOffset> {
        self.logged(self.find_newest()).flatten()
    }

    fn logged<T>(&self, result: io::Result<T>) -> Option<T> {
        result
            .inspect_err(|error| {
                tracing::warn!(log = self.name, %error, "cannot look up a timestamp");
            })
            .ok()
    }

    fn find_time(&self, timestamp: i64) -> io::Result<Option<TimedOffset>> {
        let bounds = self.published.bounds();
        let segments = self.published.segments();
        let after = segments.partition_point(|s| s.base <= bounds.start);
        for segment in &segments[after.saturating_sub(1)..] {
            let newest = segment.newest()?;
            if newest.is_none_or(|newest| newest.timestamp < timestamp) {
                continue;
            }
            let size = segment.len();
            let view = segment.view()?;
            let from = segment.position_of_time(timestamp)?;
            let mut walk = Walk::new(&view, from, size);
            while let Some((position, header)) = walk.next()? {
                if header.base_offset >= bounds.end {
                    return Ok(None);
                }
                if header.max_timestamp < timestamp || header.last_offset() < bounds.start {
                    continue;
                }
                let found = first_record(&view, position, &header, |offset, time| {
                    time >= timestamp && offset >= bounds.start
                })?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    fn find_newest(&self) -> io::Result<Option<TimedOffset>> {
        let bounds = self.published.bounds();
        let mut best: Option<(Newest, usize)> = None;
        let segments = self.published.segments();
        for (index, segment) in segments.iter().enumerate() {
            if let Some(newest) = segment.newest()?
                && newest.offset >= bounds.start
                && best.is_none_or(|(best, _)| newest.timestamp > best.timestamp)
            {
                best = Some((newest, index));
            }
        }
        let Some((newest, index)) = best else {
            return Ok(None);
        };
        let segment = &segments[index];
        let size = segment.len();
        let view = segment.view()?;
        let from = segment.position_before(newest.offset)?;
        let mut walk = Walk::new(&view, from, size);
        while let Some((position, header)) = walk.next()? {
            if header.last_offset() >= newest.offset {
                let found =
                    first_record(&view, position, &header, |_, time| time >= newest.timestamp)?;
                return Ok(found.or(Some((newest.offset, newest.timestamp))));
            }
        }
        Ok(None)
    }
}

/// The first record of a batch for which `wanted(offset, timestamp)` holds. A batch whose records
/// cannot be decompressed counts as one record.
fn first_record(
    view: &View,
    position: u64,
    header: &BatchHeader,
    wanted: impl Fn(i64, i64) -> bool,
) -> io::Result<Option<TimedOffset>> {
    let bytes = view.bytes(position, header.size())?;
    let Ok(set) = records(&bytes) else {
        let whole = (header.last_offset(), header.max_timestamp);
        return Ok(wanted(whole.0, whole.1).then_some((header.base_offset, whole.1)));
    };
    Ok(set
        .iter()
        .map_while(Result::ok)
        .map(|record| (record.offset, record.timestamp))
        .find(|&(offset, time)| wanted(offset, time)))
}

impl Segment {
    /// A position from which on all batches lie that may be as new as `timestamp`.
    fn position_of_time(&self, timestamp: i64) -> io::Result<u64> {
        let base = self.base;
        let offset = self.with_meta(|meta| {
            meta.times
                .last_where(|entry| entry.timestamp < timestamp)
                .map(|entry| base + i64::from(entry.relative))
        })?;
        match offset {
            Some(offset) => self.position_before(offset),
            None => Ok(0),
        }
    }
}
