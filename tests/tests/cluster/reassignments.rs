//! AlterPartitionReassignments and ListPartitionReassignments.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::ListPartitionReassignmentsRequest;
use ottla_protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
use ottla_tests::{Embedded, Settings, values};

use super::fine;

async fn four() -> Embedded {
    Settings::new().brokers(4).start().await
}

#[tokio::test]
async fn a_move_to_brokers_that_are_up_is_over_with_the_answer() {
    let broker = four().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    assert_eq!(client.produce_values("t", 0, &["a"]).await, 0);
    assert_eq!(client.reassign("t", 0, Some(&[2, 3])).await, fine());
    assert_eq!(client.reassignments().await, [""; 0]);
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 2@1, replicas 2,3, isr 2,3"
    );
    let moved = ErrorCode::NOT_LEADER_OR_FOLLOWER.0;
    assert_eq!(client.list_offset("t", 0, -1).await.error_code, moved);
    let mut two = broker.client_of(2).await;
    assert_eq!(two.produce_values("t", 0, &["b"]).await, 1);
    assert_eq!(values(&two.fetch_all("t", 0, 0).await), ["a", "b"]);
    assert_eq!(two.fetch("t", 0, 1).await.high_watermark, 2);
}

#[tokio::test]
async fn the_leader_stays_if_it_is_among_the_new_replicas() {
    let broker = four().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    assert_eq!(client.reassign("t", 0, Some(&[1, 0])).await, fine());
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@0, replicas 1,0, isr 0,1"
    );
    assert_eq!(client.reassign("t", 0, Some(&[3, 0, 2])).await, fine());
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@1, replicas 3,0,2, isr 0,3,2"
    );
    let elected = client.elect(0, None).await;
    assert_eq!(elected, [("t-0".to_owned(), fine())]);
    assert!(
        client
            .partition_line("t", 0)
            .await
            .starts_with("leader 3@2")
    );
}

#[tokio::test]
async fn a_move_to_a_stopped_broker_is_in_progress_until_it_is_back() {
    let broker = four().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    broker.stop_node(3).await;
    assert_eq!(client.reassign("t", 0, Some(&[3, 0])).await, fine());
    let moving = ["t-0: 3,0,1 adding 3 removing 1"];
    assert_eq!(client.reassignments().await, moving);
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@0, replicas 3,0,1, isr 0,1, offline 3"
    );
    assert_eq!(client.produce_values("t", 0, &["goes on"]).await, 0);
    broker.start_node(3).await;
    assert_eq!(client.reassignments().await, [""; 0]);
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@1, replicas 3,0, isr 0,3"
    );
}

#[tokio::test]
async fn a_move_in_progress_is_taken_back_or_replaced() {
    let broker = four().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1], &[0, 1]]).await;
    broker.stop_node(3).await;
    for partition in [0, 1] {
        let target = [2, 3];
        assert_eq!(client.reassign("t", partition, Some(&target)).await, fine());
    }
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@0, replicas 2,3,0,1, isr 0,1,2, offline 3"
    );
    assert_eq!(client.reassign("t", 0, None).await, fine());
    assert_eq!(client.reassign("t", 1, Some(&[2, 1])).await, fine());
    assert_eq!(client.reassignments().await, [""; 0]);
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@1, replicas 0,1, isr 0,1"
    );
    assert_eq!(
        client.partition_line("t", 1).await,
        "leader 2@2, replicas 2,1, isr 1,2"
    );
    let none = (
        ErrorCode::NO_REASSIGNMENT_IN_PROGRESS,
        "No partition reassignment is in progress.".to_owned(),
    );
    assert_eq!(client.reassign("t", 0, None).await, none);
}

/// A topic, a partition, new replicas, and the answer.
type Case = (
    &'static str,
    i32,
    Option<&'static [i32]>,
    ErrorCode,
    &'static str,
);

