//! The circuit breaker of a group's dead letters (KIP-1316, a draft): a window of buckets over what
//! was delivered and what became a letter, looked at whenever a bucket ends.
//!
//! The window is in memory only. It begins with the breaker, and anew with whatever makes its counts
//! worthless: a resume, another window, another coordinator.

use std::collections::VecDeque;

use crate::types::Ts;

/// When the breaker trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRules {
    /// Whether the rate of letters trips it.
    pub enabled: bool,
    /// The rate at which it trips, in (0, 1].
    pub threshold: f64,
    /// The window's length in ms; at least `buckets`.
    pub window_ms: i64,
    /// Buckets of a window; at least 1.
    pub buckets: usize,
    /// The fewest records in a window at which it trips.
    pub min_messages: i64,
    /// Whether letters given up trip it too: as many as `min_messages` in a window.
    pub trips_on_given_up: bool,
}

impl Default for BreakerRules {
    /// Off, with the defaults of the draft.
    fn default() -> Self {
        Self {
            enabled: false,
            threshold: 0.5,
            window_ms: 60_000,
            buckets: 6,
            min_messages: 100,
            trips_on_given_up: false,
        }
    }
}

impl BreakerRules {
    /// The length of a bucket in ms.
    fn bucket_ms(&self) -> i64 {
        (self.window_ms / self.buckets.max(1) as i64).max(1)
    }

    /// Whether anything can trip it.
    pub(super) fn can_trip(&self) -> bool {
        self.enabled || self.trips_on_given_up
    }
}

/// What happened to records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Acknowledged.
    pub delivered: i64,
    /// Their letter was written.
    pub dlq_written: i64,
    /// Their letter was given up; not part of the rate.
    pub given_up: i64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        *self = self.plus(other);
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            delivered: self.delivered.saturating_add(other.delivered),
            dlq_written: self.dlq_written.saturating_add(other.dlq_written),
            given_up: self.given_up.saturating_add(other.given_up),
        }
    }

    /// Records that the rate is taken of.
    pub fn total(&self) -> i64 {
        self.delivered.saturating_add(self.dlq_written)
    }

    /// Letters to all records; 0 without any.
    pub fn rate(&self) -> f64 {
        if self.total() == 0 {
            return 0.0;
        }
        self.dlq_written as f64 / self.total() as f64
    }
}

/// One bucket of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// When it began.
    pub start: Ts,
    /// What it counted.
    pub counts: Counts,
}

/// What tripped the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripCause {
    /// The rate of letters.
    Rate,
    /// Letters given up.
    GivenUp,
}

/// The breaker tripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// The end of the bucket that did it.
    pub at: Ts,
    /// What did it.
    pub cause: TripCause,
    /// The window at that time.
    pub counts: Counts,
}

/// The window of one group.
#[derive(Clone, Debug)]
pub struct Breaker {
    rules: BreakerRules,
    /// Oldest first; the last one is being filled.
    buckets: VecDeque<Bucket>,
    /// Found and not yet dealt with.
    trip: Option<Trip>,
}

impl Breaker {
    /// A window that begins at `now`.
    pub fn new(rules: BreakerRules, now: Ts) -> Self {
        let mut breaker = Self {
            rules,
            buckets: VecDeque::new(),
            trip: None,
        };
        breaker.restart(now);
        breaker
    }

    /// The rules in force.
    pub fn rules(&self) -> &BreakerRules {
        &self.rules
    }

    /// Forgets what was counted: the window begins at `now`.
    pub fn restart(&mut self, now: Ts) {
        self.trip = None;
        self.buckets.clear();
        self.buckets.push_back(Bucket {
            start: now,
            counts: Counts::default(),
        });
    }

    /// Other rules. The window begins anew where its shape has changed, or the breaker was switched on;
    /// all else holds from the next end of a bucket on.
    pub fn set_rules(&mut self, rules: BreakerRules, now: Ts) {
        self.roll(now);
        let old = std::mem::replace(&mut self.rules, rules);
        let other_shape = (old.window_ms, old.buckets) != (rules.window_ms, rules.buckets);
        let switched_on = (rules.enabled && !old.enabled) || (rules.can_trip() && !old.can_trip());
        if other_shape || switched_on {
            self.restart(now);
        }
        let still_trips = |trip: &Trip| match trip.cause {
            TripCause::Rate => rules.enabled,
            TripCause::GivenUp => rules.trips_on_given_up,
        };
        self.trip = self.trip.filter(still_trips);
    }

