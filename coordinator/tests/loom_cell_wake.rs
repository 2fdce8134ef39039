//! Loom models of the share cell (`src/share/cell.rs`): who is woken, and what a closed cell says.
//!
//! Each model names a one-line change of the shipped code that makes it fail.

#![cfg(ottla_loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod loom_support;

use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Arc;
use loom_support::world::{ACCEPT, LIMITS, RELEASE, World};
use loom_support::{Count, explore};
use ottla_coordinator::share::cell::{ShareCell, Ticket};
use ottla_coordinator::share::types::{AckError, CloseReason, WriteError};
use ottla_coordinator::wait::{Signal, Woken};

/// A fetch parks while another member gives records back.
///
/// Sabotage: in `SharePartition::apply`, do not raise `wake`.
#[test]
fn a_release_wakes_a_waiting_fetch_or_is_seen_by_it() {
    explore("a_release_wakes_a_waiting_fetch_or_is_seen_by_it", || {
        let world = World::held(0, 3);
        world.fetch_beside(|w| {
            w.cell.release_member(1, "a", &LIMITS);
            w.drain(1);
        });
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
            let _ = w.cell.drain(1, &LIMITS, &mut |_| {
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
