//! Whether a share group's records are delivered (KIP-1249, a draft): running or paused, why, and
//! what ends it. Truth is what the group's record and its configs say; the rest is in memory.

use super::breaker::{Breaker, BreakerRules, Bucket, Counts, Trip, TripCause};
use crate::types::Ts;

/// Why a group is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// Somebody wanted it.
    Admin,
    /// Too many of its records became dead letters.
    BreakerTripped,
    /// Too many of its dead letters could not be written.
    WriteTimeouts,
}

impl PauseReason {
    /// Its name on the wire and in the group's record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "ADMIN",
            Self::BreakerTripped => "DLQ_CIRCUIT_BREAKER_TRIPPED",
            Self::WriteTimeouts => "DLQ_WRITE_TIMEOUTS",
        }
    }

    /// The reason of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Admin, Self::BreakerTripped, Self::WriteTimeouts];
        all.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether time may end the pause.
    pub const fn may_end_by_itself(self) -> bool {
        !matches!(self, Self::Admin)
    }
}

/// A pause, as the group's record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Why.
    pub reason: PauseReason,
    /// Since when.
    pub since: Ts,
    /// What was said about it, or nothing.
    pub note: String,
}

/// What the group's configs say.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct DeliveryRules {
    /// Paused whatever the record says.
    pub paused: bool,
    /// The circuit breaker.
    pub breaker: BreakerRules,
    /// How long after the start of a pause by the breaker it ends by itself, in ms.
    pub auto_resume_ms: Option<i64>,
}

/// What falls due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryAction {
    /// Record a pause for this reason.
    Pause(PauseReason, Trip),
    /// Record the end of the pause.
    Resume,
}

/// What a group delivers now, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryView {
    /// Why it is paused; none when it runs.
    pub reason: Option<PauseReason>,
    /// Whether the config alone, or first of all, pauses it.
    pub by_config: bool,
    /// What the record holds.
    pub recorded: Option<Pause>,
    /// What was said at the last resume, in this life of the coordinator.
    pub last_resume: Option<String>,
    /// When it resumes by itself.
    pub auto_resume_at: Option<Ts>,
    /// The configs in force.
    pub rules: DeliveryRules,
    /// The window, oldest bucket first.
    pub window: Vec<Bucket>,
}

impl DeliveryView {
    /// `RUNNING` or `PAUSED`.
    pub fn state_name(&self) -> &'static str {
        if self.reason.is_some() {
            "PAUSED"
        } else {
            "RUNNING"
        }
    }

    /// What the whole window counts.
    pub fn counts(&self) -> Counts {
        let buckets = self.window.iter();
        buckets.fold(Counts::default(), |sum, bucket| sum.plus(&bucket.counts))
    }
}

/// The delivery of one share group.
#[derive(Clone, Debug)]
pub struct Delivery {
    rules: DeliveryRules,
    recorded: Option<Pause>,
    /// Raised with each start of a pause: tells locks of before from locks of after.
    generation: u64,
    breaker: Breaker,
    last_resume: Option<String>,
}

impl Delivery {
    /// A group without a pause in its record; its window begins at `now`.
    pub fn new(rules: DeliveryRules, now: Ts) -> Self {
        Self {
            rules,
            recorded: None,
            generation: 0,
            breaker: Breaker::new(rules.breaker, now),
            last_resume: None,
        }
    }

    /// Whether nothing may be acquired.
    pub fn is_paused(&self) -> bool {
        self.rules.paused || self.recorded.is_some()
    }

    /// Whether what is delivered is counted: not while paused, and not where no breaker could trip.
    pub fn is_counting(&self) -> bool {
        !self.is_paused() && self.rules.breaker.can_trip()
    }

    /// The pauses so far.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Why it is paused: ADMIN is shown first.
    pub fn reason(&self) -> Option<PauseReason> {
        let recorded = self.recorded.as_ref().map(|pause| pause.reason);
        if self.rules.paused {
            return Some(PauseReason::Admin);
        }
        recorded
    }

    /// The group's record was applied: it holds this pause. A resume may say why.
    pub fn record_applied(&mut self, now: Ts, pause: Option<&Pause>) {
        if self.recorded.as_ref() == pause {
            return;
        }
        self.change(now, |delivery| delivery.recorded = pause.cloned());
    }

    /// What was said with the resume that comes next, or came just now.
    pub fn resumed_because(&mut self, why: String) {
        self.last_resume = Some(why);
    }

    /// The coordinator begins anew: what only it knew is gone, and its log holds this pause.
    pub fn reloaded(&mut self, now: Ts, pause: Option<&Pause>) {
        self.record_applied(now, pause);
        self.last_resume = None;
        self.breaker.restart(now);
    }

