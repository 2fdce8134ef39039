//! Records of consumer groups (types 3, 5, 6, 7, 8 and 16).

use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::group::consumer::records::{
    ClassicMetadata, ConsumerRecord, CurrentValue, GroupValue, MemberState, MemberValue, Owned,
    RegexValue, TargetMetadataValue,
};
use ottla_coordinator::group::records::GroupRecord;
use ottla_protocol::Uuid;
use ottla_protocol::internal::{
    AssignedTopicPartitions, ClassicMemberMetadata, ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue, ConsumerGroupRegularExpressionValue, ConsumerOffsetsRecord as Wire,
    RegexKey, TargetAssignmentMemberValue, TargetAssignmentMetadataValue,
};

use super::super::topic_id;
use super::share::{from_partitions, to_partitions};
use super::{group_key, member_key};

pub(super) fn encode(group_id: &str, record: &ConsumerRecord) -> Wire {
    match record {
        ConsumerRecord::Group(value) => {
            let value = value.map(|v| ConsumerGroupMetadataValue {
                epoch: v.epoch,
                metadata_hash: v.metadata_hash,
                ..Default::default()
            });
            Wire::ConsumerGroupMetadata(group_key(group_id), value)
        }
        ConsumerRecord::Member(member_id, value) => Wire::ConsumerGroupMemberMetadata(
            member_key(group_id, member_id),
            value.as_ref().map(from_member),
        ),
        ConsumerRecord::TargetMetadata(value) => {
            let value = value.map(|v| TargetAssignmentMetadataValue {
                assignment_epoch: v.assignment_epoch,
                assignment_timestamp: v.assignment_timestamp,
                ..Default::default()
            });
            Wire::ConsumerGroupTargetAssignmentMetadata(group_key(group_id), value)
        }
        ConsumerRecord::TargetMember(member_id, value) => {
            let value = value.as_ref().map(|topics| TargetAssignmentMemberValue {
                topic_partitions: from_partitions(topics),
                ..Default::default()
            });
            Wire::ConsumerGroupTargetAssignmentMember(member_key(group_id, member_id), value)
        }
        ConsumerRecord::CurrentMember(member_id, value) => {
            Wire::ConsumerGroupCurrentMemberAssignment(
                member_key(group_id, member_id),
                value.as_ref().map(from_current),
            )
        }
        ConsumerRecord::Regex(regex, value) => {
            let key = RegexKey {
                group_id: group_id.to_owned(),
                regular_expression: regex.clone(),
            };
            let value = value.as_ref().map(|v| ConsumerGroupRegularExpressionValue {
                topics: v.topics.clone(),
                version: v.version,
                timestamp: v.timestamp,
                ..Default::default()
            });
            Wire::ConsumerGroupRegularExpression(key, value)
        }
    }
}

/// The record as the group knows it; what is not of a consumer group comes back.
pub(super) fn decode(record: Wire) -> Result<GroupRecord, Box<Wire>> {
    let (group_id, record) = match record {
        Wire::ConsumerGroupMetadata(key, value) => {
            let value = value.map(|v| GroupValue {
                epoch: v.epoch,
                metadata_hash: v.metadata_hash,
            });
            (key.group_id, ConsumerRecord::Group(value))
        }
        Wire::ConsumerGroupMemberMetadata(key, value) => (
            key.group_id,
            ConsumerRecord::Member(key.member_id, value.map(to_member)),
        ),
        Wire::ConsumerGroupTargetAssignmentMetadata(key, value) => {
            let value = value.map(|v| TargetMetadataValue {
                assignment_epoch: v.assignment_epoch,
                assignment_timestamp: v.assignment_timestamp,
            });
            (key.group_id, ConsumerRecord::TargetMetadata(value))
        }
        Wire::ConsumerGroupTargetAssignmentMember(key, value) => {
            let value = value.map(|v| to_partitions(v.topic_partitions));
            (
                key.group_id,
                ConsumerRecord::TargetMember(key.member_id, value),
            )
        }
        Wire::ConsumerGroupCurrentMemberAssignment(key, value) => (
            key.group_id,
            ConsumerRecord::CurrentMember(key.member_id, value.map(to_current)),
        ),
        Wire::ConsumerGroupRegularExpression(key, value) => {
            let value = value.map(|v| RegexValue {
                topics: v.topics,
                version: v.version,
                timestamp: v.timestamp,
            });
            (
                key.group_id,
                ConsumerRecord::Regex(key.regular_expression, value),
            )
        }
        other => return Err(Box::new(other)),
    };
    Ok(GroupRecord::Consumer { group_id, record })
}

