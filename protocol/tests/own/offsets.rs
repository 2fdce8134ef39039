//! OffsetCommit and OffsetFetch.

use bytes::BytesMut;
use ottla_protocol::messages::*;
use ottla_protocol::{Decodable, Encodable, StrBytes, Uuid};

use super::{ID, hex_of, text, writes};

fn offset_commit(instance: Option<StrBytes>) -> OffsetCommitRequest {
    use offset_commit_request::{
        OffsetCommitRequestPartition as Partition, OffsetCommitRequestTopic as Topic,
    };
    let partition = Partition {
        partition_index: 5,
        committed_offset: 6,
        committed_leader_epoch: 7,
        committed_metadata: Some(text("x")),
        ..Default::default()
    };
    let topic = Topic {
        name: TopicName(text("t")),
        topic_id: ID,
        partitions: vec![partition],
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: GroupId(text("g")),
        generation_id_or_member_epoch: 1,
        member_id: text("m"),
        group_instance_id: instance,
        retention_time_ms: 4,
        topics: vec![topic],
        ..Default::default()
    }
}

#[test]
fn offset_commit_request_is_kafkas() {
    let bytes_of = |message: &OffsetCommitRequest, version| {
        let mut encoded = BytesMut::new();
        message.encode(&mut encoded, version).unwrap();
        hex_of(&encoded)
    };
    let with_retention = "0001670000000100016d00000000000000040000000100017400000001000000050000\
                          000000000006000178";
    let plain = offset_commit(None);
    for (version, kafka) in [
        (2, with_retention),
        (4, with_retention),
        (
            5,
            "0001670000000100016d0000000100017400000001000000050000000000000006000178",
        ),
        (
            6,
            "0001670000000100016d000000010001740000000100000005000000000000000600000007000178",
        ),
    ] {
        assert_eq!(bytes_of(&plain, version), kafka, "version {version}");
    }
    let of_a_static_member = offset_commit(Some(text("i")));
    for (version, kafka) in [
        (
            7,
            "0001670000000100016d000169000000010001740000000100000005000000000000000600000007\
             000178",
        ),
        (
            8,
            "026700000001026d026902027402000000050000000000000006000000070278000000",
        ),
    ] {
        assert_eq!(
            bytes_of(&of_a_static_member, version),
            kafka,
            "version {version}"
        );
    }
    let mut by_id = of_a_static_member;
    by_id.retention_time_ms = -1;
    by_id.topics[0].name = TopicName::default();
    writes(
        &by_id,
        &[(
            10,
            "026700000001026d02690200000000000000010000000000000002020000000500000000000000060000\
             00070278000000",
        )],
    );
}

#[test]
fn offset_fetch_request_is_kafkas() {
    use offset_fetch_request::OffsetFetchRequestTopic as Topic;
    let one_group = OffsetFetchRequest {
        group_id: GroupId(text("g")),
        topics: Some(vec![Topic {
            name: TopicName(text("t")),
            partition_indexes: vec![1, 2],
            ..Default::default()
        }]),
        require_stable: true,
        ..Default::default()
    };
    let all_topics = OffsetFetchRequest {
        topics: None,
        ..one_group.clone()
    };
    for (message, version, kafka) in [
        (
            &one_group,
            1,
            "00016700000001000174000000020000000100000002",
        ),
        (&one_group, 6, "02670202740300000001000000020000"),
        (&one_group, 7, "0267020274030000000100000002000100"),
        (&all_topics, 2, "000167ffffffff"),
        (&all_topics, 7, "0267000100"),
    ] {
        let mut encoded = BytesMut::new();
        message.encode(&mut encoded, version).unwrap();
        assert_eq!(hex_of(&encoded), kafka, "version {version}");
        let read = OffsetFetchRequest::decode(&mut encoded.freeze(), version).unwrap();
        assert_eq!(
            (read.group_id, read.topics),
            (message.group_id.clone(), message.topics.clone())
        );
    }
}

#[test]
fn offset_fetch_request_of_several_groups_is_kafkas() {
    use offset_fetch_request::{
        OffsetFetchRequestGroup as Group, OffsetFetchRequestTopics as Topics,
    };
    let batch = |name: &'static str, topic_id| OffsetFetchRequest {
        groups: vec![
            Group {
                group_id: GroupId(text("g")),
                member_id: Some(text("m")),
                member_epoch: 3,
                topics: Some(vec![Topics {
                    name: TopicName(text(name)),
                    topic_id,
                    partition_indexes: vec![1],
                    ..Default::default()
                }]),
                ..Default::default()
            },
            Group {
                group_id: GroupId(text("h")),
                topics: None,
                ..Default::default()
            },
        ],
        require_stable: true,
        ..Default::default()
    };
    let by_name = "030267026d0000000302027402000000010000026800ffffffff00000100";
    let by_id = "030267026d00000003020000000000000001000000000000000202000000010000026800ffffffff\
                 00000100";
    writes(
        &batch("t", Uuid::nil()),
        &[(8, "03026702027402000000010000026800000100"), (9, by_name)],
    );
    writes(&batch("", ID), &[(10, by_id)]);
}
