//! `--pause`, `--resume` and `--describe --circuit-breaker`: the delivery of a group (KIP-1249) and its
//! circuit breaker (KIP-1316). Both are drafts, ahead of Apache Kafka.

use std::collections::BTreeMap;

use bytes::Bytes;
use ottla_protocol::messages::describe_share_group_delivery_response::{
    DeliveryCounts, DescribedShareGroupDelivery,
};
use ottla_protocol::messages::share_group_describe_response::DescribedGroup;
use ottla_protocol::{ErrorCode, StrBytes};
use serde_json::{Value, json};

use super::args::Groups;
use super::report::{Report, add, error_json, lacking, meant, or_null};
use super::reset::datetime;
use super::table::table;
use crate::client::{Cluster, Error};

/// Tagged fields of ShareGroupDescribe: state, reason, since (ms), last resume reason, note.
const STATE: i32 = 9000;
const REASON: i32 = 9001;
const SINCE: i32 = 9002;
const LAST_RESUME: i32 = 9003;
const NOTE: i32 = 9004;

/// `--pause` and `--resume`.
pub(super) async fn alter(
    cluster: &mut Cluster,
    groups: &[String],
    pause: bool,
    reason: Option<&str>,
) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut entries = Vec::new();
    for group in groups {
        let outcome = cluster.alter_share_group_delivery(group, pause, reason);
        match outcome.await {
            Ok(()) => {
                let done = if pause { "paused" } else { "resumed" };
                let line = format!("Delivery of share group '{group}' is {done}.\n");
                report.text.push_str(&line);
                let state = if pause { "PAUSED" } else { "RUNNING" };
                entries.push(json!({ "group": group, "state": state, "reason": reason }));
            }
            Err(error) if error.code() != ErrorCode::NONE => {
                report.failed = true;
                report.note(&format!("Error: share group '{group}': {error}"));
                entries.push(json!({ "group": group, "error": error_json(&error) }));
            }
            Err(error) => return Err(lacking(error)),
        }
    }
    report.json = json!({ "groups": entries });
    Ok(report)
}

/// `--describe --circuit-breaker`.
pub(super) async fn describe(cluster: &mut Cluster, groups: &Groups) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut entries = Vec::new();
    for group in meant(cluster, groups, &mut report).await? {
        match cluster.describe_share_group_delivery(&group).await {
            Ok(found) => {
                report.text.push_str(&text(&group, &found));
                entries.push(json(&group, &found));
            }
            Err(error) if error.code() != ErrorCode::NONE => {
                report.fail(&error);
                entries.push(json!({ "group": group, "error": error_json(&error) }));
            }
            Err(error) => return Err(lacking(error)),
        }
    }
    report.json = json!({ "groups": entries });
    Ok(report)
}

fn text(group: &str, found: &DescribedShareGroupDelivery) -> String {
    let mut text = format!("\nShare group '{group}': {}", &*found.delivery_state);
    if let Some(reason) = &found.pause_reason {
        add(&mut text, format_args!(" ({})", &**reason));
    }
    if found.paused_since_ms >= 0 {
        add(
            &mut text,
            format_args!(" since {}", datetime::show(found.paused_since_ms)),
        );
    }
    text.push('\n');
    let mut line =
        |name: &str, value: String| add(&mut text, format_args!("  {name:<15}{value}\n"));
    if let Some(note) = words(found.note.as_ref()) {
        line("note:", note.to_owned());
    }
    if found.auto_resume_at_ms >= 0 {
        line("auto-resume:", datetime::show(found.auto_resume_at_ms));
    }
    if let Some(reason) = words(found.last_resume_reason.as_ref()) {
        line("last resume:", reason.to_owned());
    }
    line("breaker:", breaker(found));
    let watched = found.breaker_enabled || found.timeout_pause_enabled || found.tripped;
    if watched {
        let window = format!("{} ms in {} buckets", found.window_ms, found.buckets);
        line("window:", window);
        line("rate:", format!("{:.4}", found.rate));
    }
    let given_up: i64 = found.given_up.iter().map(|one| one.records).sum();
    let topic = match &*found.dlq_topic {
        "" => "none",
        topic => topic,
    };
    line("letters to:", topic.to_owned());
    if let Some(reason) = &found.dlq_disabled_reason {
        line("no letters:", reason.to_string());
    }
    let counted = format!(
        "{} written, {given_up} given up ({} in the window), {} timed out, {} written late",
        found.letters_written, found.given_up_in_window, found.write_timeouts, found.late_writes
    );
    line("letters:", counted);
    for one in &found.given_up {
        let value = format!("{} ({})", one.records, &*one.reason);
        line("given up:", value);
    }
    if watched && !found.counts.is_empty() {
        text.push('\n');
        text.push_str(&buckets(&found.counts));
    }
    text
}

/// What somebody said, unless it is nothing.
fn words(text: Option<&StrBytes>) -> Option<&str> {
    text.map(|text| &text[..]).filter(|text| !text.is_empty())
}

