//! The share partition: 500 records acquired, acknowledged and written, in one go and one by one.

#![allow(clippy::unwrap_used, missing_docs, reason = "benchmarks")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AcquireMode, AcquireRequest, Limits, OffsetRange, PersistedState,
};

const RECORDS: i64 = 500;
const ACCEPT: i8 = 1;
const LIMITS: Limits = Limits {
    max_record_locks: 2000,
    delivery_count_limit: 5,
    lock_duration_ms: 30_000,
    renew_enabled: true,
    dead_letters: false,
    dlq_write_timeout_ms: None,
};

/// Acquires the next 500 records and writes what follows from `acknowledge`.
fn turn(partition: &mut SharePartition, acknowledge: impl Fn(&mut SharePartition, i64)) {
    let offset = partition.next_fetch_offset(&LIMITS).unwrap();
    let batches = [OffsetRange::new(offset, offset + RECORDS - 1)];
    let request = AcquireRequest {
        max_records: RECORDS as i32,
        batch_size: RECORDS as i32,
        mode: AcquireMode::BatchOptimized,
        fetch_offset: offset,
        batches: &batches,
        upper: i64::MAX,
        aborted: &[],
        non_data: &[],
    };
    let got = partition.acquire(0, "member", &LIMITS, &request);
    assert_eq!(got.len(), 1);
    acknowledge(partition, offset);
    while let Some((token, _)) = partition.take_write() {
        partition.write_done(token, true, 0, &LIMITS);
    }
}

fn accept(partition: &mut SharePartition, first: i64, last: i64, types: &[i8]) {
    let batch = AckBatch { first, last, types };
    partition
        .acknowledge(0, "member", &[batch], false, &LIMITS)
        .unwrap();
}

fn kernels(c: &mut Criterion) {
    let mut group = c.benchmark_group("share partition");
    group.throughput(Throughput::Elements(RECORDS as u64));
    let mut partition = SharePartition::load(&PersistedState::default(), 0, 0, &LIMITS);
    group.bench_function("acquire 500, accept as one", |b| {
        b.iter(|| {
            turn(&mut partition, |p, at| {
                accept(p, at, at + RECORDS - 1, &[ACCEPT]);
            });
        });
    });
    let types = vec![ACCEPT; RECORDS as usize];
    group.bench_function("acquire 500, accept by a type each", |b| {
        b.iter(|| {
            turn(&mut partition, |p, at| {
                accept(p, at, at + RECORDS - 1, &types);
            });
        });
    });
    group.bench_function("acquire 500, accept one by one", |b| {
        b.iter(|| {
            turn(&mut partition, |p, at| {
                for offset in at..at + RECORDS {
                    accept(p, offset, offset, &[ACCEPT]);
                }
            });
        });
    });
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
