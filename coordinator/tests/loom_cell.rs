//! Loom models of the share cell (`src/share/cell.rs`) with its drainer and a log that may fail.
//!
//! Three records, in one batch, of which member a or b holds some when the threads start. Every model
//! ends with the same audit: the log, replayed, says what the machine says, each ticket has an
//! outcome, and no lock is left behind once all deadlines have passed.
//!
//! Each model names a one-line change of the shipped code that makes it fail.

#![cfg(ottla_loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod loom_support;

use std::collections::BTreeMap;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};
use loom_support::{Count, explore};
use ottla_coordinator::share::cell::{ShareCell, Ticket};
use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AckError, AcquireMode, AcquireRequest, AcquiredRange, CloseReason, Limits,
    OffsetRange, PersistedState, RecordState, StateWrite, WriteError,
};
use ottla_coordinator::wait::{Signal, Woken};

const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const RENEW: i8 = 4;
const LOCK_MS: i64 = 10;
const LIMITS: Limits = Limits {
    max_record_locks: 3,
    delivery_count_limit: 5,
    lock_duration_ms: LOCK_MS,
    renew_enabled: true,
};

/// A stand-in for the share coordinator's log. Its lock is where a thread may be interrupted in the
/// middle of a write.
#[derive(Default)]
struct Log {
    written: Vec<StateWrite>,
    /// How many writes fail before one succeeds.
    failures: usize,
}

#[derive(Clone)]
struct World {
    cell: Arc<ShareCell>,
    log: Arc<Mutex<Log>>,
}

impl World {
    fn new(failures: usize) -> Self {
        let part = SharePartition::load(&PersistedState::default(), 0);
        let log = Log {
            failures,
            ..Log::default()
        };
        Self {
            cell: Arc::new(ShareCell::new(part)),
            log: Arc::new(Mutex::new(log)),
        }
    }

    /// With `records` of the batch 0-2 acquired by a at time 0.
    fn held(failures: usize, records: i32) -> Self {
        let world = Self::new(failures);
        assert_eq!(world.acquire(0, "a", records).len(), 1);
        world
    }

    fn acquire(&self, now: i64, member: &str, max_records: i32) -> Vec<AcquiredRange> {
        let from = self
            .cell
            .next_fetch_offset(&LIMITS)
            .ok()
            .flatten()
            .unwrap_or(3);
        let request = AcquireRequest {
            max_records,
            batch_size: 3,
            mode: AcquireMode::RecordLimit,
            fetch_offset: from,
            batches: &[OffsetRange::new(0, 2)],
            upper: 3,
            aborted: &[],
        };
        self.cell
            .acquire(now, member, &LIMITS, &request)
            .unwrap_or_default()
    }

    fn ack(&self, now: i64, member: &str, range: (i64, i64), kind: i8) -> Result<Ticket, AckError> {
        let batch = AckBatch {
            first: range.0,
            last: range.1,
            types: &[kind],
        };
        self.cell
            .acknowledge(now, member, &[batch], kind == RENEW, &LIMITS)
    }

    fn drain(&self, now: i64) {
        self.cell.drain(now, &LIMITS, &mut |write| {
            let mut log = self.log.lock().unwrap();
            if log.failures > 0 {
                log.failures -= 1;
                return Err(WriteError::Unavailable);
            }
            log.written.push(write.clone());
            Ok(())
        });
    }

    fn ack_and_drain(
        &self,
        now: i64,
        member: &str,
        range: (i64, i64),
        kind: i8,
    ) -> Result<Ticket, AckError> {
        let ticket = self.ack(now, member, range, kind);
        self.drain(now);
        ticket
    }

