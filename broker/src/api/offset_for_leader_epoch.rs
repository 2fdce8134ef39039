//! OffsetForLeaderEpoch (key 23), versions 2-4. KIP-320.
//!
//! Where an epoch ended: the greatest epoch not above the one asked for, and the first offset after it.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::OffsetForLeaderEpochRequest;
use ottla_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use super::fetch_read::check_leader;
use crate::context::Cx;

pub(super) async fn handle(
    cx: &Cx,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.iter().map(|wanted| {
        let topic = cx.broker.cluster.topic(&wanted.topic);
        let partitions = wanted.partitions.iter().map(|want| {
            let found = topic
                .as_ref()
                .and_then(|t| t.partition(want.partition))
                .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
                .and_then(|partition| {
                    let leadership = partition.leadership();
                    check_leader(cx.node.id, want.current_leader_epoch, &leadership)?;
                    if want.leader_epoch < 0 {
                        return Ok((-1, -1));
                    }
                    if want.leader_epoch == leadership.leader_epoch {
                        return Ok((leadership.leader_epoch, partition.log.end_offset()));
                    }
                    Ok(partition.log.end_offset_for_epoch(want.leader_epoch))
                });
            let response = EpochEndOffset::default().with_partition(want.partition);
            match found {
                Ok((epoch, end)) => response.with_leader_epoch(epoch).with_end_offset(end),
                Err(code) => response
                    .with_error_code(code.0)
                    .with_leader_epoch(-1)
                    .with_end_offset(-1),
            }
        });
        OffsetForLeaderTopicResult::default()
            .with_topic(wanted.topic.clone())
            .with_partitions(partitions.collect())
    });
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}
