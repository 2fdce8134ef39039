//! The state of one consumer group, as its records give it (KIP-848).
//!
//! Records may come in any order that compaction leaves: a member's assignment can precede its
//! metadata, so each kind of record has its own map, and a member is who has a type 5.

use std::collections::{BTreeMap, BTreeSet};

use super::assignor::Assignor;
use super::owned;
use super::records::{
    ConsumerRecord, CurrentValue, GroupValue, MemberState, MemberValue, RegexValue,
    TargetMetadataValue,
};
use crate::group::partitions::normal;
use crate::group::plan::GroupError;
use crate::group::plan::GroupErrorKind::{FencedMemberEpoch, UnknownMemberId};
use crate::types::{TopicPartitions, Uuid};

/// The epoch of a group that has never had a member.
const FIRST_EPOCH: i32 = 1;

/// What a person sees of a consumer group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsumerGroupState {
    /// It has no members.
    Empty,
    /// The assignment of its epoch is still to be made.
    Assigning,
    /// Members are on their way to their assignment.
    Reconciling,
    /// Every member has its assignment.
    Stable,
    /// It does not exist.
    Dead,
}

impl ConsumerGroupState {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// A consumer group.
#[derive(Clone, Debug)]
pub(in crate::group) struct ConsumerGroup {
    pub(in crate::group) id: String,
    pub(super) value: GroupValue,
    pub(super) target: TargetMetadataValue,
    pub(in crate::group) members: BTreeMap<String, MemberValue>,
    pub(super) targets: BTreeMap<String, Vec<TopicPartitions>>,
    pub(super) currents: BTreeMap<String, CurrentValue>,
    pub(super) regexes: BTreeMap<String, RegexValue>,
    /// How many members subscribe to each topic name, each regular expression, and vote for each
    /// assignor; and the static members by instance id.
    pub(super) names: BTreeMap<String, usize>,
    pub(super) regex_members: BTreeMap<String, usize>,
    votes: BTreeMap<String, usize>,
    pub(super) instances: BTreeMap<String, String>,
    /// Who holds each partition, or has still to give it up.
    pub(super) holders: BTreeMap<Uuid, BTreeMap<i32, String>>,
    /// How many classic members speak each protocol of theirs.
    pub(super) speakers: BTreeMap<String, usize>,
    /// How many members speak the classic protocol.
    pub(in crate::group) classic_members: usize,
    /// How many members have, stable, the epoch that is the key. Those with the target's epoch have
    /// all that they shall have.
    stable_at: BTreeMap<i32, usize>,
    /// Volatile: the version of the topics that the last heartbeat looked at.
    pub(super) seen_version: Option<i64>,
}

impl ConsumerGroup {
    pub(in crate::group) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            value: GroupValue {
                epoch: FIRST_EPOCH,
                metadata_hash: 0,
            },
            target: TargetMetadataValue {
                assignment_epoch: FIRST_EPOCH,
                assignment_timestamp: 0,
            },
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            currents: BTreeMap::new(),
            regexes: BTreeMap::new(),
            names: BTreeMap::new(),
            regex_members: BTreeMap::new(),
            votes: BTreeMap::new(),
            instances: BTreeMap::new(),
            holders: BTreeMap::new(),
            speakers: BTreeMap::new(),
            classic_members: 0,
            stable_at: BTreeMap::new(),
            seen_version: None,
        }
    }

    pub(in crate::group) fn state(&self) -> ConsumerGroupState {
        if self.members.is_empty() {
            ConsumerGroupState::Empty
        } else if self.value.epoch > self.target.assignment_epoch {
            ConsumerGroupState::Assigning
        } else if self.stable_at.get(&self.target.assignment_epoch).copied()
            == Some(self.members.len())
        {
            ConsumerGroupState::Stable
        } else {
            ConsumerGroupState::Reconciling
        }
    }

    pub(super) fn member(&self, member_id: &str) -> Result<&MemberValue, GroupError> {
        self.members.get(member_id).ok_or_else(|| {
            let text = format!("Member {member_id} is not a member of group {}.", self.id);
            GroupError::new(UnknownMemberId, text)
        })
    }

    pub(super) fn current(&self, member_id: &str) -> CurrentValue {
        self.currents.get(member_id).cloned().unwrap_or_default()
    }

    /// The epoch that a heartbeat brought: the member's own; the one before it, whose answer may
    /// have been lost, as long as the member claims nothing that is not its own; or 0, with which a
    /// member may join again at any time.
    pub(super) fn check_epoch(
        &self,
        member_id: &str,
        received: i32,
        reported: Option<&[TopicPartitions]>,
    ) -> Result<(), GroupError> {
        let fenced = |greater: &str, known: i32| {
            let text = format!(
                "The consumer group member has a {greater} member epoch ({received}) than the one \
                 known by the group coordinator ({known}). The member must abandon all its \
                 partitions and rejoin."
            );
            Err(GroupError::new(FencedMemberEpoch, text))
        };
        let none = CurrentValue::default();
        let current = self.currents.get(member_id).unwrap_or(&none);
        let known = current.member_epoch;
        if received > known {
            return fenced("greater", known);
        }
        let is_answered_again = received == current.previous_member_epoch
            && reported.is_some_and(|reported| owned::has_all(&current.assigned, reported));
        if received < known && received != 0 && !is_answered_again {
            return fenced("smaller", known);
        }
        Ok(())
    }

    /// Whether a member other than `member_id` and `alias` holds the partition.
    pub(super) fn is_taken(&self, topic_id: &Uuid, partition: i32, mine: [&str; 2]) -> bool {
        let holder = self
            .holders
            .get(topic_id)
            .and_then(|holders| holders.get(&partition));
        holder.is_some_and(|holder| !mine.contains(&holder.as_str()))
    }

    /// The assignor with the most votes; with as many the one that comes first in `known`, which is
    /// also the one without any votes.
    pub(super) fn assignor(
        &self,
        known: &[Assignor],
        changed: Option<(Option<&str>, Option<&str>)>,
    ) -> Assignor {
        let (old, new) = changed.unwrap_or((None, None));
        let count = |assignor: &Assignor| {
            let name = assignor.name();
            let votes = self.votes.get(name).copied().unwrap_or(0);
            (votes + usize::from(new == Some(name))).saturating_sub(usize::from(old == Some(name)))
        };
        let best = known
            .iter()
            .rev()
            .max_by_key(|assignor| count(assignor))
            .copied();
        best.unwrap_or(Assignor::Uniform)
    }

    /// Whether a member subscribes to the topic, by name or by a regular expression.
    pub(in crate::group) fn subscribes(&self, topic: &str) -> bool {
        self.names.contains_key(topic)
            || self.regexes.values().any(|regex| {
                regex
                    .topics
                    .binary_search_by(|name| name.as_str().cmp(topic))
                    .is_ok()
            })
    }

    /// Takes in a record of this group. Tombstones of types 3 and 6 are the coordinator's to judge:
    /// together they end the group.
    pub(in crate::group) fn apply(&mut self, record: &ConsumerRecord) {
        match record {
            ConsumerRecord::Group(value) => self.value = value.unwrap_or_default(),
            ConsumerRecord::Member(member_id, value) => self.set_member(member_id, value.clone()),
            ConsumerRecord::TargetMetadata(value) => self.target = value.unwrap_or_default(),
            ConsumerRecord::TargetMember(member_id, value) => {
                put(&mut self.targets, member_id, value.as_deref().map(normal));
            }
            ConsumerRecord::CurrentMember(member_id, value) => {
                self.set_current(member_id, value.clone());
            }
            ConsumerRecord::Regex(regex, value) => {
                let value = value.clone().map(|mut value| {
                    value.topics.sort_unstable();
                    value
                });
                put(&mut self.regexes, regex, value);
            }
        }
    }

    /// Notes the version of the topics that a heartbeat has looked at.
    pub(in crate::group) fn topics_seen(&mut self, version: i64) {
        self.seen_version = Some(version);
    }

    /// Forgets everything that no record holds.
    pub(in crate::group) fn forget_volatile(&mut self) {
        self.seen_version = None;
    }

    fn set_member(&mut self, member_id: &str, value: Option<MemberValue>) {
        if let Some(old) = self.members.remove(member_id) {
            for name in &old.subscribed_topic_names {
                less(&mut self.names, name);
            }
            less(&mut self.regex_members, &old.subscribed_topic_regex);
            if let Some(vote) = &old.server_assignor {
                less(&mut self.votes, vote);
            }
            let instance = old.instance_id.as_ref();
            if instance
                .and_then(|id| self.instances.get(id))
                .is_some_and(|id| id == member_id)
            {
                self.instances.remove(instance.map_or("", String::as_str));
            }
            self.classic_members -= usize::from(old.classic.is_some());
            for name in protocol_names(&old) {
                less(&mut self.speakers, name);
            }
        }
        let Some(value) = value else { return };
        for name in &value.subscribed_topic_names {
            *self.names.entry(name.clone()).or_default() += 1;
        }
        if !value.subscribed_topic_regex.is_empty() {
            let regex = value.subscribed_topic_regex.clone();
            *self.regex_members.entry(regex).or_default() += 1;
        }
        if let Some(vote) = &value.server_assignor {
            *self.votes.entry(vote.clone()).or_default() += 1;
        }
        if let Some(instance) = &value.instance_id {
            self.instances
                .insert(instance.clone(), member_id.to_owned());
        }
        self.classic_members += usize::from(value.classic.is_some());
        for name in protocol_names(&value) {
            *self.speakers.entry(name.to_owned()).or_default() += 1;
        }
        self.members.insert(member_id.to_owned(), value);
    }

    fn set_current(&mut self, member_id: &str, value: Option<CurrentValue>) {
        if let Some(old) = self.currents.remove(member_id) {
            self.count_stable(&old, false);
            for (topic_id, partition) in
                owned::partitions(&old.assigned).chain(owned::partitions(&old.pending_revocation))
            {
                self.release(&topic_id, partition, member_id);
            }
        }
        let Some(value) = value else { return };
        self.count_stable(&value, true);
        for (topic_id, partition) in
            owned::partitions(&value.assigned).chain(owned::partitions(&value.pending_revocation))
        {
            let holders = self.holders.entry(topic_id).or_default();
            holders.insert(partition, member_id.to_owned());
        }
        self.currents.insert(member_id.to_owned(), value);
    }

    fn release(&mut self, topic_id: &Uuid, partition: i32, member_id: &str) {
        let Some(holders) = self.holders.get_mut(topic_id) else {
            return;
        };
        // Compaction may leave a later holder's record before the one by which this member let go.
        if holders
            .get(&partition)
            .is_some_and(|holder| holder == member_id)
        {
            holders.remove(&partition);
        }
        if holders.is_empty() {
            self.holders.remove(topic_id);
        }
    }

    fn count_stable(&mut self, value: &CurrentValue, is_there: bool) {
        if value.state != MemberState::Stable {
            return;
        }
        let count = self.stable_at.entry(value.member_epoch).or_default();
        if is_there {
            *count += 1;
        } else {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.stable_at.remove(&value.member_epoch);
            }
        }
    }

    /// The topics' names that the expression stood for when it was matched last.
    pub(super) fn matched(&self, regex: &str) -> &[String] {
        self.regexes.get(regex).map_or(&[], |value| &value.topics)
    }
}

/// The classic protocols that a member speaks, each once.
fn protocol_names(member: &MemberValue) -> BTreeSet<&str> {
    let classic = member.classic.iter();
    classic
        .flat_map(|classic| &classic.supported_protocols)
        .map(|(name, _)| name.as_str())
        .collect()
}

pub(super) fn less(counts: &mut BTreeMap<String, usize>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn put<V>(map: &mut BTreeMap<String, V>, key: &str, value: Option<V>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    };
}
