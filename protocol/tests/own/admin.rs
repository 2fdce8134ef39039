//! ApiVersions, DeleteGroups, ListOffsets.

use ottla_protocol::messages::*;

use super::{text, writes};

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