    /// Counts records acknowledged and letters written.
    pub fn sample(&mut self, now: Ts, delivered: i64, dlq_written: i64) {
        let counts = Counts {
            delivered,
            dlq_written,
            given_up: 0,
        };
        self.count(now, &counts);
    }

    /// Counts records whose letter was given up.
    pub fn given_up(&mut self, now: Ts, records: i64) {
        let counts = Counts {
            given_up: records,
            ..Counts::default()
        };
        self.count(now, &counts);
    }

    fn count(&mut self, now: Ts, counts: &Counts) {
        self.roll(now);
        if let Some(bucket) = self.buckets.back_mut() {
            bucket.counts.add(counts);
        }
    }

    /// Ends the buckets that are over. Answers a trip until it is dealt with: by a restart, or by
    /// rules that switch it off.
    pub fn on_deadline(&mut self, now: Ts) -> Option<Trip> {
        self.roll(now);
        self.trip
    }

    /// When [`Breaker::on_deadline`] has something to do: at the end of the bucket, if something was
    /// counted that can trip it.
    pub fn next_deadline(&self) -> Option<Ts> {
        if let Some(trip) = self.trip {
            return Some(trip.at);
        }
        let counted = self.sum();
        let relevant = (self.rules.enabled && counted.dlq_written > 0)
            || (self.rules.trips_on_given_up && counted.given_up > 0);
        let end = self
            .buckets
            .back()?
            .start
            .saturating_add(self.rules.bucket_ms());
        relevant.then_some(end)
    }

    /// The buckets of the window at `now`, oldest first.
    pub fn window(&mut self, now: Ts) -> Vec<Bucket> {
        self.roll(now);
        self.counted().copied().collect()
    }

    /// The buckets as they were last looked at.
    pub fn counted(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.iter()
    }

