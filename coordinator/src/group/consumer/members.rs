//! Who a heartbeat comes from, what may be refused about it, and how members go.

use std::collections::BTreeMap;

use super::classic_members::back_to_classic;
use super::group::{ConsumerGroup, less};
use super::heartbeat::{Before, JOIN_EPOCH, PAUSE_EPOCH};
use super::migrate::is_classic_without;
use super::records::{
    ConsumerRecord, CurrentValue, GroupValue, MemberState, MemberValue, Owned, TargetMetadataValue,
};
use super::request::{ConsumerGroupConfig, ConsumerHeartbeatRequest, ConsumerHeartbeatResponse};
use crate::group::plan::GroupErrorKind::{
    FencedInstanceId, InvalidRequest, UnknownMemberId, UnreleasedInstanceId, UnsupportedAssignor,
};
use crate::group::plan::{GroupError, Plan};
use crate::group::records::GroupRecord;
use crate::group::subscribed;
use crate::types::TopicImage;

/// What can be refused by looking at the request alone.
pub(in crate::group) fn validate(
    request: &ConsumerHeartbeatRequest,
    config: &ConsumerGroupConfig,
) -> Result<(), GroupError> {
    let refuse = |text: &str| Err(GroupError::new(InvalidRequest, text));
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    if request.member_id.is_empty() {
        return refuse("MemberId can't be empty.");
    }
    if request.group_id.is_empty() {
        return refuse("GroupId can't be empty.");
    }
    if is_empty(&request.instance_id) {
        return refuse("InstanceId can't be empty.");
    }
    if is_empty(&request.rack_id) {
        return refuse("RackId can't be empty.");
    }
    match request.member_epoch {
        JOIN_EPOCH => {
            if request.rebalance_timeout_ms == -1 {
                return refuse("RebalanceTimeoutMs must be provided in first request.");
            }
            if request
                .topic_partitions
                .as_ref()
                .is_none_or(|t| !t.is_empty())
            {
                return refuse("TopicPartitions must be empty when (re-)joining.");
            }
            let names = &request.subscribed_topic_names;
            if names.is_none() && request.subscribed_topic_regex.is_none() {
                return refuse(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when \
                     (re-)joining.",
                );
            }
        }
        PAUSE_EPOCH if request.instance_id.is_none() => {
            return refuse("InstanceId can't be null.");
        }
        epoch if epoch < PAUSE_EPOCH => return refuse("MemberEpoch is invalid."),
        _ => {}
    }
    let names: Vec<&str> = config.assignors.iter().map(|a| a.name()).collect();
    if let Some(wanted) = &request.server_assignor
        && !names.contains(&wanted.as_str())
    {
        let text = format!(
            "ServerAssignor {wanted} is not supported. Supported assignors: {}.",
            names.join(", ")
        );
        return Err(GroupError::new(UnsupportedAssignor, text));
    }
    Ok(())
}

/// The member that a heartbeat comes from, as it was before.
pub(super) fn find<'a>(
    group: &'a ConsumerGroup,
    request: &ConsumerHeartbeatRequest,
) -> Result<Before<'a>, GroupError> {
    let member_id = &request.member_id;
    let joins = request.member_epoch == JOIN_EPOCH;
    if let Some(instance) = &request.instance_id {
        return find_static(group, member_id, instance, joins, false, |group| {
            let reported = request.topic_partitions.as_deref();
            group.check_epoch(member_id, request.member_epoch, reported)
        });
    }
    if joins && !group.members.contains_key(member_id) {
        return Ok(newcomer());
    }
    group.member(member_id)?;
    let reported = request.topic_partitions.as_deref();
    group.check_epoch(member_id, request.member_epoch, reported)?;
    Ok(known(group, member_id))
}

/// A static member: the instance id must be free, or the member's own. One that speaks the classic
/// protocol is taken over by whoever comes with its instance id, as in that protocol.
pub(super) fn find_static<'a>(
    group: &'a ConsumerGroup,
    member_id: &str,
    instance: &str,
    joins: bool,
    is_classic: bool,
    check: impl FnOnce(&ConsumerGroup) -> Result<(), GroupError>,
) -> Result<Before<'a>, GroupError> {
    let Some(owner) = group.instances.get(instance) else {
        if joins {
            // A dynamic member that has become a static one keeps what it had.
            let is_known = group.members.contains_key(member_id);
            return Ok(if is_known {
                known(group, member_id)
            } else {
                newcomer()
            });
        }
        let text = format!("Instance id {instance} is unknown.");
        return Err(GroupError::new(UnknownMemberId, text));
    };
    if !joins {
        check_instance(owner, member_id, instance)?;
        check(group)?;
        return Ok(known(group, owner));
    }
    let current = group.current(owner);
    let owner_is_classic = group
        .members
        .get(owner)
        .is_some_and(|m| m.classic.is_some());
    let is_taken_over = is_classic || owner_is_classic;
    if current.member_epoch != PAUSE_EPOCH && !is_taken_over {
        let text = format!(
            "Static member {member_id} with instance id {instance} cannot join the group because \
             the instance id is owned by {owner} member."
        );
        return Err(GroupError::new(UnreleasedInstanceId, text));
    }
    let mut before = known(group, owner);
    before.current.member_epoch = JOIN_EPOCH;
    before.replaced = (owner != member_id).then_some(owner.as_str());
    Ok(before)
}

fn newcomer<'a>() -> Before<'a> {
    Before {
        value: None,
        current: CurrentValue::default(),
        target: &[],
        replaced: None,
    }
}

