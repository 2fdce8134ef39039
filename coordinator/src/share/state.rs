//! The share coordinator: the durable state of share partitions (KIP-932), one [`ShareState`] per
//! partition of `__share_group_state`.
//!
//! Calls that change something return the record to append; [`ShareState::apply`] takes it, with
//! the offset it got, once it is in the log. Replay is `apply` over the log. A key's history is a
//! snapshot and the updates after it, so everything below the oldest live snapshot
//! ([`ShareState::prune_offset`]) may be deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::batches::StateBatches;
pub use super::state_records::{ShareKey, ShareSnapshotValue, ShareStateRecord, ShareUpdateValue};
use super::types::{PersistedState, StateBatch, StateWrite};
use crate::types::{Ts, Uuid};

/// `share.coordinator.snapshot.update.records.per.snapshot` of Kafka.
pub const DEFAULT_UPDATES_PER_SNAPSHOT: u32 = 500;

/// Why the share coordinator refused; the text goes to the caller as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// `INVALID_REQUEST` (42).
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// `FENCED_LEADER_EPOCH` (74).
    #[error("The leader epoch in the request is older than the epoch on the broker.")]
    FencedLeaderEpoch,
    /// `FENCED_STATE_EPOCH` (124).
    #[error("The coordinator rejected the request because the state epoch did not match.")]
    FencedStateEpoch,
}

/// What a leader gets when it loads a share partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the record, if there is one, is to be appended"]
pub struct StateRead {
    /// The state.
    pub state: PersistedState,
    /// To be appended and applied before the state is used: it fences older leaders.
    pub record: Option<ShareStateRecord>,
}

/// The state without its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSummary {
    /// 0 when there is no state.
    pub state_epoch: i32,
    /// 0 when there is no state.
    pub leader_epoch: i32,
    /// -1 when there is no state, or the start was not decided.
    pub start_offset: i64,
    /// -1 when not set.
    pub delivery_complete_count: i32,
}

#[derive(Clone, Debug)]
struct Entry {
    summary: StateSummary,
    batches: StateBatches,
    snapshot_epoch: i32,
    snapshot_offset: i64,
    updates: u32,
    create_timestamp: Ts,
    write_timestamp: Ts,
}

/// The share-partition states of one partition of `__share_group_state`.
#[derive(Debug)]
pub struct ShareState {
    updates_per_snapshot: u32,
    entries: BTreeMap<ShareKey, Entry>,
    /// Offset of each live key's last snapshot.
    snapshots: BTreeMap<i64, BTreeSet<ShareKey>>,
    end_offset: i64,
}

impl Default for ShareState {
    fn default() -> Self {
        Self::new(DEFAULT_UPDATES_PER_SNAPSHOT)
    }
}

impl ShareState {
    /// No state. A key's `updates_per_snapshot + 1`-th write becomes a snapshot.
    pub fn new(updates_per_snapshot: u32) -> Self {
        Self {
            updates_per_snapshot,
            entries: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            end_offset: 0,
        }
    }

    /// How many share partitions have state.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no share partition has state.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives a share partition state, unless it has some: asked for twice, what was acknowledged in
    /// between stays. Otherwise as [`ShareState::initialize`].
    pub fn ensure(
        &self,
        now: Ts,
        key: &ShareKey,
        state_epoch: i32,
        start_offset: i64,
    ) -> Result<Option<ShareStateRecord>, StateError> {
        if self.entries.contains_key(key) {
            return Ok(None);
        }
        self.initialize(now, key, state_epoch, start_offset)
            .map(Some)
    }

    /// Moves the start offset of a share partition, whose state is replaced. The state epoch rises
    /// above the stored one in any case, so that a leader that has loaded the old state is fenced.
    /// Otherwise as [`ShareState::initialize`].
    pub fn alter(
        &self,
        now: Ts,
        key: &ShareKey,
        state_epoch: i32,
        start_offset: i64,
    ) -> Result<ShareStateRecord, StateError> {
        let stored = self.entries.get(key).map(|entry| entry.summary.state_epoch);
        let above = stored.map_or(0, |epoch| epoch.saturating_add(1));
        self.initialize(now, key, state_epoch.max(above), start_offset)
    }

    /// `InitializeShareGroupState` as Kafka has it: what was there is replaced, unless its state
    /// epoch is higher. A `start_offset` of -1 leaves the choice to the first load; any other value
    /// is stored unchecked.
    pub fn initialize(
        &self,
        now: Ts,
        key: &ShareKey,
        state_epoch: i32,
        start_offset: i64,
    ) -> Result<ShareStateRecord, StateError> {
        check_partition(key)?;
        check_state_epoch(state_epoch)?;
        let entry = self.entries.get(key);
        if entry.is_some_and(|entry| entry.summary.state_epoch > state_epoch) {
            return Err(StateError::FencedStateEpoch);
        }
        let value = ShareSnapshotValue {
            snapshot_epoch: entry.map_or(0, Entry::next_snapshot_epoch),
            state_epoch,
            leader_epoch: 0,
            start_offset,
            delivery_complete_count: if start_offset == -1 { -1 } else { 0 },
            create_timestamp: now,
            write_timestamp: now,
            state_batches: Vec::new(),
        };
        Ok(ShareStateRecord::Snapshot {
            key: key.clone(),
            value,
        })
    }

