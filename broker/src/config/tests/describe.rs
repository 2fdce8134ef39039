use ottla_protocol::ErrorCode;

use super::*;
use crate::config::table::{self, Scope};
use crate::config::{ConfigEntry, ConfigSource};

fn entries(configs: &Configs, kind: ResourceType, name: &str) -> Vec<ConfigEntry> {
    configs.describe(&world(), kind.wire(), name, None).unwrap()
}

fn one(configs: &Configs, kind: ResourceType, name: &str, key: &str) -> ConfigEntry {
    let mut found = configs
        .describe(&world(), kind.wire(), name, Some(&[key.to_owned()]))
        .unwrap();
    assert_eq!(found.len(), 1, "{key}");
    found.remove(0)
}

fn synonyms(entry: &ConfigEntry) -> Vec<(String, String, ConfigSource)> {
    let synonym = |s: &crate::config::Synonym| {
        (
            s.name.clone(),
            s.value.clone().unwrap_or_default(),
            s.source,
        )
    };
    entry.synonyms.iter().map(synonym).collect()
}

fn triple(name: &str, value: &str, source: ConfigSource) -> (String, String, ConfigSource) {
    (name.to_owned(), value.to_owned(), source)
}

#[test]
fn a_group_has_all_its_configs_whether_it_exists_or_not() {
    let configs = measured();
    let all = entries(&configs, ResourceType::Group, "never-seen");
    let names = |rows: &[table::ConfigDef]| -> Vec<&'static str> {
        let shown = rows.iter().filter(|row| !row.internal);
        shown.map(|row| row.name).collect()
    };
    let kafkas = names(table::rows(Scope::Group));
    let ours = names(table::ours(Scope::Group));
    assert_eq!((kafkas.len(), ours.len()), (21, 12));
    let listed: Vec<_> = all.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(listed, [kafkas, ours].concat(), "Kafka's come first");
    let lock = one(
        &configs,
        ResourceType::Group,
        "never-seen",
        "share.record.lock.duration.ms",
    );
    assert_eq!(lock.value.as_deref(), Some("30000"));
    assert!(lock.is_default() && !lock.read_only && !lock.sensitive);
    assert_eq!(
        synonyms(&lock),
        [triple(
            "group.share.record.lock.duration.ms",
            "30000",
            ConfigSource::Default
        )]
    );
}

#[test]
fn what_a_group_sets_comes_first_and_an_internal_config_shows_once_it_is_set() {
    let mut configs = measured();
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.session.timeout.ms",
        Some("50000"),
    ));
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.assignor.offload.enable",
        Some("false"),
    ));
    assert_eq!(
        entries(&configs, ResourceType::Group, "g").len(),
        21 + 1 + 12
    );
    let session = one(
        &configs,
        ResourceType::Group,
        "g",
        "share.session.timeout.ms",
    );
    assert_eq!(
        (session.source, session.value.as_deref()),
        (ConfigSource::Group, Some("50000"))
    );
    assert_eq!(
        synonyms(&session),
        [
            triple("share.session.timeout.ms", "50000", ConfigSource::Group),
            triple(
                "group.share.session.timeout.ms",
                "45000",
                ConfigSource::Default
            ),
        ]
    );
    let reset = one(
        &configs,
        ResourceType::Group,
        "g",
        "share.auto.offset.reset",
    );
    assert_eq!(
        synonyms(&reset),
        [triple(
            "share.auto.offset.reset",
            "latest",
            ConfigSource::Default
        )]
    );
}

#[test]
fn a_group_default_of_ours_is_named_as_it_was_given() {
    let configs = configs(&[
        ("node.id", "1"),
        ("ottla.group.default.share.auto.offset.reset", "earliest"),
    ]);
    let reset = one(
        &configs,
        ResourceType::Group,
        "g",
        "share.auto.offset.reset",
    );
    assert_eq!(
        (reset.source, reset.value.as_deref()),
        (ConfigSource::StaticBroker, Some("earliest"))
    );
    assert_eq!(
        synonyms(&reset)[0].0,
        "ottla.group.default.share.auto.offset.reset"
    );
}

