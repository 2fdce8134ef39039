//! A group goes from one protocol to the other while it lives (KIP-848).

use std::collections::BTreeMap;

use super::classic_members::{Surroundings, named};
use super::group::ConsumerGroup;
use super::members;
use super::owned;
use super::records::{
    ClassicMetadata, ConsumerRecord, CurrentValue, GroupValue, MemberState, MemberValue, Owned,
    TargetMetadataValue,
};
use crate::group::classic::group::{ClassicGroup, ClassicMember};
use crate::group::consumer_protocol::{Blob, CONSUMER, ConsumerProtocol, NamedPartitions};
use crate::group::plan::GroupErrorKind::GroupIdNotFound;
use crate::group::plan::{GroupError, GroupTimer};
use crate::group::records::{ClassicGroupValue, ClassicMemberValue, GroupRecord};
use crate::group::subscribed;
use crate::group::timers::TimerKey;
use crate::types::{TopicImage, Ts};

/// The records that make a consumer group of a classic group with members, but for the tombstone of
/// the latter. Refused where the policy forbids it, and for groups of something else than consumers.
pub(in crate::group) fn upgrade(
    group: &ClassicGroup,
    around: Surroundings<'_>,
) -> Result<Vec<ConsumerRecord>, GroupError> {
    let (config, image, protocol) = (around.config, around.image, around.protocol);
    let refuse = |why: &str| {
        let text = format!(
            "Cannot upgrade classic group {} to consumer group because {why}.",
            group.id
        );
        GroupError::new(GroupIdNotFound, text)
    };
    if !config.migration.upgrade {
        return Err(refuse("online upgrade is disabled"));
    }
    if group.protocol_type.as_deref() != Some(CONSUMER) {
        return Err(refuse(
            "the group does not use the consumer embedded protocol",
        ));
    }
    if group.members.len() > usize::try_from(config.max_size).unwrap_or(0) {
        return Err(refuse("the group exceeds the consumer group maximum size"));
    }
    let epoch = group.generation;
    let (mut names, mut infos) = (Vec::new(), Vec::new());
    let (mut targets, mut currents) = (Vec::new(), Vec::new());
    for (member_id, member) in &group.members {
        let read = read_member(member, group.protocol.as_deref(), image, protocol);
        let (value, assigned) = read.ok_or_else(|| refuse("a member's metadata cannot be read"))?;
        names.extend(value.subscribed_topic_names.iter().cloned());
        infos.push(ConsumerRecord::Member(member_id.clone(), Some(value)));
        let target = owned::topics(&assigned);
        targets.push(ConsumerRecord::TargetMember(
            member_id.clone(),
            Some(target),
        ));
        currents.push(ConsumerRecord::CurrentMember(
            member_id.clone(),
            Some(current(epoch, assigned)),
        ));
    }
    let topics = subscribed::existing(names.iter().map(String::as_str), image);
    let mut records = infos;
    records.push(ConsumerRecord::Group(Some(GroupValue {
        epoch,
        metadata_hash: subscribed::metadata_hash(&topics),
    })));
    records.append(&mut targets);
    records.push(ConsumerRecord::TargetMetadata(Some(TargetMetadataValue {
        assignment_epoch: epoch,
        assignment_timestamp: 0,
    })));
    records.append(&mut currents);
    Ok(records)
}

fn current(epoch: i32, mut assigned: Owned) -> CurrentValue {
    for each in assigned.values_mut().flat_map(|topic| topic.values_mut()) {
        *each = epoch;
    }
    CurrentValue {
        member_epoch: epoch,
        previous_member_epoch: epoch,
        state: MemberState::Stable,
        assigned,
        pending_revocation: Owned::new(),
    }
}

