//! The groups of one partition of `__consumer_offsets`, by id, each of one type.

use std::collections::BTreeMap;

use super::classic::ClassicConfig;
use super::classic::group::ClassicGroup;
use super::consumer::ConsumerGroup;
use super::consumer_calls;
use super::offsets::{OffsetRules, OffsetTable};
use super::plan::{GroupEffect, GroupTimer, Plan, ShareGroupConfigs};
use super::records::{ClassicGroupValue, GroupRecord};
use super::share_group::ShareGroup;
use super::share_heartbeat;
use super::state_partitions::interrupted;
use super::timers::{TimerKey, TimerQueue};
use crate::types::{TopicImage, Ts};

#[derive(Clone, Debug)]
pub(super) enum Group {
    Share(Box<ShareGroup>),
    Classic(Box<ClassicGroup>),
    Consumer(Box<ConsumerGroup>),
}

/// The group coordinator of one partition of `__consumer_offsets`.
///
/// Every call that changes something durable is a [`Plan`]; see there for the order of steps. After
/// the replay, and before the first call, [`GroupCoordinator::on_loaded`] must be called.
#[derive(Clone, Debug, Default)]
pub struct GroupCoordinator {
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) timers: TimerQueue,
    pub(super) offsets: OffsetTable,
    /// How offsets end by time; none before they are loaded.
    pub(super) offset_rules: Option<OffsetRules>,
    /// The group with which a search for expired offsets goes on that was cut.
    pub(super) expiry_resume: Option<String>,
    is_loaded: bool,
}

impl GroupCoordinator {
    /// No groups; not loaded.
    pub fn new() -> Self {
        Self::default()
    }

    // --- Log --------------------------------------------------------------------------------

    /// Takes in a record that is in the log.
    pub fn apply(&mut self, record: &GroupRecord) {
        match record {
            GroupRecord::Offset {
                group_id,
                topic,
                partition,
                value,
            } => self.apply_offset(group_id, topic, *partition, value.as_ref()),
            GroupRecord::ClassicGroup { group_id, value } => {
                self.apply_classic(group_id, value.as_ref());
            }
            GroupRecord::Consumer { group_id, record } => self.apply_consumer(group_id, record),
            _ => self.apply_share(record),
        }
    }

    fn apply_classic(&mut self, group_id: &str, value: Option<&ClassicGroupValue>) {
        match (self.groups.get_mut(group_id), value) {
            (Some(Group::Classic(group)), Some(value)) if self.is_loaded => group.commit(value),
            (Some(Group::Classic(_)) | None, Some(value)) => {
                let group = Box::new(ClassicGroup::load(group_id, value));
                self.groups
                    .insert(group_id.to_owned(), Group::Classic(group));
            }
            (Some(Group::Classic(group)), None) => {
                for key in group.timer_keys() {
                    self.timers.cancel(key);
                }
                self.groups.remove(group_id);
            }
            _ => {}
        }
    }

    fn apply_share(&mut self, record: &GroupRecord) {
        let group_id = record.group_id();
        let is_gone = matches!(record, GroupRecord::ShareGroup { value: None, .. });
        match record {
            GroupRecord::ShareMember {
                member_id,
                value: None,
                ..
            } => self.timers.cancel(TimerKey::session(group_id, member_id)),
            _ if is_gone => self.cancel_share_sessions(group_id),
            _ => {}
        }
        if is_gone {
            if let Some(Group::Share(_)) = self.groups.get(group_id) {
                self.groups.remove(group_id);
            }
            return;
        }
        if !self.groups.contains_key(group_id) && record.is_tombstone() {
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

    fn cancel_share_sessions(&mut self, group_id: &str) {
        if let Some(Group::Share(group)) = self.groups.get(group_id) {
            for member_id in group.members.keys() {
                self.timers.cancel(TimerKey::session(group_id, member_id));
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
        self.timers.clear();
        let mut effects = Vec::new();
        for (group_id, group) in &mut self.groups {
            match group {
                Group::Share(group) => {
                    group.forget_volatile();
                    group.note_unassigned();
                    effects.extend(interrupted(group, image));
                    let config = configs.share(group_id);
                    let at = now.saturating_add(Ts::from(config.session_timeout_ms));
                    for member_id in group.members.keys() {
                        self.timers.set(TimerKey::session(group_id, member_id), at);
                    }
                }
                Group::Classic(group) => {
                    for (member_id, member) in &group.members {
                        let at = now.saturating_add(Ts::from(member.session_timeout_ms));
                        self.timers.set(TimerKey::session(group_id, member_id), at);
                    }
                }
                Group::Consumer(group) => {
                    let config = configs.consumer(group_id);
                    effects.extend(consumer_calls::loaded(
                        group,
                        now,
                        &config,
                        &mut self.timers,
                    ));
                }
            }
        }
        effects
    }

    // --- Time -------------------------------------------------------------------------------

    /// Sets the volatile deadlines of a committed plan.
    pub fn set_timers(&mut self, timers: &[GroupTimer]) {
        for timer in timers {
            match timer {
                GroupTimer::Set { key, at } => self.timers.set(key.clone(), *at),
                GroupTimer::Cancel(key) => self.timers.cancel(key.clone()),
                GroupTimer::TopicsSeen { group_id, version } => {
                    if let Some(Group::Consumer(group)) = self.groups.get_mut(group_id) {
                        group.topics_seen(*version);
                    }
                }
                GroupTimer::ResumeExpiry(group_id) => self.expiry_resume.clone_from(group_id),
                GroupTimer::InitializeRetry { group_id, at } => {
                    if let Some(Group::Share(group)) = self.groups.get_mut(group_id) {
                        group.initialize_retry_at = *at;
                    }
                }
            }
        }
    }

    /// The next instant at which [`GroupCoordinator::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Option<Ts> {
        self.timers.next()
    }

    /// Does what fell due first, if something fell due by `now`. Call it until it answers `None`;
    /// each plan must be committed before the next call. What a plan of a share group was to do
    /// stays due until it is committed.
    pub fn on_deadline(
        &mut self,
        now: Ts,
        classic: &ClassicConfig,
        image: &dyn TopicImage,
    ) -> Option<Plan<()>> {
        while let Some(key) = self.timers.first_due(now).cloned() {
            let plan = match &key {
                TimerKey::Session { group, member } => self.session_ended(group, member, image),
                TimerKey::RebalanceTimeout { group, member } => {
                    self.rebalance_timed_out(group, member, image)
                }
                TimerKey::OffsetExpiry => self.expire(now),
                _ => None,
            };
            if plan.is_some() {
                return plan;
            }
            let plan = self.classic_deadline(now, &key, classic);
            self.timers.cancel(key);
            if plan.is_some() {
                return plan;
            }
        }
        None
    }

    fn session_ended(
        &self,
        group_id: &str,
        member_id: &str,
        image: &dyn TopicImage,
    ) -> Option<Plan<()>> {
        let group = match self.groups.get(group_id) {
            Some(Group::Share(group)) => group,
            Some(Group::Consumer(group)) => {
                return consumer_calls::fence(group, member_id, image);
            }
            _ => return None,
        };
        if !group.members.contains_key(member_id) {
            return None;
        }
        let mut plan = Plan::answer(());
        plan.records = share_heartbeat::removal(group, member_id, image);
        Some(plan)
    }

    /// Moves the end of every session, and of every wait for members, by `by_ms`: members live on
    /// while state time is moved.
    pub fn shift_sessions(&mut self, by_ms: i64) {
        self.timers.shift_sessions(by_ms);
    }
}