#[test]
fn a_topic_has_37_configs_with_their_broker_synonyms() {
    let mut configs = measured();
    let initial = configs.initial_changes();
    apply_all(&mut configs, &initial);
    configs.apply(&change(
        ResourceType::Topic,
        "cfgt",
        "min.insync.replicas",
        Some("5"),
    ));
    assert_eq!(entries(&configs, ResourceType::Topic, "cfgt").len(), 37);
    let isr = one(&configs, ResourceType::Topic, "cfgt", "min.insync.replicas");
    assert_eq!(
        synonyms(&isr),
        [
            triple("min.insync.replicas", "5", ConfigSource::Topic),
            triple(
                "min.insync.replicas",
                "1",
                ConfigSource::DynamicDefaultBroker
            ),
            triple("min.insync.replicas", "1", ConfigSource::Default),
        ]
    );
    let flag = one(
        &configs,
        ResourceType::Topic,
        "cfgt",
        "errors.deadletterqueue.group.enable",
    );
    assert_eq!((synonyms(&flag).len(), flag.is_default()), (0, true));
}

#[test]
fn retention_inherits_from_hours_and_names_them_once_milliseconds_are_set() {
    let mut configs = configs(&[
        ("ottla.profile", "kafka"),
        ("node.id", "1"),
        ("log.retention.hours", "5"),
    ]);
    let retention = |configs: &Configs| one(configs, ResourceType::Topic, "cfgt", "retention.ms");
    let entry = retention(&configs);
    assert_eq!(
        (entry.value.as_deref(), entry.synonyms.len()),
        (Some("18000000"), 0)
    );
    configs.apply(&change(
        ResourceType::Broker,
        "",
        "log.retention.ms",
        Some("9000000"),
    ));
    configs.apply(&change(
        ResourceType::Broker,
        "1",
        "log.retention.ms",
        Some("8000000"),
    ));
    let entry = retention(&configs);
    assert_eq!(entry.value.as_deref(), Some("8000000"));
    assert_eq!(
        synonyms(&entry),
        [
            triple("log.retention.ms", "8000000", ConfigSource::DynamicBroker),
            triple(
                "log.retention.ms",
                "9000000",
                ConfigSource::DynamicDefaultBroker
            ),
            triple("log.retention.hours", "5", ConfigSource::StaticBroker),
            triple("log.retention.hours", "168", ConfigSource::Default),
        ]
    );
}

#[test]
fn a_broker_shows_where_each_value_comes_from() {
    let mut configs = configs(&[
        ("node.id", "1"),
        ("num.partitions", "3"),
        ("log.retention.hours", "5"),
        ("group.share.enable", "true"),
        ("sasl.jaas.config", "secret"),
    ]);
    configs.apply(&change(
        ResourceType::Broker,
        "1",
        "log.retention.ms",
        Some("8000000"),
    ));
    let show = |key| one(&configs, ResourceType::Broker, "1", key);
    let partitions = show("num.partitions");
    assert_eq!(
        (partitions.source, partitions.read_only),
        (ConfigSource::StaticBroker, true)
    );
    assert_eq!(
        synonyms(&partitions),
        [
            triple("num.partitions", "3", ConfigSource::StaticBroker),
            triple("num.partitions", "1", ConfigSource::Default),
        ]
    );
    let retention = show("log.retention.ms");
    assert_eq!(
        (retention.source, retention.read_only),
        (ConfigSource::DynamicBroker, false)
    );
    assert_eq!(synonyms(&retention).len(), 3);
    assert_eq!(show("log.roll.ms").synonyms, []);
    assert_eq!(show("node.id").value.as_deref(), Some("1"));
    let unknown = show("group.share.enable");
    assert_eq!(
        (unknown.kind, unknown.sensitive, unknown.value),
        (0, true, None)
    );
    let secret = show("sasl.jaas.config");
    assert_eq!((secret.sensitive, secret.value), (true, None));
    assert!(
        secret
            .synonyms
            .iter()
            .all(|synonym| synonym.value.is_none())
    );
}

