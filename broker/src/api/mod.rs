//! The table of APIs: what is served, at which versions, by which file.
//!
//! Dispatch, the ApiVersions answer, metric labels and the documentation's list derive from it.
//! A row's module holds `handle`, which reads from top to bottom what happens on that request. A
//! protocol error is data in the response; only a frame that cannot be read ends the connection.

#![allow(
    clippy::unused_async,
    reason = "every row of the table has the same shape"
)]

use bytes::Bytes;
use ottla_protocol::frame::{self, RequestHeader, ResponseFrame};
use ottla_protocol::{Encodable, ErrorCode, HeaderVersion, Request, guard, messages};

use crate::clock::Stopwatch;
use crate::context::Cx;

mod alter_configs;
mod alter_partition_reassignments;
mod alter_replica_log_dirs;
mod alter_share_group_delivery;
mod alter_share_group_offsets;
pub mod api_versions;
mod config_resources;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod coordinator;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_share_group_offsets;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_share_group_delivery;
mod describe_share_group_offsets;
mod describe_topic_partitions;
mod elect_leaders;
mod endpoints;
mod fetch;
mod fetch_read;
mod find_coordinator;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod metadata;
mod named;
mod new_partitions;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod operations;
mod produce;
mod share_acknowledge;
mod share_fetch;
mod share_group_describe;
mod share_group_heartbeat;
mod share_request;
mod sync_group;
mod update_features;

/// What a handler answers.
#[derive(Debug)]
pub enum Answer<R> {
    /// This response.
    Send(R),
    /// This response, whose record bytes (listed here too) go out from where they lie.
    Records(R, Vec<Bytes>),
    /// Nothing: the client does not expect an answer.
    Nothing,
    /// The connection ends, because of this.
    Close(String),
}

impl<R> From<R> for Answer<R> {
    fn from(response: R) -> Self {
        Self::Send(response)
    }
}

/// What the connection does with a request's outcome.
#[derive(Debug)]
pub enum Reply {
    /// Writes this frame.
    Send(ResponseFrame),
    /// Writes nothing.
    Nothing,
    /// Ends the connection and logs the reason.
    Close(String),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    /// The API key.
    pub key: i16,
    /// The first version that is advertised.
    pub min: i16,
    /// The last version that is served.
    pub max: i16,
}

macro_rules! apis {
    ($($key:literal, $min:literal ..= $max:literal, $module:ident, $request:ident;)*) => {
        /// Every API that is served, by key.
        pub const TABLE: &[Api] = &[$(Api { key: $key, min: $min, max: $max }),*];

        /// Answers one request.
        pub async fn dispatch(cx: &Cx, header: &RequestHeader, body: Bytes) -> Reply {
            let watch = Stopwatch::start();
            let reply = match (header.api_key, header.api_version) {
                $(($key, $min..=$max) => {
                    const { assert!(<messages::$request as Request>::KEY == $key) };
                    match decode::<messages::$request>(header, body) {
                        Ok(request) => encode::<messages::$request>(
                            header, $module::handle(cx, request).await.into()),
                        Err(reply) => reply,
                    }
                })*
                _ => unsupported(header),
            };
            cx.broker.metrics.request(header.api_key, watch);
            reply
        }
    };
}