    /// All that the window counts.
    fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        for bucket in &self.buckets {
            sum.add(&bucket.counts);
        }
        sum
    }

    /// Ends each bucket that is over by `now`, looking at the window at its end.
    fn roll(&mut self, now: Ts) {
        let length = self.rules.bucket_ms();
        let mut looked_at = 0;
        while let Some(end) = self.buckets.back().map(|b| b.start.saturating_add(length))
            && end <= now
        {
            self.look(end);
            looked_at += 1;
            // From here on the window is empty at every end: only the time goes on.
            let start = if looked_at > self.rules.buckets {
                now - (now - end) % length
            } else {
                end
            };
            self.buckets.push_back(Bucket {
                start,
                counts: Counts::default(),
            });
            while self.buckets.len() > self.rules.buckets.max(1) {
                self.buckets.pop_front();
            }
        }
    }

    /// Looks at the window at the end of its last bucket.
    fn look(&mut self, at: Ts) {
        if self.trip.is_some() {
            return;
        }
        let (rules, counts) = (&self.rules, self.sum());
        let by_rate = rules.enabled
            && counts.total() >= rules.min_messages
            && counts.dlq_written > 0
            && counts.rate() >= rules.threshold;
        let by_given_up =
            rules.trips_on_given_up && counts.given_up > 0 && counts.given_up >= rules.min_messages;
        let cause = match (by_rate, by_given_up) {
            (true, _) => TripCause::Rate,
            (false, true) => TripCause::GivenUp,
            (false, false) => return,
        };
        self.trip = Some(Trip { at, cause, counts });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        enabled: true,
        threshold: 0.25,
        window_ms: 60,
        buckets: 6,
        min_messages: 4,
        trips_on_given_up: false,
    };

    #[test]
    fn it_trips_at_the_end_of_the_bucket_and_not_before() {
        let mut breaker = Breaker::new(RULES, 100);
        breaker.sample(101, 3, 1);
        assert_eq!(breaker.next_deadline(), Some(110));
        assert_eq!(breaker.on_deadline(109), None);
        let trip = breaker.on_deadline(110).map(|t| (t.at, t.cause, t.counts));
        let counts = Counts {
            delivered: 3,
            dlq_written: 1,
            given_up: 0,
        };
        assert_eq!(trip, Some((110, TripCause::Rate, counts)));
    }

    #[test]
    fn a_rate_at_the_threshold_trips_and_one_below_does_not() {
        for (delivered, written, trips) in [(3, 1, true), (301, 100, false), (0, 4, true)] {
            let mut breaker = Breaker::new(RULES, 0);
            breaker.sample(0, delivered, written);
            assert_eq!(
                breaker.on_deadline(10).is_some(),
                trips,
                "{delivered} {written}"
            );
        }
    }

    #[test]
    fn too_few_records_do_not_trip_it_however_many_letters() {
        let mut breaker = Breaker::new(RULES, 0);
        breaker.sample(0, 0, 3);
        assert_eq!(breaker.on_deadline(10), None);
        breaker.sample(10, 0, 1);
        assert!(breaker.on_deadline(20).is_some());
    }

    #[test]
    fn what_is_older_than_the_window_counts_no_more() {
        let mut breaker = Breaker::new(RULES, 0);
        breaker.sample(5, 0, 3);
        breaker.sample(65, 0, 1);
        assert_eq!(breaker.on_deadline(70), None);
        let mut breaker = Breaker::new(RULES, 0);
        breaker.sample(5, 0, 3);
        breaker.sample(59, 0, 1);
        assert_eq!(breaker.on_deadline(60).map(|t| t.at), Some(60));
    }

    #[test]
    fn a_sample_after_the_end_does_not_hide_what_the_bucket_had() {
        let mut breaker = Breaker::new(RULES, 0);
        breaker.sample(5, 0, 4);
        breaker.sample(12, 1000, 0);
        assert_eq!(
            breaker.on_deadline(12).map(|t| (t.at, t.counts.total())),
            Some((10, 4))
        );
    }

    #[test]
    fn a_restart_forgets_counts_and_trip() {
        let mut breaker = Breaker::new(RULES, 0);
        breaker.sample(5, 0, 4);
        assert!(breaker.on_deadline(10).is_some());
        breaker.restart(13);
        assert_eq!(breaker.on_deadline(1000), None);
        breaker.sample(1000, 0, 1);
        assert_eq!(breaker.next_deadline(), Some(1003));
    }

    #[test]
    fn another_window_discards_and_another_threshold_does_not() {
        let mut breaker = Breaker::new(RULES, 0);
        breaker.sample(5, 3, 1);
        let stricter = BreakerRules {
            threshold: 0.3,
            ..RULES
        };
        breaker.set_rules(stricter, 6);
        assert_eq!(breaker.on_deadline(10), None);
        breaker.set_rules(RULES, 11);
        assert!(breaker.on_deadline(20).is_some());
        let shorter = BreakerRules {
            window_ms: 30,
            ..RULES
        };
        breaker.set_rules(shorter, 21);
        assert_eq!(breaker.window(21).len(), 1);
        assert_eq!(breaker.on_deadline(100), None);
    }

    #[test]
    fn given_up_letters_are_no_part_of_the_rate_and_trip_it_only_when_asked_to() {
        let mut breaker = Breaker::new(RULES, 0);
        breaker.given_up(1, 1000);
        assert_eq!(breaker.next_deadline(), None);
        assert_eq!(breaker.on_deadline(10), None);
        let opted_in = BreakerRules {
            enabled: false,
            trips_on_given_up: true,
            ..RULES
        };
        let mut breaker = Breaker::new(opted_in, 0);
        breaker.given_up(1, 3);
        assert_eq!(breaker.on_deadline(10), None);
        breaker.given_up(11, 1);
        let cause = breaker.on_deadline(20).map(|t| t.cause);
        assert_eq!(cause, Some(TripCause::GivenUp));
    }

    #[test]
    fn a_long_silence_costs_nothing_and_keeps_the_grid() {
        let mut breaker = Breaker::new(RULES, 3);
        breaker.sample(5, 0, 1);
        breaker.sample(1_000_000_000, 0, 1);
        assert_eq!(breaker.next_deadline(), Some(1_000_000_003));
        assert_eq!(
            breaker
                .window(1_000_000_000)
                .last()
                .map(|b| b.counts.total()),
            Some(1)
        );
    }
}
