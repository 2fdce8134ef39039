//! The share partitions that this process leads, each a [`ShareCell`] over its log and its state.
//!
//! A slot lives for one leader epoch. What it has to persist goes through [`ShareStates`]; its
//! deadlines are with the one driver. No lock of this file is held while a cell works.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ottla_coordinator::share::cell::ShareCell;
use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::session::ClosedSession;
use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::share::types::{CloseReason, Limits, WriteError};
use ottla_coordinator::types::TopicPartition;
use ottla_coordinator::types::Ts;
use ottla_protocol::ErrorCode;
use serde_json::{Value, json};

use crate::broker::Broker;
use crate::clock::Stopwatch;
use crate::cluster::{NOBODY, Partition};
use crate::config::{ConfigChange, OffsetReset, ResourceType, ShareGroupConfig};
use crate::dead_letters;
use crate::deadlines::{Due, Registration};
use crate::deliveries::GroupDelivery;
use crate::error_code::ApiError;
use crate::metrics::share::SlotMetrics;

/// A loaded share partition.
pub struct Slot {
    /// Group, topic and partition.
    pub key: ShareKey,
    /// The records.
    pub partition: Arc<Partition>,
    /// The rules, and who waits.
    pub cell: ShareCell,
    /// What the group delivers.
    pub delivery: Arc<GroupDelivery>,
    /// The broker that led the partition when it was loaded.
    pub leader: i32,
    /// What is measured of it.
    pub metrics: Arc<SlotMetrics>,
    leader_epoch: i32,
    state_epoch: i32,
    log_start: AtomicI64,
    due: Registration,
    broker: Weak<Broker>,
    me: Weak<Self>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.key.group_id, self.partition)
    }
}

/// What a session remembers of a partition, so that a request finds its slot without a search.
pub type Handle = Arc<Slot>;

/// The limits in force for a group.
pub fn limits(broker: &Broker, group: &str) -> Limits {
    limits_of(broker, &broker.group_config(group).share)
}

/// The limits of a group with this configuration.
pub fn limits_of(broker: &Broker, config: &ShareGroupConfig) -> Limits {
    let timeout = config.dlq_write_timeout_ms;
    Limits {
        max_record_locks: config.partition_max_record_locks,
        delivery_count_limit: config.delivery_count_limit.clamp(1, i32::from(i16::MAX)) as i16,
        lock_duration_ms: i64::from(config.record_lock_duration_ms),
        renew_enabled: config.renew_acknowledge_enable,
        dead_letters: !config.dlq_topic_name.is_empty()
            && broker.feature_level("share.version") >= dead_letters::SHARE_VERSION,
        dlq_write_timeout_ms: (timeout > 0).then_some(timeout),
    }
}

/// Groups whose configuration changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Configured {
    /// Perhaps all of them.
    all: bool,
    groups: BTreeSet<String>,
}

impl Configured {
    /// The groups that `changes` concern.
    pub(crate) fn by<'a>(changes: impl IntoIterator<Item = &'a ConfigChange>) -> Self {
        let mut configured = Self::default();
        for change in changes {
            match change.resource {
                ResourceType::Group => {
                    configured.groups.insert(change.name.clone());
                }
                ResourceType::Broker => configured.all = true,
                _ => {}
            }
        }
        configured
    }

    fn concerns(&self, group: &str) -> bool {
        self.all || self.groups.contains(group)
    }
}

impl Slot {
    /// Whether the slot still speaks for its share partition.
    pub fn is_current(&self) -> bool {
        self.cell.closed().is_none()
            && self.partition.leadership().leader_epoch == self.leader_epoch
    }

    /// Tells the cell where the log starts now, if that has changed.
    pub fn follow_log_start(&self) {
        let start = self.partition.log.start_offset();
        if self.log_start.fetch_max(start, Ordering::AcqRel) < start {
            self.cell.log_start_moved(start);
        }
    }

