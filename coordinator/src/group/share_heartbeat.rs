//! `ShareGroupHeartbeat` (KIP-932): joining, staying in and leaving a share group.

use std::collections::{BTreeMap, BTreeSet};

use super::assignor::{self, AssignorMember};
use super::plan::GroupErrorKind::{GroupMaxSizeReached, InvalidRequest};
use super::plan::{
    GroupEffect, GroupError, GroupTimer, InitializePartition, Plan, ShareGroupConfig,
    ShareHeartbeatRequest, ShareHeartbeatResponse,
};
use super::records::{
    GroupRecord, ShareCurrentMemberValue, ShareGroupValue, ShareMemberValue,
    ShareTargetMetadataValue,
};
use super::share_group::ShareGroup;
use super::state_partitions::{self, StateTopic, start_offset};
use super::subscribed::{Topics, existing, metadata_hash};
use super::timers::TimerKey;
use crate::types::{TopicImage, TopicPartition, TopicPartitions, Ts, Uuid};

pub(super) const JOIN_EPOCH: i32 = 0;
pub(super) const LEAVE_EPOCH: i32 = -1;

const MEMBER_ID_CHARS_MAX: usize = 36;

/// What can be refused by looking at the request alone.
pub(super) fn validate(request: &ShareHeartbeatRequest) -> Result<(), GroupError> {
    let refuse = |text: &str| Err(GroupError::new(InvalidRequest, text));
    let id = &request.member_id;
    if id.is_empty() || id.chars().count() > MEMBER_ID_CHARS_MAX {
        return Err(GroupError::bare(InvalidRequest));
    }
    if request.group_id.is_empty() {
        return refuse("GroupId can't be empty.");
    }
    if request.rack_id.as_deref() == Some("") {
        return refuse("RackId can't be empty.");
    }
    if request.member_epoch < LEAVE_EPOCH {
        return refuse("MemberEpoch is invalid.");
    }
    let names_topics = request
        .subscribed_topic_names
        .as_ref()
        .is_some_and(|t| !t.is_empty());
    if request.member_epoch == JOIN_EPOCH && !names_topics {
        return refuse("SubscribedTopicNames must be set in first request.");
    }
    Ok(())
}

/// A heartbeat that joins or stays. `group` is a new one when the group does not exist yet.
pub(super) fn heartbeat(
    group: &ShareGroup,
    now: Ts,
    request: &ShareHeartbeatRequest,
    config: &ShareGroupConfig,
    image: &dyn TopicImage,
) -> Result<Plan<ShareHeartbeatResponse>, GroupError> {
    let known = if request.member_epoch == JOIN_EPOCH {
        check_size(group, &request.member_id, config)?;
        group.members.get(&request.member_id)
    } else {
        let member = group.member(&request.member_id)?;
        group.check_epoch(&request.member_id, request.member_epoch)?;
        Some(member)
    };
    let member = updated_member(known, request);
    let old = known.map_or(&[][..], |known| &known.subscribed_topic_names);
    let names = subscriptions_after(group, old, &member.subscribed_topic_names);
    let mut heartbeat = Heartbeat {
        group,
        now,
        request,
        config,
        member: &member,
        topics: existing(names, image),
        records: Vec::new(),
        effects: Vec::new(),
        timers: Vec::new(),
    };
    let epoch = heartbeat.settle_epoch(known);
    let (target_epoch, target) = heartbeat.settle_target(epoch);
    let assignment = heartbeat.settle_member(target_epoch, target);
    heartbeat.initialize(epoch);
    Ok(heartbeat.finish(target_epoch, assignment))
}

fn check_size(
    group: &ShareGroup,
    member_id: &str,
    config: &ShareGroupConfig,
) -> Result<(), GroupError> {
    let max = config.max_size;
    let is_full = group.members.len() >= usize::try_from(max).unwrap_or(0);
    if is_full && !group.members.contains_key(member_id) {
        let text = format!("The share group has reached its maximum capacity of {max} members.");
        return Err(GroupError::new(GroupMaxSizeReached, text));
    }
    Ok(())
}

