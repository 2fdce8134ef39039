//! OffsetFetch (key 9), versions 1-10. KIP-709 (several groups, v8), KIP-848 (members of consumer groups,
//! v9; topic ids, v10).
//!
//! - A partition without offset, an unknown group and (by name) an unknown topic answer -1 without an
//!   error. Topics null: all that the group has offsets of.
//! - An error of the group stands at the group (v8 on), at the top (v2 to 7), at each partition (v1).
//! - `require_stable` asks for what transactions leave open; there are none.

use std::collections::BTreeMap;

use ottla_coordinator::group::offsets::{CommittedOffset, GroupOffsets};
use ottla_coordinator::types::Uuid as TopicId;
use ottla_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use ottla_protocol::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use ottla_protocol::messages::{OffsetFetchRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::shard;
use super::named::whole_once;
use crate::context::Cx;
use crate::error_code::ApiError;

/// First version that asks for several groups.
const BATCHED: i16 = 8;
/// First version that names topics by id.
const BY_ID: i16 = 10;

pub(super) async fn handle(cx: &Cx, request: OffsetFetchRequest) -> OffsetFetchResponse {
    if cx.version >= BATCHED {
        let wanted = whole_once(&request.groups, |g| g.topics.is_none(), |g| &g.group_id);
        let groups = wanted.map(|wanted| group(cx, wanted));
        return OffsetFetchResponse::default().with_groups(groups.collect());
    }
    match one_group(cx, &request) {
        Ok(topics) => OffsetFetchResponse::default().with_topics(topics),
        Err(error) if cx.version >= 2 => {
            OffsetFetchResponse::default().with_error_code(error.number())
        }
        Err(error) => {
            let topics = request.topics.iter().flatten();
            let topics = topics.map(|wanted| topic(wanted, None, error.number()));
            OffsetFetchResponse::default().with_topics(topics.collect())
        }
    }
}

// --- Up to version 7 --------------------------------------------------------------------------------

fn one_group(
    cx: &Cx,
    request: &OffsetFetchRequest,
) -> Result<Vec<OffsetFetchResponseTopic>, ApiError> {
    shard(cx, &request.group_id)?.ask(&cx.broker, |machine| {
        let offsets = machine.fetch_offsets(&request.group_id, None, -1)?;
        Ok(match &request.topics {
            Some(topics) => topics
                .iter()
                .map(|wanted| topic(wanted, offsets, 0))
                .collect(),
            None => offsets
                .into_iter()
                .flat_map(GroupOffsets::topics)
                .map(|(name, partitions)| whole_topic(name, partitions))
                .collect(),
        })
    })?
}

fn topic(
    wanted: &OffsetFetchRequestTopic,
    offsets: Option<&GroupOffsets>,
    code: i16,
) -> OffsetFetchResponseTopic {
    let committed = offsets.and_then(|offsets| offsets.topic(&wanted.name));
    let partitions = wanted.partition_indexes.iter().map(|&index| {
        let found = committed.and_then(|partitions| partitions.get(&index));
        partition(index, found).with_error_code(code)
    });
    OffsetFetchResponseTopic::default()
        .with_name(wanted.name.clone())
        .with_partitions(partitions.collect())
}

fn whole_topic(
    name: &str,
    partitions: &BTreeMap<i32, CommittedOffset>,
) -> OffsetFetchResponseTopic {
    let partitions = partitions
        .iter()
        .map(|(&index, offset)| partition(index, Some(offset)));
    OffsetFetchResponseTopic::default()
        .with_name(topic_name(name))
        .with_partitions(partitions.collect())
}

fn partition(index: i32, found: Option<&CommittedOffset>) -> OffsetFetchResponsePartition {
    let (offset, leader_epoch, metadata) = contents(found);
    OffsetFetchResponsePartition::default()
        .with_partition_index(index)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(leader_epoch)
        .with_metadata(Some(metadata))
}

// --- From version 8 on ------------------------------------------------------------------------------

fn group(cx: &Cx, wanted: &OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    let response = OffsetFetchResponseGroup::default().with_group_id(wanted.group_id.clone());
    match topics(cx, wanted) {
        Ok(topics) => response.with_topics(topics),
        Err(error) => response.with_error_code(error.number()),
    }
}

fn topics(
    cx: &Cx,
    wanted: &OffsetFetchRequestGroup,
) -> Result<Vec<OffsetFetchResponseTopics>, ApiError> {
    let (member_id, epoch) = (wanted.member_id.as_deref(), wanted.member_epoch);
    shard(cx, &wanted.group_id)?.ask(&cx.broker, |machine| {
        let offsets = machine.fetch_offsets(&wanted.group_id, member_id, epoch)?;
        Ok(match &wanted.topics {
            Some(topics) => topics
                .iter()
                .map(|wanted| some_partitions(cx, wanted, offsets))
                .collect(),
            None => offsets
                .into_iter()
                .flat_map(GroupOffsets::topics)
                .filter_map(|(name, partitions)| all_partitions(cx, name, partitions))
                .collect(),
        })
    })?
}

fn some_partitions(
    cx: &Cx,
    wanted: &OffsetFetchRequestTopics,
    offsets: Option<&GroupOffsets>,
) -> OffsetFetchResponseTopics {
    let response = OffsetFetchResponseTopics::default()
        .with_name(wanted.name.clone())
        .with_topic_id(wanted.topic_id);
    let indexes = wanted.partition_indexes.iter();
    let (committed, id) = if cx.version >= BY_ID {
        let Some(topic) = cx.broker.cluster.topic_by_id(wanted.topic_id) else {
            let unknown = indexes.map(|&index| {
                partition_of_group(index, None).with_error_code(ErrorCode::UNKNOWN_TOPIC_ID.0)
            });
            return response.with_partitions(unknown.collect());
        };
        let id = TopicId(*topic.id.as_bytes());
        (offsets.and_then(|offsets| offsets.topic(&topic.name)), id)
    } else {
        let committed = offsets.and_then(|offsets| offsets.topic(&wanted.name));
        (committed, TopicId::ZERO)
    };
    let partitions = indexes.map(|&index| {
        let found = committed.and_then(|partitions| partitions.get(&index));
        partition_of_group(index, found.filter(|offset| offset.is_of(id)))
    });
    response.with_partitions(partitions.collect())
}

/// All that is committed of a topic; by id nothing of one that is unknown.
fn all_partitions(
    cx: &Cx,
    name: &str,
    partitions: &BTreeMap<i32, CommittedOffset>,
) -> Option<OffsetFetchResponseTopics> {
    let mut response = OffsetFetchResponseTopics::default();
    if cx.version >= BY_ID {
        response.topic_id = cx.broker.cluster.topic(name)?.id;
    } else {
        response.name = topic_name(name);
    }
    let partitions = partitions
        .iter()
        .map(|(&index, offset)| partition_of_group(index, Some(offset)));
    Some(response.with_partitions(partitions.collect()))
}

fn partition_of_group(
    index: i32,
    found: Option<&CommittedOffset>,
) -> OffsetFetchResponsePartitions {
    let (offset, leader_epoch, metadata) = contents(found);
    OffsetFetchResponsePartitions::default()
        .with_partition_index(index)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(leader_epoch)
        .with_metadata(Some(metadata))
}

// --- Both -------------------------------------------------------------------------------------------

/// Offset, leader epoch and metadata as they are answered.
fn contents(found: Option<&CommittedOffset>) -> (i64, i32, StrBytes) {
    let Some(found) = found else {
        return (-1, -1, StrBytes::from_static_str(""));
    };
    let metadata = if found.metadata.is_empty() {
        StrBytes::from_static_str("")
    } else {
        StrBytes::from_string(found.metadata.to_string())
    };
    (found.offset, found.leader_epoch, metadata)
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
