//! A shard with its log, its topics and a clock; effects are carried out as they come.

use std::collections::{BTreeMap, BTreeSet};

use ottla_coordinator::group::GroupCoordinator;
use ottla_coordinator::group::classic::ClassicConfig;
use ottla_coordinator::group::consumer::records::ConsumerRecord;
use ottla_coordinator::group::plan::{
    GroupEffect, GroupError, GroupErrorKind, InitializePartition, Plan, ShareGroupConfig,
    ShareHeartbeatRequest, ShareHeartbeatResponse,
};
use ottla_coordinator::group::records::{ClassicGroupValue, GroupRecord};
use ottla_coordinator::types::{TopicImage, TopicPartition, Ts, Uuid};

/// Topics by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics(pub(crate) BTreeMap<String, (Uuid, i32)>);

impl TopicImage for Topics {
    fn by_name(&self, name: &str) -> Option<(Uuid, i32)> {
        self.0.get(name).copied()
    }

    fn by_id(&self, id: &Uuid) -> Option<(String, i32)> {
        let found = self.0.iter().find(|(_, (topic_id, _))| topic_id == id);
        found.map(|(name, (_, count))| (name.clone(), *count))
    }
}

pub(crate) fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// The record of a classic group without members, or its tombstone.
pub(crate) fn classic_group(group: &str, exists: bool) -> GroupRecord {
    GroupRecord::ClassicGroup {
        group_id: group.to_owned(),
        value: exists.then(ClassicGroupValue::default),
    }
}

/// What a heartbeat told the member, short: its epoch and its partitions by topic number.
pub(crate) type Told = (i32, Option<Vec<(u8, Vec<i32>)>>);

pub(crate) struct Shard {
    pub(crate) groups: GroupCoordinator,
    pub(crate) topics: Topics,
    pub(crate) config: ShareGroupConfig,
    pub(crate) now: Ts,
    /// One entry a batch.
    pub(crate) log: Vec<Vec<GroupRecord>>,
    pub(crate) effects: Vec<GroupEffect>,
    /// When set, effects pile up in `effects` and are not carried out.
    pub(crate) hold_effects: bool,
}

impl Shard {
    /// Kafka's intervals, at a time in the past century, with the topics `names` (ids 1, 2, …).
    pub(crate) fn new(names: &[(&str, i32)]) -> Self {
        let mut shard = Self {
            groups: GroupCoordinator::new(),
            topics: Topics::default(),
            config: ShareGroupConfig::default(),
            now: 1_000_000,
            log: Vec::new(),
            effects: Vec::new(),
            hold_effects: false,
        };
        for (number, (name, count)) in (1..).zip(names) {
            shard
                .topics
                .0
                .insert((*name).to_owned(), (id(number), *count));
        }
        let none = shard
            .groups
            .on_loaded(shard.now, &shard.config, &shard.topics);
        assert!(none.is_empty());
        shard
    }

    /// The desk's profile: nothing is delayed.
    pub(crate) fn at_once(names: &[(&str, i32)]) -> Self {
        let mut shard = Self::new(names);
        shard.config.assignment_interval_ms = 0;
        shard
    }

    pub(crate) fn commit<R>(&mut self, plan: Plan<R>) -> R {
        if !plan.records.is_empty() {
            self.log.push(plan.records.clone());
        }
        for record in &plan.records {
            self.groups.apply(record);
        }
        self.groups.set_timers(&plan.timers);
        for effect in plan.effects {
            self.effects.push(effect.clone());
            if !self.hold_effects {
                self.carry_out(&effect);
            }
        }
        plan.response
    }

    pub(crate) fn carry_out(&mut self, effect: &GroupEffect) {
        let plan = match effect {
            GroupEffect::InitializeState {
                group_id,
                partitions,
                ..
            } => {
                let done: Vec<_> = partitions.iter().map(|p| p.partition).collect();
                self.groups.state_initialized(group_id, &done)
            }
            GroupEffect::DeleteState { group_id, then, .. } => {
                self.groups.state_deleted(group_id, then)
            }
            _ => return,
        };
        self.commit(plan);
    }

