//! A disk that is full, and one that is not any more.

use ottla_protocol::ErrorCode;
use ottla_storage::Faults;
use ottla_tests::{Client, Launch, Settings, batch_of, values};

#[tokio::test]
async fn a_full_disk_refuses_the_append_and_the_broker_recovers_once_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let settings = Settings::new().data_dir(dir.path()).faults(faults.clone());
    let broker = settings.start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    client.produce_values("t", 0, &["before"]).await;
    // The write that meets the end of the disk is cut short.
    faults.set_room(Some(20));
    for partition in [0, 1, 0] {
        let batch = batch_of(client.timestamp, &["lost"]);
        let answer = client.produce("t", partition, batch).await;
        let code = ErrorCode(answer.error_code);
        assert_eq!(code, ErrorCode::KAFKA_STORAGE_ERROR, "{answer:?}");
        assert_eq!(answer.base_offset, -1);
    }
    // Everything else is served meanwhile.
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["before"]);
    assert_eq!(client.end_offset("t", 0).await, 1);
    assert_eq!(client.end_offset("t", 1).await, 0);
    faults.set_room(None);
    assert_eq!(client.produce_values("t", 0, &["after"]).await, 1);
    assert_eq!(client.produce_values("t", 1, &["after"]).await, 0);
    assert_eq!(
        values(&client.fetch_all("t", 0, 0).await),
        ["before", "after"]
    );
    broker.shutdown().await;
    let broker = Settings::new().data_dir(dir.path()).start().await;
    let mut client = broker.client().await;
    assert_eq!(
        values(&client.fetch_all("t", 0, 0).await),
        ["before", "after"]
    );
    assert_eq!(values(&client.fetch_all("t", 1, 0).await), ["after"]);
}

#[tokio::test]
async fn a_full_disk_refuses_new_topics_and_the_broker_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let broker = Settings::new()
        .data_dir(dir.path())
        .faults(faults.clone())
        .start()
        .await;
    let mut client = broker.client().await;
    faults.set_room(Some(0));
    let made = client
        .try_create_topic(Client::new_topic("t", 1, &[]))
        .await;
    assert_eq!(
        ErrorCode(made.error_code),
        ErrorCode::KAFKA_STORAGE_ERROR,
        "{made:?}"
    );
    assert_eq!(client.topic_names().await, Vec::<String>::new());
    faults.set_room(None);
    client.create_topic("t", 1).await;
    assert_eq!(client.produce_values("t", 0, &["fits"]).await, 0);
}

#[tokio::test]
async fn a_process_whose_files_may_not_grow_lives_and_a_restart_with_room_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch::new().data_dir(dir.path()).file_size_max(1 << 20);
    let child = launch.start().await;
    let mut client = child.client().await;
    client.create_topic("t", 2).await;
    let batch = batch_of(client.timestamp, &[vec![5u8; 100_000]]);
    let mut stored = 0;
    loop {
        let answer = client.produce("t", 0, batch.clone()).await;
        if answer.error_code != 0 {
            assert_eq!(
                ErrorCode(answer.error_code),
                ErrorCode::KAFKA_STORAGE_ERROR,
                "{answer:?}"
            );
            break;
        }
        stored += 1;
        assert!(stored < 20, "the kernel's limit is not met");
    }
    assert!(stored >= 9, "{stored}");
    // Only that partition is full.
    assert_eq!(client.produce_values("t", 1, &["other"]).await, 0);
    assert_eq!(client.fetch_all("t", 0, 0).await.len(), stored);
    child.kill().await;
    let child = Launch::new().data_dir(dir.path()).start().await;
    let mut client = child.client().await;
    assert_eq!(client.fetch_all("t", 0, 0).await.len(), stored);
    assert_eq!(
        client.produce_values("t", 0, &["room"]).await,
        stored as i64
    );
    assert_eq!(values(&client.fetch_all("t", 1, 0).await), ["other"]);
}

#[tokio::test]
async fn a_log_whose_sync_failed_takes_no_more_appends_and_others_do() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let broker = Settings::new()
        .data_dir(dir.path())
        .faults(faults.clone())
        .start()
        .await;
    let mut client = broker.client().await;
    client
        .create_topic_with("synced", 1, &[("flush.messages", "1")])
        .await;
    client.create_topic("plain", 1).await;
    assert_eq!(client.produce_values("synced", 0, &["a"]).await, 0);
    faults.fail_syncs(true);
    for _ in 0..2 {
        let batch = batch_of(client.timestamp, &["b"]);
        let answer = client.produce("synced", 0, batch).await;
        assert_eq!(
            ErrorCode(answer.error_code),
            ErrorCode::KAFKA_STORAGE_ERROR,
            "{answer:?}"
        );
    }
    faults.fail_syncs(false);
    let batch = batch_of(client.timestamp, &["c"]);
    let answer = client.produce("synced", 0, batch).await;
    assert_eq!(
        ErrorCode(answer.error_code),
        ErrorCode::KAFKA_STORAGE_ERROR,
        "{answer:?}"
    );
    assert_eq!(client.produce_values("plain", 0, &["x"]).await, 0);
}
