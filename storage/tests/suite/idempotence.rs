//! Producers that send again.

use ottla_storage::{AppendError, AppendOptions, Origin};

use crate::bed::{
    Bed, Kind, append, on_disks, on_every_kind, options, produced, try_append, try_append_as,
};

fn a_batch_that_comes_again_gets_its_first_offsets(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    let mut calls = 0;
    for i in 0..5 {
        append(&log, &produced(1, 0, i * 2, 2));
        append(&log, &produced(2, 0, i, 1));
    }
    for i in 0..5 {
        let info = append(&log, &produced(1, 0, i * 2, 2));
        assert!(info.duplicate);
        assert_eq!(
            (info.base_offset, info.last_offset),
            (3 * i64::from(i), 3 * i64::from(i) + 1)
        );
        calls += 1;
    }
    assert_eq!(calls, 5);
    assert_eq!(log.end_offset(), 15);
}

fn a_missing_sequence_number_leaves_the_log_untouched(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &produced(1, 0, 0, 2));
    let error = try_append(&log, &produced(1, 0, 3, 1)).unwrap_err();
    assert!(matches!(
        error,
        AppendError::OutOfOrderSequence {
            first: 3,
            last: 1,
            ..
        }
    ));
    assert_eq!(log.end_offset(), 2);
    assert_eq!(append(&log, &produced(1, 0, 2, 1)).base_offset, 2);
}

fn an_old_epoch_is_fenced_but_a_replica_is_trusted(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &produced(1, 2, 0, 1));
    let error = try_append(&log, &produced(1, 1, 0, 1)).unwrap_err();
    assert!(matches!(
        error,
        AppendError::InvalidProducerEpoch {
            epoch: 1,
            current: 2,
            ..
        }
    ));
    let opts = AppendOptions {
        origin: Origin::Coordinator,
        ..options()
    };
    // Sequence numbers are a client's business.
    try_append_as(&log, &produced(1, 2, 7, 1), opts).unwrap();
    assert_eq!(log.producers()[0].last_sequence, 7);
}

on_every_kind! {
    a_batch_that_comes_again_gets_its_first_offsets,
    a_missing_sequence_number_leaves_the_log_untouched,
    an_old_epoch_is_fenced_but_a_replica_is_trusted,
}

fn producers_are_remembered_over_a_stop_and_a_crash(kind: Kind) {
    let mut bed = Bed::new(kind);
    for i in 0..40 {
        append(&bed.log(), &produced(1, 0, i, 1));
    }
    append(&bed.log(), &produced(2, 5, 0, 3));
    let producers = bed.log().producers();
    for round in 0..3 {
        bed = match round {
            0 => bed.crash(),
            1 => bed.power_off(),
            _ => bed.restart(),
        };
        let log = bed.log();
        assert_eq!(log.producers(), producers, "round {round}");
        let again = append(&log, &produced(2, 5, 0, 3));
        assert!(again.duplicate);
        assert_eq!(again.base_offset, 40);
        assert!(try_append(&log, &produced(1, 0, 41, 1)).is_err());
    }
}

mod restarts {
    use super::{on_disks, producers_are_remembered_over_a_stop_and_a_crash};
    on_disks! { producers_are_remembered_over_a_stop_and_a_crash }
}
