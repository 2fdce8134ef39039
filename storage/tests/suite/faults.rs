//! Disks that are full, that fail, and that forget.

use std::sync::Arc;

use ottla_storage::{AppendError, Bound, Log, LogConfig, StorageError};

use crate::bed::{Bed, NOW, TOPIC_ID, append, batch, read_all, small, try_append};

fn is_io(error: &AppendError) -> bool {
    matches!(error, AppendError::Storage(StorageError::Io { .. }))
}

#[test]
fn a_full_disk_refuses_appends_and_space_heals_the_log() {
    let (bed, faults) = Bed::faulty();
    let log = bed.log();
    let mut count = 0;
    for room in (0..=100).step_by(20) {
        append(&log, &batch(2, NOW));
        count += 2;
        faults.set_room(Some(room));
        assert!(is_io(&try_append(&log, &batch(2, NOW)).unwrap_err()));
        assert_eq!(log.end_offset(), count);
        assert_eq!(read_all(&log, 1000, Bound::LogEnd).len() as i64, count);
        faults.set_room(None);
    }
    append(&log, &batch(2, NOW));
    assert!(!log.is_failed());
    drop(log);
    let bed = bed.crash();
    assert_eq!(
        read_all(&bed.log(), 1000, Bound::LogEnd).len() as i64,
        count + 2
    );
}

#[test]
fn a_crash_on_a_full_disk_leaves_no_half_batch() {
    let (bed, faults) = Bed::faulty();
    append(&bed.log(), &batch(2, NOW));
    faults.set_room(Some(70));
    assert!(try_append(&bed.log(), &batch(2, NOW)).is_err());
    faults.set_room(None);
    let bed = bed.crash();
    assert_eq!(bed.log().end_offset(), 2);
    assert_eq!(append(&bed.log(), &batch(1, NOW)).base_offset, 2);
}

#[test]
fn a_segment_that_cannot_be_made_fails_that_append_only() {
    let (bed, faults) = Bed::faulty();
    let log = bed.log();
    while log.segment_count() == 1 {
        faults.fail_opens(true);
        match try_append(&log, &batch(2, NOW)) {
            Ok(_) => {}
            Err(error) => {
                assert!(is_io(&error));
                faults.fail_opens(false);
                append(&log, &batch(2, NOW));
            }
        }
    }
    let count = log.end_offset();
    assert_eq!(read_all(&log, 1000, Bound::LogEnd).len() as i64, count);
    drop(log);
    assert_eq!(bed.crash().log().end_offset(), count);
}

#[test]
fn a_failed_sync_ends_that_log_and_no_other() {
    let (bed, faults) = Bed::faulty();
    let log = bed.log();
    let other = bed
        .store
        .create_log("o", 0, TOPIC_ID, small(), NOW)
        .unwrap();
    log.set_config(LogConfig {
        flush_messages: 1,
        ..small()
    });
    append(&log, &batch(1, NOW));
    assert_eq!(log.recovery_point(), 1);
    faults.fail_syncs(true);
    let error = try_append(&log, &batch(1, NOW)).unwrap_err();
    assert!(matches!(error, AppendError::Sync(_)));
    assert!(log.is_failed());
    faults.fail_syncs(false);
    let error = try_append(&log, &batch(1, NOW)).unwrap_err();
    assert!(matches!(
        error,
        AppendError::Storage(StorageError::Failed(_))
    ));
    assert!(read_all(&log, 100, Bound::LogEnd).len() == 2);
    append(&other, &batch(1, NOW));
    assert!(!other.is_failed());
    // No clean shutdown: the next start must look at the log.
    assert!(bed.store.close().is_err());
    assert!(!bed.data_dir().join(".kafka_cleanshutdown").exists());
}

/// Everything that was synced is there after a power failure, and what is there is whole.
#[test]
fn a_power_failure_keeps_what_was_synced() {
    for keep in [0, 1, 60, 100, 150, 400] {
        let (bed, faults) = Bed::faulty();
        let log = bed.log();
        for i in 0..25 {
            append(&log, &batch(2, NOW + i));
        }
        log.flush().unwrap();
        for i in 0..7 {
            append(&log, &batch(2, NOW + i));
        }
        assert_eq!(log.recovery_point(), 50);
        bed.store.checkpoint().unwrap();
        drop(log);
        std::fs::remove_file(bed.data_dir().join(".ottla-boot")).unwrap();
        let Bed { store, .. } = &bed;
        assert_eq!(Arc::strong_count(store), 1);
        faults.crash(keep).unwrap();
        let bed = bed.crash();
        let log = bed.log();
        let end = log.end_offset();
        assert!((50..=64).contains(&end) && end % 2 == 0, "{end}");
        assert_eq!(read_all(&log, 300, Bound::LogEnd).len() as i64, end);
        assert_eq!(append(&log, &batch(1, NOW)).base_offset, end);
    }
}

#[test]
fn flush_messages_waits_and_flush_ms_is_due_at_its_time() {
    let (bed, _faults) = Bed::faulty();
    let log = bed.log();
    log.set_config(LogConfig {
        flush_messages: 3,
        flush_ms: 500,
        ..small()
    });
    append(&log, &batch(2, NOW));
    assert_eq!(log.recovery_point(), 0);
    assert_eq!(bed.store.next_deadline(), Some(NOW + 500));
    append(&log, &batch(2, NOW));
    assert_eq!(log.recovery_point(), 4);
    append(&log, &batch(1, NOW + 600));
    bed.store.tick(NOW + 400);
    assert_eq!(log.recovery_point(), 4);
    bed.store.tick(NOW + 1100);
    // The flusher is another thread: asking again waits for it.
    log.flush().unwrap();
    assert_eq!(log.recovery_point(), 5);
}

#[test]
fn many_threads_share_the_syncs() {
    let (bed, _faults) = Bed::faulty();
    let log = bed.log();
    log.set_config(LogConfig {
        flush_messages: 1,
        segment_bytes: 1 << 20,
        ..small()
    });
    let write = |log: &Log| {
        for _ in 0..50 {
            let info = append(log, &batch(1, NOW));
            assert!(log.recovery_point() > info.last_offset);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| write(&log));
        }
    });
    assert_eq!((log.end_offset(), log.recovery_point()), (200, 200));
}
