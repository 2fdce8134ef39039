//! Keys and values of records that go to a dead letter topic, read by offset.
//!
//! What cannot be read costs its own copy and no other: a record below the log's start, one that
//! compaction removed, one in a damaged batch or in one that decompresses beyond all bounds.
//! The batch that was read last stays open: many short units may be of one long batch.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::share::types::OffsetRange;
use ottla_protocol::batch::{self, BatchHeader, Batches};
use ottla_storage::{Bound, Log, ReadError};

/// Bytes that are read at a time; the first batch is whole whatever its size.
const READ_BYTES: usize = 1 << 20;

/// What a letter copies of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Copied<'a> {
    /// The key.
    pub(super) key: Option<&'a [u8]>,
    /// The value.
    pub(super) value: Option<&'a [u8]>,
}

/// Told each offset, ascending, and what could be read there.
type Each<'e, B> = &'e mut dyn FnMut(i64, Copied<'_>) -> ControlFlow<B>;

/// Reads records, and keeps the batch that they were in.
#[derive(Debug, Default)]
pub(super) struct Source {
    open: Option<Open>,
}

/// A batch that was read.
#[derive(Debug)]
struct Open {
    log: Arc<Log>,
    first: i64,
    next: i64,
    payload: Bytes,
    /// Ascending.
    records: Vec<Place>,
}

/// Where in the payload a record's key and value are.
#[derive(Debug)]
struct Place {
    offset: i64,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
}

impl Source {
    /// Closes what is open.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Reads the records of `range` and passes them on one by one, until told to stop.
    pub(super) fn read<B>(
        &mut self,
        log: &Arc<Log>,
        range: OffsetRange,
        each: Each<'_, B>,
    ) -> ControlFlow<B> {
        let mut walk = Walk::new(range, each);
        while walk.next <= range.last {
            if let Some(open) = &self.open
                && Arc::ptr_eq(&open.log, log)
                && (open.first..open.next).contains(&walk.next)
            {
                walk.records(open)?;
                continue;
            }
            match log.read(walk.next, READ_BYTES, true, Bound::LogEnd) {
                Ok(slice) if slice.next_offset > walk.next => {
                    self.batches(log, &slice.bytes, &mut walk)?;
                    walk.nothing_before(slice.next_offset)?;
                }
                Err(ReadError::OffsetOutOfRange { start, .. }) if start > walk.next => {
                    walk.nothing_before(start)?;
                }
                Ok(_) | Err(ReadError::OffsetOutOfRange { .. }) => break,
                Err(error) => {
                    tracing::warn!(log = log.name(), offset = walk.next, %error, "records could not be read: their dead letters go without a copy");
                    break;
                }
            }
        }
        walk.nothing_before(range.last.saturating_add(1))
    }

    fn batches<B>(
        &mut self,
        log: &Arc<Log>,
        slice: &Bytes,
        walk: &mut Walk<'_, B>,
    ) -> ControlFlow<B> {
        for (header, bytes) in Batches::new(slice).map_while(Result::ok) {
            if header.base_offset > walk.last {
                break;
            }
            if header.next_offset() > walk.next {
                let open = self.open.insert(Open::new(log, slice, &header, bytes));
                walk.records(open)?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Open {
    /// Opens the batch `bytes`, which are in `slice`; without records where it is damaged.
    fn new(log: &Arc<Log>, slice: &Bytes, header: &BatchHeader, bytes: &[u8]) -> Self {
        let mut open = Self {
            log: Arc::clone(log),
            first: header.base_offset,
            next: header.next_offset(),
            payload: Bytes::new(),
            records: vec![],
        };
        let set = match batch::records(bytes) {
            Ok(set) if batch::crc_ok(bytes) => set,
            _ => {
                tracing::warn!(
                    base_offset = header.base_offset,
                    "a batch could not be read: the dead letters of its records go without a copy"
                );
                return open;
            }
        };
        let payload = set.payload();
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr() - payload.as_ptr().addr();
            start..start + part.len()
        };
        let records = set.iter().map_while(Result::ok);
        let places = records.map(|record| Place {
            offset: record.offset,
            key: record.key.map(place),
            value: record.value.map(place),
        });
        open.records = places.collect();
        open.payload = match set.into_payload() {
            Cow::Borrowed(payload) => slice.slice_ref(payload),
            Cow::Owned(payload) => payload.into(),
        };
        open
    }

    fn copied(&self, record: &Place) -> Copied<'_> {
        let part = |place: &Option<Range<usize>>| {
            let place = place.clone()?;
            self.payload.get(place)
        };
        Copied {
            key: part(&record.key),
            value: part(&record.value),
        }
    }
}

/// The same without reading: no letter has a copy.
pub(super) fn none<B>(range: OffsetRange, each: Each<'_, B>) -> ControlFlow<B> {
    Walk::new(range, each).nothing_before(range.last.saturating_add(1))
}

struct Walk<'e, B> {
    next: i64,
    last: i64,
    each: Each<'e, B>,
}

impl<'e, B> Walk<'e, B> {
    fn new(range: OffsetRange, each: Each<'e, B>) -> Self {
        Self {
            next: range.first,
            last: range.last,
            each,
        }
    }

    fn nothing_before(&mut self, offset: i64) -> ControlFlow<B> {
        while self.next < offset && self.next <= self.last {
            (self.each)(self.next, Copied::default())?;
            self.next += 1;
        }
        ControlFlow::Continue(())
    }

    fn records(&mut self, batch: &Open) -> ControlFlow<B> {
        let records = &batch.records;
        let from = records.partition_point(|record| record.offset < self.next);
        for record in &records[from..] {
            self.nothing_before(record.offset)?;
            if self.next > self.last {
                break;
            }
            (self.each)(record.offset, batch.copied(record))?;
            self.next += 1;
        }
        self.nothing_before(batch.next)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use ottla_protocol::batch::{BatchBuilder, BatchOptions};
    use ottla_protocol::compression::Compression;
    use ottla_storage::{AppendOptions, LogConfig, Origin, Store, StoreOptions};

    use super::*;

    fn append(log: &Log, batch: &Bytes) {
        let header = BatchHeader::parse(batch).unwrap();
        let options = AppendOptions {
            leader_epoch: 0,
            now: 0,
            log_append_time: false,
            origin: Origin::Client,
        };
        log.append(batch, &header, options).unwrap();
    }

    fn batch(values: &[&str], compression: Compression) -> Bytes {
        let mut builder = BatchBuilder::new(BatchOptions {
            compression,
            ..BatchOptions::default()
        });
        for value in values {
            builder.push(0, Some(b"k"), Some(value.as_bytes()));
        }
        builder.build().unwrap()
    }

    fn log() -> (Arc<Store>, Arc<Log>) {
        let store = Store::open(StoreOptions::default(), 0).unwrap();
        let config = LogConfig::default();
        let log = store.create_log("t", 0, [1; 16], config, 0).unwrap();
        (store, log)
    }

    fn copies(log: &Arc<Log>, first: i64, last: i64) -> String {
        copies_from(&mut Source::default(), log, first, last)
    }

    fn copies_from(source: &mut Source, log: &Arc<Log>, first: i64, last: i64) -> String {
        let mut told = vec![];
        let range = OffsetRange::new(first, last);
        let _ = source.read::<()>(log, range, &mut |offset, copied| {
            let value = copied.value.map_or("-".into(), String::from_utf8_lossy);
            told.push(format!("{offset}={value}"));
            ControlFlow::Continue(())
        });
        told.join(" ")
    }

    #[test]
    fn a_batch_that_is_open_serves_the_next_reads_of_it() {
        for codec in [Compression::None, Compression::Lz4, Compression::Snappy] {
            let (_store, log) = log();
            append(&log, &batch(&["a", "b", "c"], codec));
            append(&log, &batch(&["d"], codec));
            let mut source = Source::default();
            assert_eq!(copies_from(&mut source, &log, 0, 0), "0=a");
            // Gone from the log, and in the open batch still.
            log.delete_records_before(3, 0).unwrap();
            assert_eq!(copies_from(&mut source, &log, 1, 2), "1=b 2=c");
            assert_eq!(copies_from(&mut source, &log, 2, 3), "2=c 3=d");
            assert_eq!(copies_from(&mut source, &log, 2, 3), "2=- 3=d");
            let (_other_store, other) = self::log();
            append(&other, &batch(&["x", "y", "z", "!"], codec));
            assert_eq!(copies_from(&mut source, &other, 3, 3), "3=!");
            assert_eq!(copies_from(&mut source, &log, 3, 3), "3=d");
        }
    }

    #[test]
    fn records_are_read_by_offset_over_batches_and_codecs() {
        let (_store, log) = log();
        append(&log, &batch(&["a", "b", "c"], Compression::None));
        append(&log, &batch(&["d", "e"], Compression::Gzip));
        append(&log, &batch(&["f"], Compression::Zstd));
        assert_eq!(copies(&log, 1, 4), "1=b 2=c 3=d 4=e");
        assert_eq!(copies(&log, 4, 5), "4=e 5=f");
        assert_eq!(copies(&log, 0, 0), "0=a");
    }

    #[test]
    fn what_is_not_in_the_log_costs_its_own_copy_only() {
        let (_store, log) = log();
        append(&log, &batch(&["a", "b", "c"], Compression::None));
        log.delete_records_before(2, 0).unwrap();
        assert_eq!(copies(&log, 0, 4), "0=- 1=- 2=c 3=- 4=-");
    }

    #[test]
    fn a_damaged_batch_costs_its_own_copies_only() {
        let (_store, log) = log();
        append(&log, &batch(&["a"], Compression::None));
        let mut damaged = batch(&["b", "c"], Compression::None).to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        append(&log, &damaged.into());
        append(&log, &batch(&["d"], Compression::None));
        assert_eq!(copies(&log, 0, 3), "0=a 1=- 2=- 3=d");
    }

    #[test]
    fn the_reader_can_stop() {
        let (_store, log) = log();
        append(&log, &batch(&["a", "b", "c"], Compression::None));
        let range = OffsetRange::new(0, 2);
        let stopped = Source::default().read(&log, range, &mut |offset, _| {
            if offset == 1 {
                ControlFlow::Break(offset)
            } else {
                ControlFlow::Continue(())
            }
        });
        assert_eq!(stopped, ControlFlow::Break(1));
    }
}
