//! JoinGroup (key 11), versions 0-9. KIP-345 (static members), KIP-394 (member ids), KIP-814.
//!
//! - Answered when the group has its next generation; the request is parked until then.
//! - From version 4 on a dynamic member without an id gets one with MEMBER_ID_REQUIRED and joins
//!   again with it.
//! - A static member that started anew takes its place without a rebalance; if it leads, version 9
//!   tells it the members and not to assign.
//! - Version 0 has one timeout for session and rebalance.

use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::group::classic::{JoinAnswer, JoinRefusal, JoinRequest, JoinResponse};
use ottla_protocol::messages::JoinGroupRequest;
use ottla_protocol::messages::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::shard;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::error_code;
use crate::records;

pub(super) async fn handle(cx: &Cx, request: JoinGroupRequest) -> JoinGroupResponse {
    let request = read(cx, request);
    match join(cx, &request).await {
        Ok(Ok(joined)) => respond(cx, joined),
        Ok(Err(JoinRefusal { kind, member_id })) => refused(cx, error_code(kind), member_id),
        Err(error) => refused(cx, error.code, request.member_id),
    }
}

async fn join(cx: &Cx, request: &JoinRequest) -> Result<JoinAnswer, ApiError> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID.into());
    }
    shard(cx, &request.group_id)?.join(cx, request).await
}

fn read(cx: &Cx, request: JoinGroupRequest) -> JoinRequest {
    if let Some(reason) = request.reason.as_deref().filter(|text| !text.is_empty()) {
        tracing::debug!(group = &**request.group_id, reason, "a member joins");
    }
    let instance_id = request.group_instance_id.map(|id| id.to_string());
    let name = instance_id.as_deref().unwrap_or(cx.client_id());
    let protocols = request.protocols.into_iter();
    JoinRequest {
        group_id: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        new_member_id: records::random_member_id(name),
        instance_id,
        client_id: cx.client_id().to_owned(),
        client_host: cx.client_host(),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: if cx.version == 0 {
            request.session_timeout_ms
        } else {
            request.rebalance_timeout_ms
        },
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols
            .map(|protocol| (protocol.name.to_string(), Arc::from(&protocol.metadata[..])))
            .collect(),
        needs_known_id: cx.version >= 4,
        can_skip_assignment: cx.version >= 9,
    }
}

fn respond(cx: &Cx, joined: JoinResponse) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(StrBytes::from_string(member.member_id))
            .with_group_instance_id(member.instance_id.map(StrBytes::from_string))
            .with_metadata(Bytes::from_owner(member.metadata))
    });
    JoinGroupResponse::default()
        .with_generation_id(joined.generation)
        .with_protocol_type(joined.protocol_type.map(StrBytes::from_string))
        .with_protocol_name(protocol_name(cx, joined.protocol))
        .with_leader(StrBytes::from_string(joined.leader))
        .with_skip_assignment(joined.skip_assignment)
        .with_member_id(StrBytes::from_string(joined.member_id))
        .with_members(members.collect())
}

fn refused(cx: &Cx, code: ErrorCode, member_id: String) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(code.0)
        .with_generation_id(-1)
        .with_protocol_type(None)
        .with_protocol_name(protocol_name(cx, None))
        .with_member_id(StrBytes::from_string(member_id))
}

/// Null can be said from version 7 on.
fn protocol_name(cx: &Cx, name: Option<String>) -> Option<StrBytes> {
    let name = name.or_else(|| (cx.version < 7).then(String::new));
    name.map(StrBytes::from_string)
}
