//! Long random runs of the circuit breaker against a model that keeps every sample and looks at all
//! of them at the end of each bucket.

#![allow(clippy::unwrap_used, reason = "tests")]

use ottla_coordinator::share::breaker::{Breaker, BreakerRules, Counts, Trip, TripCause};
use ottla_coordinator::types::Ts;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Call {
    Sample(i64, i64),
    GivenUp(i64),
    Wait(i64),
    Deadline,
    Restart,
    Rules(BreakerRules),
}

fn rules() -> impl Strategy<Value = BreakerRules> {
    let shape = prop_oneof![Just((60, 6)), Just((60, 3)), Just((10, 1)), Just((7, 7))];
    let threshold = prop_oneof![Just(0.2), Just(0.25), Just(0.5), Just(1.0), 0.01..1.0f64];
    (shape, threshold, 0..30i64, any::<bool>(), any::<bool>()).prop_map(
        |((window_ms, buckets), threshold, min_messages, enabled, trips_on_given_up)| {
            BreakerRules {
                enabled,
                threshold,
                window_ms,
                buckets,
                min_messages: min_messages.max(1),
                trips_on_given_up,
            }
        },
    )
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        6 => (0..12i64, 0..4i64).prop_map(|(d, w)| Call::Sample(d, w)),
        2 => (1..6i64).prop_map(Call::GivenUp),
        6 => (0..25i64).prop_map(Call::Wait),
        1 => (100..100_000i64).prop_map(Call::Wait),
        3 => Just(Call::Deadline),
        1 => Just(Call::Restart),
        1 => rules().prop_map(Call::Rules),
    ];
    prop::collection::vec(call, 1..80)
}

/// All samples since the window began.
struct Naive {
    rules: BreakerRules,
    origin: Ts,
    looked_until: Ts,
    samples: Vec<(Ts, Counts)>,
    trip: Option<Trip>,
}

impl Naive {
    fn new(rules: BreakerRules, now: Ts) -> Self {
        Self {
            rules,
            origin: now,
            looked_until: now,
            samples: Vec::new(),
            trip: None,
        }
    }

    /// Looks at the window at each end of a bucket up to `now`.
    fn look(&mut self, now: Ts) {
        let bucket = self.rules.window_ms / self.rules.buckets as i64;
        // An end later than a window after the last sample sees nothing.
        let last = self.samples.last().map_or(self.origin, |s| s.0) + 2 * self.rules.window_ms;
        let mut end = self.origin + bucket;
        while end <= now.min(last) {
            if end > self.looked_until && self.trip.is_none() {
                self.trip = self.trips_at(end);
            }
            end += bucket;
        }
        self.looked_until = now;
    }

    fn trips_at(&self, end: Ts) -> Option<Trip> {
        let inside = |at: Ts| (end - self.rules.window_ms..end).contains(&at);
        let of_window = || self.samples.iter().filter(|(at, _)| inside(*at));
        let counts = Counts {
            delivered: of_window().map(|(_, c)| c.delivered).sum(),
            dlq_written: of_window().map(|(_, c)| c.dlq_written).sum(),
            given_up: of_window().map(|(_, c)| c.given_up).sum(),
        };
        let total = counts.delivered + counts.dlq_written;
        let enough = total >= self.rules.min_messages && total > 0;
        let rate = counts.dlq_written as f64 / total.max(1) as f64;
        let cause = if self.rules.enabled && enough && rate >= self.rules.threshold {
            TripCause::Rate
        } else if self.rules.trips_on_given_up && counts.given_up >= self.rules.min_messages {
            TripCause::GivenUp
        } else {
            return None;
        };
        Some(Trip {
            at: end,
            cause,
            counts,
        })
    }

    fn set_rules(&mut self, rules: BreakerRules, now: Ts) {
        self.look(now);
        let old = std::mem::replace(&mut self.rules, rules);
        let other_shape = (old.window_ms, old.buckets) != (rules.window_ms, rules.buckets);
        let was_off = !old.enabled && !old.trips_on_given_up;
        let begins = (rules.enabled && !old.enabled) || (rules.trips_on_given_up && was_off);
        if other_shape || begins {
            *self = Self::new(rules, now);
        }
        let keeps = |trip: &Trip| match trip.cause {
            TripCause::Rate => rules.enabled,
            TripCause::GivenUp => rules.trips_on_given_up,
        };
        self.trip = self.trip.filter(keeps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_breaker_agrees_with_one_that_keeps_everything(
        first in rules(),
        start in 0..1_000i64,
        calls in calls(),
    ) {
        let mut now = start;
        let mut breaker = Breaker::new(first, now);
        let mut naive = Naive::new(first, now);
        for call in calls {
            match call {
                Call::Sample(delivered, dlq_written) => {
                    breaker.sample(now, delivered, dlq_written);
                    naive.look(now);
                    let counts = Counts { delivered, dlq_written, given_up: 0 };
                    naive.samples.push((now, counts));
                }
                Call::GivenUp(given_up) => {
                    breaker.given_up(now, given_up);
                    naive.look(now);
                    naive.samples.push((now, Counts { given_up, ..Counts::default() }));
                }
                Call::Wait(ms) => {
                    let due = breaker.next_deadline();
                    now += ms;
                    // Nobody is called before the time that was asked for.
                    if due.is_none_or(|at| at > now) {
                        naive.look(now);
                        prop_assert_eq!(naive.trip, None);
                    }
                }
                Call::Deadline => {
                    naive.look(now);
                    prop_assert_eq!(breaker.on_deadline(now), naive.trip);
                }
                Call::Restart => {
                    breaker.restart(now);
                    naive = Naive::new(naive.rules, now);
                }
                Call::Rules(rules) => {
                    breaker.set_rules(rules, now);
                    naive.set_rules(rules, now);
                }
            }
            let window = breaker.window(now);
            prop_assert!(window.len() <= breaker.rules().buckets);
            let shown: i64 = window.iter().map(|b| b.counts.total() + b.counts.given_up).sum();
            let since = window[0].start;
            let counted = naive.samples.iter().filter(|(at, _)| *at >= since);
            let expected: i64 = counted.map(|(_, c)| c.total() + c.given_up).sum();
            prop_assert_eq!(shown, expected);
        }
    }
}
