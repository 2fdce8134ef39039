//! `JoinGroup` of a classic group.

use super::super::consumer::members::deletion;
use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupErrorKind::{
    CoordinatorNotAvailable, GroupMaxSizeReached, InconsistentGroupProtocol, InvalidGroupId,
    InvalidSessionTimeout, MemberIdRequired, UnknownMemberId,
};
use super::super::plan::{GroupErrorKind, GroupTimer, Plan};
use super::super::records::{ClassicGroupValue, ClassicMemberValue, GroupRecord};
use super::super::timers::TimerKey;
use super::ClassicGroupState::{CompletingRebalance, Dead, Empty, PreparingRebalance, Stable};
use super::group::{ClassicGroup, ClassicMember, Returning};
use super::types::{
    ClassicConfig, JoinAnswer, JoinRefusal, JoinRequest, JoinResponse, NEW_MEMBER_TIMEOUT_MS, Step,
    Ticket,
};
use crate::types::Ts;

impl JoinRequest {
    /// Refuses what can be refused by looking at the request alone.
    pub fn check(&self, config: &ClassicConfig) -> Result<(), JoinRefusal> {
        let timeouts = config.min_session_timeout_ms..=config.max_session_timeout_ms;
        if self.group_id.is_empty() {
            Err(refusal(self, InvalidGroupId))
        } else if timeouts.contains(&self.session_timeout_ms) {
            Ok(())
        } else {
            Err(refusal(self, InvalidSessionTimeout))
        }
    }
}

impl GroupCoordinator {
    /// What comes before a `JoinGroup` without a member id: a group that does not exist is created,
    /// which is a record, in the place of a consumer group without members. Nothing for a request
    /// that could not begin a group.
    pub fn classic_create(&self, now: Ts, request: &JoinRequest) -> Plan<()> {
        let mut plan = Plan::answer(());
        let can_begin = request.member_id.is_empty()
            && !request.protocol_type.is_empty()
            && !request.protocols.is_empty();
        let is_free = match self.groups.get(&request.group_id) {
            None => true,
            Some(Group::Consumer(group)) if can_begin && group.members.is_empty() => {
                plan.records = deletion(group);
                true
            }
            Some(_) => false,
        };
        if can_begin && is_free {
            plan.records.push(GroupRecord::ClassicGroup {
                group_id: request.group_id.clone(),
                value: Some(ClassicGroupValue {
                    state_timestamp: now,
                    ..ClassicGroupValue::default()
                }),
            });
        }
        plan
    }

    /// How long a member may take to join again, in milliseconds; 0 for an unknown one.
    pub fn classic_rebalance_timeout_ms(&self, group_id: &str, member_id: &str) -> Ts {
        let Some(Group::Classic(group)) = self.groups.get(group_id) else {
            return 0;
        };
        let member = group.members.get(member_id);
        member.map_or(0, |member| Ts::from(member.rebalance_timeout_ms.max(0)))
    }

    /// `JoinGroup`, after [`GroupCoordinator::classic_create`].
    pub fn classic_join(
        &mut self,
        now: Ts,
        request: &JoinRequest,
        ticket: Ticket,
        config: &ClassicConfig,
    ) -> Step<JoinAnswer> {
        let group = match self.groups.get_mut(&request.group_id) {
            Some(Group::Classic(group)) => group,
            // Without members: one with them has answered itself.
            Some(Group::Consumer(_)) => return answer(Err(refusal(request, UnknownMemberId))),
            Some(_) => {
                return answer(Err(JoinRefusal {
                    kind: InconsistentGroupProtocol,
                    member_id: String::new(),
                }));
            }
            None if request.member_id.is_empty() => {
                return answer(Err(refusal(request, InconsistentGroupProtocol)));
            }
            None => return answer(Err(refusal(request, UnknownMemberId))),
        };
        let mut out = Plan::answer(());
        let response = group.join(now, request, ticket, config, &mut out);
        out.map(|()| response)
    }

    pub(in crate::group) fn classic_mut(&mut self, group_id: &str) -> Option<&mut ClassicGroup> {
        match self.groups.get_mut(group_id) {
            Some(Group::Classic(group)) => Some(group),
            _ => None,
        }
    }
}

