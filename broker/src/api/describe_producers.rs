//! DescribeProducers (key 61), version 0. KIP-664.
//!
//! The producers that a partition's log remembers, those with open transactions among them. Any
//! replica answers; another broker says NOT_LEADER_OR_FOLLOWER. A partition that is named twice is
//! described once.

use std::collections::BTreeSet;

use ottla_protocol::messages::describe_producers_response::{
    DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};
use ottla_protocol::messages::{DescribeProducersRequest, ProducerId};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_storage::ProducerView;

use crate::cluster::Topic;
use crate::context::Cx;

pub(super) async fn handle(
    cx: &Cx,
    request: DescribeProducersRequest,
) -> DescribeProducersResponse {
    let mut seen = BTreeSet::new();
    let topics = request.topics.iter().map(|wanted| {
        let topic = cx.broker.cluster.topic(&wanted.name);
        let indexes = wanted.partition_indexes.iter();
        let indexes = indexes.filter(|&index| seen.insert((&wanted.name, index)));
        let partitions = indexes.map(|&index| describe(cx, topic.as_deref(), index));
        TopicResponse::default()
            .with_name(wanted.name.clone())
            .with_partitions(partitions.collect())
    });
    DescribeProducersResponse::default().with_topics(topics.collect())
}

fn describe(cx: &Cx, topic: Option<&Topic>, index: i32) -> PartitionResponse {
    let response = PartitionResponse::default()
        .with_partition_index(index)
        .with_error_message(None);
    let refuse = |code: ErrorCode, message: &str| {
        PartitionResponse::default()
            .with_partition_index(index)
            .with_error_code(code.0)
            .with_error_message(Some(StrBytes::from_string(message.to_owned())))
    };
    let Some(partition) = topic.and_then(|topic| topic.partition(index)) else {
        return refuse(
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        );
    };
    if !partition.leadership().replicas.contains(&cx.node.id) {
        return refuse(
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            "This broker is not a replica of the partition.",
        );
    }
    let producers = partition.log.producers();
    response.with_active_producers(producers.iter().map(state).collect())
}

fn state(producer: &ProducerView) -> ProducerState {
    ProducerState::default()
        .with_producer_id(ProducerId(producer.producer_id))
        .with_producer_epoch(i32::from(producer.epoch))
        .with_last_sequence(producer.last_sequence)
        .with_last_timestamp(producer.last_timestamp)
        .with_coordinator_epoch(producer.coordinator_epoch)
        .with_current_txn_start_offset(producer.txn_first_offset.unwrap_or(-1))
}
