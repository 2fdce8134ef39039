//! Records of committed offsets (types 0 and 1).

use std::sync::Arc;

use ottla_coordinator::group::offsets::CommittedOffset;
use ottla_coordinator::group::records::GroupRecord;
use ottla_coordinator::types::Uuid as TopicId;
use ottla_protocol::Uuid;
use ottla_protocol::internal::{
    ConsumerOffsetsRecord as Wire, LegacyOffsetCommitValue, OffsetCommitValue, OffsetKey,
};

use crate::records::topic_id;

pub(super) fn encode(
    group_id: &str,
    topic: &str,
    partition: i32,
    value: Option<&CommittedOffset>,
) -> Wire {
    let key = OffsetKey {
        group: group_id.to_owned(),
        topic: topic.to_owned(),
        partition,
    };
    let value = value.map(|value| OffsetCommitValue {
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: value.metadata.to_string(),
        commit_timestamp: value.commit_timestamp,
        expire_timestamp: value.expire_timestamp.unwrap_or(-1),
        topic_id: Uuid::from_bytes(value.topic_id.0),
        ..Default::default()
    });
    Wire::OffsetCommit(key, value)
}

pub(super) fn decode(key: OffsetKey, value: Option<OffsetCommitValue>) -> GroupRecord {
    let value = value.map(|value| CommittedOffset {
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: value.metadata.into(),
        commit_timestamp: value.commit_timestamp,
        expire_timestamp: Some(value.expire_timestamp).filter(|&at| at != -1),
        topic_id: topic_id(value.topic_id),
    });
    record(key, value)
}

pub(super) fn decode_legacy(key: OffsetKey, value: Option<LegacyOffsetCommitValue>) -> GroupRecord {
    let value = value.map(|value| CommittedOffset {
        offset: value.offset,
        leader_epoch: -1,
        metadata: value.metadata.into(),
        commit_timestamp: value.commit_timestamp,
        expire_timestamp: None,
        topic_id: TopicId::ZERO,
    });
    record(key, value)
}

fn record(key: OffsetKey, value: Option<CommittedOffset>) -> GroupRecord {
    GroupRecord::Offset {
        group_id: Arc::from(key.group),
        topic: Arc::from(key.topic),
        partition: key.partition,
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_the_log_but_one_that_expires_by_itself_loses_what_version_1_cannot_hold() {
        let whole = CommittedOffset {
            offset: 7,
            leader_epoch: 3,
            metadata: "m".into(),
            commit_timestamp: 1_000,
            expire_timestamp: None,
            topic_id: TopicId([9; 16]),
        };
        let expiring = CommittedOffset {
            expire_timestamp: Some(2_000),
            ..whole.clone()
        };
        let read = |value: Option<&CommittedOffset>| {
            let (key, value) = encode("g", "t", 4, value).encode();
            match Wire::decode(&key, value.as_deref()) {
                Ok(Wire::OffsetCommit(key, value)) => Some(decode(key, value)),
                _ => None,
            }
        };
        let of = |value| {
            Some(GroupRecord::Offset {
                group_id: "g".into(),
                topic: "t".into(),
                partition: 4,
                value,
            })
        };
        assert_eq!(read(Some(&whole)), of(Some(whole.clone())));
        assert_eq!(read(None), of(None));
        let left = CommittedOffset {
            leader_epoch: -1,
            topic_id: TopicId::ZERO,
            ..expiring.clone()
        };
        assert_eq!(read(Some(&expiring)), of(Some(left)));
    }
}
