//! The groups of one partition of `__consumer_offsets`, by id, each of one type.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::GroupErrorKind::GroupIdNotFound;
use super::plan::{
    AfterDelete, GroupEffect, GroupError, GroupTimer, GroupType, Plan, ShareGroupConfig,
    ShareGroupConfigs, ShareHeartbeatRequest, ShareHeartbeatResponse,
};
use super::records::GroupRecord;
use super::share_group::ShareGroup;
use super::share_heartbeat::{self, JOIN_EPOCH, LEAVE_EPOCH};
use super::share_offsets;
use super::state_partitions::interrupted;
use crate::types::{TopicImage, TopicPartition, Ts, Uuid};

#[derive(Clone, Debug)]
pub(super) enum Group {
    Share(Box<ShareGroup>),
    /// A group of a type that has its records elsewhere: it only keeps its id taken.
    Other(GroupType),
}

/// The group coordinator of one partition of `__consumer_offsets`.
///
/// Every call that changes something is a [`Plan`]; see there for the order of steps. After the
/// replay, and before the first call, [`GroupCoordinator::on_loaded`] must be called.
#[derive(Clone, Debug, Default)]
pub struct GroupCoordinator {
    pub(super) groups: BTreeMap<String, Group>,
    /// When members' sessions end: instant, group, member.
    deadlines: BTreeSet<(Ts, String, String)>,
    is_loaded: bool,
}

impl GroupCoordinator {
    /// No groups; not loaded.
    pub fn new() -> Self {
        Self::default()
    }

    // --- Log and time -----------------------------------------------------------------------

    /// Takes in a record that is in the log.
    pub fn apply(&mut self, record: &GroupRecord) {
        let group_id = record.group_id();
        if self.ends_member(record) {
            self.cancel_sessions(record);
        }
        if matches!(record, GroupRecord::ShareGroup { value: None, .. }) {
            if let Some(Group::Share(_)) = self.groups.get(group_id) {
                self.groups.remove(group_id);
            }
            return;
        }
        if !self.groups.contains_key(group_id) && is_tombstone(record) {
            return;
        }
        let group = self
            .groups
            .entry(group_id.to_owned())
            .or_insert_with(|| Group::Share(Box::new(ShareGroup::new(group_id))));
        if let Group::Share(group) = group {
            group.apply(record);
            let changes_assignable = matches!(
                record,
                GroupRecord::ShareTargetMetadata { .. } | GroupRecord::ShareStatePartitions { .. }
            );
            if self.is_loaded && changes_assignable {
                group.note_unassigned();
            }
        }
    }

    /// Notes that a group of another type exists or is gone, so that its id is taken or free.
    pub fn note_other_group(&mut self, group_id: &str, group_type: GroupType, exists: bool) {
        if exists {
            self.groups
                .entry(group_id.to_owned())
                .or_insert(Group::Other(group_type));
        } else if let Some(Group::Other(_)) = self.groups.get(group_id) {
            self.groups.remove(group_id);
        }
    }

    /// Sets the volatile deadlines of a committed plan.
    pub fn set_timers(&mut self, timers: &[GroupTimer]) {
        for timer in timers {
            match timer {
                GroupTimer::Session {
                    group_id,
                    member_id,
                    at,
                } => {
                    self.set_session(group_id, member_id, *at);
                }
                GroupTimer::InitializeRetry { group_id, at } => {
                    if let Some(Group::Share(group)) = self.groups.get_mut(group_id) {
                        group.initialize_retry_at = *at;
                    }
                }
            }
        }
    }

