//! The records of `__share_group_state`, with exactly the fields of Kafka's schemas (KIP-932).

use std::sync::Arc;

use super::types::StateBatch;
use crate::types::{TopicPartition, Ts};

/// One share partition of one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareKey {
    /// The group.
    pub group_id: Arc<str>,
    /// The topic and partition.
    pub partition: TopicPartition,
}

/// One record of `__share_group_state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareStateRecord {
    /// Type 0: the whole state.
    Snapshot {
        /// Whose state it is.
        key: ShareKey,
        /// The state.
        value: ShareSnapshotValue,
    },
    /// Type 1: what changed since the snapshot.
    Update {
        /// Whose state it is.
        key: ShareKey,
        /// The change.
        value: ShareUpdateValue,
    },
    /// Type 0 with a null value: the state is gone.
    Tombstone {
        /// Whose state it was.
        key: ShareKey,
    },
}

impl ShareStateRecord {
    /// Whose state the record is about.
    pub fn key(&self) -> &ShareKey {
        match self {
            Self::Snapshot { key, .. } | Self::Update { key, .. } | Self::Tombstone { key } => key,
        }
    }
}

/// Value of type 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareSnapshotValue {
    /// Counts the snapshots of this key from 0.
    pub snapshot_epoch: i32,
    /// Set at initialisation.
    pub state_epoch: i32,
    /// The leader epoch of the last write or read.
    pub leader_epoch: i32,
    /// The share-partition start offset; -1 = not decided.
    pub start_offset: i64,
    /// Records done at or after the start offset; -1 = not set (tag omitted).
    pub delivery_complete_count: i32,
    /// When the state in the snapshot came to be.
    pub create_timestamp: Ts,
    /// When the snapshot was written.
    pub write_timestamp: Ts,
    /// Disjoint, ascending, none below the start offset.
    pub state_batches: Vec<StateBatch>,
}

/// Value of type 1.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareUpdateValue {
    /// The snapshot that the update builds on.
    pub snapshot_epoch: i32,
    /// The writer's leader epoch.
    pub leader_epoch: i32,
    /// The start offset from now on.
    pub start_offset: i64,
    /// Records done at or after the start offset; -1 = not set (tag omitted).
    pub delivery_complete_count: i32,
    /// The changed batches only.
    pub state_batches: Vec<StateBatch>,
}
