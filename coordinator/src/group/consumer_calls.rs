//! What is asked of a [`GroupCoordinator`] about consumer groups (KIP-848).

use super::consumer::ConsumerGroup;
use super::consumer::describe::{self, ConsumerGroupDescription};
use super::consumer::heartbeat::{self, JOIN_EPOCH};
use super::consumer::members;
use super::consumer::records::ConsumerRecord;
use super::consumer::request::{
    ConsumerGroupConfig, ConsumerHeartbeatRequest, ConsumerHeartbeatResponse, MatchedTopics,
};
use super::coordinator::{Group, GroupCoordinator};
use super::plan::GroupErrorKind::{GroupIdNotFound, InvalidGroupId};
use super::plan::{GroupError, Plan};
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

    /// `ConsumerGroupHeartbeat`.
    pub fn consumer_heartbeat(
        &self,
        now: Ts,
        request: &ConsumerHeartbeatRequest,
        config: &ConsumerGroupConfig,
        image: &dyn MatchedTopics,
    ) -> Result<Plan<ConsumerHeartbeatResponse>, GroupError> {
        members::validate(request, config)?;
        let group_id = &request.group_id;
        if request.member_epoch < JOIN_EPOCH {
            return members::leave(self.existing_consumer_group(group_id)?, request, image);
        }
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => {
                heartbeat::heartbeat(group, now, request, config, image)
            }
            None if request.member_epoch == JOIN_EPOCH => {
                let group = ConsumerGroup::new(group_id);
                heartbeat::heartbeat(&group, now, request, config, image)
            }
            None => {
                let text = format!("Consumer group {group_id} not found.");
                Err(GroupError::new(GroupIdNotFound, text))
            }
            Some(_) => Err(is_not_consumer(group_id)),
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

    /// A member that did not give up its partitions in time is removed.
    pub(super) fn rebalance_timed_out(
        &self,
        group_id: &str,
        member_id: &str,
        image: &dyn TopicImage,
    ) -> Option<Plan<()>> {
        let Some(Group::Consumer(group)) = self.groups.get(group_id) else {
            return None;
        };
        if members::is_revoking(group, member_id) {
            fence(group, member_id, image)
        } else {
            None
        }
    }
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
    let records = members::removal(group, &[member_id], image);
    plan.records = GroupRecord::of_consumer(&group.id, records);
    Some(plan)
}

/// After a replay: every member has a whole session, and a whole rebalance timeout where it has
/// partitions to give up.
pub(super) fn loaded(
    group: &mut ConsumerGroup,
    now: Ts,
    config: &ConsumerGroupConfig,
    timers: &mut TimerQueue,
) {
    group.forget_volatile();
    for (member_id, member) in &group.members {
        let own = member.classic.as_ref().map(|c| c.session_timeout_ms);
        let timeout = own.unwrap_or(config.session_timeout_ms);
        let at = now.saturating_add(Ts::from(timeout));
        timers.set(TimerKey::session(&group.id, member_id), at);
        if members::is_revoking(group, member_id) {
            let at = now.saturating_add(Ts::from(member.rebalance_timeout_ms));
            timers.set(TimerKey::rebalance_timeout(&group.id, member_id), at);
        }
    }
}
