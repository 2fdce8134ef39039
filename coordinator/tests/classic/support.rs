//! A shard with its log and a clock; parked requests are answered into maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use ottla_coordinator::group::GroupCoordinator;
use ottla_coordinator::group::classic::{
    ClassicConfig, ClassicGroupState, HeartbeatRequest, JoinAnswer, JoinRequest, JoinResponse,
    LeaveAnswer, Leaving, SyncAnswer, SyncRequest, Ticket,
};
use ottla_coordinator::group::plan::{GroupEffect, GroupErrorKind, Plan, ShareGroupConfig};
use ottla_coordinator::group::records::{ClassicGroupValue, GroupRecord};
use ottla_coordinator::types::{TopicImage, Ts, Uuid};

pub(crate) const GROUP: &str = "g";
pub(crate) const SESSION_MS: i32 = 10_000;
pub(crate) const REBALANCE_MS: i32 = 60_000;

#[derive(Debug)]
struct NoTopics;

impl TopicImage for NoTopics {
    fn by_name(&self, _name: &str) -> Option<(Uuid, i32)> {
        None
    }

    fn by_id(&self, _id: &Uuid) -> Option<(String, i32)> {
        None
    }
}

pub(crate) struct Shard {
    pub(crate) groups: GroupCoordinator,
    pub(crate) config: ClassicConfig,
    pub(crate) now: Ts,
    pub(crate) log: Vec<GroupRecord>,
    /// When set, appends fail.
    pub(crate) is_broken: bool,
    pub(crate) joins: BTreeMap<Ticket, JoinAnswer>,
    pub(crate) syncs: BTreeMap<Ticket, SyncAnswer>,
    tickets: Ticket,
    ids: u32,
}

/// A request to join `g`: speaks `range`, with the metadata `m`.
pub(crate) fn request(member_id: &str) -> JoinRequest {
    JoinRequest {
        group_id: GROUP.to_owned(),
        member_id: member_id.to_owned(),
        new_member_id: String::new(),
        instance_id: None,
        client_id: "client".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: "consumer".to_owned(),
        protocols: protocols(&["range"]),
        needs_known_id: false,
        can_skip_assignment: false,
    }
}

pub(crate) fn static_request(instance_id: &str) -> JoinRequest {
    JoinRequest {
        instance_id: Some(instance_id.to_owned()),
        ..request("")
    }
}

pub(crate) fn protocols(names: &[&str]) -> Vec<(String, Arc<[u8]>)> {
    let protocol = |name: &&str| ((*name).to_owned(), blob(&format!("m-{name}")));
    names.iter().map(protocol).collect()
}

pub(crate) fn blob(text: &str) -> Arc<[u8]> {
    Arc::from(text.as_bytes())
}

impl Shard {
    /// Nothing is delayed.
    pub(crate) fn new() -> Self {
        let mut shard = Self {
            groups: GroupCoordinator::new(),
            config: ClassicConfig {
                initial_rebalance_delay_ms: 0,
                ..ClassicConfig::default()
            },
            now: 1_000_000,
            log: Vec::new(),
            is_broken: false,
            joins: BTreeMap::new(),
            syncs: BTreeMap::new(),
            tickets: 0,
            ids: 0,
        };
        shard.loaded();
        shard
    }

    /// With `group.initial.rebalance.delay.ms` of three seconds.
    pub(crate) fn delayed() -> Self {
        let mut shard = Self::new();
        shard.config.initial_rebalance_delay_ms = 3_000;
        shard
    }

    fn loaded(&mut self) {
        let share = ShareGroupConfig::default();
        let effects = self.groups.on_loaded(self.now, &share, &NoTopics);
        assert!(effects.is_empty());
    }

    /// A new coordinator that has read the log; whatever was parked is gone.
    pub(crate) fn restart(&mut self) {
        self.groups = GroupCoordinator::new();
        for record in &self.log {
            self.groups.apply(record);
        }
        self.loaded();
    }

    /// `None` when the append fails; parked requests that the plan would have answered stay out of
    /// the maps.
    pub(crate) fn commit<R>(&mut self, plan: Plan<R>) -> Option<R> {
        if self.is_broken && !plan.records.is_empty() {
            return None;
        }
        for record in &plan.records {
            self.groups.apply(record);
        }
        self.log.extend(plan.records);
        self.groups.set_timers(&plan.timers);
        for effect in plan.effects {
            match effect {
                GroupEffect::AnswerJoin { ticket, answer } => {
                    assert!(self.joins.insert(ticket, answer).is_none());
                }
                GroupEffect::AnswerSync { ticket, answer } => {
                    assert!(self.syncs.insert(ticket, answer).is_none());
                }
                other => panic!("{other:?}"),
            }
        }
        Some(plan.response)
    }

    // --- Requests ---------------------------------------------------------------------------

