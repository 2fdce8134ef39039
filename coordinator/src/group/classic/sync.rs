//! `SyncGroup` of a classic group: the leader assigns, the others fetch what it has assigned.

use super::super::consumer_protocol::Blob;
use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupErrorKind::{
    CoordinatorNotAvailable, InconsistentGroupProtocol, InvalidGroupId, RebalanceInProgress,
    UnknownMemberId,
};
use super::super::plan::{GroupEffect, GroupErrorKind, GroupTimer, Plan};
use super::super::timers::TimerKey;
use super::ClassicGroupState::{CompletingRebalance, Dead, Empty, PreparingRebalance, Stable};
use super::group::ClassicGroup;
use super::rebalance::assign;
use super::types::{Step, SyncAnswer, SyncRequest, SyncResponse, Ticket};
use crate::types::Ts;

impl GroupCoordinator {
    /// `SyncGroup`. The leader's is a plan: its record makes the group stable.
    pub fn classic_sync(
        &mut self,
        now: Ts,
        request: &SyncRequest,
        ticket: Ticket,
    ) -> Step<SyncAnswer> {
        let refuse = |kind| Plan::answer(Some(Err(kind)));
        if request.group_id.is_empty() {
            return refuse(InvalidGroupId);
        }
        let Some(Group::Classic(group)) = self.groups.get_mut(&request.group_id) else {
            return refuse(UnknownMemberId);
        };
        let mut out = Plan::answer(());
        let response = match group.check_sync(request) {
            Ok(()) => group.sync(now, request, ticket, &mut out),
            Err(kind) => Some(Err(kind)),
        };
        out.map(|()| response)
    }
}

impl ClassicGroup {
    fn check_sync(&self, request: &SyncRequest) -> Result<(), GroupErrorKind> {
        if self.state == Dead {
            return Err(CoordinatorNotAvailable);
        }
        let instance_id = request.instance_id.as_deref();
        self.check_generation(&request.member_id, instance_id, request.generation)?;
        let differs = |said: &Option<String>, is: &Option<String>| {
            said.is_some() && is.is_some() && said != is
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol, &self.protocol)
        {
            return Err(InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn sync(
        &mut self,
        now: Ts,
        request: &SyncRequest,
        ticket: Ticket,
        out: &mut Plan<()>,
    ) -> Option<SyncAnswer> {
        let member_id = &request.member_id;
        match self.state {
            Empty | Dead => Some(Err(UnknownMemberId)),
            PreparingRebalance => Some(Err(RebalanceInProgress)),
            CompletingRebalance if self.leader.as_ref() == Some(member_id) => {
                Some(Ok(self.settle(now, request, out)))
            }
            CompletingRebalance => {
                self.synced(member_id, out);
                let member = self.members.get_mut(member_id)?;
                if let Some(given_up) = member.sync.replace(ticket) {
                    out.effects.push(GroupEffect::AnswerSync {
                        ticket: given_up,
                        answer: Err(RebalanceInProgress),
                    });
                }
                None
            }
            Stable => {
                self.synced(member_id, out);
                self.is_alive(member_id, now, out);
                let member = self.members.get(member_id)?;
                Some(Ok(self.sync_response(member.assignment.clone())))
            }
        }
    }

    /// The member has asked for its assignment.
    fn synced(&mut self, member_id: &str, out: &mut Plan<()>) {
        if self.unsynced.remove(member_id) && self.unsynced.is_empty() {
            let key = TimerKey::sync_phase(&self.id);
            out.timers.push(GroupTimer::Cancel(key));
        }
    }

    fn sync_response(&self, assignment: Blob) -> SyncResponse {
        SyncResponse {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment,
        }
    }

    /// The leader has assigned: plans the record that makes the group stable, and the answers.
    fn settle(&mut self, now: Ts, request: &SyncRequest, out: &mut Plan<()>) -> SyncResponse {
        let mut value = self.value();
        value.state_timestamp = now;
        assign(&mut value, &request.assignments);
        let mut own = Blob::default();
        for written in &value.members {
            let member_id = &written.member_id;
            let ticket = self.members.get(member_id).and_then(|member| member.sync);
            if *member_id == request.member_id {
                own = written.assignment.clone();
            } else if let Some(ticket) = ticket {
                out.effects.push(GroupEffect::AnswerSync {
                    ticket,
                    answer: Ok(self.sync_response(written.assignment.clone())),
                });
            } else {
                continue;
            }
            self.is_alive(member_id, now, out);
        }
        if self.unsynced.iter().all(|id| *id == request.member_id) {
            let key = TimerKey::sync_phase(&self.id);
            out.timers.push(GroupTimer::Cancel(key));
        }
        out.records.push(self.record(value));
        self.sync_response(own)
    }
}
