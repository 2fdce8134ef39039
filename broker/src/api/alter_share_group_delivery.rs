//! AlterShareGroupDelivery (key 20000), version 0. KIP-1249, a draft, ahead of Apache Kafka.
//!
//! - Pauses or resumes a share group; for the group's coordinator only. Pausing a group that an
//!   administrator has paused changes what is said about it; resuming a running one is refused.
//! - A group that its config pauses is resumed by the config.

use ottla_coordinator::group::records::PauseReason;
use ottla_coordinator::group::{GroupCoordinator, ResumeOf};
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::{AlterShareGroupDeliveryRequest, AlterShareGroupDeliveryResponse};

use super::coordinator::{pausing_on, shard, share_groups_on};
use crate::context::Cx;
use crate::deliveries::PAUSED_CONFIG;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: AlterShareGroupDeliveryRequest,
) -> AlterShareGroupDeliveryResponse {
    let note = request.reason.as_deref().unwrap_or_default();
    let done = if request.pause {
        pause(cx, &request.group_id, note)
    } else {
        resume(cx, &request.group_id, note)
    };
    let (error_code, error_message) = ApiError::told(done);
    AlterShareGroupDeliveryResponse {
        error_code,
        error_message,
        ..Default::default()
    }
}

fn pause(cx: &Cx, group: &str, note: &str) -> Result<(), ApiError> {
    change(cx, group, |machine, now| {
        Ok(machine.share_pause(now, group, PauseReason::Admin, note)?)
    })?;
    tracing::info!(group, reason = note, "share group paused");
    Ok(())
}

fn resume(cx: &Cx, group: &str, note: &str) -> Result<(), ApiError> {
    change(cx, group, |machine, _| {
        machine.share_pause_of(group)?;
        if cx.broker.group_config(group).share.delivery_paused {
            let text = format!(
                "Share group {group} is paused by its config {PAUSED_CONFIG}: set it to false or delete it."
            );
            return Err(ApiError::new(ErrorCode::INVALID_REQUEST, text));
        }
        Ok(machine.share_resume(group, ResumeOf::Any, note)?.map(drop))
    })?;
    cx.broker
        .deliveries
        .get(&cx.broker, group)
        .resumed_because(note);
    Ok(())
}

fn change(
    cx: &Cx,
    group: &str,
    plan: impl FnOnce(&mut GroupCoordinator, i64) -> Result<Plan, ApiError>,
) -> Result<(), ApiError> {
    share_groups_on(cx)?;
    pausing_on(cx)?;
    if group.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID.into());
    }
    shard(cx, group)?.change(&cx.broker, plan)
}

type Plan = ottla_coordinator::group::plan::Plan<()>;
