//! The state of one classic group.
//!
//! What is logged (type 2) is the outcome of a rebalance: members, their metadata and assignments,
//! the generation. What happens between two of them is volatile, as in Kafka.

use std::collections::{BTreeMap, BTreeSet};

use super::super::consumer_protocol::Blob;
use super::super::plan::GroupErrorKind::{
    FencedInstanceId, IllegalGeneration, RebalanceInProgress, UnknownMemberId,
};
use super::super::plan::{GroupEffect, GroupErrorKind, GroupTimer, Plan};
use super::super::records::{ClassicGroupValue, ClassicMemberValue, GroupRecord};
use super::super::timers::TimerKey;
use super::types::{JoinRefusal, JoinRequest, JoinedMember, Ticket};
use crate::types::Ts;

/// Where a classic group is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassicGroupState {
    /// It has no members.
    Empty,
    /// Members are joining.
    PreparingRebalance,
    /// Members wait for what the leader assigns.
    CompletingRebalance,
    /// Every member may have its assignment.
    Stable,
    /// It does not exist.
    Dead,
}

impl ClassicGroupState {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// A classic group. Members join it through `join.rs`; `rebalance.rs` takes it from state to state.
#[derive(Clone, Debug)]
pub(in crate::group) struct ClassicGroup {
    pub(in crate::group) id: String,
    pub(in crate::group) state: ClassicGroupState,
    /// When the state was entered last.
    pub(in crate::group) state_since: Ts,
    /// `consumer` for consumers; none before the first member has joined.
    pub(in crate::group) protocol_type: Option<String>,
    /// Rises with every rebalance.
    pub(in crate::group) generation: i32,
    /// The protocol that the members of this generation have chosen.
    pub(in crate::group) protocol: Option<String>,
    /// The member that assigns.
    pub(in crate::group) leader: Option<String>,
    pub(in crate::group) members: BTreeMap<String, ClassicMember>,
    /// Static members by their names.
    pub(super) instances: BTreeMap<String, String>,
    /// Ids that were given out and have not joined yet.
    pub(in crate::group) invited: BTreeSet<String>,
    /// How many members can speak each protocol.
    pub(super) speakers: BTreeMap<String, usize>,
    /// How many members have a join parked.
    pub(super) joining: usize,
    /// Members that have not fetched the assignment of this generation.
    pub(super) unsynced: BTreeSet<String>,
    /// The first rebalance of an empty group waits for more members.
    pub(super) gathering: Option<Gathering>,
    /// The static member whose new id is being written.
    pub(super) returning: Option<Returning>,
}

/// How an empty group waits for members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    /// For how long it may still be extended, in milliseconds.
    pub(super) remaining_ms: Ts,
    /// Whether somebody has come since it was extended last.
    pub(super) somebody_came: bool,
}

/// What no record says of a static member that comes back.
#[derive(Clone, Debug)]
pub(super) struct Returning {
    pub(super) member_id: String,
    pub(super) protocols: Vec<(String, Blob)>,
}

/// A member of a classic group.
#[derive(Clone, Debug)]
pub(in crate::group) struct ClassicMember {
    /// Its name over restarts (KIP-345).
    pub(in crate::group) instance_id: Option<String>,
    pub(in crate::group) client_id: String,
    /// As Kafka writes it: `/127.0.0.1`.
    pub(in crate::group) client_host: String,
    pub(in crate::group) rebalance_timeout_ms: i32,
    pub(in crate::group) session_timeout_ms: i32,
    /// Protocols that it can speak and its metadata for each, in the order of its preference.
    pub(in crate::group) protocols: Vec<(String, Blob)>,
    /// What the leader gave it.
    pub(in crate::group) assignment: Blob,
    /// Whether it has never been answered a join.
    pub(super) is_new: bool,
    /// Its parked `JoinGroup`.
    pub(super) join: Option<Ticket>,
    /// Its parked `SyncGroup`.
    pub(super) sync: Option<Ticket>,
}

impl ClassicMember {
    pub(super) fn joining(request: &JoinRequest, ticket: Ticket) -> Self {
        Self {
            instance_id: request.instance_id.clone(),
            client_id: request.client_id.clone(),
            client_host: request.client_host.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.clone(),
            assignment: Blob::default(),
            is_new: true,
            join: Some(ticket),
            sync: None,
        }
    }