#[tokio::test]
async fn what_cannot_be_is_refused_in_kafkas_words() {
    let broker = four().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    let cases: [Case; 7] = [
        (
            "nope",
            0,
            None,
            unknown,
            "Unable to find a topic named nope.",
        ),
        ("t", 7, Some(&[0]), unknown, "Unable to find partition t:7."),
        (
            "t",
            0,
            Some(&[]),
            invalid,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            "t",
            0,
            Some(&[1, 1]),
            invalid,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            "t",
            0,
            Some(&[100, 99]),
            invalid,
            "The manual partition assignment includes broker 99, but no such broker is registered.",
        ),
        (
            "t",
            0,
            Some(&[-1]),
            invalid,
            "The manual partition assignment includes broker -1, but no such broker is registered.",
        ),
        (
            "t",
            0,
            None,
            ErrorCode::NO_REASSIGNMENT_IN_PROGRESS,
            "No partition reassignment is in progress.",
        ),
    ];
    for (topic, partition, replicas, code, message) in cases {
        let answer = client.reassign(topic, partition, replicas).await;
        assert_eq!(answer, (code, message.to_owned()));
    }
    let factor = client.reassign_with("t", 0, Some(&[1]), false).await;
    let message = "The replication factor is changed from 2 to 1".to_owned();
    assert_eq!(factor, (ErrorCode::INVALID_REPLICATION_FACTOR, message));
    let same = client.reassign_with("t", 0, Some(&[0, 2]), false).await;
    assert_eq!(same, fine());
    assert_eq!(client.reassign("t", 0, Some(&[0, 2])).await, fine());
    assert!(
        client
            .partition_line("t", 0)
            .await
            .starts_with("leader 0@1")
    );
}

#[tokio::test]
async fn the_list_names_what_is_asked_for_and_in_progress() {
    let broker = four().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("a", &[&[0], &[0]]).await;
    client.create_topic_on("b", &[&[0]]).await;
    broker.stop_node(3).await;
    for (topic, partition) in [("a", 1), ("b", 0)] {
        assert_eq!(client.reassign(topic, partition, Some(&[3])).await, fine());
    }
    let moving = [
        "a-1: 3,0 adding 3 removing 0",
        "b-0: 3,0 adding 3 removing 0",
    ];
    assert_eq!(client.reassignments().await, moving);
    let of = |name: &'static str, indexes: &[i32]| {
        ListPartitionReassignmentsTopics::default()
            .with_name(ottla_protocol::messages::TopicName(name.into()))
            .with_partition_indexes(indexes.to_vec())
    };
    let request = ListPartitionReassignmentsRequest::default()
        .with_topics(Some(vec![of("a", &[0, 1, 9]), of("nope", &[0])]));
    let topics = client.call(0, &request).await.topics;
    let listed: Vec<_> = topics
        .iter()
        .map(|t| (t.name.to_string(), t.partitions.len()))
        .collect();
    assert_eq!(listed, [("a".to_owned(), 1)]);
}

#[tokio::test]
async fn a_move_in_progress_survives_a_restart_until_its_broker_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let with = |brokers: i32| Settings::new().brokers(brokers).data_dir(dir.path());
    let broker = with(3).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    assert_eq!(client.produce_values("t", 0, &["kept"]).await, 0);
    broker.stop_node(2).await;
    assert_eq!(client.reassign("t", 0, Some(&[2])).await, fine());
    broker.shutdown().await;

    let broker = with(2).start().await;
    let mut client = broker.client_of(0).await;
    let moving = ["t-0: 2,0,1 adding 2 removing 0,1"];
    assert_eq!(client.reassignments().await, moving);
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@2, replicas 2,0,1, isr 0,1, offline 2"
    );
    broker.shutdown().await;

    let broker = with(3).start().await;
    let mut client = broker.client_of(2).await;
    assert_eq!(client.reassignments().await, [""; 0]);
    let line = client.partition_line("t", 0).await;
    assert!(line.ends_with("replicas 2, isr 2"), "{line}");
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["kept"]);
}
