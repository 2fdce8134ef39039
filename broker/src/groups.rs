//! The group coordinators: one shard a partition of `__consumer_offsets`.
//!
//! A request becomes a plan of the pure machine; its records are appended as one batch, applied, and
//! only then answered. What a plan has to do elsewhere (state of share partitions) follows without
//! the shard's lock. A shard whose partition got a new leader epoch is replayed from the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ottla_coordinator::group::consumer::request::ConsumerGroupConfig;
use ottla_coordinator::group::plan::{
    GroupEffect, GroupErrorKind, Plan, ShareGroupConfig, ShareGroupConfigs,
};
use ottla_coordinator::group::records::GroupRecord;
use ottla_coordinator::group::{GroupCoordinator, GroupCounts, GroupListing};
use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::types::{TopicPartition, Ts, Uuid};
use ottla_protocol::ErrorCode;

use crate::broker::{Broker, Topics};
use crate::cluster::image::CONSUMER_OFFSETS;
use crate::cluster::{NOBODY, Partition};
use crate::deadlines::{Due, Registration};
use crate::error_code::ApiError;
use crate::records;

mod classic;
mod consumer;
mod effects;
mod offsets;
mod parked;

pub use classic::classic_config;
pub use consumer::consumer_group_config;
use parked::Parked;

/// The groups of one partition of `__consumer_offsets`.
pub struct Shard {
    partition: Arc<Partition>,
    state: Mutex<Loaded>,
    parked: Parked,
    due: Registration,
    broker: Weak<Broker>,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "groups of {:?}", self.partition)
    }
}

#[derive(Debug)]
struct Loaded {
    /// The leader epoch that the log was replayed in.
    epoch: i32,
    machine: GroupCoordinator,
    /// By how much sessions have been held so far.
    held: i64,
}

impl Loaded {
    /// Lets sessions live on for as long as they were held since.
    fn hold_sessions(&mut self, broker: &Broker) {
        let held = broker.clock.held();
        if held != self.held {
            self.machine.shift_sessions(held - self.held);
            self.held = held;
        }
    }
}

/// A plan whose records could not be appended, and what it was to bring about.
struct Uncommitted {
    error: ApiError,
    effects: Vec<GroupEffect>,
}

/// Share partitions that could not be initialised, and why.
pub type Failures = Vec<(TopicPartition, ApiError)>;

/// Group configurations by group, as the machine asks for them.
struct Configs<'a>(&'a Broker);

impl ShareGroupConfigs for Configs<'_> {
    fn share(&self, group_id: &str) -> ShareGroupConfig {
        share_group_config(self.0, group_id)
    }

    fn consumer(&self, group_id: &str) -> ConsumerGroupConfig {
        consumer_group_config(self.0, group_id)
    }
}

/// What a share group's coordinator runs with.
pub fn share_group_config(broker: &Broker, group: &str) -> ShareGroupConfig {
    let own = broker.group_config(group);
    let bounds = &broker.config().share_groups;
    ShareGroupConfig {
        session_timeout_ms: own.share.session_timeout_ms,
        heartbeat_interval_ms: own.share.heartbeat_interval_ms,
        assignment_interval_ms: own.share.assignment_interval_ms,
        max_size: bounds.max_size,
        initialize_retry_interval_ms: bounds.initialize_retry_interval_ms,
    }
}