fn breaker(found: &DescribedShareGroupDelivery) -> String {
    let rule = format!(
        "rate at or above {} of at least {} messages",
        found.threshold, found.min_messages
    );
    let mut said = match (found.breaker_enabled, found.tripped) {
        (true, true) => format!("tripped; {rule}"),
        (true, false) => format!("on; {rule}"),
        (false, true) => "tripped, and off since".to_owned(),
        (false, false) => "off".to_owned(),
    };
    if found.timeout_pause_enabled {
        add(
            &mut said,
            format_args!(
                "; letters given up pause too, from {} in a window",
                found.min_messages
            ),
        );
    }
    said
}

fn buckets(counts: &[DeliveryCounts]) -> String {
    let row = |bucket: &DeliveryCounts| {
        vec![
            datetime::show(bucket.bucket_start_ms),
            bucket.delivered.to_string(),
            bucket.dlq_written.to_string(),
            bucket.given_up.to_string(),
        ]
    };
    let mut rows: Vec<_> = counts.iter().map(row).collect();
    let sum = |of: fn(&DeliveryCounts) -> i64| counts.iter().map(of).sum::<i64>().to_string();
    rows.push(vec![
        "all".to_owned(),
        sum(|bucket| bucket.delivered),
        sum(|bucket| bucket.dlq_written),
        sum(|bucket| bucket.given_up),
    ]);
    let columns = [
        ("BUCKET", 24),
        ("DELIVERED", 10),
        ("DLQ-WRITTEN", 12),
        ("GIVEN-UP", 8),
    ];
    table(&columns, &rows)
}

/// The description as JSON; what is not known, or is not, is null.
pub(super) fn json(group: &str, found: &DescribedShareGroupDelivery) -> Value {
    let bucket = |bucket: &DeliveryCounts| {
        json!({
            "startMs": bucket.bucket_start_ms,
            "delivered": bucket.delivered,
            "dlqWritten": bucket.dlq_written,
            "givenUp": bucket.given_up,
        })
    };
    let counts: Vec<_> = found.counts.iter().map(bucket).collect();
    let given_up = found.given_up.iter();
    let given_up: BTreeMap<&str, i64> = given_up.map(|one| (&*one.reason, one.records)).collect();
    json!({
        "group": group,
        "state": &*found.delivery_state,
        "reason": found.pause_reason.as_deref(),
        "pausedSinceMs": or_null(found.paused_since_ms),
        "note": words(found.note.as_ref()),
        "lastResumeReason": words(found.last_resume_reason.as_ref()),
        "autoResumeAtMs": or_null(found.auto_resume_at_ms),
        "breaker": {
            "enabled": found.breaker_enabled,
            "tripped": found.tripped,
            "threshold": found.threshold,
            "windowMs": found.window_ms,
            "buckets": found.buckets,
            "minMessages": found.min_messages,
            "timeoutPauseEnabled": found.timeout_pause_enabled,
            "rate": found.rate,
            "counts": counts,
            "givenUpInWindow": found.given_up_in_window,
        },
        "letters": {
            "topic": Some(&*found.dlq_topic).filter(|topic| !topic.is_empty()),
            "disabledReason": found.dlq_disabled_reason.as_deref(),
            "written": found.letters_written,
            "writeTimeouts": found.write_timeouts,
            "lateWrites": found.late_writes,
            "givenUp": given_up,
        },
    })
}

/// What ShareGroupDescribe says of the delivery in its tagged fields; null from brokers without any.
pub(super) fn of(described: &DescribedGroup) -> Value {
    let tags = &described.unknown_tagged_fields;
    let word = |tag: i32| tags.get(&tag).and_then(compact);
    match word(STATE) {
        None => Value::Null,
        Some(state) => json!({
            "state": state,
            "reason": word(REASON),
            "pausedSinceMs": tags.get(&SINCE).and_then(number).map_or(Value::Null, or_null),
            "lastResumeReason": word(LAST_RESUME),
            "note": word(NOTE),
        }),
    }
}

/// A line about a group whose delivery is paused.
pub(super) fn told(described: &DescribedGroup) -> Option<String> {
    let tags = &described.unknown_tagged_fields;
    let word = |tag: i32| tags.get(&tag).and_then(compact);
    let state = word(STATE).filter(|state| state != "RUNNING")?;
    let mut line = format!("Share group '{}' is {state}", &**described.group_id);
    if let Some(reason) = word(REASON) {
        add(&mut line, format_args!(" ({reason})"));
    }
    if let Some(since) = tags.get(&SINCE).and_then(number).filter(|ms| *ms >= 0) {
        add(&mut line, format_args!(" since {}", datetime::show(since)));
    }
    if let Some(note) = word(NOTE) {
        add(&mut line, format_args!(": {note}"));
    }
    Some(line)
}

/// A compact string: its length and one, then UTF-8.
fn compact(field: &Bytes) -> Option<String> {
    let end = field.iter().position(|byte| byte & 0x80 == 0)?;
    let digits = field[..=end].iter().rev();
    let length = digits.fold(0usize, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    let text = field.get(end + 1..end + length)?;
    let text = std::str::from_utf8(text).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(field: &Bytes) -> Option<i64> {
    field
        .first_chunk::<8>()
        .map(|bytes| i64::from_be_bytes(*bytes))
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
