//! DescribeTopicPartitions (key 75), version 0. KIP-966.
//!
//! - Topics come sorted by name, at most `max.request.partition.size.limit` partitions at a time;
//!   the cursor names the next one.
//! - The lists of eligible leaders (KIP-966) may be empty, never null: the Java client does not take null.

use std::sync::Arc;

use ottla_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};
use ottla_protocol::messages::{BrokerId, DescribeTopicPartitionsRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};

use super::metadata::{ids, offline};
use super::operations;
use crate::cluster::{NOBODY, Partition, Topic};
use crate::context::Cx;

pub(super) async fn handle(
    cx: &Cx,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let mut names: Vec<String> = if request.topics.is_empty() {
        cx.broker
            .cluster
            .image()
            .topics
            .keys()
            .map(ToString::to_string)
            .collect()
    } else {
        request.topics.iter().map(|t| t.name.to_string()).collect()
    };
    names.sort();
    names.dedup();
    let mut first_partition = 0;
    if let Some(cursor) = &request.cursor {
        names.retain(|name| **name >= **cursor.topic_name);
        if names
            .first()
            .is_some_and(|name| **name == **cursor.topic_name)
        {
            first_partition = cursor.partition_index.max(0) as usize;
        }
    }
    let mut left = partition_limit(cx, &request);
    let mut response = DescribeTopicPartitionsResponse::default().with_next_cursor(None);
    for name in names {
        let topic = cx.broker.cluster.topic(&name);
        let Some(topic) = topic else {
            response.topics.push(unknown(&name));
            continue;
        };
        let partitions = topic.partitions();
        let rest = &partitions[first_partition.min(partitions.len())..];
        let taken = rest.len().min(left);
        if taken < rest.len() && taken == 0 {
            response.next_cursor = Some(cursor(&name, first_partition));
            break;
        }
        response.topics.push(describe(cx, &topic, &rest[..taken]));
        left -= taken;
        if taken < rest.len() {
            response.next_cursor = Some(cursor(&name, first_partition + taken));
            break;
        }
        first_partition = 0;
    }
    response
}

/// Partitions in one answer at most.
fn partition_limit(cx: &Cx, request: &DescribeTopicPartitionsRequest) -> usize {
    let most = cx.config().network.max_request_partition_size_limit;
    request.response_partition_limit.min(most).max(0) as usize
}

fn cursor(name: &str, partition: usize) -> Cursor {
    Cursor::default()
        .with_topic_name(TopicName(StrBytes::from_string(name.to_owned())))
        .with_partition_index(partition as i32)
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let code = match crate::cluster::placement::check_name(name) {
        Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Err(error) => error.code,
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(code.0)
        .with_name(Some(TopicName(StrBytes::from_string(name.to_owned()))))
        .with_topic_authorized_operations(operations::TOPIC)
}

fn describe(
    cx: &Cx,
    topic: &Topic,
    partitions: &[Arc<Partition>],
) -> DescribeTopicPartitionsResponseTopic {
    let alive = cx.broker.cluster.alive();
    let partition = |p: &Arc<Partition>| {
        let leadership = p.leadership();
        let error = match leadership.leader {
            NOBODY => ErrorCode::LEADER_NOT_AVAILABLE,
            _ => ErrorCode::NONE,
        };
        DescribeTopicPartitionsResponsePartition::default()
            .with_error_code(error.0)
            .with_partition_index(p.index)
            .with_leader_id(BrokerId(leadership.leader))
            .with_leader_epoch(leadership.leader_epoch)
            .with_replica_nodes(ids(&leadership.replicas))
            .with_isr_nodes(ids(&leadership.isr))
            .with_eligible_leader_replicas(Some(ids(&leadership.elr)))
            .with_last_known_elr(Some(ids(&leadership.last_known_elr)))
            .with_offline_replicas(offline(&leadership.replicas, &alive))
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(
            topic.name.to_string(),
        ))))
        .with_topic_id(topic.id)
        .with_is_internal(topic.is_internal())
        .with_partitions(partitions.iter().map(partition).collect())
        .with_topic_authorized_operations(operations::TOPIC)
}
