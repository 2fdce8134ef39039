//! `--list` and `--describe`.

use std::collections::BTreeSet;

use ottla_tests::{Ask, At, OK, REJECT, Settings, soon};
use serde_json::json;

use crate::scene::{LONG, MEMBER, Scene, tool_at};

#[tokio::test]
async fn groups_are_listed_by_name_with_kafkas_columns() {
    let mut scene = Scene::start().await;
    scene.classic_group("classic").await;
    assert_eq!(
        scene.out("--list").await,
        "alpha-with-a-long-group-name\nempty\nlive\n"
    );
    let table = "\
GROUP                        STATE
alpha-with-a-long-group-name Empty
empty                        Empty
live                         Stable
";
    assert_eq!(scene.out("--list --state").await, table);
    assert_eq!(scene.out("--list --state Stable,Empty").await, table);
    let stable = "GROUP           STATE\nlive            Stable\n";
    assert_eq!(scene.out("--list --state stable").await, stable);
    let groups = json!({ "groups": [{ "group": "live", "state": "Stable" }] });
    assert_eq!(scene.json("--list --state stable").await, groups);
}

#[tokio::test]
async fn offsets_are_described_in_kafkas_tables() {
    let scene = Scene::start().await;
    let empty = "
GROUP           TOPIC           PARTITION  START-OFFSET  LAG
empty           orders          0          3             0
empty           orders          1          3             0
empty           pay             0          3             0
";
    assert_eq!(scene.out("--describe --group empty").await, empty);
    assert_eq!(scene.out("--describe --group empty --offsets").await, empty);
    let long = "
GROUP                        TOPIC           PARTITION  START-OFFSET  LAG
alpha-with-a-long-group-name pay             0          2             1
";
    let both = format!("--describe --group empty --group {LONG}");
    assert_eq!(scene.out(&both).await, format!("{long}{empty}"));
    // Nothing was fetched yet: the group has begun nowhere.
    let live = "
GROUP           TOPIC           PARTITION  START-OFFSET  LAG
live            orders          0          -             -
live            orders          1          -             -
";
    assert_eq!(
        scene.out("--describe --all-groups").await,
        format!("{long}{empty}{live}")
    );
    let verbose = "
GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG
empty           orders          0          0             3             0
empty           orders          1          0             3             0
empty           pay             0          0             3             0
";
    assert_eq!(
        scene.out("--describe --group empty --verbose").await,
        verbose
    );
    let described = scene.json("--describe --group live --group empty").await;
    let first = json!({
        "topic": "orders", "partition": 0, "leaderEpoch": 0, "startOffset": 3, "lag": 0,
    });
    assert_eq!(described["groups"][0]["offsets"][0], first);
    let at = &described["groups"][1]["offsets"][0];
    assert_eq!(
        (&at["startOffset"], &at["lag"]),
        (&json!(null), &json!(null))
    );
}

#[tokio::test]
async fn a_group_without_offsets_says_so_as_in_kafka() {
    let scene = Scene::start().await;
    let line = "--delete-offsets --group empty --topic orders --topic pay";
    scene.out(line).await;
    assert_eq!(
        scene.out("--describe --group empty").await,
        "\nShare group 'empty' has no offset information.\n"
    );
}

#[tokio::test]
async fn members_are_described_in_kafkas_tables() {
    let scene = Scene::start().await;
    let members = "
GROUP           CONSUMER-ID            HOST            CLIENT-ID              #PARTITIONS  ASSIGNMENT
live            lPMKnEjFTEiNK699m2ekBA /127.0.0.1      console-share-consumer 2            orders:0,1
";
    let printed = scene.tool("--describe --all-groups --members").await;
    assert_eq!((printed.status, &*printed.out), (0, members));
    let nobody = "
Share group 'alpha-with-a-long-group-name' has no active members.

Share group 'empty' has no active members.
";
    assert_eq!(printed.err, nobody);
    let verbose = scene
        .out("--describe --group live --members --verbose")
        .await;
    let title = verbose.lines().nth(1).unwrap();
    assert_eq!(
        title,
        "GROUP           CONSUMER-ID            HOST            CLIENT-ID              #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT"
    );
    let described = scene.json("--describe --group live --members").await;
    let member = &described["groups"][0]["members"][0];
    assert_eq!(member["consumerId"], MEMBER);
    let assignment = json!([{ "topic": "orders", "partitions": [0, 1] }]);
    assert_eq!(member["assignment"], assignment);
}