    /// Persists what the cell has proposed, hands on what it reports, then sets the next deadline. To be
    /// called after each operation on the cell.
    pub fn settle(&self, broker: &Broker, now: Ts, limits: &Limits) {
        let epochs = (self.state_epoch, self.leader_epoch);
        let (mut fenced, mut failed) = (false, false);
        // What is reported was acquired in this generation at the latest.
        let gate = self.delivery.gate();
        let reports = self.cell.drain(now, limits, &mut |write| {
            let done = broker.share_states.write(broker, &self.key, epochs, write);
            failed |= done.is_err();
            fenced |= matches!(done, Err(WriteError::Fenced | WriteError::Unknown));
            if done.is_ok() {
                let letters = &broker.dead_letters;
                letters.persisted(&self.key, self.state_epoch, write);
            }
            done
        });
        if reports.expired > 0 {
            broker.metrics.share_lock_timeouts.inc_by(reports.expired);
            self.metrics.lock_timeouts.inc_by(reports.expired);
        }
        let (delivered, written) = (reports.delivered, reports.written);
        self.delivery.sample(broker, now, gate, delivered, written);
        if let Some(me) = self.me.upgrade() {
            broker.dead_letters.report(broker, &me, &reports, failed);
        }
        if fenced {
            broker.shares.close(broker, self, CloseReason::Fenced);
            return;
        }
        self.due
            .set(&broker.deadlines, || self.cell.next_deadline(limits));
    }

    /// Which life of the share partition's state it was loaded from.
    pub(crate) fn state_epoch(&self) -> i32 {
        self.state_epoch
    }

    /// What is due by now, under the limits as they are now.
    fn expire(&self, broker: &Broker, now: Ts) {
        let limits = limits(broker, &self.key.group_id);
        self.cell.on_deadline(now, &limits);
        self.settle(broker, now, &limits);
    }

    /// Tells the cell whether the group is paused. Under the lock of all slots, so that of two that
    /// tell it the later one does not tell the older state.
    fn follow_delivery(&self) {
        let gate = self.delivery.gate();
        self.cell.set_delivery(gate.paused, gate.generation);
    }

    /// A member's session ended: its records are released.
    fn release(&self, broker: &Broker, member: &str) {
        let now = broker.clock.now();
        let limits = limits(broker, &self.key.group_id);
        self.cell.release_member(now, member, &limits);
        self.settle(broker, now, &limits);
    }
}

impl Due for Slot {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.broker.upgrade()?;
        self.expire(&broker, now);
        let limits = limits(&broker, &self.key.group_id);
        self.cell.next_deadline(&limits)
    }
}

/// All loaded share partitions.
#[derive(Debug, Default)]
pub struct Shares {
    slots: Mutex<HashMap<ShareKey, Arc<Slot>>>,
}

impl Shares {
    fn slots(&self) -> MutexGuard<'_, HashMap<ShareKey, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a share partition that broker `node` leads, loaded if it is not yet.
    pub fn get(
        &self,
        broker: &Arc<Broker>,
        node: i32,
        key: &ShareKey,
        partition: &Arc<Partition>,
    ) -> Result<Arc<Slot>, ApiError> {
        if partition.leader() != node {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
        }
        if let Some(slot) = self.loaded(broker, key) {
            return Ok(slot);
        }
        let slot = load(broker, key, partition)?;
        // Before anybody else can find the slot, and acquire from it.
        slot.due.begin(&broker.deadlines, &slot);
        let mut slots = self.slots();
        // Under the lock under which a pause is told to those that are loaded.
        slot.follow_delivery();
        // Another request may have loaded it meanwhile: the first one stays.
        let kept = Arc::clone(
            slots
                .entry(key.clone())
                .or_insert_with(|| Arc::clone(&slot)),
        );
        drop(slots);
        if Arc::ptr_eq(&kept, &slot) {
            self.check_loaded(broker, &slot)?;
        } else {
            slot.due.end(&broker.deadlines);
        }
        Ok(kept)
    }

    /// A slot that others can find now: if the offsets were altered while it was loaded, it goes
    /// again; and what the load found to be done is written.
    fn check_loaded(&self, broker: &Broker, slot: &Slot) -> Result<(), ApiError> {
        let summary = broker.share_states.summary(broker, &slot.key)?;
        if summary.is_none_or(|now| now.state_epoch != slot.state_epoch) {
            self.close(broker, slot, CloseReason::Fenced);
            return Err(CloseReason::Fenced.into());
        }
        let limits = limits(broker, &slot.key.group_id);
        slot.settle(broker, broker.clock.now(), &limits);
        Ok(())
    }

    /// The group is paused, or no more: its share partitions hear of it, all before this returns.
    pub fn set_delivery(&self, delivery: &GroupDelivery) {
        let slots = self.slots();
        let of_group = slots
            .values()
            .filter(|slot| slot.key.group_id == delivery.group);
        of_group.for_each(|slot| slot.follow_delivery());
    }