    /// Its metadata for `protocol`; empty when it does not speak it.
    pub(in crate::group) fn metadata(&self, protocol: &str) -> Blob {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map_or_else(Blob::default, |(_, metadata)| metadata.clone())
    }

    /// Whether a request of it is parked: nobody needs heartbeats of it meanwhile.
    pub(super) fn is_parked(&self) -> bool {
        self.join.is_some() || self.sync.is_some()
    }
}

impl ClassicGroup {
    /// A group as a record leaves it.
    pub(in crate::group) fn load(id: &str, value: &ClassicGroupValue) -> Self {
        let mut group = Self {
            id: id.to_owned(),
            state: ClassicGroupState::Empty,
            state_since: value.state_timestamp,
            protocol_type: Some(value.protocol_type.clone()).filter(|name| !name.is_empty()),
            generation: value.generation,
            protocol: value.protocol.clone(),
            leader: value.leader.clone(),
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            invited: BTreeSet::new(),
            speakers: BTreeMap::new(),
            joining: 0,
            unsynced: BTreeSet::new(),
            gathering: None,
            returning: None,
        };
        let protocol = value.protocol.as_deref().unwrap_or_default();
        for member in &value.members {
            group.insert(&member.member_id, loaded(member, protocol));
        }
        if !group.members.is_empty() {
            group.state = ClassicGroupState::Stable;
        }
        group
    }

    /// Takes in a record of a group whose members are at work: the outcome of a rebalance, or a
    /// static member's new id.
    pub(in crate::group) fn commit(&mut self, value: &ClassicGroupValue) {
        self.generation = value.generation;
        self.protocol.clone_from(&value.protocol);
        for written in &value.members {
            let known_as = written.instance_id.as_ref();
            let known_as = known_as.and_then(|instance| self.instances.get(instance));
            if let Some(old) = known_as.filter(|id| **id != written.member_id).cloned() {
                self.come_back(&old, written);
            }
            if let Some(member) = self.members.get_mut(&written.member_id) {
                member.assignment = written.assignment.clone();
                member.sync = None;
            }
        }
        self.leader.clone_from(&value.leader);
        let state = if self.members.is_empty() {
            ClassicGroupState::Empty
        } else {
            ClassicGroupState::Stable
        };
        if let Some(leader) = &value.leader
            && self.state == ClassicGroupState::CompletingRebalance
        {
            self.unsynced.remove(leader);
        }
        self.state = state;
        self.state_since = value.state_timestamp;
    }

    /// A static member's new id is written.
    fn come_back(&mut self, old: &str, written: &ClassicMemberValue) {
        let Some(mut member) = self.remove(old) else {
            return;
        };
        let returning = self.returning.take();
        if let Some(returning) = returning.filter(|came| came.member_id == written.member_id) {
            member.protocols = returning.protocols;
        }
        member.client_id.clone_from(&written.client_id);
        member.client_host.clone_from(&written.client_host);
        member.session_timeout_ms = written.session_timeout_ms;
        member.rebalance_timeout_ms = written.rebalance_timeout_ms;
        self.insert(&written.member_id, member);
    }

