use super::*;
use crate::config::{CleanupPolicy, CompressionType, IsolationLevel, OffsetReset, Profile};

#[test]
fn both_profiles_resolve_everything() {
    for profile in [Profile::Desk, Profile::Kafka] {
        for brokers in ["1", "3"] {
            let configs = configs(&[
                ("ottla.profile", profile.name()),
                ("ottla.brokers", brokers),
            ]);
            for id in configs.statics().broker_ids() {
                assert_eq!(configs.broker(id).node_id, id);
                configs.topic(id, "t");
                configs.group(id, "g");
            }
        }
    }
}

#[test]
fn the_kafka_profile_has_kafkas_defaults() {
    let configs = configs(&[("ottla.profile", "kafka"), ("ottla.brokers", "3")]);
    let broker = configs.broker(0);
    assert_eq!(broker.offsets.partitions, 50);
    assert_eq!(broker.offsets.replication_factor, 3);
    assert_eq!(broker.share_state.min_isr, 2);
    assert_eq!(broker.classic_groups.initial_rebalance_delay_ms, 3_000);
    assert_eq!(broker.network.request_max_bytes, 104_857_600);
    let topic = configs.topic(0, "t");
    assert_eq!(topic.retention_ms, 604_800_000);
    assert_eq!(topic.segment_size(), 1_073_741_824);
    assert_eq!(
        topic.cleanup_policy,
        CleanupPolicy {
            delete: true,
            compact: false
        }
    );
    assert_eq!(topic.compression_type, CompressionType::Producer);
    let group = configs.group(0, "g");
    assert_eq!(group.share.assignment_interval_ms, 1_000);
    assert_eq!(group.share.heartbeat_interval_ms, 5_000);
    assert_eq!(group.share.auto_offset_reset, OffsetReset::Latest);
    assert_eq!(group.share.isolation_level, IsolationLevel::ReadUncommitted);
    assert_eq!(group.streams.assignor_name.as_deref(), Some("sticky"));
}

#[test]
fn the_desk_profile_waits_for_nothing() {
    let configs = configs(&[]);
    let (broker, group) = (configs.broker(0), configs.group(0, "g"));
    assert_eq!(broker.classic_groups.initial_rebalance_delay_ms, 0);
    assert_eq!(group.share.assignment_interval_ms, 0);
    assert_eq!(group.consumer.assignment_interval_ms, 0);
    assert_eq!(group.share.heartbeat_interval_ms, 1_000);
    assert_eq!(
        (broker.offsets.partitions, broker.offsets.replication_factor),
        (4, 1)
    );
    assert_eq!(broker.listeners[0].bind.to_string(), "127.0.0.1:9092");
}

#[test]
fn a_test_may_use_a_lock_of_50_ms_at_the_desk() {
    let mut configs = configs(&[("node.id", "1")]);
    let ops = [
        set("share.record.lock.duration.ms", "50"),
        set("share.session.timeout.ms", "2000"),
    ];
    let changes = configs.incremental_alter(&world(), 32, "g", &ops).unwrap();
    apply_all(&mut configs, &changes);
    assert_eq!(configs.group(1, "g").share.record_lock_duration_ms, 50);
    let refusal = configs.incremental_alter(
        &world(),
        32,
        "g",
        &[set("share.record.lock.duration.ms", "5")],
    );
    assert_eq!(
        text(&refusal.unwrap_err()),
        "share.record.lock.duration.ms must be in the range 10 to 60000 inclusive."
    );
}

#[test]
fn a_bound_that_the_user_moves_moves_our_default() {
    let configs = configs(&[("group.share.min.heartbeat.interval.ms", "5000")]);
    assert_eq!(configs.group(0, "g").share.heartbeat_interval_ms, 5_000);
}

