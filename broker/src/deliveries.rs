//! What share groups deliver: paused or running, and the circuit breaker of their dead letters.
//!
//! Truth is the group's record, as its coordinator has applied it, and the group's configs. Here is
//! what follows from it, for share partitions to read. A pause is set here first and then in every
//! loaded share partition of the group; one that is loaded meanwhile reads it here, under the same lock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use ottla_coordinator::group::records::{Pause, PauseReason, ShareGroupValue};
use ottla_coordinator::group::{GroupCoordinator, ResumeOf};
use ottla_coordinator::share::breaker::BreakerRules;
use ottla_coordinator::share::delivery::{Delivery, DeliveryAction, DeliveryRules, DeliveryView};
use ottla_coordinator::share::delivery_cell::{DeliveryCell, Gate};
use ottla_coordinator::types::Ts;
use ottla_protocol::ErrorCode;

use crate::broker::Broker;
use crate::cluster::image::CONSUMER_OFFSETS;
use crate::config::{ResourceType, ShareGroupConfig};
use crate::deadlines::{Due, Registration};
use crate::error_code::ApiError;
use crate::features::SHARE_PAUSE_VERSION;
use crate::groups::Shard;

mod metrics;

pub use metrics::DeliveryMetrics;

/// The config that pauses a group.
pub const PAUSED_CONFIG: &str = "ottla.share.delivery.paused";
/// How long after a failure to record a pause, or its end, it is tried again.
const RETRY_MS: i64 = 1000;
/// Before a group's coordinator has said anything about it.
const NO_HOME: i32 = -1;

/// The delivery of one share group.
pub struct GroupDelivery {
    /// The group.
    pub group: Arc<str>,
    cell: DeliveryCell,
    /// The partition of `__consumer_offsets` whose records speak of the group.
    home: AtomicI32,
    due: Registration,
    broker: Weak<Broker>,
}

impl fmt::Debug for GroupDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delivery of {}: {:?}", self.group, self.cell.gate())
    }
}

impl GroupDelivery {
    /// What share partitions have to know now.
    pub fn gate(&self) -> Gate {
        self.cell.gate()
    }

    /// All there is to see.
    pub fn view(&self, now: Ts) -> DeliveryView {
        self.cell.view(now)
    }

    /// Counts records acknowledged and records that became letters, all of them acquired before or
    /// behind this gate; nothing where nobody counts.
    pub fn sample(&self, broker: &Broker, now: Ts, gate: Gate, delivered: u64, written: u64) {
        if !gate.counting || (delivered == 0 && written == 0) {
            return;
        }
        let (delivered, written) = (delivered as i64, written as i64);
        let counted = self.cell.sample(now, gate.generation, delivered, written);
        if let Some(_earlier) = counted {
            self.set_deadline(broker);
        }
    }

    /// Counts records whose letter was given up; none of an unknown generation, whose records were
    /// acquired before the share partition was loaded.
    pub fn given_up(&self, broker: &Broker, now: Ts, generation: Option<u64>, records: u64) {
        let Some(generation) = generation else {
            return;
        };
        let counted = self.cell.given_up(now, generation, records as i64);
        if let Some(_earlier) = counted {
            self.set_deadline(broker);
        }
    }

    /// What was said about a resume that was just recorded.
    pub fn resumed_because(&self, why: &str) {
        tracing::info!(group = %self.group, reason = why, "share group resumed");
        self.cell
            .change(|delivery| delivery.resumed_because(why.to_owned()));
    }

    fn set_deadline(&self, broker: &Broker) {
        self.due
            .set(&broker.deadlines, || self.cell.next_deadline());
    }

    /// Follows up on a change: share partitions hear of it, the next deadline is set.
    fn changed(&self, broker: &Broker, gate: Option<Gate>) {
        if gate.is_some() {
            broker.shares.set_delivery(self);
        }
        self.set_deadline(broker);
    }

    fn shard(&self, broker: &Arc<Broker>) -> Result<Arc<Shard>, ApiError> {
        let partition = broker.internal_partition(CONSUMER_OFFSETS, &self.group)?;
        broker.groups.shard(broker, &partition)
    }

