//! Loom models of a group's delivery (`src/share/delivery_cell.rs`): samples from any thread, the end
//! of a bucket, and the pause and resume that follow.
//!
//! Each model names a one-line change of the shipped code that makes it fail.

#![cfg(ottla_loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod loom_support;

use loom::sync::Arc;
use loom::thread;
use loom_support::explore;
use ottla_coordinator::share::breaker::BreakerRules;
use ottla_coordinator::share::delivery::{
    Delivery, DeliveryAction, DeliveryRules, Pause, PauseReason,
};
use ottla_coordinator::share::delivery_cell::DeliveryCell;

const RULES: DeliveryRules = DeliveryRules {
    paused: false,
    breaker: BreakerRules {
        enabled: true,
        threshold: 0.5,
        window_ms: 20,
        buckets: 2,
        min_messages: 2,
        trips_on_given_up: false,
    },
    auto_resume_ms: None,
};

fn cell() -> Arc<DeliveryCell> {
    Arc::new(DeliveryCell::new(Delivery::new(RULES, 0)))
}

/// What the driver does when a bucket ends: has a pause recorded, if there is one to record. Answers
/// how many letters tripped the breaker.
fn bucket_ends(cell: &DeliveryCell, now: i64) -> Option<i64> {
    let Some(DeliveryAction::Pause(reason, trip)) = cell.on_deadline(now) else {
        return None;
    };
    let pause = Pause {
        reason,
        since: now,
        note: String::new(),
    };
    cell.record_applied(now, Some(&pause));
    Some(trip.counts.dlq_written)
}

/// A sample comes before the end of its bucket, or after it and counts for the next one; either way
/// it is counted once, and the pause begins once.
///
/// Sabotage: in `Breaker::count`, do not roll first.
/// Sabotage: in `Breaker::look`, look for a trip although one was found.
#[test]
fn a_sample_at_the_end_of_a_bucket_is_counted_once_and_trips_once() {
    explore(
        "a_sample_at_the_end_of_a_bucket_is_counted_once_and_trips_once",
        || {
            let cell = cell();
            cell.sample(5, 0, 0, 2);
            let sampler = {
                let cell = Arc::clone(&cell);
                thread::spawn(move || {
                    cell.sample(11, 0, 0, 3);
                })
            };
            let driver = {
                let cell = Arc::clone(&cell);
                thread::spawn(move || bucket_ends(&cell, 10))
            };
            let other = bucket_ends(&cell, 21);
            sampler.join().unwrap();
            let first = driver.join().unwrap();
            assert!(first.is_some() || other.is_some(), "nobody found the trip");
            for letters in [first, other].into_iter().flatten() {
                assert_eq!(letters, 2, "what came after the end counts for later");
            }
            assert_eq!(cell.gate().generation, 1);
            assert_eq!(cell.view(21).reason, Some(PauseReason::BreakerTripped));
        },
    );
}

/// A sample of before a pause that comes after the resume is not counted: the group does not trip on
/// letters that it has tripped on.
///
/// Sabotage: in `DeliveryCell::counted`, do not compare the generations.
#[test]
fn a_resume_never_trips_on_samples_of_before() {
    explore("a_resume_never_trips_on_samples_of_before", || {
        let cell = cell();
        cell.sample(5, 0, 0, 2);
        let samplers = [10, 12].map(|now| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                cell.sample(now, 0, 0, 50);
            })
        });
        assert_eq!(bucket_ends(&cell, 10), Some(2));
        cell.record_applied(12, None);
        for sampler in samplers {
            sampler.join().unwrap();
        }
        assert_eq!(cell.view(13).counts().total(), 0);
        assert_eq!(bucket_ends(&cell, 1000), None);
        assert!(!cell.gate().paused);
    });
}

/// Whoever counts is told of the deadline that this brings about: none is missed, so that somebody is
/// called at the end of the bucket.
///
/// Sabotage: in `DeliveryCell::counted`, ask for the deadline of before after counting.
#[test]
fn the_first_letter_sets_the_deadline() {
    explore("the_first_letter_sets_the_deadline", || {
        let cell = cell();
        let samplers = [(3, 0), (0, 1)].map(|(delivered, written)| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.sample(5, 0, delivered, written))
        });
        let told = samplers.map(|sampler| sampler.join().unwrap());
        assert_eq!(told, [None, Some(10)]);
        assert_eq!(cell.next_deadline(), Some(10));
    });
}
