//! The log: append and read of 16 KiB batches, on disk and in memory, and the checks before an append.

#![allow(clippy::unwrap_used, missing_docs, reason = "benchmarks")]

use std::sync::Arc;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ottla_protocol::batch::{
    BatchBuilder, BatchHeader, BatchOptions, ProduceChecks, validate_produce,
};
use ottla_storage::{AppendOptions, Bound, Log, LogConfig, Origin, Store, StoreOptions};

const NOW: i64 = 1_767_225_600_000;
const RECORDS: usize = 16;

fn batch() -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..RECORDS {
        builder.push(NOW, None, Some(&[7; 1024]));
    }
    builder.build().unwrap()
}

fn log(dir: Option<&std::path::Path>) -> (Arc<Store>, Arc<Log>) {
    let options = StoreOptions {
        data_dir: dir.map(Into::into),
        ..StoreOptions::default()
    };
    let store = Store::open(options, NOW).unwrap();
    // Small segments and little to keep, so that a long run does not fill the machine.
    let config = LogConfig {
        segment_bytes: 64 << 20,
        retention_bytes: 64 << 20,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let log = store.create_log("bench", 0, [1; 16], config, NOW).unwrap();
    (store, log)
}

fn append_one(log: &Log, batch: &[u8], header: &BatchHeader) {
    let options = AppendOptions {
        leader_epoch: 0,
        now: NOW,
        log_append_time: false,
        origin: Origin::Client,
    };
    log.append(batch, header, options).unwrap();
}

fn append(c: &mut Criterion) {
    let batch = batch();
    let header = BatchHeader::parse(&batch).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("append");
    group.throughput(Throughput::Bytes(batch.len() as u64));
    for (name, dir) in [("disk", Some(dir.path())), ("memory", None)] {
        let (store, log) = log(dir);
        let mut appended = 0_usize;
        group.bench_function(format!("16 KiB, {name}"), |b| {
            b.iter(|| {
                append_one(&log, &batch, &header);
                appended += batch.len();
                if appended > 256 << 20 {
                    log.delete_records_before(log.end_offset(), NOW).unwrap();
                    store.tick(NOW);
                    appended = 0;
                }
            });
        });
    }
    let checks = ProduceChecks::at(NOW);
    group.bench_function("checks before it", |b| {
        b.iter(|| validate_produce(&batch, &checks).unwrap());
    });
    group.finish();
}

fn fetch(c: &mut Criterion) {
    let batch = batch();
    let header = BatchHeader::parse(&batch).unwrap();
    let mut group = c.benchmark_group("fetch");
    for bytes in [16 << 10, 1 << 20] {
        let (_store, log) = log(None);
        for _ in 0..(32 << 20) / batch.len() {
            append_one(&log, &batch, &header);
        }
        group.throughput(Throughput::Bytes(bytes as u64));
        let mut next = 0;
        group.bench_function(format!("{} KiB by reference", bytes >> 10), |b| {
            b.iter(|| {
                let slice = log.read(next, bytes, true, Bound::LogEnd).unwrap();
                next = if slice.next_offset >= log.end_offset() {
                    0
                } else {
                    slice.next_offset
                };
                slice
            });
        });
    }
    group.finish();
}

/// Opens a directory of 1 GiB that was left by a crash: of this boot, where the page cache lived on and
/// only the tail is walked, and of another, where every batch is.
fn recovery(c: &mut Criterion) {
    let batch = batch();
    let header = BatchHeader::parse(&batch).unwrap();
    let dir = tempfile::tempdir().unwrap();
    {
        let options = StoreOptions {
            data_dir: Some(dir.path().into()),
            ..StoreOptions::default()
        };
        let store = Store::open(options, NOW).unwrap();
        let log = store
            .create_log("bench", 0, [1; 16], LogConfig::default(), NOW)
            .unwrap();
        for _ in 0..(1 << 30) / batch.len() {
            append_one(&log, &batch, &header);
        }
    }
    let mut group = c.benchmark_group("recovery");
    group.sample_size(10);
    for (name, boot) in [("same boot", None), ("another boot", Some("another"))] {
        group.bench_function(format!("1 GiB after a crash, {name}"), |b| {
            b.iter_batched(
                || boot.map(|id| std::fs::write(dir.path().join(".ottla-boot"), id).unwrap()),
                |_| {
                    let data_dir = Some(dir.path().into());
                    let options = StoreOptions {
                        data_dir,
                        ..StoreOptions::default()
                    };
                    Store::open(options, NOW).unwrap()
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(kernels, append, fetch, recovery);
criterion_main!(kernels);
