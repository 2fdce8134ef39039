//! Compaction (`cleanup.policy=compact`): the last record of each key stays.
//!
//! A pass maps the keys of the part that was not compacted yet (`offset_map.rs`, bounded memory),
//! then writes every segment below it anew without the records that a later one replaced
//! (`filter.rs`), and puts the new segments into the places of the old ones (`swap.rs`). The active
//! segment is never touched, nor anything from the first undecided transaction on, and offsets are
//! never renumbered. Appends and reads go on meanwhile; only the swap takes the log's lock.
//!
//! Sources: Kafka's documentation, "Log Compaction"; KIP-58 and KIP-354 (lags), KIP-98
//! (transactions, producers), KIP-534 (delete horizon); the behaviour of Apache Kafka 4.4.0.

mod filter;
mod offset_map;
pub(crate) mod output;
mod plan;
mod store;
pub(crate) mod swap;
mod txns;

use std::io;

use ottla_protocol::batch::{BatchHeader, records};

use crate::append::marker_of;
use crate::config::{CleanerOptions, LogConfig};
use crate::error::StorageError;
use crate::log::Log;
use crate::segment::Segment;
use crate::sync::Arc as KernelArc;
use crate::txn_index::Aborted;
use crate::view::Walk;
use filter::{Fate, Filter, Remembered, bad_batch};
use offset_map::{OffsetMap, SLOT_BYTES};
use output::Output;
use plan::{Plan, groups};
use txns::Txns;

pub(crate) use store::Cleaning;

/// A batch's own keys must fit the map, however small it is to be.
const MAX_BATCH_KEYS: usize = 1 << 20;

impl Log {
    /// One pass over the log. Returns the offset up to which it is compacted now.
    pub(crate) fn clean(
        &self,
        plan: &Plan,
        now: i64,
        options: &CleanerOptions,
    ) -> Result<i64, StorageError> {
        let config = self.config();
        let all = self.published.segments();
        let below = all.partition_point(|segment| segment.base < plan.end);
        let segments = &all[..below];
        // The marker, and with it the entry, may be far behind the records.
        let aborted: Vec<Aborted> = all.iter().flat_map(|s| s.aborted().clone()).collect();
        let mut filter = Filter {
            map: OffsetMap::new(self.room(segments, plan, options)?, options.load_factor),
            latest: plan.first_dirty - 1,
            txns: Txns::new(aborted.clone()),
            remembered: Remembered::of(&self.lock_writer().producers),
            now,
            horizon: now.saturating_add(config.delete_retention_ms.max(0)),
        };
        self.map_keys(segments, plan, &mut filter)?;
        // The walk over the whole log begins at its start again.
        filter.txns = Txns::new(aborted);
        let end = filter.latest + 1;
        let below = segments.partition_point(|segment| segment.base < end);
        for group in groups(&segments[..below], plan.end, &config).map_err(self.clean_error())? {
            self.clean_group(group, &mut filter, now, &config)?;
        }
        Ok(end)
    }

    fn clean_error(&self) -> impl FnOnce(io::Error) -> StorageError {
        StorageError::io(format!("compacting {}", self.name))
    }

    fn go_on(&self) -> Result<(), StorageError> {
        if self.env.is_stopping() {
            return Err(StorageError::Closed(self.name.clone()));
        }
        Ok(())
    }

    /// Maps the keys between the first dirty offset and the end of the plan, or as many of them as
    /// fit.
    fn map_keys(
        &self,
        segments: &[KernelArc<Segment>],
        plan: &Plan,
        filter: &mut Filter,
    ) -> Result<(), StorageError> {
        for segment in dirty(segments, plan) {
            if self.map_segment(segment, plan.first_dirty, filter)? {
                if filter.latest < plan.first_dirty {
                    let error = bad_batch("a batch has more keys than the map can hold");
                    return Err(self.clean_error()(error));
                }
                return Ok(());
            }
        }
        filter.latest = plan.end - 1;
        Ok(())
    }

    /// For how many keys memory is taken: as many as there are records, within the limit.
    fn room(
        &self,
        segments: &[KernelArc<Segment>],
        plan: &Plan,
        options: &CleanerOptions,
    ) -> Result<usize, StorageError> {
        let (mut records, mut largest) = (0usize, 0usize);
        for segment in dirty(segments, plan) {
            let view = segment.view().map_err(self.clean_error())?;
            let from = segment.position_before(plan.first_dirty);
            let from = from.map_err(self.clean_error())?;
            let mut walk = Walk::new(&view, from, segment.len());
            while let Some((_, header)) = walk.next().map_err(self.clean_error())? {
                let count = usize::try_from(header.count).unwrap_or(0);
                records = records.saturating_add(count);
                largest = largest.max(count);
            }
        }
        let slots = options.dedupe_buffer_bytes / SLOT_BYTES;
        let limit = (slots as f64 * options.load_factor.clamp(0.1, 0.95)) as usize;
        Ok(records.min(limit.max(largest.min(MAX_BATCH_KEYS))))
    }