fn from_member(value: &MemberValue) -> ConsumerGroupMemberMetadataValue {
    let classic = value.classic.as_ref().map(|classic| ClassicMemberMetadata {
        session_timeout_ms: classic.session_timeout_ms,
        supported_protocols: classic
            .supported_protocols
            .iter()
            .map(|(name, metadata)| ClassicProtocol {
                name: name.clone(),
                metadata: Bytes::from_owner(Arc::clone(metadata)),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    ConsumerGroupMemberMetadataValue {
        instance_id: value.instance_id.clone(),
        rack_id: value.rack_id.clone(),
        client_id: value.client_id.clone(),
        client_host: value.client_host.clone(),
        subscribed_topic_names: value.subscribed_topic_names.clone(),
        subscribed_topic_regex: Some(value.subscribed_topic_regex.clone()),
        rebalance_timeout_ms: value.rebalance_timeout_ms,
        server_assignor: value.server_assignor.clone(),
        classic_member_metadata: classic,
        ..Default::default()
    }
}

fn to_member(value: ConsumerGroupMemberMetadataValue) -> MemberValue {
    let classic = value
        .classic_member_metadata
        .map(|classic| ClassicMetadata {
            session_timeout_ms: classic.session_timeout_ms,
            supported_protocols: classic
                .supported_protocols
                .into_iter()
                .map(|protocol| (protocol.name, Arc::from(protocol.metadata.as_ref())))
                .collect(),
        });
    let mut names = value.subscribed_topic_names;
    names.sort_unstable();
    names.dedup();
    MemberValue {
        instance_id: value.instance_id,
        rack_id: value.rack_id,
        client_id: value.client_id,
        client_host: value.client_host,
        subscribed_topic_names: names,
        subscribed_topic_regex: value.subscribed_topic_regex.unwrap_or_default(),
        rebalance_timeout_ms: value.rebalance_timeout_ms,
        server_assignor: value.server_assignor,
        classic,
    }
}

fn from_current(value: &CurrentValue) -> ConsumerGroupCurrentMemberAssignmentValue {
    ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: value.member_epoch,
        previous_member_epoch: value.previous_member_epoch,
        state: value.state.code(),
        assigned_partitions: from_owned(&value.assigned),
        partitions_pending_revocation: from_owned(&value.pending_revocation),
        ..Default::default()
    }
}

fn to_current(value: ConsumerGroupCurrentMemberAssignmentValue) -> CurrentValue {
    CurrentValue {
        member_epoch: value.member_epoch,
        previous_member_epoch: value.previous_member_epoch,
        state: MemberState::from_code(value.state),
        assigned: to_owned(value.assigned_partitions, value.member_epoch),
        pending_revocation: to_owned(value.partitions_pending_revocation, value.member_epoch),
    }
}

fn from_owned(owned: &Owned) -> Vec<AssignedTopicPartitions> {
    let one = |(topic_id, partitions): (&_, &std::collections::BTreeMap<i32, i32>)| {
        let topic_id: &ottla_coordinator::types::Uuid = topic_id;
        AssignedTopicPartitions {
            topic_id: Uuid::from_bytes(topic_id.0),
            partitions: partitions.keys().copied().collect(),
            assignment_epochs: Some(partitions.values().copied().collect()),
            ..Default::default()
        }
    };
    owned.iter().map(one).collect()
}

/// A release that did not write the epochs of single partitions meant the member's.
fn to_owned(topics: Vec<AssignedTopicPartitions>, member_epoch: i32) -> Owned {
    let mut owned = Owned::new();
    for topic in topics {
        let epochs = topic.assignment_epochs.unwrap_or_default();
        let mine = owned.entry(topic_id(topic.topic_id)).or_default();
        for (at, partition) in topic.partitions.into_iter().enumerate() {
            mine.insert(partition, epochs.get(at).copied().unwrap_or(member_epoch));
        }
    }
    owned.retain(|_, partitions| !partitions.is_empty());
    owned
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ottla_coordinator::types::{TopicPartitions, Uuid as TopicId};

    use super::*;

    #[test]
    fn records_of_consumer_groups_survive_the_log() {
        let owned = Owned::from([(TopicId([7; 16]), BTreeMap::from([(0, 2), (3, 4)]))]);
        let member = MemberValue {
            instance_id: Some("i".to_owned()),
            rack_id: None,
            client_id: "c".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            subscribed_topic_names: vec!["a".to_owned(), "b".to_owned()],
            subscribed_topic_regex: String::new(),
            rebalance_timeout_ms: 5,
            server_assignor: Some("range".to_owned()),
            classic: Some(ClassicMetadata {
                session_timeout_ms: 6,
                supported_protocols: vec![("range".to_owned(), Arc::from(&b"x"[..]))],
            }),
        };
        let id = || "m".to_owned();
        let records = [
            ConsumerRecord::Group(Some(GroupValue {
                epoch: 3,
                metadata_hash: -9,
            })),
            ConsumerRecord::Member(id(), Some(member)),
            ConsumerRecord::TargetMetadata(Some(TargetMetadataValue {
                assignment_epoch: 2,
                assignment_timestamp: 8,
            })),
            ConsumerRecord::TargetMember(
                id(),
                Some(vec![TopicPartitions {
                    topic_id: TopicId([7; 16]),
                    partitions: vec![0, 3],
                }]),
            ),
            ConsumerRecord::CurrentMember(
                id(),
                Some(CurrentValue {
                    member_epoch: 4,
                    previous_member_epoch: 3,
                    state: MemberState::UnrevokedPartitions,
                    assigned: owned.clone(),
                    pending_revocation: owned,
                }),
            ),
            ConsumerRecord::Regex(
                "a.*".to_owned(),
                Some(RegexValue {
                    topics: vec!["a".to_owned()],
                    version: 1,
                    timestamp: 2,
                }),
            ),
            ConsumerRecord::Member(id(), None),
            ConsumerRecord::Group(None),
        ];
        for record in records {
            let (key, value) = encode("g", &record).encode();
            let read = Wire::decode(&key, value.as_deref()).ok();
            let expected = GroupRecord::Consumer {
                group_id: "g".to_owned(),
                record,
            };
            assert_eq!(read.and_then(|read| decode(read).ok()), Some(expected));
        }
    }
}