    /// The record of the group as it is.
    pub(in crate::group) fn value(&self) -> ClassicGroupValue {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let members = self.members.iter();
        ClassicGroupValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            state_timestamp: self.state_since,
            members: members.map(|(id, m)| written(id, m, protocol)).collect(),
        }
    }

    pub(in crate::group) fn record(&self, value: ClassicGroupValue) -> GroupRecord {
        GroupRecord::ClassicGroup {
            group_id: self.id.clone(),
            value: Some(value),
        }
    }

    // --- Members ----------------------------------------------------------------------------

    pub(super) fn insert(&mut self, member_id: &str, member: ClassicMember) {
        for name in names(&member.protocols) {
            *self.speakers.entry(name.to_owned()).or_default() += 1;
        }
        if let Some(instance) = &member.instance_id {
            self.instances
                .insert(instance.clone(), member_id.to_owned());
        }
        self.joining += usize::from(member.join.is_some());
        self.members.insert(member_id.to_owned(), member);
    }

    /// Takes a member out; its parked requests are the caller's to answer.
    pub(super) fn remove(&mut self, member_id: &str) -> Option<ClassicMember> {
        let member = self.members.remove(member_id)?;
        for name in names(&member.protocols) {
            if let Some(count) = self.speakers.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.speakers.remove(name);
                }
            }
        }
        if let Some(instance) = &member.instance_id {
            self.instances.remove(instance);
        }
        self.joining -= usize::from(member.join.is_some());
        self.unsynced.remove(member_id);
        if self.leader.as_deref() == Some(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Removes a member, answers what it has parked with `kind`, and ends its timers.
    pub(super) fn expel(&mut self, member_id: &str, kind: GroupErrorKind, out: &mut Plan<()>) {
        if let Some(mut member) = self.remove(member_id) {
            refuse(&mut member, member_id, kind, out);
        }
        let group = &self.id;
        out.timers
            .push(GroupTimer::Cancel(TimerKey::session(group, member_id)));
        out.timers
            .push(GroupTimer::Cancel(TimerKey::new_member(group, member_id)));
    }

    /// Renames a static member. What it had parked is fenced.
    pub(super) fn rename(&mut self, old: &str, new: &str, out: &mut Plan<()>) {
        let is_leader = self.leader.as_deref() == Some(old);
        let Some(mut member) = self.remove(old) else {
            return;
        };
        refuse(&mut member, old, FencedInstanceId, out);
        self.insert(new, member);
        if is_leader {
            self.leader = Some(new.to_owned());
        }
        out.timers
            .push(GroupTimer::Cancel(TimerKey::session(&self.id, old)));
        out.timers
            .push(GroupTimer::Cancel(TimerKey::new_member(&self.id, old)));
    }

    /// A known member joins again: takes in what it says now, and parks its request.
    pub(super) fn rejoin(
        &mut self,
        member_id: &str,
        request: &JoinRequest,
        ticket: Ticket,
        out: &mut Plan<()>,
    ) {
        let Some(mut member) = self.remove_quietly(member_id) else {
            return;
        };
        // The client has given up the request that it had parked, if any.
        refuse(&mut member, member_id, RebalanceInProgress, out);
        member.protocols.clone_from(&request.protocols);
        member.client_id.clone_from(&request.client_id);
        member.client_host.clone_from(&request.client_host);
        member.session_timeout_ms = request.session_timeout_ms;
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        member.join = Some(ticket);
        self.insert(member_id, member);
    }

    /// Takes a member out that is put back at once.
    fn remove_quietly(&mut self, member_id: &str) -> Option<ClassicMember> {
        let leader = self.leader.clone();
        let member = self.remove(member_id);
        self.leader = leader;
        member
    }

    /// Whether the member is who it says: refuses unknown members, and static members whose name
    /// somebody else has taken.
    pub(in crate::group) fn check_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), GroupErrorKind> {
        if let Some(instance) = instance_id {
            match self.instances.get(instance) {
                None => return Err(UnknownMemberId),
                Some(id) if id != member_id => return Err(FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) {
            Ok(())
        } else {
            Err(UnknownMemberId)
        }
    }

    /// As [`ClassicGroup::check_member`], and whether it is in this generation.
    pub(in crate::group) fn check_generation(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), GroupErrorKind> {
        self.check_member(member_id, instance_id)?;
        if generation == self.generation {
            Ok(())
        } else {
            Err(IllegalGeneration)
        }
    }

    /// What the leader is told of the members.
    pub(super) fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let joined = |(member_id, member): (&String, &ClassicMember)| JoinedMember {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.iter().map(joined).collect()
    }

    /// A member has shown that it lives.
    pub(in crate::group) fn is_alive(&self, member_id: &str, now: Ts, out: &mut Plan<()>) {
        if let Some(member) = self.members.get(member_id) {
            out.timers.push(GroupTimer::Set {
                key: TimerKey::session(&self.id, member_id),
                at: now.saturating_add(Ts::from(member.session_timeout_ms)),
            });
        }
    }

    /// The longest rebalance timeout of its members, in milliseconds.
    pub(in crate::group) fn rebalance_timeout_ms(&self) -> Ts {
        let timeouts = self.members.values().map(|m| m.rebalance_timeout_ms);
        timeouts.max().map_or(0, |ms| Ts::from(ms.max(0)))
    }

    // --- Protocols --------------------------------------------------------------------------

    /// Whether somebody who is `protocol_type` and speaks `protocols` can be a member.
    pub(super) fn can_speak(&self, protocol_type: &str, protocols: &[(String, Blob)]) -> bool {
        if self.members.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|(name, _)| self.is_common(name))
    }

    fn is_common(&self, protocol: &str) -> bool {
        self.speakers.get(protocol) == Some(&self.members.len())
    }

    /// The protocol that all members speak and most prefer.
    pub(super) fn elect_protocol(&self) -> Option<String> {
        self.elect_with(None)
    }

    /// The same, if a member spoke other protocols.
    pub(super) fn elect_with(&self, instead: Option<(&str, &[(String, Blob)])>) -> Option<String> {
        let mut common: BTreeSet<&str> = self
            .speakers
            .keys()
            .map(String::as_str)
            .filter(|name| self.is_common(name))
            .collect();
        if let Some((member_id, protocols)) = instead {
            // What the others have in common, as far as this member speaks it.
            let own = self.members.get(member_id).map(|m| names(&m.protocols));
            let own = own.unwrap_or_default();
            let others = self.members.len() - 1;
            let spoken_by_others = |name: &&str| {
                self.speakers.get(*name).copied().unwrap_or(0) - usize::from(own.contains(*name))
            };
            common = names(protocols)
                .into_iter()
                .filter(|name| spoken_by_others(name) == others)
                .collect();
        }
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for (member_id, member) in &self.members {
            let protocols = match instead {
                Some((id, protocols)) if id == member_id => protocols,
                _ => &member.protocols,
            };
            let choice = protocols.iter().find(|(name, _)| common.contains(&**name));
            if let Some((name, _)) = choice {
                *votes.entry(name).or_default() += 1;
            }
        }
        let mut elected = None;
        for (name, count) in votes {
            if elected.is_none_or(|(_, most)| count > most) {
                elected = Some((name, count));
            }
        }
        elected.map(|(name, _)| name.to_owned())
    }

    // --- Parked requests --------------------------------------------------------------------

    /// Answers for everything that is parked: for a group that is about to change its type.
    pub(in crate::group) fn parked_answers(&self, kind: GroupErrorKind) -> Vec<GroupEffect> {
        let mut out = Plan::answer(());
        for (member_id, member) in &self.members {
            refuse(&mut member.clone(), member_id, kind, &mut out);
        }
        out.effects
    }

    /// Every timer that the group may have.
    pub(in crate::group) fn timer_keys(&self) -> Vec<TimerKey> {
        let mut keys = vec![
            TimerKey::join_phase(&self.id),
            TimerKey::sync_phase(&self.id),
        ];
        for member_id in self.members.keys() {
            keys.push(TimerKey::session(&self.id, member_id));
            keys.push(TimerKey::new_member(&self.id, member_id));
        }
        let invited = self.invited.iter();
        keys.extend(invited.map(|member_id| TimerKey::new_member(&self.id, member_id)));
        keys
    }
}

