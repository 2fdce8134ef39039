//! Starts that cannot work: one line that says why and what to do, and a status that is not 0.

use ottla_tests::{Launch, values};

#[tokio::test]
async fn a_data_directory_in_use_is_named_and_its_user_lives() {
    let dir = tempfile::tempdir().unwrap();
    let first = Launch::new().data_dir(dir.path()).start().await;
    let second = Launch::new().data_dir(dir.path()).run_to_its_end().await;
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(second.stdout, "");
    let last = second.stderr.lines().last().unwrap_or_default();
    assert!(
        last.contains("in use by another process"),
        "{}",
        second.stderr
    );
    assert!(last.contains(&dir.path().display().to_string()), "{last}");
    assert!(last.contains("--data-dir"), "{last}");
    let mut client = first.client().await;
    client.create_topic("t", 1).await;
    client.produce_values("t", 0, &["still here"]).await;
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["still here"]);
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = Launch::new().start().await;
    let at = first.address().to_string();
    let second = Launch::bare()
        .arg("--listen")
        .arg(&at)
        .arg("--admin-listen")
        .arg("none");
    let second = second.run_to_its_end().await;
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(second.stdout, "");
    let last = second.stderr.lines().last().unwrap_or_default();
    assert!(last.contains(&at) && last.contains("--listen"), "{last}");
    let admin = first.admin().to_string();
    let third = Launch::bare()
        .arg("--listen")
        .arg("127.0.0.1:0")
        .arg("--admin-listen")
        .arg(&admin);
    let third = third.run_to_its_end().await;
    assert_eq!(third.status.code(), Some(1));
    let last = third.stderr.lines().last().unwrap_or_default();
    assert!(
        last.contains(&admin) && last.contains("--admin-listen"),
        "{last}"
    );
}

#[tokio::test]
async fn a_broken_line_of_server_properties_is_named_with_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.properties");
    let cases = [
        (
            "# fine\nnum.partitions=3\nthis is no setting\n",
            "line 3",
            "KEY=VALUE",
        ),
        ("\n\nnum.partitions=many\n", "line 3", "num.partitions"),
        (
            "auto.create.topics.enable=perhaps\n",
            "line 1",
            "auto.create.topics.enable",
        ),
        ("log.retention.ms=1\\\n2x\n", "line 1", "log.retention.ms"),
    ];
    for (text, line, word) in cases {
        std::fs::write(&file, text).unwrap();
        let launch = Launch::new()
            .arg("--config")
            .arg(file.display().to_string());
        let exited = launch.run_to_its_end().await;
        assert_eq!(exited.status.code(), Some(1), "{text:?}");
        assert_eq!(exited.stderr.lines().count(), 1, "{}", exited.stderr);
        assert!(
            exited.stderr.contains("server.properties"),
            "{}",
            exited.stderr
        );
        assert!(
            exited.stderr.contains(line),
            "{} for {text:?}",
            exited.stderr
        );
        assert!(
            exited.stderr.contains(word),
            "{} for {text:?}",
            exited.stderr
        );
    }
}

#[tokio::test]
async fn a_wrong_flag_is_status_2_and_an_unknown_key_is_only_a_warning() {
    let wrong = Launch::new()
        .arg("--port")
        .arg("9092")
        .run_to_its_end()
        .await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        wrong.stderr.contains("--port") && wrong.stderr.contains("--help"),
        "{}",
        wrong.stderr
    );
    let unknown = Launch::new().set("no.such.key", "1").start().await;
    assert!(
        unknown.stderr().contains("no.such.key"),
        "{}",
        unknown.stderr()
    );
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let exited = Launch::new()
        .data_dir(&file.join("data"))
        .run_to_its_end()
        .await;
    assert_eq!(exited.status.code(), Some(1));
    let last = exited.stderr.lines().last().unwrap_or_default();
    assert!(
        last.contains(&file.display().to_string()),
        "{}",
        exited.stderr
    );
}
