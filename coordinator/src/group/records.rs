//! What a group coordinator logs: records of `__consumer_offsets`.
//!
//! Each variant is one record; `value: None` is its tombstone. The fields are exactly those of
//! Kafka's schemas, so that the broker maps them one to one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::consumer::records::ConsumerRecord;
use super::consumer_protocol::Blob;
use super::offsets::CommittedOffset;
pub use crate::share::delivery::{Pause, PauseReason};
use crate::types::{TopicPartitions, Ts, Uuid};

/// One record of `__consumer_offsets` that belongs to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRecord {
    /// Types 0 and 1: what a group committed for a partition.
    Offset {
        /// Key: the group.
        group_id: Arc<str>,
        /// Key: the topic's name.
        topic: Arc<str>,
        /// Key: the partition.
        partition: i32,
        /// The offset, or a tombstone.
        value: Option<CommittedOffset>,
    },
    /// Type 2: a classic group as a whole.
    ClassicGroup {
        /// Key: the group.
        group_id: String,
        /// The group, or a tombstone.
        value: Option<ClassicGroupValue>,
    },
    /// Types 3, 5, 6, 7, 8 and 16: one record of a consumer group.
    Consumer {
        /// Key: the group.
        group_id: String,
        /// The rest of the key, and the value.
        record: ConsumerRecord,
    },
    /// Type 10: who a member is and what it subscribes to.
    ShareMember {
        /// Key: the group.
        group_id: String,
        /// Key: the member.
        member_id: String,
        /// The member, or a tombstone.
        value: Option<ShareMemberValue>,
    },
    /// Type 11: the group's epoch.
    ShareGroup {
        /// Key: the group.
        group_id: String,
        /// The group, or a tombstone.
        value: Option<ShareGroupValue>,
    },
    /// Type 12: the epoch of the target assignment.
    ShareTargetMetadata {
        /// Key: the group.
        group_id: String,
        /// The target assignment's epoch and time, or a tombstone.
        value: Option<ShareTargetMetadataValue>,
    },
    /// Type 13: a member's target assignment.
    ShareTargetMember {
        /// Key: the group.
        group_id: String,
        /// Key: the member.
        member_id: String,
        /// What the member shall have, or a tombstone.
        value: Option<Vec<TopicPartitions>>,
    },
    /// Type 14: a member's current assignment.
    ShareCurrentMember {
        /// Key: the group.
        group_id: String,
        /// Key: the member.
        member_id: String,
        /// What the member was told, or a tombstone.
        value: Option<ShareCurrentMemberValue>,
    },
    /// Type 15: which share partitions have state at the share coordinator.
    ShareStatePartitions {
        /// Key: the group.
        group_id: String,
        /// The partitions, or a tombstone.
        value: Option<ShareStatePartitionsValue>,
    },
}

impl GroupRecord {
    /// The group that the record belongs to.
    pub fn group_id(&self) -> &str {
        match self {
            Self::Offset { group_id, .. } => group_id,
            Self::ClassicGroup { group_id, .. }
            | Self::Consumer { group_id, .. }
            | Self::ShareMember { group_id, .. }
            | Self::ShareGroup { group_id, .. }
            | Self::ShareTargetMetadata { group_id, .. }
            | Self::ShareTargetMember { group_id, .. }
            | Self::ShareCurrentMember { group_id, .. }
            | Self::ShareStatePartitions { group_id, .. } => group_id,
        }
    }

    /// Records of one consumer group.
    pub(super) fn of_consumer(group_id: &str, records: Vec<ConsumerRecord>) -> Vec<Self> {
        let of_group = |record| Self::Consumer {
            group_id: group_id.to_owned(),
            record,
        };
        records.into_iter().map(of_group).collect()
    }

    /// Whether it is a consumer group's new assignment.
    pub fn is_assignment(&self) -> bool {
        let Self::Consumer { record, .. } = self else {
            return false;
        };
        matches!(record, ConsumerRecord::TargetMetadata(Some(value)) if value.assignment_timestamp != 0)
    }

