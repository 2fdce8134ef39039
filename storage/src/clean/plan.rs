//! What a pass may touch, whether it is worth it, and which segments become one.

use std::io;

use crate::config::LogConfig;
use crate::index::{OFFSET_ENTRY, TIME_ENTRY};
use crate::log::Log;
use crate::segment::Segment;
use crate::sync::Arc as KernelArc;

/// The part of a log that a pass would compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Below this offset no key is twice.
    pub(crate) first_dirty: i64,
    /// Where the first segment begins that must not be touched.
    pub(crate) end: i64,
    clean_bytes: u64,
    dirty_bytes: u64,
    /// Whether the dirty part holds records older than `max.compaction.lag.ms`.
    overdue: bool,
}

impl Plan {
    /// Which part of the bytes is dirty.
    pub(crate) fn ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        self.dirty_bytes as f64 / all.max(1) as f64
    }

    /// Whether it is time.
    pub(crate) fn is_due(&self, config: &LogConfig) -> bool {
        self.dirty_bytes > 0 && (self.overdue || self.ratio() > config.min_cleanable_dirty_ratio)
    }
}

impl Log {
    /// What could be compacted at `now`; `None` if the log is not to be compacted at all.
    pub(crate) fn cleaning_plan(&self, now: i64) -> io::Result<Option<Plan>> {
        let config = self.config();
        if !config.cleanup_compact || self.cleaning.is_given_up() {
            return Ok(None);
        }
        let bounds = self.published.bounds();
        let segments = self.published.segments();
        let Some((active, mut sealed)) = segments.split_last() else {
            return Ok(None);
        };
        if active.len() == 0 {
            // The last batch of all must stay, or no reader would ever reach the end.
            sealed = sealed.split_last().map_or(&[][..], |(_, rest)| rest);
        }
        let start = bounds.start.max(segments[0].base);
        let first_dirty = match self.cleaning.offset() {
            Some(offset) if (start..=bounds.end).contains(&offset) => offset,
            _ => start,
        };
        let clean = sealed
            .iter()
            .zip(&segments[1..])
            .take_while(|(_, next)| next.base <= first_dirty)
            .count();
        let mut plan = Plan {
            first_dirty,
            end: first_dirty,
            clean_bytes: sealed[..clean].iter().map(|s| s.len()).sum(),
            dirty_bytes: 0,
            overdue: false,
        };
        for (segment, next) in sealed.iter().zip(&segments[1..]).skip(clean) {
            let young = config.min_compaction_lag_ms > 0
                && segment.largest_time() > now.saturating_sub(config.min_compaction_lag_ms);
            if young || next.base > bounds.stable {
                break;
            }
            plan.end = next.base;
            plan.dirty_bytes += segment.len();
            plan.overdue |= is_overdue(segment, now, config.max_compaction_lag_ms)?;
        }
        Ok(Some(plan))
    }
}

fn is_overdue(segment: &Segment, now: i64, max_lag_ms: i64) -> io::Result<bool> {
    if max_lag_ms == i64::MAX || segment.len() == 0 {
        return Ok(false);
    }
    let first = segment.view()?.header(0)?.max_timestamp;
    Ok(first > 0 && first < now.saturating_sub(max_lag_ms))
}

/// Neighbours that fit one segment together; `end` is where the last one ends.
pub(crate) fn groups<'a>(
    segments: &'a [KernelArc<Segment>],
    end: i64,
    config: &LogConfig,
) -> io::Result<Vec<&'a [KernelArc<Segment>]>> {
    let mut groups = Vec::new();
    let mut rest = segments;
    while !rest.is_empty() {
        let (mut count, mut size, mut index_size, mut time_size) = (0, 0, 0, 0);
        for (at, segment) in rest.iter().enumerate() {
            let (offsets, times) =
                segment.with_meta(|meta| (meta.offsets.len(), meta.times.len()))?;
            size += segment.len();
            index_size += offsets * OFFSET_ENTRY;
            time_size += times * TIME_ENTRY;
            let next = rest.get(at + 1).map_or(end, |next| next.base);
            let fits = size <= u64::from(config.segment_bytes)
                && index_size <= config.segment_index_bytes as usize
                && time_size <= config.segment_index_bytes as usize
                && next - 1 - rest[0].base <= i64::from(i32::MAX);
            if count > 0 && !fits {
                break;
            }
            count += 1;
        }
        let (group, behind) = rest.split_at(count);
        groups.push(group);
        rest = behind;
    }
    Ok(groups)
}
