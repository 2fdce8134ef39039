//! The one map between this project's records and Kafka's schemas in the internal topics.

use bytes::Bytes;
use ottla_coordinator::group::records::GroupRecord;
use ottla_coordinator::types::Uuid as TopicId;
use ottla_protocol::batch::{self, BatchBuilder, BatchHeader, Batches};
use ottla_protocol::internal::{
    ClusterMetadataRecord, ConfigRecord, ConsumerOffsetsRecord, FeatureLevelRecord, InternalError,
    PartitionChangeRecord, PartitionRecord, ProducerIdsRecord, RemoveTopicRecord, TopicRecord,
};
use ottla_protocol::{ErrorCode, Uuid};
use ottla_storage::{AppendError, AppendInfo, AppendOptions, Bound, Log, Origin};

use crate::cluster::{Leadership, LeadershipChange};
use crate::config::{ConfigChange, ResourceType};
use crate::error_code::ApiError;

mod group;
mod share_state;

pub(crate) use group::compact_string;
pub(crate) use share_state::{replay_share_state, share_state_batch};

/// How much of a log is read at a time in a replay.
const REPLAY_BYTES: usize = 1 << 20;
/// The leader epoch of the metadata log: this process is its only controller.
const METADATA_EPOCH: i32 = 1;
/// What a partition change says of a leader that stays.
const NO_CHANGE: i32 = -2;
/// What a partition change says of a recovery state that stays.
const SAME_RECOVERY: i8 = -1;

/// A change of the cluster's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MetadataChange {
    /// A topic was made.
    Topic {
        /// Its name.
        name: String,
        /// Its id.
        id: Uuid,
    },
    /// A partition was made.
    Partition {
        /// The topic.
        topic_id: Uuid,
        /// The partition's index.
        index: i32,
        /// Who leads and follows.
        leadership: Leadership,
    },
    /// Leader, replicas or ISR changed.
    PartitionChange {
        /// The topic.
        topic_id: Uuid,
        /// The partition's index.
        index: i32,
        /// What changed.
        change: LeadershipChange,
    },
    /// A topic was deleted, with its configuration.
    RemoveTopic {
        /// The topic.
        id: Uuid,
    },
    /// A configuration changed.
    Config(ConfigChange),
    /// A feature has this finalized level now.
    Feature {
        /// The feature.
        name: String,
        /// The level; 0 is none.
        level: i16,
    },
    /// Producer ids below this were handed out.
    ProducerIds {
        /// The first one that is free.
        next: i64,
    },
}

/// An encoded batch and its header.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The batch.
    pub(crate) bytes: Bytes,
    /// Its header.
    pub(crate) header: BatchHeader,
}

impl Batch {
    fn of(builder: BatchBuilder) -> Result<Self, ApiError> {
        let bytes = builder.build().map_err(|error| ApiError::from(&error))?;
        let header = BatchHeader::parse(&bytes).map_err(|error| ApiError::from(&error))?;
        Ok(Self { bytes, header })
    }

    /// Appends it to a log of the broker's own.
    pub(crate) fn append(
        &self,
        log: &Log,
        leader_epoch: i32,
        now: i64,
    ) -> Result<AppendInfo, AppendError> {
        let options = AppendOptions {
            leader_epoch,
            now,
            log_append_time: false,
            origin: Origin::Coordinator,
        };
        log.append(&self.bytes, &self.header, options)
    }
}