    /// Has the coordinator record what is due. Asked anew under the coordinator's lock: a coordinator
    /// that was replayed just now has begun a new window.
    fn carry_out(&self, broker: &Arc<Broker>) -> Result<(), ApiError> {
        let done = self.shard(broker)?.change(broker, |machine, now| {
            let action = self.cell.on_deadline(now);
            let plan = match &action {
                Some(DeliveryAction::Pause(reason, _)) => {
                    machine.share_pause(now, &self.group, *reason, "")?
                }
                Some(DeliveryAction::Resume) => machine
                    .share_resume(&self.group, ResumeOf::Automatic, "")?
                    .map(drop),
                None => ottla_coordinator::group::plan::Plan::answer(()),
            };
            Ok(plan.map(|()| action))
        })?;
        match done {
            Some(DeliveryAction::Pause(reason, trip)) => {
                let (counts, rules) = (trip.counts, self.cell.view(trip.at).rules.breaker);
                if reason == PauseReason::BreakerTripped {
                    broker.metrics.deliveries.tripped(&self.group);
                }
                tracing::warn!(
                    group = %self.group,
                    reason = reason.name(),
                    rate = counts.rate(),
                    threshold = rules.threshold,
                    delivered = counts.delivered,
                    dead_letters = counts.dlq_written,
                    given_up = counts.given_up,
                    window_ms = rules.window_ms,
                    "share group paused: look at its dead letters, then resume it"
                );
            }
            Some(DeliveryAction::Resume) => self.resumed_because("auto"),
            None => {}
        }
        Ok(())
    }

    /// The config that pauses the group went from true to false: a pause by an administrator ends.
    fn end_admin_pause(&self, broker: &Arc<Broker>) -> Result<(), ApiError> {
        self.shard(broker)?.change(broker, |machine, _| {
            Ok(machine.share_resume(&self.group, ResumeOf::Admin, "")?)
        })?;
        if !self.gate().paused {
            self.resumed_because(PAUSED_CONFIG);
        }
        Ok(())
    }
}

impl Due for GroupDelivery {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.broker.upgrade()?;
        if self.cell.on_deadline(now).is_some()
            && let Err(error) = self.carry_out(&broker)
        {
            if error.code == ErrorCode::GROUP_ID_NOT_FOUND {
                // Nobody to pause.
                self.cell.change(|delivery| delivery.reloaded(now, None));
            } else {
                tracing::warn!(group = %self.group, %error, "a pause, or its end, could not be recorded; it is tried again");
                return Some(now + RETRY_MS);
            }
        }
        self.cell.next_deadline()
    }
}

/// What the configs say of a group. Where pausing is not supported nothing pauses.
fn rules(broker: &Broker, config: &ShareGroupConfig) -> DeliveryRules {
    let supported = broker.feature_level(SHARE_PAUSE_VERSION) > 0;
    let auto_resume = supported && config.dlq_breaker_auto_resume_enable;
    DeliveryRules {
        paused: supported && config.delivery_paused,
        breaker: BreakerRules {
            enabled: supported && config.dlq_breaker_enable,
            threshold: config.dlq_breaker_threshold,
            window_ms: config.dlq_breaker_window_ms,
            buckets: usize::try_from(config.dlq_breaker_window_buckets).unwrap_or(1),
            min_messages: config.dlq_breaker_min_messages,
            trips_on_given_up: supported && config.dlq_timeout_pause_enable,
        },
        auto_resume_ms: auto_resume.then_some(config.dlq_breaker_auto_resume_ms),
    }
}

/// The delivery of every share group that has a record, or a loaded share partition.
#[derive(Debug, Default)]
pub struct Deliveries {
    groups: Mutex<BTreeMap<Arc<str>, Arc<GroupDelivery>>>,
    /// Held while configs take effect: share partitions hear of one pause before the next one ends.
    configuring: Mutex<()>,
    broker: OnceLock<Weak<Broker>>,
}