    /// The slot of a share partition, if it is loaded and current.
    pub fn loaded(&self, broker: &Broker, key: &ShareKey) -> Option<Arc<Slot>> {
        let slot = self.slots().get(key).cloned()?;
        if slot.is_current() {
            return Some(slot);
        }
        self.close(broker, &slot, CloseReason::NotLeader);
        let mut slots = self.slots();
        if slots.get(key).is_some_and(|held| Arc::ptr_eq(held, &slot)) {
            slots.remove(key);
        }
        None
    }

    /// The slot that acknowledgements at broker `node`, the leader, are for. Where it was closed since
    /// they hear why, until a fetch has loaded the share partition again.
    pub fn held(&self, broker: &Broker, node: i32, key: &ShareKey) -> Result<Arc<Slot>, ApiError> {
        let slot = self.slots().get(key).filter(|s| s.leader == node).cloned();
        let Some(slot) = slot else {
            let message = "This server does not host this topic-partition.";
            return Err(ApiError::new(
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                message,
            ));
        };
        if !slot.is_current() {
            self.close(broker, &slot, CloseReason::NotLeader);
        }
        match slot.cell.closed() {
            Some(reason) => Err(reason.into()),
            None => Ok(slot),
        }
    }

    /// Ends a slot: whoever waits for it is answered, and the next fetch loads the state anew.
    pub fn close(&self, broker: &Broker, slot: &Slot, reason: CloseReason) {
        slot.cell.close(reason);
        slot.due.end(&broker.deadlines);
        broker.dead_letters.source_closed(slot);
    }

    fn close_where(&self, broker: &Broker, reason: CloseReason, which: impl Fn(&Slot) -> bool) {
        let closing: Vec<_> = self
            .slots()
            .values()
            .filter(|s| which(s))
            .cloned()
            .collect();
        for slot in closing {
            self.close(broker, &slot, reason);
        }
    }

    /// As [`Shares::close_where`], where nobody shall load them again.
    fn drop_where(&self, broker: &Broker, reason: CloseReason, which: impl Fn(&Slot) -> bool) {
        self.close_where(broker, reason, &which);
        self.slots().retain(|_, slot| !which(slot));
    }

    /// The state of these share partitions was changed from outside (fenced) or goes (group deleted):
    /// they are loaded anew.
    pub fn invalidate(
        &self,
        broker: &Broker,
        group: &str,
        partitions: &[TopicPartition],
        reason: CloseReason,
    ) {
        self.close_where(broker, reason, |slot| {
            &*slot.key.group_id == group && partitions.contains(&slot.key.partition)
        });
    }

    /// A group is gone.
    pub fn group_deleted(&self, broker: &Broker, group: &str) {
        self.drop_where(broker, CloseReason::GroupDeleted, |slot| {
            &*slot.key.group_id == group
        });
        let of_group = |key: &ShareKey| &*key.group_id == group;
        broker.dead_letters.forget(of_group);
        broker.metrics.share.group_deleted(group);
    }

    /// A topic is gone.
    pub fn topic_deleted(&self, broker: &Broker, id: ottla_coordinator::types::Uuid) {
        self.drop_where(broker, CloseReason::TopicDeleted, |s| {
            s.key.partition.topic_id == id
        });
        broker.metrics.share.topic_deleted(id);
    }

    /// Leaders have changed: slots of former leaders go.
    pub fn leaders_changed(&self, broker: &Broker) {
        self.close_where(broker, CloseReason::NotLeader, |slot| !slot.is_current());
    }

    /// The log of `partition` starts later now.
    pub fn log_start_moved(&self, broker: &Broker, partition: &Partition) {
        let slots: Vec<_> = self
            .slots()
            .values()
            .filter(|s| std::ptr::eq(&raw const *s.partition, partition))
            .cloned()
            .collect();
        let now = broker.clock.now();
        for slot in slots {
            let limits = limits(broker, &slot.key.group_id);
            slot.follow_log_start();
            slot.settle(broker, now, &limits);
        }
    }

    /// A configuration changed: deadlines are looked at anew, and so does whoever waits.
    pub(crate) fn configs_changed(&self, broker: &Broker, groups: &Configured) {
        let slots: Vec<_> = self.slots().values().cloned().collect();
        let now = broker.clock.now();
        for slot in slots {
            if groups.concerns(&slot.key.group_id) {
                slot.expire(broker, now);
            }
            slot.cell.waiters().wake_all();
        }
    }

