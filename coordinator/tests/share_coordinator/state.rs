//! The share coordinator's calls: fencing, snapshots, pruning.

use ottla_coordinator::share::state::{
    ShareKey, ShareSnapshotValue, ShareState, ShareStateRecord, ShareUpdateValue, StateError,
};
use ottla_coordinator::share::types::StateWrite;
use ottla_coordinator::types::{TopicPartition, Uuid};

use crate::merging::{Log, batch, key, write};

const INTERVAL: i64 = 300_000;

fn snapshot(record: &ShareStateRecord) -> &ShareSnapshotValue {
    let ShareStateRecord::Snapshot { value, .. } = record else {
        panic!("a snapshot: {record:?}")
    };
    value
}

fn update(record: &ShareStateRecord) -> &ShareUpdateValue {
    let ShareStateRecord::Update { value, .. } = record else {
        panic!("an update: {record:?}")
    };
    value
}

#[test]
fn initialising_writes_a_snapshot_without_batches() {
    let state = ShareState::default();
    let record = state.initialize(77, &key(0), 2, -1).unwrap();
    let expected = ShareSnapshotValue {
        snapshot_epoch: 0,
        state_epoch: 2,
        leader_epoch: 0,
        start_offset: -1,
        delivery_complete_count: -1,
        create_timestamp: 77,
        write_timestamp: 77,
        state_batches: Vec::new(),
    };
    assert_eq!(snapshot(&record), &expected);
    let known = state.initialize(77, &key(0), 2, 0).unwrap();
    assert_eq!(snapshot(&known).delivery_complete_count, 0);
}

#[test]
fn altering_raises_the_state_epoch_and_drops_the_batches() {
    let mut log = Log::initialized(0);
    log.write(0, &[batch(0, 4, 2, 1)]);
    assert_eq!(
        log.state.initialize(0, &key(0), 1, 9),
        Err(StateError::FencedStateEpoch)
    );
    let record = log.state.initialize(0, &key(0), 2, 8).unwrap();
    log.append(record);
    let record = log.state.initialize(0, &key(0), 7, 9).unwrap();
    assert_eq!(snapshot(&record).snapshot_epoch, 2);
    log.append(record);
    let summary = log.state.summary(&key(0));
    assert_eq!((summary.state_epoch, summary.leader_epoch), (7, 0));
    assert_eq!(
        (summary.start_offset, summary.delivery_complete_count),
        (9, 0)
    );
    assert!(log.state.peek(&key(0)).unwrap().batches.is_empty());
    let late = log.state.write(0, &key(0), 2, 9, &write(0, &[]));
    assert_eq!(late, Err(StateError::FencedStateEpoch));
}

#[test]
fn state_that_is_there_is_not_initialised_again() {
    let mut log = Log::new(500);
    let record = log.state.ensure(0, &key(0), 2, -1).unwrap().unwrap();
    assert_eq!(
        Ok(&record),
        log.state.initialize(0, &key(0), 2, -1).as_ref()
    );
    log.append(record);
    log.write(3, &[batch(3, 4, 2, 1)]);
    assert_eq!(log.state.ensure(0, &key(0), 9, -1), Ok(None));
}

#[test]
fn altering_always_fences_whoever_has_loaded_the_old_state() {
    let mut log = Log::initialized(0);
    for (asked, expected) in [(1, 3), (4, 4), (4, 5), (9, 9)] {
        let record = log.state.alter(0, &key(0), asked, 7).unwrap();
        assert_eq!(snapshot(&record).state_epoch, expected);
        log.append(record);
        let late = log.state.write(0, &key(0), expected - 1, 9, &write(0, &[]));
        assert_eq!(late, Err(StateError::FencedStateEpoch));
    }
    let fresh = log.state.alter(0, &key(1), 1, -5).unwrap();
    assert_eq!(
        (snapshot(&fresh).state_epoch, snapshot(&fresh).start_offset),
        (1, -5)
    );
}

