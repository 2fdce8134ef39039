//! Where Ottla's defaults differ from Apache Kafka's: one list, with the reason of each.

use super::table::{Scope, Valid};

/// Which defaults hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// For a developer's desk and for tests: nothing waits without a reason.
    #[default]
    Desk,
    /// Apache Kafka 4.4.0's own.
    Kafka,
}

impl Profile {
    /// `desk` or `kafka`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "desk" => Some(Self::Desk),
            "kafka" => Some(Self::Kafka),
            _ => None,
        }
    }

    /// The name for `--profile` and `ottla.profile`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Desk => "desk",
            Self::Kafka => "kafka",
        }
    }
}

/// A default of the desk profile that is not Kafka's.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// The broker config.
    pub key: &'static str,
    /// Its default here.
    pub value: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// A range of the desk profile that is wider than Kafka's.
#[derive(Clone, Copy, Debug)]
pub struct WiderRange {
    /// Whose config it is.
    pub scope: Scope,
    /// The config.
    pub key: &'static str,
    /// Its range here.
    pub valid: Valid,
    /// Why.
    pub reason: &'static str,
}

const fn differs(key: &'static str, value: &'static str, reason: &'static str) -> Difference {
    Difference { key, value, reason }
}

const ASSIGN: &str = "a new member's first heartbeat already carries its assignment";
const REBALANCE: &str = "the first member of a group does not wait for others";
const HEARTBEAT: &str = "members learn of a new assignment within a second";
const SHORT: &str = "tests may use short sessions";
const SMALL: &str = "internal topics are made on demand and cost files, memory and start-up time";

/// The desk profile's defaults that are not Kafka's, sorted by key.
pub const DIFFERENCES: &[Difference] = &[
    differs("group.consumer.assignment.interval.ms", "0", ASSIGN),
    differs("group.consumer.heartbeat.interval.ms", "1000", HEARTBEAT),
    differs("group.consumer.min.heartbeat.interval.ms", "10", SHORT),
    differs("group.consumer.min.session.timeout.ms", "100", SHORT),
    differs("group.initial.rebalance.delay.ms", "0", REBALANCE),
    differs("group.min.session.timeout.ms", "100", SHORT),
    differs("group.share.assignment.interval.ms", "0", ASSIGN),
    differs("group.share.heartbeat.interval.ms", "1000", HEARTBEAT),
    differs("group.share.min.heartbeat.interval.ms", "10", SHORT),
    differs(
        "group.share.min.record.lock.duration.ms",
        "10",
        "tests may use short locks",
    ),
    differs("group.share.min.session.timeout.ms", "100", SHORT),
    differs("group.streams.assignment.interval.ms", "0", ASSIGN),
    differs("group.streams.heartbeat.interval.ms", "1000", HEARTBEAT),
    differs("group.streams.initial.rebalance.delay.ms", "0", REBALANCE),
    differs("group.streams.min.heartbeat.interval.ms", "10", SHORT),
    differs("group.streams.min.session.timeout.ms", "100", SHORT),
    differs(
        "listeners",
        "PLAINTEXT://127.0.0.1:9092",
        "nothing is open to the network unasked",
    ),
    differs("offsets.topic.num.partitions", "4", SMALL),
    differs(
        "share.coordinator.state.topic.min.isr",
        "1",
        "a stopped broker does not stop share groups",
    ),
    differs("share.coordinator.state.topic.num.partitions", "4", SMALL),
    differs(
        "transaction.state.log.min.isr",
        "1",
        "a stopped broker does not stop transactions",
    ),
    differs("transaction.state.log.num.partitions", "4", SMALL),
];

/// The desk profile's ranges that are wider than Kafka's; without them the lower bound above is 1 s.
pub const WIDER_RANGES: &[WiderRange] = &[
    WiderRange {
        scope: Scope::Broker,
        key: "group.share.min.record.lock.duration.ms",
        valid: Valid::Between(1, 30_000),
        reason: "tests may use short locks",
    },
    WiderRange {
        scope: Scope::Broker,
        key: "group.share.record.lock.duration.ms",
        valid: Valid::Between(1, 3_600_000),
        reason: "tests may use short locks",
    },
    WiderRange {
        scope: Scope::Group,
        key: "share.record.lock.duration.ms",
        valid: Valid::Min(1),
        reason: "tests may use short locks",
    },
];

/// In both profiles: what Kafka defaults to 3 replicas and 2 in-sync ones is bounded by the number of
/// brokers, since Kafka's own defaults do not work with fewer.
pub const BOUND_BY_BROKERS: &[&str] = &[
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
];

impl Profile {
    /// The default of a broker config in this profile, with `brokers` brokers, given Kafka's default.
    pub(super) fn default_of(
        self,
        key: &str,
        kafka: Option<&'static str>,
        brokers: i32,
    ) -> Option<String> {
        let difference = match self {
            Self::Desk => DIFFERENCES.binary_search_by(|row| row.key.cmp(key)).ok(),
            Self::Kafka => None,
        };
        let text = difference.map_or(kafka, |at| Some(DIFFERENCES[at].value))?;
        match text.parse::<i32>() {
            Ok(number) if BOUND_BY_BROKERS.contains(&key) => Some(number.min(brokers).to_string()),
            _ => Some(text.to_owned()),
        }
    }

    /// The range of a config in this profile, given Kafka's.
    pub(super) fn valid_of(self, scope: Scope, key: &str, kafka: Valid) -> Valid {
        let wider = WIDER_RANGES
            .iter()
            .find(|row| row.scope == scope && row.key == key);
        match (self, wider) {
            (Self::Desk, Some(row)) => row.valid,
            _ => kafka,
        }
    }
}