    /// The answer is in `joins`, at once or later.
    pub(crate) fn send_join(&mut self, request: &JoinRequest) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        let mut request = request.clone();
        self.ids += 1;
        let name = request.instance_id.as_deref().unwrap_or("id");
        request.new_member_id = format!("{name}-{}", self.ids);
        if let Err(refusal) = request.check(&self.config) {
            self.joins.insert(ticket, Err(refusal));
            return ticket;
        }
        let create = self.groups.classic_create(self.now, &request);
        self.commit(create);
        let step = self
            .groups
            .classic_join(self.now, &request, ticket, &self.config);
        if let Some(Some(answer)) = self.commit(step) {
            assert!(self.joins.insert(ticket, answer).is_none());
        }
        ticket
    }

    pub(crate) fn join(&mut self, request: &JoinRequest) -> Option<JoinAnswer> {
        let ticket = self.send_join(request);
        self.joins.get(&ticket).cloned()
    }

    pub(crate) fn refused(&mut self, request: &JoinRequest) -> GroupErrorKind {
        self.join(request).unwrap().unwrap_err().kind
    }

    /// The id that a new member is given to join with.
    pub(crate) fn invited(&mut self) -> String {
        let first = JoinRequest {
            needs_known_id: true,
            ..request("")
        };
        self.join(&first).unwrap().unwrap_err().member_id
    }

    pub(crate) fn joined(&self, ticket: Ticket) -> JoinResponse {
        self.joins[&ticket].clone().unwrap()
    }

    pub(crate) fn send_sync(&mut self, request: &SyncRequest) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        let step = self.groups.classic_sync(self.now, request, ticket);
        if let Some(Some(answer)) = self.commit(step) {
            assert!(self.syncs.insert(ticket, answer).is_none());
        }
        ticket
    }

    pub(crate) fn sync(&mut self, request: &SyncRequest) -> Option<SyncAnswer> {
        let ticket = self.send_sync(request);
        self.syncs.get(&ticket).cloned()
    }

    pub(crate) fn beat(&mut self, member_id: &str, generation: i32) -> Result<(), GroupErrorKind> {
        let request = HeartbeatRequest {
            group_id: GROUP.to_owned(),
            member_id: member_id.to_owned(),
            instance_id: None,
            generation,
        };
        let plan = self.groups.classic_heartbeat(self.now, &request);
        self.commit(plan).unwrap()
    }

    pub(crate) fn leave(&mut self, leaving: &[Leaving]) -> LeaveAnswer {
        let plan = self
            .groups
            .classic_leave(self.now, GROUP, leaving, &self.config);
        self.commit(plan).unwrap()
    }

    /// Moves the clock, and does what is due at each instant on the way.
    pub(crate) fn advance(&mut self, ms: i64) {
        let target = self.now + ms;
        while let Some(at) = self.groups.next_deadline().filter(|&at| at <= target) {
            self.now = self.now.max(at);
            let mut steps = 0;
            while let Some(plan) = self.groups.on_deadline(self.now, &self.config, &NoTopics) {
                self.commit(plan);
                steps += 1;
                assert!(steps < 10_000, "no end of what is due at {}", self.now);
            }
        }
        self.now = target;
    }

    // --- What there is ----------------------------------------------------------------------

    pub(crate) fn state(&self) -> ClassicGroupState {
        let described = self.groups.classic_describe(GROUP);
        described.map_or(ClassicGroupState::Dead, |group| group.state)
    }

    pub(crate) fn members(&self) -> Vec<String> {
        let described = self.groups.classic_describe(GROUP).unwrap();
        described.members.into_iter().map(|m| m.member_id).collect()
    }

    /// The last record of the group.
    pub(crate) fn last_record(&self) -> Option<ClassicGroupValue> {
        match self.log.last()? {
            GroupRecord::ClassicGroup { value, .. } => value.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// A group of `count` members that is stable; their ids, the leader's first.
    pub(crate) fn stable(&mut self, requests: &[JoinRequest]) -> Vec<JoinResponse> {
        let mut known: Vec<JoinRequest> = Vec::new();
        let mut tickets = Vec::new();
        for request in requests {
            // Those who are in must join again whenever somebody comes.
            tickets = vec![self.send_join(request)];
            for earlier in known.clone() {
                tickets.push(self.send_join(&earlier));
            }
            let joined = self.joined(tickets[0]);
            let member_id = joined.member_id;
            known.insert(
                0,
                JoinRequest {
                    member_id,
                    ..request.clone()
                },
            );
        }
        let mut joined: Vec<_> = tickets.iter().map(|&ticket| self.joined(ticket)).collect();
        joined.reverse();
        let leader = joined.iter().position(|j| j.leader == j.member_id).unwrap();
        joined.swap(0, leader);
        let given = joined
            .iter()
            .map(|j| (j.member_id.clone(), blob(&format!("a-{}", j.member_id))));
        let assignments: Vec<_> = given.collect();
        for member in joined.iter().rev() {
            let assignments = if member.member_id == member.leader {
                assignments.clone()
            } else {
                Vec::new()
            };
            self.send_sync(&sync_of(member, assignments));
        }
        assert_eq!(self.state(), ClassicGroupState::Stable);
        joined
    }
}

pub(crate) fn sync_of(joined: &JoinResponse, assignments: Vec<(String, Arc<[u8]>)>) -> SyncRequest {
    SyncRequest {
        group_id: GROUP.to_owned(),
        member_id: joined.member_id.clone(),
        instance_id: None,
        generation: joined.generation,
        protocol_type: joined.protocol_type.clone(),
        protocol: joined.protocol.clone(),
        assignments,
    }
}

pub(crate) fn leaving(member_id: &str) -> Leaving {
    Leaving {
        member_id: member_id.to_owned(),
        instance_id: None,
    }
}

pub(crate) fn leaving_instance(member_id: &str, instance_id: &str) -> Leaving {
    Leaving {
        member_id: member_id.to_owned(),
        instance_id: Some(instance_id.to_owned()),
    }
}
