//! Rules over more than one config: the broker's bounds for group configs, sessions above heartbeats.

use super::table::HOUR;

/// A group config that the broker bounds; the broker has `group.NAME` with the same bounds.
pub(super) struct Bound {
    /// The group config.
    pub(super) key: &'static str,
    /// The broker config with the least value.
    pub(super) min: Option<&'static str>,
    /// The broker config with the greatest value.
    pub(super) max: Option<&'static str>,
}

macro_rules! bounds {
    ($($kind:literal: $($what:literal),+;)*) => { &[$($(Bound {
        key: concat!($kind, ".", $what),
        min: Some(concat!("group.", $kind, ".min.", $what)),
        max: Some(concat!("group.", $kind, ".max.", $what)),
    },)+)*] };
}

/// Configs with both bounds.
const BOTH: &[Bound] = bounds! {
    "consumer": "heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms";
    "share": "heartbeat.interval.ms", "session.timeout.ms", "record.lock.duration.ms",
        "delivery.count.limit", "partition.max.record.locks", "assignment.interval.ms";
    "streams": "heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms";
};

/// Configs with one bound.
const ONE: &[Bound] = &[
    Bound {
        key: "streams.num.standby.replicas",
        min: None,
        max: Some("group.streams.max.standby.replicas"),
    },
    Bound {
        key: "streams.num.warmup.replicas",
        min: None,
        max: Some("group.streams.max.warmup.replicas"),
    },
    Bound {
        key: "streams.task.offset.interval.ms",
        min: Some("group.streams.min.task.offset.interval.ms"),
        max: None,
    },
];

/// The kinds of group whose session must be longer than their heartbeat interval.
const KINDS: &[&str] = &["consumer", "share", "streams"];

/// Reads a whole number by its key.
pub(super) type Numbers<'a> = &'a dyn Fn(&str) -> Option<i64>;

fn all() -> impl Iterator<Item = &'static Bound> {
    BOTH.iter().chain(ONE)
}

impl Bound {
    /// The bounds in force, given the broker's numbers.
    fn range(&self, broker: Numbers<'_>) -> (i64, i64) {
        let at = |key: Option<&str>, none| key.and_then(broker).unwrap_or(none);
        (at(self.min, i64::MIN), at(self.max, i64::MAX))
    }
}

/// The bound of a group config (`share.x`) or of its broker default (`group.share.x`).
pub(super) fn of(key: &str) -> Option<&'static Bound> {
    let key = key.strip_prefix("group.").unwrap_or(key);
    all().find(|bound| bound.key == key)
}

/// `number` for the config `key`, within the broker's bounds.
pub(super) fn clamp(key: &str, number: i64, broker: Numbers<'_>) -> i64 {
    let (min, max) = of(key).map_or((i64::MIN, i64::MAX), |bound| bound.range(broker));
    number.max(min).min(max)
}

/// What is wrong with a group's configs: `own` gives the numbers that the group sets itself,
/// `effective` those that it would run with. The texts are Kafka's.
pub(super) fn check_group(
    own: Numbers<'_>,
    effective: Numbers<'_>,
    broker: Numbers<'_>,
) -> Result<(), String> {
    for bound in all() {
        let Some(number) = own(bound.key) else {
            continue;
        };
        let (min, max) = bound.range(broker);
        let key = bound.key;
        match (bound.min, bound.max) {
            (Some(_), Some(_)) if number < min || number > max => {
                return Err(format!(
                    "{key} must be in the range {min} to {max} inclusive."
                ));
            }
            (Some(_), None) if number < min => {
                return Err(format!("{key} must be greater than or equal to {min}"));
            }
            (None, Some(_)) if number > max => {
                return Err(format!("{key} must be less than or equal to {max}"));
            }
            _ => {}
        }
    }
    for kind in KINDS {
        let session = format!("{kind}.session.timeout.ms");
        let heartbeat = format!("{kind}.heartbeat.interval.ms");
        if effective(&session) <= effective(&heartbeat) {
            return Err(format!("{session} must be greater than {heartbeat}"));
        }
    }
    check_window(effective)
}

/// The time that the breaker of dead letters looks back over.
pub(super) const WINDOW: &str = "share.group.dlq.circuit.breaker.window.ms";
/// Into how many buckets of equal length it is cut.
pub(super) const BUCKETS: &str = "share.group.dlq.circuit.breaker.window.buckets";

/// Whether the breaker's buckets are whole milliseconds of equal length.
fn check_window(effective: Numbers<'_>) -> Result<(), String> {
    match (effective(WINDOW), effective(BUCKETS)) {
        (Some(window), Some(buckets)) if buckets > 0 && window % buckets != 0 => Err(format!(
            "{BUCKETS} ({buckets}) must divide {WINDOW} ({window}) without a rest"
        )),
        _ => Ok(()),
    }
}

/// What is wrong with the broker's own defaults and bounds. The texts are Kafka's.
pub(super) fn check_broker(broker: Numbers<'_>) -> Result<(), String> {
    for bound in all() {
        let key = format!("group.{}", bound.key);
        let number = broker(&key);
        let (min, max) = bound.range(broker);
        if let (Some(low), Some(high)) = (bound.min, bound.max)
            && max < min
        {
            return Err(format!("{high} must be greater than or equal to {low}"));
        }
        if let (Some(low), Some(number)) = (bound.min, number)
            && number < min
        {
            return Err(format!("{key} must be greater than or equal to {low}"));
        }
        if let (Some(high), Some(number)) = (bound.max, number)
            && number > max
        {
            return Err(format!("{key} must be less than or equal to {high}"));
        }
    }
    for kind in KINDS {
        let session = format!("group.{kind}.session.timeout.ms");
        let heartbeat = format!("group.{kind}.heartbeat.interval.ms");
        if broker(&heartbeat) >= broker(&session) {
            return Err(format!("{heartbeat} must be less than {session}"));
        }
    }
    if broker("group.max.session.timeout.ms") < broker("group.min.session.timeout.ms") {
        return Err(
            "group.max.session.timeout.ms must be greater than or equal to group.min.session.timeout.ms"
                .to_owned(),
        );
    }
    check_log(broker)
}

fn check_log(broker: Numbers<'_>) -> Result<(), String> {
    if broker("log.retention.ms") == Some(0) {
        // Kafka refuses 0 only; other negative numbers mean no limit.
        return Err(
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than \
                    or equal to 1"
                .to_owned(),
        );
    }
    for (key, factor) in [
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", HOUR),
    ] {
        if broker(key).is_some_and(|number| number.checked_mul(factor).is_none() || number == 0) {
            return Err(format!(
                "{key} must be unlimited (-1) or, greater than or equal to 1"
            ));
        }
    }
    let (local, whole) = (
        broker("log.local.retention.bytes"),
        broker("log.retention.bytes"),
    );
    if let (Some(local), Some(whole)) = (local, whole)
        && local != -2
        && whole >= 0
        && local > whole
    {
        return Err(format!(
            "Invalid value {local} for configuration log.local.retention.bytes: Value must not be \
             more than log.retention.bytes property value: {whole}"
        ));
    }
    Ok(())
}