    fn run<T: 'static>(&self, op: impl FnOnce(&Self) -> T + 'static) -> JoinHandle<T> {
        let world = self.clone();
        thread::spawn(move || op(&world))
    }

    /// The persisted state and delivery count of each record, and the start offset.
    fn replay(&self) -> (i64, BTreeMap<i64, (u8, i16)>) {
        let mut start = 0;
        let mut records = BTreeMap::new();
        for write in &self.log.lock().unwrap().written {
            start = write.start_offset;
            for batch in &write.batches {
                for offset in batch.first..=batch.last {
                    records.insert(offset, (batch.state, batch.delivery_count));
                }
            }
        }
        (start, records)
    }

    fn state(&self, offset: i64) -> Option<RecordState> {
        let runs = self.cell.in_flight();
        runs.iter()
            .find(|run| run.first <= offset && offset <= run.last)
            .map(|run| run.state)
    }

    /// After all threads: the log agrees with the machine, and nothing stays locked or pending.
    /// `log_start` is where the log begins; `strict` when no write of a lock's end may have failed.
    fn audit(&self, log_start: i64, strict: bool) {
        self.log.lock().unwrap().failures = 0;
        self.drain(0);
        let (start, durable) = self.replay();
        assert!(start <= self.cell.start_offset());
        let runs = self.cell.in_flight();
        for run in &runs {
            assert_eq!(run.pending, None, "a write was forgotten");
            for offset in run.first..=run.last {
                let persisted = durable.get(&offset).copied();
                match run.state {
                    RecordState::Acquired => {
                        assert!(persisted.is_none_or(|(state, _)| state == 0), "{run:?}");
                    }
                    RecordState::Available if !strict => {}
                    RecordState::Available if run.delivery_count == 0 => {}
                    state => assert_eq!(persisted, Some((state.code(), run.delivery_count))),
                }
            }
        }
        for offset in log_start..self.cell.start_offset() {
            assert!(
                matches!(durable.get(&offset), Some((2 | 4, _))),
                "{offset} was never written"
            );
        }
        self.cell.on_deadline(1000 * LOCK_MS, &LIMITS);
        self.drain(1000 * LOCK_MS);
        assert_eq!(self.cell.lock_count(), 0);
        assert_eq!(self.cell.next_deadline(), None);
        for run in self.cell.in_flight() {
            assert_ne!(run.state, RecordState::Acquired);
            assert_eq!(run.pending, None);
        }
    }
}

fn accepted(ticket: &Result<Ticket, AckError>) -> bool {
    matches!(ticket, Ok(ticket) if ticket.outcome().unwrap() == Ok(()))
}

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

/// A fetch parks while another member gives records back.
///
/// Sabotage: in `SharePartition::apply`, do not raise `wake`.
#[test]
fn a_release_wakes_a_waiting_fetch_or_is_seen_by_it() {
    explore("a_release_wakes_a_waiting_fetch_or_is_seen_by_it", || {
        let world = World::held(0, 3);
        let release = world.run(|w| {
            w.cell.release_member(1, "a", &LIMITS);
            w.drain(1);
        });
        let signal = Signal::new();
        let registration = world.cell.waiters().register(&signal);
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        signal.rearm();
        let got = world.acquire(1, "b", 3);
        let parked = got.is_empty()
            && signal
                .poll_woken(&mut Context::from_waker(&waker))
                .is_pending();
        release.join().unwrap();
        if got.is_empty() {
            assert_eq!(signal.woken(), Some(Woken::Fired));
            assert_eq!(count.get(), usize::from(parked));
        }
        drop(registration);
        world.audit(0, true);
    });
}

/// A task that goes straight back to the cell when it is woken.
struct Reenter(Arc<ShareCell>);

impl Wake for Reenter {
    fn wake(self: std::sync::Arc<Self>) {
        let _ = self.0.next_fetch_offset(&LIMITS);
        drop(self.0.waiters().register(&Signal::new()));
    }
}

