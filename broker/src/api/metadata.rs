//! Metadata (key 3), versions 0-13. KIP-4, KIP-430, KIP-516.
//!
//! - No topics: all of them (v0: an empty list; v1+: null, an empty list then means none).
//! - A topic that is asked for by name is made if the request allows it and
//!   `auto.create.topics.enable` is on, and the answer already shows its leaders.
//! - v10+ may ask by id; v12+ may leave the name out.

use std::sync::Arc;

use ottla_protocol::messages::metadata_request::MetadataRequestTopic;
use ottla_protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use ottla_protocol::messages::{BrokerId, MetadataRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};

use super::named::once;
use super::operations;
use crate::cluster::{NOBODY, Partition, Topic};
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: MetadataRequest) -> MetadataResponse {
    let all = match &request.topics {
        None => true,
        Some(topics) => topics.is_empty() && cx.version == 0,
    };
    let authorized = request.include_topic_authorized_operations;
    let topics = if all {
        let topics: Vec<Arc<Topic>> = cx.broker.cluster.image().topics.values().cloned().collect();
        topics
            .iter()
            .map(|topic| describe(cx, topic, authorized))
            .collect()
    } else {
        let create = request.allow_auto_topic_creation || cx.version < 4;
        let wanted = request.topics.iter().flatten();
        once(wanted, |topic| (topic.topic_id, &topic.name))
            .map(|topic| answer(cx, topic, create, authorized))
            .collect()
    };
    MetadataResponse::default()
        .with_brokers(brokers(cx))
        .with_cluster_id(Some(StrBytes::from_string(
            cx.broker.cluster_id().to_owned(),
        )))
        .with_controller_id(BrokerId(cx.broker.cluster.controller_id()))
        .with_topics(topics)
        .with_cluster_authorized_operations(operations::told(
            request.include_cluster_authorized_operations,
            operations::CLUSTER,
        ))
}

fn brokers(cx: &Cx) -> Vec<MetadataResponseBroker> {
    cx.broker
        .endpoints(&cx.connection)
        .into_iter()
        .map(|e| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(e.id))
                .with_host(StrBytes::from_string(e.host))
                .with_port(e.port)
                .with_rack(e.rack.map(StrBytes::from_string))
        })
        .collect()
}

fn answer(
    cx: &Cx,
    wanted: &MetadataRequestTopic,
    create: bool,
    authorized: bool,
) -> MetadataResponseTopic {
    match find(cx, wanted, create) {
        Ok(topic) => describe(cx, &topic, authorized),
        Err(error) => MetadataResponseTopic::default()
            .with_error_code(error.number())
            .with_name(
                wanted
                    .name
                    .clone()
                    .filter(|_| wanted.topic_id == Uuid::nil())
                    .or_else(|| (cx.version < 12).then(TopicName::default)),
            )
            .with_topic_id(wanted.topic_id)
            .with_topic_authorized_operations(operations::NOT_ASKED),
    }
}

fn find(cx: &Cx, wanted: &MetadataRequestTopic, create: bool) -> Result<Arc<Topic>, ApiError> {
    // The Java client says an empty name beside an id.
    if wanted.topic_id != Uuid::nil() {
        let found = cx.broker.cluster.topic_by_id(wanted.topic_id);
        return found.ok_or_else(|| ErrorCode::UNKNOWN_TOPIC_ID.into());
    }
    match &wanted.name {
        Some(name) => cx.broker.topic_or_auto_create(name, create),
        None => Err(ErrorCode::INVALID_REQUEST.into()),
    }
}

fn describe(cx: &Cx, topic: &Topic, authorized: bool) -> MetadataResponseTopic {
    let alive = cx.broker.cluster.alive();
    let partitions = topic.partitions();
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(
            topic.name.to_string(),
        ))))
        .with_topic_id(topic.id)
        .with_is_internal(topic.is_internal())
        .with_partitions(partitions.iter().map(|p| partition(p, &alive)).collect())
        .with_topic_authorized_operations(operations::told(authorized, operations::TOPIC))
}

fn partition(partition: &Partition, alive: &[i32]) -> MetadataResponsePartition {
    let leadership = partition.leadership();
    let error = match leadership.leader {
        NOBODY => ErrorCode::LEADER_NOT_AVAILABLE,
        _ => ErrorCode::NONE,
    };
    MetadataResponsePartition::default()
        .with_error_code(error.0)
        .with_partition_index(partition.index)
        .with_leader_id(BrokerId(leadership.leader))
        .with_leader_epoch(leadership.leader_epoch)
        .with_replica_nodes(ids(&leadership.replicas))
        .with_isr_nodes(ids(&leadership.isr))
        .with_offline_replicas(offline(&leadership.replicas, alive))
}

/// Broker ids as the protocol writes them.
pub(super) fn ids(brokers: &[i32]) -> Vec<BrokerId> {
    brokers.iter().copied().map(BrokerId).collect()
}

/// The replicas whose broker is down.
pub(super) fn offline(replicas: &[i32], alive: &[i32]) -> Vec<BrokerId> {
    replicas
        .iter()
        .copied()
        .filter(|r| !alive.contains(r))
        .map(BrokerId)
        .collect()
}