fn updated_member(
    known: Option<&ShareMemberValue>,
    request: &ShareHeartbeatRequest,
) -> ShareMemberValue {
    let mut member = known.cloned().unwrap_or_default();
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if let Some(topics) = &request.subscribed_topic_names {
        let topics: BTreeSet<String> = topics.iter().cloned().collect();
        member.subscribed_topic_names = topics.into_iter().collect();
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
    member
}

struct Heartbeat<'a> {
    group: &'a ShareGroup,
    now: Ts,
    request: &'a ShareHeartbeatRequest,
    config: &'a ShareGroupConfig,
    /// The member as this heartbeat leaves it.
    member: &'a ShareMemberValue,
    /// The subscribed topics that exist, as this heartbeat leaves the subscriptions.
    topics: Topics<'a>,
    records: Vec<GroupRecord>,
    effects: Vec<GroupEffect>,
    timers: Vec<GroupTimer>,
}

impl Heartbeat<'_> {
    /// Types 10 and 11: the member and the group's epoch, which rises with a changed subscription,
    /// with changed topics, and once when partitions have come to be initialised.
    fn settle_epoch(&mut self, known: Option<&ShareMemberValue>) -> i32 {
        let group = self.group;
        if known != Some(self.member) {
            self.records.push(GroupRecord::ShareMember {
                group_id: group.id.clone(),
                member_id: self.request.member_id.clone(),
                value: Some(self.member.clone()),
            });
        }
        let metadata_hash = metadata_hash(&self.topics);
        let subscribed = &self.member.subscribed_topic_names;
        let is_changed = known.is_none_or(|known| known.subscribed_topic_names != *subscribed)
            || metadata_hash != group.value.metadata_hash
            || (group.unassigned && !group.assignment_is_due());
        if !is_changed {
            return group.value.epoch;
        }
        let epoch = group.value.epoch.saturating_add(1);
        self.records.push(epoch_record(group, epoch, metadata_hash));
        epoch
    }

    /// Types 13 and 12: a new target assignment, when one is due and the interval allows it.
    /// Answers the target's epoch and this member's part.
    fn settle_target(&mut self, epoch: i32) -> (i32, Vec<TopicPartitions>) {
        let group = self.group;
        let member_id = &self.request.member_id;
        let interval = Ts::from(self.config.assignment_interval_ms);
        let since = self.now.saturating_sub(group.target.assignment_timestamp);
        let is_allowed = interval == 0 || since >= interval;
        if epoch <= group.target.assignment_epoch || !is_allowed {
            let target = group.targets.get(member_id).cloned().unwrap_or_default();
            return (group.target.assignment_epoch, target);
        }
        let mut own = Vec::new();
        let mut changed = Vec::new();
        for (id, target) in self.assign() {
            if id == *member_id {
                own.clone_from(&target);
            }
            if group.targets.get(id) != Some(&target) {
                changed.push(GroupRecord::ShareTargetMember {
                    group_id: group.id.clone(),
                    member_id: id.to_owned(),
                    value: Some(target),
                });
            }
        }
        self.records.append(&mut changed);
        self.records.push(GroupRecord::ShareTargetMetadata {
            group_id: group.id.clone(),
            value: Some(ShareTargetMetadataValue {
                assignment_epoch: epoch,
                assignment_timestamp: self.now,
            }),
        });
        (epoch, own)
    }

    fn assign(&self) -> Vec<(&str, Vec<TopicPartitions>)> {
        let group = self.group;
        let mut values: BTreeMap<&str, &ShareMemberValue> = group
            .members
            .iter()
            .map(|(id, value)| (id.as_str(), value))
            .collect();
        values.insert(&self.request.member_id, self.member);
        let topic_ids: Vec<Vec<Uuid>> = values
            .values()
            .map(|value| {
                let names = value.subscribed_topic_names.iter();
                let mut ids: Vec<Uuid> = names
                    .filter_map(|name| self.topics.get(name.as_str()))
                    .map(|topic| topic.0)
                    .collect();
                ids.sort_unstable();
                ids
            })
            .collect();
        let members: Vec<AssignorMember<'_>> = values
            .keys()
            .zip(&topic_ids)
            .map(|(&member_id, topics)| AssignorMember {
                member_id,
                topics,
                previous: group.targets.get(member_id).map_or(&[], Vec::as_slice),
            })
            .collect();
        let assigned = assignor::assign(&members, &self.assignable());
        values.into_keys().zip(assigned).collect()
    }

    /// The partitions that may be assigned: those with state, as in Kafka; or, when nothing shall
    /// be delayed, those too that this heartbeat has initialised before it is answered.
    fn assignable(&self) -> BTreeMap<Uuid, Vec<i32>> {
        let state = &self.group.state;
        let at_once = self.config.assignment_interval_ms == 0;
        let mut assignable = BTreeMap::new();
        for &(topic_id, count) in self.topics.values() {
            let partitions: Vec<i32> = match state.initialized.get(&topic_id) {
                _ if at_once && !state.deleting.contains_key(&topic_id) => (0..count).collect(),
                Some(topic) => topic.partitions.range(..count).copied().collect(),
                None => continue,
            };
            assignable.insert(topic_id, partitions);
        }
        assignable
    }

    /// Type 14: what the member is told. `Some` when its partitions changed.
    fn settle_member(
        &mut self,
        target_epoch: i32,
        target: Vec<TopicPartitions>,
    ) -> (bool, Vec<TopicPartitions>) {
        let group = self.group;
        let subscribed: BTreeSet<Uuid> = self
            .member
            .subscribed_topic_names
            .iter()
            .filter_map(|name| self.topics.get(name.as_str()))
            .map(|topic| topic.0)
            .collect();
        let assigned: Vec<TopicPartitions> = target
            .into_iter()
            .filter(|topic| subscribed.contains(&topic.topic_id))
            .collect();
        let current = group.currents.get(&self.request.member_id);
        let is_moved = current.is_none_or(|current| current.assigned_partitions != assigned);
        if is_moved || current.is_none_or(|current| current.member_epoch != target_epoch) {
            let previous_member_epoch = match current {
                Some(current) if current.member_epoch == target_epoch => {
                    current.previous_member_epoch
                }
                Some(current) => current.member_epoch,
                None => 0,
            };
            self.records.push(GroupRecord::ShareCurrentMember {
                group_id: group.id.clone(),
                member_id: self.request.member_id.clone(),
                value: Some(ShareCurrentMemberValue {
                    member_epoch: target_epoch,
                    previous_member_epoch,
                    state: 0,
                    assigned_partitions: assigned.clone(),
                }),
            });
        }
        (is_moved, assigned)
    }

    /// Type 15 and its effect: subscribed partitions that have no state yet get it. Those of a
    /// topic that the group did not know start by the reset policy; those added to a topic that it
    /// does know start at 0, or what was produced before the next heartbeat would be lost.
    fn initialize(&mut self, state_epoch: i32) {
        let group = self.group;
        let mut state = None;
        let mut partitions = Vec::new();
        for (name, &(topic_id, count)) in &self.topics {
            for (partition, start_offset) in self.without_state(topic_id, count) {
                let state = state.get_or_insert_with(|| group.state.clone());
                state_partitions::add(&mut state.initializing, topic_id, name, partition);
                let partition = TopicPartition {
                    topic_id,
                    partition,
                };
                partitions.push(InitializePartition {
                    partition,
                    start_offset,
                    replace: false,
                });
            }
        }
        let Some(state) = state else { return };
        if state != group.state {
            self.records.push(state.record(&group.id));
        }
        let group_id = group.id.clone();
        let at = self
            .now
            .saturating_add(Ts::from(self.config.initialize_retry_interval_ms));
        self.timers.push(GroupTimer::InitializeRetry {
            group_id: group_id.clone(),
            at,
        });
        self.effects.push(GroupEffect::InitializeState {
            group_id,
            state_epoch,
            partitions,
        });
    }

    /// The partitions of a topic that are to be initialised now, with their start offsets.
    fn without_state(&self, topic_id: Uuid, count: i32) -> Vec<(i32, i64)> {
        let state = &self.group.state;
        let initialized = state.initialized.get(&topic_id);
        let has_all = initialized.is_some_and(|topic| {
            i32::try_from(topic.partitions.range(0..count.max(0)).count()) == Ok(count)
        });
        if has_all || state.deleting.contains_key(&topic_id) {
            return Vec::new();
        }
        let may_retry = self.now >= self.group.initialize_retry_at;
        let is_waited_for = state.initializing.get(&topic_id).filter(|_| !may_retry);
        let has = |topic: Option<&StateTopic>, partition: &i32| {
            topic.is_some_and(|topic| topic.partitions.contains(partition))
        };
        (0..count)
            .filter(|index| !has(initialized, index) && !has(is_waited_for, index))
            .map(|index| (index, start_offset(initialized.is_some())))
            .collect()
    }

    fn finish(
        mut self,
        member_epoch: i32,
        (is_moved, assigned): (bool, Vec<TopicPartitions>),
    ) -> Plan<ShareHeartbeatResponse> {
        let request = self.request;
        self.timers.push(GroupTimer::Set {
            key: TimerKey::session(&request.group_id, &request.member_id),
            at: self
                .now
                .saturating_add(Ts::from(self.config.session_timeout_ms)),
        });
        let is_full =
            request.member_epoch == JOIN_EPOCH || request.subscribed_topic_names.is_some();
        let response = ShareHeartbeatResponse {
            member_id: request.member_id.clone(),
            member_epoch,
            heartbeat_interval_ms: self.config.heartbeat_interval_ms,
            assignment: (is_full || is_moved).then_some(assigned),
        };
        Plan {
            response,
            records: self.records,
            effects: self.effects,
            timers: self.timers,
        }
    }
}

