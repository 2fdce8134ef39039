//! Loom models of the share cell (`src/share/cell.rs`): what becomes of records.
//!
//! Each model names a one-line change of the shipped code that makes it fail.

#![cfg(ottla_loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod loom_support;

use loom_support::explore;
use loom_support::world::{ACCEPT, LIMITS, LOCK_MS, RELEASE, RENEW, World, accepted};
use ottla_coordinator::share::types::RecordState;

/// Two members over the same records, and the deadline between them.
///
/// Sabotage: in `SharePartition::end_lock`, mark also records that are pending.
#[test]
fn acknowledge_expire_and_acquire_the_same_records() {
    explore("acknowledge_expire_and_acquire_the_same_records", || {
        let world = World::held(0, 2);
        let first = world.run(|w| w.ack_and_drain(LOCK_MS - 1, "a", (1, 1), ACCEPT));
        let second = world.run(|w| {
            w.cell.on_deadline(LOCK_MS, &LIMITS);
            w.drain(LOCK_MS);
            w.acquire(LOCK_MS, "b", 2)
        });
        let ticket = first.join().unwrap();
        let got = second.join().unwrap();
        world.audit(0, true);
        let delivered = got.iter().any(|range| range.first <= 1 && 1 <= range.last);
        if accepted(&ticket) {
            assert!(!delivered, "delivered after it was accepted");
            assert_eq!(world.state(1), Some(RecordState::Acknowledged));
        } else {
            assert!(ticket.is_err());
            assert_eq!(world.state(1), Some(RecordState::Available));
        }
        assert_eq!(world.state(0), Some(RecordState::Available));
    });
}

/// Two proposals at once. The second one's complete count includes the first one's record, so it
/// tells which write was prepared after which.
///
/// Sabotage: in `SharePartition::take_write`, hand out a write while another one is taken.
#[test]
fn writes_reach_the_log_in_the_order_of_proposal() {
    explore("writes_reach_the_log_in_the_order_of_proposal", || {
        let world = World::held(0, 2);
        assert_eq!(world.acquire(0, "b", 1).len(), 1);
        let first = world.run(|w| w.ack_and_drain(1, "a", (1, 1), ACCEPT));
        let second = world.run(|w| w.ack_and_drain(1, "b", (2, 2), ACCEPT));
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert!(accepted(&first) && accepted(&second));
        let log = world.log.lock().unwrap();
        let counts: Vec<i32> = log
            .written
            .iter()
            .map(|w| w.delivery_complete_count)
            .collect();
        assert_eq!(counts, [1, 2]);
        drop(log);
        world.audit(0, true);
    });
}

/// A record is released by one member and accepted by the next, as fast as they can.
///
/// Sabotage: in `Turn::settle`, settle the write as failed whatever its outcome was.
#[test]
fn a_record_changes_hands_in_the_log_as_it_does_in_memory() {
    explore(
        "a_record_changes_hands_in_the_log_as_it_does_in_memory",
        || {
            let world = World::held(0, 3);
            let first = world.run(|w| w.ack_and_drain(1, "a", (0, 2), RELEASE).is_ok());
            let second = world.run(|w| {
                let got = w.acquire(1, "b", 1);
                if got.is_empty() {
                    None
                } else {
                    Some(w.ack_and_drain(1, "b", (0, 0), ACCEPT))
                }
            });
            assert!(first.join().unwrap());
            if let Some(ticket) = second.join().unwrap() {
                assert!(accepted(&ticket));
                assert_eq!(world.cell.start_offset(), 1);
            } else {
                assert_eq!(world.state(0), Some(RecordState::Available));
            }
            world.audit(0, true);
        },
    );
}

/// Both acknowledge what they hold at once: one of them drains for both.
///
/// Sabotage: in `Turn::settle`, take no next write.
#[test]
fn who_finds_a_drainer_may_leave_its_write_to_it() {
    explore("who_finds_a_drainer_may_leave_its_write_to_it", || {
        let world = World::held(0, 1);
        assert_eq!(world.acquire(0, "b", 1).len(), 1);
        let first = world.run(|w| w.ack_and_drain(1, "a", (0, 0), ACCEPT));
        let second = world.run(|w| w.ack_and_drain(1, "b", (1, 1), RELEASE));
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert!(accepted(&first) && accepted(&second));
        assert_eq!(world.cell.start_offset(), 1);
        world.audit(0, true);
    });
}

