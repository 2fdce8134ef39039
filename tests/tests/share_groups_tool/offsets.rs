//! `--reset-offsets`, `--delete-offsets` and `--delete`.

use ottla_tests::START_MS;
use serde_json::json;

use crate::scene::{LONG, Scene};

/// The table of new offsets, as Kafka's tool prints it.
fn plan(rows: &str) -> String {
    format!("\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n{rows}")
}

#[tokio::test]
async fn every_target_gives_the_offsets_that_it_names() {
    let mut scene = Scene::start().await;
    scene.admin.timestamp = START_MS + 60_000;
    scene.admin.produce_values("pay", 0, &["v4"]).await;
    for (target, offset) in [
        ("--to-earliest", 0),
        ("--to-latest", 4),
        ("--to-current", 3),
        ("--to-offset 1", 1),
        ("--to-datetime 2000-01-01T00:00:00.000", 0),
        ("--to-datetime 2026-01-01T00:00:30.000", 3),
        ("--to-datetime 2026-01-01T01:00:30.000+01:00", 3),
    ] {
        let line = format!("--reset-offsets --group empty --topic pay {target} --dry-run");
        let row = format!("empty           pay             0          {offset}\n");
        let printed = scene.tool(&line).await;
        assert_eq!((printed.out, &*printed.err), (plan(&row), ""), "{line}");
    }
    // None of it was done.
    assert_eq!(scene.admin.start_and_lag("empty", "pay", 0).await, (3, 1));
}

#[tokio::test]
async fn offsets_outside_the_log_are_moved_to_its_ends_with_a_word() {
    let scene = Scene::start().await;
    for (target, offset, says) in [
        (
            "--to-offset 99",
            3,
            "New offset (99) is higher than latest offset for topic partition pay-0. Value will be set to 3.\n",
        ),
        (
            "--to-offset -5",
            0,
            "New offset (-5) is lower than earliest offset for topic partition pay-0. Value will be set to 0.\n",
        ),
        (
            "--to-datetime 2100-01-01T00:00:00.000",
            3,
            "Warn: Partition 0 from topic pay has no record from then on. Falling back to latest known offset.\n",
        ),
    ] {
        let line = format!("--reset-offsets --group empty --topic pay {target} --dry-run");
        let printed = scene.tool(&line).await;
        let row = format!("empty           pay             0          {offset}\n");
        assert_eq!((printed.status, printed.out), (0, plan(&row)), "{line}");
        assert_eq!(printed.err, says, "{line}");
    }
}

#[tokio::test]
async fn scopes_are_topics_partitions_and_all_that_the_group_has() {
    let scene = Scene::start().await;
    let all = "\
empty           orders          0          0
empty           orders          1          0
empty           pay             0          0
";
    for (scope, rows) in [
        ("--all-topics", all),
        ("--topic orders --topic pay", all),
        (
            "--topic orders:1 --topic pay:0",
            "empty           orders          1          0\nempty           pay             0          0\n",
        ),
        (
            "--topic orders:0,1",
            "empty           orders          0          0\nempty           orders          1          0\n",
        ),
    ] {
        let line = format!("--reset-offsets --group empty {scope} --to-earliest --dry-run");
        assert_eq!(scene.out(&line).await, plan(rows), "{scope}");
    }
    let document = scene
        .json("--reset-offsets --group empty --topic pay --to-earliest --dry-run")
        .await;
    let offsets = json!([{ "topic": "pay", "partition": 0, "newOffset": 0 }]);
    assert_eq!(
        document,
        json!({ "group": "empty", "executed": false, "offsets": offsets })
    );
}

#[tokio::test]
async fn executing_changes_the_offsets_and_makes_a_group_that_is_not_there() {
    let mut scene = Scene::start().await;
    for group in ["empty", "fresh"] {
        let line = format!("--reset-offsets --group {group} --topic pay --to-offset 1 --execute");
        let row = format!("{group:<15} pay             0          1\n");
        assert_eq!(scene.out(&line).await, plan(&row));
        assert_eq!(scene.admin.start_and_lag(group, "pay", 0).await, (1, 2));
    }
    // Without a current offset, that is the end.
    let line = "--reset-offsets --group fresh --topic orders:0 --to-current --dry-run";
    let row = "fresh           orders          0          3\n";
    assert_eq!(scene.out(line).await, plan(row));
    let printed = scene
        .tool("--reset-offsets --group nosuch --all-topics --to-earliest --execute")
        .await;
    assert_eq!(printed.status, 0);
    assert_eq!(
        printed.err,
        "Group 'nosuch' has no offsets: nothing to reset.\n"
    );
}

