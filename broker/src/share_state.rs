//! The share coordinators: the state of share partitions in `__share_group_state`.
//!
//! One shard a partition of that topic. A change is decided by the pure machine, appended, applied,
//! and only then answered. A shard whose partition got a new leader epoch is replayed from the log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ottla_coordinator::share::state::{
    ShareKey, ShareState, ShareStateRecord, StateError, StateRead, StateSummary,
};
use ottla_coordinator::share::types::{PersistedState, StateWrite, WriteError};
use ottla_coordinator::types::{Ts, Uuid};
use ottla_protocol::ErrorCode;

use crate::broker::Broker;
use crate::clock::Stopwatch;
use crate::cluster::image::SHARE_GROUP_STATE;
use crate::cluster::{NOBODY, Partition};
use crate::deadlines::Due;
use crate::error_code::ApiError;
use crate::metrics::ShardState;
use crate::records;

/// One partition of `__share_group_state` and the states in it.
#[derive(Debug)]
struct Shard {
    partition: Arc<Partition>,
    state: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    /// The leader epoch that the log was replayed in.
    epoch: i32,
    machine: ShareState,
}

/// All share coordinators of the process.
#[derive(Debug, Default)]
pub struct ShareStates {
    shards: Mutex<BTreeMap<i32, Arc<Shard>>>,
}

impl Shard {
    /// The machine, replayed if the partition has changed hands since.
    fn lock(&self, broker: &Broker) -> Result<MutexGuard<'_, Loaded>, ApiError> {
        let leadership = self.partition.leadership();
        if leadership.leader == NOBODY {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE.into());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.epoch != leadership.leader_epoch {
            let watch = Stopwatch::start();
            let mut machine = ShareState::new(
                broker
                    .config()
                    .share_state
                    .snapshot_update_records
                    .max(0)
                    .unsigned_abs(),
            );
            records::replay_share_state(&self.partition.log, |record, offset| {
                machine.apply(&record, offset);
            })?;
            *state = Loaded {
                epoch: leadership.leader_epoch,
                machine,
            };
            broker.metrics.share_coordinator.loaded(watch);
        }
        Ok(state)
    }

    /// Appends records that the machine planned and applies them.
    fn commit(
        &self,
        broker: &Broker,
        state: &mut Loaded,
        records: &[ShareStateRecord],
        now: Ts,
    ) -> Result<(), ApiError> {
        if records.is_empty() {
            return Ok(());
        }
        let leadership = self.partition.leadership();
        let need = leadership.min_isr(broker.config().share_state.min_isr.into());
        if leadership.isr.len() < need {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE.into());
        }
        let batch = records::share_state_batch(records, now)?;
        let info = batch.append(&self.partition.log, leadership.leader_epoch, now)?;
        for (record, offset) in records.iter().zip(info.base_offset..) {
            state.machine.apply(record, offset);
        }
        Ok(())
    }
}

impl ShareStates {
    fn shard(&self, broker: &Broker, key: &ShareKey) -> Result<Arc<Shard>, ApiError> {
        let partition = broker.internal_partition(SHARE_GROUP_STATE, &coordinator_key(key))?;
        Ok(self.shard_of(&partition))
    }

    fn shard_of(&self, partition: &Arc<Partition>) -> Arc<Shard> {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        // A shard of another topic's id is of one that was deleted.
        if let Some(shard) = shards.get(&partition.index)
            && shard.partition.topic_id == partition.topic_id
        {
            return Arc::clone(shard);
        }
        let machine = ShareState::new(0);
        let state = Mutex::new(Loaded { epoch: -1, machine });
        let shard = Arc::new(Shard {
            partition: Arc::clone(partition),
            state,
        });
        shards.insert(partition.index, Arc::clone(&shard));
        shard
    }

    /// The shards of all partitions, those that nobody has asked yet included.
    fn all(&self, broker: &Broker) -> Vec<Arc<Shard>> {
        let topic = broker.cluster.topic(SHARE_GROUP_STATE);
        let partitions = topic.map(|topic| topic.partitions()).unwrap_or_default();
        partitions
            .iter()
            .map(|partition| self.shard_of(partition))
            .collect()
    }

    /// Plans a change on `key`'s shard and commits it.
    fn change(
        &self,
        broker: &Broker,
        key: &ShareKey,
        plan: impl FnOnce(&ShareState, Ts) -> Result<Option<ShareStateRecord>, StateError>,
    ) -> Result<bool, ApiError> {
        let shard = self.shard(broker, key)?;
        let mut state = shard.lock(broker)?;
        let now = broker.clock.now();
        let Some(record) = plan(&state.machine, now)? else {
            return Ok(false);
        };
        shard.commit(broker, &mut state, &[record], now)?;
        Ok(true)
    }

    /// Gives a share partition state; with `replace` also where it has some (altered offsets). A start
    /// offset of -1 leaves it to the reset policy.
    pub fn initialize(
        &self,
        broker: &Broker,
        key: &ShareKey,
        state_epoch: i32,
        start_offset: i64,
        replace: bool,
    ) -> Result<(), ApiError> {
        self.change(broker, key, |machine, now| {
            if replace {
                let altered = machine.alter(now, key, state_epoch, start_offset);
                altered.map(Some)
            } else {
                machine.ensure(now, key, state_epoch, start_offset)
            }
        })
        .map(drop)
    }