    pub(crate) fn request(
        group: &str,
        member: &str,
        epoch: i32,
        topics: Option<&[&str]>,
    ) -> ShareHeartbeatRequest {
        ShareHeartbeatRequest {
            group_id: group.to_owned(),
            member_id: member.to_owned(),
            member_epoch: epoch,
            rack_id: None,
            subscribed_topic_names: topics.map(|t| t.iter().map(|&t| t.to_owned()).collect()),
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
        }
    }

    pub(crate) fn send(
        &mut self,
        request: &ShareHeartbeatRequest,
    ) -> Result<ShareHeartbeatResponse, GroupError> {
        let plan = self
            .groups
            .share_heartbeat(self.now, request, &self.config, &self.topics)?;
        Ok(self.commit(plan))
    }

    /// A heartbeat in group `g`.
    pub(crate) fn beat(
        &mut self,
        member: &str,
        epoch: i32,
        topics: Option<&[&str]>,
    ) -> Result<Told, (GroupErrorKind, Option<String>)> {
        let request = Self::request("g", member, epoch, topics);
        let response = self
            .send(&request)
            .map_err(|error| (error.kind, error.message))?;
        let topics = response.assignment.map(|topics| {
            topics
                .into_iter()
                .map(|topic| (topic.topic_id.0[0], topic.partitions))
                .collect()
        });
        Ok((response.member_epoch, topics))
    }

    /// (group epoch, assignment epoch) of group `g`.
    pub(crate) fn epochs(&self) -> (i32, i32) {
        let described = self.groups.share_describe("g", &self.topics).unwrap();
        (described.group_epoch, described.assignment_epoch)
    }

    /// Everything that each member of `g` has, by id.
    pub(crate) fn assigned(&self) -> BTreeMap<String, Vec<(String, Vec<i32>)>> {
        let described = self.groups.share_describe("g", &self.topics).unwrap();
        let members = described.members.into_iter().map(|member| {
            let topics = member.assignment.into_iter();
            (
                member.member_id,
                topics.map(|t| (t.topic_name, t.partitions)).collect(),
            )
        });
        members.collect()
    }

    /// Moves the clock and runs what is due.
    pub(crate) fn advance(&mut self, ms: i64) {
        self.now += ms;
        while let Some(plan) =
            self.groups
                .on_deadline(self.now, &ClassicConfig::default(), &self.topics)
        {
            self.commit(plan);
        }
    }

    /// The types of the records of the last batch.
    pub(crate) fn last_types(&self) -> Vec<i16> {
        self.log.last().unwrap().iter().map(record_type).collect()
    }

    /// A new coordinator that has read the log.
    pub(crate) fn replayed(&self) -> GroupCoordinator {
        let mut groups = GroupCoordinator::new();
        for record in self.log.iter().flatten() {
            groups.apply(record);
        }
        groups
    }
}

pub(crate) fn record_type(record: &GroupRecord) -> i16 {
    match record {
        GroupRecord::Offset { .. } => 1,
        GroupRecord::ClassicGroup { .. } => 2,
        GroupRecord::Consumer { record, .. } => match record {
            ConsumerRecord::Group(_) => 3,
            ConsumerRecord::Member(..) => 5,
            ConsumerRecord::TargetMetadata(_) => 6,
            ConsumerRecord::TargetMember(..) => 7,
            ConsumerRecord::CurrentMember(..) => 8,
            ConsumerRecord::Regex(..) => 16,
        },
        GroupRecord::ShareMember { .. } => 10,
        GroupRecord::ShareGroup { .. } => 11,
        GroupRecord::ShareTargetMetadata { .. } => 12,
        GroupRecord::ShareTargetMember { .. } => 13,
        GroupRecord::ShareCurrentMember { .. } => 14,
        GroupRecord::ShareStatePartitions { .. } => 15,
    }
}

pub(crate) fn initialize(topic: u8, partition: i32, start_offset: i64) -> InitializePartition {
    let partition = TopicPartition {
        topic_id: id(topic),
        partition,
    };
    InitializePartition {
        partition,
        start_offset,
        replace: false,
    }
}

/// As [`initialize`], for altered offsets.
pub(crate) fn alter(topic: u8, partition: i32, start_offset: i64) -> InitializePartition {
    InitializePartition {
        replace: true,
        ..initialize(topic, partition, start_offset)
    }
}

pub(crate) fn ids(numbers: &[u8]) -> BTreeSet<Uuid> {
    numbers.iter().map(|&number| id(number)).collect()
}
