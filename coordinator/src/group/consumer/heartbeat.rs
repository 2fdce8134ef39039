//! `ConsumerGroupHeartbeat` (KIP-848): joining and staying in a consumer group.

use std::collections::{BTreeMap, BTreeSet};

use super::assignor::AssignorMember;
use super::classic_members::Surroundings;
use super::group::ConsumerGroup;
use super::owned;
use super::reconcile::Step;
use super::records::{
    ConsumerRecord, CurrentValue, GroupValue, MemberState, MemberValue, RegexValue,
    TargetMetadataValue,
};
use super::request::{
    ConsumerGroupConfig, ConsumerHeartbeatRequest, ConsumerHeartbeatResponse, MatchedTopics,
};
use crate::group::plan::GroupErrorKind::{GroupMaxSizeReached, InvalidRegularExpression};
use crate::group::plan::{GroupError, GroupTimer, Plan};
use crate::group::records::GroupRecord;
use crate::group::subscribed::{self, Topics};
use crate::group::timers::TimerKey;
use crate::types::{TopicPartitions, Ts, Uuid};

pub(in crate::group) const JOIN_EPOCH: i32 = 0;
/// A static member leaves, and keeps its place until its session ends.
pub(in crate::group) const PAUSE_EPOCH: i32 = -2;

/// A member before this heartbeat.
pub(super) struct Before<'a> {
    pub(super) value: Option<&'a MemberValue>,
    pub(super) current: CurrentValue,
    pub(super) target: &'a [TopicPartitions],
    /// The member id that the static member had until now.
    pub(super) replaced: Option<&'a str>,
}

/// A heartbeat that joins or stays. `group` is a new one when the group does not exist yet.
pub(in crate::group) fn heartbeat(
    group: &ConsumerGroup,
    now: Ts,
    request: &ConsumerHeartbeatRequest,
    around: Surroundings<'_>,
) -> Result<Plan<ConsumerHeartbeatResponse>, GroupError> {
    let before = super::members::find(group, request)?;
    if before.value.is_none() {
        check_size(group, around.config)?;
    }
    let member = updated_member(before.value, request);
    let mut heartbeat = Heartbeat::new(group, now, &request.member_id, before, &member, around);
    heartbeat.reported = request.topic_partitions.as_deref();
    let current = heartbeat.run()?;
    Ok(heartbeat.finish(request, current))
}

pub(super) fn check_size(
    group: &ConsumerGroup,
    config: &ConsumerGroupConfig,
) -> Result<(), GroupError> {
    let max = config.max_size;
    if group.members.len() >= usize::try_from(max).unwrap_or(0) {
        let text = format!("The consumer group has reached its maximum capacity of {max} members.");
        return Err(GroupError::new(GroupMaxSizeReached, text));
    }
    Ok(())
}

fn updated_member(known: Option<&MemberValue>, request: &ConsumerHeartbeatRequest) -> MemberValue {
    let mut member = known.cloned().unwrap_or_else(|| MemberValue {
        rebalance_timeout_ms: -1,
        ..MemberValue::default()
    });
    if request.instance_id.is_some() {
        member.instance_id.clone_from(&request.instance_id);
    }
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if let Some(topics) = &request.subscribed_topic_names {
        let topics: BTreeSet<&String> = topics.iter().collect();
        member.subscribed_topic_names = topics.into_iter().cloned().collect();
    }
    if let Some(regex) = &request.subscribed_topic_regex {
        member.subscribed_topic_regex.clone_from(regex);
    }
    if request.server_assignor.is_some() {
        member.server_assignor.clone_from(&request.server_assignor);
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
    member.classic = None;
    member
}

/// One member's heartbeat, in the consumer or in the classic protocol.
pub(super) struct Heartbeat<'a> {
    pub(super) member_id: &'a str,
    pub(super) session_timeout_ms: i32,
    /// What the member says it has.
    pub(super) reported: Option<&'a [TopicPartitions]>,
    pub(super) group: &'a ConsumerGroup,
    pub(super) now: Ts,
    pub(super) config: &'a ConsumerGroupConfig,
    pub(super) image: &'a dyn MatchedTopics,
    pub(super) before: Before<'a>,
    /// The member as this heartbeat leaves it.
    pub(super) member: &'a MemberValue,
    /// Expressions that this heartbeat has matched, and their topics.
    pub(super) resolved: BTreeMap<&'a str, Vec<String>>,
    /// The expression that nobody subscribes to any more.
    pub(super) dropped_regex: Option<&'a str>,
    /// The version of the topics, read before anything else is.
    pub(super) topics_version: i64,
    pub(super) records: Vec<ConsumerRecord>,
    pub(super) timers: Vec<GroupTimer>,
}