    /// Whether it is a share group's new assignment.
    pub fn is_share_assignment(&self) -> bool {
        matches!(self, Self::ShareTargetMetadata { value: Some(value), .. } if value.assignment_timestamp != 0)
    }

    /// Whether the record says that something is gone.
    pub fn is_tombstone(&self) -> bool {
        match self {
            Self::Offset { value, .. } => value.is_none(),
            Self::ClassicGroup { value, .. } => value.is_none(),
            Self::Consumer { record, .. } => record.is_tombstone(),
            Self::ShareMember { value, .. } => value.is_none(),
            Self::ShareGroup { value, .. } => value.is_none(),
            Self::ShareTargetMetadata { value, .. } => value.is_none(),
            Self::ShareTargetMember { value, .. } => value.is_none(),
            Self::ShareCurrentMember { value, .. } => value.is_none(),
            Self::ShareStatePartitions { value, .. } => value.is_none(),
        }
    }
}

/// Value of type 2.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClassicGroupValue {
    /// `consumer` for consumers; empty when no member has ever joined.
    pub protocol_type: String,
    /// The generation.
    pub generation: i32,
    /// The protocol that the members have chosen.
    pub protocol: Option<String>,
    /// The leader's member id.
    pub leader: Option<String>,
    /// When the group's state changed last; -1 = unknown.
    pub state_timestamp: Ts,
    /// The members of the generation.
    pub members: Vec<ClassicMemberValue>,
}

/// One member in a value of type 2.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClassicMemberValue {
    /// The member.
    pub member_id: String,
    /// Its name over restarts (KIP-345).
    pub instance_id: Option<String>,
    /// The client's name for itself.
    pub client_id: String,
    /// Client address, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
    /// Rebalance timeout in milliseconds.
    pub rebalance_timeout_ms: i32,
    /// Session timeout in milliseconds.
    pub session_timeout_ms: i32,
    /// The member's metadata for the chosen protocol.
    pub subscription: Blob,
    /// The member's assignment.
    pub assignment: Blob,
}

/// Value of type 10.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareMemberValue {
    /// The member's rack, if it named one.
    pub rack_id: Option<String>,
    /// Client id of its last heartbeat's connection.
    pub client_id: String,
    /// Client address, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
    /// Subscribed topic names, sorted, each once.
    pub subscribed_topic_names: Vec<String>,
}

/// Value of type 11.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareGroupValue {
    /// The group epoch: rises with every change of members, subscriptions or topics.
    pub epoch: i32,
    /// Hash of the subscribed topics (opaque); 0 when there are none.
    pub metadata_hash: i64,
    /// Why delivery is paused, if it is (KIP-1249, a draft).
    pub pause: Option<Pause>,
    /// Tagged fields that this version does not know, by tag; kept whenever the record is rewritten.
    pub unknown_tags: BTreeMap<i32, Vec<u8>>,
}

/// Value of type 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ShareTargetMetadataValue {
    /// The group epoch that the target assignment was computed for.
    pub assignment_epoch: i32,
    /// When it was computed; 0 = not set (tag omitted).
    pub assignment_timestamp: Ts,
}

/// Value of type 14. Its `State` is always 0 (stable) for share groups.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareCurrentMemberValue {
    /// The epoch that the member was given.
    pub member_epoch: i32,
    /// The epoch before it, accepted once more in case the answer was lost.
    pub previous_member_epoch: i32,
    /// 0 = stable.
    pub state: i8,
    /// The partitions that go with `member_epoch`.
    pub assigned_partitions: Vec<TopicPartitions>,
}

/// Value of type 15.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareStatePartitionsValue {
    /// Partitions whose state is being initialised.
    pub initializing_topics: Vec<NamedTopicPartitions>,
    /// Partitions that have state.
    pub initialized_topics: Vec<NamedTopicPartitions>,
    /// Topics whose state is being deleted: id and name.
    pub deleting_topics: Vec<(Uuid, String)>,
}

/// Some partitions of a topic, with the topic's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTopicPartitions {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The topic's name when the record was written.
    pub topic_name: String,
    /// Partition indexes, ascending.
    pub partitions: Vec<i32>,
}
