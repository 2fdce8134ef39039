//! Produce (key 0), versions 3-13, advertised from 0. KIP-98, KIP-219, KIP-467, KIP-516 (v13: topic ids).
//!
//! - librdkafka wants to see version 0 advertised (KAFKA-18659); versions 0 to 2 end the connection, as in Kafka.
//! - acks 0 gets no answer; an error then ends the connection, so that the client looks again.
//! - acks all is refused with NOT_ENOUGH_REPLICAS while the ISR is under `min.insync.replicas`.
//! - A batch is stored as the producer encoded it, unless the topic's `compression.type` names another
//!   codec; only base offset and leader epoch are set.
//! - Records that break the topic's rules are named one by one (KIP-467), in Kafka's words.

use std::sync::Arc;

use bytes::Bytes;
use ottla_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, ProduceResponse,
    TopicProduceResponse,
};
use ottla_protocol::messages::{BrokerId, ProduceRequest};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_storage::AppendInfo;

use super::Answer;
use super::endpoints::node_endpoints;
use crate::append::{self, Refused, Write};
use crate::cluster::{Partition, Topic};
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: ProduceRequest) -> Answer<ProduceResponse> {
    if cx.version < 3 {
        return Answer::Close(format!(
            "client {:?} sent Produce v{}: message formats before v2 are gone since Kafka 4.0, update the client",
            cx.client_id(),
            cx.version
        ));
    }
    let refused = refuse_whole(&request);
    let mut wrong_leader = false;
    let mut failed = None;
    let responses = request
        .topic_data
        .iter()
        .map(|topic| {
            let target = find(cx, topic);
            let partitions = topic.partition_data.iter().map(|data| {
                let result = match (&refused, &target) {
                    (Some(error), _) => Err(error.clone().into()),
                    (None, Ok(target)) => append(cx, &request, target, data),
                    (None, Err(error)) => Err(error.clone().into()),
                };
                if let Err(Refused { error, .. }) = &result {
                    wrong_leader |= error.code == ErrorCode::NOT_LEADER_OR_FOLLOWER;
                    failed = Some(error.clone());
                }
                respond(cx, target.as_ref().ok(), data.index, result)
            });
            TopicProduceResponse::default()
                .with_name(topic.name.clone())
                .with_topic_id(topic.topic_id)
                .with_partition_responses(partitions.collect())
        })
        .collect();
    if request.acks == 0 {
        return match failed {
            None => Answer::Nothing,
            Some(error) => Answer::Close(format!("a produce with acks=0 failed: {error}")),
        };
    }
    ProduceResponse::default()
        .with_responses(responses)
        .with_node_endpoints(node_endpoints(cx, wrong_leader))
        .into()
}

/// The error that every partition of the request gets.
fn refuse_whole(request: &ProduceRequest) -> Option<ApiError> {
    if !matches!(request.acks, -1..=1) {
        return Some(ErrorCode::INVALID_REQUIRED_ACKS.into());
    }
    request.transactional_id.as_ref().map(|_| {
        ApiError::new(
            ErrorCode::UNSUPPORTED_VERSION,
            "Transactions are not served by this version.",
        )
    })
}

fn find(cx: &Cx, wanted: &TopicProduceData) -> Result<Arc<Topic>, ApiError> {
    let topic = if cx.version >= 13 {
        cx.broker
            .cluster
            .topic_by_id(wanted.topic_id)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?
    } else {
        debug_assert_eq!(wanted.topic_id, Uuid::nil());
        cx.broker
            .cluster
            .topic(&wanted.name)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?
    };
    if topic.is_internal() {
        let message = format!("Cannot append to internal topic {}", topic.name);
        return Err(ApiError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    Ok(topic)
}

fn append(
    cx: &Cx,
    request: &ProduceRequest,
    topic: &Topic,
    data: &PartitionProduceData,
) -> Result<AppendInfo, Refused> {
    let partition = topic
        .partition(data.index)
        .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let leadership = partition.leadership();
    if leadership.leader != cx.node.id {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
    }
    let empty = Bytes::new();
    let write = Write {
        records: data.records.as_ref().unwrap_or(&empty),
        leadership: &leadership,
        all_in_sync: request.acks == -1,
        produce_version: cx.version,
    };
    let stored = append::append(&cx.broker, topic, &partition, &write).inspect_err(|refused| {
        tracing::debug!(?partition, client = cx.client_id(), error = %refused.error, "a produced batch was refused");
    })?;
    if stored.replica_lost {
        return Err(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND.into());
    }
    Ok(stored.info)
}

fn respond(
    cx: &Cx,
    topic: Option<&Arc<Topic>>,
    index: i32,
    result: Result<AppendInfo, Refused>,
) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default()
        .with_index(index)
        .with_error_message(None);
    match result {
        Ok(info) => response
            .with_base_offset(info.base_offset)
            .with_log_append_time_ms(info.log_append_time.unwrap_or(-1))
            .with_log_start_offset(info.log_start_offset),
        Err(Refused { error, records }) => {
            let leader = topic
                .and_then(|t| t.partition(index))
                .filter(|_| error.code == ErrorCode::NOT_LEADER_OR_FOLLOWER)
                .map(|p| leader(&p))
                .unwrap_or_default();
            debug_assert!(cx.version >= 3);
            response
                .with_error_code(error.number())
                .with_error_message(error.message.map(StrBytes::from_string))
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
                .with_log_start_offset(-1)
                .with_record_errors(records.into_iter().map(record_error).collect())
                .with_current_leader(leader)
        }
    }
}

fn record_error((index, text): (i32, String)) -> BatchIndexAndErrorMessage {
    BatchIndexAndErrorMessage::default()
        .with_batch_index(index)
        .with_batch_index_error_message(Some(StrBytes::from_string(text)))
}

fn leader(partition: &Partition) -> LeaderIdAndEpoch {
    let leadership = partition.leadership();
    LeaderIdAndEpoch::default()
        .with_leader_id(BrokerId(leadership.leader))
        .with_leader_epoch(leadership.leader_epoch)
}