/// Nobody is woken under the lock that it needs (two members fetching one cold partition).
///
/// Sabotage: in `Turn::settle`, run `after` before `inner` is dropped.
/// Sabotage: in `ShareCell::with`, call `wake_all` inside the block that holds the lock.
#[test]
fn woken_tasks_may_enter_the_cell() {
    explore("woken_tasks_may_enter_the_cell", || {
        let world = World::held(0, 3);
        let signal = Signal::new();
        let _registration = world.cell.waiters().register(&signal);
        let waker = Waker::from(std::sync::Arc::new(Reenter(world.cell.clone())));
        let ticket = world.ack(1, "a", (0, 0), RELEASE).unwrap();
        assert!(
            signal
                .poll_woken(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert!(
            ticket
                .poll_outcome(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let first = world.run(|w| w.drain(1));
        let second = world.run(|w| w.cell.log_start_moved(2));
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(ticket.outcome(), Some(Ok(())));
        world.audit(2, true);
    });
}

/// Leadership goes while a write is under way and another one waits.
///
/// Sabotage: in `ShareCell::close`, `let keep = 0`.
/// Sabotage: in `Inner::shut`, leave out `after.wake = true`.
#[test]
fn a_cell_that_closes_answers_everybody_and_truly() {
    explore("a_cell_that_closes_answers_everybody_and_truly", || {
        let world = World::held(0, 1);
        assert_eq!(world.acquire(0, "b", 1).len(), 1);
        let signal = Signal::new();
        let _registration = world.cell.waiters().register(&signal);
        let first = world.run(|w| w.ack_and_drain(1, "a", (0, 0), ACCEPT));
        let second = world.run(|w| w.ack_and_drain(1, "b", (1, 1), ACCEPT));
        world.cell.close(CloseReason::NotLeader);
        let tickets = [first.join().unwrap(), second.join().unwrap()];
        let (_, durable) = world.replay();
        for (offset, ticket) in tickets.iter().enumerate() {
            let written = durable.contains_key(&(offset as i64));
            match ticket {
                Ok(ticket) => match ticket.outcome().unwrap() {
                    Ok(()) => assert!(written),
                    Err(error) => {
                        assert_eq!(error, WriteError::Closed(CloseReason::NotLeader));
                        assert!(!written, "said to have failed, but it is written");
                    }
                },
                Err(error) => assert_eq!(*error, AckError::Closed(CloseReason::NotLeader)),
            }
        }
        assert_eq!(signal.woken(), Some(Woken::Fired));
        assert_eq!(
            world.cell.next_fetch_offset(&LIMITS),
            Err(CloseReason::NotLeader)
        );
    });
}

/// The share coordinator refuses the epoch while another acknowledgement waits for its write.
///
/// Sabotage: in `Turn::settle`, treat `Fenced` as `Unavailable`.
#[test]
fn a_fenced_write_closes_the_cell_for_all() {
    explore("a_fenced_write_closes_the_cell_for_all", || {
        let world = World::held(0, 1);
        assert_eq!(world.acquire(0, "b", 1).len(), 1);
        let fenced = |w: &World| {
            w.cell.drain(1, &LIMITS, &mut |_| {
                drop(w.log.lock().unwrap());
                Err(WriteError::Fenced)
            });
        };
        let first = world.run(move |w| {
            let ticket = w.ack(1, "a", (0, 0), ACCEPT);
            fenced(w);
            ticket
        });
        let second = world.run(move |w| {
            let ticket = w.ack(1, "b", (1, 1), ACCEPT);
            fenced(w);
            ticket
        });
        let tickets = [first.join().unwrap(), second.join().unwrap()];
        let refused = |ticket: &Result<Ticket, AckError>| match ticket {
            Ok(ticket) => ticket.outcome().unwrap().is_err(),
            Err(error) => *error == AckError::Closed(CloseReason::Fenced),
        };
        assert!(tickets.iter().all(refused));
        assert_eq!(world.cell.closed(), Some(CloseReason::Fenced));
        assert_eq!(world.cell.start_offset(), 0);
    });
}

/// A handler awaits its ticket while another thread drains.
///
/// Sabotage: in `Ticket::poll_outcome`, do not look at the outcome before the waker is kept.
#[test]
fn a_ticket_wakes_who_awaits_it() {
    explore("a_ticket_wakes_who_awaits_it", || {
        let world = World::held(0, 1);
        let ticket = world.ack(1, "a", (0, 0), ACCEPT).unwrap();
        let drainer = world.run(|w| w.drain(1));
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        let polled = ticket.poll_outcome(&mut Context::from_waker(&waker));
        drainer.join().unwrap();
        match polled {
            Poll::Ready(outcome) => assert_eq!(outcome, Ok(())),
            Poll::Pending => assert_eq!(count.get(), 1),
        }
        assert_eq!(ticket.outcome(), Some(Ok(())));
    });
}
