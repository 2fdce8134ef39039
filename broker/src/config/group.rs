//! What one group runs with: its own configs, within the broker's bounds, over the broker's defaults.

use super::snapshot::{Field, snapshot};
use super::value;

/// Where a share partition without a start offset begins (`share.auto.offset.reset`, KIP-932).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the log's start.
    Earliest,
    /// At the log's end.
    Latest,
    /// At the first record whose time is at least now minus this many milliseconds.
    ByDuration(i64),
}

impl Field for OffsetReset {
    fn read(text: Option<&str>) -> Option<Self> {
        match text? {
            "earliest" => Some(Self::Earliest),
            "latest" => Some(Self::Latest),
            other => other
                .strip_prefix("by_duration:")
                .and_then(value::iso_duration_ms)
                .filter(|ms| *ms >= 0)
                .map(Self::ByDuration),
        }
    }
}

/// Which records a share group sees (`share.isolation.level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All of them.
    ReadUncommitted,
    /// Those outside open and aborted transactions.
    ReadCommitted,
}

impl Field for IsolationLevel {
    fn read(text: Option<&str>) -> Option<Self> {
        match text? {
            "read_uncommitted" => Some(Self::ReadUncommitted),
            "read_committed" => Some(Self::ReadCommitted),
            _ => None,
        }
    }
}

snapshot! {
    /// What a group of the consumer protocol runs with (KIP-848). Times are milliseconds.
    pub struct ConsumerGroupConfig {
        /// Silence after which a member is removed.
        pub session_timeout_ms: i32 = "consumer.session.timeout.ms",
        /// What a member is told about how often to call.
        pub heartbeat_interval_ms: i32 = "consumer.heartbeat.interval.ms",
        /// The least time between two assignments.
        pub assignment_interval_ms: i32 = "consumer.assignment.interval.ms",
    }
}

snapshot! {
    /// What a share group runs with (KIP-932, KIP-1191, drafts KIP-1249 and KIP-1316). Times are milliseconds.
    pub struct ShareGroupConfig {
        /// Silence after which a member is removed.
        pub session_timeout_ms: i32 = "share.session.timeout.ms",
        /// What a member is told about how often to call.
        pub heartbeat_interval_ms: i32 = "share.heartbeat.interval.ms",
        /// The least time between two assignments.
        pub assignment_interval_ms: i32 = "share.assignment.interval.ms",
        /// How long an acquisition lasts.
        pub record_lock_duration_ms: i32 = "share.record.lock.duration.ms",
        /// Deliveries after which a record that is not accepted is archived.
        pub delivery_count_limit: i32 = "share.delivery.count.limit",
        /// The most records of one partition between start and end of the window.
        pub partition_max_record_locks: i32 = "share.partition.max.record.locks",
        /// Whether RENEW is allowed (KIP-1222).
        pub renew_acknowledge_enable: bool = "share.renew.acknowledge.enable",
        /// Which records the group sees.
        pub isolation_level: IsolationLevel = "share.isolation.level",
        /// Where a partition without a start offset begins.
        pub auto_offset_reset: OffsetReset = "share.auto.offset.reset",
        /// The topic for dead letters; empty is none.
        pub dlq_topic_name: String = "errors.deadletterqueue.topic.name",
        /// Whether a dead letter carries the record's key and value.
        pub dlq_copy_record_enable: bool = "errors.deadletterqueue.copy.record.enable",
        /// How long a record waits for its dead letter; -1 is no limit (draft KIP-1316).
        pub dlq_write_timeout_ms: i64 = "share.group.dlq.write.timeout.ms",
        /// Whether the circuit breaker is on (draft KIP-1316).
        pub dlq_breaker_enable: bool = "share.group.dlq.circuit.breaker.enable",
        /// The rate of dead letters, over 0 and at most 1, at which the breaker trips.
        pub dlq_breaker_threshold: f64 = "share.group.dlq.circuit.breaker.threshold",
        /// The time that the breaker looks back over; a multiple of its buckets.
        pub dlq_breaker_window_ms: i64 = "share.group.dlq.circuit.breaker.window.ms",
        /// Into how many buckets the window is cut.
        pub dlq_breaker_window_buckets: i32 = "share.group.dlq.circuit.breaker.window.buckets",
        /// The records that a window needs before the breaker may trip.
        pub dlq_breaker_min_messages: i64 = "share.group.dlq.circuit.breaker.min.messages",
        /// Whether a tripped group is resumed by itself.
        pub dlq_breaker_auto_resume_enable: bool = "share.group.dlq.circuit.breaker.auto.resume.enable",
        /// How long after the trip it is resumed by itself.
        pub dlq_breaker_auto_resume_ms: i64 = "share.group.dlq.circuit.breaker.auto.resume.ms",
        /// Whether no other group's config may name this group's dead-letter topic.
        pub dlq_strict_isolation: bool = "share.group.dlq.strict.isolation",
        /// Whether delivery is paused by the config (draft KIP-1249).
        pub delivery_paused: bool = "ottla.share.delivery.paused",
        /// Whether a dead letter may go to the topic that its record came from.
        pub dlq_allow_loop: bool = "ottla.share.dlq.allow.loop",
        /// Whether dead letters that are given up pause the delivery.
        pub dlq_timeout_pause_enable: bool = "ottla.share.dlq.timeout.pause.enable",
    }
}

snapshot! {
    /// What a streams group runs with (KIP-1071). Times are milliseconds.
    pub struct StreamsGroupConfig {
        /// Silence after which a member is removed.
        pub session_timeout_ms: i32 = "streams.session.timeout.ms",
        /// What a member is told about how often to call.
        pub heartbeat_interval_ms: i32 = "streams.heartbeat.interval.ms",
        /// The least time between two assignments.
        pub assignment_interval_ms: i32 = "streams.assignment.interval.ms",
        /// How long the first rebalance of an empty group waits for more members.
        pub initial_rebalance_delay_ms: i32 = "streams.initial.rebalance.delay.ms",
        /// Standby replicas of each stateful task.
        pub num_standby_replicas: i32 = "streams.num.standby.replicas",
        /// Warm-up replicas at one time.
        pub num_warmup_replicas: i32 = "streams.num.warmup.replicas",
        /// The lag at which a task counts as caught up.
        pub acceptable_recovery_lag: i64 = "streams.acceptable.recovery.lag",
        /// How often members report the offsets of their tasks.
        pub task_offset_interval_ms: i32 = "streams.task.offset.interval.ms",
        /// The assignor; null takes the first of the broker's list.
        pub assignor_name: Option<String> = "streams.assignor.name",
        /// Client tags that standby replicas are spread over.
        pub rack_aware_assignment_tags: Vec<String> = "streams.rack.aware.assignment.tags",
    }
}

/// What one group runs with, whatever its type turns out to be.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupConfig {
    /// As a group of the consumer protocol.
    pub consumer: ConsumerGroupConfig,
    /// As a share group.
    pub share: ShareGroupConfig,
    /// As a streams group.
    pub streams: StreamsGroupConfig,
    /// Why its dead letters go nowhere, whatever its configs say: the topic is not its alone.
    pub dlq_conflict: Option<String>,
}

impl GroupConfig {
    pub(super) fn resolve(
        text: &dyn Fn(&'static str) -> Option<String>,
    ) -> Result<Self, &'static str> {
        Ok(Self {
            consumer: ConsumerGroupConfig::resolve(text)?,
            share: ShareGroupConfig::resolve(text)?,
            streams: StreamsGroupConfig::resolve(text)?,
            dlq_conflict: None,
        })
    }
}
