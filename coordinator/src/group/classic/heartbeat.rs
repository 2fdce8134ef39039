//! `Heartbeat` of a classic group.

use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupErrorKind::{
    CoordinatorNotAvailable, InvalidGroupId, RebalanceInProgress, UnknownMemberId,
};
use super::super::plan::{GroupErrorKind, Plan};
use super::ClassicGroupState::{CompletingRebalance, Dead, Empty, PreparingRebalance, Stable};
use super::group::ClassicGroup;
use super::types::HeartbeatRequest;
use crate::types::Ts;

impl GroupCoordinator {
    /// `Heartbeat`: the member lives on; `REBALANCE_IN_PROGRESS` has it join again.
    pub fn classic_heartbeat(
        &self,
        now: Ts,
        request: &HeartbeatRequest,
    ) -> Plan<Result<(), GroupErrorKind>> {
        if request.group_id.is_empty() {
            return Plan::answer(Err(InvalidGroupId));
        }
        let Some(Group::Classic(group)) = self.groups.get(&request.group_id) else {
            return Plan::answer(Err(UnknownMemberId));
        };
        let mut out = Plan::answer(());
        let response = group.heartbeat(now, request, &mut out);
        out.map(|()| response)
    }
}

impl ClassicGroup {
    fn heartbeat(
        &self,
        now: Ts,
        request: &HeartbeatRequest,
        out: &mut Plan<()>,
    ) -> Result<(), GroupErrorKind> {
        if self.state == Dead {
            return Err(CoordinatorNotAvailable);
        }
        let instance_id = request.instance_id.as_deref();
        self.check_generation(&request.member_id, instance_id, request.generation)?;
        match self.state {
            Empty | Dead => Err(UnknownMemberId),
            CompletingRebalance | Stable => {
                self.is_alive(&request.member_id, now, out);
                Ok(())
            }
            PreparingRebalance => {
                self.is_alive(&request.member_id, now, out);
                Err(RebalanceInProgress)
            }
        }
    }
}
