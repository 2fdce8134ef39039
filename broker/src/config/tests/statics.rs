use super::*;
use crate::config::{HostPort, Reason, SecurityProtocol};

fn error(pairs: &[(&str, &str)]) -> String {
    try_statics(pairs).unwrap_err().text
}

fn binds(statics: &StaticConfig, id: i32) -> Vec<String> {
    statics
        .listeners(id)
        .unwrap()
        .iter()
        .map(|l| format!("{}={}", l.name, l.bind))
        .collect()
}

#[test]
fn a_wrong_value_is_named_with_where_it_came_from() {
    let origin = Origin::File {
        path: "server.properties".to_owned(),
        line: 7,
    };
    let settings = [("num.partitions".to_owned(), "many".to_owned(), origin)];
    assert_eq!(
        StaticConfig::new(settings).unwrap_err().text,
        "server.properties line 7: Invalid value many for configuration num.partitions: Not a number \
         of type INT"
    );
}

#[test]
fn an_unknown_key_is_a_warning_that_names_the_nearest_known_one() {
    let statics = statics(&[("num.partition", "3"), ("group.share.enable", "true")]);
    assert_eq!(
        statics.warnings()[1],
        "--set: unknown config num.partition is ignored; did you mean num.partitions?"
    );
    assert_eq!(statics.warnings().len(), 2);
}

#[test]
fn known_keys_without_meaning_here_are_accepted_in_silence() {
    let statics = statics(&[
        ("num.replica.fetchers", "4"),
        ("controller.quorum.voters", "1@localhost:9093"),
        ("super.users", "User:admin"),
        ("listener.name.external.plain.sasl.jaas.config", "x"),
        ("zookeeper.session.timeout.ms.none", "1"),
    ]);
    assert_eq!(statics.warnings().len(), 1, "{:?}", statics.warnings());
}

#[test]
fn a_later_setting_of_the_same_key_wins() {
    let statics = statics(&[("num.partitions", "2"), ("num.partitions", "5")]);
    assert_eq!(Configs::new(statics).broker(0).topics.num_partitions, 5);
}

#[test]
fn brokers_are_numbered_from_0_and_one_may_have_any_id() {
    assert_eq!(statics(&[("ottla.brokers", "3")]).broker_ids(), [0, 1, 2]);
    assert_eq!(statics(&[("node.id", "7")]).broker_ids(), [7]);
    assert_eq!(statics(&[("broker.id", "7")]).broker_ids(), [7]);
    assert_eq!(
        error(&[("ottla.brokers", "3"), ("node.id", "1")]),
        "3 brokers in one process have the ids 0 to 2: set node.id=0, not 1"
    );
    assert_eq!(
        error(&[
            ("ottla.brokers", "2"),
            ("ottla.listeners.5", "PLAINTEXT://127.0.0.1:9"),
        ]),
        "there is a listener for broker 5, but the ids are 0, 1: set ottla.brokers"
    );
}

#[test]
fn settings_of_an_id_that_no_broker_has_are_a_controllers() {
    let given = [
        ("ottla.brokers", "2"),
        ("ottla.override.3000.num.partitions", "5"),
        ("ottla.override.3000.default.replication.factor", "2"),
        ("ottla.override.3000.message.max.bytes", "5"),
        ("default.replication.factor", "1"),
    ];
    let stray = statics(&given);
    assert_eq!(stray.warnings().len(), 1, "{:?}", stray.warnings());
    let broker = Configs::new(stray).broker(1).topics;
    assert_eq!((broker.num_partitions, broker.replication_factor), (5, 1));
}

#[test]
fn brokers_listen_on_ports_that_follow_the_first_ones() {
    let statics = statics(&[
        ("ottla.brokers", "3"),
        ("listeners", "PLAINTEXT://127.0.0.1:19092"),
    ]);
    assert_eq!(binds(&statics, 2), ["PLAINTEXT=127.0.0.1:19094"]);
    assert_eq!(statics.listeners(2).unwrap()[0].advertised, None);
}

