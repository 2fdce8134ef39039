//! The state of one share group, as its records give it.
//!
//! Records may come in any order that compaction leaves: a member's assignment can precede its
//! metadata, so each kind of record has its own map, and a member is who has a type 10.

use std::collections::{BTreeMap, BTreeSet};

use super::partitions::normal;
use super::plan::GroupError;
use super::plan::GroupErrorKind::{FencedMemberEpoch, UnknownMemberId};
use super::records::{
    GroupRecord, ShareCurrentMemberValue, ShareGroupValue, ShareMemberValue,
    ShareTargetMetadataValue,
};
use super::state_partitions::StatePartitions;
use crate::types::{TopicPartition, TopicPartitions, Ts};

/// The epoch of a group that has never had a member.
const FIRST_EPOCH: i32 = 1;

/// What a person sees of a share group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShareGroupState {
    /// It has no members.
    Empty,
    /// It has members.
    Stable,
    /// It does not exist.
    Dead,
}

impl ShareGroupState {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct ShareGroup {
    pub(super) id: String,
    pub(super) value: ShareGroupValue,
    pub(super) target: ShareTargetMetadataValue,
    pub(super) members: BTreeMap<String, ShareMemberValue>,
    pub(super) targets: BTreeMap<String, Vec<TopicPartitions>>,
    pub(super) currents: BTreeMap<String, ShareCurrentMemberValue>,
    pub(super) state: StatePartitions,
    /// How many members subscribe to each topic name.
    pub(super) subscriptions: BTreeMap<String, usize>,
    /// Whether a subscribed partition has state but is in no member's target assignment.
    pub(super) unassigned: bool,
    /// Volatile: not before this instant may initialising be asked for again.
    pub(super) initialize_retry_at: Ts,
}

impl ShareGroup {
    pub(super) fn new(id: &str) -> Self {
        let epoch = FIRST_EPOCH;
        Self {
            id: id.to_owned(),
            value: ShareGroupValue {
                epoch,
                ..ShareGroupValue::default()
            },
            target: ShareTargetMetadataValue {
                assignment_epoch: epoch,
                assignment_timestamp: 0,
            },
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            currents: BTreeMap::new(),
            state: StatePartitions::default(),
            subscriptions: BTreeMap::new(),
            unassigned: false,
            initialize_retry_at: 0,
        }
    }

    pub(super) fn state(&self) -> ShareGroupState {
        if self.members.is_empty() {
            ShareGroupState::Empty
        } else {
            ShareGroupState::Stable
        }
    }

    /// Whether the next assignment is still to be computed.
    pub(super) fn assignment_is_due(&self) -> bool {
        self.value.epoch > self.target.assignment_epoch
    }

    pub(super) fn member(&self, member_id: &str) -> Result<&ShareMemberValue, GroupError> {
        self.members.get(member_id).ok_or_else(|| {
            let text = format!("Member {member_id} is not a member of group {}.", self.id);
            GroupError::new(UnknownMemberId, text)
        })
    }

    /// The epoch that a heartbeat brought: the member's own, or the one before it, whose answer may
    /// have been lost.
    pub(super) fn check_epoch(&self, member_id: &str, received: i32) -> Result<(), GroupError> {
        let (known, previous) = self.currents.get(member_id).map_or((0, 0), |current| {
            (current.member_epoch, current.previous_member_epoch)
        });
        if received > known {
            let text = format!(
                "The share group member has a greater member epoch ({received}) than the one \
                 known by the group coordinator ({known}). The member must abandon all its \
                 partitions and rejoin."
            );
            return Err(GroupError::new(FencedMemberEpoch, text));
        }
        if received < known && received != previous {
            let text = format!(
                "The share group member has a smaller member epoch ({received}) than the one \
                 known by the group coordinator ({known}), and it does not match the previous \
                 member epoch ({previous}). The member must abandon all its partitions and rejoin."
            );
            return Err(GroupError::new(FencedMemberEpoch, text));
        }
        Ok(())
    }

    /// Takes in a record of this group. Tombstones of types 11, 12 and 15 are the coordinator's to
    /// judge: together they end the group.
    pub(super) fn apply(&mut self, record: &GroupRecord) {
        match record {
            GroupRecord::ShareMember {
                member_id, value, ..
            } => {
                self.set_member(member_id, value.clone());
            }
            GroupRecord::ShareGroup { value, .. } => {
                self.value = value.clone().unwrap_or_default();
            }
            GroupRecord::ShareTargetMetadata { value, .. } => {
                self.target = value.unwrap_or_default();
            }
            GroupRecord::ShareTargetMember {
                member_id, value, ..
            } => {
                put(&mut self.targets, member_id, value.as_deref().map(normal));
            }
            GroupRecord::ShareCurrentMember {
                member_id, value, ..
            } => {
                let value = value.clone().map(|mut value| {
                    value.assigned_partitions = normal(&value.assigned_partitions);
                    value
                });
                put(&mut self.currents, member_id, value);
            }
            GroupRecord::ShareStatePartitions { value, .. } => {
                self.state = value
                    .as_ref()
                    .map(StatePartitions::load)
                    .unwrap_or_default();
            }
            GroupRecord::Offset { .. }
            | GroupRecord::ClassicGroup { .. }
            | GroupRecord::Consumer { .. } => {}
        }
    }

    /// Forgets everything that no record holds.
    pub(super) fn forget_volatile(&mut self) {
        self.initialize_retry_at = 0;
    }

    fn set_member(&mut self, member_id: &str, value: Option<ShareMemberValue>) {
        for name in value.iter().flat_map(|value| &value.subscribed_topic_names) {
            *self.subscriptions.entry(name.clone()).or_default() += 1;
        }
        let old = match value {
            Some(value) => self.members.insert(member_id.to_owned(), value),
            None => self.members.remove(member_id),
        };
        for name in old.iter().flat_map(|old| &old.subscribed_topic_names) {
            if let Some(count) = self.subscriptions.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.subscriptions.remove(name);
                }
            }
        }
    }

    /// Recomputes [`ShareGroup::unassigned`]: for after types 12 and 15, and after a replay. A
    /// changed subscription needs none, it raises the epoch by itself.
    pub(super) fn note_unassigned(&mut self) {
        let mut assigned: BTreeSet<TopicPartition> = BTreeSet::new();
        for topic in self.targets.values().flatten() {
            let topic_id = topic.topic_id;
            let of_topic = topic.partitions.iter();
            assigned.extend(of_topic.map(|&partition| TopicPartition {
                topic_id,
                partition,
            }));
        }
        self.unassigned = self.state.initialized.iter().any(|(&topic_id, topic)| {
            let is_assigned = |&partition: &i32| {
                assigned.contains(&TopicPartition {
                    topic_id,
                    partition,
                })
            };
            self.subscriptions.contains_key(&topic.name)
                && !topic.partitions.iter().all(is_assigned)
        });
    }
}

fn put<V>(map: &mut BTreeMap<String, V>, key: &str, value: Option<V>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    };
}
