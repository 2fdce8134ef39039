//! LeaveGroup (key 13), versions 0-5. KIP-345 (several members, version 3), KIP-800 (reasons).
//!
//! - An empty member id with an instance id removes a static member by its name.
//! - Before version 3 the one member's error is the request's; after, each member has its own.

use ottla_coordinator::group::classic::{LeaveAnswer, Leaving};
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::LeaveGroupRequest;
use ottla_protocol::messages::leave_group_response::{LeaveGroupResponse, MemberResponse};

use super::coordinator::shard;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::error_code;

pub(super) async fn handle(cx: &Cx, request: LeaveGroupRequest) -> LeaveGroupResponse {
    let results = match leave(cx, &request) {
        Ok(Ok(results)) => results,
        Ok(Err(kind)) => return refused(error_code(kind)),
        Err(error) => return refused(error.code),
    };
    let codes = results
        .into_iter()
        .map(|result| result.map_or_else(error_code, |()| ErrorCode::NONE));
    if cx.version < 3 {
        return refused(codes.fold(ErrorCode::NONE, |_, code| code));
    }
    let members = request.members.iter().zip(codes).map(|(member, code)| {
        MemberResponse::default()
            .with_member_id(member.member_id.clone())
            .with_group_instance_id(member.group_instance_id.clone())
            .with_error_code(code.0)
    });
    LeaveGroupResponse::default().with_members(members.collect())
}

fn leave(cx: &Cx, request: &LeaveGroupRequest) -> Result<LeaveAnswer, ApiError> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID.into());
    }
    let leaving: Vec<Leaving> = if cx.version < 3 {
        vec![Leaving {
            member_id: request.member_id.to_string(),
            instance_id: None,
        }]
    } else {
        let members = request.members.iter();
        let one = |member: &ottla_protocol::messages::leave_group_request::MemberIdentity| {
            if let Some(reason) = member.reason.as_deref().filter(|text| !text.is_empty()) {
                tracing::debug!(
                    group = &**request.group_id,
                    member = &*member.member_id,
                    reason,
                    "a member leaves"
                );
            }
            Leaving {
                member_id: member.member_id.to_string(),
                instance_id: member.group_instance_id.as_ref().map(ToString::to_string),
            }
        };
        members.map(one).collect()
    };
    shard(cx, &request.group_id)?.leave(&cx.broker, &request.group_id, &leaving)
}

fn refused(code: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse::default().with_error_code(code.0)
}
