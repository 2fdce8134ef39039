//! Members of a consumer group that speak the classic protocol: `JoinGroup`, `SyncGroup`,
//! `Heartbeat` and `LeaveGroup` on the way between the protocols (KIP-848).
//!
//! Such a member is a member like any other. Its generation is its member epoch; what it owns comes
//! with its subscription when it joins, what it has it is told when it syncs, and a heartbeat tells
//! it with REBALANCE_IN_PROGRESS to join again, to give partitions up or to get more.

use std::collections::BTreeSet;

use super::group::ConsumerGroup;
use super::heartbeat::{self, Heartbeat};
use super::members::{self, find_static};
use super::owned;
use super::records::{ClassicMetadata, CurrentValue, MemberState, MemberValue};
use super::request::{ConsumerGroupConfig, MatchedTopics};
use crate::group::classic::{
    HeartbeatRequest, JoinAnswer, JoinRefusal, JoinRequest, JoinResponse, Leaving, SyncAnswer,
    SyncRequest, SyncResponse,
};
use crate::group::consumer_protocol::{CONSUMER, ConsumerProtocol, NamedPartitions, Subscription};
use crate::group::partitions::by_topic;
use crate::group::plan::GroupErrorKind::{
    FencedInstanceId, GroupMaxSizeReached, IllegalGeneration, InconsistentGroupProtocol,
    MemberIdRequired, RebalanceInProgress, UnknownMemberId,
};
use crate::group::plan::{GroupEffect, GroupErrorKind, GroupTimer, Plan};
use crate::group::records::GroupRecord;
use crate::group::timers::TimerKey;
use crate::types::{TopicImage, TopicPartition, TopicPartitions, Ts};

/// What the calls of this file look at.
#[derive(Clone, Copy)]
pub(in crate::group) struct Surroundings<'a> {
    pub(in crate::group) config: &'a ConsumerGroupConfig,
    pub(in crate::group) image: &'a dyn MatchedTopics,
    pub(in crate::group) protocol: &'a dyn ConsumerProtocol,
}

fn refusal(member_id: &str, kind: GroupErrorKind) -> Plan<JoinAnswer> {
    Plan::answer(Err(JoinRefusal {
        kind,
        member_id: member_id.to_owned(),
    }))
}

/// `JoinGroup` of a group that has members.
pub(in crate::group) fn join(
    group: &ConsumerGroup,
    now: Ts,
    request: &JoinRequest,
    around: Surroundings<'_>,
) -> Plan<JoinAnswer> {
    let known = group.members.get(&request.member_id);
    let instance = request.instance_id.as_ref();
    let returns = instance.is_some_and(|instance| group.instances.contains_key(instance));
    if known.is_none() && !returns && heartbeat::check_size(group, around.config).is_err() {
        return refusal("", GroupMaxSizeReached);
    }
    let Some(protocol) = common_protocol(group, known, request) else {
        return refusal("", InconsistentGroupProtocol);
    };
    let has_no_id = request.member_id.is_empty();
    if has_no_id && request.instance_id.is_none() && request.needs_known_id {
        return refusal(&request.new_member_id, MemberIdRequired);
    }
    let first = request.protocols.first();
    let read = first.and_then(|(_, metadata)| around.protocol.subscription(metadata));
    let Some(subscription) = read else {
        return refusal("", InconsistentGroupProtocol);
    };
    let member_id = if has_no_id {
        &request.new_member_id
    } else {
        &request.member_id
    };
    match run(group, now, request, member_id, &subscription, around) {
        Ok(mut plan) => {
            let generation = plan.response.member_epoch;
            if group.classic_members + 1 >= group.members.len() {
                // The static member that came back may have been the last of the other protocol.
                let group_id = group.id.clone();
                plan.effects.push(GroupEffect::Downgrade { group_id });
            }
            plan.map(|_| {
                Ok(JoinResponse {
                    member_id: member_id.clone(),
                    generation,
                    protocol_type: Some(CONSUMER.to_owned()),
                    protocol: Some(protocol),
                    leader: String::new(),
                    skip_assignment: false,
                    members: Vec::new(),
                })
            })
        }
        Err(kind) => refusal(&request.member_id, kind),
    }
}

fn run(
    group: &ConsumerGroup,
    now: Ts,
    request: &JoinRequest,
    member_id: &str,
    subscription: &Subscription,
    around: Surroundings<'_>,
) -> Result<Plan<CurrentValue>, GroupErrorKind> {
    let before = match &request.instance_id {
        Some(instance) => {
            let joins = request.member_id.is_empty();
            find_static(group, member_id, instance, joins, true, |_| Ok(()))
                .map_err(|error| error.kind)?
        }
        None => members::known(group, member_id),
    };
    let member = member_value(request, subscription);
    let reported = by_id(&subscription.owned, around.image);
    let mut heartbeat = Heartbeat::new(group, now, member_id, before, &member, around);
    heartbeat.session_timeout_ms = request.session_timeout_ms;
    heartbeat.reported = Some(&reported);
    let current = heartbeat.run().map_err(|error| error.kind)?;
    let (records, mut timers) = heartbeat.take_changes();
    // It has its rebalance timeout to fetch its assignment.
    timers.push(join_or_sync_timeout(&group.id, member_id, &member, now));
    Ok(Plan {
        response: current,
        records,
        effects: Vec::new(),
        timers,
    })
}

