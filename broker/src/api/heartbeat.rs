//! Heartbeat (key 12), versions 0-4. KIP-345.
//!
//! - REBALANCE_IN_PROGRESS while members join: the member joins again.

use ottla_coordinator::group::classic::HeartbeatRequest as Request;
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::coordinator::shard;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::error_code;

pub(super) async fn handle(cx: &Cx, request: HeartbeatRequest) -> HeartbeatResponse {
    let code = match heartbeat(cx, &request) {
        Ok(()) => ErrorCode::NONE,
        Err(error) => error.code,
    };
    HeartbeatResponse::default().with_error_code(code.0)
}

fn heartbeat(cx: &Cx, request: &HeartbeatRequest) -> Result<(), ApiError> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID.into());
    }
    let instance_id = request.group_instance_id.as_ref();
    let request = Request {
        group_id: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        instance_id: instance_id.map(ToString::to_string),
        generation: request.generation_id,
    };
    let shard = shard(cx, &request.group_id)?;
    let answer = shard.heartbeat(&cx.broker, &request)?;
    answer.map_err(|kind| error_code(kind).into())
}
