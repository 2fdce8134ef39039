//! Acquisition: which of the records that a fetch has read go to the member that asks.

use super::in_flight::{Extent, Record};
use super::locks::NONE;
use super::partition::SharePartition;
use super::types::{AcquireMode, AcquireRequest, AcquiredRange, Limits, OffsetRange, RecordState};
use crate::types::Ts;

/// One acquisition under way.
struct Taking<'a> {
    member: &'a str,
    deadline: Ts,
    exact: bool,
    batch_size: i64,
    /// Records still wanted; at or below 0 the acquisition ends.
    left: i64,
    /// Records that the window still takes; with whole batches it may go below 0.
    room: i64,
    /// The lock of the last range of `out`; [`NONE`] once that range is closed.
    lock: u32,
    out: Vec<AcquiredRange>,
}

impl SharePartition {
    /// Locks available records for `member` and counts their delivery; one range is one
    /// `AcquiredRecords` entry. See [`AcquireRequest`].
    ///
    /// Records that were in flight before come first, by extent; new records follow while the window
    /// has room. Whole batches may overshoot `max_records` and the window by the rest of a batch,
    /// record-limit mode stops exactly. An extent with records that come near the delivery limit is
    /// handed out in ever smaller parts, and the acquisition ends after such a part, so that one bad
    /// record does not drag its neighbours past the limit.
    pub fn acquire(
        &mut self,
        now: Ts,
        member: &str,
        limits: &Limits,
        request: &AcquireRequest<'_>,
    ) -> Vec<AcquiredRange> {
        self.expire(now, limits);
        if self.delivery.paused || request.max_records < 1 || request.batches.is_empty() {
            return Vec::new();
        }
        self.archive_absent(request);
        self.advance();
        let mut taking = Taking {
            member,
            deadline: now.saturating_add(limits.lock_duration_ms),
            exact: request.mode == AcquireMode::RecordLimit,
            batch_size: i64::from(request.batch_size.max(1)),
            left: i64::from(request.max_records),
            room: 0,
            lock: NONE,
            out: Vec::new(),
        };
        if self.take_from_window(&mut taking, limits, request) {
            self.take_new(&mut taking, limits, request);
        }
        for &range in request.non_data {
            self.non_data.add(self.window.clip(range));
        }
        self.advance();
        taking.out
    }

    /// Archives the free records of the window that the log does not have, or that are aborted.
    fn archive_absent(&mut self, request: &AcquireRequest<'_>) {
        let mut next = request.fetch_offset;
        for batch in request.batches {
            if batch.first > next {
                self.archive(OffsetRange::new(next, batch.first - 1));
            }
            next = next.max(batch.last + 1);
        }
        for &aborted in request.aborted {
            self.archive(aborted);
        }
    }

    fn archive(&mut self, range: OffsetRange) {
        let range = self.window.clip(range);
        let mut archived = false;
        for offset in range.first..=range.last {
            let record = self.window.get(offset);
            if record.is_free() {
                let record = Record {
                    state: RecordState::Archived,
                    ..record
                };
                self.window.set(offset, record);
                archived = true;
            }
        }
        if archived {
            self.window.split_around(range);
        }
    }

    /// Takes free records of the window. False when the acquisition is over.
    fn take_from_window(
        &mut self,
        taking: &mut Taking<'_>,
        limits: &Limits,
        request: &AcquireRequest<'_>,
    ) -> bool {
        let (Some(first), Some(last)) = (request.batches.first(), request.batches.last()) else {
            return false;
        };
        let read = self.window.clip(OffsetRange::new(
            first.first,
            last.last.min(request.upper - 1),
        ));
        let Some(free) = self.window.first_free() else {
            return true;
        };
        let mut at = read.first.max(free);
        while at <= read.last && self.window.has_free() {
            let extent = self
                .window
                .extents()
                .get(self.window.extent_at_or_after(at))
                .copied();
            let within = match extent {
                Some(extent) if extent.first <= at => {
                    OffsetRange::new(at, extent.last.min(read.last))
                }
                Some(extent) => OffsetRange::new(at, (extent.first - 1).min(read.last)),
                None => OffsetRange::new(at, read.last),
            };
            let go_on = match extent {
                Some(extent) if extent.first <= at => {
                    self.take_extent(taking, limits, extent, within)
                }
                _ => self.take_unseen(taking, request, within),
            };
            taking.lock = NONE;
            if !go_on || taking.left <= 0 {
                return false;
            }
            at = within.last + 1;
        }
        true
    }