impl Shard {
    /// The machine, replayed if the partition has changed hands since.
    fn lock(&self, broker: &Broker) -> Result<MutexGuard<'_, Loaded>, ApiError> {
        let leadership = self.partition.leadership();
        if leadership.leader == NOBODY {
            self.parked.take_all().send_away();
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE.into());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.epoch == leadership.leader_epoch {
            state.hold_sessions(broker);
            return Ok(state);
        }
        let held = broker.clock.held();
        let mut machine = GroupCoordinator::new();
        records::replay_groups(&self.partition.log, |record| machine.apply(&record))?;
        let image = Topics(&broker.cluster);
        let now = broker.clock.now();
        let interrupted = machine.on_loaded(now, &Configs(broker), &image);
        offsets::begin(&mut machine, broker, now);
        let orphaned = machine.orphaned_topics(&image);
        broker
            .metrics
            .offsets
            .changed(state.machine.offsets().len(), machine.offsets().len());
        let home = self.partition.index;
        broker.deliveries.reloaded(broker, home, &machine);
        *state = Loaded {
            epoch: leadership.leader_epoch,
            machine,
            held,
        };
        let orphans = self.parked.take_all();
        drop(state);
        orphans.send_away();
        self.set_deadline(broker);
        self.carry_out(broker, interrupted)?;
        if !orphaned.is_empty() {
            self.topics_deleted(broker, &orphaned)?;
        }
        self.forget_orphans(broker)?;
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The topic was deleted, and the groups with it. Nobody leads the partition any more, and its
    /// log takes nothing.
    fn retire(&self, broker: &Broker) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let offsets = state.machine.offsets().len();
        state.machine = GroupCoordinator::new();
        let home = self.partition.index;
        broker.deliveries.reloaded(broker, home, &state.machine);
        let orphans = self.parked.take_all();
        drop(state);
        broker.metrics.offsets.changed(offsets, 0);
        orphans.send_away();
    }

    /// A question to the machine.
    pub fn ask<T>(
        &self,
        broker: &Broker,
        question: impl FnOnce(&GroupCoordinator) -> T,
    ) -> Result<T, ApiError> {
        Ok(question(&self.lock(broker)?.machine))
    }

    /// Plans a change, commits it, carries out what follows, and answers.
    pub fn change<R>(
        &self,
        broker: &Broker,
        plan: impl FnOnce(&mut GroupCoordinator, Ts) -> Result<Plan<R>, ApiError>,
    ) -> Result<R, ApiError> {
        self.change_with(broker, plan).map(|(response, _)| response)
    }

    /// As [`Shard::change`]; also answers which share partitions could not be initialised, and why.
    pub fn change_with<R>(
        &self,
        broker: &Broker,
        plan: impl FnOnce(&mut GroupCoordinator, Ts) -> Result<Plan<R>, ApiError>,
    ) -> Result<(R, Failures), ApiError> {
        let committed = {
            let mut state = self.lock(broker)?;
            let plan = plan(&mut state.machine, broker.clock.now())?;
            let deleted = offsets::removed(&plan.records);
            let done = self.commit(broker, &mut state, plan);
            if done.is_ok() {
                broker.metrics.offsets.deletions.inc_by(deleted as u64);
            }
            done
        };
        let (response, effects) = committed.map_err(|failed| self.give_up(*failed))?;
        self.set_deadline(broker);
        let failures = self.carry_out(broker, effects)?;
        Ok((response, failures))
    }

    fn commit<R>(
        &self,
        broker: &Broker,
        state: &mut Loaded,
        plan: Plan<R>,
    ) -> Result<(R, Vec<GroupEffect>), Box<Uncommitted>> {
        if !plan.records.is_empty() {
            if let Err(error) = self.append(broker, state.epoch, &plan.records) {
                let effects = plan.effects;
                return Err(Box::new(Uncommitted { error, effects }));
            }
            let before = state.machine.offsets().len();
            for record in &plan.records {
                state.machine.apply(record);
                if let GroupRecord::ShareGroup { group_id, value } = record {
                    let home = self.partition.index;
                    let deliveries = &broker.deliveries;
                    deliveries.record_applied(broker, home, group_id, value.as_ref());
                }
            }
            let assigned = plan.records.iter().filter(|record| record.is_assignment());
            let rebalances = assigned.count() as u64;
            broker.metrics.consumer_rebalances.inc_by(rebalances);
            let assigned = plan.records.iter();
            let assigned = assigned.filter(|record| record.is_share_assignment());
            let rebalances = assigned.count() as u64;
            broker.metrics.share.rebalances.inc_by(rebalances);
            let after = state.machine.offsets().len();
            broker.metrics.offsets.changed(before, after);
        }
        state.machine.set_timers(&plan.timers);
        Ok((plan.response, plan.effects))
    }

    fn append(&self, broker: &Broker, epoch: i32, records: &[GroupRecord]) -> Result<(), ApiError> {
        let leadership = self.partition.leadership();
        if leadership.leader_epoch != epoch {
            return Err(ErrorCode::NOT_COORDINATOR.into());
        }
        if !broker.cluster.has_min_isr(&self.partition) {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE.into());
        }
        let now = broker.clock.now();
        let batch = records::group_batch(records, now)?;
        let appended = batch.append(&self.partition.log, leadership.leader_epoch, now);
        appended.map(drop).map_err(|error| {
            let error = ApiError::from(error);
            // What clients of a coordinator know how to live with: they look for it again.
            match error.code {
                ErrorCode::KAFKA_STORAGE_ERROR => ErrorCode::NOT_COORDINATOR.into(),
                _ => error,
            }
        })
    }

    fn topics_deleted(&self, broker: &Broker, gone: &BTreeSet<Uuid>) -> Result<(), ApiError> {
        self.change(broker, |machine, _| Ok(machine.topics_deleted(gone)))
    }

    fn set_deadline(&self, broker: &Broker) {
        self.due
            .set(&broker.deadlines, || self.next_deadline(broker));
    }

    fn next_deadline(&self, broker: &Broker) -> Option<Ts> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.hold_sessions(broker);
        state.machine.next_deadline()
    }
}

