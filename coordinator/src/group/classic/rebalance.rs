//! How a classic group goes from generation to generation.
//!
//! ```text
//! Empty --first join--> PreparingRebalance --all have joined, or time is up--> CompletingRebalance
//!   ^                      ^     |                                                |
//!   '----nobody joined-----|-----'        Stable <--the leader has assigned-------'
//!                          '--somebody joins, leaves or expires--'
//! ```

use super::super::consumer_protocol::Blob;
use super::super::coordinator::GroupCoordinator;
use super::super::plan::GroupErrorKind::{RebalanceInProgress, UnknownMemberId};
use super::super::plan::{GroupEffect, GroupTimer, Plan};
use super::super::timers::TimerKey;
use super::ClassicGroupState::{CompletingRebalance, Dead, Empty, PreparingRebalance, Stable};
use super::group::{ClassicGroup, Gathering};
use super::types::{ClassicConfig, JoinResponse};
use crate::types::Ts;

/// The least time after which a group whose static members are all absent is looked at again,
/// in milliseconds: a client may say that its rebalance timeout is 0.
const ABSENT_MS: Ts = 1_000;

impl ClassicGroup {
    fn enter(&mut self, state: super::ClassicGroupState, now: Ts) {
        self.state = state;
        self.state_since = now;
    }

    /// Asks all members to join again. Nothing happens when they are asked already.
    pub(super) fn prepare_rebalance(
        &mut self,
        now: Ts,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) {
        let is_first = match self.state {
            PreparingRebalance | Dead => return,
            CompletingRebalance | Stable => false,
            Empty => true,
        };
        self.refuse_syncs(now, out);
        self.unsynced.clear();
        let sync_phase = TimerKey::sync_phase(&self.id);
        out.timers.push(GroupTimer::Cancel(sync_phase));
        self.enter(PreparingRebalance, now);
        if is_first {
            self.gather(now, config, out);
        } else {
            let ms = self.rebalance_timeout_ms();
            self.set_join_phase(now.saturating_add(ms), out);
            self.complete_if_all_joined(now, out);
        }
    }

    fn refuse_syncs(&mut self, now: Ts, out: &mut Plan<()>) {
        let group = &self.id;
        for (member_id, member) in &mut self.members {
            if let Some(ticket) = member.sync.take() {
                out.effects.push(GroupEffect::AnswerSync {
                    ticket,
                    answer: Err(RebalanceInProgress),
                });
                out.timers.push(GroupTimer::Set {
                    key: TimerKey::session(group, member_id),
                    at: now.saturating_add(Ts::from(member.session_timeout_ms)),
                });
            }
        }
    }

    /// The first rebalance waits `group.initial.rebalance.delay.ms` for more members, and as long
    /// again whenever somebody came, up to the rebalance timeout.
    fn gather(&mut self, now: Ts, config: &ClassicConfig, out: &mut Plan<()>) {
        let delay = Ts::from(config.initial_rebalance_delay_ms.max(0));
        if delay == 0 {
            return self.complete_join(now, out);
        }
        self.gathering = Some(Gathering {
            remaining_ms: (self.rebalance_timeout_ms() - delay).max(0),
            somebody_came: false,
        });
        self.set_join_phase(now.saturating_add(delay), out);
    }

    fn set_join_phase(&self, at: Ts, out: &mut Plan<()>) {
        let key = TimerKey::join_phase(&self.id);
        out.timers.push(GroupTimer::Set { key, at });
    }

    /// Ends the join phase when nobody is waited for.
    pub(super) fn complete_if_all_joined(&mut self, now: Ts, out: &mut Plan<()>) {
        let all_joined = self.joining == self.members.len() && self.invited.is_empty();
        if self.state == PreparingRebalance && self.gathering.is_none() && all_joined {
            self.complete_join(now, out);
        }
    }

    /// Begins the next generation with those who have joined. Static members may come later.
    fn complete_join(&mut self, now: Ts, out: &mut Plan<()>) {
        self.gathering = None;
        let absent = self.members.iter();
        let absent = absent.filter(|(_, m)| m.join.is_none() && m.instance_id.is_none());
        let absent: Vec<String> = absent.map(|(id, _)| id.clone()).collect();
        for member_id in absent {
            self.expel(&member_id, UnknownMemberId, out);
        }
        if self.joining == 0 && !self.members.is_empty() {
            let ms = self.rebalance_timeout_ms().max(ABSENT_MS);
            return self.set_join_phase(now.saturating_add(ms), out);
        }
        let join_phase = TimerKey::join_phase(&self.id);
        out.timers.push(GroupTimer::Cancel(join_phase));
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        if self.members.is_empty() {
            self.protocol = None;
            self.leader = None;
            self.enter(Empty, now);
            out.records.push(self.record(self.value()));
            return;
        }
        self.elect_leader();
        self.protocol = self.elect_protocol();
        self.enter(CompletingRebalance, now);
        self.answer_joins(now, out);
    }

    /// The leader stays if it has joined.
    fn elect_leader(&mut self) {
        let has_joined = |id: &String| self.members.get(id).is_some_and(|m| m.join.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return;
        }
        let joined = self
            .members
            .iter()
            .find(|(_, member)| member.join.is_some());
        self.leader = joined.map(|(id, _)| id.clone());
    }

