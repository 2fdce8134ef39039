//! ListPartitionReassignments (key 46), version 0. KIP-455.
//!
//! - The reassignments that are in progress: those that add a replica whose broker is stopped.
//! - Topics and partitions that are not there, or not being reassigned, are left out.

use std::sync::Arc;

use ottla_protocol::StrBytes;
use ottla_protocol::messages::list_partition_reassignments_response::{
    ListPartitionReassignmentsResponse, OngoingPartitionReassignment, OngoingTopicReassignment,
};
use ottla_protocol::messages::{ListPartitionReassignmentsRequest, TopicName};

use super::metadata::ids;
use crate::cluster::{Partition, Topic};
use crate::context::Cx;

pub(super) async fn handle(
    cx: &Cx,
    request: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    let cluster = &cx.broker.cluster;
    let topics: Vec<_> = match &request.topics {
        None => {
            let all: Vec<Arc<Topic>> = cluster.image().topics.values().cloned().collect();
            let each = all
                .iter()
                .map(|topic| ongoing(topic, topic.partitions().iter().cloned()));
            each.collect()
        }
        Some(wanted) => {
            let there = wanted.iter().filter_map(|wanted| {
                let topic = cluster.topic(&wanted.name)?;
                let indexes = wanted.partition_indexes.iter();
                let partitions = indexes.filter_map(|&index| topic.partition(index));
                Some(ongoing(&topic, partitions))
            });
            there.collect()
        }
    };
    let moving = topics
        .into_iter()
        .filter(|topic| !topic.partitions.is_empty());
    ListPartitionReassignmentsResponse::default()
        .with_error_message(None)
        .with_topics(moving.collect())
}

fn ongoing(
    topic: &Topic,
    partitions: impl Iterator<Item = Arc<Partition>>,
) -> OngoingTopicReassignment {
    let moving = partitions.filter_map(|partition| {
        let leadership = partition.leadership();
        leadership.is_reassigning().then(|| {
            OngoingPartitionReassignment::default()
                .with_partition_index(partition.index)
                .with_replicas(ids(&leadership.replicas))
                .with_adding_replicas(ids(&leadership.adding))
                .with_removing_replicas(ids(&leadership.removing))
        })
    });
    OngoingTopicReassignment::default()
        .with_name(TopicName(StrBytes::from_string(topic.name.to_string())))
        .with_partitions(moving.collect())
}
