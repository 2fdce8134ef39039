//! The window of in-flight records: a ring indexed by offset from the start offset, eight bytes a
//! record, and the extents in which they were first acquired.

use std::collections::VecDeque;

use super::locks::NONE;
use super::types::{OffsetRange, RecordState};

/// One record. `Pending{next}` lies over the state while a write is under way and leaves it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) state: RecordState,
    /// The state that a write under way will give it.
    pub(super) pending: Option<RecordState>,
    pub(super) delivery_count: i16,
    /// Its acquisition lock, while [`RecordState::Acquired`].
    pub(super) lock: u32,
}

impl Record {
    /// A record inside the window that was never acquired since the state was loaded.
    pub(super) const UNSEEN: Self = Self {
        state: RecordState::Available,
        pending: None,
        delivery_count: 0,
        lock: NONE,
    };
    /// A record that is not delivered: aborted, or not in the log.
    pub(super) const ABSENT: Self = Self {
        state: RecordState::Archived,
        ..Self::UNSEEN
    };

    /// The record while the write is under way that makes it `next`.
    pub(super) fn becoming(self, next: RecordState) -> Self {
        Self {
            pending: Some(next),
            ..self
        }
    }

    /// Whether a fetch may acquire it.
    pub(super) fn is_free(self) -> bool {
        self.state == RecordState::Available && self.pending.is_none()
    }

    /// Whether nothing can happen to it any more.
    pub(super) fn is_done(self) -> bool {
        self.state.is_done() && self.pending.is_none()
    }
}

/// Records first acquired together: what Kafka calls an in-flight batch. Throttling counts in
/// extents, a refused acknowledgement is worded by them, and acquired ranges do not cross them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) first: i64,
    pub(super) last: i64,
    /// Whether its records ever went different ways.
    pub(super) split: bool,
}

impl Extent {
    pub(super) fn len(self) -> i64 {
        self.last - self.first + 1
    }
}

/// The window `start..=end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    start: i64,
    records: VecDeque<Record>,
    extents: VecDeque<Extent>,
    /// How many records are free.
    free: usize,
    /// How many records are done.
    done: usize,
    /// No record below it is free.
    no_free_below: i64,
}

impl Window {
    pub(super) fn new(start: i64) -> Self {
        Self {
            start,
            records: VecDeque::new(),
            extents: VecDeque::new(),
            free: 0,
            done: 0,
            no_free_below: start,
        }
    }

    pub(super) fn start(&self) -> i64 {
        self.start
    }

