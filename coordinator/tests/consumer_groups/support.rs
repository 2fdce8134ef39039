//! A shard with its log, its topics and a clock, and members that do what they are told.

use std::collections::BTreeMap;

use ottla_coordinator::group::GroupCoordinator;
use ottla_coordinator::group::classic::{
    ClassicConfig, HeartbeatRequest, JoinAnswer, JoinRequest, Leaving, SyncAnswer, SyncRequest,
    Ticket,
};
use ottla_coordinator::group::consumer::describe::ConsumerGroupDescription;
use ottla_coordinator::group::consumer::request::{
    ConsumerGroupConfig, ConsumerHeartbeatRequest, ConsumerHeartbeatResponse, MatchedTopics,
};
use ottla_coordinator::group::consumer_protocol::{
    Blob, ConsumerProtocol, NamedPartitions, Subscription,
};
use ottla_coordinator::group::plan::{
    GroupEffect, GroupError, GroupErrorKind, Plan, ShareGroupConfig, ShareGroupConfigs,
};
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

/// What members of the classic protocol tell each other, as text: `t,u|t:0,1`.
#[derive(Debug)]
pub(crate) struct Plain;

impl ConsumerProtocol for Plain {
    fn subscription(&self, bytes: &[u8]) -> Option<Subscription> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (topics, owned) = text.split_once('|')?;
        Some(Subscription {
            topics: topics.split(',').map(str::to_owned).collect(),
            owned: self.assignment(owned.as_bytes())?,
            ..Subscription::default()
        })
    }

    fn assignment(&self, bytes: &[u8]) -> Option<NamedPartitions> {
        let text = std::str::from_utf8(bytes).ok()?;
        let topics = text.split(';').filter(|topic| !topic.is_empty());
        let read = topics.map(|topic| {
            let (name, partitions) = topic.split_once(':')?;
            let partitions = partitions.split(',').filter(|p| !p.is_empty());
            let partitions: Vec<i32> = partitions.filter_map(|p| p.parse().ok()).collect();
            Some((name.to_owned(), partitions))
        });
        read.collect()
    }

    fn encode_subscription(&self, subscription: &Subscription) -> Vec<u8> {
        let owned = self.encode_assignment(0, &subscription.owned);
        let owned = String::from_utf8(owned).unwrap();
        format!("{}|{owned}", subscription.topics.join(",")).into_bytes()
    }

    fn encode_assignment(&self, _version: i16, partitions: &NamedPartitions) -> Vec<u8> {
        let topic = |(name, partitions): &(String, Vec<i32>)| {
            let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
            format!("{name}:{};", partitions.join(","))
        };
        partitions
            .iter()
            .map(topic)
            .collect::<String>()
            .into_bytes()
    }
}

