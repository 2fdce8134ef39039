//! `ottla.group.default.KEY=VALUE`: the default of a group config, for every group.

use super::*;
use crate::config::table::{self, Scope, Type, Valid};
use crate::config::{ConfigSource, Synonym};

/// A value of the row's range that is not its default, and fits the other defaults of a group.
fn another(row: &table::ConfigDef) -> String {
    let text = match (row.name, row.kind, row.valid) {
        ("share.group.dlq.circuit.breaker.window.ms", ..) => "120000",
        ("share.group.dlq.circuit.breaker.window.buckets", ..) => "5",
        ("share.partition.max.record.locks", ..) => "300",
        ("streams.num.standby.replicas" | "streams.num.warmup.replicas", ..) => "1",
        ("streams.assignor.name", ..) => "sticky",
        (name, ..) if name.ends_with("session.timeout.ms") => "50000",
        (name, ..) if name.ends_with("heartbeat.interval.ms") => "6000",
        (name, ..) if name.ends_with("assignment.interval.ms") => "2000",
        (name, ..) if name.ends_with("lock.duration.ms") => "20000",
        (name, ..) if name.ends_with("delivery.count.limit") => "7",
        (_, _, Valid::OffsetReset) => "by_duration:PT1H",
        (_, _, Valid::OneOf(_)) => "read_committed",
        (_, Type::Boolean, _) if row.default == Some("true") => "false",
        (_, Type::Boolean, _) => "true",
        (_, Type::Double, _) => "0.25",
        (_, Type::String | Type::List, _) => "dlq.a",
        _ => "70001",
    };
    text.to_owned()
}

fn started_with(row: &table::ConfigDef) -> (String, Configs) {
    let key = format!("ottla.group.default.{}", row.name);
    let settings = [
        ("node.id", "1"),
        ("ottla.profile", "kafka"),
        (&*key, &*another(row)),
    ];
    let configs = configs(&settings);
    (key, configs)
}

#[test]
fn every_group_config_that_a_group_runs_with_takes_its_default_from_it() {
    let plain = configs(&[("node.id", "1"), ("ottla.profile", "kafka")]).group(1, "g");
    let read: Vec<&str> = [
        crate::config::group::ConsumerGroupConfig::KEYS,
        crate::config::group::ShareGroupConfig::KEYS,
        crate::config::group::StreamsGroupConfig::KEYS,
    ]
    .concat();
    // There is one assignor of streams groups, so that its default cannot be another.
    let rows = table::all(Scope::Group).filter(|row| row.name != "streams.assignor.name");
    for row in rows {
        let (_, configs) = started_with(row);
        let group = configs.group(1, "g");
        assert_eq!(group != plain, read.contains(&row.name), "{}", row.name);
    }
    // What no group reads is Kafka's own business: where assignments are computed.
    let rows = table::all(Scope::Group);
    let unread: Vec<_> = rows.filter(|row| !read.contains(&row.name)).collect();
    assert!(
        unread
            .iter()
            .all(|row| row.internal || row.name.ends_with("offload.enable"))
    );
    assert_eq!(unread.len(), 3);
}

#[test]
fn describe_configs_shows_it_below_the_groups_own_and_above_the_brokers() {
    for row in table::all(Scope::Group) {
        let (key, mut configs) = started_with(row);
        let own = |configs: &Configs| {
            let keys = [row.name.to_owned()];
            let kind = ResourceType::Group.wire();
            configs.describe(&world(), kind, "g", Some(&keys)).unwrap()
        };
        if row.internal {
            assert_eq!(
                own(&configs),
                [],
                "{}: internal, and not the group's own",
                row.name
            );
        } else {
            let entry = own(&configs).remove(0);
            assert_eq!(entry.value, Some(another(row)), "{}", row.name);
            assert_eq!(entry.source, ConfigSource::StaticBroker);
            let sources: Vec<_> = entry.synonyms.iter().map(|s| s.name.as_str()).collect();
            assert_eq!(sources[0], key);
            let broker: Vec<_> = row.synonyms.iter().map(|(name, _)| *name).collect();
            if !broker.is_empty() {
                assert_eq!(sources[1..], broker[..], "{}", row.name);
            }
        }
        configs.apply(&change(ResourceType::Group, "g", row.name, row.default));
        if row.default.is_none() {
            continue;
        }
        let entry = own(&configs).remove(0);
        assert_eq!(entry.value.as_deref(), row.default);
        let first: Vec<&Synonym> = entry.synonyms.iter().take(2).collect();
        let got = first.iter().map(|s| (s.name.as_str(), s.source));
        let expected = [
            (row.name, ConfigSource::Group),
            (key.as_str(), ConfigSource::StaticBroker),
        ];
        assert!(got.eq(expected), "{first:?}");
    }
}

#[test]
fn a_default_that_is_wrong_is_named_before_anything_starts() {
    let error = |key: &str, value: &str| {
        let key = format!("ottla.group.default.{key}");
        try_statics(&[(&key, value)]).unwrap_err().to_string()
    };
    assert_eq!(
        error("share.auto.offset.rest", "earliest"),
        "--set: ottla.group.default.share.auto.offset.rest: Unknown group config name: \
         share.auto.offset.rest; did you mean share.auto.offset.reset?"
    );
    assert!(error("", "x").contains("Unknown group config name"));
    assert_eq!(
        error("share.delivery.count.limit", "11"),
        "ottla.group.default: share.delivery.count.limit must be in the range 2 to 10 inclusive."
    );
    let dlq = error("errors.deadletterqueue.topic.name", "__x");
    assert!(dlq.contains("must not start with '__'"), "{dlq}");
    let assignor = error("streams.assignor.name", "none");
    assert!(
        assignor.contains("not a registered task assignor"),
        "{assignor}"
    );
    let session = error("consumer.session.timeout.ms", "1000");
    assert!(
        session.contains("must be greater than consumer.heartbeat"),
        "{session}"
    );
}

#[test]
fn a_default_outside_the_bounds_that_are_stored_is_brought_within_them() {
    let key = "ottla.group.default.share.partition.max.record.locks";
    let mut configs = configs(&[("node.id", "1"), (key, "1500")]);
    let bound = "group.share.min.partition.max.record.locks";
    configs.apply(&change(ResourceType::Broker, "", bound, Some("1700")));
    assert_eq!(configs.group(1, "g").share.partition_max_record_locks, 1700);
}