    /// The configs say this from now on.
    pub fn configured(&mut self, now: Ts, rules: DeliveryRules) {
        if self.rules == rules {
            return;
        }
        self.change(now, |delivery| {
            if delivery.is_paused() {
                delivery.rules = rules;
            } else {
                delivery.breaker.set_rules(rules.breaker, now);
                delivery.rules = rules;
            }
        });
    }

    /// Makes a change; where it ends a pause the window begins anew, where it begins one locks of
    /// before count no more.
    fn change(&mut self, now: Ts, make: impl FnOnce(&mut Self)) {
        let before = self.is_paused();
        make(self);
        match (before, self.is_paused()) {
            (false, true) => self.generation += 1,
            (true, false) => self.breaker = Breaker::new(self.rules.breaker, now),
            _ => {}
        }
    }

    /// Counts records acknowledged and letters written; see [`Delivery::is_counting`].
    pub fn sample(&mut self, now: Ts, delivered: i64, dlq_written: i64) {
        if self.is_counting() {
            self.breaker.sample(now, delivered, dlq_written);
        }
    }

    /// Counts records whose letter was given up; nothing while paused.
    pub fn given_up(&mut self, now: Ts, records: i64) {
        if !self.is_paused() {
            self.breaker.given_up(now, records);
        }
    }

    /// When it resumes by itself. Not while the config pauses it too.
    fn auto_resume_at(&self) -> Option<Ts> {
        let pause = self.recorded.as_ref()?;
        let after = self.rules.auto_resume_ms?;
        let by_itself = pause.reason.may_end_by_itself() && !self.rules.paused;
        by_itself.then(|| pause.since.saturating_add(after))
    }

    /// What is due at `now`. It stays due until the record says that it was done.
    pub fn on_deadline(&mut self, now: Ts) -> Option<DeliveryAction> {
        if self.is_paused() {
            let at = self.auto_resume_at()?;
            return (at <= now).then_some(DeliveryAction::Resume);
        }
        let trip = self.breaker.on_deadline(now)?;
        let reason = match trip.cause {
            TripCause::Rate => PauseReason::BreakerTripped,
            TripCause::GivenUp => PauseReason::WriteTimeouts,
        };
        Some(DeliveryAction::Pause(reason, trip))
    }