#[test]
fn nothing_is_read_or_written_before_it_was_initialised() {
    let state = ShareState::default();
    let text = |error: StateError| error.to_string();
    assert_eq!(
        state.read(0, &key(0), 0).map_err(text).map(drop),
        Err("Read operation on uninitialized share partition not allowed.".to_owned())
    );
    assert_eq!(
        state.write(0, &key(0), 0, 0, &write(0, &[])).map_err(text),
        Err("Write operation on uninitialized share partition not allowed.".to_owned())
    );
    let summary = state.summary(&key(0));
    assert_eq!((summary.state_epoch, summary.leader_epoch), (0, 0));
    assert_eq!(
        (summary.start_offset, summary.delivery_complete_count),
        (-1, -1)
    );
    assert_eq!(state.delete(&key(0)), Ok(None));
}

#[test]
fn negative_epochs_and_partitions_are_refused() {
    let log = Log::initialized(0);
    let none = write(0, &[]);
    let text = |error: StateError| error.to_string();
    let leader = Err("The leader epoch cannot be a negative number.".to_owned());
    let epoch = Err("The state epoch cannot be a negative number.".to_owned());
    let partition = Err("The partition id cannot be a negative number.".to_owned());
    let state = &log.state;
    assert_eq!(state.read(0, &key(0), -1).map_err(text).map(drop), leader);
    assert_eq!(
        state
            .write(0, &key(0), 2, -1, &none)
            .map_err(text)
            .map(drop),
        leader
    );
    assert_eq!(
        state
            .write(0, &key(0), -1, 0, &none)
            .map_err(text)
            .map(drop),
        epoch
    );
    assert_eq!(
        state.initialize(0, &key(0), -1, 0).map_err(text).map(drop),
        epoch
    );
    assert_eq!(
        state.initialize(0, &key(-1), 0, 0).map_err(text).map(drop),
        partition
    );
    assert_eq!(
        state.read(0, &key(-1), 0).map_err(text).map(drop),
        partition
    );
    assert_eq!(
        state
            .write(0, &key(-1), 0, 0, &none)
            .map_err(text)
            .map(drop),
        partition
    );
    assert_eq!(state.delete(&key(-1)).map_err(text).map(drop), partition);
    let backwards = write(0, &[batch(5, 4, 2, 1)]);
    assert!(matches!(
        state.write(0, &key(0), 2, 0, &backwards),
        Err(StateError::InvalidRequest(_))
    ));
}

#[test]
fn reading_with_a_newer_leader_epoch_fences_older_leaders() {
    let mut log = Log::initialized(10);
    let read = log.state.read(0, &key(0), 0).unwrap();
    assert_eq!(read.record, None);
    let read = log.state.read(0, &key(0), 5).unwrap();
    assert_eq!(read.state.leader_epoch, 5);
    let record = read.record.unwrap();
    let expected = ShareUpdateValue {
        snapshot_epoch: 0,
        leader_epoch: 5,
        start_offset: 10,
        delivery_complete_count: 0,
        state_batches: Vec::new(),
    };
    assert_eq!(update(&record), &expected);
    log.append(record);
    assert_eq!(
        log.state.read(0, &key(0), 3).map(drop),
        Err(StateError::FencedLeaderEpoch)
    );
    let late = log.state.write(0, &key(0), 2, 4, &write(10, &[]));
    assert_eq!(late, Err(StateError::FencedLeaderEpoch));
    assert_eq!(log.state.read(0, &key(0), 5).unwrap().record, None);
    assert_eq!(log.state.summary(&key(0)).leader_epoch, 5);
}

