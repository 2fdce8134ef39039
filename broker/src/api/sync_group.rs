//! SyncGroup (key 14), versions 0-5. KIP-345, KIP-559 (protocol type and name).
//!
//! - The leader's brings the assignments; they are logged, and then all are answered. The others'
//!   are parked until then.
//! - Version 5 must say protocol type and name, and they must be the group's.

use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::group::classic::{SyncAnswer, SyncRequest, SyncResponse};
use ottla_protocol::messages::SyncGroupRequest;
use ottla_protocol::messages::sync_group_response::SyncGroupResponse;
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::shard;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::error_code;

pub(super) async fn handle(cx: &Cx, request: SyncGroupRequest) -> SyncGroupResponse {
    match sync(cx, request).await {
        Ok(Ok(synced)) => respond(synced),
        Ok(Err(kind)) => refused(error_code(kind)),
        Err(error) => refused(error.code),
    }
}

async fn sync(cx: &Cx, request: SyncGroupRequest) -> Result<SyncAnswer, ApiError> {
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    if cx.version >= 5 && !names_protocol {
        return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL.into());
    }
    if request.group_id.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID.into());
    }
    let assignments = request.assignments.into_iter();
    let request = SyncRequest {
        group_id: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        instance_id: request.group_instance_id.map(|id| id.to_string()),
        generation: request.generation_id,
        protocol_type: request.protocol_type.map(|name| name.to_string()),
        protocol: request.protocol_name.map(|name| name.to_string()),
        assignments: assignments
            .map(|one| (one.member_id.to_string(), Arc::from(&one.assignment[..])))
            .collect(),
    };
    shard(cx, &request.group_id)?.sync(cx, &request).await
}

fn respond(synced: SyncResponse) -> SyncGroupResponse {
    SyncGroupResponse::default()
        .with_protocol_type(synced.protocol_type.map(StrBytes::from_string))
        .with_protocol_name(synced.protocol.map(StrBytes::from_string))
        .with_assignment(Bytes::from_owner(synced.assignment))
}

fn refused(code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse::default()
        .with_error_code(code.0)
        .with_protocol_type(None)
        .with_protocol_name(None)
}
