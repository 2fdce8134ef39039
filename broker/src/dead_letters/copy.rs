//! Keys and values of records that go to a dead letter topic, read by offset.
//!
//! What cannot be read costs its own copy and no other: a record below the log's start, one that
//! compaction removed, one in a damaged batch or in one that decompresses beyond all bounds.

use std::ops::ControlFlow;

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

/// Reads the records of `range` and passes them on one by one, until told to stop.
pub(super) fn read<B>(log: &Log, range: OffsetRange, each: Each<'_, B>) -> ControlFlow<B> {
    let mut walk = Walk {
        next: range.first,
        last: range.last,
        each,
    };
    while walk.next <= range.last {
        match log.read(walk.next, READ_BYTES, true, Bound::LogEnd) {
            Ok(slice) if slice.next_offset > walk.next => {
                walk.batches(&slice.bytes)?;
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

/// The same without reading: no letter has a copy.
pub(super) fn none<B>(range: OffsetRange, each: Each<'_, B>) -> ControlFlow<B> {
    let mut walk = Walk {
        next: range.first,
        last: range.last,
        each,
    };
    walk.nothing_before(range.last.saturating_add(1))
}

struct Walk<'e, B> {
    next: i64,
    last: i64,
    each: Each<'e, B>,
}

impl<B> Walk<'_, B> {
    fn nothing_before(&mut self, offset: i64) -> ControlFlow<B> {
        while self.next < offset && self.next <= self.last {
            (self.each)(self.next, Copied::default())?;
            self.next += 1;
        }
        ControlFlow::Continue(())
    }

    fn batches(&mut self, bytes: &[u8]) -> ControlFlow<B> {
        for (header, bytes) in Batches::new(bytes).map_while(Result::ok) {
            if header.base_offset > self.last {
                break;
            }
            if header.last_offset() >= self.next {
                self.records(&header, bytes)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn records(&mut self, header: &BatchHeader, bytes: &[u8]) -> ControlFlow<B> {
        let set = match batch::records(bytes) {
            Ok(set) if batch::crc_ok(bytes) => set,
            _ => {
                tracing::warn!(
                    base_offset = header.base_offset,
                    "a batch could not be read: the dead letters of its records go without a copy"
                );
                return self.nothing_before(header.next_offset());
            }
        };
        for record in set.iter().map_while(Result::ok) {
            if record.offset < self.next {
                continue;
            }
            self.nothing_before(record.offset)?;
            if self.next > self.last {
                break;
            }
            let copied = Copied {
                key: record.key,
                value: record.value,
            };
            (self.each)(record.offset, copied)?;
            self.next += 1;
        }
        self.nothing_before(header.next_offset())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
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

    fn copies(log: &Log, first: i64, last: i64) -> String {
        let mut told = vec![];
        let _ = read::<()>(log, OffsetRange::new(first, last), &mut |offset, copied| {
            let value = copied.value.map_or("-".into(), String::from_utf8_lossy);
            told.push(format!("{offset}={value}"));
            ControlFlow::Continue(())
        });
        told.join(" ")
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
        let stopped = read(&log, OffsetRange::new(0, 2), &mut |offset, _| {
            if offset == 1 {
                ControlFlow::Break(offset)
            } else {
                ControlFlow::Continue(())
            }
        });
        assert_eq!(stopped, ControlFlow::Break(1));
    }
}