/// Calls `each` with the offset, key and value of every record that the log holds.
fn replay(
    log: &Log,
    mut each: impl FnMut(i64, Option<&[u8]>, Option<&[u8]>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let mut next = log.start_offset();
    while next < log.end_offset() {
        let slice = log.read(next, REPLAY_BYTES, true, Bound::LogEnd)?;
        if slice.bytes.is_empty() {
            // Compaction may leave nothing before the end.
            return Ok(());
        }
        for batch in Batches::new(&slice.bytes) {
            let (header, bytes) = batch.map_err(|error| ApiError::from(&error))?;
            let from = next;
            next = header.next_offset();
            if header.is_control() {
                continue;
            }
            let records = batch::records(bytes).map_err(|error| ApiError::from(&error))?;
            for record in &records {
                let record = record.map_err(|error| ApiError::from(&error))?;
                if record.offset >= from {
                    each(record.offset, record.key, record.value)?;
                }
            }
        }
    }
    Ok(())
}

/// A record that cannot be read stops the start: guessing would lose what it says.
fn unreadable(log: &Log, offset: i64, error: &InternalError) -> ApiError {
    let message = format!("record {offset} of {} cannot be read: {error}", log.name());
    ApiError::new(ErrorCode::KAFKA_STORAGE_ERROR, message)
}

/// What the metadata log holds, oldest first. Records that this broker has no use for are left out.
pub(crate) fn read_metadata(log: &Log) -> Result<Vec<MetadataChange>, ApiError> {
    let mut changes = vec![];
    replay(log, |offset, _, value| {
        let Some(value) = value else { return Ok(()) };
        let record = ClusterMetadataRecord::decode(value)
            .map_err(|error| unreadable(log, offset, &error))?;
        changes.extend(to_change(record));
        Ok(())
    })?;
    Ok(changes)
}

/// Appends changes to the metadata log as one batch.
pub(crate) fn append_metadata(
    log: &Log,
    changes: &[MetadataChange],
    now: i64,
) -> Result<(), ApiError> {
    let mut builder = BatchBuilder::coordinator();
    for change in changes {
        builder.push(now, None, Some(&from_change(change).encode()));
    }
    let batch = Batch::of(builder)?;
    batch.append(log, METADATA_EPOCH, now)?;
    Ok(())
}

fn from_change(change: &MetadataChange) -> ClusterMetadataRecord {
    match change {
        MetadataChange::Topic { name, id } => ClusterMetadataRecord::Topic(TopicRecord {
            name: name.clone(),
            topic_id: *id,
            ..Default::default()
        }),
        MetadataChange::Partition {
            topic_id,
            index,
            leadership,
        } => ClusterMetadataRecord::Partition(from_leadership(*topic_id, *index, leadership)),
        MetadataChange::PartitionChange {
            topic_id,
            index,
            change,
        } => ClusterMetadataRecord::PartitionChange(PartitionChangeRecord {
            partition_id: *index,
            topic_id: *topic_id,
            isr: change.isr.clone(),
            leader: change.leader.unwrap_or(NO_CHANGE),
            replicas: change.replicas.clone(),
            removing_replicas: change.removing.clone(),
            adding_replicas: change.adding.clone(),
            leader_recovery_state: change.recovering.map_or(SAME_RECOVERY, i8::from),
            eligible_leader_replicas: change.elr.clone(),
            last_known_elr: change.last_known_elr.clone(),
            directories: change
                .replicas
                .as_ref()
                .map(|all| vec![Uuid::nil(); all.len()]),
            ..Default::default()
        }),
        MetadataChange::RemoveTopic { id } => {
            ClusterMetadataRecord::RemoveTopic(RemoveTopicRecord {
                topic_id: *id,
                ..Default::default()
            })
        }
        MetadataChange::Config(change) => ClusterMetadataRecord::Config(ConfigRecord {
            resource_type: change.resource.wire(),
            resource_name: change.name.clone(),
            name: change.key.clone(),
            value: change.value.clone(),
            ..Default::default()
        }),
        MetadataChange::Feature { name, level } => {
            ClusterMetadataRecord::FeatureLevel(FeatureLevelRecord {
                name: name.clone(),
                feature_level: *level,
                ..Default::default()
            })
        }
        MetadataChange::ProducerIds { next } => {
            ClusterMetadataRecord::ProducerIds(ProducerIdsRecord {
                next_producer_id: *next,
                ..Default::default()
            })
        }
    }
}

fn from_leadership(topic_id: Uuid, index: i32, leadership: &Leadership) -> PartitionRecord {
    let some = |ids: &[i32]| (!ids.is_empty()).then(|| ids.to_vec());
    PartitionRecord {
        partition_id: index,
        topic_id,
        replicas: leadership.replicas.clone(),
        isr: leadership.isr.clone(),
        removing_replicas: leadership.removing.clone(),
        adding_replicas: leadership.adding.clone(),
        leader: leadership.leader,
        leader_epoch: leadership.leader_epoch,
        partition_epoch: leadership.partition_epoch,
        directories: vec![Uuid::nil(); leadership.replicas.len()],
        leader_recovery_state: i8::from(leadership.recovering),
        eligible_leader_replicas: some(&leadership.elr),
        last_known_elr: some(&leadership.last_known_elr),
        ..Default::default()
    }
}

fn to_change(record: ClusterMetadataRecord) -> Option<MetadataChange> {
    Some(match record {
        ClusterMetadataRecord::Topic(r) => MetadataChange::Topic {
            name: r.name,
            id: r.topic_id,
        },
        ClusterMetadataRecord::Partition(r) => MetadataChange::Partition {
            topic_id: r.topic_id,
            index: r.partition_id,
            leadership: Leadership {
                leader: r.leader,
                leader_epoch: r.leader_epoch,
                partition_epoch: r.partition_epoch,
                replicas: r.replicas,
                isr: r.isr,
                adding: r.adding_replicas,
                removing: r.removing_replicas,
                elr: r.eligible_leader_replicas.unwrap_or_default(),
                last_known_elr: r.last_known_elr.unwrap_or_default(),
                recovering: r.leader_recovery_state == 1,
            },
        },
        ClusterMetadataRecord::PartitionChange(r) => MetadataChange::PartitionChange {
            topic_id: r.topic_id,
            index: r.partition_id,
            change: LeadershipChange {
                leader: (r.leader != NO_CHANGE).then_some(r.leader),
                replicas: r.replicas,
                isr: r.isr,
                adding: r.adding_replicas,
                removing: r.removing_replicas,
                elr: r.eligible_leader_replicas,
                last_known_elr: r.last_known_elr,
                recovering: (r.leader_recovery_state != SAME_RECOVERY)
                    .then_some(r.leader_recovery_state == 1),
            },
        },
        ClusterMetadataRecord::RemoveTopic(r) => MetadataChange::RemoveTopic { id: r.topic_id },
        ClusterMetadataRecord::Config(r) => MetadataChange::Config(ConfigChange {
            resource: ResourceType::from_wire(r.resource_type)?,
            name: r.resource_name,
            key: r.name,
            value: r.value,
        }),
        ClusterMetadataRecord::FeatureLevel(r) => MetadataChange::Feature {
            name: r.name,
            level: r.feature_level,
        },
        ClusterMetadataRecord::ProducerIds(r) => MetadataChange::ProducerIds {
            next: r.next_producer_id,
        },
        _ => return None,
    })
}

/// A member id as Kafka's coordinators make them: what the member calls itself, and a random uuid.
pub(crate) fn random_member_id(name: &str) -> String {
    let uuid: u128 = rand::random();
    let suffix = format!("-{}", Uuid::from_u128(uuid));
    // A longer string could not be told to anybody, nor be logged.
    let mut end = name.len().min(i16::MAX as usize - suffix.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &name[..end])
}

/// A topic id that does not begin with a dash, as Kafka's do not, so that tools can take it as an
/// argument.
pub(crate) fn random_topic_id() -> Uuid {
    loop {
        let id = Uuid::from_u128(rand::random());
        if !topic_id(id).to_string().starts_with('-') && !id.is_nil() {
            return id;
        }
    }
}

/// A topic id in the coordinators' type.
pub(crate) fn topic_id(id: Uuid) -> TopicId {
    TopicId(*id.as_bytes())
}

/// Reads a topic id as Kafka writes it: 22 characters of base64.
pub(crate) fn parse_uuid(text: &str) -> Option<TopicId> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    if text.len() != 22 {
        return None;
    }
    let mut bits: u128 = 0;
    for (at, byte) in text.bytes().enumerate() {
        let six = ALPHABET.iter().position(|&known| known == byte)? as u128;
        // 132 bits are written for 128: the last four must be nothing.
        bits = if at < 21 {
            bits << 6 | six
        } else {
            bits << 2 | six >> 4
        };
    }
    Some(TopicId(bits.to_be_bytes()))
}

