//! The topic configs of Apache Kafka 4.4.0, sorted by name; as its `ConfigDef` has them.

use super::table::Type::{Boolean, Double, Int, List, Long, String};
use super::table::Valid::{Any, Between, EachOf, GzipLevel, Min, OneOf, Ratio, ThrottledReplicas};
use super::table::{ConfigDef, HOUR, MINUTE, topic};

/// Every topic config, the internal ones among them.
#[rustfmt::skip] // a row is a line
pub(super) const ROWS: &[ConfigDef] = &[
    topic("cleanup.policy", List, Some("delete"), EachOf(&["compact", "delete"]), &[("log.cleanup.policy", 1)]),
    topic("compression.gzip.level", Int, Some("-1"), GzipLevel, &[("compression.gzip.level", 1)]),
    topic("compression.lz4.level", Int, Some("9"), Between(1, 17), &[("compression.lz4.level", 1)]),
    topic("compression.type", String, Some("producer"), OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), &[("compression.type", 1)]),
    topic("compression.zstd.level", Int, Some("3"), Between(-131_072, 22), &[("compression.zstd.level", 1)]),
    topic("delete.retention.ms", Long, Some("86400000"), Min(0), &[("log.cleaner.delete.retention.ms", 1)]),
    topic("errors.deadletterqueue.group.enable", Boolean, Some("false"), Any, &[]),
    topic("file.delete.delay.ms", Long, Some("60000"), Min(0), &[("log.segment.delete.delay.ms", 1)]),
    topic("flush.messages", Long, Some("9223372036854775807"), Min(1), &[("log.flush.interval.messages", 1)]),
    topic("flush.ms", Long, Some("9223372036854775807"), Min(0), &[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)]),
    topic("follower.replication.throttled.replicas", List, Some(""), ThrottledReplicas, &[]),
    topic("index.interval.bytes", Int, Some("4096"), Min(0), &[("log.index.interval.bytes", 1)]),
    topic("internal.segment.bytes", Int, None, Any, &[]).internal(),
    topic("leader.replication.throttled.replicas", List, Some(""), ThrottledReplicas, &[]),
    topic("local.retention.bytes", Long, Some("-2"), Min(-2), &[("log.local.retention.bytes", 1)]),
    topic("local.retention.ms", Long, Some("-2"), Min(-2), &[("log.local.retention.ms", 1)]),
    topic("max.compaction.lag.ms", Long, Some("9223372036854775807"), Min(1), &[("log.cleaner.max.compaction.lag.ms", 1)]),
    topic("max.decompressed.message.bytes", Int, Some("2147483639"), Between(1, 2_147_483_639), &[("max.decompressed.message.bytes", 1)]),
    topic("max.message.bytes", Int, Some("1048588"), Min(0), &[("message.max.bytes", 1)]),
    topic("message.timestamp.after.max.ms", Long, Some("3600000"), Min(0), &[("log.message.timestamp.after.max.ms", 1)]),
    topic("message.timestamp.before.max.ms", Long, Some("9223372036854775807"), Min(0), &[("log.message.timestamp.before.max.ms", 1)]),
    topic("message.timestamp.type", String, Some("CreateTime"), OneOf(&["CreateTime", "LogAppendTime"]), &[("log.message.timestamp.type", 1)]),
    topic("min.cleanable.dirty.ratio", Double, Some("0.5"), Ratio(0.0, 1.0), &[("log.cleaner.min.cleanable.ratio", 1)]),
    topic("min.compaction.lag.ms", Long, Some("0"), Min(0), &[("log.cleaner.min.compaction.lag.ms", 1)]),
    topic("min.insync.replicas", Int, Some("1"), Min(1), &[("min.insync.replicas", 1)]),
    topic("preallocate", Boolean, Some("false"), Any, &[("log.preallocate", 1)]),
    topic("remote.copy.lag.bytes", Long, Some("-1"), Min(-1), &[("log.remote.copy.lag.bytes", 1)]),
    topic("remote.copy.lag.ms", Long, Some("0"), Min(-1), &[("log.remote.copy.lag.ms", 1)]),
    topic("remote.log.copy.disable", Boolean, Some("false"), Any, &[]),
    topic("remote.log.delete.on.disable", Boolean, Some("false"), Any, &[]),
    topic("remote.storage.enable", Boolean, Some("false"), Any, &[]),
    topic("retention.bytes", Long, Some("-1"), Any, &[("log.retention.bytes", 1)]),
    topic("retention.ms", Long, Some("604800000"), Min(-1), &[("log.retention.ms", 1), ("log.retention.minutes", MINUTE), ("log.retention.hours", HOUR)]),
    topic("segment.bytes", Int, Some("1073741824"), Min(1_048_576), &[("log.segment.bytes", 1)]),
    topic("segment.index.bytes", Int, Some("10485760"), Min(4), &[("log.index.size.max.bytes", 1)]),
    topic("segment.jitter.ms", Long, Some("0"), Min(0), &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR)]),
    topic("segment.ms", Long, Some("604800000"), Min(1), &[("log.roll.ms", 1), ("log.roll.hours", HOUR)]),
    topic("unclean.leader.election.enable", Boolean, Some("false"), Any, &[("unclean.leader.election.enable", 1)]),
];