fn read_member(
    member: &ClassicMember,
    chosen: Option<&str>,
    image: &dyn TopicImage,
    protocol: &dyn ConsumerProtocol,
) -> Option<(MemberValue, Owned)> {
    let (first, _) = member.protocols.first()?;
    let metadata = member.metadata(chosen.unwrap_or(first));
    let subscription = protocol.subscription(&metadata)?;
    let mut names = subscription.topics;
    names.sort_unstable();
    names.dedup();
    let mut assigned = Owned::new();
    for (name, partitions) in protocol.assignment(&member.assignment)? {
        if let Some((topic_id, _)) = image.by_name(&name) {
            for partition in partitions {
                owned::add(&mut assigned, topic_id, partition, 0);
            }
        }
    }
    let value = MemberValue {
        instance_id: member.instance_id.clone(),
        rack_id: subscription.rack_id,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: names,
        subscribed_topic_regex: String::new(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        server_assignor: None,
        classic: Some(ClassicMetadata {
            session_timeout_ms: member.session_timeout_ms,
            supported_protocols: member.protocols.clone(),
        }),
    };
    Some((value, assigned))
}

/// The sessions of the members that a group had when it was upgraded.
pub(in crate::group) fn sessions(group: &ConsumerGroup, now: Ts) -> Vec<GroupTimer> {
    let members = group.members.iter().filter_map(|(member_id, member)| {
        let classic = member.classic.as_ref()?;
        Some(GroupTimer::Set {
            key: TimerKey::session(&group.id, member_id),
            at: now.saturating_add(Ts::from(classic.session_timeout_ms)),
        })
    });
    members.collect()
}

/// Whether only members of the classic protocol are left, without those in `gone`.
pub(in crate::group) fn is_classic_without(group: &ConsumerGroup, gone: &str) -> bool {
    let leaves_classic = group
        .members
        .get(gone)
        .is_some_and(|member| member.classic.is_some());
    let classic = group.classic_members - usize::from(leaves_classic);
    let left = group.members.len() - usize::from(group.members.contains_key(gone));
    left > 0 && classic == left
}

/// The records that make a classic group of a consumer group whose members all speak the classic
/// protocol, and the sessions of its members.
pub(in crate::group) fn downgrade(
    group: &ConsumerGroup,
    now: Ts,
    image: &dyn TopicImage,
    protocol: &dyn ConsumerProtocol,
) -> (Vec<GroupRecord>, Vec<GroupTimer>) {
    let chosen = chosen_protocol(group);
    let mut records = members::deletion(group);
    let mut members = Vec::with_capacity(group.members.len());
    for (member_id, member) in &group.members {
        let Some(classic) = &member.classic else {
            continue;
        };
        let target = group.targets.get(member_id).map_or(&[][..], Vec::as_slice);
        members.push(written(
            member_id,
            member,
            classic,
            &chosen,
            named(target, image),
            protocol,
        ));
    }
    let timers = sessions(group, now);
    records.push(GroupRecord::ClassicGroup {
        group_id: group.id.clone(),
        value: Some(ClassicGroupValue {
            protocol_type: CONSUMER.to_owned(),
            generation: group.value.epoch,
            protocol: Some(chosen),
            leader: members.first().map(|member| member.member_id.clone()),
            state_timestamp: now,
            members,
        }),
    });
    (records, timers)
}

/// A protocol that all members speak; the first of the first member where there are several.
fn chosen_protocol(group: &ConsumerGroup) -> String {
    let mut all = group.members.values().filter_map(|m| m.classic.as_ref());
    let first: BTreeMap<usize, &String> = all.next().map_or_else(BTreeMap::new, |classic| {
        let names = classic.supported_protocols.iter().map(|(name, _)| name);
        names.enumerate().collect()
    });
    let spoken = |name: &&String| group.speakers.get(*name) == Some(&group.classic_members);
    first
        .into_values()
        .find(spoken)
        .cloned()
        .unwrap_or_default()
}

fn written(
    member_id: &str,
    member: &MemberValue,
    classic: &ClassicMetadata,
    chosen: &str,
    assignment: NamedPartitions,
    protocol: &dyn ConsumerProtocol,
) -> ClassicMemberValue {
    let spoken = classic.supported_protocols.iter();
    let metadata = spoken
        .filter(|(name, _)| name == chosen)
        .map(|(_, metadata)| metadata.clone())
        .next()
        .unwrap_or_else(Blob::default);
    let version = protocol.subscription(&metadata).map_or(0, |s| s.version);
    ClassicMemberValue {
        member_id: member_id.to_owned(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: classic.session_timeout_ms,
        subscription: metadata,
        assignment: protocol.encode_assignment(version, &assignment).into(),
    }
}
