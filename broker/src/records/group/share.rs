//! Share group records in the schemas of `__consumer_offsets` (types 10 to 15).

use std::collections::BTreeMap;

use bytes::Bytes;
use ottla_coordinator::group::records::{
    GroupRecord, NamedTopicPartitions, Pause, PauseReason, ShareCurrentMemberValue,
    ShareGroupValue, ShareMemberValue, ShareStatePartitionsValue, ShareTargetMetadataValue,
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
        tags: group_tags(v),
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
            value: value.map(group_value),
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

/// Tagged fields of ours in a group's record: why it is paused, since when, and what was said.
const PAUSE_REASON: u32 = 9000;
const PAUSED_SINCE: u32 = 9001;
const PAUSE_NOTE: u32 = 9002;

fn group_tags(value: &ShareGroupValue) -> Tags {
    let mut tags = from_tags(&value.unknown_tags);
    if let Some(pause) = &value.pause {
        tags.set(PAUSE_REASON, compact_string(pause.reason.name()));
        let since = pause.since.to_be_bytes();
        tags.set(PAUSED_SINCE, Bytes::copy_from_slice(&since));
        tags.set(PAUSE_NOTE, compact_string(&pause.note));
    }
    tags
}

fn group_value(value: ShareGroupMetadataValue) -> ShareGroupValue {
    let mut tags = value.tags;
    let pause = tags.get(PAUSE_REASON).map(|reason| {
        let since = tags.get(PAUSED_SINCE).and_then(|b| b[..].try_into().ok());
        let note = tags.get(PAUSE_NOTE).and_then(|b| read_compact_string(b));
        Pause {
            // A reason of a later version: paused it is, and only a person ends that.
            reason: read_compact_string(reason)
                .and_then(|name| PauseReason::named(&name))
                .unwrap_or(PauseReason::Admin),
            since: since.map_or(0, i64::from_be_bytes),
            note: note.unwrap_or_default(),
        }
    });
    if pause.is_some() {
        for tag in [PAUSE_REASON, PAUSED_SINCE, PAUSE_NOTE] {
            tags.remove(tag);
        }
    }
    ShareGroupValue {
        epoch: value.epoch,
        metadata_hash: value.metadata_hash,
        pause,
        unknown_tags: to_tags(&tags),
    }
}

/// A compact string: its length plus one as a varint, then UTF-8.
pub(crate) fn compact_string(text: &str) -> Bytes {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    let mut length = text.len() + 1;
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(text.as_bytes());
    bytes.into()
}

fn read_compact_string(bytes: &[u8]) -> Option<String> {
    let (mut length, mut at) = (0usize, 0);
    loop {
        let byte = *bytes.get(at).filter(|_| at < 4)?;
        length |= usize::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    let text = bytes.get(at..)?;
    (text.len() + 1 == length).then(|| String::from_utf8(text.to_vec()).ok())?
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
