//! Our own messages against bytes that Apache Kafka 4.4.0's classes wrote from the same values.

#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::{Bytes, BytesMut};
use ottla_protocol::messages::*;
use ottla_protocol::{Decodable, Encodable, Message, StrBytes, Uuid};

const ID: Uuid = Uuid::from_u64_pair(1, 2);

fn text(s: &'static str) -> StrBytes {
    StrBytes::from_static_str(s)
}

fn hex_of(bytes: &[u8]) -> String {
    let nibbles = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    nibbles
        .filter_map(|n| char::from_digit(n.into(), 16))
        .collect()
}

/// Encodes each version, compares with Kafka's bytes, and reads them back.
fn writes<M>(message: &M, kafka: &[(i16, &str)])
where
    M: Message + Encodable + Decodable + PartialEq + std::fmt::Debug,
{
    for (version, hex) in kafka {
        let mut encoded = BytesMut::new();
        message.encode(&mut encoded, *version).unwrap();
        assert_eq!(hex_of(&encoded), *hex, "version {version}");
        assert_eq!(message.compute_size(*version).unwrap(), encoded.len());

        let mut bytes = encoded.clone().freeze();
        let read = M::decode(&mut bytes, *version).unwrap();
        assert!(bytes.is_empty());
        if *version == M::VERSIONS.max {
            assert_eq!(read, *message);
        }
        for end in 0..encoded.len() {
            let mut cut = encoded.clone().freeze().slice(..end);
            assert!(
                M::decode(&mut cut, *version).is_err(),
                "version {version} cut at {end}"
            );
        }
    }
    assert!(
        message
            .encode(&mut BytesMut::new(), M::VERSIONS.max + 1)
            .is_err()
    );
}

#[test]
fn api_versions_request_is_kafkas() {
    writes(
        &ApiVersionsRequest {
            client_software_name: text("n"),
            client_software_version: text("v"),
            cluster_id: Some(text("c")),
            node_id: 1,
            ..Default::default()
        },
        &[(0, ""), (3, "026e027600"), (5, "026e027602630000000100")],
    );
}

#[test]
fn api_versions_response_is_kafkas() {
    writes(
        &ApiVersionsResponse {
            error_code: 1,
            api_keys: vec![api_versions_response::ApiVersion {
                api_key: 4,
                min_version: 5,
                max_version: 6,
                ..Default::default()
            }],
            throttle_time_ms: 2,
            supported_features: vec![api_versions_response::SupportedFeatureKey {
                name: text("s"),
                min_version: 7,
                max_version: 8,
                ..Default::default()
            }],
            finalized_features_epoch: 3,
            finalized_features: vec![api_versions_response::FinalizedFeatureKey {
                name: text("f"),
                max_version_level: 9,
                min_version_level: 10,
                ..Default::default()
            }],
            zk_migration_ready: true,
            ..Default::default()
        },
        &[
            (0, "000100000001000400050006"),
            (1, "00010000000100040005000600000002"),
            (
                3,
                "0001020004000500060000000002040008020273000700080001080000000000000003020802\
             02660009000a00030101",
            ),
            (
                5,
                "0001020004000500060000000002040008020273000700080001080000000000000003020802\
             02660009000a00030101",
            ),
        ],
    );
}

#[test]
fn delete_groups_response_is_kafkas() {
    writes(
        &DeleteGroupsResponse {
            throttle_time_ms: 1,
            results: vec![delete_groups_response::DeletableGroupResult {
                group_id: GroupId(text("g")),
                error_code: 2,
                error_message: Some(text("e")),
                ..Default::default()
            }],
            ..Default::default()
        },
        &[
            (0, "00000001000000010001670002"),
            (1, "00000001000000010001670002"),
            (2, "0000000102026700020000"),
            (3, "00000001020267000202650000"),
        ],
    );
}

#[test]
fn describe_share_group_offsets_request_is_kafkas() {
    writes(
        &{
            use describe_share_group_offsets_request::{
                DescribeShareGroupOffsetsRequestGroup as Group,
                DescribeShareGroupOffsetsRequestTopic as Topic,
            };
            let topic = Topic {
                topic_name: TopicName(text("t")),
                partitions: vec![1],
                ..Default::default()
            };
            let group = |id, topics| Group {
                group_id: GroupId(text(id)),
                topics,
                ..Default::default()
            };
            DescribeShareGroupOffsetsRequest {
                groups: vec![group("g", Some(vec![topic])), group("h", None)],
                ..Default::default()
            }
        },
        &[(1, "030267020274020000000100000268000000")],
    );
}

