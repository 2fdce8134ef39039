//! Share group records in the schemas of `__consumer_offsets` (types 10 to 15).

use std::collections::BTreeMap;

use bytes::Bytes;
use ottla_coordinator::group::records::{
    GroupRecord, NamedTopicPartitions, ShareCurrentMemberValue, ShareGroupValue, ShareMemberValue,
    ShareStatePartitionsValue, ShareTargetMetadataValue,
};
use ottla_coordinator::types::TopicPartitions;
use ottla_protocol::Uuid;
use ottla_protocol::internal::{
    self, ConsumerOffsetsRecord as Wire, NamedTopic, ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue, ShareGroupMetadataValue, ShareGroupStatePartitionMetadataValue,
    Tags, TargetAssignmentMemberValue, TargetAssignmentMetadataValue,
};

use super::super::topic_id;
use super::{group_key, member_key};

pub(super) fn member(group_id: &str, member_id: &str, value: Option<&ShareMemberValue>) -> Wire {
    let value = value.map(|v| ShareGroupMemberMetadataValue {
        rack_id: v.rack_id.clone(),
        client_id: v.client_id.clone(),
        client_host: v.client_host.clone(),
        subscribed_topic_names: v.subscribed_topic_names.clone(),
        ..Default::default()
    });
    Wire::ShareGroupMemberMetadata(member_key(group_id, member_id), value)
}

pub(super) fn group(group_id: &str, value: Option<&ShareGroupValue>) -> Wire {
    let value = value.map(|v| ShareGroupMetadataValue {
        epoch: v.epoch,
        metadata_hash: v.metadata_hash,
        tags: from_tags(&v.unknown_tags),
    });
    Wire::ShareGroupMetadata(group_key(group_id), value)
}

pub(super) fn target_metadata(group_id: &str, value: Option<&ShareTargetMetadataValue>) -> Wire {
    let value = value.map(|v| TargetAssignmentMetadataValue {
        assignment_epoch: v.assignment_epoch,
        assignment_timestamp: v.assignment_timestamp,
        ..Default::default()
    });
    Wire::ShareGroupTargetAssignmentMetadata(group_key(group_id), value)
}

pub(super) fn target_member(
    group_id: &str,
    member_id: &str,
    value: Option<&[TopicPartitions]>,
) -> Wire {
    let value = value.map(|topics| TargetAssignmentMemberValue {
        topic_partitions: from_partitions(topics),
        ..Default::default()
    });
    Wire::ShareGroupTargetAssignmentMember(member_key(group_id, member_id), value)
}

pub(super) fn current_member(
    group_id: &str,
    member_id: &str,
    value: Option<&ShareCurrentMemberValue>,
) -> Wire {
    let value = value.map(|v| ShareGroupCurrentMemberAssignmentValue {
        member_epoch: v.member_epoch,
        previous_member_epoch: v.previous_member_epoch,
        state: v.state,
        assigned_partitions: from_partitions(&v.assigned_partitions),
        ..Default::default()
    });
    Wire::ShareGroupCurrentMemberAssignment(member_key(group_id, member_id), value)
}

pub(super) fn state(group_id: &str, value: Option<&ShareStatePartitionsValue>) -> Wire {
    Wire::ShareGroupStatePartitionMetadata(group_key(group_id), value.map(state_partitions))
}

fn state_partitions(value: &ShareStatePartitionsValue) -> ShareGroupStatePartitionMetadataValue {
    let deleting = value.deleting_topics.iter().map(|(id, name)| NamedTopic {
        topic_id: Uuid::from_bytes(id.0),
        topic_name: name.clone(),
        ..Default::default()
    });
    ShareGroupStatePartitionMetadataValue {
        initializing_topics: from_named(&value.initializing_topics),
        initialized_topics: from_named(&value.initialized_topics),
        deleting_topics: deleting.collect(),
        ..Default::default()
    }
}