    /// When [`Delivery::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Option<Ts> {
        if self.is_paused() {
            return self.auto_resume_at();
        }
        self.breaker.next_deadline()
    }

    /// All there is to see at `now`. While paused the window stands as it was.
    pub fn view(&mut self, now: Ts) -> DeliveryView {
        let window = if self.is_paused() {
            self.breaker.counted().copied().collect()
        } else {
            self.breaker.window(now)
        };
        DeliveryView {
            reason: self.reason(),
            by_config: self.rules.paused,
            recorded: self.recorded.clone(),
            last_resume: self.last_resume.clone(),
            auto_resume_at: self.auto_resume_at(),
            rules: self.rules,
            window,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: DeliveryRules = DeliveryRules {
        paused: false,
        breaker: BreakerRules {
            enabled: true,
            threshold: 0.5,
            window_ms: 60,
            buckets: 6,
            min_messages: 2,
            trips_on_given_up: false,
        },
        auto_resume_ms: Some(300),
    };

    fn pause(reason: PauseReason, since: Ts) -> Pause {
        Pause {
            reason,
            since,
            note: String::new(),
        }
    }

    fn tripped() -> Delivery {
        let mut delivery = Delivery::new(RULES, 0);
        delivery.sample(1, 0, 5);
        let Some(DeliveryAction::Pause(reason, trip)) = delivery.on_deadline(10) else {
            panic!("it does not trip");
        };
        delivery.record_applied(10, Some(&pause(reason, trip.at)));
        delivery
    }

    #[test]
    fn a_trip_stays_due_until_it_is_recorded() {
        let mut delivery = Delivery::new(RULES, 0);
        delivery.sample(1, 0, 5);
        let first = delivery.on_deadline(10);
        delivery.sample(11, 100, 0);
        assert!(first.is_some());
        assert_eq!(delivery.on_deadline(500), first);
        assert_eq!(tripped().next_deadline(), Some(310));
    }

    #[test]
    fn a_trip_ends_by_itself_at_the_millisecond() {
        let mut delivery = tripped();
        assert_eq!(delivery.on_deadline(309), None);
        assert_eq!(delivery.on_deadline(310), Some(DeliveryAction::Resume));
        delivery.record_applied(310, None);
        assert_eq!(delivery.reason(), None);
        assert_eq!(delivery.on_deadline(10_000), None);
    }

    #[test]
    fn admin_is_shown_first_and_never_ends_by_itself() {
        let mut delivery = tripped();
        delivery.record_applied(20, Some(&pause(PauseReason::Admin, 20)));
        assert_eq!(delivery.next_deadline(), None);
        let mut delivery = tripped();
        delivery.configured(
            20,
            DeliveryRules {
                paused: true,
                ..RULES
            },
        );
        assert_eq!(delivery.reason(), Some(PauseReason::Admin));
        assert_eq!(delivery.next_deadline(), None);
        delivery.configured(400, RULES);
        assert_eq!(delivery.reason(), Some(PauseReason::BreakerTripped));
        assert_eq!(delivery.on_deadline(400), Some(DeliveryAction::Resume));
    }

    #[test]
    fn nothing_is_counted_while_paused_and_a_resume_begins_a_window() {
        let mut delivery = tripped();
        let shown = delivery.view(50).window;
        delivery.sample(50, 0, 1000);
        delivery.given_up(50, 1000);
        assert_eq!(delivery.view(60).window, shown);
        delivery.record_applied(77, None);
        assert_eq!(delivery.view(77).window.len(), 1);
        assert_eq!(delivery.next_deadline(), None);
        delivery.sample(78, 0, 2);
        assert_eq!(delivery.next_deadline(), Some(87));
    }

    #[test]
    fn without_a_breaker_only_letters_given_up_are_counted() {
        let mut rules = RULES;
        rules.breaker.enabled = false;
        let mut delivery = Delivery::new(rules, 0);
        assert!(!delivery.is_counting());
        delivery.sample(1, 7, 5);
        delivery.given_up(1, 3);
        let counts = delivery.view(1).counts();
        assert_eq!((counts.total(), counts.given_up), (0, 3));
        assert_eq!(delivery.next_deadline(), None);
        delivery.configured(2, RULES);
        assert!(delivery.is_counting());
        assert_eq!(delivery.view(2).counts(), Counts::default());
    }

    #[test]
    fn each_pause_is_a_generation_of_its_own_and_a_change_of_reason_is_none() {
        let mut delivery = tripped();
        assert_eq!(delivery.generation(), 1);
        delivery.record_applied(20, Some(&pause(PauseReason::Admin, 20)));
        delivery.configured(
            21,
            DeliveryRules {
                paused: true,
                ..RULES
            },
        );
        assert_eq!(delivery.generation(), 1);
        delivery.record_applied(22, None);
        assert!(delivery.is_paused());
        delivery.configured(23, RULES);
        assert!(!delivery.is_paused());
        delivery.record_applied(24, Some(&pause(PauseReason::Admin, 24)));
        assert_eq!(delivery.generation(), 2);
    }

    #[test]
    fn a_new_coordinator_begins_a_window_and_keeps_the_pause() {
        let mut delivery = Delivery::new(RULES, 0);
        delivery.sample(1, 0, 5);
        delivery.resumed_because("x".to_owned());
        delivery.reloaded(5, None);
        assert_eq!(delivery.on_deadline(1000), None);
        assert_eq!(delivery.view(5).last_resume, None);
        let mut delivery = tripped();
        delivery.reloaded(20, Some(&pause(PauseReason::BreakerTripped, 10)));
        assert_eq!(delivery.generation(), 1);
        assert_eq!(delivery.next_deadline(), Some(310));
    }

    #[test]
    fn an_overdue_end_is_due_at_once() {
        let mut delivery = Delivery::new(RULES, 1000);
        delivery.reloaded(1000, Some(&pause(PauseReason::WriteTimeouts, 10)));
        assert_eq!(delivery.next_deadline(), Some(310));
        assert_eq!(delivery.on_deadline(1000), Some(DeliveryAction::Resume));
    }

    #[test]
    fn switching_the_breaker_off_leaves_a_tripped_group_paused() {
        let mut delivery = tripped();
        let mut off = RULES;
        off.breaker.enabled = false;
        off.auto_resume_ms = None;
        delivery.configured(20, off);
        assert_eq!(delivery.reason(), Some(PauseReason::BreakerTripped));
        assert_eq!(delivery.next_deadline(), None);
    }

    #[test]
    fn names_are_read_back() {
        for reason in [
            PauseReason::Admin,
            PauseReason::BreakerTripped,
            PauseReason::WriteTimeouts,
        ] {
            assert_eq!(PauseReason::named(reason.name()), Some(reason));
        }
        assert_eq!(PauseReason::named("admin"), None);
    }
}