    /// Loads a share partition for the leader of `leader_epoch`, which fences older leaders.
    pub fn read(
        &self,
        now: Ts,
        key: &ShareKey,
        leader_epoch: i32,
    ) -> Result<StateRead, StateError> {
        check_partition(key)?;
        check_leader_epoch(leader_epoch)?;
        let entry = self.entries.get(key).ok_or(StateError::InvalidRequest(
            "Read operation on uninitialized share partition not allowed.",
        ))?;
        if leader_epoch < entry.summary.leader_epoch {
            return Err(StateError::FencedLeaderEpoch);
        }
        let mut state = entry.persisted();
        let record = (leader_epoch > entry.summary.leader_epoch).then(|| {
            state.leader_epoch = leader_epoch;
            self.change(
                now,
                key,
                entry,
                StateSummary {
                    leader_epoch,
                    ..entry.summary
                },
                &[],
            )
        });
        Ok(StateRead { state, record })
    }

    /// Records what a leader changed.
    ///
    /// A lower state epoch is fenced (the offsets were altered meanwhile), and so is a lower
    /// leader epoch. The start offset never goes back.
    pub fn write(
        &self,
        now: Ts,
        key: &ShareKey,
        state_epoch: i32,
        leader_epoch: i32,
        write: &StateWrite,
    ) -> Result<ShareStateRecord, StateError> {
        check_partition(key)?;
        check_state_epoch(state_epoch)?;
        check_leader_epoch(leader_epoch)?;
        if write.batches.iter().any(|batch| batch.first > batch.last) {
            return Err(StateError::InvalidRequest(
                "The state batch ends before it begins.",
            ));
        }
        let entry = self.entries.get(key).ok_or(StateError::InvalidRequest(
            "Write operation on uninitialized share partition not allowed.",
        ))?;
        if state_epoch < entry.summary.state_epoch {
            return Err(StateError::FencedStateEpoch);
        }
        if leader_epoch < entry.summary.leader_epoch {
            return Err(StateError::FencedLeaderEpoch);
        }
        let summary = StateSummary {
            state_epoch: entry.summary.state_epoch,
            leader_epoch,
            start_offset: write.start_offset.max(entry.summary.start_offset),
            delivery_complete_count: write.delivery_complete_count,
        };
        Ok(self.change(now, key, entry, summary, &write.batches))
    }

    /// The state without its batches; epochs 0 and offsets -1 when there is none.
    pub fn summary(&self, key: &ShareKey) -> StateSummary {
        let none = StateSummary {
            state_epoch: 0,
            leader_epoch: 0,
            start_offset: -1,
            delivery_complete_count: -1,
        };
        self.entries.get(key).map_or(none, |entry| entry.summary)
    }

    /// The whole state, for people who look; leaves the leader epoch alone.
    pub fn peek(&self, key: &ShareKey) -> Option<PersistedState> {
        self.entries.get(key).map(Entry::persisted)
    }

    /// The share partitions that have state, in order.
    pub fn keys(&self) -> impl Iterator<Item = &ShareKey> {
        self.entries.keys()
    }

    /// Deletes a share partition's state. `None` when there is none: nothing to do.
    pub fn delete(&self, key: &ShareKey) -> Result<Option<ShareStateRecord>, StateError> {
        check_partition(key)?;
        let known = self.entries.contains_key(key);
        Ok(known.then(|| ShareStateRecord::Tombstone { key: key.clone() }))
    }

    /// Deletes the state of every group on the topics `gone`, after they were deleted.
    pub fn topics_deleted(&self, gone: &BTreeSet<Uuid>) -> Vec<ShareStateRecord> {
        let keys = self
            .entries
            .keys()
            .filter(|key| gone.contains(&key.partition.topic_id));
        keys.map(|key| ShareStateRecord::Tombstone { key: key.clone() })
            .collect()
    }

    /// Fresh snapshots of the keys that keep the log from being pruned: their last one is
    /// `interval_ms` old and lies further back than one snapshot of every key would.
    pub fn cold_snapshots(&self, now: Ts, interval_ms: i64) -> Vec<ShareStateRecord> {
        let reach = i64::try_from(self.entries.len()).unwrap_or(i64::MAX);
        let mut records = Vec::new();
        for (_, keys) in self
            .snapshots
            .range(..self.end_offset.saturating_sub(reach))
        {
            for key in keys {
                let Some(entry) = self.entries.get(key) else {
                    continue;
                };
                if now.saturating_sub(entry.write_timestamp) >= interval_ms {
                    let mut value = entry.snapshot(entry.summary, entry.batches.to_vec());
                    value.create_timestamp = entry.create_timestamp;
                    value.write_timestamp = now;
                    records.push(ShareStateRecord::Snapshot {
                        key: key.clone(),
                        value,
                    });
                }
            }
        }
        records
    }

