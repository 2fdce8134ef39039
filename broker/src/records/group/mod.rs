//! Group records in the schemas of `__consumer_offsets`, one file a type of group.

use ottla_coordinator::group::records::GroupRecord;
use ottla_protocol::internal::{ConsumerOffsetsRecord as Wire, GroupKey, MemberKey};

mod classic;
mod consumer;
mod offset;
mod share;

pub(crate) use share::compact_string;

fn group_key(group_id: &str) -> GroupKey {
    GroupKey {
        group_id: group_id.to_owned(),
    }
}

fn member_key(group_id: &str, member_id: &str) -> MemberKey {
    MemberKey {
        group_id: group_id.to_owned(),
        member_id: member_id.to_owned(),
    }
}

/// The record as the topic holds it.
pub(super) fn encode(record: &GroupRecord) -> Wire {
    match record {
        GroupRecord::Offset {
            group_id,
            topic,
            partition,
            value,
        } => offset::encode(group_id, topic, *partition, value.as_ref()),
        GroupRecord::ClassicGroup { group_id, value } => classic::encode(group_id, value.as_ref()),
        GroupRecord::Consumer { group_id, record } => consumer::encode(group_id, record),
        GroupRecord::ShareMember {
            group_id,
            member_id,
            value,
        } => share::member(group_id, member_id, value.as_ref()),
        GroupRecord::ShareGroup { group_id, value } => share::group(group_id, value.as_ref()),
        GroupRecord::ShareTargetMetadata { group_id, value } => {
            share::target_metadata(group_id, value.as_ref())
        }
        GroupRecord::ShareTargetMember {
            group_id,
            member_id,
            value,
        } => share::target_member(group_id, member_id, value.as_deref()),
        GroupRecord::ShareCurrentMember {
            group_id,
            member_id,
            value,
        } => share::current_member(group_id, member_id, value.as_ref()),
        GroupRecord::ShareStatePartitions { group_id, value } => {
            share::state(group_id, value.as_ref())
        }
    }
}

/// The record that the topic holds, if it is of a kind that this version serves.
pub(super) fn decode(record: Wire) -> Option<GroupRecord> {
    match record {
        Wire::OffsetCommit(key, value) => Some(offset::decode(key, value)),
        Wire::LegacyOffsetCommit(key, value) => Some(offset::decode_legacy(key, value)),
        Wire::GroupMetadata(key, value) => Some(classic::decode(key, value)),
        record => match consumer::decode(record) {
            Ok(record) => Some(record),
            Err(other) => share::decode(*other),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ottla_coordinator::group::records::{
        NamedTopicPartitions, Pause, PauseReason, ShareCurrentMemberValue, ShareGroupValue,
        ShareStatePartitionsValue,
    };
    use ottla_coordinator::types::{TopicPartitions, Uuid as TopicId};

    use super::*;

    #[test]
    fn group_records_survive_the_log_unknown_tags_included() {
        let (group_id, member_id) = ("g".to_owned(), "m".to_owned());
        let topics = vec![TopicPartitions {
            topic_id: TopicId([7; 16]),
            partitions: vec![0, 2],
        }];
        let named = vec![NamedTopicPartitions {
            topic_id: TopicId([7; 16]),
            topic_name: "t".to_owned(),
            partitions: vec![1],
        }];
        let records = [
            GroupRecord::ShareGroup {
                group_id: group_id.clone(),
                value: Some(ShareGroupValue {
                    epoch: 3,
                    metadata_hash: 9,
                    pause: Some(Pause {
                        reason: PauseReason::BreakerTripped,
                        since: 5,
                        note: "n".repeat(200),
                    }),
                    unknown_tags: BTreeMap::from([(8999, vec![1, 2]), (9003, vec![3])]),
                }),
            },
            GroupRecord::ShareTargetMember {
                group_id: group_id.clone(),
                member_id: member_id.clone(),
                value: Some(topics.clone()),
            },
            GroupRecord::ShareCurrentMember {
                group_id: group_id.clone(),
                member_id: member_id.clone(),
                value: Some(ShareCurrentMemberValue {
                    member_epoch: 2,
                    previous_member_epoch: 1,
                    state: 0,
                    assigned_partitions: topics,
                }),
            },
            GroupRecord::ShareStatePartitions {
                group_id: group_id.clone(),
                value: Some(ShareStatePartitionsValue {
                    initializing_topics: named.clone(),
                    initialized_topics: named,
                    deleting_topics: vec![(TopicId([8; 16]), "u".to_owned())],
                }),
            },
            GroupRecord::ShareMember {
                group_id,
                member_id,
                value: None,
            },
        ];
        for record in records {
            let (key, value) = encode(&record).encode();
            let read = Wire::decode(&key, value.as_deref());
            assert_eq!(read.ok().and_then(decode), Some(record));
        }
    }
}
