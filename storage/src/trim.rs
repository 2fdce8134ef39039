//! Removal from the front: deleted records and retention. Compaction is in `clean/`.

use crate::env::CHECKPOINT_MS;
use crate::error::StorageError;
use crate::log::{Log, Writer, stable_offset};
use crate::segment::Segment;
use crate::sync::Arc as KernelArc;

impl Log {
    /// Raises the start offset to `offset` (`DeleteRecords`); -1 stands for the end of the log.
    /// Segments that are wholly below go. Returns the start offset, which never falls.
    pub fn delete_records_before(&self, offset: i64, now: i64) -> Result<i64, StorageError> {
        let (start, moved) = {
            let mut writer = self.lock_writer();
            if writer.closed {
                return Err(StorageError::Closed(self.name.clone()));
            }
            let bounds = self.published.bounds();
            let offset = if offset == -1 { bounds.end } else { offset };
            if offset > bounds.end || offset < 0 {
                return Err(StorageError::BeyondEnd {
                    offset,
                    end: bounds.end,
                });
            }
            let start = bounds.start.max(offset);
            let moved = start > bounds.start;
            if moved {
                self.move_start(&mut writer, start, now)?;
            }
            (start, moved)
        };
        if moved {
            self.announce();
        }
        Ok(start)
    }

    /// Applies `retention.ms` and `retention.bytes`. True if something went.
    pub(crate) fn retain(&self, now: i64) -> Result<bool, StorageError> {
        let config = self.config();
        if !config.cleanup_delete || (config.retention_ms < 0 && config.retention_bytes < 0) {
            return Ok(false);
        }
        let moved = {
            let mut writer = self.lock_writer();
            if writer.closed {
                return Ok(false);
            }
            let segments = self.published.segments();
            let expired = |segment: &Segment| {
                config.retention_ms >= 0
                    && now.saturating_sub(segment.largest_time()) > config.retention_ms
            };
            let mut surplus = match u64::try_from(config.retention_bytes) {
                Ok(keep) => segments
                    .iter()
                    .map(|s| s.len())
                    .sum::<u64>()
                    .saturating_sub(keep),
                Err(_) => 0,
            };
            let mut start = None;
            for (index, segment) in segments.iter().enumerate() {
                let size = segment.len();
                let too_much = size > 0 && surplus >= size;
                let next = segments.get(index + 1).map(|next| next.base);
                // A sealed segment that compaction emptied goes with the next one.
                if size == 0 && next.is_some() {
                    continue;
                }
                if size == 0 || !(expired(segment) || too_much) {
                    break;
                }
                surplus = surplus.saturating_sub(size);
                start = Some(next.unwrap_or_else(|| self.end_offset()));
            }
            match start {
                Some(start) => {
                    let start = start.max(self.start_offset());
                    self.move_start(&mut writer, start, now)?;
                    true
                }
                None => false,
            }
        };
        if moved {
            self.announce();
        }
        Ok(moved)
    }

    /// Forgets producers that were silent for too long.
    pub(crate) fn expire_producers(&self, now: i64) {
        let expiration_ms = self.config().producer_id_expiration_ms;
        self.lock_writer().producers.expire(now, expiration_ms);
    }

    /// Raises the start offset and lets go of the segments below. When nothing is left, the active
    /// segment goes too.
    fn move_start(&self, writer: &mut Writer, start: i64, now: i64) -> Result<(), StorageError> {
        let end = self.end_offset();
        if start == end && writer.active.len() > 0 {
            self.roll(writer, end, now)?;
        }
        self.published.raise_start(start);
        self.published
            .raise_stable(stable_offset(&writer.producers, start, end));
        let segments = self.published.segments();
        let gone = segments
            .partition_point(|s| s.base <= start)
            .saturating_sub(1);
        if gone > 0 {
            self.published.replace(segments[gone..].to_vec());
            let delay = self.config().file_delete_delay_ms.max(0);
            for segment in &segments[..gone] {
                self.drop_segment(segment, now, delay);
            }
        }
        if self.epochs_mut().trim_start(start) {
            self.store_epochs();
        }
        self.env.checkpoint_by(now.saturating_add(CHECKPOINT_MS));
        Ok(())
    }

    fn drop_segment(&self, segment: &KernelArc<Segment>, now: i64, delay: i64) {
        tracing::debug!(log = self.name, base = segment.base, "removing a segment");
        segment.discard(now, delay);
    }
}

impl Segment {
    /// What retention goes by: the newest record, or the last append if records have no time.
    pub(crate) fn largest_time(&self) -> i64 {
        match self.newest() {
            Ok(Some(newest)) => newest.timestamp,
            _ => self.modified(),
        }
    }
}
