//! Open and ended transactions.

use bytes::Bytes;
use ottla_protocol::batch::{BatchOptions, end_txn_marker};
use ottla_storage::{AbortedTxn, AppendError, AppendOptions, Bound, Log, Origin};

use crate::bed::{
    Bed, Kind, NOW, append, batch, built, on_disks, on_every_kind, options, read_all, try_append_as,
};

fn in_txn(producer_id: i64, sequence: i32, count: usize) -> Bytes {
    let options = BatchOptions {
        producer_id,
        producer_epoch: 0,
        base_sequence: sequence,
        transactional: true,
        ..BatchOptions::default()
    };
    built(count, NOW, options)
}

fn end(
    log: &Log,
    producer_id: i64,
    commit: bool,
    coordinator_epoch: i32,
) -> Result<i64, AppendError> {
    let marker = end_txn_marker(producer_id, 0, commit, coordinator_epoch, NOW).unwrap();
    let opts = AppendOptions {
        origin: Origin::Coordinator,
        ..options()
    };
    try_append_as(log, &marker, opts).map(|info| info.base_offset)
}

fn aborted(log: &Log, from: i64, max_bytes: usize) -> Vec<(i64, i64)> {
    log.read(from, max_bytes, true, Bound::LastStable)
        .unwrap()
        .aborted
        .iter()
        .map(
            |&AbortedTxn {
                 producer_id,
                 first_offset,
             }| (producer_id, first_offset),
        )
        .collect()
}

fn the_stable_offset_stops_at_the_oldest_open_transaction(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &batch(2, NOW));
    append(&log, &in_txn(1, 0, 1));
    append(&log, &in_txn(2, 0, 1));
    append(&log, &batch(1, NOW));
    assert_eq!((log.last_stable_offset(), log.end_offset()), (2, 5));
    assert_eq!(read_all(&log, 1000, Bound::LastStable).len(), 2);
    assert_eq!(end(&log, 2, true, 0).unwrap(), 5);
    assert_eq!(log.last_stable_offset(), 2);
    end(&log, 1, true, 0).unwrap();
    assert_eq!(log.last_stable_offset(), 7);
    assert_eq!(aborted(&log, 0, 10_000), []);
}

fn aborted_transactions_are_listed_where_they_matter_by_first_offset(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &in_txn(9, 0, 2)); // 0-1
    append(&log, &in_txn(1, 0, 2)); // 2-3
    end(&log, 1, false, 0).unwrap(); // 4
    append(&log, &in_txn(1, 2, 1)); // 5
    end(&log, 1, true, 0).unwrap(); // 6
    // 9 is open: nothing is readable yet, its records and their fate are unknown.
    assert_eq!(aborted(&log, 0, 10_000), []);
    end(&log, 9, false, 0).unwrap(); // 7
    for _ in 0..20 {
        append(&log, &batch(2, NOW));
    }
    assert!(log.segment_count() > 2);
    assert_eq!(aborted(&log, 0, 10_000), [(9, 0), (1, 2)]);
    assert_eq!(aborted(&log, 5, 1), [(9, 0)]);
    assert_eq!(aborted(&log, 0, 1), [(9, 0)]);
    assert_eq!(aborted(&log, 20, 10_000), []);
    let uncommitted = log.read(0, 10_000, true, Bound::LogEnd).unwrap();
    assert_eq!(uncommitted.aborted, []);
}

/// The marker lies behind another transaction that is still open; the records before it count.
fn a_transaction_aborted_behind_the_stable_offset_is_listed(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &in_txn(1, 0, 1));
    append(&log, &in_txn(2, 0, 1));
    end(&log, 1, false, 0).unwrap();
    assert_eq!(log.last_stable_offset(), 1);
    assert_eq!(aborted(&log, 0, 10_000), [(1, 0)]);
}

fn a_replaced_coordinator_cannot_end_transactions(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &in_txn(1, 0, 1));
    end(&log, 1, true, 4).unwrap();
    let error = end(&log, 1, false, 3).unwrap_err();
    assert!(matches!(
        error,
        AppendError::CoordinatorFenced {
            epoch: 3,
            current: 4,
            ..
        }
    ));
}

fn trimming_over_an_open_transaction_moves_the_stable_offset(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &in_txn(1, 0, 4));
    append(&log, &batch(4, NOW));
    log.delete_records_before(6, NOW).unwrap();
    assert_eq!(log.last_stable_offset(), 6);
    append(&log, &batch(1, NOW));
    assert_eq!(log.last_stable_offset(), 6);
    end(&log, 1, false, 0).unwrap();
    assert_eq!(log.last_stable_offset(), log.end_offset());
}

on_every_kind! {
    the_stable_offset_stops_at_the_oldest_open_transaction,
    aborted_transactions_are_listed_where_they_matter_by_first_offset,
    a_transaction_aborted_behind_the_stable_offset_is_listed,
    a_replaced_coordinator_cannot_end_transactions,
    trimming_over_an_open_transaction_moves_the_stable_offset,
}

fn transactions_survive_a_stop_and_crashes(kind: Kind) {
    let mut bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..12 {
        append(&log, &in_txn(1, i, 1));
        append(&log, &in_txn(2, i, 1));
        end(&log, 1, i % 2 == 0, 0).unwrap();
    }
    let expected = aborted(&log, 0, 100_000);
    end(&log, 2, false, 0).unwrap();
    append(&log, &in_txn(3, 0, 1));
    let (bounds, producers) = (log.bounds(), log.producers());
    let all = |log: &Log| {
        let mut found = Vec::new();
        let mut from = 0;
        while from < log.last_stable_offset() {
            let slice = log.read(from, 300, true, Bound::LastStable).unwrap();
            found.extend(slice.aborted);
            from = slice.next_offset;
        }
        found.sort_by_key(|txn| txn.first_offset);
        found.dedup();
        found
    };
    let before = all(&log);
    assert_eq!(before.len(), 7);
    assert!(expected.is_empty());
    drop(log);
    for round in 0..4 {
        bed = match round {
            0 => bed.crash(),
            1 => bed.power_off(),
            2 => bed.restart(),
            _ => bed.crash(),
        };
        let log = bed.log();
        assert_eq!(log.bounds(), bounds, "round {round}");
        assert_eq!(log.producers(), producers, "round {round}");
        assert_eq!(all(&log), before, "round {round}");
    }
}

mod restarts {
    use super::{on_disks, transactions_survive_a_stop_and_crashes};
    on_disks! { transactions_survive_a_stop_and_crashes }
}
