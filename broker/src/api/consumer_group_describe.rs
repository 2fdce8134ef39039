//! ConsumerGroupDescribe (key 69), versions 0-1. KIP-848, KIP-1099.
//!
//! - Each group has its own error; a group of another type is "not a consumer group" (69), by which
//!   tools know to ask DescribeGroups instead.
//! - Version 1 tells members of the classic protocol from those of the consumer protocol.

use ottla_coordinator::group::consumer::describe::{
    ConsumerGroupDescription, ConsumerMemberDescription,
};
use ottla_coordinator::group::records::NamedTopicPartitions;
use ottla_protocol::messages::consumer_group_describe_response::{
    Assignment, ConsumerGroupDescribeResponse, DescribedGroup, Member, TopicPartitions,
};
use ottla_protocol::messages::{ConsumerGroupDescribeRequest, GroupId, TopicName};
use ottla_protocol::{StrBytes, Uuid};

use super::coordinator::{consumer_groups_on, shard};
use super::named::once;
use super::operations;
use crate::broker::Topics;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::consumer_group_config;

const CLASSIC_MEMBER: i8 = 0;
const CONSUMER_MEMBER: i8 = 1;
/// What versions before the first that tells the types leave out.
const NO_TYPE: i8 = -1;

pub(super) async fn handle(
    cx: &Cx,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse {
    let asked = request.include_authorized_operations;
    let allowed = operations::told(asked, operations::GROUP);
    let ids = once(&request.group_ids, |id| id);
    let groups = ids.map(|id| match describe(cx, id) {
        Ok(group) => respond(cx, group).with_authorized_operations(allowed),
        Err(error) => DescribedGroup::default()
            .with_group_id(id.clone())
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string))
            .with_authorized_operations(operations::NOT_ASKED),
    });
    ConsumerGroupDescribeResponse::default().with_groups(groups.collect())
}

fn describe(cx: &Cx, id: &GroupId) -> Result<ConsumerGroupDescription, ApiError> {
    consumer_groups_on(cx)?;
    let image = Topics(&cx.broker.cluster);
    if id.is_empty() {
        return Err(ottla_protocol::ErrorCode::INVALID_GROUP_ID.into());
    }
    let config = consumer_group_config(&cx.broker, id);
    Ok(shard(cx, id)?.ask(&cx.broker, |machine| {
        machine.consumer_describe(id, &config, &image)
    })??)
}

fn respond(cx: &Cx, group: ConsumerGroupDescription) -> DescribedGroup {
    let members = group.members.into_iter();
    DescribedGroup::default()
        .with_error_message(None)
        .with_group_id(GroupId(StrBytes::from_string(group.group_id)))
        .with_group_state(StrBytes::from_static_str(group.state.name()))
        .with_group_epoch(group.group_epoch)
        .with_assignment_epoch(group.assignment_epoch)
        .with_assignor_name(StrBytes::from_static_str(group.assignor_name))
        .with_members(members.map(|each| member(cx.version, each)).collect())
}

fn member(version: i16, described: ConsumerMemberDescription) -> Member {
    let member = described.member;
    let names = member.subscribed_topic_names.into_iter();
    let member_type = match (version, member.classic) {
        (0, _) => NO_TYPE,
        (_, Some(_)) => CLASSIC_MEMBER,
        (_, None) => CONSUMER_MEMBER,
    };
    Member::default()
        .with_member_id(StrBytes::from_string(described.member_id))
        .with_instance_id(member.instance_id.map(StrBytes::from_string))
        .with_rack_id(member.rack_id.map(StrBytes::from_string))
        .with_member_epoch(described.member_epoch)
        .with_client_id(StrBytes::from_string(member.client_id))
        .with_client_host(StrBytes::from_string(member.client_host))
        .with_subscribed_topic_names(
            names
                .map(|name| TopicName(StrBytes::from_string(name)))
                .collect(),
        )
        .with_subscribed_topic_regex(Some(StrBytes::from_string(member.subscribed_topic_regex)))
        .with_assignment(assignment(described.assignment))
        .with_target_assignment(assignment(described.target))
        .with_member_type(member_type)
}

fn assignment(topics: Vec<NamedTopicPartitions>) -> Assignment {
    let topics = topics.into_iter().map(|topic| {
        TopicPartitions::default()
            .with_topic_id(Uuid::from_bytes(topic.topic_id.0))
            .with_topic_name(TopicName(StrBytes::from_string(topic.topic_name)))
            .with_partitions(topic.partitions)
    });
    Assignment::default().with_topic_partitions(topics.collect())
}
