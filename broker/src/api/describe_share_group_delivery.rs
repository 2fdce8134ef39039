//! DescribeShareGroupDelivery (key 20001), version 0. KIP-1316, a draft, ahead of Apache Kafka.
//!
//! - Delivery state, circuit breaker and dead letters of share groups; for their coordinator only. Each
//!   group has its own error.

use ottla_coordinator::share::delivery::DeliveryView;
use ottla_protocol::messages::describe_share_group_delivery_response::{
    DeliveryCounts, DescribeShareGroupDeliveryResponse, DescribedShareGroupDelivery, LettersGivenUp,
};
use ottla_protocol::messages::{DescribeShareGroupDeliveryRequest, GroupId};
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::{shard, share_groups_on};
use super::named::once;
use crate::context::Cx;
use crate::dead_letters::GiveUp;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: DescribeShareGroupDeliveryRequest,
) -> DescribeShareGroupDeliveryResponse {
    let ids = once(&request.group_ids, |id| id);
    let groups = ids.map(|id| {
        describe(cx, id).unwrap_or_else(|error| DescribedShareGroupDelivery {
            error_code: error.number(),
            error_message: error.message.map(StrBytes::from_string),
            group_id: id.clone(),
            ..Default::default()
        })
    });
    DescribeShareGroupDeliveryResponse {
        groups: groups.collect(),
        ..Default::default()
    }
}

fn describe(cx: &Cx, id: &GroupId) -> Result<DescribedShareGroupDelivery, ApiError> {
    share_groups_on(cx)?;
    if id.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID.into());
    }
    shard(cx, id)?.ask(&cx.broker, |machine| machine.share_pause_of(id).map(drop))??;
    let view = cx.broker.deliveries.get(&cx.broker, id).view(cx.now());
    let mut group = of_view(&view);
    group.group_id = id.clone();
    letters(cx, id, &mut group);
    Ok(group)
}

fn of_view(view: &DeliveryView) -> DescribedShareGroupDelivery {
    let recorded = view.recorded.as_ref();
    let breaker = &view.rules.breaker;
    // The config has no time and no note; what the record says of another reason is not its.
    let shown = recorded.filter(|pause| Some(pause.reason) == view.reason);
    let counts = view.window.iter().map(|bucket| DeliveryCounts {
        bucket_start_ms: bucket.start,
        delivered: bucket.counts.delivered,
        dlq_written: bucket.counts.dlq_written,
        given_up: bucket.counts.given_up,
        ..Default::default()
    });
    DescribedShareGroupDelivery {
        delivery_state: StrBytes::from_static_str(view.state_name()),
        pause_reason: view.reason.map(|r| StrBytes::from_static_str(r.name())),
        paused_since_ms: shown.map_or(-1, |pause| pause.since),
        note: shown.map(|pause| StrBytes::from_string(pause.note.clone())),
        last_resume_reason: view.last_resume.clone().map(StrBytes::from_string),
        auto_resume_at_ms: view.auto_resume_at.unwrap_or(-1),
        breaker_enabled: breaker.enabled,
        tripped: recorded.is_some_and(|pause| pause.reason.may_end_by_itself()),
        threshold: breaker.threshold,
        window_ms: breaker.window_ms,
        buckets: i32::try_from(breaker.buckets).unwrap_or(i32::MAX),
        min_messages: breaker.min_messages,
        timeout_pause_enabled: breaker.trips_on_given_up,
        rate: view.counts().rate(),
        counts: counts.collect(),
        given_up_in_window: view.counts().given_up,
        ..Default::default()
    }
}

/// Where the group's dead letters go, and what became of them.
fn letters(cx: &Cx, id: &str, group: &mut DescribedShareGroupDelivery) {
    let config = cx.broker.group_config(id);
    group.dlq_topic = StrBytes::from_string(config.share.dlq_topic_name.clone());
    let conflict = cx.broker.dlq_conflict(id);
    group.dlq_disabled_reason = conflict.map(StrBytes::from_string);
    let Some(counts) = cx.broker.dead_letters.find(id) else {
        return;
    };
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    group.letters_written = signed(counts.written());
    group.write_timeouts = signed(counts.write_timeouts());
    group.late_writes = signed(counts.late_writes());
    let given_up = GiveUp::ALL
        .into_iter()
        .map(|why| (why, signed(counts.given_up(why))));
    group.given_up = given_up
        .filter(|(_, records)| *records > 0)
        .map(|(why, records)| LettersGivenUp {
            reason: StrBytes::from_static_str(why.name()),
            records,
            ..Default::default()
        })
        .collect();
}
