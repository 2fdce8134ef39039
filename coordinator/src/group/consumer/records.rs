//! What a consumer group logs: record types 3, 5, 6, 7, 8 and 16 of `__consumer_offsets` (KIP-848,
//! KIP-1101, KIP-1251). Type 4 is of older releases: it is read over.
//!
//! Each variant is one record; `value: None` is its tombstone.

use std::collections::BTreeMap;

use crate::group::consumer_protocol::Blob;
use crate::types::{TopicPartitions, Ts, Uuid};

/// One record of `__consumer_offsets` that belongs to a consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsumerRecord {
    /// Type 3: the group's epoch.
    Group(Option<GroupValue>),
    /// Type 5: who a member is and what it subscribes to.
    Member(String, Option<MemberValue>),
    /// Type 6: the epoch of the target assignment.
    TargetMetadata(Option<TargetMetadataValue>),
    /// Type 7: a member's target assignment.
    TargetMember(String, Option<Vec<TopicPartitions>>),
    /// Type 8: a member's current assignment.
    CurrentMember(String, Option<CurrentValue>),
    /// Type 16: the topics that a regular expression stands for. Key: the expression.
    Regex(String, Option<RegexValue>),
}

impl ConsumerRecord {
    /// Whether it is a tombstone.
    pub fn is_tombstone(&self) -> bool {
        match self {
            Self::Group(value) => value.is_none(),
            Self::Member(_, value) => value.is_none(),
            Self::TargetMetadata(value) => value.is_none(),
            Self::TargetMember(_, value) => value.is_none(),
            Self::CurrentMember(_, value) => value.is_none(),
            Self::Regex(_, value) => value.is_none(),
        }
    }
}

/// Value of type 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GroupValue {
    /// The group epoch: rises with every change of members, subscriptions or topics.
    pub epoch: i32,
    /// Hash of the subscribed topics (opaque); 0 when there are none.
    pub metadata_hash: i64,
}

/// Value of type 5.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemberValue {
    /// Its instance id, when it is a static member.
    pub instance_id: Option<String>,
    /// Its rack, if it named one.
    pub rack_id: Option<String>,
    /// Client id of its last heartbeat's connection.
    pub client_id: String,
    /// Client address, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
    /// Subscribed topic names, sorted, each once.
    pub subscribed_topic_names: Vec<String>,
    /// Subscribed regular expression; empty for none.
    pub subscribed_topic_regex: String,
    /// How long it may take to give up partitions, in milliseconds.
    pub rebalance_timeout_ms: i32,
    /// The assignor that it votes for.
    pub server_assignor: Option<String>,
    /// Set for a member that speaks the classic protocol.
    pub classic: Option<ClassicMetadata>,
}

/// What a member of a consumer group that speaks the classic protocol said when it joined.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClassicMetadata {
    /// Its session timeout, in milliseconds.
    pub session_timeout_ms: i32,
    /// Its protocols by preference: name and subscription.
    pub supported_protocols: Vec<(String, Blob)>,
}

/// Value of type 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TargetMetadataValue {
    /// The group epoch that the target assignment was computed for.
    pub assignment_epoch: i32,
    /// When it was computed; 0 = not set (tag omitted).
    pub assignment_timestamp: Ts,
}

/// What a member has to do before it has all of its target assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemberState {
    /// Nothing: it has what its epoch gives it.
    #[default]
    Stable,
    /// It must give up partitions before it goes to the next epoch.
    UnrevokedPartitions,
    /// It waits for partitions that others have not given up yet.
    UnreleasedPartitions,
    /// Written by a later release.
    Unknown,
}

impl MemberState {
    /// As the record holds it.
    pub fn code(self) -> i8 {
        match self {
            Self::Stable => 0,
            Self::UnrevokedPartitions => 1,
            Self::UnreleasedPartitions => 2,
            Self::Unknown => 127,
        }
    }

    /// From what a record holds.
    pub fn from_code(code: i8) -> Self {
        match code {
            0 => Self::Stable,
            1 => Self::UnrevokedPartitions,
            2 => Self::UnreleasedPartitions,
            _ => Self::Unknown,
        }
    }
}

/// Partitions by topic, each with the member epoch that it was assigned in (KIP-1251).
pub type Owned = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// Value of type 8.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CurrentValue {
    /// The epoch that the member was given; -2 for a static member that left for a while.
    pub member_epoch: i32,
    /// The epoch before it, accepted once more in case the answer was lost.
    pub previous_member_epoch: i32,
    /// What it has to do.
    pub state: MemberState,
    /// The partitions that go with `member_epoch`.
    pub assigned: Owned,
    /// The partitions that it must give up.
    pub pending_revocation: Owned,
}

/// Value of type 16.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RegexValue {
    /// The topics' names, ascending.
    pub topics: Vec<String>,
    /// The version of the topics that it was resolved with (opaque).
    pub version: i64,
    /// When.
    pub timestamp: Ts,
}
