//! DescribeGroups (key 15), versions 0-6. KIP-430 (operations, version 3), KIP-1043.
//!
//! - Classic groups. One that does not exist is Dead, and from version 6 on GROUP_ID_NOT_FOUND.
//! - Metadata and assignments are told of a stable group only.

use bytes::Bytes;
use ottla_coordinator::group::classic::{
    ClassicGroupDescription, ClassicGroupState, ClassicMemberDescription,
};
use ottla_protocol::messages::describe_groups_response::{
    DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};
use ottla_protocol::messages::{DescribeGroupsRequest, GroupId};
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::shard;
use super::named::once;
use super::operations;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let asked = request.include_authorized_operations;
    let allowed = operations::told(asked, operations::GROUP);
    let ids = once(&request.groups, |id| id);
    let groups = ids.map(|id| match describe(cx, id) {
        Ok(group) => respond(group).with_authorized_operations(allowed),
        Err(error) => refused(cx, id, error).with_authorized_operations(allowed),
    });
    DescribeGroupsResponse::default().with_groups(groups.collect())
}

fn describe(cx: &Cx, id: &GroupId) -> Result<ClassicGroupDescription, ApiError> {
    Ok(shard(cx, id)?.ask(&cx.broker, |machine| machine.classic_describe(id))??)
}

fn refused(cx: &Cx, id: &GroupId, error: ApiError) -> DescribedGroup {
    let group = DescribedGroup::default()
        .with_group_id(id.clone())
        .with_error_message(None);
    if error.code != ErrorCode::GROUP_ID_NOT_FOUND {
        return group.with_error_code(error.number());
    }
    let group = group.with_group_state(StrBytes::from_static_str(ClassicGroupState::Dead.name()));
    if cx.version < 6 {
        return group;
    }
    group
        .with_error_code(error.number())
        .with_error_message(error.message.map(StrBytes::from_string))
}

fn respond(group: ClassicGroupDescription) -> DescribedGroup {
    DescribedGroup::default()
        .with_error_message(None)
        .with_group_id(GroupId(StrBytes::from_string(group.group_id)))
        .with_group_state(StrBytes::from_static_str(group.state.name()))
        .with_protocol_type(StrBytes::from_string(group.protocol_type))
        .with_protocol_data(StrBytes::from_string(group.protocol))
        .with_members(group.members.into_iter().map(member).collect())
}

fn member(member: ClassicMemberDescription) -> DescribedGroupMember {
    DescribedGroupMember::default()
        .with_member_id(StrBytes::from_string(member.member_id))
        .with_group_instance_id(member.instance_id.map(StrBytes::from_string))
        .with_client_id(StrBytes::from_string(member.client_id))
        .with_client_host(StrBytes::from_string(member.client_host))
        .with_member_metadata(Bytes::from_owner(member.metadata))
        .with_member_assignment(Bytes::from_owner(member.assignment))
}
