//! State of share partitions in the schemas of `__share_group_state`.

use ottla_coordinator::share::state::{
    ShareKey, ShareSnapshotValue, ShareStateRecord, ShareUpdateValue,
};
use ottla_coordinator::share::types::StateBatch;
use ottla_coordinator::types::TopicPartition;
use ottla_protocol::Uuid;
use ottla_protocol::batch::BatchBuilder;
use ottla_protocol::internal::{self, ShareGroupStateRecord, SharePartitionKey};
use ottla_storage::Log;

use super::{Batch, replay, topic_id, unreadable};
use crate::error_code::ApiError;

/// Calls `each` with every record of `__share_group_state` and its offset.
pub(crate) fn replay_share_state(
    log: &Log,
    mut each: impl FnMut(ShareStateRecord, i64),
) -> Result<(), ApiError> {
    replay(log, |offset, key, value| {
        let record = ShareGroupStateRecord::decode(key.unwrap_or_default(), value)
            .map_err(|error| unreadable(log, offset, &error))?;
        each(to_share_state(record), offset);
        Ok(())
    })
}

/// The batch of some records of `__share_group_state`.
pub(crate) fn share_state_batch(records: &[ShareStateRecord], now: i64) -> Result<Batch, ApiError> {
    let mut builder = BatchBuilder::coordinator();
    for record in records {
        let (key, value) = from_share_state(record).encode();
        builder.push(now, Some(&key), value.as_deref());
    }
    Batch::of(builder)
}

fn from_share_state(record: &ShareStateRecord) -> ShareGroupStateRecord {
    let key = record.key();
    let key = SharePartitionKey {
        group_id: key.group_id.to_string(),
        topic_id: Uuid::from_bytes(key.partition.topic_id.0),
        partition: key.partition.partition,
    };
    match record {
        ShareStateRecord::Snapshot { value, .. } => {
            let value = internal::ShareSnapshotValue {
                snapshot_epoch: value.snapshot_epoch,
                state_epoch: value.state_epoch,
                leader_epoch: value.leader_epoch,
                start_offset: value.start_offset,
                create_timestamp: value.create_timestamp,
                write_timestamp: value.write_timestamp,
                state_batches: from_batches(&value.state_batches),
                delivery_complete_count: value.delivery_complete_count,
                ..Default::default()
            };
            ShareGroupStateRecord::ShareSnapshot(key, Some(value))
        }
        ShareStateRecord::Update { value, .. } => {
            let value = internal::ShareUpdateValue {
                snapshot_epoch: value.snapshot_epoch,
                leader_epoch: value.leader_epoch,
                start_offset: value.start_offset,
                state_batches: from_batches(&value.state_batches),
                delivery_complete_count: value.delivery_complete_count,
                ..Default::default()
            };
            ShareGroupStateRecord::ShareUpdate(key, Some(value))
        }
        ShareStateRecord::Tombstone { .. } => ShareGroupStateRecord::ShareSnapshot(key, None),
    }
}

fn to_share_state(record: ShareGroupStateRecord) -> ShareStateRecord {
    let of = |key: SharePartitionKey| ShareKey {
        group_id: key.group_id.into(),
        partition: TopicPartition {
            topic_id: topic_id(key.topic_id),
            partition: key.partition,
        },
    };
    match record {
        ShareGroupStateRecord::ShareSnapshot(key, Some(value)) => ShareStateRecord::Snapshot {
            key: of(key),
            value: ShareSnapshotValue {
                snapshot_epoch: value.snapshot_epoch,
                state_epoch: value.state_epoch,
                leader_epoch: value.leader_epoch,
                start_offset: value.start_offset,
                delivery_complete_count: value.delivery_complete_count,
                create_timestamp: value.create_timestamp,
                write_timestamp: value.write_timestamp,
                state_batches: to_batches(&value.state_batches),
            },
        },
        ShareGroupStateRecord::ShareUpdate(key, Some(value)) => ShareStateRecord::Update {
            key: of(key),
            value: ShareUpdateValue {
                snapshot_epoch: value.snapshot_epoch,
                leader_epoch: value.leader_epoch,
                start_offset: value.start_offset,
                delivery_complete_count: value.delivery_complete_count,
                state_batches: to_batches(&value.state_batches),
            },
        },
        ShareGroupStateRecord::ShareSnapshot(key, None)
        | ShareGroupStateRecord::ShareUpdate(key, None) => {
            ShareStateRecord::Tombstone { key: of(key) }
        }
    }
}

fn from_batches(batches: &[StateBatch]) -> Vec<internal::StateBatch> {
    let one = |batch: &StateBatch| internal::StateBatch {
        first_offset: batch.first,
        last_offset: batch.last,
        delivery_state: batch.state as i8,
        delivery_count: batch.delivery_count,
        ..Default::default()
    };
    batches.iter().map(one).collect()
}

fn to_batches(batches: &[internal::StateBatch]) -> Vec<StateBatch> {
    let one = |batch: &internal::StateBatch| StateBatch {
        first: batch.first_offset,
        last: batch.last_offset,
        state: batch.delivery_state as u8,
        delivery_count: batch.delivery_count,
    };
    batches.iter().map(one).collect()
}
