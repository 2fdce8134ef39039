//! `LeaveGroup` of a classic group: one member, or several at once (version 3 on).

use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupErrorKind::{
    CoordinatorNotAvailable, InvalidGroupId, UnknownMemberId,
};
use super::super::plan::{GroupErrorKind, GroupTimer, Plan};
use super::super::timers::TimerKey;
use super::ClassicGroupState::Dead;
use super::group::ClassicGroup;
use super::types::{ClassicConfig, LeaveAnswer, Leaving};
use crate::types::Ts;

impl GroupCoordinator {
    /// `LeaveGroup`. The group rebalances once, however many members leave.
    pub fn classic_leave(
        &mut self,
        now: Ts,
        group_id: &str,
        leaving: &[Leaving],
        config: &ClassicConfig,
    ) -> Plan<LeaveAnswer> {
        if group_id.is_empty() {
            return Plan::answer(Err(InvalidGroupId));
        }
        let Some(Group::Classic(group)) = self.groups.get_mut(group_id) else {
            let nobody = leaving.iter().map(|_| Err(UnknownMemberId));
            return Plan::answer(Ok(nobody.collect()));
        };
        if group.state == Dead {
            return Plan::answer(Err(CoordinatorNotAvailable));
        }
        let mut out = Plan::answer(());
        let results: Vec<_> = leaving
            .iter()
            .map(|one| group.leave(one, &mut out))
            .collect();
        if results.iter().any(Result::is_ok) {
            group.members_gone(now, config, &mut out);
        }
        out.map(|()| Ok(results))
    }
}

impl ClassicGroup {
    fn leave(&mut self, leaving: &Leaving, out: &mut Plan<()>) -> Result<(), GroupErrorKind> {
        let instance_id = leaving.instance_id.as_deref();
        if leaving.member_id.is_empty()
            && let Some(instance) = instance_id
        {
            let member_id = self.instances.get(instance).cloned();
            let member_id = member_id.ok_or(UnknownMemberId)?;
            self.expel(&member_id, UnknownMemberId, out);
            return Ok(());
        }
        if self.invited.remove(&leaving.member_id) {
            let key = TimerKey::new_member(&self.id, &leaving.member_id);
            out.timers.push(GroupTimer::Cancel(key));
            return Ok(());
        }
        self.check_member(&leaving.member_id, instance_id)?;
        self.expel(&leaving.member_id, UnknownMemberId, out);
        Ok(())
    }
}