#[tokio::test]
async fn an_assignment_of_several_topics_and_an_idle_member_look_as_in_kafka() {
    let mut scene = Scene::start().await;
    scene
        .live
        .heartbeat(scene.live.member_epoch, Some(&["orders", "pay"]))
        .await;
    let mut idle = ottla_tests::Member::new(scene.broker.client().await, "live", "idle");
    idle.join(&["absent"]).await;
    let out = scene.out("--describe --group live --members").await;
    let assignments: Vec<&str> = out
        .lines()
        .skip(2)
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(assignments, ["-", "orders:0,1;pay:0"]);
}

#[tokio::test]
async fn states_are_described_in_kafkas_tables() {
    let scene = Scene::start().await;
    let address = scene.broker.address();
    let printed = scene
        .tool("--describe --group live --group empty --state")
        .await;
    let coordinator = format!("{:<25}", format!("{address}  (0)"));
    let tables = format!(
        "
GROUP           COORDINATOR (ID)          STATE           #MEMBERS
empty           {coordinator} Empty           0

GROUP           COORDINATOR (ID)          STATE           #MEMBERS
live            {coordinator} Stable          1
"
    );
    assert_eq!((printed.status, printed.out), (0, tables));
    assert_eq!(
        printed.err,
        "\nShare group 'empty' has no active members.\n"
    );
    let verbose = scene.out("--describe --group live --state --verbose").await;
    let title = "GROUP           COORDINATOR (ID)          STATE           GROUP-EPOCH  ASSIGNMENT-EPOCH  #MEMBERS";
    assert_eq!(verbose.lines().nth(1), Some(title));
    let described = scene.json("--describe --group live --state").await;
    let group = &described["groups"][0];
    assert_eq!(
        (&group["state"], &group["members"]),
        (&json!("Stable"), &json!(1))
    );
    assert_eq!(group["coordinator"]["address"], address.to_string());
}

#[tokio::test]
async fn what_is_wrong_with_one_group_does_not_hide_the_others() {
    let mut scene = Scene::start().await;
    scene.classic_group("classic").await;
    let line = "--describe --group classic --group empty --group nosuch";
    let (out, err) = scene.fails(line).await;
    assert!(out.contains("empty           pay             0"), "{out}");
    assert_eq!(
        err,
        "Error: GROUP_ID_NOT_FOUND: Group classic is not a share group.\n\
Error: GROUP_ID_NOT_FOUND: Group nosuch not found.\n"
    );
    let printed = scene.tool(&format!("{line} --output json")).await;
    let document: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    let error = json!({ "code": "GROUP_ID_NOT_FOUND", "message": "Group nosuch not found." });
    assert_eq!(document["groups"][2]["error"], error);
}

#[tokio::test]
async fn without_groups_there_is_nothing_to_say() {
    let broker = ottla_tests::Embedded::start().await;
    let address = broker.address().to_string();
    for (line, out) in [
        ("--list", ""),
        ("--list --state", "GROUP           STATE\n"),
        ("--describe --all-groups", ""),
        ("--delete --all-groups", ""),
    ] {
        let printed = tool_at(&address, line).await;
        assert_eq!((printed.status, &*printed.out), (0, out), "{line}");
    }
}

#[tokio::test]
async fn coordinators_and_leaders_are_found_over_several_brokers() {
    let broker = Settings::new().brokers(3).start().await;
    let mut admin = broker.client().await;
    let replicas: [&[i32]; 3] = [&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]];
    admin.create_topic_on("orders", &replicas).await;
    // The first address leads nowhere.
    let addresses = format!("127.0.0.1:1,{}", broker.address());
    let out = async |line: &str| {
        let printed = tool_at(&addresses, line).await;
        assert_eq!(printed.status, 0, "{line}: {printed:?}");
        printed.out
    };
    for group in 0..8 {
        let line = format!("--reset-offsets --group g{group} --topic orders --to-latest --execute");
        assert_eq!(
            out(&line).await.lines().count(),
            5,
            "a leader for each partition"
        );
    }
    let described = out("--describe --all-groups --state --output json").await;
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    let groups = described["groups"].as_array().unwrap();
    let coordinators: BTreeSet<_> = groups
        .iter()
        .map(|group| group["coordinator"]["id"].as_i64())
        .collect();
    assert!(
        coordinators.len() > 1,
        "one coordinator for all: {described}"
    );
    // What the stopped broker led and coordinated is with the others now.
    broker.stop_node(2).await;
    assert_eq!(
        out("--describe --all-groups")
            .await
            .matches("GROUP")
            .count(),
        8
    );
    let line = "--reset-offsets --group g0 --topic orders --to-earliest --execute";
    assert_eq!(out(line).await.lines().count(), 5);
}

