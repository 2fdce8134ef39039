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
use ottla_protocol::batch::{self, BatchError, BatchHeader, RecordFault, ValidBatch};
use ottla_protocol::compression::Compression;
use ottla_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, ProduceResponse,
    TopicProduceResponse,
};
use ottla_protocol::messages::{BrokerId, ProduceRequest};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_storage::{AppendInfo, AppendOptions, Origin};

use super::Answer;
use super::endpoints::node_endpoints;
use crate::cluster::{Partition, Topic};
use crate::config::{CompressionType, TimestampType, TopicConfig};
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
    let config = topic.config();
    let need = if request.acks == -1 {
        leadership.min_isr(config.min_insync_replicas)
    } else {
        0
    };
    if leadership.isr.len() < need {
        let message = format!(
            "The size of the current ISR {:?} is insufficient to satisfy the min.isr requirement of {need} for partition {partition:?}",
            leadership.isr
        );
        return Err(ApiError::new(ErrorCode::NOT_ENOUGH_REPLICAS, message).into());
    }
    let empty = Bytes::new();
    let records = data.records.as_ref().unwrap_or(&empty);
    let now = cx.now();
    let checks = produce_checks(&config, now, cx.version);
    let checked = batch::validate_produce(records, &checks)
        .and_then(|valid| recode(valid, stored_codec(&config), checks.max_message_bytes));
    let valid = checked.map_err(|error| {
        cx.broker.metrics.produce_refused.inc();
        tracing::debug!(?partition, client = cx.client_id(), %error, "a produced batch was refused");
        Refused::batch(&error, &format!("{}-{}", topic.name, data.index))
    })?;
    if valid.header.is_transactional() || valid.header.is_control() {
        return Err(ApiError::new(
            ErrorCode::INVALID_TXN_STATE,
            "Transactions are not served by this version.",
        )
        .into());
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
    // A replica may have gone meanwhile.
    if partition.leadership().isr.len() < need {
        return Err(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND.into());
    }
    Ok(info)
}

/// The codec that a topic's batches are stored with, and its level where one is set; `None`: as they
/// come.
fn stored_codec(topic: &TopicConfig) -> Option<(Compression, Option<i32>)> {
    Some(match topic.compression_type {
        CompressionType::Producer => return None,
        CompressionType::Uncompressed => (Compression::None, None),
        CompressionType::Gzip => {
            let level = topic.compression_gzip_level;
            (Compression::Gzip, (level != -1).then_some(level))
        }
        CompressionType::Snappy => (Compression::Snappy, None),
        CompressionType::Lz4 => (Compression::Lz4, Some(topic.compression_lz4_level)),
        CompressionType::Zstd => (Compression::Zstd, Some(topic.compression_zstd_level)),
    })
}

/// The batch in the topic's own codec, if it has one.
fn recode(
    valid: ValidBatch,
    codec: Option<(Compression, Option<i32>)>,
    limit: usize,
) -> Result<ValidBatch, BatchError> {
    let Some((codec, level)) = codec else {
        return Ok(valid);
    };
    if valid.header.compression()? == codec {
        return Ok(valid);
    }
    let records = batch::recompress(&valid.records, codec, level)?;
    if records.len() > limit {
        let size = records.len();
        return Err(BatchError::TooLarge { size, limit });
    }
    let header = BatchHeader::parse(&records)?;
    Ok(ValidBatch {
        header,
        records,
        ..valid
    })
}

/// Why a partition's records were not stored, and what is wrong with which of them.
struct Refused {
    error: ApiError,
    records: Vec<BatchIndexAndErrorMessage>,
}

impl<E: Into<ApiError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            records: vec![],
        }
    }
}

impl Refused {
    /// A batch that was refused for `partition`, a topic and an index as `orders-3`.
    fn batch(error: &BatchError, partition: &str) -> Self {
        let BatchError::Rejected(rejected) = error else {
            return ApiError::from(error).into();
        };
        let faults: Vec<(i32, String)> = rejected
            .first
            .iter()
            .map(|(index, fault)| (*index, record_fault(*index, fault, partition)))
            .collect();
        let message = if rejected.is_timestamp() {
            "One or more records have been rejected due to invalid timestamp".to_owned()
        } else {
            let shown: Vec<String> = faults
                .iter()
                .take(3)
                .map(|(index, text)| format!("RecordError(batchIndex={index}, message='{text}')"))
                .collect();
            format!(
                "One or more records have been rejected due to {} record errors in total, and only \
                 showing the first three errors at most: [{}]",
                rejected.total,
                shown.join(", ")
            )
        };
        let records = faults.into_iter().map(|(index, text)| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(index)
                .with_batch_index_error_message(Some(StrBytes::from_string(text)))
        });
        Self {
            error: ApiError::new(ApiError::from(error).code, message),
            records: records.collect(),
        }
    }
}

/// What Kafka says of a record that breaks its topic's rules.
fn record_fault(index: i32, fault: &RecordFault, partition: &str) -> String {
    match fault {
        RecordFault::Timestamp {
            timestamp,
            from,
            to,
        } => format!(
            "Timestamp {timestamp} of message with offset {index} is out of range. \
             The timestamp should be within [{from}, {to}]"
        ),
        RecordFault::NullKey => format!(
            "Compacted topic cannot accept message without key in topic partition {partition}"
        ),
        other => other.to_string(),
    }
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
