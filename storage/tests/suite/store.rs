//! The data directory: lock, identity, making and deleting logs, memory.

use ottla_storage::{AppendError, Bound, OpenError, StorageError, Store};

use crate::bed::{
    Bed, Kind, NOW, TOPIC_ID, append, batch, on_disks, on_every_kind, read_all, small, try_append,
};

fn logs_are_made_found_and_deleted(kind: Kind) {
    let bed = Bed::new(kind);
    let store = &bed.store;
    for partition in [0, 1] {
        let log = store
            .create_log("a-b", partition, TOPIC_ID, small(), NOW)
            .unwrap();
        assert_eq!(log.topic_id(), TOPIC_ID);
    }
    assert!(matches!(
        store.create_log("a-b", 0, TOPIC_ID, small(), NOW),
        Err(StorageError::Exists(_))
    ));
    assert!(matches!(
        store.create_log("../x", 0, TOPIC_ID, small(), NOW),
        Err(StorageError::BadName(_))
    ));
    let log = store.log("a-b", 1).unwrap();
    append(&log, &batch(1, NOW));
    store.delete_log("a-b", 1, NOW).unwrap();
    assert!(matches!(
        store.delete_log("a-b", 1, NOW),
        Err(StorageError::NotFound(_))
    ));
    let names: Vec<String> = store.logs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a-b-0"]);
    assert!(matches!(
        try_append(&log, &batch(1, NOW)),
        Err(AppendError::Storage(StorageError::Closed(_)))
    ));
    assert_eq!(read_all(&log, 100, Bound::LogEnd).len(), 1);
    let again = store.create_log("a-b", 1, [9; 16], small(), NOW).unwrap();
    assert_eq!(again.end_offset(), 0);
}

fn a_closed_store_takes_nothing(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &batch(1, NOW));
    bed.store.close().unwrap();
    bed.store.close().unwrap();
    assert!(try_append(&log, &batch(1, NOW)).is_err());
    assert!(
        bed.store
            .create_log("b", 0, TOPIC_ID, small(), NOW)
            .is_err()
    );
}

on_every_kind! { logs_are_made_found_and_deleted, a_closed_store_takes_nothing }

fn a_directory_in_use_is_refused_until_its_owner_goes(kind: Kind) {
    let bed = Bed::new(kind);
    let error = Store::open(bed.options.clone(), NOW).unwrap_err();
    assert!(matches!(error, OpenError::InUse(_)));
    assert!(error.to_string().contains("in use by another process"));
    let options = bed.options.clone();
    let Bed { store, .. } = &bed;
    store.close().unwrap();
    let cluster_id = store.cluster_id();
    // A closed store that somebody still holds does not hold the directory.
    Store::open(options.clone(), NOW).unwrap().close().unwrap();
    let bed = bed.restart();
    assert_eq!(bed.store.cluster_id(), cluster_id);
    assert_eq!(options.data_dir, bed.options.data_dir);
}

fn everything_is_as_it_was_after_a_restart(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..50 {
        append(&log, &batch(3, NOW + i));
    }
    bed.store
        .create_log("empty", 3, [1; 16], small(), NOW)
        .unwrap();
    let (bounds, records) = (log.bounds(), read_all(&log, 300, Bound::LogEnd));
    let times: Vec<_> = (0..60).map(|i| log.offset_for_timestamp(NOW + i)).collect();
    let newest = log.max_timestamp();
    drop(log);
    let bed = bed.restart();
    assert!(!bed.data_dir().join(".kafka_cleanshutdown").exists());
    let log = bed.log();
    assert_eq!((log.bounds(), log.topic_id()), (bounds, TOPIC_ID));
    assert_eq!(read_all(&log, 300, Bound::LogEnd), records);
    let again: Vec<_> = (0..60).map(|i| log.offset_for_timestamp(NOW + i)).collect();
    assert_eq!(again, times);
    assert_eq!(log.max_timestamp(), newest);
    assert_eq!(append(&log, &batch(1, NOW)).base_offset, 150);
    let empty = bed.store.log("empty", 3).unwrap();
    assert_eq!((empty.topic_id(), empty.end_offset()), ([1; 16], 0));
    drop((log, empty));
    // Twice: what a restart wrote is good enough for another.
    let bed = bed.restart();
    assert_eq!(bed.log().end_offset(), 151);
}

fn deleted_logs_leave_the_disk_after_the_delay_or_a_restart(kind: Kind) {
    let bed = Bed::new(kind);
    let entries = |bed: &Bed| {
        std::fs::read_dir(bed.data_dir())
            .unwrap()
            .filter(|e| {
                e.as_ref()
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .ends_with("-delete")
            })
            .count()
    };
    append(&bed.log(), &batch(1, NOW));
    bed.store.delete_log("t", 0, NOW).unwrap();
    bed.store.tick(NOW + 59_999);
    assert_eq!(entries(&bed), 1);
    bed.store.tick(NOW + 60_000);
    assert_eq!(entries(&bed), 0);
    append(&bed.log(), &batch(1, NOW));
    bed.store.delete_log("t", 0, NOW).unwrap();
    let bed = bed.crash();
    assert!(bed.store.log("t", 0).is_none());
    bed.store.tick(NOW);
    assert_eq!(entries(&bed), 0);
}

mod disks {
    use super::{
        a_directory_in_use_is_refused_until_its_owner_goes,
        deleted_logs_leave_the_disk_after_the_delay_or_a_restart,
        everything_is_as_it_was_after_a_restart, on_disks,
    };
    on_disks! {
        a_directory_in_use_is_refused_until_its_owner_goes,
        everything_is_as_it_was_after_a_restart,
        deleted_logs_leave_the_disk_after_the_delay_or_a_restart,
    }
}

#[test]
fn full_memory_refuses_an_append_and_room_lets_it_in_again() {
    for kind in [Kind::Memory, Kind::PortableMemory] {
        let bed = Bed::with(kind, |options| options.memory_max_bytes = 16 * 4096);
        let other = bed
            .store
            .create_log("o", 0, TOPIC_ID, small(), NOW)
            .unwrap();
        let log = bed.log();
        append(&other, &batch(1, NOW));
        let mut appended = 0;
        let error = loop {
            match try_append(&log, &batch(3, NOW)) {
                Ok(_) => appended += 3,
                Err(error) => break error,
            }
        };
        assert!(matches!(
            error,
            AppendError::Storage(StorageError::MemoryFull { max: 65536 })
        ));
        assert!(bed.store.memory_used() <= 65536);
        assert!(!log.is_failed());
        assert_eq!(read_all(&log, 500, Bound::LogEnd).len() as i64, appended);
        log.delete_records_before(appended / 2, NOW).unwrap();
        assert_eq!(append(&log, &batch(1, NOW)).base_offset, appended);
        bed.store.delete_log("t", 0, NOW).unwrap();
        drop(log);
        assert_eq!(bed.store.memory_used(), 4096);
    }
}
