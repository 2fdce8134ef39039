//! `__share_group_state`: what the share coordinator persists of share partitions (KIP-932).

use uuid::Uuid;

use super::schema::{key, keyed_records, schema};

key! {
    /// The share partition that a record is about: key of both record types.
    SharePartitionKey {
        /// Share group.
        group_id: String,
        /// Topic.
        topic_id: Uuid,
        /// Partition index.
        partition: i32,
    }
}

schema! {
    /// Consecutive records in one state.
    StateBatch {
        /// Offset of the first record.
        first_offset: i64,
        /// Offset of the last record.
        last_offset: i64,
        /// 0 available, 2 acknowledged, 3 archiving, 4 archived; acquisitions are not persisted.
        delivery_state: i8,
        /// How often the records were delivered.
        delivery_count: i16,
    }
}

schema! {
    /// The whole state of a share partition.
    ShareSnapshotValue {
        /// Number of the snapshot; updates name the one that they follow.
        snapshot_epoch: i32,
        /// Epoch of the state: that of the group when it was initialised, raised when it is altered.
        state_epoch: i32,
        /// Leader epoch of the share partition's leader.
        leader_epoch: i32,
        /// Share-partition start offset, -1 before the first delivery.
        start_offset: i64,
        /// When the state was initialised, milliseconds since the epoch.
        create_timestamp: i64,
        /// When the snapshot was written, milliseconds since the epoch.
        write_timestamp: i64,
        /// States from the start offset on.
        state_batches: Vec<StateBatch>,
    }
    tags {
        /// Records behind the start offset that need no more delivery, -1 for unknown.
        0 delivery_complete_count: i32 = -1,
    }
}

schema! {
    /// What changed since the snapshot, or the last update.
    ShareUpdateValue {
        /// The snapshot that this follows.
        snapshot_epoch: i32,
        /// Leader epoch of the share partition's leader.
        leader_epoch: i32,
        /// Share-partition start offset, -1 if unchanged.
        start_offset: i64,
        /// States that changed.
        state_batches: Vec<StateBatch>,
    }
    tags {
        /// Records behind the start offset that need no more delivery, -1 for unknown.
        0 delivery_complete_count: i32 = -1,
    }
}

keyed_records! {
    /// A record of `__share_group_state`.
    ShareGroupStateRecord {
        /// The whole state, or its deletion.
        0 ShareSnapshot(SharePartitionKey, ShareSnapshotValue) newest 0 flexible 0 writes 0,
        /// A change.
        1 ShareUpdate(SharePartitionKey, ShareUpdateValue) newest 0 flexible 0 writes 0,
    }
}
