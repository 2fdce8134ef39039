//! Loom models of the purgatory (`src/wait.rs`).
//!
//! Each model names a one-line change of the shipped code that makes it fail.

#![cfg(ottla_loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod loom_support;

use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use loom_support::{Count, explore};
use ottla_coordinator::wait::{Signal, WaitList, Woken};

/// What a fetch found: it saw the change itself, or it parked.
#[derive(Debug, PartialEq)]
enum Found {
    Itself,
    Parked,
}

/// One turn of a waiting fetch: look, and park when there is nothing.
fn look_and_park(signal: &Signal, published: &AtomicBool, waker: &Waker) -> Found {
    signal.rearm();
    if published.load(Ordering::Acquire) {
        return Found::Itself;
    }
    match signal.poll_woken(&mut Context::from_waker(waker)) {
        Poll::Ready(_) if published.load(Ordering::Acquire) => Found::Itself,
        Poll::Ready(_) | Poll::Pending => Found::Parked,
    }
}

/// Sabotage: in `Signal::poll_woken`, keep the waker without looking at `state.woken` first.
/// Sabotage: in `WaitList::register`, leave out the insertion.
#[test]
fn register_and_look_never_both_miss_a_publish() {
    explore("register_and_look_never_both_miss_a_publish", || {
        let list = WaitList::new();
        let published = Arc::new(AtomicBool::new(false));
        let publisher = {
            let (list, published) = (list.clone(), Arc::clone(&published));
            thread::spawn(move || {
                published.store(true, Ordering::Release);
                list.wake_all();
            })
        };
        let signal = Signal::new();
        let registration = list.register(&signal);
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        let found = look_and_park(&signal, &published, &waker);
        publisher.join().unwrap();
        if found == Found::Parked {
            assert_eq!(signal.woken(), Some(Woken::Fired), "parked for ever");
            assert_eq!(count.get(), 1, "the task was not woken");
        }
        drop(registration);
        assert!(list.is_empty());
    });
}

/// Sabotage: in `Signal::wake`, `state.waker.clone()` in the place of `state.waker.take()`.
#[test]
fn a_parked_request_is_woken_once_by_two_that_fire() {
    explore("a_parked_request_is_woken_once_by_two_that_fire", || {
        let list = WaitList::new();
        let signal = Signal::new();
        let _registration = list.register(&signal);
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        assert_eq!(
            signal.poll_woken(&mut Context::from_waker(&waker)),
            Poll::Pending
        );
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let list = list.clone();
                thread::spawn(move || list.wake_all())
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.get(), 1);
        assert_eq!(signal.woken(), Some(Woken::Fired));
    });
}

/// Sabotage: in `Signal::rearm`, forget whatever woke the signal.
/// Sabotage: in `Signal::wake`, `state.woken = Some(why)`.
#[test]
fn the_end_of_the_waiting_time_is_not_lost_to_rearm_or_to_a_fire() {
    explore(
        "the_end_of_the_waiting_time_is_not_lost_to_rearm_or_to_a_fire",
        || {
            let signal = Signal::new();
            let fire = |why| {
                let signal = Arc::clone(&signal);
                thread::spawn(move || signal.wake(why))
            };
            let (fired, expired) = (fire(Woken::Fired), fire(Woken::Expired));
            signal.rearm();
            fired.join().unwrap();
            expired.join().unwrap();
            assert_eq!(signal.woken(), Some(Woken::Expired));
        },
    );
}

/// A waker that goes back to the list, as a task does that an executor polls in place.
struct Reenter(WaitList);

impl Wake for Reenter {
    fn wake(self: std::sync::Arc<Self>) {
        drop(self.0.register(&Signal::new()));
    }
}

/// Sabotage: in `WaitList::wake_all`, wake the signals while `entries` is locked.
#[test]
fn a_woken_task_may_use_the_list_while_others_come_and_go() {
    explore(
        "a_woken_task_may_use_the_list_while_others_come_and_go",
        || {
            let list = WaitList::new();
            let signal = Signal::new();
            let registration = list.register(&signal);
            let waker = Waker::from(std::sync::Arc::new(Reenter(list.clone())));
            assert!(
                signal
                    .poll_woken(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            let waking = {
                let list = list.clone();
                thread::spawn(move || list.wake_all())
            };
            drop(registration);
            waking.join().unwrap();
            assert!(list.is_empty());
        },
    );
}