fn member_value(request: &JoinRequest, subscription: &Subscription) -> MemberValue {
    let mut names = subscription.topics.clone();
    names.sort_unstable();
    names.dedup();
    MemberValue {
        instance_id: request.instance_id.clone(),
        rack_id: subscription.rack_id.clone(),
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        subscribed_topic_names: names,
        subscribed_topic_regex: String::new(),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        server_assignor: None,
        classic: Some(ClassicMetadata {
            session_timeout_ms: request.session_timeout_ms,
            supported_protocols: request.protocols.clone(),
        }),
    }
}

/// The member's first protocol that all other classic members speak too.
fn common_protocol(
    group: &ConsumerGroup,
    known: Option<&MemberValue>,
    request: &JoinRequest,
) -> Option<String> {
    if request.protocol_type != CONSUMER {
        return None;
    }
    let own = known.and_then(|member| member.classic.as_ref());
    let others = group.classic_members - usize::from(own.is_some());
    let spoken = |name: &str| {
        let own = own.is_some_and(|own| own.supported_protocols.iter().any(|p| p.0 == name));
        group.speakers.get(name).copied().unwrap_or(0) - usize::from(own)
    };
    let names = request.protocols.iter().map(|(name, _)| name);
    let mut common = names.filter(|name| spoken(name) == others);
    common.next().cloned()
}

fn by_id(owned: &NamedPartitions, image: &dyn TopicImage) -> Vec<TopicPartitions> {
    let mut all = Vec::new();
    for (name, partitions) in owned {
        let Some((topic_id, _)) = image.by_name(name) else {
            continue;
        };
        all.extend(partitions.iter().map(|&partition| TopicPartition {
            topic_id,
            partition,
        }));
    }
    by_topic(all)
}

fn join_or_sync_timeout(group: &str, member_id: &str, member: &MemberValue, now: Ts) -> GroupTimer {
    GroupTimer::Set {
        key: TimerKey::rebalance_timeout(group, member_id),
        at: now.saturating_add(Ts::from(member.rebalance_timeout_ms)),
    }
}

/// What follows when the last member of the consumer protocol has gone.
pub(in crate::group) fn back_to_classic(group_id: &str) -> Vec<GroupEffect> {
    let group_id = group_id.to_owned();
    vec![
        GroupEffect::Downgrade {
            group_id: group_id.clone(),
        },
        GroupEffect::Rebalance { group_id },
    ]
}

/// The classic member that a request comes from, in its generation.
fn member_of<'a>(
    group: &'a ConsumerGroup,
    member_id: &str,
    instance_id: Option<&str>,
) -> Result<(&'a MemberValue, &'a ClassicMetadata), GroupErrorKind> {
    if let Some(instance) = instance_id {
        let owner = group.instances.get(instance).ok_or(UnknownMemberId)?;
        if owner != member_id {
            return Err(FencedInstanceId);
        }
    }
    let member = group.members.get(member_id).ok_or(UnknownMemberId)?;
    let classic = member.classic.as_ref().ok_or(UnknownMemberId)?;
    Ok((member, classic))
}

fn lives(group: &ConsumerGroup, member_id: &str, classic: &ClassicMetadata, now: Ts) -> GroupTimer {
    GroupTimer::Set {
        key: TimerKey::session(&group.id, member_id),
        at: now.saturating_add(Ts::from(classic.session_timeout_ms)),
    }
}

/// `SyncGroup`: what the member has, or has to come down to.
pub(in crate::group) fn sync(
    group: &ConsumerGroup,
    now: Ts,
    request: &SyncRequest,
    image: &dyn TopicImage,
    consumers: &dyn ConsumerProtocol,
) -> Plan<SyncAnswer> {
    let member_id = &request.member_id;
    let found = member_of(group, member_id, request.instance_id.as_deref());
    let (member, classic) = match found {
        Ok(found) => found,
        Err(kind) => return Plan::answer(Err(kind)),
    };
    let is_type = request
        .protocol_type
        .as_deref()
        .is_none_or(|t| t == CONSUMER);
    let protocols = classic.supported_protocols.iter();
    let wanted = request.protocol.as_deref();
    let spoken = protocols
        .map(|(name, _)| name)
        .find(|name| wanted.is_none_or(|w| w == **name));
    let Some(protocol) = spoken.filter(|_| is_type) else {
        return Plan::answer(Err(InconsistentGroupProtocol));
    };
    let current = group.current(member_id);
    if request.generation != current.member_epoch {
        return Plan::answer(Err(IllegalGeneration));
    }
    let is_late = group.target.assignment_epoch > current.member_epoch;
    if is_late && current.state != MemberState::UnrevokedPartitions {
        let mut plan = Plan::answer(Err(RebalanceInProgress));
        plan.timers
            .push(join_or_sync_timeout(&group.id, member_id, member, now));
        return plan;
    }
    let first = classic.supported_protocols.first();
    let subscription = first.and_then(|(_, metadata)| consumers.subscription(metadata));
    let version = subscription.map_or(0, |subscription| subscription.version);
    let assigned = owned::topics(&current.assigned);
    let assigned = named(&assigned, image);
    let mut plan = Plan::answer(Ok(SyncResponse {
        protocol_type: Some(CONSUMER.to_owned()),
        protocol: Some(protocol.clone()),
        assignment: consumers.encode_assignment(version, &assigned).into(),
    }));
    plan.timers.push(lives(group, member_id, classic, now));
    let key = TimerKey::rebalance_timeout(&group.id, member_id);
    plan.timers.push(GroupTimer::Cancel(key));
    plan
}

