//! What follows from a group's plan once it is committed, or could not be.

use std::collections::VecDeque;

use ottla_coordinator::group::plan::{AfterDelete, GroupEffect, InitializePartition};
use ottla_coordinator::share::types::CloseReason;
use ottla_coordinator::types::TopicPartition;

use super::{Failures, Shard, Uncommitted, classic_config, consumer, key};
use crate::broker::Broker;
use crate::error_code::ApiError;

impl Shard {
    /// A plan that was not committed: the parked requests that it was to answer get its error.
    pub(super) fn give_up(&self, failed: Uncommitted) -> ApiError {
        for effect in failed.effects {
            match effect {
                GroupEffect::AnswerJoin { ticket, .. } => {
                    self.parked.joins.answer(ticket, Err(failed.error.clone()));
                }
                GroupEffect::AnswerSync { ticket, .. } => {
                    self.parked.syncs.answer(ticket, Err(failed.error.clone()));
                }
                GroupEffect::InitializeState { .. }
                | GroupEffect::DeleteState { .. }
                | GroupEffect::Downgrade { .. }
                | GroupEffect::Rebalance { .. } => {}
            }
        }
        failed.error
    }

    /// Does what committed plans ask: answers parked requests; has the share coordinators do
    /// something, and reports back.
    pub(super) fn carry_out(
        &self,
        broker: &Broker,
        effects: Vec<GroupEffect>,
    ) -> Result<Failures, ApiError> {
        let mut queue: VecDeque<_> = effects.into();
        let mut failures = vec![];
        while let Some(effect) = queue.pop_front() {
            let (plan, mut state) = match effect {
                GroupEffect::AnswerJoin { ticket, answer } => {
                    self.parked.joins.answer(ticket, Ok(answer));
                    continue;
                }
                GroupEffect::AnswerSync { ticket, answer } => {
                    self.parked.syncs.answer(ticket, Ok(answer));
                    continue;
                }
                GroupEffect::Downgrade { group_id } => {
                    let state = self.lock(broker)?;
                    (
                        consumer::downgrade(broker, &state.machine, &group_id),
                        state,
                    )
                }
                GroupEffect::Rebalance { group_id } => {
                    let (now, config) = (broker.clock.now(), classic_config(broker));
                    let mut state = self.lock(broker)?;
                    let plan = state.machine.classic_rebalance(now, &group_id, &config);
                    (plan, state)
                }
                GroupEffect::InitializeState {
                    group_id,
                    state_epoch,
                    partitions,
                } => {
                    let done =
                        initialize(broker, &group_id, state_epoch, &partitions, &mut failures);
                    let state = self.lock(broker)?;
                    (state.machine.state_initialized(&group_id, &done), state)
                }
                GroupEffect::DeleteState {
                    group_id,
                    partitions,
                    then,
                } => {
                    let reason = CloseReason::GroupDeleted;
                    broker
                        .shares
                        .invalidate(broker, &group_id, &partitions, reason);
                    for &partition in &partitions {
                        broker
                            .share_states
                            .delete(broker, &key(&group_id, partition))?;
                    }
                    if then == AfterDelete::DeleteGroup {
                        broker.shares.group_deleted(broker, &group_id);
                    }
                    let state = self.lock(broker)?;
                    (state.machine.state_deleted(&group_id, &then), state)
                }
            };
            let committed = self.commit(broker, &mut state, plan);
            drop(state);
            queue.extend(committed.map_err(|failed| self.give_up(*failed))?.1);
            self.set_deadline(broker);
        }
        Ok(failures)
    }
}

/// Initialises share partitions; answers those that have state now.
fn initialize(
    broker: &Broker,
    group: &str,
    state_epoch: i32,
    partitions: &[InitializePartition],
    failures: &mut Failures,
) -> Vec<TopicPartition> {
    let mut done = vec![];
    for wanted in partitions {
        let key = key(group, wanted.partition);
        let start = wanted.start_offset;
        match broker
            .share_states
            .initialize(broker, &key, state_epoch, start, wanted.replace)
        {
            Ok(()) => done.push(wanted.partition),
            Err(error) => {
                tracing::warn!(
                    group,
                    partition = ?wanted.partition,
                    %error,
                    "share state could not be initialised; the next heartbeat tries again"
                );
                failures.push((wanted.partition, error));
            }
        }
    }
    let replaced = partitions.iter().filter(|p| p.replace).map(|p| p.partition);
    let replaced: Vec<_> = replaced.filter(|p| done.contains(p)).collect();
    if !replaced.is_empty() {
        broker
            .shares
            .invalidate(broker, group, &replaced, CloseReason::Fenced);
    }
    done
}