/// A subscription of a classic member that has partitions of topic 1, `t`.
pub(crate) fn subscription(names: &[&str], owned: &[(u8, Vec<i32>)]) -> Blob {
    let owned = owned
        .iter()
        .map(|(_, partitions)| ("t".to_owned(), partitions.clone()));
    let subscription = Subscription {
        topics: names.iter().map(|&name| name.to_owned()).collect(),
        owned: owned.collect(),
        ..Subscription::default()
    };
    Plain.encode_subscription(&subscription).into()
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
    /// Answers to parked requests.
    pub(crate) joins: BTreeMap<Ticket, JoinAnswer>,
    pub(crate) syncs: BTreeMap<Ticket, SyncAnswer>,
    tickets: Ticket,
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
            joins: BTreeMap::new(),
            syncs: BTreeMap::new(),
            tickets: 0,
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
        for effect in self.groups.on_loaded(self.now, &configs, &self.topics) {
            self.carry_out(effect);
        }
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
        for effect in plan.effects {
            self.carry_out(effect);
        }
        plan.response
    }

    fn carry_out(&mut self, effect: GroupEffect) {
        let classic = ClassicConfig::default();
        match effect {
            GroupEffect::AnswerJoin { ticket, answer } => {
                self.joins.insert(ticket, answer);
            }
            GroupEffect::AnswerSync { ticket, answer } => {
                self.syncs.insert(ticket, answer);
            }
            GroupEffect::Downgrade { group_id } => {
                let (now, config) = (self.now, &self.config);
                let plan =
                    self.groups
                        .consumer_downgrade(now, &group_id, config, &self.topics, &Plain);
                self.commit(plan);
            }
            GroupEffect::Rebalance { group_id } => {
                let plan = self.groups.classic_rebalance(self.now, &group_id, &classic);
                self.commit(plan);
            }
            other => panic!("{other:?}"),
        }
    }

    // --- The classic protocol ---------------------------------------------------------------

    /// `JoinGroup`; `None` when it is parked under the ticket that is answered too.
    pub(crate) fn join_classic(&mut self, member: &str, owned: &[(u8, Vec<i32>)]) -> JoinAnswer {
        let request = JoinRequest {
            group_id: "g".to_owned(),
            member_id: member.to_owned(),
            new_member_id: "new".to_owned(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 5_000,
            protocol_type: "consumer".to_owned(),
            protocols: vec![("range".to_owned(), subscription(&["t"], owned))],
            ..JoinRequest::default()
        };
        self.send_join(&request)
    }

    pub(crate) fn send_join(&mut self, request: &JoinRequest) -> JoinAnswer {
        let (now, config) = (self.now, self.config.clone());
        let plan = self
            .groups
            .consumer_join(now, request, &config, &self.topics, &Plain);
        if let Some(plan) = plan {
            return self.commit(plan);
        }
        if request.member_id.is_empty() {
            let plan = self.groups.classic_create(now, request);
            self.commit(plan);
        }
        self.tickets += 1;
        let ticket = self.tickets;
        let classic = ClassicConfig {
            initial_rebalance_delay_ms: 0,
            ..ClassicConfig::default()
        };
        let plan = self.groups.classic_join(now, request, ticket, &classic);
        let answer = self.commit(plan);
        answer.unwrap_or_else(|| self.joins.remove(&ticket).unwrap())
    }

    pub(crate) fn sync_classic(
        &mut self,
        member: &str,
        generation: i32,
    ) -> Result<Has, GroupErrorKind> {
        self.sync_with(member, generation, &[])
    }

    pub(crate) fn sync_with(
        &mut self,
        member: &str,
        generation: i32,
        assignments: &[(&str, Vec<i32>)],
    ) -> Result<Has, GroupErrorKind> {
        let assignments = assignments.iter().map(|(member, partitions)| {
            let named = vec![("t".to_owned(), partitions.clone())];
            (
                (*member).to_owned(),
                Plain.encode_assignment(0, &named).into(),
            )
        });
        let request = SyncRequest {
            group_id: "g".to_owned(),
            member_id: member.to_owned(),
            generation,
            assignments: assignments.collect(),
            ..SyncRequest::default()
        };
        let plan = self
            .groups
            .consumer_sync(self.now, &request, &self.topics, &Plain);
        let answer = match plan {
            Some(plan) => self.commit(plan),
            None => {
                self.tickets += 1;
                let plan = self.groups.classic_sync(self.now, &request, self.tickets);
                let answer = self.commit(plan);
                answer.unwrap_or_else(|| self.syncs.remove(&self.tickets).unwrap())
            }
        };
        let assignment = Plain.assignment(&answer?.assignment).unwrap();
        let ids = assignment
            .iter()
            .map(|(name, partitions)| (self.topics.topics[name].0.0[0], partitions.clone()));
        Ok(ids.collect())
    }

    pub(crate) fn heart(&mut self, member: &str, generation: i32) -> Result<(), GroupErrorKind> {
        let request = HeartbeatRequest {
            group_id: "g".to_owned(),
            member_id: member.to_owned(),
            generation,
            ..HeartbeatRequest::default()
        };
        let plan = self.groups.consumer_classic_heartbeat(self.now, &request);
        let plan = plan.unwrap_or_else(|| self.groups.classic_heartbeat(self.now, &request));
        self.commit(plan)
    }

    pub(crate) fn leave_classic(&mut self, members: &[&str]) -> Vec<Result<(), GroupErrorKind>> {
        let leaving: Vec<Leaving> = members
            .iter()
            .map(|&member| Leaving {
                member_id: member.to_owned(),
                instance_id: None,
            })
            .collect();
        let plan = self.groups.consumer_leave("g", &leaving, &self.topics);
        let plan = plan.unwrap_or_else(|| {
            let classic = ClassicConfig::default();
            self.groups.classic_leave(self.now, "g", &leaving, &classic)
        });
        self.commit(plan).unwrap()
    }

    pub(crate) fn send(&mut self, beat: &Beat) -> Result<ConsumerHeartbeatResponse, GroupError> {
        let plan = self.groups.consumer_heartbeat(
            self.now,
            &beat.0,
            &self.config,
            &self.topics,
            &Plain,
        )?;
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