    fn answer_joins(&mut self, now: Ts, out: &mut Plan<()>) {
        let mut members = self.joined_members();
        let leader = self.leader.clone().unwrap_or_default();
        let group = &self.id;
        for (member_id, member) in &mut self.members {
            out.timers.push(GroupTimer::Set {
                key: TimerKey::session(group, member_id),
                at: now.saturating_add(Ts::from(member.session_timeout_ms)),
            });
            self.unsynced.insert(member_id.clone());
            let Some(ticket) = member.join.take() else {
                continue;
            };
            if std::mem::take(&mut member.is_new) {
                let key = TimerKey::new_member(group, member_id);
                out.timers.push(GroupTimer::Cancel(key));
            }
            let is_leader = *member_id == leader;
            let answer = Ok(JoinResponse {
                member_id: member_id.clone(),
                generation: self.generation,
                protocol_type: self.protocol_type.clone(),
                protocol: self.protocol.clone(),
                leader: leader.clone(),
                skip_assignment: false,
                members: if is_leader {
                    std::mem::take(&mut members)
                } else {
                    Vec::new()
                },
            });
            out.effects.push(GroupEffect::AnswerJoin { ticket, answer });
        }
        self.joining = 0;
        out.timers.push(GroupTimer::Set {
            key: TimerKey::sync_phase(group),
            at: now.saturating_add(self.rebalance_timeout_ms()),
        });
    }

    /// Members have gone: the rest rebalance, or need not wait for them any more.
    pub(super) fn members_gone(&mut self, now: Ts, config: &ClassicConfig, out: &mut Plan<()>) {
        match self.state {
            CompletingRebalance | Stable => self.prepare_rebalance(now, config, out),
            PreparingRebalance => self.complete_if_all_joined(now, out),
            Empty | Dead => {}
        }
    }

    // --- Time -------------------------------------------------------------------------------

    fn session_ended(
        &mut self,
        member_id: &str,
        now: Ts,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) {
        let is_silent = self.members.get(member_id).is_some_and(|m| !m.is_parked());
        if is_silent {
            self.expel(member_id, UnknownMemberId, out);
            self.members_gone(now, config, out);
        }
    }

    fn new_member_is_late(
        &mut self,
        member_id: &str,
        now: Ts,
        config: &ClassicConfig,
        out: &mut Plan<()>,
    ) {
        if self.invited.remove(member_id) {
            self.complete_if_all_joined(now, out);
        } else if self.members.get(member_id).is_some_and(|m| m.is_new) {
            self.expel(member_id, UnknownMemberId, out);
            self.members_gone(now, config, out);
        }
    }

    fn join_phase_is_over(&mut self, now: Ts, config: &ClassicConfig, out: &mut Plan<()>) {
        if self.state != PreparingRebalance {
            return;
        }
        let delay = Ts::from(config.initial_rebalance_delay_ms.max(0));
        match &mut self.gathering {
            Some(gathering) if gathering.somebody_came && gathering.remaining_ms > 0 => {
                gathering.somebody_came = false;
                let ms = delay.min(gathering.remaining_ms);
                gathering.remaining_ms -= ms;
                self.set_join_phase(now.saturating_add(ms), out);
            }
            _ => self.complete_join(now, out),
        }
    }

    /// Members that have joined and did not fetch their assignment are gone.
    fn sync_phase_is_over(&mut self, now: Ts, config: &ClassicConfig, out: &mut Plan<()>) {
        if !matches!(self.state, CompletingRebalance | Stable) || self.unsynced.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut self.unsynced) {
            self.expel(&member_id, UnknownMemberId, out);
        }
        self.prepare_rebalance(now, config, out);
    }
}

/// Assignments by member, as a leader gives them.
pub(super) fn assign(
    value: &mut super::super::records::ClassicGroupValue,
    assignments: &[(String, Blob)],
) {
    let given: std::collections::BTreeMap<&str, &Blob> = assignments
        .iter()
        .map(|(member_id, assignment)| (&**member_id, assignment))
        .collect();
    for member in &mut value.members {
        let assignment = given.get(&*member.member_id);
        member.assignment = assignment.map(|&a| a.clone()).unwrap_or_default();
    }
}

impl GroupCoordinator {
    /// A timer of a classic group has fallen due. `None` when nothing follows from it.
    pub(in crate::group) fn classic_deadline(
        &mut self,
        now: Ts,
        key: &TimerKey,
        config: &ClassicConfig,
    ) -> Option<Plan<()>> {
        let (TimerKey::Session { group, .. }
        | TimerKey::NewMember { group, .. }
        | TimerKey::JoinPhase { group }
        | TimerKey::SyncPhase { group }) = key
        else {
            return None;
        };
        let group = self.classic_mut(group)?;
        let mut out = Plan::answer(());
        match key {
            TimerKey::Session { member, .. } => {
                group.session_ended(member, now, config, &mut out);
            }
            TimerKey::NewMember { member, .. } => {
                group.new_member_is_late(member, now, config, &mut out);
            }
            TimerKey::JoinPhase { .. } => group.join_phase_is_over(now, config, &mut out),
            TimerKey::SyncPhase { .. } => group.sync_phase_is_over(now, config, &mut out),
            _ => {}
        }
        (out != Plan::answer(())).then_some(out)
    }

    /// Has a group that came out of a log or of another protocol rebalance at once.
    pub fn classic_rebalance(
        &mut self,
        now: Ts,
        group_id: &str,
        config: &ClassicConfig,
    ) -> Plan<()> {
        let mut out = Plan::answer(());
        if let Some(group) = self.classic_mut(group_id) {
            group.prepare_rebalance(now, config, &mut out);
        }
        out
    }
}
