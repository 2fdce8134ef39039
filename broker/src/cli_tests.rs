#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::config::Profile;

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Command, Exit> {
    let arguments = ["ottla"].iter().chain(arguments).map(OsString::from);
    parse(
        arguments,
        variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
    )
}

fn start(arguments: &[&str]) -> Startup {
    match run(arguments, &[]).unwrap() {
        Command::Serve(startup) => *startup,
        other => panic!("this does not serve: {other:?}"),
    }
}

fn refused(arguments: &[&str]) -> Exit {
    run(arguments, &[]).unwrap_err()
}

#[test]
fn no_command_serves_and_so_does_serve() {
    for arguments in [&[][..], &["serve"]] {
        let startup = start(arguments);
        assert_eq!(startup.statics.broker_ids(), [0]);
        assert_eq!(startup.log, "info");
        assert!(startup.topics.is_empty() && startup.groups.is_empty());
    }
    assert!(matches!(run(&["version"], &[]), Ok(Command::Version)));
}

#[test]
fn what_follows_share_groups_is_the_tools() {
    let flags = ["--help", "--list", "--state", "-x", "--", "--version"];
    let arguments = [&["share-groups"][..], &flags].concat();
    match run(&arguments, &[]).unwrap() {
        Command::ShareGroups(passed) => assert_eq!(passed, flags.map(OsString::from)),
        other => panic!("{other:?}"),
    }
    assert!(refused(&["--help"]).text.contains("share-groups"));
}

#[test]
fn flags_beat_set_and_set_beats_the_environment_and_that_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(
        &mut file.as_file(),
        b"num.partitions=1\ndefault.replication.factor=1\nfetch.max.bytes=2000\nottla.brokers=2\n",
    )
    .unwrap();
    let arguments = [
        "--config",
        file.path().to_str().unwrap(),
        "--set",
        "num.partitions=3",
        "--brokers",
        "3",
    ];
    let variables = [
        ("KAFKA_NUM_PARTITIONS", "2"),
        ("KAFKA_DEFAULT_REPLICATION_FACTOR", "2"),
        ("HOME", "/"),
    ];
    let Ok(Command::Serve(startup)) = run(&arguments, &variables) else {
        panic!("it serves")
    };
    let broker = Configs::new(startup.statics).broker(0);
    assert_eq!(broker.topics.num_partitions, 3);
    assert_eq!(broker.topics.replication_factor, 2);
    assert_eq!(broker.network.fetch_max_bytes, 2_000);
}

#[test]
fn listen_makes_listeners_and_a_bare_address_is_plaintext() {
    let startup = start(&[
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "EXTERNAL://0.0.0.0:9095",
    ]);
    let listeners = startup.statics.listeners(0).unwrap();
    let shown: Vec<_> = listeners
        .iter()
        .map(|l| format!("{}={}", l.name, l.bind))
        .collect();
    assert_eq!(shown, ["PLAINTEXT=127.0.0.1:0", "EXTERNAL=0.0.0.0:9095"]);
    let startup = start(&[
        "--listen",
        "[::1]:9092",
        "--advertise",
        "kafka.example:19092",
    ]);
    let listener = startup.statics.listeners(0).unwrap().remove(0);
    assert_eq!(
        listener.advertised.unwrap().to_string(),
        "kafka.example:19092"
    );
}

#[test]
fn topics_and_groups_are_seeded() {
    let startup = start(&[
        "--topic",
        "orders:3",
        "--topic",
        "plain",
        "--group",
        "g:share.auto.offset.reset=by_duration:PT1H",
        "--group",
        "g:share.isolation.level=read_committed",
        "--group",
        "a:b:share.isolation.level=read_committed",
    ]);
    assert_eq!(
        startup.topics,
        [
            SeedTopic {
                name: "orders".to_owned(),
                partitions: Some(3)
            },
            SeedTopic {
                name: "plain".to_owned(),
                partitions: None
            },
        ]
    );
    let names: Vec<_> = startup
        .groups
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    assert_eq!(names, ["a:b", "g"]);
    assert_eq!(startup.groups[1].configs[0].1, "by_duration:PT1H");
    assert_eq!(startup.groups[1].configs.len(), 2);
}