apis! {
    0, 0..=13, produce, ProduceRequest;
    1, 4..=18, fetch, FetchRequest;
    2, 1..=11, list_offsets, ListOffsetsRequest;
    3, 0..=13, metadata, MetadataRequest;
    8, 2..=10, offset_commit, OffsetCommitRequest;
    9, 1..=10, offset_fetch, OffsetFetchRequest;
    10, 0..=6, find_coordinator, FindCoordinatorRequest;
    11, 0..=9, join_group, JoinGroupRequest;
    12, 0..=4, heartbeat, HeartbeatRequest;
    13, 0..=5, leave_group, LeaveGroupRequest;
    14, 0..=5, sync_group, SyncGroupRequest;
    15, 0..=6, describe_groups, DescribeGroupsRequest;
    16, 0..=5, list_groups, ListGroupsRequest;
    18, 0..=5, api_versions, ApiVersionsRequest;
    19, 2..=7, create_topics, CreateTopicsRequest;
    20, 1..=6, delete_topics, DeleteTopicsRequest;
    21, 0..=2, delete_records, DeleteRecordsRequest;
    22, 0..=5, init_producer_id, InitProducerIdRequest;
    23, 2..=4, offset_for_leader_epoch, OffsetForLeaderEpochRequest;
    32, 1..=4, describe_configs, DescribeConfigsRequest;
    33, 0..=2, alter_configs, AlterConfigsRequest;
    34, 1..=2, alter_replica_log_dirs, AlterReplicaLogDirsRequest;
    35, 1..=5, describe_log_dirs, DescribeLogDirsRequest;
    37, 0..=3, create_partitions, CreatePartitionsRequest;
    42, 0..=3, delete_groups, DeleteGroupsRequest;
    43, 0..=2, elect_leaders, ElectLeadersRequest;
    44, 0..=1, incremental_alter_configs, IncrementalAlterConfigsRequest;
    45, 0..=1, alter_partition_reassignments, AlterPartitionReassignmentsRequest;
    46, 0..=0, list_partition_reassignments, ListPartitionReassignmentsRequest;
    47, 0..=0, offset_delete, OffsetDeleteRequest;
    55, 0..=2, describe_quorum, DescribeQuorumRequest;
    57, 0..=2, update_features, UpdateFeaturesRequest;
    60, 0..=2, describe_cluster, DescribeClusterRequest;
    61, 0..=0, describe_producers, DescribeProducersRequest;
    68, 0..=1, consumer_group_heartbeat, ConsumerGroupHeartbeatRequest;
    69, 0..=1, consumer_group_describe, ConsumerGroupDescribeRequest;
    74, 0..=1, list_config_resources, ListConfigResourcesRequest;
    75, 0..=0, describe_topic_partitions, DescribeTopicPartitionsRequest;
    76, 1..=1, share_group_heartbeat, ShareGroupHeartbeatRequest;
    77, 1..=1, share_group_describe, ShareGroupDescribeRequest;
    78, 1..=2, share_fetch, ShareFetchRequest;
    79, 1..=2, share_acknowledge, ShareAcknowledgeRequest;
    90, 0..=1, describe_share_group_offsets, DescribeShareGroupOffsetsRequest;
    91, 0..=0, alter_share_group_offsets, AlterShareGroupOffsetsRequest;
    92, 0..=0, delete_share_group_offsets, DeleteShareGroupOffsetsRequest;
    20000, 0..=0, alter_share_group_delivery, AlterShareGroupDeliveryRequest;
    20001, 0..=0, describe_share_group_delivery, DescribeShareGroupDeliveryRequest;
}

fn name_of(key: i16) -> &'static str {
    ottla_protocol::api_key::name(key).unwrap_or("unknown")
}

fn decode<R: Request>(header: &RequestHeader, body: Bytes) -> Result<R, Reply> {
    guard::decode::<R>(body, header.api_version).map_err(|error| {
        Reply::Close(format!(
            "a {} v{} request from client {:?} that cannot be read: {error}",
            name_of(header.api_key),
            header.api_version,
            header.client_id.as_deref().unwrap_or("")
        ))
    })
}

fn encode<R: Request>(header: &RequestHeader, answer: Answer<R::Response>) -> Reply {
    match answer {
        Answer::Send(response) => reply(header, &response, header.api_version, &[]),
        Answer::Records(response, records) => {
            reply(header, &response, header.api_version, &records)
        }
        Answer::Nothing => Reply::Nothing,
        Answer::Close(reason) => Reply::Close(reason),
    }
}

fn reply<T: Encodable + HeaderVersion>(
    header: &RequestHeader,
    response: &T,
    version: i16,
    records: &[Bytes],
) -> Reply {
    match frame::encode_response(header.correlation_id, response, version, records) {
        Ok(frame) => Reply::Send(frame),
        // A field that this version cannot carry is a fault of the handler.
        Err(error) => {
            tracing::error!(api = name_of(header.api_key), version, %error, "a response could not be encoded");
            Reply::Close("a response could not be encoded".to_owned())
        }
    }
}

/// A version or key that is not served. ApiVersions is answered in the v0 layout, so that a newer
/// client can go down to ours (KIP-511); anything else ends the connection, as in Kafka.
fn unsupported(header: &RequestHeader) -> Reply {
    if header.api_key == messages::ApiVersionsRequest::KEY {
        let response = api_versions::refusal(ErrorCode::UNSUPPORTED_VERSION);
        return reply(header, &response, 0, &[]);
    }
    let served = TABLE.iter().find(|api| api.key == header.api_key);
    let range = served.map_or("it is not served".to_owned(), |a| {
        format!("{} to {} are", a.min, a.max)
    });
    Reply::Close(format!(
        "client {:?} sent {} ({}) v{}, which is not supported ({range}); \
         clients find out with ApiVersions",
        header.client_id.as_deref().unwrap_or(""),
        name_of(header.api_key),
        header.api_key,
        header.api_version,
    ))
}