impl<'a> Heartbeat<'a> {
    /// A heartbeat that says nothing of what the member has, of a member of the consumer protocol.
    pub(super) fn new(
        group: &'a ConsumerGroup,
        now: Ts,
        member_id: &'a str,
        before: Before<'a>,
        member: &'a MemberValue,
        around: Surroundings<'a>,
    ) -> Self {
        Self {
            member_id,
            session_timeout_ms: around.config.session_timeout_ms,
            reported: None,
            group,
            now,
            config: around.config,
            image: around.image,
            before,
            member,
            resolved: BTreeMap::new(),
            dropped_regex: None,
            topics_version: around.image.version(),
            records: Vec::new(),
            timers: Vec::new(),
        }
    }

    /// Everything between the request and the answer: the member's new current assignment.
    pub(super) fn run(&mut self) -> Result<CurrentValue, GroupError> {
        self.replace();
        if self.before.value != Some(self.member) || self.before.replaced.is_some() {
            let (id, value) = (self.member_id.to_owned(), self.member.clone());
            self.records.push(ConsumerRecord::Member(id, Some(value)));
        }
        self.resolve()?;
        let epoch = self.settle_epoch();
        let (target_epoch, target) = self.settle_target(epoch);
        Ok(self.settle_member(target_epoch, &target))
    }

    /// A static member that comes back with another id: the old id goes, its place stays.
    fn replace(&mut self) {
        let Some(old) = self.before.replaced else {
            return;
        };
        self.records.extend(super::members::tombstones(old));
        let target = self.before.target.to_vec();
        let id = self.member_id.to_owned();
        self.records
            .push(ConsumerRecord::TargetMember(id, Some(target)));
    }

    /// Type 16: matches a new expression, and all of them when topics have come or gone.
    fn resolve(&mut self) -> Result<(), GroupError> {
        let group = self.group;
        let old = self
            .before
            .value
            .map_or("", |value| value.subscribed_topic_regex.as_str());
        let member: &'a MemberValue = self.member;
        let new = member.subscribed_topic_regex.as_str();
        let old_members = group.regex_members.get(old).copied().unwrap_or(0);
        if !old.is_empty() && old != new && old_members <= 1 {
            self.dropped_regex = group
                .regex_members
                .get_key_value(old)
                .map(|(k, _)| k.as_str());
            let regex = old.to_owned();
            self.records.push(ConsumerRecord::Regex(regex, None));
        }
        if !new.is_empty() && !group.regexes.contains_key(new) {
            let topics = self.image.matching(new).map_err(|what| {
                let text = format!(
                    "SubscribedTopicRegex `{new}` is not a valid regular expression: {what}."
                );
                GroupError::new(InvalidRegularExpression, text)
            })?;
            self.put_regex(new, topics);
        }
        if !self.topics_moved() {
            return Ok(());
        }
        self.timers.push(GroupTimer::TopicsSeen {
            group_id: group.id.clone(),
            version: self.topics_version,
        });
        let again = group.regex_members.keys().map(String::as_str);
        let dropped = self.dropped_regex;
        for regex in again.filter(|regex| dropped != Some(*regex)) {
            // What another broker accepted and this one does not keeps what it stood for.
            let Ok(topics) = self.image.matching(regex) else {
                continue;
            };
            let known = group.regexes.get(regex);
            if known.is_none_or(|known| known.topics != topics) {
                self.put_regex(regex, topics);
            }
        }
        Ok(())
    }

    /// Whether topics have come or gone since the last heartbeat of the group.
    fn topics_moved(&self) -> bool {
        self.group.seen_version != Some(self.topics_version)
    }

    fn put_regex(&mut self, regex: &'a str, topics: Vec<String>) {
        let value = RegexValue {
            topics: topics.clone(),
            version: self.topics_version,
            timestamp: self.now,
        };
        let key = regex.to_owned();
        self.records.push(ConsumerRecord::Regex(key, Some(value)));
        self.resolved.insert(regex, topics);
    }