const DLQ: &str = "errors.deadletterqueue.topic.name";

/// A scene with five groups that have a dead letter topic: two share one, one is compacted, one lacks the
/// prefix, and `back` reads the letters of `live`.
async fn with_letters() -> Scene {
    let mut scene = Scene::start().await;
    let flag = ("errors.deadletterqueue.group.enable", "true");
    scene
        .admin
        .create_topic_with("dlq.orders", 1, &[flag])
        .await;
    let compacted = [flag, ("cleanup.policy", "compact")];
    scene
        .admin
        .create_topic_with("dlq.table", 1, &compacted)
        .await;
    let line = "--reset-offsets --group back --topic dlq.orders --to-latest --execute";
    scene.out(line).await;
    for (group, dlq) in [
        ("live", "dlq.orders"),
        ("second", "dlq.orders"),
        ("third", "dlq.table"),
        ("fourth", "letters"),
        ("back", "dlq.x"),
    ] {
        scene.admin.configure_group(group, &[(DLQ, dlq)]).await;
    }
    scene
}

#[tokio::test]
async fn the_topology_shows_where_letters_go_and_why_they_do_not() {
    let scene = with_letters().await;
    let document = scene.json("--describe --dlq-topology").await;
    let group = |name: &str| {
        let groups = document["groups"].as_array().unwrap();
        let found = groups.iter().find(|group| group["group"] == name);
        found.unwrap().clone()
    };
    assert_eq!(document["prefix"], "dlq.");
    assert_eq!(document["autoCreate"], false);
    assert_eq!(group("live")["sourceTopics"], json!(["orders"]));
    assert_eq!(group("live")["dlq"]["sharedWith"], json!(["second"]));
    assert_eq!(group("live")["problems"], json!([]));
    assert_eq!(group("empty")["dlq"], json!(null));
    assert_eq!(group("third")["dlq"]["compacted"], true);
    // Neither the prefix nor the topic is there.
    assert_eq!(group("fourth")["problems"].as_array().unwrap().len(), 2);
    assert_eq!(document["cycles"], json!([]));
}

#[tokio::test]
async fn letters_that_were_written_and_given_up_are_counted_by_group() {
    let mut scene = with_letters().await;
    let earliest = [("share.auto.offset.reset", "earliest")];
    scene.admin.configure_group("live", &earliest).await;
    let topic = scene.admin.describe_topic("orders", false).await.topic_id;
    let at = At {
        topic,
        partition: 0,
    };
    let fetched = scene.live.fetch(&Ask::of(at).patient()).await;
    assert_eq!(fetched.acquired(at), "0-2#1");
    assert_eq!(scene.live.ack(at, 0, 0, REJECT).await, OK);
    let count = async |field: &str| {
        let document = scene.json("--describe --dlq-topology --group live").await;
        document["groups"][0][field].clone()
    };
    let written = async {
        while count("written").await != 1 {
            tokio::task::yield_now().await;
        }
    };
    soon("a letter", written).await;
    assert_eq!(count("givenUp").await, 0);
    // The next one has nowhere to go.
    scene
        .admin
        .configure_group("live", &[(DLQ, "letters")])
        .await;
    assert_eq!(scene.live.ack(at, 1, 1, REJECT).await, OK);
    let given_up = async {
        loop {
            let text = scene.out("--describe --group live --circuit-breaker").await;
            if text.contains("given up:      1 (prefix)") {
                return text;
            }
        }
    };
    let text = soon("a letter that is given up", given_up).await;
    let line =
        "letters:       1 written, 1 given up (1 in the window), 0 timed out, 0 written late";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn the_topology_of_one_group_shows_cycles_over_others() {
    let mut scene = with_letters().await;
    // The letters of `back` become the orders of `live`.
    scene
        .admin
        .configure_group("back", &[(DLQ, "orders")])
        .await;
    let text = scene.out("--describe --dlq-topology --group live").await;
    let cycle = "\nCycles:\n  dlq.orders -[back]-> orders -[live]-> dlq.orders\n";
    assert!(text.contains(cycle), "{text}");
    let row = text.lines().nth(2).unwrap();
    let cells: Vec<&str> = row.split_whitespace().take(8).collect();
    let expected = [
        "live",
        "orders",
        "dlq.orders",
        "yes",
        "yes",
        "yes",
        "no",
        "second",
    ];
    assert_eq!(cells, expected, "{text}");
    let (_, err) = scene
        .fails("--describe --dlq-topology --group nosuch")
        .await;
    let says = "Error: GROUP_ID_NOT_FOUND: Group nosuch not found.";
    assert_eq!(err.lines().last(), Some(says));
}