fn answer<R>(response: R) -> Step<R> {
    Plan::answer(Some(response))
}

fn refusal(request: &JoinRequest, kind: GroupErrorKind) -> JoinRefusal {
    JoinRefusal {
        kind,
        member_id: request.member_id.clone(),
    }
}

impl ClassicGroup {
    /// `None`: the request is parked.
    fn join(
        &mut self,
        now: Ts,
        request: &JoinRequest,
        ticket: Ticket,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) -> Option<JoinAnswer> {
        if self.state == Dead {
            return Some(Err(refusal(request, CoordinatorNotAvailable)));
        }
        if !self.has_room(&request.member_id, config) {
            if self.members.contains_key(&request.member_id) {
                self.expel(&request.member_id, UnknownMemberId, out);
                self.complete_if_all_joined(now, out);
            }
            return Some(Err(JoinRefusal {
                kind: GroupMaxSizeReached,
                member_id: String::new(),
            }));
        }
        if !self.can_speak(&request.protocol_type, &request.protocols) {
            return Some(Err(refusal(request, InconsistentGroupProtocol)));
        }
        if request.member_id.is_empty() {
            return self.join_without_id(now, request, ticket, config, out);
        }
        if self.invited.remove(&request.member_id) {
            self.add(now, &request.member_id, request, ticket, config, out);
            return None;
        }
        match self.check_member(&request.member_id, request.instance_id.as_deref()) {
            Err(kind) => Some(Err(refusal(request, kind))),
            Ok(()) => self.join_again(now, request, ticket, config, out),
        }
    }

    fn has_room(&self, member_id: &str, config: &ClassicConfig) -> bool {
        let max = usize::try_from(config.max_size).unwrap_or(0);
        match self.state {
            Empty | Dead => true,
            PreparingRebalance => {
                let member = self.members.get(member_id);
                member.is_some_and(|m| m.join.is_some()) || self.joining < max
            }
            CompletingRebalance | Stable => {
                self.members.contains_key(member_id) || self.members.len() < max
            }
        }
    }

    fn join_without_id(
        &mut self,
        now: Ts,
        request: &JoinRequest,
        ticket: Ticket,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) -> Option<JoinAnswer> {
        let new_id = &request.new_member_id;
        if let Some(instance) = &request.instance_id {
            if let Some(old) = self.instances.get(instance).cloned() {
                return self.replace(now, &old, request, ticket, config, out);
            }
        } else if request.needs_known_id {
            self.invited.insert(new_id.clone());
            out.timers.push(GroupTimer::Set {
                key: TimerKey::new_member(&self.id, new_id),
                at: now.saturating_add(Ts::from(request.session_timeout_ms)),
            });
            return Some(Err(JoinRefusal {
                kind: MemberIdRequired,
                member_id: new_id.clone(),
            }));
        }
        self.add(now, new_id, request, ticket, config, out);
        None
    }