#[test]
fn a_topics_own_config_beats_the_brokers_dynamic_its_static_and_the_default() {
    let mut configs = configs(&[("message.max.bytes", "2000")]);
    let max = |configs: &Configs| configs.topic(0, "t").max_message_bytes;
    assert_eq!(max(&configs), 2_000);
    configs.apply(&change(
        ResourceType::Broker,
        "",
        "message.max.bytes",
        Some("3000"),
    ));
    assert_eq!(max(&configs), 3_000);
    configs.apply(&change(
        ResourceType::Broker,
        "0",
        "message.max.bytes",
        Some("4000"),
    ));
    assert_eq!(max(&configs), 4_000);
    configs.apply(&change(
        ResourceType::Topic,
        "t",
        "max.message.bytes",
        Some("5000"),
    ));
    assert_eq!(max(&configs), 5_000);
    configs.remove_resource(ResourceType::Topic, "t");
    configs.apply(&change(
        ResourceType::Broker,
        "0",
        "message.max.bytes",
        None,
    ));
    assert_eq!(max(&configs), 3_000);
}

#[test]
fn durations_come_from_the_finest_unit_that_is_given() {
    let retention = |pairs: &[(&str, &str)]| configs(pairs).topic(0, "t").retention_ms;
    assert_eq!(retention(&[("log.retention.hours", "1")]), 3_600_000);
    assert_eq!(
        retention(&[("log.retention.hours", "1"), ("log.retention.minutes", "1")]),
        60_000
    );
    assert_eq!(
        retention(&[("log.retention.minutes", "1"), ("log.retention.ms", "7")]),
        7
    );
    assert_eq!(retention(&[("log.retention.ms", "-2")]), -1);
    assert_eq!(retention(&[("log.retention.hours", "-1")]), -1);
}

#[test]
fn each_broker_has_its_own_overrides() {
    let configs = configs(&[
        ("ottla.brokers", "3"),
        ("ottla.override.1.broker.rack", "b"),
        ("ottla.override.2.num.partitions", "7"),
    ]);
    assert_eq!(configs.broker(0).rack, None);
    assert_eq!(configs.broker(1).rack.as_deref(), Some("b"));
    assert_eq!(configs.broker(2).topics.num_partitions, 7);
    assert_eq!(configs.broker(1).topics.num_partitions, 1);
}

#[test]
fn a_stored_value_outside_the_brokers_bounds_runs_at_the_bound() {
    let mut configs = configs(&[("ottla.profile", "kafka")]);
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.record.lock.duration.ms",
        Some("1000"),
    ));
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.session.timeout.ms",
        Some("90000"),
    ));
    let share = configs.group(0, "g").share;
    assert_eq!(
        (share.record_lock_duration_ms, share.session_timeout_ms),
        (15_000, 60_000)
    );
}

#[test]
fn a_stored_value_that_is_no_value_has_no_effect() {
    let mut configs = configs(&[]);
    configs.apply(&change(
        ResourceType::Topic,
        "t",
        "retention.ms",
        Some("soon"),
    ));
    configs.apply(&change(
        ResourceType::Topic,
        "t",
        "no.such.config",
        Some("1"),
    ));
    configs.apply(&change(
        ResourceType::Broker,
        "",
        "message.max.bytes",
        Some("-5"),
    ));
    let topic = configs.topic(0, "t");
    assert_eq!(
        (topic.retention_ms, topic.max_message_bytes),
        (604_800_000, 1_048_588)
    );
}

#[test]
fn a_group_default_is_every_groups_default() {
    let mut configs = configs(&[
        (
            "ottla.group.default.share.auto.offset.reset",
            "by_duration:PT1H",
        ),
        ("ottla.group.default.share.record.lock.duration.ms", "20000"),
    ]);
    let share = configs.group(0, "g").share;
    assert_eq!(share.auto_offset_reset, OffsetReset::ByDuration(3_600_000));
    assert_eq!(share.record_lock_duration_ms, 20_000);
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.auto.offset.reset",
        Some("earliest"),
    ));
    assert_eq!(
        configs.group(0, "g").share.auto_offset_reset,
        OffsetReset::Earliest
    );
}

#[test]
fn all_stored_changes_make_the_same_configs_again() {
    let mut configs = configs(&[]);
    configs.apply(&change(ResourceType::Topic, "t", "retention.ms", Some("5")));
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.isolation.level",
        Some("read_committed"),
    ));
    configs.apply(&change(
        ResourceType::Broker,
        "",
        "message.max.bytes",
        Some("5000"),
    ));
    let mut replayed = Configs::new(configs.statics().clone());
    apply_all(&mut replayed, &configs.all_stored());
    assert_eq!(replayed.all_stored(), configs.all_stored());
    assert_eq!(replayed.topic(0, "t"), configs.topic(0, "t"));
}