/// The record that the topic holds, if it is a share group's.
pub(super) fn decode(record: Wire) -> Option<GroupRecord> {
    Some(match record {
        Wire::ShareGroupMemberMetadata(key, value) => GroupRecord::ShareMember {
            group_id: key.group_id,
            member_id: key.member_id,
            value: value.map(|v| ShareMemberValue {
                rack_id: v.rack_id,
                client_id: v.client_id,
                client_host: v.client_host,
                subscribed_topic_names: v.subscribed_topic_names,
            }),
        },
        Wire::ShareGroupMetadata(key, value) => GroupRecord::ShareGroup {
            group_id: key.group_id,
            value: value.map(|v| ShareGroupValue {
                epoch: v.epoch,
                metadata_hash: v.metadata_hash,
                unknown_tags: to_tags(&v.tags),
            }),
        },
        Wire::ShareGroupTargetAssignmentMetadata(key, value) => GroupRecord::ShareTargetMetadata {
            group_id: key.group_id,
            value: value.map(|v| ShareTargetMetadataValue {
                assignment_epoch: v.assignment_epoch,
                assignment_timestamp: v.assignment_timestamp,
            }),
        },
        Wire::ShareGroupTargetAssignmentMember(key, value) => GroupRecord::ShareTargetMember {
            group_id: key.group_id,
            member_id: key.member_id,
            value: value.map(|v| to_partitions(v.topic_partitions)),
        },
        Wire::ShareGroupCurrentMemberAssignment(key, value) => GroupRecord::ShareCurrentMember {
            group_id: key.group_id,
            member_id: key.member_id,
            value: value.map(|v| ShareCurrentMemberValue {
                member_epoch: v.member_epoch,
                previous_member_epoch: v.previous_member_epoch,
                state: v.state,
                assigned_partitions: to_partitions(v.assigned_partitions),
            }),
        },
        Wire::ShareGroupStatePartitionMetadata(key, value) => GroupRecord::ShareStatePartitions {
            group_id: key.group_id,
            value: value.map(|v| ShareStatePartitionsValue {
                initializing_topics: to_named(v.initializing_topics),
                initialized_topics: to_named(v.initialized_topics),
                deleting_topics: v
                    .deleting_topics
                    .into_iter()
                    .map(|topic| (topic_id(topic.topic_id), topic.topic_name))
                    .collect(),
            }),
        },
        _ => return None,
    })
}

pub(super) fn from_partitions(topics: &[TopicPartitions]) -> Vec<internal::TopicPartitions> {
    let one = |topic: &TopicPartitions| internal::TopicPartitions {
        topic_id: Uuid::from_bytes(topic.topic_id.0),
        partitions: topic.partitions.clone(),
        ..Default::default()
    };
    topics.iter().map(one).collect()
}

pub(super) fn to_partitions(topics: Vec<internal::TopicPartitions>) -> Vec<TopicPartitions> {
    let one = |topic: internal::TopicPartitions| TopicPartitions {
        topic_id: topic_id(topic.topic_id),
        partitions: topic.partitions,
    };
    topics.into_iter().map(one).collect()
}

fn from_named(topics: &[NamedTopicPartitions]) -> Vec<internal::NamedTopicPartitions> {
    let one = |topic: &NamedTopicPartitions| internal::NamedTopicPartitions {
        topic_id: Uuid::from_bytes(topic.topic_id.0),
        topic_name: topic.topic_name.clone(),
        partitions: topic.partitions.clone(),
        ..Default::default()
    };
    topics.iter().map(one).collect()
}

fn to_named(topics: Vec<internal::NamedTopicPartitions>) -> Vec<NamedTopicPartitions> {
    let one = |topic: internal::NamedTopicPartitions| NamedTopicPartitions {
        topic_id: topic_id(topic.topic_id),
        topic_name: topic.topic_name,
        partitions: topic.partitions,
    };
    topics.into_iter().map(one).collect()
}

fn from_tags(tags: &BTreeMap<i32, Vec<u8>>) -> Tags {
    let mut wire = Tags::default();
    for (&tag, content) in tags {
        wire.set(tag.unsigned_abs(), Bytes::copy_from_slice(content));
    }
    wire
}

fn to_tags(tags: &Tags) -> BTreeMap<i32, Vec<u8>> {
    tags.iter()
        .map(|(tag, content)| (tag as i32, content.to_vec()))
        .collect()
}
