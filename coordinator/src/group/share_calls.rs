//! What clients and share coordinators ask of the share groups of a [`GroupCoordinator`].

use std::collections::BTreeSet;

use super::coordinator::{Group, GroupCoordinator};
use super::plan::GroupErrorKind::GroupIdNotFound;
use super::plan::{
    AfterDelete, GroupEffect, GroupError, GroupTimer, Plan, ShareGroupConfig,
    ShareHeartbeatRequest, ShareHeartbeatResponse,
};
use super::share_group::ShareGroup;
use super::share_heartbeat::{self, JOIN_EPOCH, LEAVE_EPOCH};
use super::share_offsets;
use crate::types::{TopicImage, TopicPartition, Ts, Uuid};

impl GroupCoordinator {
    // --- Membership -------------------------------------------------------------------------

    /// `ShareGroupHeartbeat`.
    pub fn share_heartbeat(
        &self,
        now: Ts,
        request: &ShareHeartbeatRequest,
        config: &ShareGroupConfig,
        image: &dyn TopicImage,
    ) -> Result<Plan<ShareHeartbeatResponse>, GroupError> {
        share_heartbeat::validate(request)?;
        let group_id = &request.group_id;
        if request.member_epoch == LEAVE_EPOCH {
            return self.leave(request, image);
        }
        match self.share_group(group_id)? {
            Some(group) => share_heartbeat::heartbeat(group, now, request, config, image),
            None if request.member_epoch == JOIN_EPOCH => {
                let group = ShareGroup::new(group_id);
                share_heartbeat::heartbeat(&group, now, request, config, image)
            }
            None => {
                let text = format!("Share group {group_id} not found.");
                Err(GroupError::new(GroupIdNotFound, text))
            }
        }
    }

    fn leave(
        &self,
        request: &ShareHeartbeatRequest,
        image: &dyn TopicImage,
    ) -> Result<Plan<ShareHeartbeatResponse>, GroupError> {
        let group = self.existing_share_group(&request.group_id)?;
        group.member(&request.member_id)?;
        let mut plan = Plan::answer(ShareHeartbeatResponse {
            member_id: request.member_id.clone(),
            member_epoch: LEAVE_EPOCH,
            heartbeat_interval_ms: 0,
            assignment: None,
        });
        plan.records = share_heartbeat::removal(group, &request.member_id, image);
        Ok(plan)
    }

    // --- State of share partitions ----------------------------------------------------------

    /// Reports share partitions that the share coordinator has initialised; none when it failed
    /// for all. What is still missing is asked for by the next heartbeat, and what the group no
    /// longer wants is to be deleted again.
    pub fn state_initialized(&self, group_id: &str, partitions: &[TopicPartition]) -> Plan<()> {
        let mut plan = Plan::answer(());
        let group = match self.groups.get(group_id) {
            Some(Group::Share(group)) => Some(group),
            _ => None,
        };
        let mut state = group.map(|group| group.state.clone()).unwrap_or_default();
        let mut unwanted = Vec::new();
        for &partition in partitions {
            if !state.initialized_one(partition) {
                unwanted.push(partition);
            }
        }
        if !state.initializing.is_empty() {
            plan.timers.push(GroupTimer::InitializeRetry {
                group_id: group_id.to_owned(),
                at: 0,
            });
        }
        if let Some(group) = group.filter(|group| group.state != state) {
            plan.records.push(state.record(&group.id));
        }
        if !unwanted.is_empty() {
            plan.effects.push(GroupEffect::DeleteState {
                group_id: group_id.to_owned(),
                partitions: unwanted,
                then: AfterDelete::Nothing,
            });
        }
        plan
    }

    /// Follows up on a [`GroupEffect::DeleteState`] that was carried out.
    pub fn state_deleted(&self, group_id: &str, then: &AfterDelete) -> Plan<()> {
        let mut plan = Plan::answer(());
        let Some(Group::Share(group)) = self.groups.get(group_id) else {
            return plan;
        };
        let mut state = group.state.clone();
        match then {
            AfterDelete::Nothing => return plan,
            AfterDelete::ForgetTopics(topics) => {
                state
                    .deleting
                    .retain(|topic_id, _| !topics.contains(topic_id));
            }
            AfterDelete::DeleteGroup => {
                state.deleting.clear();
                if group.members.is_empty() && state.is_empty() {
                    plan.records = share_offsets::tombstones(group);
                    return plan;
                }
            }
        }
        if state != group.state {
            plan.records.push(state.record(&group.id));
        }
        plan
    }

    /// Forgets the state of topics that were deleted, in every group, and has it deleted.
    pub fn topics_deleted(&self, gone: &BTreeSet<Uuid>) -> Plan<()> {
        let mut plan = Plan::answer(());
        for group in self.share_groups() {
            if !gone.iter().any(|topic_id| group.state.knows(topic_id)) {
                continue;
            }
            let mut state = group.state.clone();
            for topic_id in gone {
                state.take(topic_id);
                state.deleting.remove(topic_id);
            }
            plan.records.push(state.record(&group.id));
            plan.effects.push(GroupEffect::DeleteState {
                group_id: group.id.clone(),
                partitions: group.state.partitions(|topic_id| gone.contains(topic_id)),
                then: AfterDelete::Nothing,
            });
        }
        plan
    }

    /// Topics that groups have state of and that `image` does not know: for
    /// [`GroupCoordinator::topics_deleted`], after a crash in the middle of a topic's deletion.
    pub fn orphaned_topics(&self, image: &dyn TopicImage) -> BTreeSet<Uuid> {
        let known = |group: &ShareGroup| -> Vec<Uuid> {
            let with_state = group
                .state
                .initializing
                .keys()
                .chain(group.state.initialized.keys());
            with_state
                .chain(group.state.deleting.keys())
                .copied()
                .collect()
        };
        let topics: BTreeSet<Uuid> = self.share_groups().flat_map(known).collect();
        topics
            .into_iter()
            .filter(|topic_id| image.by_id(topic_id).is_none())
            .collect()
    }

    pub(super) fn share_groups(&self) -> impl Iterator<Item = &ShareGroup> {
        self.groups.values().filter_map(|group| match group {
            Group::Share(group) => Some(&**group),
            _ => None,
        })
    }

    pub(super) fn share_group(&self, group_id: &str) -> Result<Option<&ShareGroup>, GroupError> {
        match self.groups.get(group_id) {
            Some(Group::Share(group)) => Ok(Some(group)),
            Some(_) => {
                let text = format!("Group {group_id} is not a share group.");
                Err(GroupError::new(GroupIdNotFound, text))
            }
            None => Ok(None),
        }
    }

    pub(super) fn existing_share_group(&self, group_id: &str) -> Result<&ShareGroup, GroupError> {
        self.share_group(group_id)?
            .ok_or_else(|| GroupError::new(GroupIdNotFound, format!("Group {group_id} not found.")))
    }
}
