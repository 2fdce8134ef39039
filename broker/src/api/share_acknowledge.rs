//! ShareAcknowledge (key 79), versions 1-2. KIP-932, KIP-1222 (renew).
//!
//! - Atomic by partition: an error in one batch leaves all of that partition's batches unapplied.
//! - The answer waits until the new states are committed.
//! - Epoch -1 closes the session after the acknowledgements and releases what is left.

use std::collections::BTreeMap;

use ottla_coordinator::share::session::BeginAcknowledge;
use ottla_coordinator::share::types::AckBatch;
use ottla_coordinator::types::TopicPartition;
use ottla_protocol::messages::ShareAcknowledgeRequest;
use ottla_protocol::messages::share_acknowledge_response::{
    LeaderIdAndEpoch, PartitionData, ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::share_groups_on;
use super::endpoints::node_endpoints;
use super::share_request::{self, Who, acknowledgements, text};
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::metrics::share_requests::{Asked, TopicsAsked};
use crate::shares::limits;

pub(super) async fn handle(cx: &Cx, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse {
    let begun = share_groups_on(cx).and_then(|()| {
        let begin = BeginAcknowledge {
            group: request.group_id.as_ref().map(|id| &***id),
            member: request.member_id.as_deref(),
            epoch: request.share_session_epoch,
        };
        cx.node
            .sessions()
            .begin_acknowledge(begin)
            .map_err(share_request::session_error)
    });
    let closed = match begun {
        Ok(closed) => closed,
        Err(code) => {
            let requests = &cx.broker.metrics.share.requests;
            requests.refused(Asked::Acknowledgement);
            return ShareAcknowledgeResponse {
                error_code: code.0,
                ..Default::default()
            };
        }
    };
    let group = text(request.group_id.as_deref());
    let who = Who {
        group: group.into(),
        member: text(request.member_id.as_ref()),
        limits: limits(&cx.broker, group),
        renews: request.is_renew_ack,
    };
    let proposed = share_request::propose(cx, &who, acknowledgements!(request));
    if let Some(session) = closed {
        cx.broker
            .shares
            .release_session(&cx.broker, cx.node.id, &session);
    }
    let mut results = BTreeMap::new();
    for (partition, acknowledged) in proposed {
        results.insert(partition, share_request::settled(acknowledged).await);
    }
    let mut topics = TopicsAsked::new();
    for (partition, result) in &results {
        *topics.entry(partition.topic_id).or_default() |= result.is_err();
    }
    share_request::count_acknowledged(cx, &topics);
    respond(cx, results, who.limits.lock_duration_ms)
}

fn respond(
    cx: &Cx,
    results: BTreeMap<TopicPartition, Result<(), ApiError>>,
    lock_duration_ms: i64,
) -> ShareAcknowledgeResponse {
    let mut misdirected = false;
    let mut responses: Vec<ShareAcknowledgeTopicResponse> = vec![];
    for (partition, result) in results {
        let mut data = PartitionData {
            partition_index: partition.partition,
            ..Default::default()
        };
        if let Err(error) = result {
            if error.code == ErrorCode::NOT_LEADER_OR_FOLLOWER {
                misdirected = true;
                data.current_leader = leader(cx, partition);
            }
            data.error_code = error.number();
            data.error_message = error.message.map(StrBytes::from_string);
        }
        let topic_id = ottla_protocol::Uuid::from_bytes(partition.topic_id.0);
        match responses.last_mut() {
            Some(last) if last.topic_id == topic_id => last.partitions.push(data),
            _ => responses.push(ShareAcknowledgeTopicResponse {
                topic_id,
                partitions: vec![data],
                ..Default::default()
            }),
        }
    }
    ShareAcknowledgeResponse {
        acquisition_lock_timeout_ms: lock_duration_ms.min(i64::from(i32::MAX)) as i32,
        responses,
        node_endpoints: node_endpoints(cx, misdirected),
        ..Default::default()
    }
}

fn leader(cx: &Cx, wanted: TopicPartition) -> LeaderIdAndEpoch {
    let Ok(partition) = share_request::partition(cx, wanted) else {
        return LeaderIdAndEpoch::default();
    };
    let leadership = partition.leadership();
    LeaderIdAndEpoch {
        leader_id: leadership.leader,
        leader_epoch: leadership.leader_epoch,
        ..Default::default()
    }
}
