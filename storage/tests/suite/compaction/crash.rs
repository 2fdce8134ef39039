//! A process that dies, and a disk that forgets, at every single step of a pass.

use std::collections::BTreeMap;

use ottla_protocol::batch::BatchOptions;
use ottla_storage::Faults;

use super::{batches, by, clean, compacted, delete, end_txn, last_values, put, put_as, roll, rows};
use crate::bed::{Bed, NOW};

/// A log of several segments with everything in it that compaction treats in its own way.
fn filled() -> (Bed, std::sync::Arc<Faults>, BTreeMap<String, String>) {
    let (bed, faults) = Bed::faulty();
    let log = bed.log();
    log.set_config(compacted());
    put_as(&log, &[("p", Some("1"))], by(7, 0, false));
    put_as(&log, &[("t", Some("yes"))], by(8, 0, true));
    put_as(&log, &[("u", Some("no"))], by(9, 0, true));
    end_txn(&log, 9, false);
    end_txn(&log, 8, true);
    put_as(&log, &[("p", Some("2"))], BatchOptions::default());
    for i in 0..25 {
        put(&log, &format!("k{}", i % 4), &format!("{i}"));
    }
    delete(&log, "k3");
    roll(&log);
    put(&log, "k0", "last");
    let mut expected = last_values(&log);
    expected.remove("u");
    log.flush().unwrap();
    bed.store.checkpoint().unwrap();
    drop(log);
    (bed, faults, expected)
}

fn check(bed: &Bed, expected: &BTreeMap<String, String>, end: i64, what: &str) {
    let log = bed.log();
    log.set_config(compacted());
    assert_eq!(log.end_offset(), end, "{what}");
    let mut values = last_values(&log);
    // Aborted; as long as its record is there the marker and the index say so.
    if values.remove("u").is_some() {
        let slice = log
            .read(0, 10_000, true, ottla_storage::Bound::LastStable)
            .unwrap();
        assert_eq!(slice.aborted.len(), 1, "{what}");
    }
    assert_eq!(&values, expected, "{what}");
    let left: Vec<_> = bed
        .files()
        .into_iter()
        .filter(|name| [".cleaned", ".swap"].iter().any(|end| name.ends_with(end)))
        .collect();
    assert!(left.is_empty(), "{what}: {left:?}");
    // The producer goes on where it was.
    let again = super::keyed(&[("p", Some("1"))], NOW, by(7, 0, false));
    let again = crate::bed::try_append_as(&log, &again, crate::bed::options()).unwrap();
    assert!(again.duplicate, "{what}");
}

/// Kills the process after every number of file operations of one pass.
fn at_every_step(name: &str, forget: Option<u64>) {
    let mut finished = false;
    for step in 0.. {
        let (bed, faults, expected) = filled();
        let end = bed.log().end_offset();
        faults.die_after(Some(step));
        clean(&bed, NOW);
        finished |= faults.operations_left() > Some(0);
        let what = format!("{name}, step {step}");
        // What a reader of the dying process sees is whole, too.
        let mut seen = last_values(&bed.log());
        seen.remove("u");
        assert_eq!(seen, expected, "{what}");
        let bed = match forget {
            None => {
                faults.die_after(None);
                bed.crash()
            }
            Some(keep) => {
                std::fs::remove_file(bed.data_dir().join(".ottla-boot")).unwrap();
                faults.die_after(None);
                faults.crash(keep).unwrap();
                bed.crash()
            }
        };
        check(&bed, &expected, end, &what);
        // And the next pass does what this one could not.
        clean(&bed, NOW);
        check(&bed, &expected, end, &what);
        let log = bed.log();
        assert_eq!(
            rows(&log).iter().filter(|r| r.1 == "p").count(),
            1,
            "{what}"
        );
        assert_eq!(batches(&log)[0].0.count, 0, "{what}");
        drop(log);
        let bed = bed.restart();
        check(&bed, &expected, end, &what);
        if finished {
            assert!(step > 20, "{step} steps are too few");
            return;
        }
    }
}

#[test]
fn a_kill_at_every_step_of_a_pass_loses_nothing() {
    at_every_step("kill", None);
}

#[test]
fn a_power_failure_at_every_step_of_a_pass_loses_nothing() {
    at_every_step("power failure", Some(0));
}

/// Names as a Kafka that died left them, and what its next start makes of them.
#[test]
fn leftovers_of_an_interrupted_swap_are_finished_or_undone() {
    let before = || {
        let (bed, _, expected) = filled();
        let end = bed.log().end_offset();
        (bed, expected, end)
    };
    let name = |bed: &Bed, base: i64, end: &str| bed.log_dir().join(format!("{base:020}{end}"));
    // A `.swap` beside a `.cleaned` of the same or a lower offset was not complete.
    let (bed, expected, end) = before();
    std::fs::write(name(&bed, 0, ".log.swap"), b"nonsense").unwrap();
    std::fs::write(name(&bed, 0, ".index.cleaned"), b"").unwrap();
    let bed = bed.crash();
    check(&bed, &expected, end, "swap beside cleaned");

    // Without it, it counts: the old files in its range go, whatever became of them.
    let (bed, expected, end) = before();
    clean(&bed, NOW);
    let log = std::fs::read(name(&bed, 0, ".log")).unwrap();
    drop(bed);
    for gone in 0..3 {
        let (bed, _, _) = filled();
        std::fs::write(name(&bed, 0, ".log.swap"), &log).unwrap();
        for suffix in [".log", ".index", ".timeindex"].into_iter().take(gone) {
            let path = name(&bed, 0, suffix);
            std::fs::rename(&path, name(&bed, 0, &format!("{suffix}.deleted"))).unwrap();
        }
        let bed = bed.crash();
        check(&bed, &expected, end, "swap alone");
        assert_eq!(batches(&bed.log())[0].0.count, 0);
    }

    // The log has its name again, an index does not yet.
    let (bed, _, _) = filled();
    clean(&bed, NOW);
    std::fs::rename(name(&bed, 0, ".index"), name(&bed, 0, ".index.swap")).unwrap();
    let bed = bed.restart();
    check(&bed, &expected, end, "index swap alone");
}
