//! Produce (key 0), versions 3-13, advertised from 0. KIP-98, KIP-219, KIP-467, KIP-516 (v13: topic ids).
//!
//! - librdkafka wants to see version 0 advertised (KAFKA-18659); versions 0 to 2 end the connection, as in Kafka.
//! - acks 0 gets no answer; an error then ends the connection, so that the client looks again.
//! - acks all is refused with NOT_ENOUGH_REPLICAS while the ISR is under `min.insync.replicas`.
//! - A batch is stored as the producer encoded it; only base offset and leader epoch are set.

use std::sync::Arc;

use bytes::Bytes;
use ottla_protocol::batch::{self, BatchError};
use ottla_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    ProduceResponse, TopicProduceResponse,
};
use ottla_protocol::messages::{BrokerId, ProduceRequest};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_storage::{AppendInfo, AppendOptions, Origin};

use super::Answer;
use crate::cluster::{Partition, Topic};
use crate::config::TimestampType;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::log_config::produce_checks;

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
                    (Some(error), _) => Err(error.clone()),
                    (None, Ok(target)) => append(cx, &request, target, data),
                    (None, Err(error)) => Err(error.clone()),
                };
                if let Err(error) = &result {
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
    let endpoints = if wrong_leader {
        node_endpoints(cx)
    } else {
        vec![]
    };
    ProduceResponse::default()
        .with_responses(responses)
        .with_node_endpoints(endpoints)
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
) -> Result<AppendInfo, ApiError> {
    let partition = topic
        .partition(data.index)
        .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let leadership = partition.leadership();
    if leadership.leader != cx.node.id {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
    }
    let config = topic.config();
    if request.acks == -1 {
        let need = (config.min_insync_replicas.max(1) as usize).min(leadership.replicas.len());
        if leadership.isr.len() < need {
            let message = format!(
                "The size of the current ISR {:?} is insufficient to satisfy the min.isr requirement of {need} for partition {partition:?}",
                leadership.isr
            );
            return Err(ApiError::new(ErrorCode::NOT_ENOUGH_REPLICAS, message));
        }
    }
    let empty = Bytes::new();
    let records = data.records.as_ref().unwrap_or(&empty);
    let now = cx.now();
    let valid = batch::validate_produce(records, &produce_checks(&config, now, cx.version)).map_err(|error| {
        cx.broker.metrics.produce_refused.inc();
        tracing::debug!(?partition, client = cx.client_id(), %error, "a produced batch was refused");
        describe(&error)
    })?;
    if valid.header.is_transactional() || valid.header.is_control() {
        return Err(ApiError::new(
            ErrorCode::INVALID_TXN_STATE,
            "Transactions are not served by this version.",
        ));
    }
    let options = AppendOptions {
        leader_epoch: leadership.leader_epoch,
        now,
        log_append_time: config.message_timestamp_type == TimestampType::LogAppendTime,
        origin: Origin::Client,
    };
    let info = partition
        .log
        .append(&valid.records, &valid.header, options)?;
    cx.broker
        .metrics
        .produced(valid.records.len(), valid.header.count);
    Ok(info)
}

fn describe(error: &BatchError) -> ApiError {
    let mut described = ApiError::from(error);
    if described.code == ErrorCode::INVALID_RECORD {
        described.message =
            Some("One or more records have been rejected due to invalid record(s)".to_owned());
    }
    described
}

fn respond(
    cx: &Cx,
    topic: Option<&Arc<Topic>>,
    index: i32,
    result: Result<AppendInfo, ApiError>,
) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default()
        .with_index(index)
        .with_error_message(None);
    match result {
        Ok(info) => response
            .with_base_offset(info.base_offset)
            .with_log_append_time_ms(info.log_append_time.unwrap_or(-1))
            .with_log_start_offset(info.log_start_offset),
        Err(error) => {
            let leader = topic
                .and_then(|t| t.partition(index))
                .filter(|_| error.code == ErrorCode::NOT_LEADER_OR_FOLLOWER)
                .map(|p| leader(&p))
                .unwrap_or_default();
            let records = match error.code {
                ErrorCode::INVALID_RECORD => vec![BatchIndexAndErrorMessage::default()],
                _ => vec![],
            };
            debug_assert!(cx.version >= 3);
            response
                .with_error_code(error.number())
                .with_error_message(error.message.map(StrBytes::from_string))
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
                .with_log_start_offset(-1)
                .with_record_errors(records)
                .with_current_leader(leader)
        }
    }
}

fn leader(partition: &Partition) -> LeaderIdAndEpoch {
    let leadership = partition.leadership();
    LeaderIdAndEpoch::default()
        .with_leader_id(BrokerId(leadership.leader))
        .with_leader_epoch(leadership.leader_epoch)
}

fn node_endpoints(cx: &Cx) -> Vec<NodeEndpoint> {
    cx.broker
        .endpoints(&cx.connection)
        .into_iter()
        .map(|e| {
            NodeEndpoint::default()
                .with_node_id(BrokerId(e.id))
                .with_host(StrBytes::from_string(e.host))
                .with_port(e.port)
                .with_rack(e.rack.map(StrBytes::from_string))
        })
        .collect()
}
