//! Requests of the classic protocol: those that wait for the other members are parked here. Its
//! members may be in a group of the consumer protocol, which answers them at once.

use ottla_coordinator::group::classic::{
    ClassicConfig, HeartbeatRequest, JoinAnswer, JoinRequest, LeaveAnswer, Leaving, SyncAnswer,
    SyncRequest,
};
use ottla_coordinator::group::plan::GroupErrorKind;
use ottla_protocol::ErrorCode;

use super::{Shard, consumer_group_config};
use crate::broker::{Broker, Topics};
use crate::clock::WireDeadline;
use crate::consumer_protocol::KafkaConsumers;
use crate::context::Cx;
use crate::error_code::ApiError;

/// How much longer than its members' timeouts a request of a classic group waits on the wire's time.
const PATIENCE_MS: i64 = 30_000;

/// What classic groups run with.
pub fn classic_config(broker: &Broker) -> ClassicConfig {
    let bounds = &broker.config().classic_groups;
    ClassicConfig {
        min_session_timeout_ms: bounds.min_session_timeout_ms,
        max_session_timeout_ms: bounds.max_session_timeout_ms,
        max_size: bounds.max_size,
        initial_rebalance_delay_ms: bounds.initial_rebalance_delay_ms,
    }
}

impl Shard {
    /// `JoinGroup`: answered when the group has its next generation.
    pub async fn join(&self, cx: &Cx, request: &JoinRequest) -> Result<JoinAnswer, ApiError> {
        let broker = &cx.broker;
        let config = classic_config(broker);
        if let Err(refusal) = request.check(&config) {
            return Ok(Err(refusal));
        }
        if request.member_id.is_empty() {
            self.change(broker, |machine, now| {
                Ok(machine.classic_create(now, request))
            })?;
        }
        let mut parked = None;
        let consumer = consumer_group_config(broker, &request.group_id);
        let answer = self.change(broker, |machine, now| {
            let image = Topics(&broker.cluster);
            let consumers = &KafkaConsumers;
            if let Some(plan) = machine.consumer_join(now, request, &consumer, &image, consumers) {
                return Ok(plan.map(Some));
            }
            let waiting = parked.insert(self.parked.join());
            Ok(machine.classic_join(now, request, waiting.ticket, &config))
        })?;
        if let (None, Some(waiting)) = (&answer, parked) {
            let timeout = i64::from(request.rebalance_timeout_ms.max(0));
            let delay = i64::from(config.initial_rebalance_delay_ms);
            let deadline = WireDeadline::after(timeout.max(delay) + PATIENCE_MS);
            return waiting.answer(&cx.connection, deadline).await;
        }
        answer.ok_or_else(|| ErrorCode::REBALANCE_IN_PROGRESS.into())
    }

    /// `SyncGroup`: answered when the leader has assigned.
    pub async fn sync(&self, cx: &Cx, request: &SyncRequest) -> Result<SyncAnswer, ApiError> {
        let mut parked = None;
        let mut timeout = 0;
        let answer = self.change(&cx.broker, |machine, now| {
            let image = Topics(&cx.broker.cluster);
            if let Some(plan) = machine.consumer_sync(now, request, &image, &KafkaConsumers) {
                return Ok(plan.map(Some));
            }
            let waiting = parked.insert(self.parked.sync());
            timeout = machine.classic_rebalance_timeout_ms(&request.group_id, &request.member_id);
            Ok(machine.classic_sync(now, request, waiting.ticket))
        })?;
        if let (None, Some(waiting)) = (&answer, parked) {
            let deadline = WireDeadline::after(timeout + PATIENCE_MS);
            return waiting.answer(&cx.connection, deadline).await;
        }
        answer.ok_or_else(|| ErrorCode::REBALANCE_IN_PROGRESS.into())
    }

    /// `Heartbeat`.
    pub fn heartbeat(
        &self,
        broker: &Broker,
        request: &HeartbeatRequest,
    ) -> Result<Result<(), GroupErrorKind>, ApiError> {
        self.change(broker, |machine, now| {
            let of_consumer = machine.consumer_classic_heartbeat(now, request);
            Ok(of_consumer.unwrap_or_else(|| machine.classic_heartbeat(now, request)))
        })
    }

    /// `LeaveGroup`.
    pub fn leave(
        &self,
        broker: &Broker,
        group_id: &str,
        leaving: &[Leaving],
    ) -> Result<LeaveAnswer, ApiError> {
        let config = classic_config(broker);
        self.change(broker, |machine, now| {
            let image = Topics(&broker.cluster);
            if let Some(plan) = machine.consumer_leave(group_id, leaving, &image) {
                return Ok(plan);
            }
            Ok(machine.classic_leave(now, group_id, leaving, &config))
        })
    }
}