    /// Deletes a share partition's state; whether there was one.
    pub fn delete(&self, broker: &Broker, key: &ShareKey) -> Result<bool, ApiError> {
        self.change(broker, key, |machine, _| machine.delete(key))
    }

    /// Loads a share partition's state for its leader.
    pub fn read(
        &self,
        broker: &Broker,
        key: &ShareKey,
        leader_epoch: i32,
    ) -> Result<PersistedState, ApiError> {
        let shard = self.shard(broker, key)?;
        let mut loaded = shard.lock(broker)?;
        let now = broker.clock.now();
        let StateRead { state, record } = loaded.machine.read(now, key, leader_epoch)?;
        shard.commit(broker, &mut loaded, record.as_slice(), now)?;
        Ok(state)
    }

    /// Records what the leader of a share partition changed.
    pub fn write(
        &self,
        broker: &Broker,
        key: &ShareKey,
        epochs: (i32, i32),
        write: &StateWrite,
    ) -> Result<(), WriteError> {
        let (state_epoch, leader_epoch) = epochs;
        let watch = Stopwatch::start();
        let done = self.change(broker, key, |machine, now| {
            machine
                .write(now, key, state_epoch, leader_epoch, write)
                .map(Some)
        });
        if done.is_ok() {
            broker.metrics.share_coordinator.wrote(watch);
        }
        done.map(drop).map_err(|error| {
            broker.metrics.share_write_failures.inc();
            tracing::warn!(group = %key.group_id, partition = ?key.partition, %error, "share state could not be written");
            match error.code {
                ErrorCode::FENCED_STATE_EPOCH | ErrorCode::FENCED_LEADER_EPOCH => WriteError::Fenced,
                ErrorCode::INVALID_REQUEST => WriteError::Unknown,
                _ => WriteError::Unavailable,
            }
        })
    }

    /// Start offset and counts of a share partition, as they were persisted; `None` while no share
    /// partition has state at all.
    pub fn summary(
        &self,
        broker: &Broker,
        key: &ShareKey,
    ) -> Result<Option<StateSummary>, ApiError> {
        if broker.cluster.topic(SHARE_GROUP_STATE).is_none() {
            return Ok(None);
        }
        Ok(Some(
            self.shard(broker, key)?.lock(broker)?.machine.summary(key),
        ))
    }

    /// Topics were deleted: their states go.
    pub fn topics_deleted(&self, broker: &Broker, gone: &[Uuid]) -> Result<(), ApiError> {
        let gone = gone.iter().copied().collect();
        for shard in self.all(broker) {
            let mut state = shard.lock(broker)?;
            let records = state.machine.topics_deleted(&gone);
            shard.commit(broker, &mut state, &records, broker.clock.now())?;
        }
        Ok(())
    }

    /// What each partition of the state topic is, and where its log starts.
    pub fn states(&self, broker: &Broker) -> Vec<(i32, ShardState, i64)> {
        let look = |shard: Arc<Shard>| {
            let partition = &shard.partition;
            let leadership = partition.leadership();
            let state = shard.state.lock().unwrap_or_else(PoisonError::into_inner);
            let state = match leadership.leader {
                NOBODY => ShardState::Failed,
                _ if state.epoch == leadership.leader_epoch => ShardState::Active,
                _ => ShardState::Loading,
            };
            (partition.index, state, partition.log.start_offset())
        };
        self.all(broker).into_iter().map(look).collect()
    }

    /// Writes snapshots of what has not changed for long and drops the log below the oldest one that
    /// is needed, so that the state log stays bounded.
    fn prune(&self, broker: &Broker, now: Ts) -> Result<(), ApiError> {
        let interval = i64::from(broker.config().share_state.cold_snapshot_interval_ms);
        for shard in self.all(broker) {
            let mut state = shard.lock(broker)?;
            let cold = state.machine.cold_snapshots(now, interval);
            shard.commit(broker, &mut state, &cold, now)?;
            let offset = state.machine.prune_offset();
            if offset > shard.partition.log.start_offset() {
                shard.partition.log.delete_records_before(offset, now)?;
            }
        }
        Ok(())
    }
}

/// Kafka's key of a share partition: `group:topic-id:partition`.
pub fn coordinator_key(key: &ShareKey) -> String {
    format!(
        "{}:{}:{}",
        key.group_id, key.partition.topic_id, key.partition.partition
    )
}

/// Prunes now and then.
#[derive(Debug)]
pub struct Pruner(pub std::sync::Weak<Broker>);

impl Due for Pruner {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.0.upgrade()?;
        if let Err(error) = broker.share_states.prune(&broker, now) {
            tracing::warn!(%error, "the share state log could not be pruned; it is tried again");
        }
        Some(now + i64::from(broker.config().share_state.prune_interval_ms.max(1)))
    }
}
