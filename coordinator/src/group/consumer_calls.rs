//! What is asked of a [`GroupCoordinator`] about consumer groups (KIP-848).

use super::classic::group::ClassicGroup;
use super::classic::{
    HeartbeatRequest, JoinAnswer, JoinRequest, LeaveAnswer, Leaving, SyncAnswer, SyncRequest,
};
use super::consumer::ConsumerGroup;
use super::consumer::classic_members::{self, Surroundings};
use super::consumer::describe::{self, ConsumerGroupDescription};
use super::consumer::heartbeat::{self, JOIN_EPOCH};
use super::consumer::members;
use super::consumer::migrate;
use super::consumer::records::ConsumerRecord;
use super::consumer::request::{
    ConsumerGroupConfig, ConsumerHeartbeatRequest, ConsumerHeartbeatResponse, MatchedTopics,
};
use super::consumer_protocol::ConsumerProtocol;
use super::coordinator::{Group, GroupCoordinator};
use super::plan::GroupErrorKind::{GroupIdNotFound, InvalidGroupId, RebalanceInProgress};
use super::plan::{GroupEffect, GroupError, GroupErrorKind, Plan};
use super::records::GroupRecord;
use super::timers::{TimerKey, TimerQueue};
use crate::types::{TopicImage, Ts};

impl GroupCoordinator {
    pub(super) fn apply_consumer(&mut self, group_id: &str, record: &ConsumerRecord) {
        if let ConsumerRecord::Member(member_id, None) = record {
            self.timers.cancel(TimerKey::session(group_id, member_id));
            let key = TimerKey::rebalance_timeout(group_id, member_id);
            self.timers.cancel(key);
        }
        if *record == ConsumerRecord::Group(None) {
            if let Some(Group::Consumer(_)) = self.groups.get(group_id) {
                self.groups.remove(group_id);
            }
            return;
        }
        if let Some(Group::Consumer(group)) = self.groups.get_mut(group_id) {
            group.apply(record);
            return;
        }
        let is_free = matches!(self.groups.get(group_id), None | Some(Group::Classic(_)));
        if is_free && !record.is_tombstone() {
            let mut group = Box::new(ConsumerGroup::new(group_id));
            group.apply(record);
            self.groups
                .insert(group_id.to_owned(), Group::Consumer(group));
        }
    }

    /// `ConsumerGroupHeartbeat`. A classic group without members gives way to a consumer group; one
    /// with members becomes one, if the policy allows it: their parked requests are sent away.
    pub fn consumer_heartbeat(
        &self,
        now: Ts,
        request: &ConsumerHeartbeatRequest,
        config: &ConsumerGroupConfig,
        image: &dyn MatchedTopics,
        protocol: &dyn ConsumerProtocol,
    ) -> Result<Plan<ConsumerHeartbeatResponse>, GroupError> {
        members::validate(request, config)?;
        let around = Surroundings {
            config,
            image,
            protocol,
        };
        let group_id = &request.group_id;
        if request.member_epoch < JOIN_EPOCH {
            return members::leave(self.existing_consumer_group(group_id)?, request, image);
        }
        let joins = request.member_epoch == JOIN_EPOCH;
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => heartbeat::heartbeat(group, now, request, around),
            Some(Group::Classic(group)) if joins => join_classic_group(group, now, request, around),
            None if joins => {
                let group = ConsumerGroup::new(group_id);
                heartbeat::heartbeat(&group, now, request, around)
            }
            None => {
                let text = format!("Consumer group {group_id} not found.");
                Err(GroupError::new(GroupIdNotFound, text))
            }
            Some(_) => Err(is_not_consumer(group_id)),
        }
    }

    /// `JoinGroup` of a consumer group that has members; `None` for any other group.
    pub fn consumer_join(
        &self,
        now: Ts,
        request: &JoinRequest,
        config: &ConsumerGroupConfig,
        image: &dyn MatchedTopics,
        protocol: &dyn ConsumerProtocol,
    ) -> Option<Plan<JoinAnswer>> {
        let around = Surroundings {
            config,
            image,
            protocol,
        };
        let group = self.with_members(&request.group_id)?;
        Some(classic_members::join(group, now, request, around))
    }

    /// `SyncGroup`, likewise.
    pub fn consumer_sync(
        &self,
        now: Ts,
        request: &SyncRequest,
        image: &dyn TopicImage,
        protocol: &dyn ConsumerProtocol,
    ) -> Option<Plan<SyncAnswer>> {
        let group = self.with_members(&request.group_id)?;
        Some(classic_members::sync(group, now, request, image, protocol))
    }

    /// `Heartbeat`, likewise.
    pub fn consumer_classic_heartbeat(
        &self,
        now: Ts,
        request: &HeartbeatRequest,
    ) -> Option<Plan<Result<(), GroupErrorKind>>> {
        let group = self.with_members(&request.group_id)?;
        let key = TimerKey::rebalance_timeout(&request.group_id, &request.member_id);
        let is_timed = self.timers.contains(&key);
        Some(classic_members::heartbeat_of(group, now, request, is_timed))
    }

    /// `LeaveGroup`, likewise.
    pub fn consumer_leave(
        &self,
        group_id: &str,
        leaving: &[Leaving],
        image: &dyn TopicImage,
    ) -> Option<Plan<LeaveAnswer>> {
        let group = self.with_members(group_id)?;
        let plan = classic_members::leave(group, leaving, image);
        Some(plan.map(Ok))
    }

    /// Makes a classic group of a consumer group that only members of the classic protocol are left
    /// in, if the policy allows it.
    pub fn consumer_downgrade(
        &self,
        now: Ts,
        group_id: &str,
        config: &ConsumerGroupConfig,
        image: &dyn TopicImage,
        protocol: &dyn ConsumerProtocol,
    ) -> Plan<()> {
        let mut plan = Plan::answer(());
        let group = self.with_members(group_id);
        let group = group.filter(|group| group.classic_members == group.members.len());
        if let Some(group) = group.filter(|_| config.migration.downgrade) {
            (plan.records, plan.timers) = migrate::downgrade(group, now, image, protocol);
        }
        plan
    }

    fn with_members(&self, group_id: &str) -> Option<&ConsumerGroup> {
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) if !group.members.is_empty() => Some(group),
            _ => None,
        }
    }

    /// `ConsumerGroupDescribe` of one group.
    pub fn consumer_describe(
        &self,
        group_id: &str,
        config: &ConsumerGroupConfig,
        image: &dyn TopicImage,
    ) -> Result<ConsumerGroupDescription, GroupError> {
        if group_id.is_empty() {
            return Err(GroupError::bare(InvalidGroupId));
        }
        let group = self.existing_consumer_group(group_id)?;
        Ok(describe::describe(group, config, image))
    }

    pub(super) fn existing_consumer_group(
        &self,
        group_id: &str,
    ) -> Result<&ConsumerGroup, GroupError> {
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => Ok(group),
            None => {
                let text = format!("Group {group_id} not found.");
                Err(GroupError::new(GroupIdNotFound, text))
            }
            Some(_) => Err(is_not_consumer(group_id)),
        }
    }

    /// A member that did not give up its partitions, or that speaks the classic protocol and did not
    /// join again or fetch its assignment, in time is removed.
    pub(super) fn rebalance_timed_out(
        &self,
        group_id: &str,
        member_id: &str,
        image: &dyn TopicImage,
    ) -> Option<Plan<()>> {
        let Some(Group::Consumer(group)) = self.groups.get(group_id) else {
            return None;
        };
        if members::is_awaited(group, member_id) {
            fence(group, member_id, image)
        } else {
            None
        }
    }
}

