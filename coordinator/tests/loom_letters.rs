//! Loom models of the share cell (`src/share/cell.rs`): outcomes of dead letters, and pauses.
//!
//! Each model names a one-line change of the shipped code that makes it fail.

#![cfg(ottla_loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod loom_support;

use loom_support::explore;
use loom_support::world::{ACCEPT, LETTER_MS, LIMITS, REJECT, World, accepted};
use ottla_coordinator::share::letters::{LetterUnit, Written};
use ottla_coordinator::share::types::{CloseReason, OffsetRange, RecordState};

/// Records 0 and 1 were rejected by a at time 0, and their unit was handed out.
fn lettered() -> (World, LetterUnit) {
    let world = World::held(0, 2);
    assert!(accepted(&world.ack_and_drain(0, "a", (0, 1), REJECT)));
    let unit = world.reports.lock().unwrap().letters[0];
    assert_eq!((unit.range, unit.since), (OffsetRange::new(0, 1), 0));
    (world, unit)
}

impl World {
    /// One attempt to write the letters of `unit`: none when they were not wanted any more.
    fn attempt(&self, now: i64, unit: &LetterUnit) -> Option<Result<Written, CloseReason>> {
        if !self.cell.claim_letters(unit.id, unit.range).ok()? {
            return None;
        }
        // Where the append is: other threads may run.
        drop(self.log.lock().unwrap());
        let written = self.cell.letters_written(unit.id, unit.range, now, &LIMITS);
        self.drain(now);
        Some(written)
    }

    fn timed_out(&self) -> i64 {
        let told = self.reports.lock().unwrap();
        told.timed_out.iter().map(|(_, range)| range.len()).sum()
    }
}

/// The append is committed while the time runs out.
///
/// Sabotage: in `Letters::decide`, read `left` without taking from it.
#[test]
fn a_letter_is_written_or_times_out_but_not_both() {
    explore("a_letter_is_written_or_times_out_but_not_both", || {
        let (world, unit) = lettered();
        let writer = world.run(move |w| w.attempt(LETTER_MS - 1, &unit));
        let timer = world.run(|w| {
            w.cell.on_deadline(LETTER_MS, &LIMITS);
            w.drain(LETTER_MS);
        });
        let written = writer.join().unwrap();
        timer.join().unwrap();
        world.drain(LETTER_MS);
        match written {
            None => assert_eq!(world.timed_out(), 2),
            Some(written) => {
                let Written { counted, late } = written.unwrap();
                assert_eq!(counted + world.timed_out(), 2);
                assert_eq!(counted + late, 2);
                assert!(counted == 0 || late == 0);
            }
        }
        assert_eq!(world.cell.start_offset(), 2);
        world.audit(0, true);
    });
}

/// A part of a unit is written while it is given up.
///
/// Sabotage: in `SharePartition::letters_written`, count `range.len()` wherever the unit is known.
#[test]
fn a_letter_is_written_or_given_up_but_not_both() {
    explore("a_letter_is_written_or_given_up_but_not_both", || {
        let (world, unit) = lettered();
        let part = LetterUnit {
            range: OffsetRange::new(0, 0),
            ..unit
        };
        let writer = world.run(move |w| w.attempt(1, &part).map_or(0, |w| w.unwrap().counted));
        let other = world.run(move |w| {
            let given_up = w.cell.letters_given_up(unit.id, part.range, 1, &LIMITS);
            w.drain(1);
            i64::from(given_up.unwrap())
        });
        assert_eq!(writer.join().unwrap() + other.join().unwrap(), 1);
        world.drain(1);
        assert_eq!(world.cell.start_offset(), 1);
        let rest = OffsetRange::new(1, 1);
        assert_eq!(world.cell.claim_letters(unit.id, rest), Ok(true));
        let written = world.log.lock().unwrap().written.clone();
        let archived = written.iter().flat_map(|write| &write.batches);
        let archived = archived.filter(|batch| batch.state == RecordState::Archived.code());
        assert_eq!(archived.count(), 1, "archived once");
        world.audit(0, true);
    });
}