    /// Takes the free records `within` an extent. False when the acquisition is over.
    fn take_extent(
        &mut self,
        taking: &mut Taking<'_>,
        limits: &Limits,
        extent: Extent,
        within: OffsetRange,
    ) -> bool {
        let throttle = Throttle::new(limits);
        let throttled = throttle.is_some_and(|throttle| {
            (within.first..=within.last).any(|offset| {
                let record = self.window.get(offset);
                record.is_free() && throttle.applies(record.delivery_count)
            })
        });
        // An extent with a bad record is not handed out behind others.
        if throttled && !taking.out.is_empty() {
            return false;
        }
        let mut part: Option<OffsetRange> = None;
        let mut whole = true;
        let mut taken = 0;
        let mut allowed = None;
        for offset in within.first..=within.last {
            let record = self.window.get(offset);
            if !record.is_free() {
                whole = false;
                taking.lock = NONE;
                continue;
            }
            let mut last_chance = false;
            if throttled && let Some(throttle) = throttle {
                last_chance = throttle.is_last(record.delivery_count);
                if last_chance && taken > 0 {
                    break;
                }
                if throttle.applies(record.delivery_count) {
                    allowed.get_or_insert_with(|| {
                        throttle.allowed(extent.len(), record.delivery_count)
                    });
                }
            }
            self.take_one(taking, offset, record);
            taken += 1;
            part = Some(OffsetRange::new(
                part.map_or(offset, |part| part.first),
                offset,
            ));
            let full = taking.exact && taking.left <= 0;
            if full || last_chance || allowed == Some(taken) {
                break;
            }
        }
        if let Some(part) = part {
            self.window.split_around(part);
            if !whole {
                self.window.split_within(part);
            }
        }
        !throttled
    }

    /// Takes records inside the window that were never acquired since the state was loaded.
    fn take_unseen(
        &mut self,
        taking: &mut Taking<'_>,
        request: &AcquireRequest<'_>,
        within: OffsetRange,
    ) -> bool {
        for batch in request.batches {
            let range =
                OffsetRange::new(batch.first.max(within.first), batch.last.min(within.last));
            taking.close_range(range.first > batch.first && !range.is_empty());
            for offset in range.first..=range.last {
                let record = self.window.get(offset);
                if record.is_free() {
                    self.take_fresh(taking, offset, record);
                    if taking.exact && taking.left <= 0 {
                        return false;
                    }
                } else {
                    taking.lock = NONE;
                }
            }
            taking.end_batch(range.first > batch.first);
            if taking.left <= 0 {
                return false;
            }
        }
        true
    }

    /// Takes records behind the window.
    fn take_new(&mut self, taking: &mut Taking<'_>, limits: &Limits, request: &AcquireRequest<'_>) {
        taking.room = i64::from(limits.max_record_locks) - self.window.len() as i64;
        let mut aborted = request.aborted.iter().copied().peekable();
        for batch in request.batches {
            let first = batch.first.max(self.window.end() + 1);
            let last = batch.last.min(request.upper - 1);
            if last < first {
                continue;
            }
            if taking.room <= 0 || taking.left <= 0 || !self.skip_hole(taking, request, first) {
                return;
            }
            let inside = first > batch.first;
            taking.close_range(inside);
            let mut offset = first;
            while offset <= last {
                while aborted.next_if(|range| range.last < offset).is_some() {}
                let absent = aborted.peek().is_some_and(|range| range.first <= offset);
                self.window.push(if absent {
                    Record::ABSENT
                } else {
                    Record::UNSEEN
                });
                if absent {
                    taking.lock = NONE;
                } else {
                    self.take_fresh(taking, offset, Record::UNSEEN);
                }
                taking.room -= 1;
                if taking.exact && (taking.room <= 0 || taking.left <= 0) {
                    return;
                }
                offset += 1;
            }
            taking.end_batch(inside);
        }
    }