impl Deliveries {
    fn groups(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<GroupDelivery>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<GroupDelivery>> {
        self.groups().values().cloned().collect()
    }

    /// To be called once, before anything else.
    pub fn begin(&self, broker: &Arc<Broker>) {
        let _ = self.broker.set(Arc::downgrade(broker));
    }

    /// The delivery of a group, as its configs say it where nothing else is known.
    pub fn get(&self, broker: &Broker, group: &str) -> Arc<GroupDelivery> {
        let mut groups = self.groups();
        if let Some(delivery) = groups.get(group) {
            return Arc::clone(delivery);
        }
        let rules = rules(broker, &broker.group_config(group).share);
        let group: Arc<str> = group.into();
        let delivery = Arc::new(GroupDelivery {
            group: Arc::clone(&group),
            cell: DeliveryCell::new(Delivery::new(rules, broker.clock.now())),
            home: AtomicI32::new(NO_HOME),
            due: Registration::default(),
            broker: self.broker.get().cloned().unwrap_or_default(),
        });
        delivery.due.begin(&broker.deadlines, &delivery);
        groups.insert(group, Arc::clone(&delivery));
        delivery
    }

    /// The coordinator has applied a record of the group, under its lock; none is its tombstone.
    pub fn record_applied(
        &self,
        broker: &Broker,
        home: i32,
        group: &str,
        value: Option<&ShareGroupValue>,
    ) {
        let Some(value) = value else {
            let removed = self.groups().remove(group);
            broker.metrics.deliveries.group_deleted(group);
            if let Some(delivery) = removed {
                delivery.due.end(&broker.deadlines);
            }
            return;
        };
        let delivery = self.get(broker, group);
        delivery.home.store(home, Ordering::Relaxed);
        let gate = delivery
            .cell
            .record_applied(broker.clock.now(), value.pause.as_ref());
        delivery.changed(broker, gate);
    }

    /// A coordinator has been replayed: what its log says holds, and every window begins anew.
    pub fn reloaded(&self, broker: &Broker, home: i32, machine: &GroupCoordinator) {
        let held: BTreeMap<&str, Option<&Pause>> = machine.share_pauses().collect();
        for &group in held.keys() {
            let delivery = self.get(broker, group);
            delivery.home.store(home, Ordering::Relaxed);
        }
        let now = broker.clock.now();
        for delivery in self.all() {
            if delivery.home.load(Ordering::Relaxed) != home {
                continue;
            }
            let pause = held.get(&*delivery.group).copied().flatten();
            let gate = delivery.cell.change(|inner| inner.reloaded(now, pause));
            delivery.changed(broker, gate);
        }
    }

    /// Configs or features have changed.
    pub fn configs_changed(&self, broker: &Broker) {
        let _one = self
            .configuring
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = broker.clock.now();
        for delivery in self.all() {
            let rules = rules(broker, &broker.group_config(&delivery.group).share);
            let before = delivery.cell.view(now).by_config;
            let gate = delivery.cell.configured(now, rules);
            delivery.changed(broker, gate);
            if !before || rules.paused {
                continue;
            }
            let Some(strong) = delivery.broker.upgrade() else {
                return;
            };
            match delivery.end_admin_pause(&strong) {
                Err(error) if error.code != ErrorCode::GROUP_ID_NOT_FOUND => {
                    tracing::warn!(group = %delivery.group, %error, "the group stays paused: resume it");
                }
                _ => {}
            }
        }
    }

    /// A group that needs the feature of pausing, and why: paused, or with a breaker that is on. Its
    /// configs count, whether it exists or not.
    pub fn in_use(&self, broker: &Broker) -> Option<String> {
        let paused = self
            .all()
            .into_iter()
            .find(|delivery| delivery.gate().paused);
        if let Some(delivery) = paused {
            return Some(format!("share group {} is paused", delivery.group));
        }
        let image = broker.cluster.image();
        let named = image.configs.stored_names(ResourceType::Group);
        let uses = |group: &str| {
            let rules = rules(broker, &broker.group_config(group).share);
            if rules.paused {
                return Some("is paused by its config");
            }
            let breaker = &rules.breaker;
            let on = breaker.enabled || breaker.trips_on_given_up;
            on.then_some("has its circuit breaker enabled")
        };
        if let Some(what) = uses("") {
            return Some(format!(
                "every share group without configs of its own {what}"
            ));
        }
        named
            .into_iter()
            .find_map(|group| Some(format!("share group {group} {}", uses(group)?)))
    }

    /// Every group with its delivery at `now`, for metrics.
    pub fn views(&self, now: Ts) -> Vec<(Arc<str>, DeliveryView)> {
        let each = self.all().into_iter();
        each.map(|d| (Arc::clone(&d.group), d.view(now))).collect()
    }
}
