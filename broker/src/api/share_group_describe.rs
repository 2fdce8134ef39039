//! ShareGroupDescribe (key 77), version 1. KIP-932.
//!
//! - Delivery state, pause and last resume are tagged fields from 9000, which other clients ignore
//!   (KIP-1249, a draft).
//! - Each group has its own error; a group of another type is "not a share group" (69).

use std::collections::BTreeMap;

use bytes::Bytes;
use ottla_coordinator::group::records::NamedTopicPartitions;
use ottla_coordinator::group::share_offsets::{ShareGroupDescription, ShareMemberDescription};
use ottla_protocol::StrBytes;
use ottla_protocol::messages::share_group_describe_response::{
    Assignment, DescribedGroup, Member, ShareGroupDescribeResponse, TopicPartitions,
};
use ottla_protocol::messages::{GroupId, ShareGroupDescribeRequest, TopicName};

use super::coordinator::{pausing_on, shard, share_groups_on};
use super::named::once;
use super::operations;
use crate::broker::Topics;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::records::compact_string;

pub(super) async fn handle(
    cx: &Cx,
    request: ShareGroupDescribeRequest,
) -> ShareGroupDescribeResponse {
    let asked = request.include_authorized_operations;
    let allowed = operations::told(asked, operations::GROUP);
    let ids = once(&request.group_ids, |id| id);
    let groups = ids.map(|id| match describe(cx, id) {
        Ok(group) => respond(group)
            .with_authorized_operations(allowed)
            .with_unknown_tagged_fields(delivery(cx, id)),
        Err(error) => DescribedGroup::default()
            .with_group_id(id.clone())
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string))
            .with_authorized_operations(operations::NOT_ASKED),
    });
    ShareGroupDescribeResponse::default().with_groups(groups.collect())
}

fn describe(cx: &Cx, id: &GroupId) -> Result<ShareGroupDescription, ApiError> {
    share_groups_on(cx)?;
    let image = Topics(&cx.broker.cluster);
    if id.is_empty() {
        return Err(ottla_protocol::ErrorCode::INVALID_GROUP_ID.into());
    }
    Ok(shard(cx, id)?.ask(&cx.broker, |machine| machine.share_describe(id, &image))??)
}

/// What the group delivers: state, reason, since when, last resume, note. Nothing where pausing is not
/// supported.
fn delivery(cx: &Cx, id: &GroupId) -> BTreeMap<i32, Bytes> {
    let mut tags = BTreeMap::new();
    if pausing_on(cx).is_err() {
        return tags;
    }
    let view = cx.broker.deliveries.get(&cx.broker, id).view(cx.now());
    tags.insert(9000, compact_string(view.state_name()));
    if let Some(reason) = view.reason {
        tags.insert(9001, compact_string(reason.name()));
    }
    if let Some(pause) = view
        .recorded
        .filter(|pause| Some(pause.reason) == view.reason)
    {
        tags.insert(9002, Bytes::copy_from_slice(&pause.since.to_be_bytes()));
        tags.insert(9004, compact_string(&pause.note));
    }
    if let Some(why) = view.last_resume {
        tags.insert(9003, compact_string(&why));
    }
    tags
}

fn respond(group: ShareGroupDescription) -> DescribedGroup {
    DescribedGroup::default()
        .with_error_message(None)
        .with_group_id(GroupId(StrBytes::from_string(group.group_id)))
        .with_group_state(StrBytes::from_static_str(group.state.name()))
        .with_group_epoch(group.group_epoch)
        .with_assignment_epoch(group.assignment_epoch)
        .with_assignor_name(StrBytes::from_static_str(group.assignor_name))
        .with_members(group.members.into_iter().map(member).collect())
}

fn member(member: ShareMemberDescription) -> Member {
    let names = member.subscribed_topic_names.into_iter();
    Member::default()
        .with_member_id(StrBytes::from_string(member.member_id))
        .with_rack_id(member.rack_id.map(StrBytes::from_string))
        .with_member_epoch(member.member_epoch)
        .with_client_id(StrBytes::from_string(member.client_id))
        .with_client_host(StrBytes::from_string(member.client_host))
        .with_subscribed_topic_names(
            names
                .map(|name| TopicName(StrBytes::from_string(name)))
                .collect(),
        )
        .with_assignment(
            Assignment::default()
                .with_topic_partitions(member.assignment.into_iter().map(assigned).collect()),
        )
}

fn assigned(topic: NamedTopicPartitions) -> TopicPartitions {
    TopicPartitions::default()
        .with_topic_id(ottla_protocol::Uuid::from_bytes(topic.topic_id.0))
        .with_topic_name(TopicName(StrBytes::from_string(topic.topic_name)))
        .with_partitions(topic.partitions)
}
