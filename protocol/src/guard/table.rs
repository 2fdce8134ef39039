//! The shapes of all requests of Kafka 4.4 and of Ottla's own: primitives in wire order, over all
//! versions.
//!
//! A row says key, first and last version, fields. `bool` is an `I8`, `uint16` an `I16`, `float64` an
//! `I64`, records are a `BLOB`: only widths matter here. A comment names a list that takes several lines.

use super::shape::{
    BLOB, Field, I8, I8S, I16, I16S, I32, I32S, I64, I64S, STR, STRS, Shape, UUID, UUIDS, list,
    nested, row,
};
#[allow(clippy::wildcard_imports, reason = "the table uses every key")]
use crate::api_key::*;

/// The shape of a request; `None` for a key without requests.
pub(crate) fn shape(key: i16) -> Option<&'static Shape> {
    let at = REQUESTS
        .binary_search_by_key(&key, |shape| shape.key)
        .ok()?;
    REQUESTS.get(at)
}

/// Ordered by key.
#[rustfmt::skip]
pub(crate) static REQUESTS: &[Shape] = &[
    row(PRODUCE, 3, 13, &[
        STR.null(), I16, I32, list(&[STR.until(12), UUID.since(13), list(&[I32, BLOB.null()])]),
    ]),
    row(FETCH, 4, 18, &[
        STR.null().since(12).tag(0), I32.until(14), nested(&[I32, I64]).since(15).tag(1), I32,
        I32, I32, I8, I32.since(7), I32.since(7),
        list(&[ // topics
            STR.until(12), UUID.since(13),
            list(&[ // partitions
                I32, I32.since(9), I64, I32.since(12), I64.since(5), I32, UUID.since(17).tag(0),
                I64.since(18).tag(1),
            ]),
        ]),
        list(&[STR.until(12), UUID.since(13), I32S]).since(7), STR.since(11),
    ]),
    row(LIST_OFFSETS, 1, 11, &[
        I32, I8.since(2), list(&[STR, list(&[I32, I32.since(4), I64])]), I32.since(10),
    ]),
    row(METADATA, 0, 13, &[
        list(&[UUID.since(10), STR.null_since(10)]).null_since(1), I8.since(4),
        I8.since(8).until(10), I8.since(8),
    ]),
    row(OFFSET_COMMIT, 2, 10, &[
        STR, I32, STR, STR.null().since(7), I64.until(4),
        list(&[ // topics
            STR.until(9), UUID.since(10), list(&[I32, I64, I32.since(6), STR.null()]),
        ]),
    ]),
    row(OFFSET_FETCH, 1, 10, &[
        STR.until(7), list(&[STR, I32S]).null_since(2).until(7),
        list(&[ // groups
            STR, STR.null().since(9), I32.since(9),
            list(&[STR.until(9), UUID.since(10), I32S]).null(),
        ]).since(8),
        I8.since(7),
    ]),
    row(FIND_COORDINATOR, 0, 6, &[STR.until(3), I8.since(1), STRS.since(4)]),
    row(JOIN_GROUP, 0, 9, &[
        STR, I32, I32.since(1), STR, STR.null().since(5), STR, list(&[STR, BLOB]),
        STR.null().since(8),
    ]),
    row(HEARTBEAT, 0, 4, &[STR, I32, STR, STR.null().since(3)]),
    row(LEAVE_GROUP, 0, 5, &[
        STR, STR.until(2), list(&[STR, STR.null(), STR.null().since(5)]).since(3),
    ]),
    row(SYNC_GROUP, 0, 5, &[
        STR, I32, STR, STR.null().since(3), STR.null().since(5), STR.null().since(5),
        list(&[STR, BLOB]),
    ]),
    row(DESCRIBE_GROUPS, 0, 6, &[STRS, I8.since(3)]),
    row(LIST_GROUPS, 0, 5, &[STRS.since(4), STRS.since(5)]),
    row(SASL_HANDSHAKE, 0, 1, &[STR]),
    row(API_VERSIONS, 0, 5, &[STR.since(3), STR.since(3), STR.null().since(5), I32.since(5)]),
    row(CREATE_TOPICS, 2, 7, &[
        list(&[ // topics
            STR, I32, I16, list(&[I32, I32S]), list(&[STR, STR.null()]),
        ]),
        I32, I8,
    ]),
    row(DELETE_TOPICS, 1, 6, &[list(&[STR.null(), UUID]).since(6), STRS.until(5), I32]),
    row(DELETE_RECORDS, 0, 2, &[list(&[STR, list(&[I32, I64])]), I32]),
    row(INIT_PRODUCER_ID, 0, 6, &[
        STR.null(), I32, I64.since(3), I16.since(3), I8.since(6), I8.since(6),
    ]),
    row(OFFSET_FOR_LEADER_EPOCH, 2, 4, &[I32.since(3), list(&[STR, list(&[I32, I32, I32])])]),
    row(ADD_PARTITIONS_TO_TXN, 0, 5, &[
        list(&[STR, I64, I16, I8, list(&[STR, I32S])]).since(4), STR.until(3), I64.until(3),
        I16.until(3), list(&[STR, I32S]).until(3),
    ]),
    row(ADD_OFFSETS_TO_TXN, 0, 4, &[STR, I64, I16, STR]),
    row(END_TXN, 0, 5, &[STR, I64, I16, I8]),
    row(WRITE_TXN_MARKERS, 1, 2, &[list(&[I64, I16, I8, list(&[STR, I32S]), I32, I8.since(2)])]),
    row(TXN_OFFSET_COMMIT, 0, 6, &[
        STR, STR, I64, I16, I32.since(3), STR.since(3), STR.null().since(3),
        list(&[ // topics
            STR.until(5), UUID.since(6), list(&[I32, I64, I32.since(2), STR.null()]),
        ]),
    ]),
    row(DESCRIBE_ACLS, 1, 3, &[I8, STR.null(), I8, STR.null(), STR.null(), I8, I8]),
    row(CREATE_ACLS, 1, 3, &[list(&[I8, STR, I8, STR, STR, I8, I8])]),
    row(DELETE_ACLS, 1, 3, &[list(&[I8, STR.null(), I8, STR.null(), STR.null(), I8, I8])]),
    row(DESCRIBE_CONFIGS, 1, 4, &[list(&[I8, STR, STRS.null()]), I8, I8.since(3)]),
    row(ALTER_CONFIGS, 0, 2, &[list(&[I8, STR, list(&[STR, STR.null()])]), I8]),
    row(ALTER_REPLICA_LOG_DIRS, 1, 2, &[list(&[STR, list(&[STR, I32S])])]),
    row(DESCRIBE_LOG_DIRS, 1, 5, &[list(&[STR, I32S]).null()]),
    row(SASL_AUTHENTICATE, 0, 2, &[BLOB]),
    row(CREATE_PARTITIONS, 0, 3, &[list(&[STR, I32, list(&[I32S]).null()]), I32, I8]),
    row(CREATE_DELEGATION_TOKEN, 1, 3, &[
        STR.null().since(3), STR.null().since(3), list(&[STR, STR]), I64,
    ]),
    row(RENEW_DELEGATION_TOKEN, 1, 2, &[BLOB, I64]),
    row(EXPIRE_DELEGATION_TOKEN, 1, 2, &[BLOB, I64]),
    row(DESCRIBE_DELEGATION_TOKEN, 1, 3, &[list(&[STR, STR]).null()]),
    row(DELETE_GROUPS, 0, 3, &[STRS]),
    row(ELECT_LEADERS, 0, 2, &[I8.since(1), list(&[STR, I32S]).null(), I32]),
    row(INCREMENTAL_ALTER_CONFIGS, 0, 1, &[list(&[I8, STR, list(&[STR, I8, STR.null()])]), I8]),
    row(ALTER_PARTITION_REASSIGNMENTS, 0, 1, &[
        I32, I8.since(1), list(&[STR, list(&[I32, I32S.null()])]),
    ]),
    row(LIST_PARTITION_REASSIGNMENTS, 0, 0, &[I32, list(&[STR, I32S]).null()]),
    row(OFFSET_DELETE, 0, 0, &[STR, list(&[STR, list(&[I32])])]),
    row(DESCRIBE_CLIENT_QUOTAS, 0, 1, &[list(&[STR, I8, STR.null()]), I8]),
    row(ALTER_CLIENT_QUOTAS, 0, 1, &[
        list(&[ // entries
            list(&[STR, STR.null()]), list(&[STR, I64, I8]),
        ]),
        I8,
    ]),
    row(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, &[list(&[STR]).null()]),
    row(ALTER_USER_SCRAM_CREDENTIALS, 0, 0, &[list(&[STR, I8]), list(&[STR, I8, I32, BLOB, BLOB])]),
    row(VOTE, 0, 2, &[
        STR.null(), I32.since(1),
        list(&[ // topics
            STR,
            list(&[ // partitions
                I32, I32, I32, UUID.since(1), UUID.since(1), I32, I64, I8.since(2),
            ]),
        ]),
    ]),
    row(BEGIN_QUORUM_EPOCH, 0, 1, &[
        STR.null(), I32.since(1), list(&[STR, list(&[I32, UUID.since(1), I32, I32])]),
        list(&[STR, STR, I16]).since(1),
    ]),
    row(END_QUORUM_EPOCH, 0, 1, &[
        STR.null(),
        list(&[ // topics
            STR, list(&[I32, I32, I32, I32S.until(0), list(&[I32, UUID]).since(1)]),
        ]),
        list(&[STR, STR, I16]).since(1),
    ]),
    row(DESCRIBE_QUORUM, 0, 2, &[list(&[STR, list(&[I32])])]),
    row(ALTER_PARTITION, 2, 3, &[
        I32, I64,
        list(&[ // topics
            UUID,
            list(&[ // partitions
                I32, I32, I32S.until(2), list(&[I32, I64]).since(3), I8, I32,
            ]),
        ]),
    ]),
    row(UPDATE_FEATURES, 0, 2, &[I32, list(&[STR, I16, I8.until(0), I8.since(1)]), I8.since(1)]),
    row(ENVELOPE, 0, 0, &[BLOB, BLOB.null(), BLOB]),
    row(FETCH_SNAPSHOT, 0, 1, &[
        STR.null().tag(0), I32, I32,
        list(&[ // topics
            STR, list(&[I32, I32, nested(&[I64, I32]), I64, UUID.since(1).tag(0)]),
        ]),
    ]),
    row(DESCRIBE_CLUSTER, 0, 2, &[I8, I8.since(1), I8.since(2)]),
    row(DESCRIBE_PRODUCERS, 0, 0, &[list(&[STR, I32S])]),
    row(BROKER_REGISTRATION, 0, 4, &[
        I32, STR, UUID, list(&[STR, STR, I16, I16]), list(&[STR, I16, I16]), STR.null(),
        I8.since(1), UUIDS.since(2), I64.since(3),
    ]),
    row(BROKER_HEARTBEAT, 0, 2, &[
        I32, I64, I64, I8, I8, UUIDS.since(1).tag(0), UUIDS.null().since(2).tag(1),
    ]),
    row(UNREGISTER_BROKER, 0, 0, &[I32]),
    row(DESCRIBE_TRANSACTIONS, 0, 0, &[STRS]),
    row(LIST_TRANSACTIONS, 0, 2, &[STRS, I64S, I64.since(1), STR.null().since(2)]),
    row(ALLOCATE_PRODUCER_IDS, 0, 0, &[I32, I64]),
    row(CONSUMER_GROUP_HEARTBEAT, 0, 1, &[
        STR, STR, I32, STR.null(), STR.null(), I32, STRS.null(), STR.null().since(1), STR.null(),
        list(&[UUID, I32S]).null(),
    ]),
    row(CONSUMER_GROUP_DESCRIBE, 0, 1, &[STRS, I8]),
    row(CONTROLLER_REGISTRATION, 0, 0, &[
        I32, UUID, I8, list(&[STR, STR, I16, I16]), list(&[STR, I16, I16]),
    ]),
    row(GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, &[UUID]),
    row(PUSH_TELEMETRY, 0, 0, &[UUID, I32, I8, I8, BLOB]),
    row(ASSIGN_REPLICAS_TO_DIRS, 0, 0, &[
        I32, I64,
        list(&[ // directories
            UUID, list(&[UUID, list(&[I32])]),
        ]),
    ]),
    row(LIST_CONFIG_RESOURCES, 0, 1, &[I8S.since(1)]),
    row(DESCRIBE_TOPIC_PARTITIONS, 0, 0, &[list(&[STR]), I32, nested(&[STR, I32]).null()]),
    row(SHARE_GROUP_HEARTBEAT, 1, 1, &[STR, STR, I32, STR.null(), STRS.null()]),
    row(SHARE_GROUP_DESCRIBE, 1, 1, &[STRS, I8]),
    row(SHARE_FETCH, 1, 2, &[
        STR.null(), STR.null(), I32, I32, I32, I32, I32, I32, I8.since(2), I8.since(2),
        list(&[ // topics
            UUID, list(&[I32, list(&[I64, I64, I8S])]),
        ]),
        list(&[UUID, I32S]),
    ]),
    row(SHARE_ACKNOWLEDGE, 1, 2, &[
        STR.null(), STR.null(), I32, I8.since(2),
        list(&[ // topics
            UUID, list(&[I32, list(&[I64, I64, I8S])]),
        ]),
    ]),
    row(ADD_RAFT_VOTER, 0, 1, &[STR.null(), I32, I32, UUID, list(&[STR, STR, I16]), I8.since(1)]),
    row(REMOVE_RAFT_VOTER, 0, 0, &[STR.null(), I32, UUID]),
    row(UPDATE_RAFT_VOTER, 0, 0, &[
        STR.null(), I32, I32, UUID, list(&[STR, STR, I16]), nested(&[I16, I16]),
    ]),
    row(INITIALIZE_SHARE_GROUP_STATE, 0, 0, &[STR, list(&[UUID, list(&[I32, I32, I64])])]),
    row(READ_SHARE_GROUP_STATE, 0, 0, &[STR, list(&[UUID, list(&[I32, I32])])]),
    row(WRITE_SHARE_GROUP_STATE, 0, 1, &[
        STR,
        list(&[ // topics
            UUID,
            list(&[ // partitions
                I32, I32, I32, I64, I32.since(1), list(&[I64, I64, I8, I16]),
            ]),
        ]),
    ]),
    row(DELETE_SHARE_GROUP_STATE, 0, 0, &[STR, list(&[UUID, list(&[I32])])]),
    row(READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, &[STR, list(&[UUID, list(&[I32, I32])])]),
    row(STREAMS_GROUP_HEARTBEAT, 0, 1, &[
        STR, STR, I32, I32, STR.null(), STR.null(), I32,
        nested(&[ // topology
            I32,
            list(&[ // subtopologies
                STR, STRS, STRS, list(&[STR, I32, I16, list(&[STR, STR])]), STRS,
                list(&[STR, I32, I16, list(&[STR, STR])]), list(&[I16S, I16S, I16S]),
            ]),
        ]).null(),
        list(&[STR, I32S]).null(), list(&[STR, I32S]).null(), list(&[STR, I32S]).null(),
        STR.null(), nested(&[STR, I16]).null(), list(&[STR, STR]).null(),
        list(&[STR, I32, I64]).null(), list(&[STR, I32, I64]).null(), I8,
    ]),
    row(STREAMS_GROUP_DESCRIBE, 0, 1, &[STRS, I8, I8.since(1)]),
    row(DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, &[list(&[STR, list(&[STR, I32S]).null()])]),
    row(ALTER_SHARE_GROUP_OFFSETS, 0, 0, &[STR, list(&[STR, list(&[I32, I64])])]),
    row(DELETE_SHARE_GROUP_OFFSETS, 0, 0, &[STR, list(&[STR])]),
    row(STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, 0, &[
        STR, STR, I32,
        nested(&[ // topology_description
            list(&[STR, list(&[STR, I8, STRS, STR.null(), STRS, STRS])]),
            list(&[ // global_stores
                nested(&[STR, I8, STRS, STR.null(), STRS, STRS]),
                nested(&[STR, I8, STRS, STR.null(), STRS, STRS]),
            ]),
        ]),
    ]),
    row(UNREGISTER_CONTROLLER, 0, 0, &[I32]),
    row(ALTER_SHARE_GROUP_DELIVERY, 0, 0, &[STR, I8, STR.null()]),
    row(DESCRIBE_SHARE_GROUP_DELIVERY, 0, 0, &[STRS]),
];

/// What a consumer puts into `JoinGroup` as its metadata (protocol type "consumer").
#[rustfmt::skip]
pub(crate) static SUBSCRIPTION: &[Field] = &[
    STRS, BLOB.null(), list(&[STR, I32S]).since(1), I32.since(2), STR.null().since(3),
];

/// What a leader puts into `SyncGroup` for each member (protocol type "consumer").
#[rustfmt::skip]
pub(crate) static ASSIGNMENT: &[Field] = &[list(&[STR, I32S]), BLOB.null()];