/// A member of the consumer protocol joins a classic group, which becomes a consumer group.
fn join_classic_group(
    classic: &ClassicGroup,
    now: Ts,
    request: &ConsumerHeartbeatRequest,
    around: Surroundings<'_>,
) -> Result<Plan<ConsumerHeartbeatResponse>, GroupError> {
    let mut group = ConsumerGroup::new(&request.group_id);
    let mut converted = Vec::new();
    if !classic.members.is_empty() {
        converted = migrate::upgrade(classic, around)?;
        for record in &converted {
            group.apply(record);
        }
    }
    let mut plan = heartbeat::heartbeat(&group, now, request, around)?;
    let mut records = vec![GroupRecord::ClassicGroup {
        group_id: request.group_id.clone(),
        value: None,
    }];
    records.extend(GroupRecord::of_consumer(&request.group_id, converted));
    records.append(&mut plan.records);
    plan.records = records;
    plan.effects = classic.parked_answers(RebalanceInProgress);
    let mut timers = migrate::sessions(&group, now);
    timers.append(&mut plan.timers);
    plan.timers = timers;
    Ok(plan)
}

fn is_not_consumer(group_id: &str) -> GroupError {
    let text = format!("Group {group_id} is not a consumer group.");
    GroupError::new(GroupIdNotFound, text)
}

/// Removes a member, if it is still there.
pub(super) fn fence(
    group: &ConsumerGroup,
    member_id: &str,
    image: &dyn TopicImage,
) -> Option<Plan<()>> {
    let (member_id, _) = group.members.get_key_value(member_id)?;
    let mut plan = Plan::answer(());
    if migrate::is_classic_without(group, member_id) {
        plan.effects = classic_members::back_to_classic(&group.id);
    }
    let records = members::removal(group, &[member_id], image);
    plan.records = GroupRecord::of_consumer(&group.id, records);
    Some(plan)
}

/// After a replay: every member has a whole session, and a whole rebalance timeout where it has
/// partitions to give up. A crash may have come between the last member of the consumer protocol
/// and what follows from that.
pub(super) fn loaded(
    group: &mut ConsumerGroup,
    now: Ts,
    config: &ConsumerGroupConfig,
    timers: &mut TimerQueue,
) -> Vec<GroupEffect> {
    group.forget_volatile();
    for (member_id, member) in &group.members {
        let own = member.classic.as_ref().map(|c| c.session_timeout_ms);
        let timeout = own.unwrap_or(config.session_timeout_ms);
        let at = now.saturating_add(Ts::from(timeout));
        timers.set(TimerKey::session(&group.id, member_id), at);
        if members::is_awaited(group, member_id) {
            let at = now.saturating_add(Ts::from(member.rebalance_timeout_ms));
            timers.set(TimerKey::rebalance_timeout(&group.id, member_id), at);
        }
    }
    if !group.members.is_empty() && group.classic_members == group.members.len() {
        classic_members::back_to_classic(&group.id)
    } else {
        Vec::new()
    }
}