#[test]
fn a_brokers_own_listeners_are_also_what_it_advertises() {
    let statics = statics(&[
        ("ottla.brokers", "2"),
        ("listeners", "EXTERNAL://127.0.0.1:11000"),
        ("advertised.listeners", "EXTERNAL://127.0.0.1:11000"),
        ("listener.security.protocol.map", "EXTERNAL:PLAINTEXT"),
        ("inter.broker.listener.name", "EXTERNAL"),
        ("ottla.listeners.0", "EXTERNAL://127.0.0.1:11000"),
        ("ottla.listeners.1", "EXTERNAL://127.0.0.1:12345"),
    ]);
    let listener = &statics.listeners(1).unwrap()[0];
    assert_eq!(listener.protocol, SecurityProtocol::Plaintext);
    assert_eq!(
        listener.advertised,
        Some(HostPort {
            host: "127.0.0.1".to_owned(),
            port: 12_345
        })
    );
}

#[test]
fn listeners_that_share_a_port_are_refused() {
    assert_eq!(
        error(&[("listeners", "A://:9092,B://:9092")]),
        "Invalid value A://:9092,B://:9092 for configuration listeners: each listener needs its own port"
    );
    assert_eq!(
        error(&[
            ("ottla.brokers", "2"),
            ("ottla.listeners.1", "PLAINTEXT://127.0.0.1:9092")
        ]),
        "brokers 0 and 1 would both listen on port 9092: set ottla.listeners.1=NAME://HOST:PORT"
    );
}

#[test]
fn a_controllers_listener_is_left_out() {
    let statics = statics(&[
        ("process.roles", "broker,controller"),
        ("controller.listener.names", "CONTROLLER"),
        ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
        (
            "advertised.listeners",
            "PLAINTEXT://kafka.example:9092,CONTROLLER://kafka.example:9093",
        ),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        ),
    ]);
    assert_eq!(binds(&statics, 0), ["PLAINTEXT=:9092"]);
    let told = statics.listeners(0).unwrap()[0].advertised.clone();
    assert_eq!(
        told.map(|told| told.to_string()).as_deref(),
        Some("kafka.example:9092")
    );
}

#[test]
fn several_named_listeners_each_advertise_their_own_address() {
    let statics = statics(&[
        (
            "listeners",
            "INTERNAL://0.0.0.0:19092,EXTERNAL://[::1]:9092",
        ),
        ("advertised.listeners", "EXTERNAL://[::1]:9092"),
    ]);
    let listeners = statics.listeners(0).unwrap();
    assert_eq!(listeners[0].advertised, None);
    assert_eq!(listeners[1].bind.host, "::1");
    assert_eq!(
        listeners[1].advertised.as_ref().unwrap().to_string(),
        "[::1]:9092"
    );
}

#[test]
fn a_loopback_listener_binds_both_loopbacks() {
    let listeners = statics(&[]).listeners(0).unwrap();
    assert_eq!(
        listeners[0].bind_addresses(),
        [("127.0.0.1", true), ("::1", false)]
    );
}

