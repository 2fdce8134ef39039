//! Aborted records, markers, and what is not decided.

use ottla_protocol::batch::BatchOptions;
use ottla_storage::Bound;

use super::{batches, bed, by, clean, end_txn, put, put_as, roll, told};
use crate::bed::{Kind, NOW, on_every_kind};

fn markers(log: &ottla_storage::Log) -> Vec<(i64, i32, Option<i64>)> {
    batches(log)
        .iter()
        .filter(|(header, _)| header.is_control())
        .map(|(header, _)| (header.base_offset, header.count, header.delete_horizon()))
        .collect()
}

fn nothing_from_the_first_undecided_transaction_on_is_compacted(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put(&log, "a", "1");
    put(&log, "a", "2");
    roll(&log);
    put_as(&log, &[("a", Some("maybe"))], by(5, 0, true));
    put(&log, "b", "1");
    put(&log, "b", "2");
    roll(&log);
    clean(&bed, NOW);
    let values: Vec<_> = told(&log).into_iter().map(|r| r.2.unwrap()).collect();
    assert_eq!(values, ["2", "maybe", "1", "2"]);
    end_txn(&log, 5, false);
    roll(&log);
    clean(&bed, NOW);
    let values: Vec<_> = told(&log).into_iter().map(|r| r.2.unwrap()).collect();
    assert_eq!(values, ["2", "2"], "what was aborted replaces nothing");
}

fn aborted_records_go_first_then_their_marker_after_its_horizon(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put(&log, "a", "1");
    put_as(
        &log,
        &[("a", Some("no")), ("b", Some("no"))],
        by(5, 0, true),
    );
    let marker = end_txn(&log, 5, false);
    // The producer goes on, so that nothing must be kept for its sake.
    put_as(&log, &[("c", Some("1"))], by(5, 2, true));
    end_txn(&log, 5, true);
    roll(&log);
    clean(&bed, NOW);
    assert_eq!(told(&log).len(), 2);
    assert_eq!(markers(&log)[0], (marker, 1, None));
    let slice = log.read(0, 10_000, true, Bound::LastStable).unwrap();
    assert_eq!(
        slice.aborted.len(),
        1,
        "the entry stays as long as the marker"
    );
    // The second pass finds no records of it any more.
    put_as(&log, &[("d", Some("1"))], by(6, 0, false));
    roll(&log);
    clean(&bed, NOW + 10);
    assert_eq!(markers(&log)[0], (marker, 1, Some(NOW + 1010)));
    let slice = log.read(0, 10_000, true, Bound::LastStable).unwrap();
    assert_eq!(slice.aborted.len(), 0);
    roll(&log);
    clean(&bed, NOW + 1009);
    assert_eq!(markers(&log).len(), 2);
    roll(&log);
    clean(&bed, NOW + 1010);
    assert_eq!(markers(&log).len(), 1);
    assert_eq!(log.last_stable_offset(), log.end_offset());
}

fn a_commit_marker_stays_while_a_record_of_it_does(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put_as(&log, &[("a", Some("1"))], by(5, 0, true));
    end_txn(&log, 5, true);
    for now in [NOW, NOW + 5000, NOW + 10_000] {
        roll(&log);
        clean(&bed, now);
        assert_eq!(markers(&log), [(1, 1, None)]);
        assert_eq!(told(&log).len(), 1);
    }
    put(&log, "a", "2");
    roll(&log);
    clean(&bed, NOW + 20_000);
    // The record is gone; its batch stays empty, for the producer, and counts.
    assert_eq!(batches(&log)[0].0.count, 0);
    assert_eq!(markers(&log), [(1, 1, None)]);
}

fn a_producer_that_is_known_by_its_marker_alone_keeps_an_empty_one(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put_as(&log, &[("a", Some("no"))], by(5, 0, true));
    // The coordinator fences the producer: a new epoch ends the transaction.
    let marker = ottla_protocol::batch::end_txn_marker(5, 1, false, 0, NOW).unwrap();
    let opts = ottla_storage::AppendOptions {
        origin: ottla_storage::Origin::Coordinator,
        ..crate::bed::options()
    };
    crate::bed::try_append_as(&log, &marker, opts).unwrap();
    put_as(&log, &[("b", Some("1"))], BatchOptions::default());
    for now in [NOW, NOW + 1, NOW + 5000] {
        roll(&log);
        clean(&bed, now);
    }
    assert_eq!(markers(&log), [(1, 0, None)]);
    assert_eq!(told(&log).len(), 1);
    assert_eq!(log.last_stable_offset(), log.end_offset());
}

on_every_kind! {
    nothing_from_the_first_undecided_transaction_on_is_compacted,
    aborted_records_go_first_then_their_marker_after_its_horizon,
    a_commit_marker_stays_while_a_record_of_it_does,
    a_producer_that_is_known_by_its_marker_alone_keeps_an_empty_one,
}