impl Due for Shard {
    fn on_deadline(&self, _now: Ts) -> Option<Ts> {
        let broker = self.broker.upgrade()?;
        loop {
            let expired = self.lock(&broker).map(|mut state| {
                let (now, classic) = (broker.clock.now(), classic_config(&broker));
                let image = Topics(&broker.cluster);
                let plan = state.machine.on_deadline(now, &classic, &image)?;
                let expired = offsets::removed(&plan.records);
                let done = self.commit(&broker, &mut state, plan);
                if done.is_ok() {
                    broker.metrics.offsets.expirations.inc_by(expired as u64);
                }
                Some(done)
            });
            let carried = expired.and_then(|done| match done {
                Some(Ok(((), effects))) => self.carry_out(&broker, effects).map(|_| true),
                Some(Err(failed)) => Err(self.give_up(*failed)),
                None => Ok(false),
            });
            match carried {
                Ok(true) => {}
                Ok(false) => return self.next_deadline(&broker),
                Err(error) => {
                    tracing::warn!(%error, "an expired member could not be removed; it is tried again");
                    return Some(broker.clock.now() + 1000);
                }
            }
        }
    }
}

/// A share partition's key.
pub fn key(group: &str, partition: TopicPartition) -> ShareKey {
    ShareKey {
        group_id: group.into(),
        partition,
    }
}

/// All group coordinators of the process.
#[derive(Debug, Default)]
pub struct Groups {
    shards: Mutex<BTreeMap<i32, Arc<Shard>>>,
}

impl Groups {
    /// Loads what is in the log, so that sessions run from the start on.
    pub fn open(&self, broker: &Arc<Broker>) -> Result<(), ApiError> {
        let Some(topic) = broker.cluster.topic(CONSUMER_OFFSETS) else {
            return Ok(());
        };
        for partition in topic.partitions().iter() {
            match self.shard(broker, partition)?.lock(broker) {
                Err(error) if partition.leader() == NOBODY => {
                    tracing::warn!(?partition, %error, "nobody leads these groups until a broker that has the partition starts");
                }
                loaded => drop(loaded?),
            }
        }
        Ok(())
    }

    /// The shard over a partition of `__consumer_offsets`.
    pub fn shard(
        &self,
        broker: &Arc<Broker>,
        partition: &Arc<Partition>,
    ) -> Result<Arc<Shard>, ApiError> {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = shards.get(&partition.index)
            && shard.partition.topic_id == partition.topic_id
        {
            return Ok(Arc::clone(shard));
        }
        let shard = Arc::new(Shard {
            partition: Arc::clone(partition),
            state: Mutex::new(Loaded {
                epoch: -1,
                machine: GroupCoordinator::new(),
                held: 0,
            }),
            parked: Parked::default(),
            due: Registration::default(),
            broker: Arc::downgrade(broker),
        });
        shard.due.begin(&broker.deadlines, &shard);
        let old = shards.insert(partition.index, Arc::clone(&shard));
        drop(shards);
        if let Some(old) = old {
            old.retire(broker);
        }
        Ok(shard)
    }