    /// Ends the replay: every member gets a whole session from `now` on. Answers the effects that
    /// a crash may have cut off; carrying them out twice does no harm.
    pub fn on_loaded(
        &mut self,
        now: Ts,
        configs: &dyn ShareGroupConfigs,
        image: &dyn TopicImage,
    ) -> Vec<GroupEffect> {
        self.is_loaded = true;
        self.deadlines.clear();
        let mut effects = Vec::new();
        let mut sessions = Vec::new();
        for group in self.groups.values_mut() {
            let Group::Share(group) = group else { continue };
            group.forget_volatile();
            group.note_unassigned();
            effects.extend(interrupted(group, image));
            let config = configs.share(&group.id);
            let at = now.saturating_add(Ts::from(config.session_timeout_ms));
            let members = group.members.keys();
            sessions.extend(members.map(|member_id| (at, group.id.clone(), member_id.clone())));
        }
        for (at, group_id, member_id) in sessions {
            self.set_session(&group_id, &member_id, at);
        }
        effects
    }

    /// The next instant at which [`GroupCoordinator::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Option<Ts> {
        self.deadlines.first().map(|(at, ..)| *at)
    }

    /// Removes the member whose session ended first, if it ended by `now`. Call it until it
    /// answers `None`; each plan must be committed before the next call.
    pub fn on_deadline(&self, now: Ts, image: &dyn TopicImage) -> Option<Plan<()>> {
        let (_, group_id, member_id) = self.deadlines.first().filter(|(at, ..)| *at <= now)?;
        let Some(Group::Share(group)) = self.groups.get(group_id) else {
            return None;
        };
        let mut plan = Plan::answer(());
        plan.records = share_heartbeat::removal(group, member_id, image);
        Some(plan)
    }

    /// Moves every session's end by `by_ms`: members live on while state time is moved.
    pub fn shift_sessions(&mut self, by_ms: i64) {
        let deadlines = std::mem::take(&mut self.deadlines);
        for (at, group_id, member_id) in deadlines {
            self.set_session(&group_id, &member_id, at.saturating_add(by_ms));
        }
    }

    fn set_session(&mut self, group_id: &str, member_id: &str, at: Ts) {
        let Some(Group::Share(group)) = self.groups.get_mut(group_id) else {
            return;
        };
        if !group.members.contains_key(member_id) {
            return;
        }
        let old = group.sessions.insert(member_id.to_owned(), at);
        let mut key = (at, group_id.to_owned(), member_id.to_owned());
        if let Some(old) = old.filter(|&old| old != at) {
            key.0 = old;
            self.deadlines.remove(&key);
            key.0 = at;
        }
        self.deadlines.insert(key);
    }

    fn ends_member(&self, record: &GroupRecord) -> bool {
        self.is_loaded
            && matches!(
                record,
                GroupRecord::ShareMember { value: None, .. }
                    | GroupRecord::ShareGroup { value: None, .. }
            )
    }

    fn cancel_sessions(&mut self, record: &GroupRecord) {
        let group_id = record.group_id();
        let Some(Group::Share(group)) = self.groups.get_mut(group_id) else {
            return;
        };
        let ended: BTreeMap<String, Ts> = match record {
            GroupRecord::ShareMember { member_id, .. } => {
                group.sessions.remove_entry(member_id).into_iter().collect()
            }
            _ => std::mem::take(&mut group.sessions),
        };
        for (member_id, at) in ended {
            self.deadlines.remove(&(at, group_id.to_owned(), member_id));
        }
    }

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
            Group::Other(_) => None,
        })
    }

    pub(super) fn share_group(&self, group_id: &str) -> Result<Option<&ShareGroup>, GroupError> {
        match self.groups.get(group_id) {
            Some(Group::Share(group)) => Ok(Some(group)),
            Some(Group::Other(_)) => {
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

fn is_tombstone(record: &GroupRecord) -> bool {
    match record {
        GroupRecord::ShareMember { value, .. } => value.is_none(),
        GroupRecord::ShareGroup { value, .. } => value.is_none(),
        GroupRecord::ShareTargetMetadata { value, .. } => value.is_none(),
        GroupRecord::ShareTargetMember { value, .. } => value.is_none(),
        GroupRecord::ShareCurrentMember { value, .. } => value.is_none(),
        GroupRecord::ShareStatePartitions { value, .. } => value.is_none(),
    }
}