    /// The member of a session that ended gives back what it holds of one partition at broker `node`.
    pub fn release_member(&self, broker: &Broker, node: i32, key: &ShareKey, member: &str) {
        // The session's handle may be of an earlier epoch; its locks ended with it.
        if let Some(slot) = self.loaded(broker, key).filter(|slot| slot.leader == node) {
            slot.release(broker, member);
        }
    }

    /// A session that was opened at broker `node` ended.
    pub fn release_session(&self, broker: &Broker, node: i32, session: &ClosedSession<Handle>) {
        for listed in session.partitions.iter() {
            let key = ShareKey {
                group_id: session.group.as_str().into(),
                partition: listed.partition,
            };
            self.release_member(broker, node, &key, &session.member);
        }
    }

    /// The loaded share partitions that speak for theirs.
    pub fn current(&self) -> Vec<Arc<Slot>> {
        let slots = self.slots();
        let current = slots.values().filter(|slot| slot.is_current());
        current.cloned().collect()
    }

    /// Every in-flight record of a group, for people who look.
    pub fn inspect(&self, broker: &Broker, group: &str) -> Vec<Value> {
        let mut slots: BTreeMap<(String, i32), Arc<Slot>> = BTreeMap::new();
        let of_group = |s: &&Arc<Slot>| &*s.key.group_id == group && s.is_current();
        for slot in self.slots().values().filter(of_group) {
            slots.insert(
                (slot.partition.topic.to_string(), slot.partition.index),
                Arc::clone(slot),
            );
        }
        let describe = |((topic, partition), slot): ((String, i32), Arc<Slot>)| {
            let records: Vec<Value> = slot
                .cell
                .in_flight()
                .into_iter()
                .map(|r| {
                    json!({
                        "first": r.first, "last": r.last, "state": format!("{:?}", r.state),
                        "pending": r.pending.map(|p| format!("{p:?}")), "member": r.member,
                        "delivery_count": r.delivery_count,
                        "lock_expires_in_ms": r.deadline.map(|d| d - broker.clock.now()),
                    })
                })
                .collect();
            json!({
                "topic": topic, "partition": partition, "start_offset": slot.cell.start_offset(),
                "in_flight": records,
                "pending_letters": broker.dead_letters.inspect(&slot, broker.clock.now()),
            })
        };
        slots.into_iter().map(describe).collect()
    }
}

fn load(
    broker: &Arc<Broker>,
    key: &ShareKey,
    partition: &Arc<Partition>,
) -> Result<Arc<Slot>, ApiError> {
    let watch = Stopwatch::start();
    let leadership = partition.leadership();
    if leadership.leader == NOBODY {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
    }
    let config = broker.group_config(&key.group_id);
    let mut state = broker
        .share_states
        .read(broker, key, leadership.leader_epoch)?;
    let log_start = partition.log.start_offset();
    // A negative offset other than -1 can only be stored by hand; the reset policy decides there too.
    let start = if state.start_offset < 0 {
        reset_offset(broker, partition, config.share.auto_offset_reset)
    } else {
        state.start_offset
    };
    state.start_offset = start;
    let state_epoch = state.state_epoch;
    let now = broker.clock.now();
    let limits = limits_of(broker, &config.share);
    let records = SharePartition::load(&state, start.max(log_start), now, &limits);
    broker.metrics.share.load_time.observe(watch.ms());
    Ok(Arc::new_cyclic(|me| Slot {
        key: key.clone(),
        partition: Arc::clone(partition),
        cell: ShareCell::new(records),
        delivery: broker.deliveries.get(broker, &key.group_id),
        leader: leadership.leader,
        metrics: broker.metrics.share.slot(key, &partition.topic),
        leader_epoch: leadership.leader_epoch,
        state_epoch,
        log_start: AtomicI64::new(log_start),
        due: Registration::default(),
        broker: Arc::downgrade(broker),
        me: Weak::clone(me),
    }))
}

/// Where a share partition begins that has no start offset yet (`share.auto.offset.reset`).
fn reset_offset(broker: &Broker, partition: &Partition, policy: OffsetReset) -> i64 {
    let log = &partition.log;
    match policy {
        OffsetReset::Earliest => log.start_offset(),
        OffsetReset::Latest => log.end_offset(),
        OffsetReset::ByDuration(ms) => {
            let since = broker.clock.now().saturating_sub(ms).max(0);
            log.offset_for_timestamp(since)
                .map_or_else(|| log.end_offset(), |(offset, _)| offset)
        }
    }
}
