//! Each row of the measured answers to config requests, and what the rows do not say.

use ottla_protocol::ErrorCode;

use super::*;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;

/// Resource type, name, key, value (`(delete)` is DELETE), code, text. An empty text is success.
type Row = (
    i8,
    &'static str,
    &'static str,
    &'static str,
    i16,
    &'static str,
);

#[rustfmt::skip] // a row is a line
const ROWS: &[Row] = &[
    (GROUP, "cg", "bogus", "1", 40, "Unknown group config name: bogus"),
    (GROUP, "cg", "share.record.lock.duration.ms", "999", 40, "Invalid value 999 for configuration share.record.lock.duration.ms: Value must be at least 1000"),
    (GROUP, "cg", "share.record.lock.duration.ms", "60001", 40, "share.record.lock.duration.ms must be in the range 1000 to 60000 inclusive."),
    (GROUP, "cg", "share.record.lock.duration.ms", "abc", 40, "Invalid value abc for configuration share.record.lock.duration.ms: Not a number of type INT"),
    (GROUP, "cg", "share.record.lock.duration.ms", "", 40, "Invalid value  for configuration share.record.lock.duration.ms: Not a number of type INT"),
    (GROUP, "cg", "share.delivery.count.limit", "1", 40, "Invalid value 1 for configuration share.delivery.count.limit: Value must be at least 2"),
    (GROUP, "cg", "share.delivery.count.limit", "11", 40, "share.delivery.count.limit must be in the range 2 to 10 inclusive."),
    (GROUP, "cg", "share.partition.max.record.locks", "99", 40, "Invalid value 99 for configuration share.partition.max.record.locks: Value must be at least 100"),
    (GROUP, "cg", "share.partition.max.record.locks", "4001", 40, "share.partition.max.record.locks must be in the range 100 to 4000 inclusive."),
    (GROUP, "cg", "share.heartbeat.interval.ms", "500", 40, "share.heartbeat.interval.ms must be in the range 1000 to 15000 inclusive."),
    (GROUP, "cg", "share.heartbeat.interval.ms", "15001", 40, "share.heartbeat.interval.ms must be in the range 1000 to 15000 inclusive."),
    (GROUP, "cg", "share.session.timeout.ms", "2999", 40, "share.session.timeout.ms must be in the range 3000 to 60000 inclusive."),
    (GROUP, "cg", "share.session.timeout.ms", "60001", 40, "share.session.timeout.ms must be in the range 3000 to 60000 inclusive."),
    (GROUP, "cg", "consumer.session.timeout.ms", "1000", 40, "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."),
    (GROUP, "cg", "share.assignment.interval.ms", "15001", 40, "share.assignment.interval.ms must be in the range 0 to 15000 inclusive."),
    (GROUP, "cg", "share.assignment.interval.ms", "-1", 40, "Invalid value -1 for configuration share.assignment.interval.ms: Value must be at least 0"),
    (GROUP, "cg", "share.renew.acknowledge.enable", "maybe", 40, "Invalid value maybe for configuration share.renew.acknowledge.enable: Expected value to be either true or false"),
    (GROUP, "cg", "share.renew.acknowledge.enable", "false", 0, ""),
    (GROUP, "cg", "share.isolation.level", "READ_COMMITTED", 40, "Invalid value READ_COMMITTED for configuration share.isolation.level: String must be one of: read_committed, read_uncommitted"),
    (GROUP, "", "share.delivery.count.limit", "3", 42, "Default group resources are not allowed."),
    (GROUP, "cg", "errors.deadletterqueue.topic.name", "dlq.x", 0, ""),
    (GROUP, "cg", "errors.deadletterqueue.topic.name", "bad name!", 0, ""),
    (GROUP, "cg", "errors.deadletterqueue.topic.name", "notprefixed", 0, ""),
    (GROUP, "cg", "errors.deadletterqueue.topic.name", "__consumer_offsets", 40, "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"),
    (GROUP, "cg", "errors.deadletterqueue.topic.name", "..", 0, ""),
    (GROUP, "cg", "errors.deadletterqueue.topic.name", "", 0, ""),
    (GROUP, "cg", "errors.deadletterqueue.copy.record.enable", "2", 40, "Invalid value 2 for configuration errors.deadletterqueue.copy.record.enable: Expected value to be either true or false"),
    (GROUP, "cg", "streams.assignor.name", "foo", 40, "streams.assignor.name 'foo' is not a registered task assignor. Registered assignors are: [sticky]."),
    (GROUP, "cg", "streams.assignor.name", "sticky", 0, ""),
    (GROUP, "cg", "streams.num.standby.replicas", "3", 40, "streams.num.standby.replicas must be less than or equal to 2"),
    (GROUP, "cg", "streams.num.warmup.replicas", "30", 40, "streams.num.warmup.replicas must be less than or equal to 20"),
    (GROUP, "cg", "streams.task.offset.interval.ms", "100", 40, "streams.task.offset.interval.ms must be greater than or equal to 15000"),
    (GROUP, "cg", "bogus", "(delete)", 0, ""),
    (TOPIC, "cfgt", "bogus", "1", 40, "Unknown topic config name: bogus"),
    (TOPIC, "cfgt", "retention.ms", "-2", 40, "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    (TOPIC, "cfgt", "retention.ms", "x", 40, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    (TOPIC, "cfgt", "cleanup.policy", "foo", 40, "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"),
    (TOPIC, "cfgt", "max.message.bytes", "-1", 40, "Invalid value -1 for configuration max.message.bytes: Value must be at least 0"),
    (TOPIC, "cfgt", "segment.bytes", "10", 40, "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"),
    (TOPIC, "cfgt", "min.insync.replicas", "0", 40, "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"),
    (TOPIC, "cfgt", "compression.type", "brotli", 40, "Invalid value brotli for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    (TOPIC, "nosuch", "retention.ms", "1", 3, "The topic 'nosuch' does not exist."),
    (TOPIC, "cfgt", "errors.deadletterqueue.group.enable", "x", 40, "Invalid value x for configuration errors.deadletterqueue.group.enable: Expected value to be either true or false"),
    (TOPIC, "cfgt", "errors.deadletterqueue.group.enable", "true", 0, ""),
    (TOPIC, "bad name!", "retention.ms", "1", 17, "Topic name is invalid: 'bad name!' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    (TOPIC, "", "retention.ms", "1", 42, "Default topic resources are not allowed."),
    (TOPIC, "cfgt", "remote.storage.enable", "true", 40, "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."),
    (TOPIC, "cfgt", "internal.segment.bytes", "100", 0, ""),
    (TOPIC, "cfgt", "bogus", "(delete)", 0, ""),
    (BROKER, "", "bogus.name", "1", 0, ""),
    (BROKER, "1", "num.network.threads", "0", 42, "Invalid value 0 for configuration num.network.threads: Value must be at least 1"),
    (BROKER, "1", "num.io.threads", "1000", 42, "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed for num.io.threads=1000, value should not be greater than double the current value 8 for configuration Invalid dynamic configuration"),
    (BROKER, "1", "num.io.threads", "3", 42, "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed for num.io.threads=3, value should be at least half the current value 8 for configuration Invalid dynamic configuration"),
    (BROKER, "1", "num.io.threads", "16", 0, ""),
    (BROKER, "1", "log.cleaner.threads", "5", 42, "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot be increased to more than double the current value 1 for configuration Invalid dynamic configuration"),
    (BROKER, "99", "log.retention.ms", "1000", 42, "Unexpected broker id, expected 1, but received 99"),
    (BROKER, "abc", "log.retention.ms", "1000", 42, "Node id must be an integer, but it is: abc"),
    (BROKER, "1", "log.dirs", "/x", 42, "Cannot update these configs dynamically: [log.dirs]"),
    (BROKER, "1", "log.dirs", "(delete)", 0, ""),
    (BROKER, "", "group.share.max.size", "5", 42, "Cannot update these configs dynamically: [group.share.max.size]"),
    (BROKER, "", "errors.deadletterqueue.topic.name.prefix", "!!", 0, ""),
    (BROKER, "", "errors.deadletterqueue.topic.name.prefix", "", 0, ""),
    (BROKER, "1", "errors.deadletterqueue.topic.name.prefix", "q.", 0, ""),
    (BROKER, "", "errors.deadletterqueue.topic.name.prefix", "q.", 0, ""),
    (BROKER, "", "errors.deadletterqueue.topic.name.prefix", "(delete)", 0, ""),
    (BROKER, "1", "errors.deadletterqueue.topic.name.prefix", "(delete)", 0, ""),
    (BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", "true", 0, ""),
    (BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", "(delete)", 0, ""),
    (BROKER, "", "log.retention.ms", "abc", 42, "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"),
    (BROKER, "1", "log.retention.ms", "0", 42, "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
    (BROKER, "1", "log.retention.ms", "-2", 0, ""),
    (BROKER, "", "min.insync.replicas", "0", 42, "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"),
    (BROKER, "1", "min.insync.replicas", "2", 40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
    (BROKER, "", "min.insync.replicas", "(delete)", 40, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
    (BROKER, "", "min.insync.replicas", "2", 0, ""),
    (BROKER, "", "principal.builder.class", "x", 42, "Invalid value x for configuration principal.builder.class: Class x could not be found."),
    (BROKER, "", "listeners", "PLAINTEXT://:1", 42, "Cannot update these configs dynamically: [listeners]"),
    (BROKER, "1", "principal.builder.class", "x", 42, "Invalid value x for configuration principal.builder.class: Class x could not be found."),
    (BROKER, "", "ssl.keystore.type", "PKCS12", 42, "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.type]"),
    (BROKER, "", "listener.name.plaintext.ssl.keystore.type", "PKCS12", 42, "Cannot update these configs at default cluster level, broker id must be specified: [listener.name.plaintext.ssl.keystore.type]"),
    (BROKER, "1", "group.share.assignment.interval.ms", "20000", 42, "group.share.assignment.interval.ms must be less than or equal to group.share.max.assignment.interval.ms"),
    (BROKER, "", "group.share.assignment.interval.ms", "5", 0, ""),
    (BROKER, "", "compression.gzip.level", "0", 42, "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"),
    (BROKER, "", "metric.reporters", "foo.Bar", 42, "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of Set(metric.reporters) failed with class class kafka.server.DynamicMetricsReporters for configuration Invalid dynamic configuration"),
    (LOGGER, "1", "kafka.server", "DEBUGX", 40, "Logger kafka.server does not exist!"),
    (LOGGER, "1", "root", "DEBUGX", 40, "Cannot set the log level of root to DEBUGX as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
    (LOGGER, "1", "root", "(delete)", 42, "Removing the log level of the root logger is not allowed"),
    (LOGGER, "1", "ottla::config", "DEBUG", 0, ""),
    (LOGGER, "2", "root", "DEBUG", 42, "Unexpected broker id, expected 1, but received 2"),
    (METRICS, "cm", "interval.ms", "abc", 40, "Invalid value abc for configuration interval.ms: Not a number of type INT"),
    (METRICS, "cm", "bogus", "abc", 42, "Unknown client metrics configuration: bogus"),
    (METRICS, "cm", "interval.ms", "50", 42, "Invalid value 50 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
    (METRICS, "cm", "match", "bogus", 40, "Illegal client matching pattern: bogus"),
    (METRICS, "cm", "match", "client_id=[", 40, "Illegal client matching pattern: client_id=["),
    (METRICS, "cm", "match", "client_id=x", 0, ""),
    (METRICS, "", "interval.ms", "100", 42, "Subscription name can't be empty"),
    (0, "x", "a", "1", 42, "Unknown resource type 0"),
];

fn ask(configs: &Configs, row: &Row) -> Result<Vec<ConfigChange>, Refusal> {
    let (kind, name, key, value, ..) = *row;
    let ops = match value {
        "(delete)" => [op(key, OpKind::Delete, None)],
        value => [set(key, value)],
    };
    configs.incremental_alter(&world(), kind, name, &ops)
}

#[test]
fn every_measured_request_is_answered_as_kafka_answers_it() {
    let configs = measured();
    for row in ROWS {
        let (.., code, expected) = *row;
        match ask(&configs, row) {
            Ok(_) => assert_eq!(code, 0, "{row:?} was accepted"),
            Err(refusal) => {
                assert_eq!(
                    (refusal.code.0, text(&refusal)),
                    (code, expected),
                    "{row:?}"
                );
            }
        }
    }
}

#[test]
fn a_dead_letter_topic_of_254_characters_is_not_checked() {
    let name = format!("dlq.{}", "x".repeat(250));
    let ops = [set("errors.deadletterqueue.topic.name", &name)];
    assert!(
        measured()
            .incremental_alter(&world(), GROUP, "cg", &ops)
            .is_ok()
    );
}

#[test]
fn sessions_must_be_longer_than_heartbeats() {
    let both = [
        set("share.session.timeout.ms", "5000"),
        set("share.heartbeat.interval.ms", "5000"),
    ];
    let refusal = measured()
        .incremental_alter(&world(), GROUP, "cg", &both)
        .unwrap_err();
    assert_eq!(
        (refusal.code, text(&refusal)),
        (
            ErrorCode::INVALID_CONFIG,
            "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
        )
    );
    // The other one may be stored, or be the broker's default.
    let one = [set("share.session.timeout.ms", "5000")];
    assert!(
        measured()
            .incremental_alter(&world(), GROUP, "cg", &one)
            .is_err()
    );
}

#[test]
fn compaction_lags_must_not_cross() {
    let ops = [
        set("max.compaction.lag.ms", "10"),
        set("min.compaction.lag.ms", "100"),
    ];
    let refusal = measured()
        .incremental_alter(&world(), TOPIC, "cfgt", &ops)
        .unwrap_err();
    assert_eq!(
        text(&refusal),
        "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)"
    );
}

#[test]
fn nulls_and_repeated_keys_are_refused_before_anything_else() {
    let ask = |ops: &[AlterOp]| {
        measured()
            .incremental_alter(&world(), GROUP, "cg2", ops)
            .unwrap_err()
    };
    let null = ask(&[op("share.delivery.count.limit", OpKind::Set, None)]);
    assert_eq!(
        (null.code, text(&null)),
        (
            ErrorCode::INVALID_REQUEST,
            "Null value not supported for : share.delivery.count.limit"
        )
    );
    let twice = ask(&[
        set("share.delivery.count.limit", "3"),
        set("share.delivery.count.limit", "4"),
    ]);
    assert_eq!(
        (twice.code, text(&twice)),
        (
            ErrorCode::INVALID_REQUEST,
            "Error due to duplicate config keys"
        )
    );
}

#[test]
fn only_lists_take_append_and_subtract() {
    let ask = |kind, name, key| {
        let refusal = measured()
            .incremental_alter(&world(), kind, name, &[op(key, OpKind::Append, Some("1"))])
            .unwrap_err();
        (refusal.code.0, refusal.message.unwrap_or_default())
    };
    let not_a_list = |key| {
        (
            40,
            format!("Can't APPEND to key {key} because its type is not LIST."),
        )
    };
    assert_eq!(
        ask(GROUP, "cg2", "share.delivery.count.limit"),
        not_a_list("share.delivery.count.limit")
    );
    assert_eq!(ask(GROUP, "cg2", "bogus"), not_a_list("bogus"));
    assert_eq!(
        ask(TOPIC, "cfgt", "retention.ms"),
        not_a_list("retention.ms")
    );
    assert_eq!(ask(METRICS, "cm", "metrics"), not_a_list("metrics"));
    assert_eq!(
        ask(BROKER, "1", "bogus2"),
        (40, "Unknown config name: bogus2".to_owned())
    );
    assert_eq!(
        ask(BROKER, "1", "log.retention.ms"),
        (
            40,
            "Config value append is not allowed for config key: log.retention.ms".to_owned()
        )
    );
    assert_eq!(
        ask(LOGGER, "1", "root"),
        (
            42,
            "APPEND operation is not allowed for the BROKER_LOGGER resource".to_owned()
        )
    );
}

#[test]
fn appending_and_subtracting_change_the_stored_list_or_the_default() {
    let mut configs = measured();
    let mut alter = |kind, value| {
        let ops = [op("cleanup.policy", kind, Some(value))];
        let changes = configs
            .incremental_alter(&world(), TOPIC, "cfgt", &ops)
            .unwrap();
        apply_all(&mut configs, &changes);
        configs
            .stored(ResourceType::Topic, "cfgt")
            .and_then(|own| own.get("cleanup.policy"))
            .cloned()
    };
    assert_eq!(
        alter(OpKind::Append, "compact").as_deref(),
        Some("delete,compact")
    );
    assert_eq!(
        alter(OpKind::Append, "compact").as_deref(),
        Some("delete,compact")
    );
    assert_eq!(
        alter(OpKind::Subtract, "delete").as_deref(),
        Some("compact")
    );
    assert_eq!(
        alter(OpKind::Subtract, "nosuch").as_deref(),
        Some("compact")
    );
    assert_eq!(alter(OpKind::Subtract, "compact").as_deref(), Some(""));
}

#[test]
fn what_changes_nothing_is_not_logged() {
    let mut configs = measured();
    let ops = [
        set("retention.ms", "5"),
        op("segment.ms", OpKind::Delete, None),
    ];
    let changes = configs
        .incremental_alter(&world(), TOPIC, "cfgt", &ops)
        .unwrap();
    assert_eq!(
        changes,
        [change(
            ResourceType::Topic,
            "cfgt",
            "retention.ms",
            Some("5")
        )]
    );
    apply_all(&mut configs, &changes);
    assert_eq!(
        configs.incremental_alter(&world(), TOPIC, "cfgt", &ops),
        Ok(Vec::new())
    );
}

#[test]
fn alter_configs_takes_back_what_it_does_not_name() {
    let mut configs = measured();
    configs.apply(&change(
        ResourceType::Group,
        "cg2",
        "share.isolation.level",
        Some("read_committed"),
    ));
    let given = [(
        "share.delivery.count.limit".to_owned(),
        Some("3".to_owned()),
    )];
    assert_eq!(
        configs.replace(&world(), GROUP, "cg2", &given),
        Ok(vec![
            change(
                ResourceType::Group,
                "cg2",
                "share.delivery.count.limit",
                Some("3")
            ),
            change(ResourceType::Group, "cg2", "share.isolation.level", None),
        ])
    );
}

#[test]
fn alter_configs_leaves_the_pinned_cluster_default() {
    let mut configs = measured();
    let initial = configs.initial_changes();
    apply_all(&mut configs, &initial);
    assert_eq!(configs.initial_changes(), []);
    let given = [("log.retention.ms".to_owned(), Some("7".to_owned()))];
    assert_eq!(
        configs.replace(&world(), BROKER, "", &given),
        Ok(vec![change(
            ResourceType::Broker,
            "",
            "log.retention.ms",
            Some("7")
        )])
    );
}

#[test]
fn listeners_stay_those_that_the_process_was_started_with() {
    for key in ["listeners", "listener.name.plaintext.ssl.keystore.type"] {
        let refusal = measured()
            .incremental_alter(&world(), BROKER, "1", &[set(key, "x")])
            .unwrap_err();
        assert_eq!(
            text(&refusal),
            format!("Cannot update these configs dynamically: [{key}]")
        );
    }
}

#[test]
fn bounds_over_stored_broker_configs_are_checked() {
    let mut configs = measured();
    configs.apply(&change(
        ResourceType::Broker,
        "",
        "log.local.retention.bytes",
        Some("55555"),
    ));
    let ops = [set("log.retention.bytes", "100")];
    let refusal = configs
        .incremental_alter(&world(), BROKER, "", &ops)
        .unwrap_err();
    assert_eq!(
        text(&refusal),
        "Invalid value org.apache.kafka.common.config.ConfigException: Invalid value 55555 for \
         configuration log.local.retention.bytes: Value must not be more than log.retention.bytes \
         property value: 100 for configuration Invalid dynamic configuration"
    );
}

#[test]
fn the_default_of_all_brokers_may_exceed_what_the_broker_overrides() {
    let mut configs = measured();
    configs.apply(&change(
        ResourceType::Broker,
        "1",
        "num.io.threads",
        Some("16"),
    ));
    let ops = [set("num.io.threads", "1000")];
    assert!(
        configs
            .incremental_alter(&world(), BROKER, "", &ops)
            .is_ok()
    );
}

#[test]
fn the_configs_of_a_new_topic_are_checked_as_a_whole() {
    let configs = measured();
    let ask = |pairs: &[(&str, Option<&str>)]| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned)))
            .collect();
        configs.check_new_topic(&world(), &pairs)
    };
    let own = ask(&[
        ("retention.ms", Some(" 5 ")),
        ("cleanup.policy", Some("compact")),
    ])
    .unwrap();
    assert_eq!(own["retention.ms"], "5");
    assert_eq!(
        text(&ask(&[("bogus", Some("1"))]).unwrap_err()),
        "Unknown topic config name: bogus"
    );
    assert_eq!(
        text(&ask(&[("retention.ms", None)]).unwrap_err()),
        "Null value not supported for topic configs: retention.ms"
    );
}
