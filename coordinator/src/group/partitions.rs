//! Partitions by topic, in the one order that records and answers have.

use crate::types::{TopicPartition, TopicPartitions};

/// Partitions in any order as topics and partitions in ascending order.
pub(super) fn by_topic(mut partitions: Vec<TopicPartition>) -> Vec<TopicPartitions> {
    partitions.sort_unstable();
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for TopicPartition {
        topic_id,
        partition,
    } in partitions
    {
        match topics.last_mut() {
            Some(topic) if topic.topic_id == topic_id => topic.partitions.push(partition),
            _ => topics.push(TopicPartitions {
                topic_id,
                partitions: vec![partition],
            }),
        }
    }
    topics
}

/// Topics ascending, partitions ascending, none empty: others write hash order and empty topics.
pub(super) fn normal(topics: &[TopicPartitions]) -> Vec<TopicPartitions> {
    let mut topics: Vec<_> = topics
        .iter()
        .filter(|topic| !topic.partitions.is_empty())
        .cloned()
        .collect();
    topics.sort_unstable();
    for topic in &mut topics {
        topic.partitions.sort_unstable();
    }
    topics
}