    fn all(&self) -> Vec<Arc<Shard>> {
        self.shards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// The groups that broker `node` coordinates.
    pub fn list(
        &self,
        broker: &Broker,
        node: i32,
        states: &[&str],
        types: &[&str],
    ) -> Vec<GroupListing> {
        let mut listed = vec![];
        for shard in self
            .all()
            .iter()
            .filter(|shard| shard.partition.leader() == node)
        {
            match shard.ask(broker, |machine| machine.list(states, types)) {
                Ok(groups) => listed.extend(groups),
                Err(error) => tracing::warn!(%error, "some groups could not be listed"),
            }
        }
        listed
    }

    /// How many groups there are, by type and state.
    pub fn counts(&self, broker: &Broker) -> GroupCounts {
        let mut counts = GroupCounts::new();
        for shard in self.all() {
            // A shard without a coordinator has no groups to count.
            let _ = shard.ask(broker, |machine| machine.count(&mut counts));
        }
        counts
    }

    /// A topic was deleted: groups forget it.
    pub fn topic_deleted(&self, broker: &Broker, name: &str, id: Uuid) {
        if name == CONSUMER_OFFSETS {
            self.retire(broker, id);
        }
        let gone = BTreeSet::from([id]);
        for shard in self.all() {
            let done = shard.topics_deleted(broker, &gone);
            if let Err(error) = done.and_then(|()| shard.forget_topic(broker, name, id)) {
                tracing::warn!(%error, "groups could not forget a deleted topic yet; the next load does it");
            }
        }
    }

    /// `__consumer_offsets` was deleted: groups begin anew when it is made again.
    fn retire(&self, broker: &Broker, topic: Uuid) {
        let of_topic = |shard: &mut Arc<Shard>| *shard.partition.topic_id.as_bytes() == topic.0;
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let retired: Vec<_> = shards.extract_if(.., |_, shard| of_topic(shard)).collect();
        drop(shards);
        for (_, shard) in retired {
            shard.retire(broker);
        }
    }

    /// Leaders have changed: coordinators that moved are replayed, so that sessions go on.
    pub fn leaders_changed(&self, broker: &Broker) {
        for shard in self.all() {
            if let Err(error) = shard.lock(broker).map(drop) {
                tracing::debug!(?shard, %error, "no coordinator for these groups now");
            }
        }
    }
}

/// The error code of a refused group operation.
pub fn error_code(kind: GroupErrorKind) -> ErrorCode {
    match kind {
        GroupErrorKind::UnknownTopicOrPartition => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        GroupErrorKind::CoordinatorNotAvailable => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        GroupErrorKind::IllegalGeneration => ErrorCode::ILLEGAL_GENERATION,
        GroupErrorKind::InconsistentGroupProtocol => ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        GroupErrorKind::InvalidSessionTimeout => ErrorCode::INVALID_SESSION_TIMEOUT,
        GroupErrorKind::RebalanceInProgress => ErrorCode::REBALANCE_IN_PROGRESS,
        GroupErrorKind::MemberIdRequired => ErrorCode::MEMBER_ID_REQUIRED,
        GroupErrorKind::FencedInstanceId => ErrorCode::FENCED_INSTANCE_ID,
        GroupErrorKind::InvalidGroupId => ErrorCode::INVALID_GROUP_ID,
        GroupErrorKind::UnknownMemberId => ErrorCode::UNKNOWN_MEMBER_ID,
        GroupErrorKind::UnsupportedVersion => ErrorCode::UNSUPPORTED_VERSION,
        GroupErrorKind::InvalidRequest => ErrorCode::INVALID_REQUEST,
        GroupErrorKind::NonEmptyGroup => ErrorCode::NON_EMPTY_GROUP,
        GroupErrorKind::GroupIdNotFound => ErrorCode::GROUP_ID_NOT_FOUND,
        GroupErrorKind::GroupMaxSizeReached => ErrorCode::GROUP_MAX_SIZE_REACHED,
        GroupErrorKind::GroupSubscribedToTopic => ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
        GroupErrorKind::FencedMemberEpoch => ErrorCode::FENCED_MEMBER_EPOCH,
        GroupErrorKind::UnreleasedInstanceId => ErrorCode::UNRELEASED_INSTANCE_ID,
        GroupErrorKind::UnsupportedAssignor => ErrorCode::UNSUPPORTED_ASSIGNOR,
        GroupErrorKind::StaleMemberEpoch => ErrorCode::STALE_MEMBER_EPOCH,
        GroupErrorKind::InvalidRegularExpression => ErrorCode::INVALID_REGULAR_EXPRESSION,
    }
}
