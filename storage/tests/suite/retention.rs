//! Removal from the front.

use ottla_storage::{Bound, LogConfig, ReadError, StorageError};

use crate::bed::{Bed, Kind, NOW, append, batch, on_disks, on_every_kind, read_all, small};

const LATER: i64 = NOW + 1_000_000;

fn deleted_records_are_out_of_range_and_whole_segments_go(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..40 {
        append(&log, &batch(2, NOW + i));
    }
    let (size, segments) = (log.size_bytes(), log.segment_count());
    assert_eq!(log.delete_records_before(31, NOW).unwrap(), 31);
    assert_eq!(log.delete_records_before(5, NOW).unwrap(), 31);
    assert!(log.size_bytes() < size && log.segment_count() < segments);
    let error = log.read(30, 100, true, Bound::LogEnd).unwrap_err();
    assert!(matches!(
        error,
        ReadError::OffsetOutOfRange {
            start: 31,
            end: 80,
            ..
        }
    ));
    assert_eq!(read_all(&log, 200, Bound::LogEnd).first().unwrap().0, 31);
    let beyond = log.delete_records_before(81, NOW).unwrap_err();
    assert!(matches!(
        beyond,
        StorageError::BeyondEnd {
            offset: 81,
            end: 80
        }
    ));
}

fn after_a_look_nothing_stays_due(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..20 {
        append(&log, &batch(2, NOW + i));
    }
    log.delete_records_before(20, NOW).unwrap();
    bed.store.tick(LATER);
    assert!(bed.store.next_deadline().unwrap() > LATER);
}

fn deleting_everything_leaves_an_empty_log_that_goes_on(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..10 {
        append(&log, &batch(2, NOW + i));
    }
    assert_eq!(log.delete_records_before(-1, NOW).unwrap(), 20);
    assert_eq!((log.size_bytes(), log.segment_count()), (0, 1));
    assert_eq!(append(&log, &batch(1, NOW)).base_offset, 20);
    assert_eq!(read_all(&log, 200, Bound::LogEnd), [(20, NOW)]);
}

fn old_segments_go_after_retention_ms(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        retention_ms: 1_000_000,
        ..small()
    });
    for i in 0..40 {
        append(&log, &batch(2, NOW + 1000 * i));
    }
    bed.store.tick(NOW + 1_000_000);
    assert_eq!(log.start_offset(), 0);
    bed.store.tick(NOW + 1_020_000 + 300_000);
    assert_eq!(log.start_offset(), log.end_offset());
    assert_eq!(log.size_bytes(), 0);
    append(&log, &batch(2, LATER * 2));
    bed.store.tick(NOW + 2_000_000);
    assert_eq!(log.end_offset() - log.start_offset(), 2);
}

fn the_oldest_segments_go_beyond_retention_bytes(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        retention_bytes: 2500,
        ..small()
    });
    for i in 0..60 {
        append(&log, &batch(2, NOW + i));
    }
    bed.store.tick(LATER);
    assert!(log.size_bytes() >= 2500 && log.size_bytes() < 3500);
    assert_eq!(
        read_all(&log, 400, Bound::LogEnd).len() as i64,
        log.end_offset() - log.start_offset()
    );
}

fn without_the_delete_policy_nothing_goes(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        retention_bytes: 0,
        retention_ms: 0,
        cleanup_delete: false,
        ..small()
    });
    append(&log, &batch(2, NOW));
    bed.store.tick(LATER);
    assert_eq!(log.start_offset(), 0);
}

on_every_kind! {
    deleted_records_are_out_of_range_and_whole_segments_go,
    after_a_look_nothing_stays_due,
    deleting_everything_leaves_an_empty_log_that_goes_on,
    old_segments_go_after_retention_ms,
    the_oldest_segments_go_beyond_retention_bytes,
    without_the_delete_policy_nothing_goes,
}

fn the_start_offset_survives_a_tick_and_a_crash(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..20 {
        append(&log, &batch(2, NOW + i));
    }
    log.delete_records_before(15, NOW).unwrap();
    bed.store.tick(NOW + 1000);
    let epoch = log.epoch_for_offset(15);
    drop(log);
    let bed = bed.crash();
    assert_eq!(bed.log().start_offset(), 15);
    assert_eq!(bed.log().epoch_for_offset(15), epoch);
    let bed = bed.restart();
    assert_eq!(bed.log().start_offset(), 15);
}

fn deleted_files_are_renamed_and_go_after_the_delay(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..20 {
        append(&log, &batch(2, NOW + i));
    }
    log.delete_records_before(20, NOW).unwrap();
    let deleted = |bed: &Bed| {
        let files = bed.files();
        files
            .iter()
            .filter(|name| name.ends_with(".deleted"))
            .count()
    };
    assert!(deleted(&bed) >= 3);
    assert!(bed.store.next_deadline().unwrap() <= NOW + 60_000);
    bed.store.tick(NOW + 59_999);
    assert!(deleted(&bed) >= 3);
    bed.store.tick(NOW + 60_000);
    assert_eq!(deleted(&bed), 0);
}

mod disks {
    use super::{
        deleted_files_are_renamed_and_go_after_the_delay, on_disks,
        the_start_offset_survives_a_tick_and_a_crash,
    };
    on_disks! {
        the_start_offset_survives_a_tick_and_a_crash,
        deleted_files_are_renamed_and_go_after_the_delay,
    }
}
