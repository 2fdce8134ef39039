//! Compaction: which records stay, and what never changes.

mod behaviour;
mod crash;
mod lags;
mod model;
mod transactions;

use std::collections::BTreeMap;

use bytes::Bytes;
use ottla_protocol::batch::{
    BatchBuilder, BatchHeader, BatchOptions, Batches, crc_ok, end_txn_marker, records,
};
use ottla_storage::{AppendInfo, AppendOptions, Bound, CleanerOptions, Log, LogConfig, Origin};

use crate::bed::{Bed, Kind, NOW, options, small, try_append_as};

/// Compacted as soon as anything is dirty.
pub(crate) fn compacted() -> LogConfig {
    LogConfig {
        cleanup_compact: true,
        cleanup_delete: false,
        min_cleanable_dirty_ratio: 0.0,
        delete_retention_ms: 1000,
        ..small()
    }
}

/// A bed whose one log is compacted.
pub(crate) fn bed(kind: Kind) -> Bed {
    let bed = Bed::with(kind, |options| options.log_config = compacted());
    bed.log().set_config(compacted());
    bed
}

/// A key, and its value or its deletion.
pub(crate) type Pair<'a> = (&'a str, Option<&'a str>);

pub(crate) fn keyed(pairs: &[Pair<'_>], time: i64, options: BatchOptions) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for (index, (key, value)) in pairs.iter().enumerate() {
        let value = value.map(str::as_bytes);
        builder.push(time + index as i64, Some(key.as_bytes()), value);
    }
    builder.build().unwrap()
}

pub(crate) fn put_as(log: &Log, pairs: &[Pair<'_>], how: BatchOptions) -> AppendInfo {
    try_append_as(log, &keyed(pairs, NOW, how), options()).unwrap()
}

pub(crate) fn put(log: &Log, key: &str, value: &str) -> AppendInfo {
    put_as(log, &[(key, Some(value))], BatchOptions::default())
}

pub(crate) fn delete(log: &Log, key: &str) -> AppendInfo {
    put_as(log, &[(key, None)], BatchOptions::default())
}

/// A producer's batch: `in_txn` inside of a transaction.
pub(crate) fn by(producer_id: i64, sequence: i32, in_txn: bool) -> BatchOptions {
    BatchOptions {
        producer_id,
        producer_epoch: 0,
        base_sequence: sequence,
        transactional: in_txn,
        ..BatchOptions::default()
    }
}

pub(crate) fn end_txn(log: &Log, producer_id: i64, commit: bool) -> i64 {
    let marker = end_txn_marker(producer_id, 0, commit, 0, NOW).unwrap();
    let opts = AppendOptions {
        origin: Origin::Coordinator,
        ..options()
    };
    try_append_as(log, &marker, opts).unwrap().base_offset
}

/// Rolls the active segment by filling it with records of keys that nobody else uses.
pub(crate) fn roll(log: &Log) {
    let segments = log.segment_count();
    while log.segment_count() == segments {
        put(log, &format!("filler {}", log.end_offset()), "x");
    }
}

pub(crate) fn clean(bed: &Bed, now: i64) {
    bed.store.clean(now, &CleanerOptions::default());
}

/// All batches of the log, walked as a reader does; checks that the walk gets to the end.
pub(crate) fn batches(log: &Log) -> Vec<(BatchHeader, Bytes)> {
    let mut found = Vec::new();
    let mut from = log.start_offset();
    loop {
        let slice = log.read(from, 700, true, Bound::LogEnd).unwrap();
        if slice.bytes.is_empty() {
            assert_eq!(from, log.end_offset(), "a reader stands still");
            return found;
        }
        assert!(slice.next_offset > from);
        for item in Batches::new(&slice.bytes) {
            let (header, bytes) = item.unwrap();
            assert!(crc_ok(bytes));
            let last = found
                .last()
                .map_or(-1, |(h, _): &(BatchHeader, Bytes)| h.last_offset());
            assert!(header.base_offset > last, "batches in order");
            found.push((header, Bytes::copy_from_slice(bytes)));
        }
        from = slice.next_offset;
    }
}

/// Offset, key and value.
pub(crate) type Row = (i64, String, Option<String>);

/// All records but control records.
pub(crate) fn rows(log: &Log) -> Vec<Row> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut rows = Vec::new();
    for (header, bytes) in batches(log) {
        if header.is_control() {
            continue;
        }
        for record in &records(&bytes).unwrap() {
            let record = record.unwrap();
            rows.push((
                record.offset,
                text(record.key.unwrap()),
                record.value.map(text),
            ));
        }
    }
    rows
}

/// The rows whose keys no filler has.
pub(crate) fn told(log: &Log) -> Vec<Row> {
    let rows = rows(log).into_iter();
    rows.filter(|(_, key, _)| !key.starts_with("filler"))
        .collect()
}

/// The last value of each key.
pub(crate) fn last_values(log: &Log) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for (_, key, value) in rows(log) {
        match value {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }
    values
}
