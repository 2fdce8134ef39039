//! A segment's two indexes: offset to position, and time to offset.
//!
//! Both are sparse: an entry for a batch that came after `index.interval.bytes` of others. While a
//! segment is written they are vectors; when it is rolled or closed they become Kafka's files
//! (`truth`: entries of 8 and 12 bytes, big endian, offsets relative to the segment's base).

use bytes::Bytes;

/// Bytes of an entry in a `.index` file.
pub(crate) const OFFSET_ENTRY: usize = 8;
/// Bytes of an entry in a `.timeindex` file.
pub(crate) const TIME_ENTRY: usize = 12;

/// One entry of the offset index: the batch at `position` ends at offset `base + relative`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub(crate) relative: u32,
    pub(crate) position: u32,
}

/// One entry of the time index: no batch up to offset `base + relative` is newer than `timestamp`,
/// and the batch that ends there is as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    pub(crate) relative: u32,
}

/// An entry that can be stored.
pub(crate) trait Entry: Copy {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, out: &mut Vec<u8>);
}

fn be<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .unwrap_or([0; N])
}

impl Entry for OffsetEntry {
    const SIZE: usize = OFFSET_ENTRY;

    fn read(bytes: &[u8]) -> Self {
        Self {
            relative: u32::from_be_bytes(be(bytes, 0)),
            position: u32::from_be_bytes(be(bytes, 4)),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }
}

impl Entry for TimeEntry {
    const SIZE: usize = TIME_ENTRY;

    fn read(bytes: &[u8]) -> Self {
        Self {
            timestamp: i64::from_be_bytes(be(bytes, 0)),
            relative: u32::from_be_bytes(be(bytes, 8)),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative.to_be_bytes());
    }
}

/// The entries of one index, being collected or as they are in a file.
#[derive(Debug, Clone)]
pub(crate) enum Entries<E> {
    Live(Vec<E>),
    Stored(Bytes),
}

impl<E: Entry> Entries<E> {
    pub(crate) const fn new() -> Self {
        Self::Live(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Live(entries) => entries.len(),
            Self::Stored(bytes) => bytes.len() / E::SIZE,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<E> {
        match self {
            Self::Live(entries) => entries.get(at).copied(),
            Self::Stored(bytes) => bytes
                .get(at * E::SIZE..(at + 1) * E::SIZE)
                .map(|bytes| E::read(bytes)),
        }
    }

    pub(crate) fn last(&self) -> Option<E> {
        self.len().checked_sub(1).and_then(|at| self.get(at))
    }

    /// Adds an entry, taking a stored index into memory first.
    pub(crate) fn push(&mut self, entry: E) {
        if let Self::Stored(_) = self {
            *self = Self::Live((0..self.len()).filter_map(|at| self.get(at)).collect());
        }
        if let Self::Live(entries) = self {
            entries.push(entry);
        }
    }

    /// The entries as a file holds them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() * E::SIZE);
        (0..self.len())
            .filter_map(|at| self.get(at))
            .for_each(|entry| entry.write(&mut out));
        out
    }

    /// The last entry for which `before` holds; it must hold for a prefix of the entries.
    pub(crate) fn last_where(&self, before: impl Fn(E) -> bool) -> Option<E> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.get(middle) {
                Some(entry) if before(entry) => low = middle + 1,
                _ => high = middle,
            }
        }
        low.checked_sub(1).and_then(|at| self.get(at))
    }
}

/// Takes the content of a `.index` file, unless it cannot belong to a segment of `size` bytes.
/// A file that Kafka had open ends in zeros: those are no entries and are cut off.
pub(crate) fn stored_offsets(bytes: Bytes, size: u64) -> Option<Entries<OffsetEntry>> {
    let index = Entries::<OffsetEntry>::Stored(without_zeros(bytes, OFFSET_ENTRY)?);
    let mut last: Option<OffsetEntry> = None;
    for at in 0..index.len() {
        let entry = index.get(at)?;
        let ordered = last
            .is_none_or(|last| last.relative < entry.relative && last.position < entry.position);
        if !ordered || u64::from(entry.position) >= size {
            return None;
        }
        last = Some(entry);
    }
    Some(index)
}

/// Takes the content of a `.timeindex` file if its entries are in order; see [`stored_offsets`].
pub(crate) fn stored_times(bytes: Bytes) -> Option<Entries<TimeEntry>> {
    let index = Entries::<TimeEntry>::Stored(without_zeros(bytes, TIME_ENTRY)?);
    let ordered = (1..index.len()).all(|at| match (index.get(at - 1), index.get(at)) {
        (Some(a), Some(b)) => a.timestamp < b.timestamp && a.relative <= b.relative,
        _ => false,
    });
    ordered.then_some(index)
}

fn without_zeros(bytes: Bytes, entry: usize) -> Option<Bytes> {
    if !bytes.len().is_multiple_of(entry) {
        return None;
    }
    // A genuine entry is never all zero behind the first: positions and times grow. The first one
    // of a time index may be (time 0, offset 0) and is lost, which only makes a lookup start earlier.
    let used = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |at| at + 1);
    Some(bytes.slice(..used.div_ceil(entry) * entry))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn offsets(pairs: &[(u32, u32)]) -> Entries<OffsetEntry> {
        Entries::Live(
            pairs
                .iter()
                .map(|&(relative, position)| OffsetEntry { relative, position })
                .collect(),
        )
    }

    #[test]
    fn a_lookup_finds_the_last_entry_at_or_before() {
        let live = offsets(&[(4, 100), (9, 200), (15, 300)]);
        let stored = stored_offsets(Bytes::from(live.to_bytes()), 400).unwrap();
        for index in [live, stored] {
            let find = |offset: u32| {
                index
                    .last_where(|e| e.relative <= offset)
                    .map(|e| e.position)
            };
            assert_eq!(find(3), None);
            assert_eq!(find(4), Some(100));
            assert_eq!(find(14), Some(200));
            assert_eq!(find(99), Some(300));
        }
    }

    #[test]
    fn the_zeros_of_an_open_kafka_index_are_no_entries() {
        let mut bytes = offsets(&[(4, 100), (9, 256)]).to_bytes();
        bytes.resize(10 << 20, 0);
        let index = stored_offsets(Bytes::from(bytes), 400).unwrap();
        assert_eq!(index.len(), 2);
        assert_eq!(index.last().unwrap().position, 256);
    }

    #[test]
    fn a_damaged_index_is_refused() {
        let ok = |index: Entries<OffsetEntry>, size| {
            stored_offsets(Bytes::from(index.to_bytes()), size).is_some()
        };
        assert!(ok(offsets(&[(4, 100)]), 101));
        assert!(!ok(offsets(&[(4, 100)]), 100));
        assert!(!ok(offsets(&[(4, 100), (4, 200)]), 400));
        assert!(!ok(offsets(&[(4, 100), (5, 50)]), 400));
        assert!(stored_offsets(Bytes::from_static(&[1; 9]), 400).is_none());
    }

    #[test]
    fn entries_can_be_added_to_a_stored_index() {
        let mut index = stored_offsets(Bytes::from(offsets(&[(4, 100)]).to_bytes()), 200).unwrap();
        index.push(OffsetEntry {
            relative: 9,
            position: 150,
        });
        assert_eq!(index.len(), 2);
        assert_eq!(index.last().unwrap().relative, 9);
    }
}