#[test]
fn what_is_wrong_is_one_line_that_says_what_to_do() {
    for (arguments, text, status) in [
        (
            &["--topic", "a b"][..],
            "--topic a b: Topic name is invalid: 'a b' contains",
            1,
        ),
        (
            &["--topic", "a:0"],
            "--topic a:0: write --topic NAME:PARTITIONS",
            1,
        ),
        (
            &["--group", "g"],
            "--group g: write --group NAME:KEY=VALUE",
            1,
        ),
        (
            &["--group", "g:x=1"],
            "--group g: Unknown group config name: x",
            1,
        ),
        (&["--set", "x"], "--set x: write --set KEY=VALUE", 1),
        (
            &["--profile", "fast"],
            "command line: there is no profile \"fast\": it is desk or kafka",
            1,
        ),
        (
            &["--brokers", "0"],
            "command line: Invalid value 0 for configuration ottla.brokers",
            1,
        ),
        (&["--config", "/no/such"], "cannot read /no/such: ", 1),
        (
            &["--listen", "SSL://h:1"],
            "listener SSL asks for SSL, but this version",
            78,
        ),
        (
            &["--nonsense"],
            "unexpected argument '--nonsense' found; `ottla --help`",
            2,
        ),
        (
            &["--brokers", "x"],
            "invalid value 'x' for '--brokers <N>'",
            2,
        ),
    ] {
        let exit = refused(arguments);
        assert!(exit.text.starts_with(text), "{}", exit.text);
        assert!(!exit.text.contains('\n'), "{}", exit.text);
        assert_eq!(exit.status, status, "{arguments:?}");
    }
}

#[test]
fn help_is_no_error() {
    let exit = refused(&["--help"]);
    assert_eq!(exit.status, 0);
    assert!(exit.text.contains("--data-dir"));
}

#[test]
fn a_flag_beats_what_the_file_says_about_one_broker() {
    let startup = start(&[
        "--set",
        "ottla.listeners.0=PLAINTEXT://127.0.0.1:1",
        "--listen",
        ":2",
    ]);
    assert_eq!(startup.statics.listeners(0).unwrap()[0].bind.port, 2);
}

#[test]
fn the_images_cluster_id_is_taken() {
    let Ok(Command::Serve(startup)) = run(&[], &[("CLUSTER_ID", "abc")]) else {
        panic!("it serves")
    };
    assert_eq!(startup.cluster_id.as_deref(), Some("abc"));
}

#[test]
fn the_profile_is_a_flag_and_a_key() {
    assert_eq!(
        start(&["--profile", "kafka"]).statics.profile(),
        Profile::Kafka
    );
    assert_eq!(
        start(&["--set", "ottla.profile=kafka"]).statics.profile(),
        Profile::Kafka
    );
    assert_eq!(start(&[]).statics.profile(), Profile::Desk);
}

#[test]
fn the_images_usual_variables_start_a_broker() {
    let variables = [
        ("KAFKA_NODE_ID", "1"),
        ("KAFKA_PROCESS_ROLES", "broker,controller"),
        (
            "KAFKA_LISTENERS",
            "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093",
        ),
        ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://localhost:9092"),
        ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
        (
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        ),
        ("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@localhost:9093"),
        ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
        ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
        ("KAFKA_NUM_PARTITIONS", "3"),
        ("KAFKA_HEAP_OPTS", "-Xmx1G"),
    ];
    let Ok(Command::Serve(startup)) = run(&[], &variables) else {
        panic!("it serves")
    };
    assert_eq!(startup.warnings, [] as [String; 0]);
    assert_eq!(startup.statics.broker_ids(), [1]);
    let broker = Configs::new(startup.statics).broker(1);
    assert_eq!(broker.topics.num_partitions, 3);
    assert_eq!(broker.listeners.len(), 1);
}