    /// Maps the keys of one segment. True if the map is full: what is behind `filter.latest` was not
    /// mapped, or not as a whole.
    fn map_segment(
        &self,
        segment: &Segment,
        from: i64,
        filter: &mut Filter,
    ) -> Result<bool, StorageError> {
        let view = segment.view().map_err(self.clean_error())?;
        let at = segment.position_before(from).map_err(self.clean_error())?;
        let mut walk = Walk::new(&view, at, segment.len());
        while let Some((position, header)) = walk.next().map_err(self.clean_error())? {
            self.go_on()?;
            if header.last_offset() < from {
                continue;
            }
            let bytes = || view.bytes(position, header.size());
            if header.is_control() {
                let bytes = bytes().map_err(self.clean_error())?;
                let marker = if header.count > 0 {
                    marker_of(&bytes)
                } else {
                    None
                };
                filter.txns.control(&header, marker);
            } else if !filter.txns.data(&header) && header.count > 0 {
                let bytes = bytes().map_err(self.clean_error())?;
                let whole = map_batch(&bytes, from, &mut filter.map);
                if !whole.map_err(self.clean_error())? {
                    return Ok(true);
                }
            }
            filter.latest = header.last_offset();
        }
        Ok(false)
    }

    /// Writes a group of segments anew and puts the result into their place, if it differs.
    fn clean_group(
        &self,
        group: &[KernelArc<Segment>],
        filter: &mut Filter,
        now: i64,
        config: &LogConfig,
    ) -> Result<(), StorageError> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return Ok(());
        };
        let interval = config.index_interval_bytes;
        let written = Output::create(&self.env, &self.dir, first.base, interval)
            .map_err(self.clean_error())
            .and_then(|mut output| {
                let mut changed = group.len() > 1;
                for segment in group {
                    changed |= self.filter_segment(segment, filter, &mut output)?;
                }
                if !changed {
                    return Ok(None);
                }
                output.finish(last.modified()).map(Some)
            });
        match written {
            Ok(Some(new)) => self.swap(group, new, now),
            Ok(None) => {
                self.remove_cleaned(first.base, output::CLEANED);
                Ok(())
            }
            Err(error) => {
                self.remove_cleaned(first.base, output::CLEANED);
                Err(error)
            }
        }
    }

    /// Copies what stays of one segment. True if something does not stay as it is.
    fn filter_segment(
        &self,
        segment: &Segment,
        filter: &mut Filter,
        output: &mut Output,
    ) -> Result<bool, StorageError> {
        let mut changed = false;
        let view = segment.view().map_err(self.clean_error())?;
        let mut walk = Walk::new(&view, 0, segment.len());
        while let Some((position, header)) = walk.next().map_err(self.clean_error())? {
            self.go_on()?;
            let bytes = view.bytes(position, header.size());
            let bytes = bytes.map_err(self.clean_error())?;
            let (fate, aborted) = filter.decide(&header, &bytes).map_err(self.clean_error())?;
            match fate {
                Fate::Same => output.push(&header, &bytes, aborted)?,
                Fate::Other(bytes) => {
                    let header = BatchHeader::parse(&bytes).map_err(bad_batch);
                    output.push(&header.map_err(self.clean_error())?, &bytes, aborted)?;
                    changed = true;
                }
                Fate::Gone => changed = true,
            }
        }
        Ok(changed)
    }
}

/// The segments whose keys are to be mapped.
fn dirty<'a>(segments: &'a [KernelArc<Segment>], plan: &Plan) -> &'a [KernelArc<Segment>] {
    let first = segments.partition_point(|segment| segment.base <= plan.first_dirty);
    &segments[first.saturating_sub(1)..]
}

/// Maps the keys of one batch from offset `from` on. False if they do not all fit.
fn map_batch(bytes: &[u8], from: i64, map: &mut OffsetMap) -> io::Result<bool> {
    let set = records(bytes).map_err(bad_batch)?;
    for record in &set {
        let record = record.map_err(bad_batch)?;
        if let Some(key) = record.key
            && record.offset >= from
            && !map.put(key, record.offset)
        {
            return Ok(false);
        }
    }
    Ok(true)
}