/// The names of protocols, each once.
fn names(protocols: &[(String, Blob)]) -> BTreeSet<&str> {
    protocols.iter().map(|(name, _)| &**name).collect()
}

/// Answers what a member has parked with an error.
pub(super) fn refuse(
    member: &mut ClassicMember,
    member_id: &str,
    kind: GroupErrorKind,
    out: &mut Plan<()>,
) {
    if let Some(ticket) = member.join.take() {
        let member_id = member_id.to_owned();
        out.effects.push(GroupEffect::AnswerJoin {
            ticket,
            answer: Err(JoinRefusal { kind, member_id }),
        });
    }
    if let Some(ticket) = member.sync.take() {
        out.effects.push(GroupEffect::AnswerSync {
            ticket,
            answer: Err(kind),
        });
    }
}

fn loaded(member: &ClassicMemberValue, protocol: &str) -> ClassicMember {
    ClassicMember {
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        protocols: vec![(protocol.to_owned(), member.subscription.clone())],
        assignment: member.assignment.clone(),
        is_new: false,
        join: None,
        sync: None,
    }
}

fn written(member_id: &str, member: &ClassicMember, protocol: &str) -> ClassicMemberValue {
    ClassicMemberValue {
        member_id: member_id.to_owned(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        subscription: member.metadata(protocol),
        assignment: member.assignment.clone(),
    }
}
