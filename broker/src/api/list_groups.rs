//! ListGroups (key 16), versions 0-5. KIP-518 (states, v4), KIP-848 (types, v5).
//!
//! - The groups that this broker coordinates. Filters compare without regard to case; an unknown
//!   state or type lets nothing through.

use ottla_protocol::StrBytes;
use ottla_protocol::messages::list_groups_response::{ListGroupsResponse, ListedGroup};
use ottla_protocol::messages::{GroupId, ListGroupsRequest};

use crate::context::Cx;

pub(super) async fn handle(cx: &Cx, request: ListGroupsRequest) -> ListGroupsResponse {
    let states: Vec<&str> = request.states_filter.iter().map(|s| &**s).collect();
    let types: Vec<&str> = request.types_filter.iter().map(|t| &**t).collect();
    let listed = cx
        .broker
        .groups
        .list(&cx.broker, cx.node.id, &states, &types);
    let groups = listed.into_iter().map(|group| {
        ListedGroup::default()
            .with_group_id(GroupId(StrBytes::from_string(group.group_id)))
            .with_protocol_type(StrBytes::from_string(group.protocol_type))
            .with_group_state(StrBytes::from_static_str(group.state))
            .with_group_type(StrBytes::from_static_str(group.group_type.name()))
    });
    ListGroupsResponse::default().with_groups(groups.collect())
}
