//! A shard with its log, its topics and a clock, and members that do what they are told.

use std::collections::BTreeMap;

use ottla_coordinator::group::GroupCoordinator;
use ottla_coordinator::group::classic::ClassicConfig;
use ottla_coordinator::group::consumer::describe::ConsumerGroupDescription;
use ottla_coordinator::group::consumer::request::{
    ConsumerGroupConfig, ConsumerHeartbeatRequest, ConsumerHeartbeatResponse, MatchedTopics,
};
use ottla_coordinator::group::plan::{GroupError, Plan, ShareGroupConfig, ShareGroupConfigs};
use ottla_coordinator::group::records::GroupRecord;
use ottla_coordinator::types::{TopicImage, TopicPartitions, Ts, Uuid};

/// Topics by name, and a version that rises with each change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    pub(crate) topics: BTreeMap<String, (Uuid, i32)>,
    pub(crate) version: i64,
}

impl Topics {
    pub(crate) fn set(&mut self, name: &str, number: u8, count: i32) {
        self.topics.insert(name.to_owned(), (id(number), count));
        self.version += 1;
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.topics.remove(name);
        self.version += 1;
    }
}

impl TopicImage for Topics {
    fn by_name(&self, name: &str) -> Option<(Uuid, i32)> {
        self.topics.get(name).copied()
    }

    fn by_id(&self, id: &Uuid) -> Option<(String, i32)> {
        let found = self.topics.iter().find(|(_, topic)| topic.0 == *id);
        found.map(|(name, topic)| (name.clone(), topic.1))
    }
}

/// The only expressions are prefixes, `a.*`.
impl MatchedTopics for Topics {
    fn version(&self) -> i64 {
        self.version
    }

    fn matching(&self, regex: &str) -> Result<Vec<String>, String> {
        let prefix = regex.strip_suffix(".*").ok_or("missing closing ]")?;
        let names = self.topics.keys().filter(|name| name.starts_with(prefix));
        Ok(names.cloned().collect())
    }
}

struct Configs(ConsumerGroupConfig);

impl ShareGroupConfigs for Configs {
    fn share(&self, _group_id: &str) -> ShareGroupConfig {
        ShareGroupConfig::default()
    }

    fn consumer(&self, _group_id: &str) -> ConsumerGroupConfig {
        self.0.clone()
    }
}

pub(crate) fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// Partitions by topic number.
pub(crate) type Has = Vec<(u8, Vec<i32>)>;

pub(crate) fn has(topics: &[TopicPartitions]) -> Has {
    let one = |topic: &TopicPartitions| (topic.topic_id.0[0], topic.partitions.clone());
    topics.iter().map(one).collect()
}

pub(crate) fn topics(has: &[(u8, Vec<i32>)]) -> Vec<TopicPartitions> {
    let one = |(number, partitions): &(u8, Vec<i32>)| TopicPartitions {
        topic_id: id(*number),
        partitions: partitions.clone(),
    };
    has.iter().map(one).collect()
}

/// What a heartbeat says, from the least to the most that is needed.
#[derive(Clone, Debug)]
pub(crate) struct Beat(pub(crate) ConsumerHeartbeatRequest);

pub(crate) fn beat(member: &str, epoch: i32) -> Beat {
    Beat(ConsumerHeartbeatRequest {
        group_id: "g".to_owned(),
        member_id: member.to_owned(),
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        client_id: "client".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        ..ConsumerHeartbeatRequest::default()
    })
}

pub(crate) fn join(member: &str, names: &[&str]) -> Beat {
    let mut beat = beat(member, 0).owns(&[]).names(names);
    beat.0.rebalance_timeout_ms = 10_000;
    beat
}

impl Beat {
    pub(crate) fn owns(mut self, owned: &[(u8, Vec<i32>)]) -> Self {
        self.0.topic_partitions = Some(topics(owned));
        self
    }