    /// Records below this offset are no longer needed: the oldest live snapshot, or the log's end
    /// when nothing is live.
    pub fn prune_offset(&self) -> i64 {
        self.snapshots
            .first_key_value()
            .map_or(self.end_offset, |(&offset, _)| offset)
    }

    /// Takes in a record that is in the log at `log_offset`.
    ///
    /// Updates without their snapshot are left aside: it was pruned, so the key was deleted.
    pub fn apply(&mut self, record: &ShareStateRecord, log_offset: i64) {
        self.end_offset = log_offset.saturating_add(1);
        match record {
            ShareStateRecord::Snapshot { key, value } => {
                self.forget_snapshot(key);
                self.snapshots
                    .entry(log_offset)
                    .or_default()
                    .insert(key.clone());
                self.entries
                    .insert(key.clone(), Entry::load(value, log_offset));
            }
            ShareStateRecord::Update { key, value } => {
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.update(value);
                }
            }
            ShareStateRecord::Tombstone { key } => {
                self.forget_snapshot(key);
                self.entries.remove(key);
            }
        }
    }

    fn change(
        &self,
        now: Ts,
        key: &ShareKey,
        entry: &Entry,
        summary: StateSummary,
        batches: &[StateBatch],
    ) -> ShareStateRecord {
        let key = key.clone();
        if entry.updates < self.updates_per_snapshot {
            let value = ShareUpdateValue {
                snapshot_epoch: entry.snapshot_epoch,
                leader_epoch: summary.leader_epoch,
                start_offset: summary.start_offset,
                delivery_complete_count: summary.delivery_complete_count,
                state_batches: batches.to_vec(),
            };
            return ShareStateRecord::Update { key, value };
        }
        let mut merged = entry.batches.clone();
        merged.trim(summary.start_offset);
        for batch in batches {
            merged.merge(batch, summary.start_offset);
        }
        let mut value = entry.snapshot(summary, merged.to_vec());
        value.create_timestamp = now;
        value.write_timestamp = now;
        ShareStateRecord::Snapshot { key, value }
    }

    fn forget_snapshot(&mut self, key: &ShareKey) {
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        if let Some(keys) = self.snapshots.get_mut(&entry.snapshot_offset) {
            keys.remove(key);
            if keys.is_empty() {
                self.snapshots.remove(&entry.snapshot_offset);
            }
        }
    }
}

impl Entry {
    fn load(value: &ShareSnapshotValue, snapshot_offset: i64) -> Self {
        let mut batches = StateBatches::default();
        for batch in &value.state_batches {
            batches.merge(batch, value.start_offset);
        }
        Self {
            summary: StateSummary {
                state_epoch: value.state_epoch,
                leader_epoch: value.leader_epoch,
                start_offset: value.start_offset,
                delivery_complete_count: value.delivery_complete_count,
            },
            batches,
            snapshot_epoch: value.snapshot_epoch,
            snapshot_offset,
            updates: 0,
            create_timestamp: value.create_timestamp,
            write_timestamp: value.write_timestamp,
        }
    }

    fn update(&mut self, value: &ShareUpdateValue) {
        self.updates = self.updates.saturating_add(1);
        self.summary.leader_epoch = value.leader_epoch;
        self.summary.delivery_complete_count = value.delivery_complete_count;
        if value.start_offset > self.summary.start_offset {
            self.summary.start_offset = value.start_offset;
            self.batches.trim(value.start_offset);
        }
        for batch in &value.state_batches {
            self.batches.merge(batch, self.summary.start_offset);
        }
    }

    fn persisted(&self) -> PersistedState {
        PersistedState {
            state_epoch: self.summary.state_epoch,
            leader_epoch: self.summary.leader_epoch,
            start_offset: self.summary.start_offset,
            delivery_complete_count: self.summary.delivery_complete_count,
            batches: self.batches.to_vec(),
        }
    }

    /// The next snapshot; the caller sets the timestamps.
    fn snapshot(&self, summary: StateSummary, batches: Vec<StateBatch>) -> ShareSnapshotValue {
        ShareSnapshotValue {
            snapshot_epoch: self.next_snapshot_epoch(),
            state_epoch: summary.state_epoch,
            leader_epoch: summary.leader_epoch,
            start_offset: summary.start_offset,
            delivery_complete_count: summary.delivery_complete_count,
            create_timestamp: 0,
            write_timestamp: 0,
            state_batches: batches,
        }
    }

    fn next_snapshot_epoch(&self) -> i32 {
        self.snapshot_epoch.wrapping_add(1)
    }
}

fn check_partition(key: &ShareKey) -> Result<(), StateError> {
    check(
        key.partition.partition,
        "The partition id cannot be a negative number.",
    )
}

fn check_state_epoch(epoch: i32) -> Result<(), StateError> {
    check(epoch, "The state epoch cannot be a negative number.")
}

fn check_leader_epoch(epoch: i32) -> Result<(), StateError> {
    check(epoch, "The leader epoch cannot be a negative number.")
}

fn check(value: i32, message: &'static str) -> Result<(), StateError> {
    if value < 0 {
        Err(StateError::InvalidRequest(message))
    } else {
        Ok(())
    }
}
