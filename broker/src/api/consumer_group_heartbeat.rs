//! ConsumerGroupHeartbeat (key 68), versions 0-1. KIP-848.
//!
//! - The member chooses its id; in version 0 it may leave that to the broker.
//! - Version 1 has regular expressions, matched by the broker against whole topic names.
//! - The answer of a heartbeat that joins, or says all of the member's state again, holds the whole
//!   assignment; any other one only a changed one.

use ottla_coordinator::group::consumer::request::{
    ConsumerHeartbeatRequest, ConsumerHeartbeatResponse,
};
use ottla_coordinator::types::{TopicPartitions as Owned, Uuid as TopicId};
use ottla_protocol::messages::ConsumerGroupHeartbeatRequest;
use ottla_protocol::messages::consumer_group_heartbeat_response::{
    Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use ottla_protocol::{StrBytes, Uuid};

use super::coordinator::{consumer_groups_on, shard};
use crate::broker::Topics;
use crate::consumer_protocol::KafkaConsumers;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::groups::consumer_group_config;

pub(super) async fn handle(
    cx: &Cx,
    request: ConsumerGroupHeartbeatRequest,
) -> ConsumerGroupHeartbeatResponse {
    match heartbeat(cx, request) {
        Ok(answer) => respond(answer),
        Err(error) => ConsumerGroupHeartbeatResponse::default()
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string))
            .with_member_id(None)
            .with_assignment(None),
    }
}

fn heartbeat(
    cx: &Cx,
    request: ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerHeartbeatResponse, ApiError> {
    consumer_groups_on(cx)?;
    let request = read(cx, request);
    let config = consumer_group_config(&cx.broker, &request.group_id);
    let image = Topics(&cx.broker.cluster);
    shard(cx, &request.group_id)?.change(&cx.broker, |machine, now| {
        Ok(machine.consumer_heartbeat(now, &request, &config, &image, &KafkaConsumers)?)
    })
}

fn read(cx: &Cx, request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeatRequest {
    let mut member_id = request.member_id.to_string();
    if member_id.is_empty() && cx.version == 0 && request.member_epoch == 0 {
        member_id = TopicId(rand::random()).to_string();
    }
    let text = |text: Option<StrBytes>| text.map(|text| text.to_string());
    let names = request.subscribed_topic_names;
    let owned = request.topic_partitions.map(|topics| {
        let topics = topics.into_iter().map(|topic| Owned {
            topic_id: TopicId(*topic.topic_id.as_bytes()),
            partitions: topic.partitions,
        });
        topics.collect()
    });
    ConsumerHeartbeatRequest {
        group_id: request.group_id.to_string(),
        member_id,
        member_epoch: request.member_epoch,
        instance_id: text(request.instance_id),
        rack_id: text(request.rack_id),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        subscribed_topic_names: names.map(|names| names.iter().map(|n| n.to_string()).collect()),
        subscribed_topic_regex: text(request.subscribed_topic_regex),
        server_assignor: text(request.server_assignor),
        topic_partitions: owned,
        client_id: cx.client_id().to_owned(),
        client_host: cx.client_host(),
    }
}

fn respond(answer: ConsumerHeartbeatResponse) -> ConsumerGroupHeartbeatResponse {
    let assignment = answer.assignment.map(|topics| {
        let topics = topics.into_iter().map(|topic| {
            TopicPartitions::default()
                .with_topic_id(Uuid::from_bytes(topic.topic_id.0))
                .with_partitions(topic.partitions)
        });
        Assignment::default().with_topic_partitions(topics.collect())
    });
    ConsumerGroupHeartbeatResponse::default()
        .with_error_message(None)
        .with_member_id(Some(StrBytes::from_string(answer.member_id)))
        .with_member_epoch(answer.member_epoch)
        .with_heartbeat_interval_ms(answer.heartbeat_interval_ms)
        .with_assignment(assignment)
}
