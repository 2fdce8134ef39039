//! Ottla's own group configs, sorted by name: what the drafts KIP-1316 (dead-letter write timeout, circuit
//! breaker) and KIP-1249 (pause) name, ahead of Apache Kafka, and what neither has a name for.

use super::table::Type::{Boolean, Double, Int, Long};
use super::table::Valid::{Any, Between, Min, MinusOneOrMin, Share};
use super::table::{ConfigDef, group};

/// Every group config of ours. `DescribeConfigs` lists them after Kafka's.
pub(super) const ROWS: &[ConfigDef] = &[
    group("ottla.share.delivery.paused", Boolean, Some("false"), Any, &[]).doc(
        "Whether delivery to the group is paused: members stay, nothing is acquired (draft KIP-1249).",
    ),
    group("ottla.share.dlq.allow.loop", Boolean, Some("false"), Any, &[]).doc(
        "Whether a dead letter may go to the topic that its record came from, where the group reads it \
         again.",
    ),
    group("ottla.share.dlq.timeout.pause.enable", Boolean, Some("false"), Any, &[]).doc(
        "Whether delivery is paused when the dead letters given up within one breaker window reach \
         share.group.dlq.circuit.breaker.min.messages.",
    ),
    group("share.group.dlq.circuit.breaker.auto.resume.enable", Boolean, Some("false"), Any, &[])
        .doc("Whether a group that the breaker paused is resumed by itself (draft KIP-1316)."),
    group("share.group.dlq.circuit.breaker.auto.resume.ms", Long, Some("300000"), Min(1), &[])
        .doc("How long after the breaker's pause the group is resumed by itself (draft KIP-1316)."),
    group("share.group.dlq.circuit.breaker.enable", Boolean, Some("false"), Any, &[]).doc(
        "Whether the group is paused when too large a part of its records become dead letters (draft \
         KIP-1316). Needs the feature share.pause.version.",
    ),
    group("share.group.dlq.circuit.breaker.min.messages", Long, Some("100"), Min(1), &[]).doc(
        "Records, delivered or dead letters, that a window needs before the breaker may trip (draft \
         KIP-1316).",
    ),
    group("share.group.dlq.circuit.breaker.threshold", Double, Some("0.5"), Share, &[]).doc(
        "The part of the window's records that are dead letters at which the breaker trips (draft \
         KIP-1316).",
    ),
    group("share.group.dlq.circuit.breaker.window.buckets", Int, Some("6"), Between(1, 1000), &[])
        .doc(
            "Into how many buckets the window is cut, the rate being looked at as each ends; divides \
             the window (draft KIP-1316).",
        ),
    group("share.group.dlq.circuit.breaker.window.ms", Long, Some("60000"), Min(1), &[])
        .doc("The time that the breaker looks back over (draft KIP-1316)."),
    group("share.group.dlq.strict.isolation", Boolean, Some("false"), Any, &[]).doc(
        "Whether the group's dead-letter topic is its alone: no other group's config may name it \
         (draft KIP-1316).",
    ),
    group("share.group.dlq.write.timeout.ms", Long, Some("-1"), MinusOneOrMin(1), &[]).doc(
        "How long a record waits for its dead letter to be written before it is archived without one; \
         -1 waits for the last attempt (draft KIP-1316).",
    ),
];
