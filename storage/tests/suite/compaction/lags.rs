//! When a log is compacted: lags, and both policies at once.

use ottla_protocol::batch::BatchOptions;
use ottla_storage::LogConfig;

use super::{bed, clean, compacted, keyed, put, told};
use crate::bed::{Kind, NOW, on_every_kind, options, try_append_as};

fn put_at(log: &ottla_storage::Log, key: &str, time: i64) {
    let batch = keyed(&[(key, Some("x"))], time, BatchOptions::default());
    try_append_as(log, &batch, options()).unwrap();
}

fn roll_at(log: &ottla_storage::Log, time: i64) {
    let segments = log.segment_count();
    while log.segment_count() == segments {
        put_at(log, &format!("filler {}", log.end_offset()), time);
    }
}

fn records_younger_than_the_least_lag_stay(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        min_compaction_lag_ms: 10_000,
        ..compacted()
    });
    put_at(&log, "a", NOW);
    put_at(&log, "a", NOW);
    roll_at(&log, NOW);
    put_at(&log, "a", NOW + 5000);
    roll_at(&log, NOW + 5000);
    clean(&bed, NOW + 9_999);
    assert_eq!(told(&log).len(), 3);
    clean(&bed, NOW + 10_000);
    assert_eq!(told(&log).len(), 2);
    clean(&bed, NOW + 15_000);
    assert_eq!(told(&log).len(), 1);
}

fn records_older_than_the_greatest_lag_force_it(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        min_cleanable_dirty_ratio: 1.0,
        max_compaction_lag_ms: 10_000,
        ..compacted()
    });
    put_at(&log, "a", NOW);
    put_at(&log, "a", NOW);
    roll_at(&log, NOW);
    clean(&bed, NOW + 10_000);
    assert_eq!(told(&log).len(), 2);
    clean(&bed, NOW + 10_001);
    assert_eq!(told(&log).len(), 1);
    // Such a log also rolls in time, however small its segments are.
    put_at(&log, "b", NOW + 20_000);
    let segments = log.segment_count();
    put_at(&log, "b", NOW + 30_001);
    assert_eq!(log.segment_count(), segments + 1);
}

fn both_policies_hold_at_once(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        cleanup_delete: true,
        retention_ms: 100_000,
        ..compacted()
    });
    for i in 0..30 {
        put_at(&log, &format!("{}", i % 3), NOW + i);
    }
    roll_at(&log, NOW + 90_000);
    clean(&bed, NOW + 90_000);
    assert_eq!(told(&log).len(), 3);
    roll_at(&log, NOW + 90_000);
    bed.store.tick(NOW + 95_000);
    assert_eq!(told(&log).len(), 3);
    bed.store.tick(NOW + 1_000_000);
    assert_eq!(told(&log).len(), 0);
    assert_eq!(log.start_offset(), log.end_offset());
    put(&log, "a", "1");
    assert_eq!(told(&log).len(), 1);
}

on_every_kind! {
    records_younger_than_the_least_lag_stay,
    records_older_than_the_greatest_lag_force_it,
    both_policies_hold_at_once,
}
