//! ShareGroupHeartbeat (key 76), version 1. KIP-932.
//!
//! - Epoch 0 joins, -1 leaves, else the member's own. The member chooses its id.
//! - With `share.assignment.interval.ms` 0 the first answer already carries the assignment.
//! - Refused with 35 while `share.version` is 0.

use ottla_coordinator::group::plan::{ShareHeartbeatRequest, ShareHeartbeatResponse};
use ottla_protocol::StrBytes;
use ottla_protocol::messages::ShareGroupHeartbeatRequest;
use ottla_protocol::messages::share_group_heartbeat_response::{
    Assignment, ShareGroupHeartbeatResponse, TopicPartitions,
};

use super::coordinator::{shard, share_groups_on};
use crate::broker::Topics;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::share_group_config;

pub(super) async fn handle(
    cx: &Cx,
    request: ShareGroupHeartbeatRequest,
) -> ShareGroupHeartbeatResponse {
    match heartbeat(cx, request) {
        Ok(answer) => respond(answer),
        Err(error) => ShareGroupHeartbeatResponse::default()
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string))
            .with_member_id(None)
            .with_assignment(None),
    }
}

fn heartbeat(
    cx: &Cx,
    request: ShareGroupHeartbeatRequest,
) -> Result<ShareHeartbeatResponse, ApiError> {
    share_groups_on(cx)?;
    let request = ShareHeartbeatRequest {
        group_id: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        member_epoch: request.member_epoch,
        rack_id: request.rack_id.map(|rack| rack.to_string()),
        subscribed_topic_names: request
            .subscribed_topic_names
            .map(|names| names.iter().map(|name| name.to_string()).collect()),
        client_id: cx.client_id().to_owned(),
        client_host: cx.client_host(),
    };
    let config = share_group_config(&cx.broker, &request.group_id);
    let image = Topics(&cx.broker.cluster);
    shard(cx, &request.group_id)?.change(&cx.broker, |machine, now| {
        Ok(machine.share_heartbeat(now, &request, &config, &image)?)
    })
}

fn respond(answer: ShareHeartbeatResponse) -> ShareGroupHeartbeatResponse {
    let assignment = answer.assignment.map(|topics| {
        let topics = topics.into_iter().map(|topic| {
            TopicPartitions::default()
                .with_topic_id(ottla_protocol::Uuid::from_bytes(topic.topic_id.0))
                .with_partitions(topic.partitions)
        });
        Assignment::default().with_topic_partitions(topics.collect())
    });
    ShareGroupHeartbeatResponse::default()
        .with_error_message(None)
        .with_member_id(Some(StrBytes::from_string(answer.member_id)))
        .with_member_epoch(answer.member_epoch)
        .with_heartbeat_interval_ms(answer.heartbeat_interval_ms)
        .with_assignment(assignment)
}