#[test]
fn a_broker_has_all_of_kafkas_350_configs() {
    let found = entries(&measured(), ResourceType::Broker, "1");
    assert_eq!(
        found
            .iter()
            .filter(|entry| !entry.name.starts_with("ottla."))
            .count(),
        350
    );
    assert!(
        found
            .iter()
            .all(|entry| !entry.name.contains(char::is_uppercase))
    );
}

#[test]
fn the_default_of_all_brokers_has_what_is_stored_for_it() {
    let mut configs = measured();
    let initial = configs.initial_changes();
    apply_all(&mut configs, &initial);
    configs.apply(&change(
        ResourceType::Broker,
        "",
        "log.retention.ms",
        Some("9000000"),
    ));
    configs.apply(&change(ResourceType::Broker, "", "bogus.name", Some("1")));
    let found = entries(&configs, ResourceType::Broker, "");
    let names: Vec<_> = found.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["log.retention.ms", "min.insync.replicas"]);
    assert_eq!(
        synonyms(&found[1]),
        [triple(
            "min.insync.replicas",
            "1",
            ConfigSource::DynamicDefaultBroker
        )]
    );
}

#[test]
fn a_subscription_has_three_configs_whether_it_exists_or_not() {
    let mut configs = measured();
    configs.apply(&change(
        ResourceType::ClientMetrics,
        "cm",
        "interval.ms",
        Some("100"),
    ));
    assert_eq!(
        entries(&configs, ResourceType::ClientMetrics, "nosuch").len(),
        3
    );
    let interval = one(&configs, ResourceType::ClientMetrics, "cm", "interval.ms");
    assert_eq!(
        synonyms(&interval),
        [triple("interval.ms", "100", ConfigSource::ClientMetrics)]
    );
    let unset = one(
        &configs,
        ResourceType::ClientMetrics,
        "nosuch",
        "interval.ms",
    );
    assert_eq!(
        (unset.value.as_deref(), unset.synonyms.len()),
        (Some("300000"), 0)
    );
}

#[test]
fn loggers_are_shown_with_their_levels() {
    let found = entries(&measured(), ResourceType::BrokerLogger, "1");
    assert_eq!(
        (found[0].name.as_str(), found[0].value.as_deref()),
        ("root", Some("WARN"))
    );
    assert_eq!(found[0].source, ConfigSource::BrokerLogger);
}

#[test]
fn what_is_not_there_is_refused_as_kafka_refuses_it() {
    let configs = measured();
    let ask = |kind: i8, name| {
        let refusal = configs.describe(&world(), kind, name, None).unwrap_err();
        (refusal.code.0, refusal.message.unwrap_or_default())
    };
    let message = |code, text: &str| (code, text.to_owned());
    assert_eq!(ask(2, "nosuch"), message(3, ""));
    assert_eq!(
        ask(2, ""),
        message(17, "Topic name is invalid: the empty string is not allowed")
    );
    assert_eq!(ask(32, ""), message(42, "Group name must not be empty"));
    assert_eq!(
        ask(4, "99"),
        message(
            42,
            "Unexpected broker id, expected 1 or empty string, but received 99"
        )
    );
    assert_eq!(
        ask(4, "x"),
        message(42, "Broker id must be an integer, but it is: x")
    );
    assert_eq!(
        ask(16, ""),
        message(42, "Client metrics subscription name must not be empty")
    );
    assert_eq!(ask(3, "x"), message(42, ""));
}

#[test]
fn resources_are_listed_by_type() {
    let mut configs = measured();
    configs.apply(&change(
        ResourceType::Group,
        "g",
        "share.session.timeout.ms",
        Some("50000"),
    ));
    configs.apply(&change(
        ResourceType::ClientMetrics,
        "cm",
        "interval.ms",
        Some("100"),
    ));
    let list = |types: &[i8]| configs.list_resources(types, &["t".to_owned()], &[1]);
    assert_eq!(list(&[32]), Ok(vec![(ResourceType::Group, "g".to_owned())]));
    assert_eq!(list(&[]).unwrap().len(), 5);
    assert_eq!(list(&[3]).unwrap_err().code, ErrorCode::UNSUPPORTED_VERSION);
}