    /// The last offset of the window; `start - 1` when it is empty.
    pub(super) fn end(&self) -> i64 {
        self.start + self.records.len() as i64 - 1
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
            + self.extents.capacity() * size_of::<Extent>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn done(&self) -> usize {
        self.done
    }

    pub(super) fn clip(&self, range: OffsetRange) -> OffsetRange {
        OffsetRange::new(range.first.max(self.start), range.last.min(self.end()))
    }

    fn index(&self, offset: i64) -> usize {
        (offset - self.start) as usize
    }

    /// The record at `offset`, which must be inside the window.
    pub(super) fn get(&self, offset: i64) -> Record {
        self.records[self.index(offset)]
    }

    /// Replaces the record at `offset`, which must be inside the window.
    pub(super) fn set(&mut self, offset: i64, record: Record) {
        let index = self.index(offset);
        let old = std::mem::replace(&mut self.records[index], record);
        self.count(old, -1);
        self.count(record, 1);
        if record.is_free() {
            self.no_free_below = self.no_free_below.min(offset);
        }
    }

    /// Appends a record behind the end.
    pub(super) fn push(&mut self, record: Record) {
        self.records.push_back(record);
        self.count(record, 1);
    }

    fn count(&mut self, record: Record, by: isize) {
        if record.is_free() {
            self.free = self.free.wrapping_add_signed(by);
        } else if record.is_done() {
            self.done = self.done.wrapping_add_signed(by);
        }
    }

    pub(super) fn has_free(&self) -> bool {
        self.free > 0
    }

    /// The lowest free offset.
    pub(super) fn first_free(&mut self) -> Option<i64> {
        if self.free == 0 {
            self.no_free_below = self.end() + 1;
            return None;
        }
        let from = self.no_free_below.max(self.start);
        let found = (from..=self.end()).find(|&offset| self.get(offset).is_free());
        self.no_free_below = found.unwrap_or(self.end() + 1);
        found
    }

    /// Takes the front record away. The start offset moves up by one.
    pub(super) fn pop(&mut self) -> Option<Record> {
        let record = self.records.pop_front()?;
        self.count(record, -1);
        self.start += 1;
        while self
            .extents
            .front()
            .is_some_and(|extent| extent.last < self.start)
        {
            self.extents.pop_front();
        }
        Some(record)
    }

    /// Pops every done record at the front; says whether there was one.
    pub(super) fn pop_done(&mut self) -> bool {
        let before = self.start;
        while self.records.front().is_some_and(|record| record.is_done()) {
            self.pop();
        }
        self.start != before
    }

    /// Moves the start of an empty window.
    pub(super) fn jump(&mut self, start: i64) {
        debug_assert!(self.records.is_empty() && start >= self.start);
        self.start = start;
        self.no_free_below = start;
    }

    /// The extents, ascending and disjoint.
    pub(super) fn extents(&self) -> &VecDeque<Extent> {
        &self.extents
    }

    /// The position of the first extent that ends at or after `offset`.
    pub(super) fn extent_at_or_after(&self, offset: i64) -> usize {
        self.extents.partition_point(|extent| extent.last < offset)
    }

    /// Adds an extent where none is.
    pub(super) fn add_extent(&mut self, range: OffsetRange) {
        let extent = Extent {
            first: range.first,
            last: range.last,
            split: false,
        };
        let at = self.extent_at_or_after(range.first);
        if at == self.extents.len() {
            self.extents.push_back(extent);
        } else {
            self.extents.insert(at, extent);
        }
    }

    /// Lets the extent that ends right before `offset` take it in.
    pub(super) fn grow_extent(&mut self, offset: i64) {
        if let Some(extent) = self.extents.back_mut()
            && extent.last + 1 == offset
        {
            extent.last = offset;
            return;
        }
        let at = self.extent_at_or_after(offset - 1);
        if let Some(extent) = self.extents.get_mut(at) {
            extent.last = offset;
        }
    }

    /// Notes that the records of `range` go a way of their own: extents that reach beyond it split.
    pub(super) fn split_around(&mut self, range: OffsetRange) {
        let mut at = self.extent_at_or_after(range.first);
        while let Some(extent) = self.extents.get_mut(at) {
            if extent.first > range.last {
                break;
            }
            if extent.first < range.first || extent.last > range.last {
                extent.split = true;
            }
            at += 1;
        }
    }
}

impl Window {
    /// Notes that records of `range` go different ways: every extent that it touches splits.
    pub(super) fn split_within(&mut self, range: OffsetRange) {
        let mut at = self.extent_at_or_after(range.first);
        while let Some(extent) = self.extents.get_mut(at) {
            if extent.first > range.last {
                break;
            }
            extent.split = true;
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Record, Window};
    use crate::share::types::OffsetRange;

    #[test]
    fn a_record_costs_few_bytes() {
        assert!(size_of::<Record>() <= 8, "{}", size_of::<Record>());
    }

    #[test]
    fn done_records_at_the_front_are_popped_and_the_first_free_is_found() {
        let mut window = Window::new(10);
        for record in [
            Record::ABSENT,
            Record::UNSEEN,
            Record::ABSENT,
            Record::UNSEEN,
        ] {
            window.push(record);
        }
        assert!(window.pop_done());
        assert_eq!((window.start(), window.end(), window.done()), (11, 13, 1));
        assert_eq!(window.first_free(), Some(11));
        window.set(11, Record::ABSENT);
        assert_eq!(window.first_free(), Some(13));
        window.set(12, Record::UNSEEN);
        assert_eq!(window.first_free(), Some(12));
        assert!(window.pop_done());
        assert_eq!(window.start(), 12);
    }

    #[test]
    fn an_extent_splits_when_a_part_of_it_goes_its_own_way() {
        let mut window = Window::new(0);
        for _ in 0..9 {
            window.push(Record::UNSEEN);
        }
        window.add_extent(OffsetRange::new(6, 8));
        window.add_extent(OffsetRange::new(0, 2));
        window.add_extent(OffsetRange::new(3, 5));
        window.split_around(OffsetRange::new(2, 5));
        let split: Vec<bool> = window.extents().iter().map(|extent| extent.split).collect();
        assert_eq!(split, [true, false, false]);
    }
}