#[tokio::test]
async fn what_was_exported_can_be_read_from_a_file() {
    let mut scene = Scene::start().await;
    let line = "--reset-offsets --group empty --all-topics --to-earliest --export --dry-run";
    let exported = scene.out(line).await;
    assert_eq!(exported, "orders,0,0\norders,1,0\npay,0,0\n\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), exported).unwrap();
    let path = file.path().display();
    let line = format!("--reset-offsets --group empty --from-file {path} --execute");
    let rows = "\
empty           orders          0          0
empty           orders          1          0
empty           pay             0          0
";
    assert_eq!(scene.out(&line).await, plan(rows));
    assert_eq!(
        scene.admin.start_and_lag("empty", "orders", 1).await,
        (0, 3)
    );
    std::fs::write(file.path(), "orders,0,1\norders;1;1\n").unwrap();
    let (_, err) = scene.fails(&line).await;
    let says = format!("Error: --from-file {path}: line 2: write topic,partition,offset\n");
    assert_eq!(err, says);
    // A wrong line keeps the right ones from being done.
    assert_eq!(
        scene.admin.start_and_lag("empty", "orders", 0).await,
        (0, 3)
    );
}

#[tokio::test]
async fn a_reset_that_cannot_be_is_refused_before_anything_is_done() {
    let mut scene = Scene::start().await;
    scene.classic_group("classic").await;
    for (line, says) in [
        (
            "--group live --topic orders --to-earliest --execute",
            "Error: NON_EMPTY_GROUP: Share group 'live' is not empty.\n",
        ),
        (
            "--group live --topic orders --to-earliest --dry-run",
            "Error: NON_EMPTY_GROUP: Share group 'live' is not empty.\n",
        ),
        (
            "--group classic --topic pay --to-earliest --execute",
            "Error: GROUP_ID_NOT_FOUND: Group classic is not a share group.\n",
        ),
        (
            "--group empty --topic nosuch --to-earliest --dry-run",
            "Error: UNKNOWN_TOPIC_OR_PARTITION: nosuch\n",
        ),
        (
            "--group empty --topic orders:1,7 --to-earliest --execute",
            "Error: UNKNOWN_TOPIC_OR_PARTITION: The partitions \"orders-7\" do not exist\n",
        ),
        (
            "--group empty --from-file no-such-file.csv --execute",
            "Error: --from-file no-such-file.csv: there is no such file\n",
        ),
    ] {
        let line = format!("--reset-offsets {line}");
        assert_eq!(
            scene.fails(&line).await,
            (String::new(), says.to_owned()),
            "{line}"
        );
    }
    assert_eq!(
        scene.admin.start_and_lag("empty", "orders", 1).await,
        (3, 0)
    );
}

/// The texts are Kafka's.
#[tokio::test]
async fn offsets_of_topics_are_deleted_each_with_its_outcome() {
    let mut scene = Scene::start().await;
    scene.classic_group("classic").await;
    let title = "\nTOPIC           STATUS\n";
    let (out, _) = scene
        .fails("--delete-offsets --group empty --topic pay --topic nosuch")
        .await;
    let rows = "\
nosuch          Error: This server does not host this topic-partition.
pay             Successful
";
    assert_eq!(out, format!("{title}{rows}"));
    let out = scene
        .out("--delete-offsets --group empty --topic orders")
        .await;
    assert_eq!(out, format!("{title}orders          Successful\n"));
    for (group, says) in [
        ("live", "The group is not empty."),
        ("nosuch", "Group nosuch not found."),
        ("classic", "Group classic is not a share group."),
    ] {
        let line = format!("--delete-offsets --group {group} --topic orders");
        let (out, _) = scene.fails(&line).await;
        let table = format!("\nError: {says}\n{title}orders          Error: {says}\n");
        assert_eq!(out, table);
    }
    let printed = scene
        .tool("--delete-offsets --group nosuch --topic pay --output json")
        .await;
    let document: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(document["topics"][0]["error"]["code"], "GROUP_ID_NOT_FOUND");
}

/// The texts are Kafka's, with the code's name where Kafka has that of an exception.
#[tokio::test]
async fn groups_are_deleted_unless_they_have_members_or_are_of_another_kind() {
    let mut scene = Scene::start().await;
    scene.classic_group("classic").await;
    let (out, _) = scene
        .fails("--delete --group live --group classic --group empty")
        .await;
    let text = "
Error: Deletion of some share groups failed:
* Group 'classic' could not be deleted due to: GROUP_ID_NOT_FOUND: Group 'classic' is not a share group.
* Group 'live' could not be deleted due to: NON_EMPTY_GROUP: Share group 'live' is not EMPTY.

These share groups were deleted successfully: 'empty'
";
    assert_eq!(out, text);
    let out = scene.out(&format!("--delete --group {LONG}")).await;
    let text =
        "Deletion of requested share groups ('alpha-with-a-long-group-name') was successful.\n";
    assert_eq!(out, text);
    assert_eq!(scene.out("--list").await, "live\n");
    let groups = scene.admin.list_groups(&[], &["classic"]).await;
    assert_eq!(groups.len(), 1, "the classic group is still there");
    let printed = scene.tool("--delete --all-groups --output json").await;
    let document: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    let error = json!({ "code": "NON_EMPTY_GROUP", "message": "Share group 'live' is not EMPTY." });
    let group = json!({ "group": "live", "deleted": false, "error": error });
    assert_eq!(
        (printed.status, document),
        (1, json!({ "groups": [group] }))
    );
}