pub(super) fn known<'a>(group: &'a ConsumerGroup, member_id: &str) -> Before<'a> {
    Before {
        value: group.members.get(member_id),
        current: group.current(member_id),
        target: group.targets.get(member_id).map_or(&[], Vec::as_slice),
        replaced: None,
    }
}

fn check_instance(owner: &str, member_id: &str, instance: &str) -> Result<(), GroupError> {
    if owner == member_id {
        return Ok(());
    }
    let text = format!(
        "Static member {member_id} with instance id {instance} was fenced by member {owner}."
    );
    Err(GroupError::new(FencedInstanceId, text))
}

/// A heartbeat that leaves, for good or, as a static member, for a while.
pub(in crate::group) fn leave(
    group: &ConsumerGroup,
    request: &ConsumerHeartbeatRequest,
    image: &dyn TopicImage,
) -> Result<Plan<ConsumerHeartbeatResponse>, GroupError> {
    let member_id = &request.member_id;
    if let Some(instance) = &request.instance_id {
        let owner = group.instances.get(instance).ok_or_else(|| {
            let text = format!("Instance id {instance} is unknown.");
            GroupError::new(UnknownMemberId, text)
        })?;
        check_instance(owner, member_id, instance)?;
    } else {
        group.member(member_id)?;
    }
    let mut plan = Plan::answer(ConsumerHeartbeatResponse {
        member_id: member_id.clone(),
        member_epoch: request.member_epoch,
        heartbeat_interval_ms: 0,
        assignment: None,
    });
    let records = if request.member_epoch == PAUSE_EPOCH {
        vec![paused(group, member_id)]
    } else {
        if is_classic_without(group, member_id) {
            plan.effects = back_to_classic(&group.id);
        }
        removal(group, &[member_id], image)
    };
    plan.records = GroupRecord::of_consumer(&group.id, records);
    Ok(plan)
}

/// Type 8 of a static member that left for a while: it keeps its partitions.
pub(super) fn paused(group: &ConsumerGroup, member_id: &str) -> ConsumerRecord {
    let mut current = group.current(member_id);
    current.member_epoch = PAUSE_EPOCH;
    current.state = MemberState::Stable;
    current.pending_revocation = Owned::new();
    for epoch in current.assigned.values_mut().flat_map(|p| p.values_mut()) {
        *epoch = JOIN_EPOCH;
    }
    ConsumerRecord::CurrentMember(member_id.to_owned(), Some(current))
}

/// The records by which one member id goes.
pub(super) fn tombstones(member_id: &str) -> [ConsumerRecord; 3] {
    [
        ConsumerRecord::CurrentMember(member_id.to_owned(), None),
        ConsumerRecord::TargetMember(member_id.to_owned(), None),
        ConsumerRecord::Member(member_id.to_owned(), None),
    ]
}

/// The records by which members go: 8, 7 and 5 of each, the expressions that nobody subscribes to
/// any more, then the group's next epoch; the last member takes the assignment's time with it.
pub(in crate::group) fn removal(
    group: &ConsumerGroup,
    gone: &[&String],
    image: &dyn TopicImage,
) -> Vec<ConsumerRecord> {
    let mut names = group.names.clone();
    let mut regexes = group.regex_members.clone();
    let mut records = Vec::new();
    let mut members_gone = 0;
    for member_id in gone {
        let Some(value) = group.members.get(*member_id) else {
            continue;
        };
        members_gone += 1;
        forget(value, &mut names, &mut regexes);
        records.extend(tombstones(member_id));
    }
    let unused = group
        .regexes
        .keys()
        .filter(|key| !regexes.contains_key(*key));
    records.extend(unused.map(|regex| ConsumerRecord::Regex(regex.clone(), None)));
    let by_regex = regexes.keys().flat_map(|regex| group.matched(regex));
    let all = names.keys().chain(by_regex).map(String::as_str);
    let epoch = group.value.epoch.saturating_add(1);
    records.push(ConsumerRecord::Group(Some(GroupValue {
        epoch,
        metadata_hash: subscribed::metadata_hash(&subscribed::existing(all, image)),
    })));
    if members_gone == group.members.len() {
        let value = TargetMetadataValue {
            assignment_epoch: epoch,
            assignment_timestamp: 0,
        };
        records.push(ConsumerRecord::TargetMetadata(Some(value)));
    }
    records
}

fn forget(
    value: &MemberValue,
    names: &mut BTreeMap<String, usize>,
    regexes: &mut BTreeMap<String, usize>,
) {
    for name in &value.subscribed_topic_names {
        less(names, name);
    }
    less(regexes, &value.subscribed_topic_regex);
}

/// Whether a member is gone once its rebalance timeout has passed: it has partitions to give up, or
/// speaks the classic protocol, in which it has to join again or to fetch its assignment.
pub(in crate::group) fn is_awaited(group: &ConsumerGroup, member_id: &str) -> bool {
    let is_classic = |member: &MemberValue| member.classic.is_some();
    let is_revoking = |current: &CurrentValue| current.state == MemberState::UnrevokedPartitions;
    group.members.get(member_id).is_some_and(is_classic)
        || group.currents.get(member_id).is_some_and(is_revoking)
}

/// All records of a group as tombstones: how a group is deleted.
pub(in crate::group) fn deletion(group: &ConsumerGroup) -> Vec<GroupRecord> {
    let members = group.members.keys().flat_map(|id| tombstones(id));
    let mut records: Vec<_> = members.collect();
    let regexes = group.regexes.keys();
    records.extend(regexes.map(|regex| ConsumerRecord::Regex(regex.clone(), None)));
    records.push(ConsumerRecord::TargetMetadata(None));
    records.push(ConsumerRecord::Group(None));
    GroupRecord::of_consumer(&group.id, records)
}