pub(super) fn named(topics: &[TopicPartitions], image: &dyn TopicImage) -> NamedPartitions {
    let named = |topic: &TopicPartitions| {
        let (name, _) = image.by_id(&topic.topic_id)?;
        Some((name, topic.partitions.clone()))
    };
    topics.iter().filter_map(named).collect()
}

/// `Heartbeat`. `is_timed`: whether the member has been told already to join again.
pub(in crate::group) fn heartbeat_of(
    group: &ConsumerGroup,
    now: Ts,
    request: &HeartbeatRequest,
    is_timed: bool,
) -> Plan<Result<(), GroupErrorKind>> {
    let member_id = &request.member_id;
    let found = member_of(group, member_id, request.instance_id.as_deref());
    let (member, classic) = match found {
        Ok(found) => found,
        Err(kind) => return Plan::answer(Err(kind)),
    };
    let current = group.current(member_id);
    if request.generation != current.member_epoch {
        return Plan::answer(Err(IllegalGeneration));
    }
    let mut plan = Plan::answer(Ok(()));
    plan.timers.push(lives(group, member_id, classic, now));
    if must_join_again(group, member_id, &current) {
        plan.response = Err(RebalanceInProgress);
        if !is_timed {
            plan.timers
                .push(join_or_sync_timeout(&group.id, member_id, member, now));
        }
    }
    plan
}

fn must_join_again(group: &ConsumerGroup, member_id: &str, current: &CurrentValue) -> bool {
    if current.member_epoch < group.target.assignment_epoch {
        return true;
    }
    match current.state {
        MemberState::Stable => false,
        MemberState::UnrevokedPartitions => true,
        MemberState::UnreleasedPartitions | MemberState::Unknown => {
            let target = group.targets.get(member_id).map_or(&[][..], Vec::as_slice);
            !is_waiting(group, member_id, target, current)
        }
    }
}

/// Whether everything that the member still lacks is held by others.
fn is_waiting(
    group: &ConsumerGroup,
    member_id: &str,
    target: &[TopicPartitions],
    current: &CurrentValue,
) -> bool {
    target.iter().all(|topic| {
        let mine = current.assigned.get(&topic.topic_id);
        topic.partitions.iter().all(|&partition| {
            mine.is_some_and(|mine| mine.contains_key(&partition))
                || group.is_taken(&topic.topic_id, partition, [member_id, member_id])
        })
    })
}

/// `LeaveGroup`, each member with its own answer; the group's epoch rises once.
pub(in crate::group) fn leave(
    group: &ConsumerGroup,
    leaving: &[Leaving],
    image: &dyn TopicImage,
) -> Plan<Vec<Result<(), GroupErrorKind>>> {
    let mut gone: Vec<&String> = Vec::new();
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let results = leaving.iter().map(|one| {
        let member_id = leaver(group, one)?;
        if !seen.insert(member_id) {
            return Err(UnknownMemberId);
        }
        gone.push(member_id);
        Ok(())
    });
    let mut plan = Plan::answer(results.collect());
    if !gone.is_empty() {
        let records = members::removal(group, &gone, image);
        plan.records = GroupRecord::of_consumer(&group.id, records);
    }
    plan
}

fn leaver<'a>(group: &'a ConsumerGroup, one: &Leaving) -> Result<&'a String, GroupErrorKind> {
    let member_id = match &one.instance_id {
        Some(instance) => {
            let owner = group.instances.get(instance).ok_or(UnknownMemberId)?;
            if !one.member_id.is_empty() && *owner != one.member_id {
                return Err(FencedInstanceId);
            }
            owner
        }
        None => &one.member_id,
    };
    let found = group.members.get_key_value(member_id);
    let (member_id, member) = found.ok_or(UnknownMemberId)?;
    // Members of the consumer protocol leave by their own heartbeat.
    member.classic.as_ref().ok_or(UnknownMemberId)?;
    Ok(member_id)
}