/// Calls `each` with every share group record of `__consumer_offsets`.
pub(crate) fn replay_groups(log: &Log, mut each: impl FnMut(GroupRecord)) -> Result<(), ApiError> {
    replay(log, |offset, key, value| {
        let record = match ConsumerOffsetsRecord::decode(key.unwrap_or_default(), value) {
            Ok(record) => record,
            // Groups of a kind that this version does not serve keep their records.
            Err(InternalError::UnknownType(_)) => return Ok(()),
            Err(error) => return Err(unreadable(log, offset, &error)),
        };
        if let Some(record) = group::decode(record) {
            each(record);
        }
        Ok(())
    })
}

/// The batch of some records of `__consumer_offsets`.
pub(crate) fn group_batch(records: &[GroupRecord], now: i64) -> Result<Batch, ApiError> {
    let mut builder = BatchBuilder::coordinator();
    for record in records {
        let (key, value) = group::encode(record).encode();
        builder.push(now, Some(&key), value.as_deref());
    }
    Batch::of(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_ids_read_back_from_their_text() {
        for _ in 0..100 {
            let id = topic_id(random_topic_id());
            assert_eq!(parse_uuid(&id.to_string()), Some(id));
        }
        assert_eq!(parse_uuid("short"), None);
        assert_eq!(parse_uuid("AAAAAAAAAAAAAAAAAAAA!A"), None);
    }

    #[test]
    fn metadata_changes_survive_the_log() {
        let leadership = Leadership {
            leader: 1,
            leader_epoch: 2,
            partition_epoch: 3,
            adding: vec![2],
            removing: vec![3],
            elr: vec![4],
            last_known_elr: vec![5],
            recovering: true,
            ..Leadership::new(vec![1, 2], vec![1])
        };
        let id = random_topic_id();
        let changes = [
            MetadataChange::Topic {
                name: "t".to_owned(),
                id,
            },
            MetadataChange::Partition {
                topic_id: id,
                index: 4,
                leadership,
            },
            MetadataChange::PartitionChange {
                topic_id: id,
                index: 4,
                change: LeadershipChange {
                    leader: Some(-1),
                    isr: Some(vec![]),
                    elr: Some(vec![1]),
                    last_known_elr: Some(vec![1]),
                    ..LeadershipChange::default()
                },
            },
            MetadataChange::PartitionChange {
                topic_id: id,
                index: 4,
                change: LeadershipChange {
                    replicas: Some(vec![2]),
                    adding: Some(vec![2]),
                    removing: Some(vec![]),
                    recovering: Some(false),
                    ..LeadershipChange::default()
                },
            },
            MetadataChange::Config(ConfigChange {
                resource: ResourceType::Group,
                name: "g".to_owned(),
                key: "k".to_owned(),
                value: Some("v".to_owned()),
            }),
            MetadataChange::Feature {
                name: "share.version".to_owned(),
                level: 2,
            },
            MetadataChange::ProducerIds { next: 1000 },
            MetadataChange::RemoveTopic { id },
        ];
        for change in changes {
            let record = ClusterMetadataRecord::decode(&from_change(&change).encode());
            assert_eq!(record.ok().and_then(to_change), Some(change));
        }
    }
}