    pub(crate) fn names(mut self, names: &[&str]) -> Self {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.0.subscribed_topic_names = Some(names);
        self
    }

    pub(crate) fn regex(mut self, regex: &str) -> Self {
        self.0.subscribed_topic_regex = Some(regex.to_owned());
        self
    }

    pub(crate) fn instance(mut self, instance: &str) -> Self {
        self.0.instance_id = Some(instance.to_owned());
        self
    }

    pub(crate) fn votes(mut self, assignor: &str) -> Self {
        self.0.server_assignor = Some(assignor.to_owned());
        self
    }
}

pub(crate) struct Shard {
    pub(crate) groups: GroupCoordinator,
    pub(crate) topics: Topics,
    pub(crate) config: ConsumerGroupConfig,
    pub(crate) now: Ts,
    /// One entry a batch.
    pub(crate) log: Vec<Vec<GroupRecord>>,
}

/// What a member was told: its epoch, and its partitions if they were said.
pub(crate) type Told = (i32, Option<Has>);

impl Shard {
    /// Kafka's intervals, with the topics `names` (ids 1, 2, …).
    pub(crate) fn new(names: &[(&str, i32)]) -> Self {
        let mut topics = Topics::default();
        for (number, (name, count)) in (1..).zip(names) {
            topics.set(name, number, *count);
        }
        let mut shard = Self {
            groups: GroupCoordinator::new(),
            topics,
            config: ConsumerGroupConfig::default(),
            now: 1_000_000,
            log: Vec::new(),
        };
        shard.load();
        shard
    }

    /// The desk's profile: nothing is delayed.
    pub(crate) fn at_once(names: &[(&str, i32)]) -> Self {
        let mut shard = Self::new(names);
        shard.config.assignment_interval_ms = 0;
        shard
    }

    fn load(&mut self) {
        let configs = Configs(self.config.clone());
        let effects = self.groups.on_loaded(self.now, &configs, &self.topics);
        assert!(effects.is_empty());
    }

    /// Another coordinator, from the log alone.
    pub(crate) fn restart(&mut self) {
        self.groups = GroupCoordinator::new();
        for record in self.log.iter().flatten() {
            self.groups.apply(record);
        }
        self.load();
    }

    pub(crate) fn commit<R>(&mut self, plan: Plan<R>) -> R {
        if !plan.records.is_empty() {
            self.log.push(plan.records.clone());
        }
        for record in &plan.records {
            self.groups.apply(record);
        }
        self.groups.set_timers(&plan.timers);
        plan.response
    }

    pub(crate) fn send(&mut self, beat: &Beat) -> Result<ConsumerHeartbeatResponse, GroupError> {
        let plan = self
            .groups
            .consumer_heartbeat(self.now, &beat.0, &self.config, &self.topics)?;
        Ok(self.commit(plan))
    }

    pub(crate) fn told(&mut self, beat: &Beat) -> Told {
        let response = self.send(beat).unwrap();
        let assignment = response.assignment.map(|topics| has(&topics));
        (response.member_epoch, assignment)
    }

    pub(crate) fn refused(&mut self, beat: &Beat) -> GroupError {
        self.send(beat).unwrap_err()
    }

    /// Moves the time, and does what falls due.
    pub(crate) fn wait(&mut self, ms: i64) {
        let until = self.now + ms;
        while let Some(at) = self.groups.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            while let Some(plan) =
                self.groups
                    .on_deadline(self.now, &ClassicConfig::default(), &self.topics)
            {
                self.commit(plan);
            }
        }
        self.now = until;
    }

    pub(crate) fn describe(&self) -> ConsumerGroupDescription {
        self.groups
            .consumer_describe("g", &self.config, &self.topics)
            .unwrap()
    }

    /// The group's state, its epoch and that of its assignment.
    pub(crate) fn state(&self) -> (&'static str, i32, i32) {
        let group = self.describe();
        (
            group.state.name(),
            group.group_epoch,
            group.assignment_epoch,
        )
    }
}
