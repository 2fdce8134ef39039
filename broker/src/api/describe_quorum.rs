//! DescribeQuorum (key 55), versions 0-2. KIP-595, KIP-836 (v1: times), KIP-853 (v2: addresses).
//!
//! The metadata log has one voter, the logical broker that is named as controller; the others observe.
//! All read the same log, so that nobody ever lags.

use ottla_protocol::messages::describe_quorum_request::TopicData as WantedTopic;
use ottla_protocol::messages::describe_quorum_response::{
    DescribeQuorumResponse, Listener, Node, PartitionData, ReplicaState, TopicData,
};
use ottla_protocol::messages::{BrokerId, DescribeQuorumRequest};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};

use crate::cluster::image::CLUSTER_METADATA;
use crate::context::Cx;
use crate::records::parse_uuid;

pub(super) async fn handle(cx: &Cx, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
    let served = asks_for_the_log(&request.topics);
    let topics = request.topics.iter().map(|wanted| {
        let partitions = wanted.partitions.iter().map(|want| {
            if served {
                quorum(cx)
            } else {
                unknown(cx, want.partition_index)
            }
        });
        TopicData::default()
            .with_topic_name(wanted.topic_name.clone())
            .with_partitions(partitions.collect())
    });
    let nodes = if served && cx.version >= 2 {
        vec![controller(cx)]
    } else {
        vec![]
    };
    DescribeQuorumResponse::default()
        .with_error_message(None)
        .with_topics(topics.collect())
        .with_nodes(nodes)
}

/// Whether the metadata log is asked for, and nothing else.
fn asks_for_the_log(topics: &[WantedTopic]) -> bool {
    let [topic] = topics else { return false };
    let [partition] = topic.partitions.as_slice() else {
        return false;
    };
    **topic.topic_name == *CLUSTER_METADATA && partition.partition_index == 0
}

fn quorum(cx: &Cx) -> PartitionData {
    let cluster = &cx.broker.cluster;
    let leader = cluster.controller_id();
    let (end, epoch) = cluster.metadata_end();
    let directory = parse_uuid(&cx.broker.store().directory_id());
    let directory = directory.map_or(Uuid::nil(), |id| Uuid::from_bytes(id.0));
    let state = |id: i32| {
        let state = ReplicaState::default()
            .with_replica_id(BrokerId(id))
            .with_log_end_offset(end);
        let state = match cx.version {
            0 => state,
            _ => state
                .with_last_fetch_timestamp(cx.now())
                .with_last_caught_up_timestamp(cx.now()),
        };
        match cx.version {
            0 | 1 => state,
            _ => state.with_replica_directory_id(directory),
        }
    };
    let observers = cluster.alive().into_iter().filter(|&id| id != leader);
    PartitionData::default()
        .with_partition_index(0)
        .with_error_message(None)
        .with_leader_id(BrokerId(leader))
        .with_leader_epoch(epoch)
        .with_high_watermark(end)
        .with_current_voters(vec![state(leader)])
        .with_observers(observers.map(state).collect())
}

fn unknown(cx: &Cx, index: i32) -> PartitionData {
    let message = (cx.version >= 2)
        .then(|| StrBytes::from_static_str("This server does not host this topic-partition."));
    PartitionData::default()
        .with_partition_index(index)
        .with_error_code(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0)
        .with_error_message(message)
}

/// Where the controller is reached: there is no port of its own, any broker takes its requests.
fn controller(cx: &Cx) -> Node {
    let id = cx.broker.cluster.controller_id();
    let endpoints = cx.broker.endpoints(&cx.connection).into_iter();
    let listeners = endpoints.filter(|e| e.id == id).map(|e| {
        Listener::default()
            .with_name(StrBytes::from_string(cx.connection.listener.name.clone()))
            .with_host(StrBytes::from_string(e.host))
            .with_port(u16::try_from(e.port).unwrap_or(0))
    });
    Node::default()
        .with_node_id(BrokerId(id))
        .with_listeners(listeners.collect())
}