#[test]
fn describe_share_group_offsets_response_is_kafkas() {
    writes(
        &{
            use describe_share_group_offsets_response::{
                DescribeShareGroupOffsetsResponseGroup as Group,
                DescribeShareGroupOffsetsResponsePartition as Partition,
                DescribeShareGroupOffsetsResponseTopic as Topic,
            };
            let partition = Partition {
                partition_index: 3,
                start_offset: 4,
                leader_epoch: 5,
                lag: 6,
                error_code: 7,
                error_message: Some(text("f")),
                ..Default::default()
            };
            let topic = Topic {
                topic_name: TopicName(text("t")),
                topic_id: ID,
                partitions: vec![partition],
                ..Default::default()
            };
            let group = Group {
                group_id: GroupId(text("g")),
                topics: vec![topic],
                error_code: 2,
                error_message: Some(text("e")),
                ..Default::default()
            };
            DescribeShareGroupOffsetsResponse {
                throttle_time_ms: 1,
                groups: vec![group],
                ..Default::default()
            }
        },
        &[
            (
                0,
                "0000000102026702027400000000000000010000000000000002020000000300000000000000\
             0400000005000702660000000202650000",
            ),
            (
                1,
                "0000000102026702027400000000000000010000000000000002020000000300000000000000\
             04000000050000000000000006000702660000000202650000",
            ),
        ],
    );
}

#[test]
fn list_offsets_request_is_kafkas() {
    writes(
        &{
            use list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
            let partition = ListOffsetsPartition {
                partition_index: 3,
                current_leader_epoch: 4,
                timestamp: -6,
                ..Default::default()
            };
            let topic = ListOffsetsTopic {
                name: TopicName(text("t")),
                partitions: vec![partition],
                ..Default::default()
            };
            ListOffsetsRequest {
                replica_id: BrokerId(-1),
                isolation_level: 1,
                topics: vec![topic],
                timeout_ms: 2,
                ..Default::default()
            }
        },
        &[
            (
                2,
                "ffffffff01000000010001740000000100000003fffffffffffffffa",
            ),
            (
                5,
                "ffffffff0100000001000174000000010000000300000004fffffffffffffffa",
            ),
            (
                6,
                "ffffffff01020274020000000300000004fffffffffffffffa000000",
            ),
            (
                11,
                "ffffffff01020274020000000300000004fffffffffffffffa00000000000200",
            ),
        ],
    );
}

#[test]
fn list_offsets_response_is_kafkas() {
    writes(
        &{
            use list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
            let partition = ListOffsetsPartitionResponse {
                partition_index: 2,
                error_code: 3,
                timestamp: 4,
                offset: 5,
                leader_epoch: 6,
                ..Default::default()
            };
            let topic = ListOffsetsTopicResponse {
                name: TopicName(text("t")),
                partitions: vec![partition],
                ..Default::default()
            };
            ListOffsetsResponse {
                throttle_time_ms: 1,
                topics: vec![topic],
                ..Default::default()
            }
        },
        &[
            (
                4,
                "0000000100000001000174000000010000000200030000000000000004000000000000000500\
             000006",
            ),
            (
                11,
                "00000001020274020000000200030000000000000004000000000000000500000006000000",
            ),
        ],
    );
}

#[test]
fn share_acknowledge_request_is_kafkas() {
    writes(
        &{
            use share_acknowledge_request::{
                AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
            };
            let batch = AcknowledgementBatch {
                first_offset: 10,
                last_offset: 11,
                acknowledge_types: vec![1, 4],
                ..Default::default()
            };
            let partition = AcknowledgePartition {
                partition_index: 9,
                acknowledgement_batches: vec![batch],
                ..Default::default()
            };
            let topic = AcknowledgeTopic {
                topic_id: ID,
                partitions: vec![partition],
                ..Default::default()
            };
            ShareAcknowledgeRequest {
                group_id: Some(GroupId(text("g"))),
                member_id: Some(text("m")),
                share_session_epoch: 3,
                is_renew_ack: true,
                topics: vec![topic],
                ..Default::default()
            }
        },
        &[
            (
                1,
                "0267026d00000003020000000000000001000000000000000202000000090200000000000000\
             0a000000000000000b03010400000000",
            ),
            (
                2,
                "0267026d00000003010200000000000000010000000000000002020000000902000000000000\
             000a000000000000000b03010400000000",
            ),
        ],
    );
}