#[test]
fn a_write_carries_the_changed_batches_and_never_moves_the_start_back() {
    let mut log = Log::initialized(-1);
    let first = StateWrite {
        start_offset: 4,
        delivery_complete_count: 3,
        batches: vec![batch(4, 6, 2, 1)],
    };
    let record = log.state.write(0, &key(0), 2, 1, &first).unwrap();
    let expected = ShareUpdateValue {
        snapshot_epoch: 0,
        leader_epoch: 1,
        start_offset: 4,
        delivery_complete_count: 3,
        state_batches: vec![batch(4, 6, 2, 1)],
    };
    assert_eq!(update(&record), &expected);
    log.append(record);
    let record = log.state.write(0, &key(0), 2, 1, &write(2, &[])).unwrap();
    assert_eq!(update(&record).start_offset, 4);
    let ahead = log.state.write(0, &key(0), 3, 1, &write(5, &[])).unwrap();
    log.append(ahead);
    let state = log.state.peek(&key(0)).unwrap();
    assert_eq!((state.state_epoch, state.start_offset), (2, 5));
    assert_eq!(
        state.batches,
        [batch(5, 6, 2, 1)],
        "read back without what is below the start"
    );
}

#[test]
fn the_write_after_the_last_update_is_a_snapshot_of_everything() {
    let mut log = Log::new(2);
    let record = log.state.initialize(1, &key(0), 2, 0).unwrap();
    log.append(record);
    for offset in 0..2 {
        log.write(0, &[batch(offset * 2, offset * 2, 2, 1)]);
    }
    let record = log
        .state
        .write(9, &key(0), 2, 6, &write(1, &[batch(3, 3, 2, 1)]))
        .unwrap();
    let expected = ShareSnapshotValue {
        snapshot_epoch: 1,
        state_epoch: 2,
        leader_epoch: 6,
        start_offset: 1,
        delivery_complete_count: 0,
        create_timestamp: 9,
        write_timestamp: 9,
        state_batches: vec![batch(2, 3, 2, 1)],
    };
    assert_eq!(snapshot(&record), &expected);
    log.append(record);
    let next = log.state.write(9, &key(0), 2, 6, &write(1, &[])).unwrap();
    assert_eq!(update(&next).snapshot_epoch, 1);
    let mut every = ShareState::new(0);
    every.apply(&every.initialize(0, &key(0), 2, 0).unwrap(), 0);
    snapshot(&every.write(0, &key(0), 2, 0, &write(0, &[])).unwrap());
}

#[test]
fn deleting_leaves_a_clean_slate() {
    let mut log = Log::initialized(5);
    let record = log.state.delete(&key(0)).unwrap().unwrap();
    assert_eq!(record, ShareStateRecord::Tombstone { key: key(0) });
    log.append(record);
    assert!(log.state.is_empty());
    assert_eq!(log.state.delete(&key(0)), Ok(None));
    let record = log.state.initialize(0, &key(0), 1, 3).unwrap();
    assert_eq!(snapshot(&record).snapshot_epoch, 0);
}

#[test]
fn the_states_of_deleted_topics_go_in_every_group() {
    let mut log = Log::new(500);
    let other = TopicPartition {
        topic_id: Uuid([2; 16]),
        partition: 0,
    };
    let keys = [
        key(0),
        key(1),
        ShareKey {
            group_id: "h".into(),
            ..key(0)
        },
        ShareKey {
            group_id: "g".into(),
            partition: other,
        },
    ];
    for key in &keys {
        let record = log.state.initialize(0, key, 1, -1).unwrap();
        log.append(record);
    }
    let gone = log.state.topics_deleted(&[Uuid([1; 16])].into());
    let gone_keys: Vec<_> = gone.iter().map(ShareStateRecord::key).collect();
    assert_eq!(gone_keys, [&keys[0], &keys[1], &keys[2]]);
    for record in gone {
        log.append(record);
    }
    assert_eq!(log.state.keys().collect::<Vec<_>>(), [&keys[3]]);
}

