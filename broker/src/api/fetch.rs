//! Fetch (key 1), versions 4-18. KIP-74, KIP-98, KIP-320, KIP-392, KIP-516 (v13: topic ids).
//!
//! - Record bytes are slices of the mapped segment, sent from where they lie.
//! - The first batch of an answer is always whole, whatever the limits say; after it the limits hold.
//! - With less than MinBytes to read the request waits, up to MaxWaitMs, for a publish, a change of
//!   leader or the end of the partition.
//! - Fetch sessions (KIP-227) are declined: session id 0 tells the client to send full requests.
//! - zstd goes to every version, as measured on Kafka 4.4.0, although KIP-110 speaks of v10.
//! - `records` is never null; a null from an empty partition breaks clients.

use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::wait::{Registration, Signal, Woken};
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use ottla_protocol::messages::fetch_response::{
    AbortedTransaction, FetchResponse, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use ottla_protocol::messages::{BrokerId, FetchRequest, ProducerId, TopicName};
use ottla_storage::{Bound, ReadSlice};

use super::Answer;
use super::endpoints::node_endpoints;
use crate::clock::WireDeadline;
use crate::cluster::{Partition, Topic};
use crate::context::Cx;
use crate::error_code::ApiError;

/// The session epochs of a request that carries all its partitions.
const FULL_EPOCHS: [i32; 2] = [0, -1];

pub(super) async fn handle(cx: &Cx, request: FetchRequest) -> Answer<FetchResponse> {
    if !FULL_EPOCHS.contains(&request.session_epoch) {
        let code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        return FetchResponse::default().with_error_code(code.0).into();
    }
    let deadline = WireDeadline::after(i64::from(request.max_wait_ms));
    let mut pass = read_all(cx, &request);
    if !pass.answers(&request) {
        let signal = Signal::new();
        let _registrations = register(cx, &request, &signal);
        loop {
            pass = read_all(cx, &request);
            if pass.answers(&request) || deadline.passed() {
                break;
            }
            if cx.connection.park(&signal, deadline).await != Woken::Fired {
                pass = read_all(cx, &request);
                break;
            }
            signal.rearm();
        }
    }
    pass.respond(cx)
}

/// What one look at all partitions found.
struct Pass {
    topics: Vec<FetchableTopicResponse>,
    bytes: usize,
    failed: bool,
    wrong_leader: bool,
}

impl Pass {
    fn answers(&self, request: &FetchRequest) -> bool {
        self.failed
            || request.topics.is_empty()
            || request.max_wait_ms <= 0
            || self.bytes >= request.min_bytes.max(0) as usize
                && (self.bytes > 0 || request.min_bytes <= 0)
    }

    fn respond(self, cx: &Cx) -> Answer<FetchResponse> {
        let partitions = self.topics.iter().flat_map(|t| &t.partitions);
        let records: Vec<Bytes> = partitions
            .filter_map(|p| p.records.clone())
            .filter(|r| !r.is_empty())
            .collect();
        cx.broker.metrics.fetched(self.bytes);
        let response = FetchResponse::default()
            .with_responses(self.topics)
            .with_node_endpoints(node_endpoints(cx, self.wrong_leader));
        Answer::Records(response, records)
    }
}

fn find(cx: &Cx, wanted: &FetchTopic) -> Result<Arc<Topic>, ErrorCode> {
    if cx.version >= 13 {
        cx.broker
            .cluster
            .topic_by_id(wanted.topic_id)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
    } else {
        cx.broker
            .cluster
            .topic(&wanted.topic)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    }
}

fn register(cx: &Cx, request: &FetchRequest, signal: &Arc<Signal>) -> Vec<Registration> {
    let mut registrations = vec![];
    for wanted in &request.topics {
        let Ok(topic) = find(cx, wanted) else {
            continue;
        };
        for want in &wanted.partitions {
            if let Some(partition) = topic.partition(want.partition) {
                registrations.push(partition.waiters.register(signal));
            }
        }
    }
    registrations
}

fn read_all(cx: &Cx, request: &FetchRequest) -> Pass {
    let limit = cx
        .broker
        .config()
        .network
        .fetch_max_bytes
        .min(request.max_bytes)
        .max(0) as usize;
    let mut pass = Pass {
        topics: vec![],
        bytes: 0,
        failed: false,
        wrong_leader: false,
    };
    for wanted in &request.topics {
        let topic = find(cx, wanted);
        let mut partitions = Vec::with_capacity(wanted.partitions.len());
        for want in &wanted.partitions {
            let room = limit.saturating_sub(pass.bytes);
            let found = topic.as_ref().map_err(|&code| code).and_then(|topic| {
                topic
                    .partition(want.partition)
                    .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            });
            let data = match found {
                Ok(partition) => read_one(cx, request, want, &partition, room, pass.bytes == 0),
                Err(code) => failure(want.partition, code),
            };
            pass.bytes += data.records.as_ref().map_or(0, Bytes::len);
            pass.failed |= data.error_code != 0;
            pass.wrong_leader |= data.error_code == ErrorCode::NOT_LEADER_OR_FOLLOWER.0;
            partitions.push(data);
        }
        pass.topics.push(
            FetchableTopicResponse::default()
                .with_topic(TopicName(wanted.topic.0.clone()))
                .with_topic_id(wanted.topic_id)
                .with_partitions(partitions),
        );
    }
    pass
}

/// The epoch that a client believes in against the one in force (KIP-320).
pub(super) fn check_epoch(asked: i32, leadership_epoch: i32) -> Result<(), ErrorCode> {
    match asked {
        -1 => Ok(()),
        asked if asked < leadership_epoch => Err(ErrorCode::FENCED_LEADER_EPOCH),
        asked if asked > leadership_epoch => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
        _ => Ok(()),
    }
}

fn read_one(
    cx: &Cx,
    request: &FetchRequest,
    want: &FetchPartition,
    partition: &Partition,
    room: usize,
    first: bool,
) -> PartitionData {
    let leadership = partition.leadership();
    if leadership.leader != cx.node.id {
        let leader = LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(leadership.leader))
            .with_leader_epoch(leadership.leader_epoch);
        return failure(want.partition, ErrorCode::NOT_LEADER_OR_FOLLOWER)
            .with_current_leader(leader);
    }
    if let Err(code) = check_epoch(want.current_leader_epoch, leadership.leader_epoch) {
        return failure(want.partition, code);
    }
    let bound = if request.isolation_level == 1 {
        Bound::LastStable
    } else {
        Bound::LogEnd
    };
    let max = room.min(want.partition_max_bytes.max(0) as usize);
    match partition.log.read(want.fetch_offset, max, first, bound) {
        Ok(slice) => success(want.partition, slice, bound),
        Err(error) => failure(want.partition, ApiError::from(error).code),
    }
}

fn success(index: i32, slice: ReadSlice, bound: Bound) -> PartitionData {
    let aborted = (bound == Bound::LastStable).then(|| {
        let aborted = slice.aborted.iter().map(|txn| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(txn.producer_id))
                .with_first_offset(txn.first_offset)
        });
        aborted.collect()
    });
    PartitionData::default()
        .with_partition_index(index)
        .with_high_watermark(slice.high_watermark)
        .with_last_stable_offset(slice.last_stable_offset)
        .with_log_start_offset(slice.log_start_offset)
        .with_aborted_transactions(aborted)
        .with_preferred_read_replica(BrokerId(-1))
        .with_records(Some(slice.bytes))
}

fn failure(index: i32, code: ErrorCode) -> PartitionData {
    PartitionData::default()
        .with_partition_index(index)
        .with_error_code(code.0)
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_aborted_transactions(None)
        .with_preferred_read_replica(BrokerId(-1))
        .with_records(Some(Bytes::new()))
}