#[test]
fn share_acknowledge_response_is_kafkas() {
    writes(
        &{
            use share_acknowledge_response::{
                LeaderIdAndEpoch, NodeEndpoint, PartitionData, ShareAcknowledgeTopicResponse,
            };
            let partition = PartitionData {
                partition_index: 4,
                error_code: 5,
                error_message: Some(text("f")),
                current_leader: LeaderIdAndEpoch {
                    leader_id: 7,
                    leader_epoch: 8,
                    ..Default::default()
                },
                ..Default::default()
            };
            ShareAcknowledgeResponse {
                throttle_time_ms: 1,
                error_code: 2,
                error_message: Some(text("e")),
                acquisition_lock_timeout_ms: 3,
                responses: vec![ShareAcknowledgeTopicResponse {
                    topic_id: ID,
                    partitions: vec![partition],
                    ..Default::default()
                }],
                node_endpoints: vec![NodeEndpoint {
                    node_id: BrokerId(13),
                    host: text("i"),
                    port: 14,
                    rack: Some(text("j")),
                    ..Default::default()
                }],
                ..Default::default()
            }
        },
        &[
            (
                1,
                "0000000100020265020000000000000001000000000000000202000000040005026600000007\
             00000008000000020000000d02690000000e026a0000",
            ),
            (
                2,
                "0000000100020265000000030200000000000000010000000000000002020000000400050266\
             0000000700000008000000020000000d02690000000e026a0000",
            ),
        ],
    );
}

#[test]
fn share_fetch_request_is_kafkas() {
    writes(
        &{
            use share_fetch_request::{
                AcknowledgementBatch, FetchPartition, FetchTopic, ForgottenTopic,
            };
            let batch = AcknowledgementBatch {
                first_offset: 10,
                last_offset: 11,
                acknowledge_types: vec![1, 4],
                ..Default::default()
            };
            let partition = FetchPartition {
                partition_index: 9,
                acknowledgement_batches: vec![batch],
                ..Default::default()
            };
            let topic = FetchTopic {
                topic_id: ID,
                partitions: vec![partition],
                ..Default::default()
            };
            let forgotten = ForgottenTopic {
                topic_id: ID,
                partitions: vec![12],
                ..Default::default()
            };
            ShareFetchRequest {
                group_id: Some(GroupId(text("g"))),
                member_id: Some(text("m")),
                share_session_epoch: 3,
                max_wait_ms: 4,
                min_bytes: 5,
                max_bytes: 6,
                max_records: 7,
                batch_size: 8,
                share_acquire_mode: 1,
                is_renew_ack: true,
                topics: vec![topic],
                forgotten_topics_data: vec![forgotten],
                ..Default::default()
            }
        },
        &[
            (
                1,
                "0267026d00000003000000040000000500000006000000070000000802000000000000000100\
             00000000000002020000000902000000000000000a000000000000000b030104000000020000\
             0000000000010000000000000002020000000c0000",
            ),
            (
                2,
                "0267026d00000003000000040000000500000006000000070000000801010200000000000000\
             010000000000000002020000000902000000000000000a000000000000000b03010400000002\
             00000000000000010000000000000002020000000c0000",
            ),
        ],
    );
}

#[test]
fn share_fetch_response_is_kafkas() {
    writes(
        &{
            use share_fetch_response::{
                AcquiredRecords, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
                ShareFetchableTopicResponse,
            };
            let acquired = AcquiredRecords {
                first_offset: 10,
                last_offset: 11,
                delivery_count: 12,
                ..Default::default()
            };
            let partition = PartitionData {
                partition_index: 4,
                error_code: 5,
                error_message: Some(text("f")),
                acknowledge_error_code: 6,
                acknowledge_error_message: Some(text("h")),
                current_leader: LeaderIdAndEpoch {
                    leader_id: 7,
                    leader_epoch: 8,
                    ..Default::default()
                },
                records: Some(Bytes::from_static(&[9, 9])),
                acquired_records: vec![acquired],
                ..Default::default()
            };
            ShareFetchResponse {
                throttle_time_ms: 1,
                error_code: 2,
                error_message: Some(text("e")),
                acquisition_lock_timeout_ms: 3,
                responses: vec![ShareFetchableTopicResponse {
                    topic_id: ID,
                    partitions: vec![partition],
                    ..Default::default()
                }],
                node_endpoints: vec![NodeEndpoint {
                    node_id: BrokerId(13),
                    host: text("i"),
                    port: 14,
                    rack: Some(text("j")),
                    ..Default::default()
                }],
                ..Default::default()
            }
        },
        &[
            (
                1,
                "0000000100020265000000030200000000000000010000000000000002020000000400050266\
             0006026800000007000000080003090902000000000000000a000000000000000b000c000000\
             020000000d02690000000e026a0000",
            ),
            (
                2,
                "0000000100020265000000030200000000000000010000000000000002020000000400050266\
             0006026800000007000000080003090902000000000000000a000000000000000b000c000000\
             020000000d02690000000e026a0000",
            ),
        ],
    );
}

#[test]
fn unknown_tagged_fields_are_kept() {
    let mut request = ShareAcknowledgeRequest::default();
    request
        .unknown_tagged_fields
        .insert(5, Bytes::from_static(b"later"));
    let mut bytes = BytesMut::new();
    request.encode(&mut bytes, 2).unwrap();
    assert_eq!(
        ShareAcknowledgeRequest::decode(&mut bytes, 2).unwrap(),
        request
    );
}

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
