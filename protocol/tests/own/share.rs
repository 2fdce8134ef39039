//! The APIs of share groups.

use bytes::Bytes;
use ottla_protocol::messages::*;

use super::{ID, text, writes};

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