#[test]
fn an_update_whose_snapshot_was_pruned_is_left_aside() {
    let mut log = Log::initialized(0);
    let record = log
        .state
        .write(0, &key(0), 2, 1, &write(0, &[batch(0, 1, 2, 1)]))
        .unwrap();
    let mut replayed = ShareState::default();
    replayed.apply(&record, 17);
    assert!(replayed.is_empty());
    assert_eq!(replayed.prune_offset(), 18);
    log.append(record);
}

#[test]
fn the_log_may_be_pruned_up_to_the_oldest_live_snapshot() {
    let mut log = Log::new(3);
    assert_eq!(log.state.prune_offset(), 0);
    for partition in 0..2 {
        let record = log.state.initialize(0, &key(partition), 2, 0).unwrap();
        log.append(record);
    }
    assert_eq!(log.state.prune_offset(), 0);
    for _ in 0..4 {
        log.write(0, &[]);
    }
    assert_eq!(log.state.prune_offset(), 1, "partition 1 holds it back");
    let record = log.state.delete(&key(1)).unwrap().unwrap();
    log.append(record);
    assert_eq!(log.state.prune_offset(), 5);
    let record = log.state.delete(&key(0)).unwrap().unwrap();
    log.append(record);
    assert_eq!(log.state.prune_offset(), 8, "nothing is live");
}

#[test]
fn a_cold_partition_does_not_keep_a_busy_log_from_being_pruned() {
    let mut log = Log::new(500);
    for partition in 0..3 {
        let record = log.state.initialize(0, &key(partition), 2, 0).unwrap();
        log.append(record);
    }
    let mut now = 0;
    let mut longest = 0;
    for count in 0..20_000_i64 {
        now += 1_000;
        let done = [batch(count, count, 2, 1)];
        let record = log
            .state
            .write(now, &key(0), 2, 1, &write(count, &done))
            .unwrap();
        log.append(record);
        for record in log.state.cold_snapshots(now, INTERVAL) {
            log.append(record);
        }
        longest = longest.max(log.records.len() as i64 - log.state.prune_offset());
    }
    // At most one interval's writes, or one snapshot's updates, and the snapshots between them.
    assert!(longest < 520, "{longest} records are kept");
    let replayed = log.records.len() - usize::try_from(log.state.prune_offset()).unwrap();
    assert!(replayed < 520);
}

#[test]
fn a_log_at_rest_stays_at_rest() {
    let mut log = Log::new(500);
    for partition in 0..10 {
        let record = log.state.initialize(0, &key(partition), 2, 0).unwrap();
        log.append(record);
    }
    assert!(log.state.cold_snapshots(INTERVAL, INTERVAL).is_empty());
    log.write(0, &[]);
    for round in 1..20 {
        for record in log.state.cold_snapshots(round * INTERVAL, INTERVAL) {
            log.append(record);
        }
    }
    assert!(log.records.len() <= 22, "{} records", log.records.len());
}

#[test]
fn a_cold_snapshot_keeps_the_state_and_its_age() {
    let mut log = Log::new(500);
    for partition in 0..2 {
        let record = log.state.initialize(5, &key(partition), 2, 0).unwrap();
        log.append(record);
    }
    let done = write(0, &[batch(0, 3, 2, 1)]);
    let record = log.state.write(6, &key(1), 2, 1, &done).unwrap();
    log.append(record);
    for _ in 0..5 {
        log.write(0, &[]);
    }
    let before = log.state.peek(&key(1));
    let cold = log.state.cold_snapshots(5 + INTERVAL, INTERVAL);
    let value = snapshot(cold.iter().find(|record| *record.key() == key(1)).unwrap());
    assert_eq!(
        (value.create_timestamp, value.write_timestamp),
        (5, 5 + INTERVAL)
    );
    assert_eq!(
        (value.snapshot_epoch, value.state_epoch, value.leader_epoch),
        (1, 2, 1)
    );
    for record in cold {
        log.append(record);
    }
    assert_eq!(log.state.peek(&key(1)), before);
    assert!(log.state.cold_snapshots(5 + INTERVAL, INTERVAL).is_empty());
}
