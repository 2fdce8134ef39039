//! ListOffsets (key 2), versions 1-11. KIP-79, KIP-207, KIP-405, KIP-734, KIP-1023.
//!
//! - Timestamps: a time, or -1 latest (the last stable offset under read_committed), -2 earliest,
//!   -3 the record with the greatest timestamp (v7+), -4 earliest local (v8+), -5 latest in remote
//!   storage (v9+), -6 earliest not yet there (v11+). Nothing is in remote storage, so -5 and -6
//!   find nothing.
//! - A special value that the version does not know gets UNSUPPORTED_VERSION.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::ListOffsetsRequest;
use ottla_protocol::messages::list_offsets_request::ListOffsetsPartition;
use ottla_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};

use super::fetch_read::check_leader;
use crate::cluster::Partition;
use crate::context::Cx;
use crate::error_code::ApiError;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING: i64 = -6;

/// An offset, the timestamp of its record, and the leader epoch that wrote it.
struct Found {
    offset: i64,
    timestamp: i64,
    epoch: i32,
}

impl Found {
    const NOTHING: Self = Self {
        offset: -1,
        timestamp: -1,
        epoch: -1,
    };
}

pub(super) async fn handle(cx: &Cx, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let topics = request.topics.iter().map(|wanted| {
        let topic = cx.broker.cluster.topic(&wanted.name);
        let partitions = wanted.partitions.iter().map(|want| {
            let partition = topic
                .as_ref()
                .and_then(|t| t.partition(want.partition_index));
            let found = partition
                .ok_or_else(|| ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.into())
                .and_then(|p| find(cx, &p, want, request.isolation_level == 1));
            respond(want.partition_index, found)
        });
        ListOffsetsTopicResponse {
            name: wanted.name.clone(),
            partitions: partitions.collect(),
            ..Default::default()
        }
    });
    ListOffsetsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn find(
    cx: &Cx,
    partition: &Partition,
    want: &ListOffsetsPartition,
    committed: bool,
) -> Result<Found, ApiError> {
    let leadership = partition.leadership();
    check_leader(cx.node.id, want.current_leader_epoch, &leadership)?;
    let log = &partition.log;
    let since = match want.timestamp {
        EARLIEST_PENDING => 11,
        LATEST_TIERED => 9,
        EARLIEST_LOCAL => 8,
        MAX_TIMESTAMP => 7,
        timestamp if timestamp < EARLIEST_PENDING => i16::MAX,
        _ => 1,
    };
    if cx.version < since {
        return Err(ErrorCode::UNSUPPORTED_VERSION.into());
    }
    let epoch_at = |offset| log.epoch_for_offset(offset).unwrap_or(-1);
    Ok(match want.timestamp {
        LATEST => {
            let offset = if committed {
                log.last_stable_offset()
            } else {
                log.end_offset()
            };
            Found {
                offset,
                timestamp: -1,
                epoch: leadership.leader_epoch,
            }
        }
        EARLIEST | EARLIEST_LOCAL => {
            let offset = log.start_offset();
            Found {
                offset,
                timestamp: -1,
                // Of an empty log, the epoch that will write its first record.
                epoch: log
                    .epoch_for_offset(offset)
                    .unwrap_or(leadership.leader_epoch),
            }
        }
        LATEST_TIERED | EARLIEST_PENDING => Found::NOTHING,
        MAX_TIMESTAMP => at(log.max_timestamp(), epoch_at),
        timestamp => at(log.offset_for_timestamp(timestamp), epoch_at),
    })
}

fn at(found: Option<(i64, i64)>, epoch_at: impl Fn(i64) -> i32) -> Found {
    found.map_or(Found::NOTHING, |(offset, timestamp)| Found {
        offset,
        timestamp,
        epoch: epoch_at(offset),
    })
}

fn respond(index: i32, found: Result<Found, ApiError>) -> ListOffsetsPartitionResponse {
    let response = ListOffsetsPartitionResponse {
        partition_index: index,
        ..Default::default()
    };
    match found {
        Ok(found) => ListOffsetsPartitionResponse {
            offset: found.offset,
            timestamp: found.timestamp,
            leader_epoch: found.epoch,
            ..response
        },
        Err(error) => ListOffsetsPartitionResponse {
            error_code: error.number(),
            offset: -1,
            timestamp: -1,
            leader_epoch: -1,
            ..response
        },
    }
}
