//! What ShareFetch and ShareAcknowledge have in common: looking up share partitions, and applying
//! acknowledgements.

use std::sync::Arc;

use ottla_coordinator::share::cell::Ticket;
use ottla_coordinator::share::session::{SessionError, SessionPartition};
use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::share::types::{AckBatch, Limits};
use ottla_coordinator::types::TopicPartition;
use ottla_protocol::{ErrorCode, StrBytes};

use crate::cluster::Partition;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::metrics::share_requests::{Asked, TopicsAsked};
use crate::records;
use crate::shares::{Handle, Slot};

/// RENEW on the wire (KIP-1222).
const RENEW: i8 = 4;

/// One request's group, member and limits.
pub(super) struct Who<'a> {
    pub(super) group: Arc<str>,
    pub(super) member: &'a str,
    pub(super) limits: Limits,
    /// Whether RENEW may occur: v2 and `IsRenewAck`.
    pub(super) renews: bool,
}

/// A nullable text, null as the empty one.
pub(super) fn text(value: Option<&StrBytes>) -> &str {
    value.map_or("", |text| text)
}

/// The error code of a refused share session.
pub(super) fn session_error(error: SessionError) -> ErrorCode {
    match error {
        SessionError::NotFound => ErrorCode::SHARE_SESSION_NOT_FOUND,
        SessionError::InvalidEpoch => ErrorCode::INVALID_SHARE_SESSION_EPOCH,
        SessionError::LimitReached => ErrorCode::SHARE_SESSION_LIMIT_REACHED,
        SessionError::InvalidRequest => ErrorCode::INVALID_REQUEST,
    }
}

/// The partition behind a topic id and an index.
pub(super) fn partition(cx: &Cx, wanted: TopicPartition) -> Result<Arc<Partition>, ApiError> {
    let id = ottla_protocol::Uuid::from_bytes(wanted.topic_id.0);
    let topic = cx
        .broker
        .cluster
        .topic_by_id(id)
        .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
    topic
        .partition(wanted.partition)
        .ok_or_else(|| ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.into())
}

/// The slot behind a partition of a session, remembered there.
pub(super) fn slot(
    cx: &Cx,
    group: &Arc<str>,
    listed: &SessionPartition<Handle>,
) -> Result<Arc<Slot>, ApiError> {
    if let Some(slot) = listed
        .handle()
        .filter(|slot| slot.is_current() && slot.leader == cx.node.id)
    {
        return Ok(slot);
    }
    let partition = partition(cx, listed.partition)?;
    let key = ShareKey {
        group_id: Arc::clone(group),
        partition: listed.partition,
    };
    let slot = cx
        .broker
        .shares
        .get(&cx.broker, cx.node.id, &key, &partition)?;
    listed.remember(Some(Arc::clone(&slot)));
    Ok(slot)
}

/// An acknowledgement that was accepted and is being written, or was refused.
pub(super) type Acknowledged = Result<Option<Ticket>, ApiError>;

/// A partition as the coordinators name it.
pub(super) fn at(topic_id: ottla_protocol::Uuid, partition: i32) -> TopicPartition {
    TopicPartition {
        topic_id: records::topic_id(topic_id),
        partition,
    }
}

/// The acknowledgements of a request, by partition; partitions without any are left out. A macro,
/// because ShareFetch and ShareAcknowledge carry the same fields in types of their own.
macro_rules! acknowledgements {
    ($request:expr) => {
        $request.topics.iter().flat_map(|topic| {
            let with_acks = topic.partitions.iter();
            let with_acks = with_acks.filter(|p| !p.acknowledgement_batches.is_empty());
            with_acks.map(|partition| {
                let batches = partition.acknowledgement_batches.iter().map(|b| AckBatch {
                    first: b.first_offset,
                    last: b.last_offset,
                    types: &b.acknowledge_types,
                });
                let wanted = share_request::at(topic.topic_id, partition.partition_index);
                (wanted, batches.collect::<Vec<_>>())
            })
        })
    };
}
pub(super) use acknowledgements;

/// Proposes the acknowledgements of a request.
pub(super) fn propose<'a>(
    cx: &Cx,
    who: &Who<'_>,
    acks: impl Iterator<Item = (TopicPartition, Vec<AckBatch<'a>>)>,
) -> Vec<(TopicPartition, Acknowledged)> {
    acks.map(|(wanted, batches)| (wanted, acknowledge(cx, who, wanted, &batches)))
        .collect()
}

/// Applies the acknowledgements of one partition; they hold once the ticket says so.
fn acknowledge(
    cx: &Cx,
    who: &Who<'_>,
    wanted: TopicPartition,
    batches: &[AckBatch<'_>],
) -> Acknowledged {
    let partition = partition(cx, wanted)?;
    if partition.leader() != cx.node.id {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
    }
    check(who, batches)?;
    let key = ShareKey {
        group_id: Arc::clone(&who.group),
        partition: wanted,
    };
    let slot = cx.broker.shares.held(&cx.broker, cx.node.id, &key)?;
    let now = cx.now();
    slot.follow_log_start();
    let ticket = slot
        .cell
        .acknowledge(now, who.member, batches, who.renews, &who.limits);
    // A refused one may have ended locks that were due.
    slot.settle(&cx.broker, now, &who.limits);
    let ticket = ticket?;
    count(cx, batches);
    Ok(Some(ticket))
}

/// The checks that need no state.
fn check(who: &Who<'_>, batches: &[AckBatch<'_>]) -> Result<(), ApiError> {
    let renews = batches.iter().any(|b| b.types.contains(&RENEW));
    if renews && !who.renews {
        return Err(ErrorCode::INVALID_REQUEST.into());
    }
    Ok(())
}

fn count(cx: &Cx, batches: &[AckBatch<'_>]) {
    const NAMES: [&str; 5] = ["Gap", "Accept", "Release", "Reject", "Renew"];
    for batch in batches {
        let records = batch.last.abs_diff(batch.first).saturating_add(1);
        let per_type = if batch.types.len() == 1 { records } else { 1 };
        for &kind in batch.types {
            if let Some(name) = usize::try_from(kind).ok().and_then(|k| NAMES.get(k)) {
                cx.broker.metrics.acknowledged(name, per_type);
            }
        }
    }
}

/// Counts acknowledgements, if there were any, by topic.
pub(super) fn count_acknowledged(cx: &Cx, topics: &TopicsAsked) {
    if !topics.is_empty() {
        let requests = &cx.broker.metrics.share.requests;
        requests.answered(&cx.broker.cluster, Asked::Acknowledgement, topics);
    }
}

/// Waits until an acknowledgement is committed.
pub(super) async fn settled(acknowledged: Acknowledged) -> Result<(), ApiError> {
    match acknowledged? {
        Some(ticket) => Ok(ticket.wait().await?),
        None => Ok(()),
    }
}
