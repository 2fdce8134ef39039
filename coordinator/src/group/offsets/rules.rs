//! What committed offsets ask of their group, by its type.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::classic::group::{ClassicGroup, ClassicGroupState};
use super::super::consumer::ConsumerGroup;
use super::super::consumer::members::deletion;
use super::super::consumer_protocol::{CONSUMER, ConsumerProtocol};
use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupError;
use super::super::plan::GroupErrorKind::{NonEmptyGroup, RebalanceInProgress};
use super::super::records::{ClassicGroupValue, GroupRecord};
use super::expiry::Unused;
use super::table::{CommittedOffset, OffsetTable};

impl GroupCoordinator {
    /// All committed offsets.
    pub fn offsets(&self) -> &OffsetTable {
        &self.offsets
    }

    /// Takes in an offset's record. One of a group that is not known makes it a classic one without
    /// members, a *simple* group: that is how a commit from outside makes a group.
    pub(in crate::group) fn apply_offset(
        &mut self,
        group_id: &Arc<str>,
        topic: &Arc<str>,
        partition: i32,
        value: Option<&CommittedOffset>,
    ) {
        if value.is_some() && !self.groups.contains_key(&**group_id) {
            let simple = ClassicGroupValue {
                state_timestamp: -1,
                ..ClassicGroupValue::default()
            };
            let group = Group::Classic(Box::new(ClassicGroup::load(group_id, &simple)));
            self.groups.insert(group_id.to_string(), group);
        }
        self.offsets.apply(group_id, topic, partition, value);
    }

    /// The topics whose offsets a living group needs.
    pub(super) fn needed_topics<'a>(&self, group: &'a Group) -> NeededTopics<'a> {
        match group {
            Group::Classic(group) => {
                let rules = self.offset_rules.as_ref();
                rules.map_or(NeededTopics::All, |rules| {
                    group.needed_topics(rules.consumers)
                })
            }
            Group::Consumer(group) => NeededTopics::Of(group),
            Group::Share(_) => NeededTopics::Some(BTreeSet::new()),
        }
    }
}

/// Topics whose offsets stay whatever their age.
#[derive(Clone, Debug)]
pub(super) enum NeededTopics<'a> {
    /// What the members subscribe to is not known.
    All,
    /// These.
    Some(BTreeSet<String>),
    /// Those that the group subscribes to, by name or by a regular expression.
    Of(&'a ConsumerGroup),
}

impl NeededTopics<'_> {
    pub(super) fn include(&self, topic: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(topics) => topics.contains(topic),
            Self::Of(group) => group.subscribes(topic),
        }
    }
}

/// Whether a group has no members, so that it may go.
pub(super) fn is_empty_group(group: &Group) -> bool {
    match group {
        Group::Share(group) => group.members.is_empty(),
        Group::Classic(group) => group.state == ClassicGroupState::Empty,
        Group::Consumer(group) => group.members.is_empty(),
    }
}

/// The tombstones of a group without members.
pub(super) fn group_tombstones(group_id: &str, group: &Group) -> Vec<GroupRecord> {
    match group {
        Group::Classic(_) => vec![GroupRecord::ClassicGroup {
            group_id: group_id.to_owned(),
            value: None,
        }],
        Group::Consumer(group) => deletion(group),
        Group::Share(_) => Vec::new(),
    }
}

impl Unused {
    pub(super) fn of(group: &Group) -> Self {
        match group {
            Group::Classic(group) => group.offsets_unused(),
            Group::Consumer(_) => Self::SinceCommit,
            Group::Share(_) => Self::Never,
        }
    }
}

impl ClassicGroup {
    /// Whether this member, or nobody (a negative generation), may commit offsets.
    pub(super) fn check_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), GroupError> {
        let is_empty = self.state == ClassicGroupState::Empty;
        if generation < 0 && is_empty {
            return Ok(());
        }
        self.check_generation(member_id, instance_id, generation)
            .map_err(GroupError::bare)?;
        if self.state == ClassicGroupState::CompletingRebalance {
            return Err(GroupError::bare(RebalanceInProgress));
        }
        Ok(())
    }

    /// Whether `OffsetDelete` may be asked for: while a group lives, only of one of consumers, whose
    /// subscriptions are known.
    pub(super) fn check_delete_offsets(&self) -> Result<(), GroupError> {
        if self.state == ClassicGroupState::Empty || self.protocol_type.as_deref() == Some(CONSUMER)
        {
            return Ok(());
        }
        Err(GroupError::bare(NonEmptyGroup))
    }

    /// KIP-211: a group of members needs its offsets until it is empty, a simple group from commit
    /// to commit.
    pub(super) fn offsets_unused(&self) -> Unused {
        let Some(protocol_type) = &self.protocol_type else {
            return Unused::SinceCommit;
        };
        match self.state {
            ClassicGroupState::Empty if self.state_since >= 0 => Unused::Since(self.state_since),
            ClassicGroupState::Empty => Unused::SinceCommit,
            ClassicGroupState::Stable if protocol_type == CONSUMER => Unused::SinceCommit,
            _ => Unused::Never,
        }
    }

    /// What the members of a group of consumers subscribe to, by the protocol that they have chosen.
    fn needed_topics(&self, consumers: &dyn ConsumerProtocol) -> NeededTopics<'static> {
        if self.members.is_empty() || self.protocol_type.as_deref() != Some(CONSUMER) {
            return NeededTopics::Some(BTreeSet::new());
        }
        let Some(protocol) = &self.protocol else {
            return NeededTopics::All;
        };
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            match consumers.subscription(&member.metadata(protocol)) {
                Some(subscription) => topics.extend(subscription.topics),
                None => return NeededTopics::All,
            }
        }
        NeededTopics::Some(topics)
    }
}
