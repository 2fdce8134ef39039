//! DeleteRecords (key 21), versions 0-2. KIP-107.
//!
//! - Moves the log start offset up; -1 means the high watermark.
//! - Refused for topics that are compacted only, as in Kafka.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::DeleteRecordsRequest;
use ottla_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use crate::cluster::Topic;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let topics = request.topics.iter().map(|wanted| {
        let topic = cx.broker.cluster.topic(&wanted.name);
        let partitions = wanted.partitions.iter().map(|want| {
            let result = delete(cx, topic.as_deref(), want.partition_index, want.offset);
            let response =
                DeleteRecordsPartitionResult::default().with_partition_index(want.partition_index);
            match result {
                Ok(low) => response.with_low_watermark(low),
                Err(error) => response
                    .with_low_watermark(-1)
                    .with_error_code(error.number()),
            }
        });
        DeleteRecordsTopicResult::default()
            .with_name(wanted.name.clone())
            .with_partitions(partitions.collect())
    });
    DeleteRecordsResponse::default().with_topics(topics.collect())
}

fn delete(cx: &Cx, topic: Option<&Topic>, index: i32, offset: i64) -> Result<i64, ApiError> {
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let topic = topic.ok_or(unknown)?;
    let partition = topic.partition(index).ok_or(unknown)?;
    if topic.is_internal() {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION.into());
    }
    if partition.leader() != cx.node.id {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
    }
    if !topic.config().cleanup_policy.delete {
        return Err(ErrorCode::POLICY_VIOLATION.into());
    }
    let end = partition.log.end_offset();
    let offset = if offset == -1 { end } else { offset };
    if offset < 0 || offset > end {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE.into());
    }
    let low = partition.log.delete_records_before(offset, cx.now())?;
    cx.broker.shares.log_start_moved(&cx.broker, &partition);
    Ok(low)
}
