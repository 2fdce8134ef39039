//! The group configs of Apache Kafka 4.4.0, sorted by name; as its `ConfigDef` has them.

use super::table::Type::{Boolean, Int, List, Long, String};
use super::table::Valid::{Any, DlqTopic, Min, OffsetReset, OneOf};
use super::table::{ConfigDef, group};

/// Every group config, the internal ones among them.
#[rustfmt::skip] // a row is a line
pub(super) const ROWS: &[ConfigDef] = &[
    group("consumer.assignment.interval.ms", Int, Some("1000"), Min(0), &[("group.consumer.assignment.interval.ms", 1)]),
    group("consumer.assignor.offload.enable", Boolean, Some("true"), Any, &[("group.consumer.assignor.offload.enable", 1)]).internal(),
    group("consumer.heartbeat.interval.ms", Int, Some("5000"), Min(1), &[("group.consumer.heartbeat.interval.ms", 1)]),
    group("consumer.session.timeout.ms", Int, Some("45000"), Min(1), &[("group.consumer.session.timeout.ms", 1)]),
    group("errors.deadletterqueue.copy.record.enable", Boolean, Some("false"), Any, &[]),
    group("errors.deadletterqueue.topic.name", String, Some(""), DlqTopic, &[]),
    group("share.assignment.interval.ms", Int, Some("1000"), Min(0), &[("group.share.assignment.interval.ms", 1)]),
    group("share.assignor.offload.enable", Boolean, Some("true"), Any, &[("group.share.assignor.offload.enable", 1)]).internal(),
    group("share.auto.offset.reset", String, Some("latest"), OffsetReset, &[]),
    group("share.delivery.count.limit", Int, Some("5"), Min(2), &[("group.share.delivery.count.limit", 1)]),
    group("share.heartbeat.interval.ms", Int, Some("5000"), Min(1), &[("group.share.heartbeat.interval.ms", 1)]),
    group("share.isolation.level", String, Some("read_uncommitted"), OneOf(&["read_committed", "read_uncommitted"]), &[]),
    group("share.partition.max.record.locks", Int, Some("2000"), Min(100), &[("group.share.partition.max.record.locks", 1)]),
    group("share.record.lock.duration.ms", Int, Some("30000"), Min(1000), &[("group.share.record.lock.duration.ms", 1)]),
    group("share.renew.acknowledge.enable", Boolean, Some("true"), Any, &[]),
    group("share.session.timeout.ms", Int, Some("45000"), Min(1), &[("group.share.session.timeout.ms", 1)]),
    group("streams.acceptable.recovery.lag", Long, Some("10000"), Min(0), &[("group.streams.acceptable.recovery.lag", 1)]).internal(),
    group("streams.assignment.interval.ms", Int, Some("1000"), Min(0), &[("group.streams.assignment.interval.ms", 1)]),
    group("streams.assignor.name", String, None, Any, &[("group.streams.assignors", 1)]),
    group("streams.assignor.offload.enable", Boolean, Some("true"), Any, &[("group.streams.assignor.offload.enable", 1)]).internal(),
    group("streams.heartbeat.interval.ms", Int, Some("5000"), Min(1), &[("group.streams.heartbeat.interval.ms", 1)]),
    group("streams.initial.rebalance.delay.ms", Int, Some("3000"), Min(0), &[("group.streams.initial.rebalance.delay.ms", 1)]),
    group("streams.num.standby.replicas", Int, Some("0"), Min(0), &[("group.streams.num.standby.replicas", 1)]),
    group("streams.num.warmup.replicas", Int, Some("2"), Min(0), &[("group.streams.num.warmup.replicas", 1)]).internal(),
    group("streams.rack.aware.assignment.tags", List, Some(""), Any, &[("group.streams.rack.aware.assignment.tags", 1)]),
    group("streams.session.timeout.ms", Int, Some("45000"), Min(1), &[("group.streams.session.timeout.ms", 1)]),
    group("streams.task.offset.interval.ms", Int, Some("60000"), Min(1), &[("group.streams.task.offset.interval.ms", 1)]).internal(),
];