/// What two threads bring about is told once, by whichever of them drains last.
///
/// Sabotage: in `Turn::settle`, do not take the reports.
#[test]
fn what_happened_is_reported_once_whoever_drains() {
    explore("what_happened_is_reported_once_whoever_drains", || {
        let world = World::held(0, 1);
        assert_eq!(world.acquire(0, "b", 1).len(), 1);
        let first = world.run(|w| w.ack_and_drain(1, "a", (0, 0), REJECT));
        let second = world.run(|w| w.ack_and_drain(1, "b", (1, 1), ACCEPT));
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert!(accepted(&first) && accepted(&second));
        {
            let told = world.reports.lock().unwrap();
            let letters: Vec<OffsetRange> = told.letters.iter().map(|unit| unit.range).collect();
            assert_eq!(letters, [OffsetRange::new(0, 0)]);
            assert_eq!((told.delivered, told.written), (1, 0));
        }
        world.audit(0, true);
    });
}

/// The partition moves away while a letter of it is being written.
///
/// Sabotage: in `Inner::shut`, keep the letters, and in `ShareCell::with`, do not look whether it is closed.
#[test]
fn a_cell_that_closes_wants_no_letter_any_more() {
    explore("a_cell_that_closes_wants_no_letter_any_more", || {
        let (world, unit) = lettered();
        let writer = world.run(move |w| w.attempt(1, &unit));
        world.cell.close(CloseReason::NotLeader);
        let claim = world.cell.claim_letters(unit.id, unit.range);
        assert_eq!(claim, Err(CloseReason::NotLeader));
        let archived = world.cell.in_flight().is_empty();
        match writer.join().unwrap() {
            Some(Ok(written)) => assert_eq!(written.counted, 2),
            refused => {
                assert!(matches!(refused, None | Some(Err(CloseReason::NotLeader))));
                assert!(!archived, "archived, but the append did not count");
            }
        }
    });
}

/// A pause between a fetch and an acknowledgement.
///
/// Sabotage: in `SharePartition::acquire`, do not look whether delivery is paused.
/// Sabotage: in `Delivery::samples`, do not look whether delivery is paused.
#[test]
fn once_a_pause_has_returned_nothing_is_acquired_and_acknowledgements_go_on() {
    explore(
        "once_a_pause_has_returned_nothing_is_acquired_and_acknowledgements_go_on",
        || {
            let world = World::held(0, 1);
            let fetch = world.run(|w| w.acquire(1, "b", 1));
            let ack = world.run(|w| w.ack_and_drain(1, "a", (0, 0), ACCEPT));
            world.cell.set_delivery(true, 1);
            let settled = world.log.lock().unwrap().written.len();
            assert_eq!(world.cell.next_fetch_offset(&LIMITS), Ok(None));
            assert_eq!(world.acquire(1, "c", 2), [], "acquired while paused");
            let got = fetch.join().unwrap();
            assert!(accepted(&ack.join().unwrap()));
            world.drain(1);
            // A fetch that came too late has left no trace.
            let runs = world.cell.in_flight();
            assert_eq!(runs.len(), got.len(), "{runs:?}");
            assert_eq!(world.cell.start_offset(), 1);
            let delivered = world.reports.lock().unwrap().delivered;
            assert!(delivered <= settled as u64, "a sample of after the pause");
            world.audit(0, true);
        },
    );
}

/// A fetch parks while delivery resumes.
///
/// Sabotage: in `SharePartition::set_delivery`, do not raise `wake`.
#[test]
fn a_resume_wakes_a_waiting_fetch_or_is_seen_by_it() {
    explore("a_resume_wakes_a_waiting_fetch_or_is_seen_by_it", || {
        let world = World::new(0);
        world.cell.set_delivery(true, 1);
        world.fetch_beside(|w| w.cell.set_delivery(false, 2));
    });
}