    fn add(
        &mut self,
        now: Ts,
        member_id: &str,
        request: &JoinRequest,
        ticket: Ticket,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) {
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member_id.to_owned());
        }
        self.insert(member_id, ClassicMember::joining(request, ticket));
        if let Some(gathering) = &mut self.gathering {
            gathering.somebody_came = true;
        }
        out.timers.push(GroupTimer::Set {
            key: TimerKey::new_member(&self.id, member_id),
            at: now.saturating_add(NEW_MEMBER_TIMEOUT_MS),
        });
        self.rebalance_or_complete(now, config, out);
    }

    fn rebalance_or_complete(&mut self, now: Ts, config: &ClassicConfig, out: &mut Plan<()>) {
        self.prepare_rebalance(now, config, out);
        self.complete_if_all_joined(now, out);
    }

    fn join_again(
        &mut self,
        now: Ts,
        request: &JoinRequest,
        ticket: Ticket,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) -> Option<JoinAnswer> {
        let member_id = &request.member_id;
        let says_the_same = self.members.get(member_id);
        let says_the_same = says_the_same.is_some_and(|m| m.protocols == request.protocols);
        let is_leader = self.leader.as_ref() == Some(member_id);
        let has_missed_the_answer = match self.state {
            CompletingRebalance => says_the_same,
            Stable => says_the_same && !is_leader,
            PreparingRebalance => false,
            Empty | Dead => return Some(Err(refusal(request, UnknownMemberId))),
        };
        if has_missed_the_answer {
            let members = if is_leader {
                self.joined_members()
            } else {
                Vec::new()
            };
            return Some(Ok(JoinResponse {
                members,
                ..self.current(member_id, self.leader.clone())
            }));
        }
        self.rejoin(member_id, request, ticket, out);
        self.rebalance_or_complete(now, config, out);
        None
    }

    /// The present generation, as a member that need not wait is told of it.
    fn current(&self, member_id: &str, leader: Option<String>) -> JoinResponse {
        JoinResponse {
            member_id: member_id.to_owned(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: leader.unwrap_or_default(),
            skip_assignment: false,
            members: Vec::new(),
        }
    }

    // --- Static members (KIP-345) -----------------------------------------------------------

    /// A static member has started anew, and takes the place of the one with the `old` id. In a
    /// stable group it need not wait for the others, unless the group would choose another protocol.
    fn replace(
        &mut self,
        now: Ts,
        old: &str,
        request: &JoinRequest,
        ticket: Ticket,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) -> Option<JoinAnswer> {
        let new_id = &request.new_member_id;
        if self.state == Stable {
            let elected = self.elect_with(Some((old, &request.protocols)));
            if elected == self.protocol {
                return Some(Ok(self.replace_quietly(now, old, request, out)));
            }
        }
        self.rename(old, new_id, out);
        self.rejoin(new_id, request, ticket, out);
        self.rebalance_or_complete(now, config, out);
        None
    }

    /// Only the record changes the member's id.
    fn replace_quietly(
        &mut self,
        now: Ts,
        old: &str,
        request: &JoinRequest,
        out: &mut Plan<()>,
    ) -> JoinResponse {
        let new_id = &request.new_member_id;
        let is_leader = self.leader.as_deref() == Some(old);
        let mut value = self.value();
        let rename = |member_id: &mut String| {
            if member_id == old {
                member_id.clone_from(new_id);
            }
        };
        value.leader.iter_mut().for_each(rename);
        for member in value.members.iter_mut().filter(|m| m.member_id == old) {
            *member = replacement(member, request, self.protocol.as_deref());
        }
        self.returning = Some(Returning {
            member_id: new_id.clone(),
            protocols: request.protocols.clone(),
        });
        let mut response = self.current(new_id, self.leader.clone());
        if request.can_skip_assignment {
            response.leader = value.leader.clone().unwrap_or_default();
            response.skip_assignment = is_leader;
            if is_leader {
                response.members = self.joined_members();
                let own = value.members.iter().find(|m| m.member_id == *new_id);
                for member in response.members.iter_mut().filter(|m| m.member_id == old) {
                    member.member_id.clone_from(new_id);
                    member.metadata = own.map(|m| m.subscription.clone()).unwrap_or_default();
                }
            }
        }
        out.records.push(self.record(value));
        let old_session = TimerKey::session(&self.id, old);
        out.timers.push(GroupTimer::Cancel(old_session));
        out.timers.push(GroupTimer::Set {
            key: TimerKey::session(&self.id, new_id),
            at: now.saturating_add(Ts::from(request.session_timeout_ms)),
        });
        response
    }
}

fn replacement(
    old: &ClassicMemberValue,
    request: &JoinRequest,
    protocol: Option<&str>,
) -> ClassicMemberValue {
    let protocols = request.protocols.iter();
    let mut spoken = protocols.filter(|(name, _)| Some(&**name) == protocol);
    ClassicMemberValue {
        member_id: request.new_member_id.clone(),
        instance_id: old.instance_id.clone(),
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        session_timeout_ms: request.session_timeout_ms,
        subscription: spoken.next().map(|(_, m)| m.clone()).unwrap_or_default(),
        assignment: old.assignment.clone(),
    }
}
