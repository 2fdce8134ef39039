//! The shell around the delivery of one share group: a lock, and who may act on what fell due.
//!
//! Samples come from any thread, the ends of buckets from the driver, records and configs from the
//! group's coordinator. A trip is found once: whoever looks at the window first at or after the end of
//! a bucket, a sample included, finds it, and the driver takes it.

use super::delivery::{Delivery, DeliveryAction, DeliveryRules, DeliveryView, Pause};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::Ts;

/// What share partitions have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Whether nothing may be acquired.
    pub paused: bool,
    /// Whether anybody counts what is delivered.
    pub counting: bool,
    /// Told apart by this, locks of before a pause count no more.
    pub generation: u64,
}

impl Gate {
    fn of(delivery: &Delivery) -> Self {
        Self {
            paused: delivery.is_paused(),
            counting: delivery.is_counting(),
            generation: delivery.generation(),
        }
    }

    fn to_bits(self) -> u64 {
        self.generation << 2 | u64::from(self.counting) << 1 | u64::from(self.paused)
    }

    fn from_bits(bits: u64) -> Self {
        Self {
            paused: bits & 1 != 0,
            counting: bits & 2 != 0,
            generation: bits >> 2,
        }
    }
}

/// The delivery of a share group, shared by the threads of a broker.
#[derive(Debug)]
pub struct DeliveryCell {
    inner: Mutex<Delivery>,
    /// The [`Gate`], as the last change has left it: every acknowledgement looks at it, without the lock.
    gate: AtomicU64,
}

impl DeliveryCell {
    /// A cell around `delivery`.
    pub fn new(delivery: Delivery) -> Self {
        Self {
            gate: AtomicU64::new(Gate::of(&delivery).to_bits()),
            inner: Mutex::new(delivery),
        }
    }

    /// What share partitions have to know now.
    pub fn gate(&self) -> Gate {
        Gate::from_bits(self.gate.load(Ordering::Acquire))
    }

    /// Changes the delivery; answers the gate, if that has changed.
    pub fn change(&self, change: impl FnOnce(&mut Delivery)) -> Option<Gate> {
        let mut inner = lock(&self.inner);
        let before = Gate::of(&inner);
        change(&mut inner);
        let after = Gate::of(&inner);
        self.gate.store(after.to_bits(), Ordering::Release);
        (before != after).then_some(after)
    }

    /// See [`Delivery::record_applied`].
    pub fn record_applied(&self, now: Ts, pause: Option<&Pause>) -> Option<Gate> {
        self.change(|delivery| delivery.record_applied(now, pause))
    }

    /// See [`Delivery::configured`].
    pub fn configured(&self, now: Ts, rules: DeliveryRules) -> Option<Gate> {
        self.change(|delivery| delivery.configured(now, rules))
    }

    /// See [`Delivery::sample`]; nothing when a pause has begun since `generation`. Answers the next
    /// deadline, if there is one that there was not before.
    pub fn sample(&self, now: Ts, generation: u64, delivered: i64, dlq_written: i64) -> Option<Ts> {
        self.counted(generation, |delivery| {
            delivery.sample(now, delivered, dlq_written);
        })
    }

    /// See [`Delivery::given_up`]; otherwise as [`DeliveryCell::sample`].
    pub fn given_up(&self, now: Ts, generation: u64, records: i64) -> Option<Ts> {
        self.counted(generation, |delivery| delivery.given_up(now, records))
    }

    fn counted(&self, generation: u64, count: impl FnOnce(&mut Delivery)) -> Option<Ts> {
        let mut inner = lock(&self.inner);
        if inner.generation() != generation {
            return None;
        }
        let before = inner.next_deadline();
        count(&mut inner);
        let after = inner.next_deadline();
        after.filter(|_| after != before)
    }

    /// See [`Delivery::on_deadline`].
    pub fn on_deadline(&self, now: Ts) -> Option<DeliveryAction> {
        lock(&self.inner).on_deadline(now)
    }

    /// See [`Delivery::next_deadline`].
    pub fn next_deadline(&self) -> Option<Ts> {
        lock(&self.inner).next_deadline()
    }

    /// See [`Delivery::view`].
    pub fn view(&self, now: Ts) -> DeliveryView {
        lock(&self.inner).view(now)
    }
}