#[test]
fn listeners_that_make_no_sense_are_refused_with_what_to_do() {
    for (pairs, start) in [
        (
            vec![("listeners", "nonsense")],
            "Invalid value nonsense for configuration listeners: a",
        ),
        (
            vec![("listeners", "P://h:70000")],
            "Invalid value P://h:70000 for configuration listeners",
        ),
        (
            vec![("listeners", "")],
            "Invalid value  for configuration listeners: at least one",
        ),
        (
            vec![("advertised.listeners", "PLAINTEXT://0.0.0.0:9092")],
            "Invalid value PLAINTEXT://0.0.0.0:9092 for configuration advertised.listeners: clients",
        ),
        (
            vec![("advertised.listeners", "OTHER://h:1")],
            "Invalid value OTHER for configuration advertised.listeners: no listener has this name",
        ),
        (
            vec![("inter.broker.listener.name", "X")],
            "Invalid value X for configuration inter.broker.listener.name: no listener",
        ),
        (
            vec![
                ("listeners", "EXTERNAL://h:1"),
                ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT"),
            ],
            "No security protocol defined for listener EXTERNAL: add EXTERNAL:PLAINTEXT to",
        ),
    ] {
        let error = error(&pairs);
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn what_is_not_served_ends_with_status_78() {
    for pairs in [
        vec![("listeners", "SSL://:9093")],
        vec![
            ("listeners", "EXTERNAL://:9093"),
            ("listener.security.protocol.map", "EXTERNAL:SASL_PLAINTEXT"),
        ],
        vec![(
            "authorizer.class.name",
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        )],
        vec![("create.topic.policy.class.name", "x.Y")],
        vec![("client.quota.callback.class", "x.Y")],
        vec![("group.share.assignors", "org.example.Mine")],
        vec![("group.consumer.assignors", "uniform,org.example.Mine")],
        vec![("principal.builder.class", "x.Y")],
        vec![("remote.log.storage.system.enable", "true")],
        vec![("process.roles", "controller")],
    ] {
        let refused = try_statics(&pairs).unwrap_err();
        assert_eq!(refused.reason, Reason::Unsupported, "{pairs:?}: {refused}");
        assert_eq!(refused.exit_status(), 78);
        assert!(!refused.text.contains('\n'), "{refused}");
    }
}

#[test]
fn bounds_that_contradict_each_other_are_refused() {
    assert_eq!(
        error(&[("group.share.session.timeout.ms", "70000")]),
        "group.share.session.timeout.ms must be less than or equal to \
         group.share.max.session.timeout.ms"
    );
    assert_eq!(
        error(&[
            ("ottla.profile", "kafka"),
            ("group.share.heartbeat.interval.ms", "1000")
        ]),
        "group.share.heartbeat.interval.ms must be greater than or equal to \
         group.share.min.heartbeat.interval.ms"
    );
    assert_eq!(
        error(&[("ottla.group.default.share.record.lock.duration.ms", "70000")]),
        "ottla.group.default: share.record.lock.duration.ms must be in the range 10 to 60000 inclusive."
    );
}

#[test]
fn the_share_tests_of_kafka_ask_for_nothing_that_the_desk_refuses() {
    for pair in [
        ("group.share.record.lock.duration.ms", "15000"),
        ("group.share.min.record.lock.duration.ms", "12000"),
        ("group.share.max.partition.max.record.locks", "10000"),
        ("group.share.delivery.count.limit", "10"),
        ("group.share.max.share.sessions", "1"),
        ("group.consumer.min.heartbeat.interval.ms", "500"),
        ("group.min.session.timeout.ms", "10"),
        ("log.retention.ms", "-1"),
        ("share.coordinator.state.topic.replication.factor", "3"),
    ] {
        assert_eq!(
            statics(&[("ottla.brokers", "3"), pair]).warnings(),
            [] as [String; 0],
            "{pair:?}"
        );
    }
}

#[test]
fn features_are_levels_by_name() {
    let statics = statics(&[("feature.share.version", "1"), ("metadata.version", "33")]);
    assert_eq!(statics.features()["share.version"], 1);
    assert_eq!(statics.features()["metadata.version"], 33);
    assert_eq!(
        error(&[("feature.share.version", "new")]),
        "--set: feature.share.version=new: a feature level is a number from 0 to 32767"
    );
}

#[test]
fn records_are_in_memory_unless_a_directory_is_given() {
    assert!(statics(&[]).data_dirs().is_empty());
    assert!(
        statics(&[("ottla.profile", "kafka")])
            .data_dirs()
            .is_empty()
    );
    assert_eq!(statics(&[("log.dirs", "/a, /b")]).data_dirs().len(), 2);
    assert_eq!(statics(&[("log.dir", "/a")]).data_dirs().len(), 1);
}

#[test]
fn the_admin_listener_is_an_address_or_none() {
    let admin = |value| {
        statics(&[("ottla.admin.listener", value)])
            .admin_listener()
            .unwrap()
    };
    assert_eq!(admin("127.0.0.1:0").unwrap().to_string(), "127.0.0.1:0");
    assert_eq!(admin("none"), None);
    assert!(error(&[("ottla.admin.listener", "9644")]).contains("HOST:PORT"));
    let default = statics(&[]).admin_listener().unwrap().unwrap();
    assert_eq!(default.to_string(), "127.0.0.1:9644");
}

#[test]
fn an_override_of_an_unknown_key_is_refused() {
    assert_eq!(
        error(&[("ottla.override.0.num.partition", "3")]),
        "--set: ottla.override.0.num.partition: num.partition is no broker config; did you mean \
         num.partitions?"
    );
    assert_eq!(
        error(&[("ottla.listeners.x", "y")]),
        "--set: ottla.listeners.x: \"x\" is no broker id"
    );
}