/// A write that fails while the lock of its records ends.
///
/// Sabotage: in `SharePartition::withdraw`, `let pending = None`.
#[test]
fn a_failing_write_gives_back_what_expired_meanwhile() {
    explore("a_failing_write_gives_back_what_expired_meanwhile", || {
        let world = World::held(1, 2);
        let first = world.run(|w| w.ack_and_drain(LOCK_MS - 1, "a", (0, 1), ACCEPT));
        let second = world.run(|w| {
            w.cell.on_deadline(LOCK_MS, &LIMITS);
            w.drain(LOCK_MS);
        });
        let ticket = first.join().unwrap();
        second.join().unwrap();
        if !accepted(&ticket) {
            for offset in 0..2 {
                assert_eq!(world.state(offset), Some(RecordState::Available));
            }
            assert_eq!(world.acquire(LOCK_MS, "b", 3)[0].delivery_count, 2);
        }
        world.audit(0, false);
    });
}

/// The log start passes a record whose release is being written, and the write may fail.
///
/// Sabotage: in `SharePartition::apply`, `let range = change.range`.
#[test]
fn a_log_start_that_moves_during_a_write_wins() {
    for failures in [0, 1] {
        explore("a_log_start_that_moves_during_a_write_wins", move || {
            let world = World::held(failures, 2);
            let first = world.run(|w| w.ack_and_drain(1, "a", (0, 1), RELEASE));
            let second = world.run(|w| w.cell.log_start_moved(1));
            let ticket = first.join().unwrap();
            second.join().unwrap();
            assert_eq!(accepted(&ticket), failures == 0);
            assert_eq!(world.cell.start_offset(), 1);
            let got = world.acquire(1, "b", 3);
            let expected = if failures == 0 { 1 } else { 2 };
            assert_eq!(got[0].first, expected, "{got:?}");
            world.audit(1, false);
        });
    }
}

/// A record whose release is being written cannot be acquired before that is settled.
///
/// Sabotage: in `SharePartition::mark`, give the record its next state at once instead of marking it.
#[test]
fn a_release_that_is_being_written_is_not_acquirable() {
    explore("a_release_that_is_being_written_is_not_acquirable", || {
        let world = World::held(0, 3);
        let first = world.run(|w| w.ack_and_drain(1, "a", (0, 2), RELEASE).is_ok());
        let second = world.run(|w| {
            let got = w.acquire(1, "b", 3);
            (got.len(), w.log.lock().unwrap().written.len())
        });
        assert!(first.join().unwrap());
        let (got, written) = second.join().unwrap();
        assert!(
            got == 0 || written == 1,
            "acquired before the release was written"
        );
        world.audit(0, true);
    });
}

/// Renewal against the deadline that it moves, and the session that ends.
///
/// Sabotage: in `SharePartition::mark`, do not drop the old lock of a renewed record.
#[test]
fn a_renewal_and_the_end_of_its_session_leave_no_lock() {
    explore("a_renewal_and_the_end_of_its_session_leave_no_lock", || {
        let world = World::held(0, 2);
        let first = world.run(|w| w.ack(LOCK_MS - 1, "a", (0, 0), RENEW).is_ok());
        let second = world.run(|w| {
            w.cell.on_deadline(LOCK_MS, &LIMITS);
            w.drain(LOCK_MS);
        });
        let third = world.run(|w| {
            w.cell.release_member(LOCK_MS - 1, "a", &LIMITS);
            w.drain(LOCK_MS - 1);
        });
        first.join().unwrap();
        second.join().unwrap();
        third.join().unwrap();
        assert_eq!(world.cell.lock_count(), 0);
        assert_eq!(world.state(0), Some(RecordState::Available));
        world.audit(0, true);
    });
}