/// The records by which a member goes: 14, 13, 10, then the group's next epoch; the last member
/// takes the topics and the assignment's timestamp with it.
pub(super) fn removal(
    group: &ShareGroup,
    member_id: &str,
    image: &dyn TopicImage,
) -> Vec<GroupRecord> {
    let old = group
        .members
        .get(member_id)
        .map_or(&[][..], |m| &m.subscribed_topic_names);
    let topics = existing(subscriptions_after(group, old, &[]), image);
    let epoch = group.value.epoch.saturating_add(1);
    let (group_id, member_id) = (group.id.clone(), member_id.to_owned());
    let mut records = vec![
        GroupRecord::ShareCurrentMember {
            group_id: group_id.clone(),
            member_id: member_id.clone(),
            value: None,
        },
        GroupRecord::ShareTargetMember {
            group_id: group_id.clone(),
            member_id: member_id.clone(),
            value: None,
        },
        GroupRecord::ShareMember {
            group_id: group_id.clone(),
            member_id,
            value: None,
        },
        epoch_record(group, epoch, metadata_hash(&topics)),
    ];
    if group.members.len() == 1 {
        let value = ShareTargetMetadataValue {
            assignment_epoch: epoch,
            assignment_timestamp: 0,
        };
        records.push(GroupRecord::ShareTargetMetadata {
            group_id,
            value: Some(value),
        });
    }
    records
}

fn epoch_record(group: &ShareGroup, epoch: i32, metadata_hash: i64) -> GroupRecord {
    GroupRecord::ShareGroup {
        group_id: group.id.clone(),
        value: Some(ShareGroupValue {
            epoch,
            metadata_hash,
            ..group.value.clone()
        }),
    }
}

/// The names that are subscribed to once one member's subscription went from `old` to `new`.
fn subscriptions_after<'a>(
    group: &'a ShareGroup,
    old: &[String],
    new: &'a [String],
) -> impl Iterator<Item = &'a str> {
    let new_names: BTreeSet<&str> = new.iter().map(String::as_str).collect();
    let dropped: BTreeSet<String> = old
        .iter()
        .filter(|name| !new_names.contains(name.as_str()))
        .cloned()
        .collect();
    let kept = group
        .subscriptions
        .iter()
        .filter(move |(name, count)| **count > 1 || !dropped.contains(*name))
        .map(|(name, _)| name.as_str());
    kept.chain(new.iter().map(String::as_str))
}
