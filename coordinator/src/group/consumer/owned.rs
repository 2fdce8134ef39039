//! Small operations on the partitions that a member has.

use super::records::Owned;
use crate::types::{TopicPartitions, Uuid};

/// Topics and partitions ascending, none empty.
pub(super) fn topics(owned: &Owned) -> Vec<TopicPartitions> {
    owned
        .iter()
        .filter(|(_, partitions)| !partitions.is_empty())
        .map(|(&topic_id, partitions)| TopicPartitions {
            topic_id,
            partitions: partitions.keys().copied().collect(),
        })
        .collect()
}

pub(super) fn add(owned: &mut Owned, topic_id: Uuid, partition: i32, epoch: i32) {
    owned.entry(topic_id).or_default().insert(partition, epoch);
}

/// Every topic and partition.
pub(super) fn partitions(owned: &Owned) -> impl Iterator<Item = (Uuid, i32)> {
    owned.iter().flat_map(|(&topic_id, partitions)| {
        partitions
            .keys()
            .map(move |&partition| (topic_id, partition))
    })
}

/// Whether all of `topics` are in `owned`.
pub(super) fn has_all(owned: &Owned, topics: &[TopicPartitions]) -> bool {
    topics.iter().all(|topic| {
        let mine = owned.get(&topic.topic_id);
        topic
            .partitions
            .iter()
            .all(|partition| mine.is_some_and(|mine| mine.contains_key(partition)))
    })
}

/// Whether any of `topics` is in `owned`.
pub(super) fn has_any(owned: &Owned, topics: &[TopicPartitions]) -> bool {
    topics.iter().any(|topic| {
        let mine = owned.get(&topic.topic_id);
        topic
            .partitions
            .iter()
            .any(|partition| mine.is_some_and(|mine| mine.contains_key(partition)))
    })
}