    /// Brings the end of the window to `next - 1` over offsets that the log does not have. False when
    /// the window has no room for them, or when the log was not read there.
    fn skip_hole(
        &mut self,
        taking: &mut Taking<'_>,
        request: &AcquireRequest<'_>,
        next: i64,
    ) -> bool {
        let hole = next - (self.window.end() + 1);
        if hole == 0 {
            return true;
        }
        if self.window.end() + 1 < request.fetch_offset {
            return false;
        }
        taking.lock = NONE;
        if self.window.is_empty() {
            self.window.jump(next);
            return true;
        }
        if hole >= taking.room {
            return false;
        }
        for _ in 0..hole {
            self.window.push(Record::ABSENT);
        }
        taking.room -= hole;
        true
    }

    /// Takes a record that belongs to no extent yet: it joins that of the range being built.
    fn take_fresh(&mut self, taking: &mut Taking<'_>, offset: i64, record: Record) {
        let opens = taking.lock == NONE;
        self.take_one(taking, offset, record);
        if opens {
            self.window.add_extent(OffsetRange::new(offset, offset));
        } else {
            self.window.grow_extent(offset);
        }
    }

    fn take_one(&mut self, taking: &mut Taking<'_>, offset: i64, record: Record) {
        let delivery_count = record.delivery_count.saturating_add(1);
        match taking.out.last_mut() {
            Some(range) if taking.lock != NONE && range.delivery_count == delivery_count => {
                range.last = offset;
            }
            _ => {
                taking.lock = self.locks.open(
                    taking.member,
                    taking.deadline,
                    self.delivery.generation,
                    offset,
                );
                taking.out.push(AcquiredRange {
                    first: offset,
                    last: offset,
                    delivery_count,
                });
            }
        }
        self.locks.hold(taking.lock, offset);
        let state = RecordState::Acquired;
        self.window.set(
            offset,
            Record {
                state,
                delivery_count,
                lock: taking.lock,
                pending: None,
            },
        );
        taking.left -= 1;
    }
}

impl Taking<'_> {
    /// Before a record batch: a batch that is entered in its middle begins a range of its own.
    fn close_range(&mut self, inside: bool) {
        if inside {
            self.lock = NONE;
        }
    }

    /// After a record batch: the range ends once it has the wanted size, or if it began inside.
    fn end_batch(&mut self, inside: bool) {
        let long = self
            .out
            .last()
            .is_some_and(|range| range.last - range.first + 1 >= self.batch_size);
        if long || inside {
            self.lock = NONE;
        }
    }
}

/// How the deliveries of an extent shrink near the delivery limit.
#[derive(Clone, Copy)]
struct Throttle {
    limit: i16,
    from: i16,
}

impl Throttle {
    /// None when the limit is too low to throttle at all.
    fn new(limits: &Limits) -> Option<Self> {
        let limit = limits.delivery_count_limit;
        (limit > 2).then_some(Self {
            limit,
            from: limit / 2 + limit % 2,
        })
    }

    /// Whether a record that was delivered `count` times counts as suspicious.
    fn applies(self, count: i16) -> bool {
        count >= self.from
    }

    /// Whether the next delivery is the last: the record is then delivered alone.
    fn is_last(self, count: i16) -> bool {
        count >= self.limit - 1
    }

    /// How many records of an extent of `size` are delivered together, counted from the first one
    /// taken. A suspicious record deeper in the extent than its allowance cuts nothing, as in Kafka.
    fn allowed(self, size: i64, count: i16) -> i64 {
        let halvings = u32::from((count - self.from + 1).unsigned_abs()).min(62);
        (size >> halvings).max(1)
    }
}