    fn matched<'b>(&'b self, regex: &str) -> &'b [String]
    where
        'a: 'b,
    {
        match self.resolved.get(regex) {
            Some(topics) => topics,
            None => self.group.matched(regex),
        }
    }

    /// The subscribed topics that exist, as this heartbeat leaves the subscriptions.
    fn topics(&self) -> Topics<'_> {
        let group = self.group;
        let old = self.before.value;
        let old_names = old.map_or(&[][..], |value| &value.subscribed_topic_names);
        let new_names = &self.member.subscribed_topic_names;
        let is_gone = |name: &String, count: usize| {
            count == 1
                && old_names.binary_search(name).is_ok()
                && new_names.binary_search(name).is_err()
        };
        let names = group.names.iter();
        let kept = names
            .filter(|(name, count)| !is_gone(name, **count))
            .map(|(name, _)| name);
        let regexes = group.regex_members.keys().map(String::as_str);
        let regexes = regexes
            .filter(|regex| self.dropped_regex != Some(*regex))
            .chain([self.member.subscribed_topic_regex.as_str()]);
        let by_regex = regexes.flat_map(|regex| self.matched(regex));
        let all = kept.chain(new_names).chain(by_regex);
        subscribed::existing(all.map(String::as_str), self.image)
    }

    /// Type 3: the group's epoch, which rises with a changed subscription and with changed topics.
    fn settle_epoch(&mut self) -> i32 {
        let group = self.group;
        let none = MemberValue::default();
        let old = self.before.value.unwrap_or(&none);
        let is_subscription = old.subscribed_topic_names != self.member.subscribed_topic_names
            || old.subscribed_topic_regex != self.member.subscribed_topic_regex;
        if !is_subscription && !self.topics_moved() {
            return group.value.epoch;
        }
        let metadata_hash = subscribed::metadata_hash(&self.topics());
        if !is_subscription && metadata_hash == group.value.metadata_hash {
            return group.value.epoch;
        }
        let epoch = group.value.epoch.saturating_add(1);
        let value = GroupValue {
            epoch,
            metadata_hash,
        };
        self.records.push(ConsumerRecord::Group(Some(value)));
        epoch
    }

    /// Types 7 and 6: a new target assignment, when one is due and the interval allows it. Answers
    /// the target's epoch and this member's part.
    fn settle_target(&mut self, epoch: i32) -> (i32, Vec<TopicPartitions>) {
        let group = self.group;
        let interval = Ts::from(self.config.assignment_interval_ms);
        let since = self.now.saturating_sub(group.target.assignment_timestamp);
        let is_allowed = interval == 0 || since >= interval;
        if epoch <= group.target.assignment_epoch || !is_allowed {
            return (group.target.assignment_epoch, self.before.target.to_vec());
        }
        let mut own = Vec::new();
        let mut changed = Vec::new();
        for (id, target) in self.assign() {
            let known = if id == self.member_id {
                own.clone_from(&target);
                // A member's first target is written even when it is empty.
                let is_known = group.targets.contains_key(id) || self.before.replaced.is_some();
                is_known.then_some(self.before.target)
            } else {
                group.targets.get(id).map(Vec::as_slice)
            };
            if known != Some(&target) {
                let id = id.to_owned();
                changed.push(ConsumerRecord::TargetMember(id, Some(target)));
            }
        }
        self.records.append(&mut changed);
        let value = TargetMetadataValue {
            assignment_epoch: epoch,
            assignment_timestamp: self.now,
        };
        self.records
            .push(ConsumerRecord::TargetMetadata(Some(value)));
        (epoch, own)
    }

    fn assign(&self) -> Vec<(&'a str, Vec<TopicPartitions>)> {
        let group = self.group;
        let members = group.members.iter();
        let mut values: BTreeMap<&str, &MemberValue> =
            members.map(|(id, value)| (id.as_str(), value)).collect();
        if let Some(old) = self.before.replaced {
            values.remove(old);
        }
        values.insert(self.member_id, self.member);
        let topics = self.topics();
        let counts: BTreeMap<Uuid, i32> = topics.values().copied().collect();
        let topic_ids: Vec<Vec<Uuid>> = values
            .values()
            .map(|value| self.subscribed_ids(value, &topics).into_iter().collect())
            .collect();
        let members: Vec<AssignorMember<'_>> = values
            .iter()
            .zip(&topic_ids)
            .map(|((&member_id, value), topics)| AssignorMember {
                member_id,
                instance_id: value.instance_id.as_deref(),
                topics,
                previous: if member_id == self.member_id {
                    self.before.target
                } else {
                    group.targets.get(member_id).map_or(&[], Vec::as_slice)
                },
            })
            .collect();
        let old_vote = self.before.value.and_then(|v| v.server_assignor.as_deref());
        let vote = (old_vote, self.member.server_assignor.as_deref());
        let assignor = group.assignor(&self.config.assignors, Some(vote));
        let count = |topic_id: &Uuid| counts.get(topic_id).copied().unwrap_or(0);
        let assigned = assignor.assign(&members, &count);
        values.into_keys().zip(assigned).collect()
    }

    fn subscribed_ids(&self, value: &MemberValue, topics: &Topics<'_>) -> BTreeSet<Uuid> {
        let names = value.subscribed_topic_names.iter();
        names
            .chain(self.matched(&value.subscribed_topic_regex))
            .filter_map(|name| topics.get(name.as_str()))
            .map(|topic| topic.0)
            .collect()
    }

    /// Type 8: the member's next step towards its target.
    fn settle_member(&mut self, target_epoch: i32, target: &[TopicPartitions]) -> CurrentValue {
        let group = self.group;
        let current = self.before.current.clone();
        let is_there = current.state == MemberState::Stable && current.member_epoch == target_epoch;
        let is_same = self.before.value == Some(self.member) && self.before.replaced.is_none();
        if is_there && is_same && !self.topics_moved() {
            return current;
        }
        let names = subscribed::existing(
            self.member
                .subscribed_topic_names
                .iter()
                .chain(self.matched(&self.member.subscribed_topic_regex))
                .map(String::as_str),
            self.image,
        );
        let subscribed: BTreeSet<Uuid> = names.values().map(|topic| topic.0).collect();
        let mine = [
            self.member_id,
            self.before.replaced.unwrap_or(self.member_id),
        ];
        let step = Step {
            target_epoch,
            target,
            subscribes: &|topic_id| subscribed.contains(topic_id),
            owned: self.reported,
            is_taken: &|topic_id, partition| group.is_taken(topic_id, partition, mine),
        };
        let next = step.next(&current);
        let is_new = !group.currents.contains_key(self.member_id);
        let is_moved = next.is_some();
        let next = next.unwrap_or(current);
        if is_moved || is_new {
            let (id, value) = (self.member_id.to_owned(), next.clone());
            self.records
                .push(ConsumerRecord::CurrentMember(id, Some(value)));
            if self.member.classic.is_none() {
                self.time_revocation(&next);
            }
        }
        next
    }

    /// A member that has partitions to give up has its rebalance timeout for that.
    fn time_revocation(&mut self, next: &CurrentValue) {
        let timeout = Ts::from(self.member.rebalance_timeout_ms);
        let is_revoking = next.state == MemberState::UnrevokedPartitions;
        let key = TimerKey::rebalance_timeout(&self.group.id, self.member_id);
        self.timers.push(if is_revoking {
            let at = self.now.saturating_add(timeout);
            GroupTimer::Set { key, at }
        } else {
            GroupTimer::Cancel(key)
        });
    }

    /// The records as the group's, and the timers, with the member's session.
    pub(super) fn take_changes(&mut self) -> (Vec<GroupRecord>, Vec<GroupTimer>) {
        let timeout = Ts::from(self.session_timeout_ms);
        let key = TimerKey::session(&self.group.id, self.member_id);
        let at = self.now.saturating_add(timeout);
        self.timers.push(GroupTimer::Set { key, at });
        let records = std::mem::take(&mut self.records);
        let group_id = &self.group.id;
        (
            GroupRecord::of_consumer(group_id, records),
            std::mem::take(&mut self.timers),
        )
    }

    fn finish(
        mut self,
        request: &ConsumerHeartbeatRequest,
        current: CurrentValue,
    ) -> Plan<ConsumerHeartbeatResponse> {
        let (records, timers) = self.take_changes();
        let is_full = request.member_epoch == JOIN_EPOCH
            || (request.rebalance_timeout_ms != -1
                && (request.subscribed_topic_names.is_some()
                    || request.subscribed_topic_regex.is_some())
                && request.topic_partitions.is_some());
        let is_moved = current.assigned != self.before.current.assigned;
        let response = ConsumerHeartbeatResponse {
            member_id: request.member_id.clone(),
            member_epoch: current.member_epoch,
            heartbeat_interval_ms: self.config.heartbeat_interval_ms,
            assignment: (is_full || is_moved).then(|| owned::topics(&current.assigned)),
        };
        Plan {
            response,
            records,
            effects: Vec::new(),
            timers,
        }
    }
}
