//! What the handlers of groups share: which broker coordinates, and whether share groups are on.

use ottla_protocol::ErrorCode;

use crate::cluster::image::{CONSUMER_OFFSETS, SHARE_GROUP_STATE};
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::features::SHARE_PAUSE_VERSION;
use crate::groups::Shard;

/// The shard that coordinates `group`, if this broker leads it.
pub(super) fn shard(cx: &Cx, group: &str) -> Result<std::sync::Arc<Shard>, ApiError> {
    let partition = cx.broker.internal_partition(CONSUMER_OFFSETS, group)?;
    if partition.leader() != cx.node.id {
        return Err(ErrorCode::NOT_COORDINATOR.into());
    }
    cx.broker.groups.shard(&cx.broker, &partition)
}

/// Refuses share group requests while `share.version` is 0 (KIP-932).
pub(super) fn share_groups_on(cx: &Cx) -> Result<(), ErrorCode> {
    if cx.broker.feature_level("share.version") == 0 {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    Ok(())
}

/// Refuses to pause and resume share groups while `share.pause.version` is 0 (KIP-1249, a draft).
pub(super) fn pausing_on(cx: &Cx) -> Result<(), ApiError> {
    if cx.broker.feature_level(SHARE_PAUSE_VERSION) > 0 {
        return Ok(());
    }
    let text = format!("Pausing share groups needs the feature {SHARE_PAUSE_VERSION} at level 1.");
    Err(ApiError::new(ErrorCode::UNSUPPORTED_VERSION, text))
}

/// Refuses requests of the consumer group protocol while `group.version` is 0 or
/// `group.coordinator.rebalance.protocols` leaves it out (KIP-848).
pub(super) fn consumer_groups_on(cx: &Cx) -> Result<(), ErrorCode> {
    let protocols = &cx.broker.config().rebalance_protocols;
    let is_off = !protocols
        .iter()
        .any(|name| name.eq_ignore_ascii_case("consumer"));
    if is_off || cx.broker.feature_level("group.version") == 0 {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    Ok(())
}

/// The internal topic that holds the keys of a FindCoordinator key type.
pub(super) fn topic_of(key_type: i8) -> Option<&'static str> {
    match key_type {
        0 => Some(CONSUMER_OFFSETS),
        2 => Some(SHARE_GROUP_STATE),
        _ => None,
    }
}
