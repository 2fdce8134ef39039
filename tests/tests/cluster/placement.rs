//! Where replicas are placed, by the broker and by hand.

use std::collections::BTreeMap;

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use ottla_protocol::messages::create_topics_request::CreatableReplicaAssignment;
use ottla_protocol::messages::{BrokerId, CreatePartitionsRequest, TopicName};
use ottla_tests::{Client, Settings, Told};

use super::fine;

fn ids(replicas: &[i32]) -> Vec<BrokerId> {
    replicas.iter().copied().map(BrokerId).collect()
}

async fn create(client: &mut Client, name: &str, replicas: &[&[i32]]) -> Told {
    let assignments = replicas.iter().zip(0..).map(|(replicas, index)| {
        CreatableReplicaAssignment::default()
            .with_partition_index(index)
            .with_broker_ids(ids(replicas))
    });
    let topic = Client::new_topic(name, -1, &[]).with_assignments(assignments.collect());
    let made = client.try_create_topic(topic).await;
    let message = made.error_message.map(|text| text.to_string());
    (ErrorCode(made.error_code), message.unwrap_or_default())
}

async fn extend(client: &mut Client, name: &str, count: i32, replicas: Option<&[&[i32]]>) -> Told {
    let assignments = replicas.map(|lists| {
        let lists = lists.iter();
        let lists = lists.map(|l| CreatePartitionsAssignment::default().with_broker_ids(ids(l)));
        lists.collect()
    });
    let topic = CreatePartitionsTopic::default()
        .with_name(TopicName(name.to_owned().into()))
        .with_count(count)
        .with_assignments(assignments);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000);
    let result = client.call(3, &request).await.results.swap_remove(0);
    let message = result.error_message.map(|text| text.to_string());
    (ErrorCode(result.error_code), message.unwrap_or_default())
}

#[tokio::test]
async fn topics_that_are_made_on_demand_are_spread_over_racks() {
    let mut settings = Settings::new()
        .brokers(4)
        .set("default.replication.factor", "2")
        .set("num.partitions", "8");
    for (id, rack) in [(0, "a"), (1, "a"), (2, "b"), (3, "b")] {
        settings = settings.set(&format!("ottla.override.{id}.broker.rack"), rack);
    }
    let broker = settings.start().await;
    let mut client = broker.client().await;
    let topic = client.describe_topic("t", true).await;
    let mut counts = BTreeMap::new();
    for partition in &topic.partitions {
        let replicas: Vec<i32> = partition.replica_nodes.iter().map(|id| id.0).collect();
        assert_ne!(replicas[0] / 2, replicas[1] / 2, "one in each rack");
        for id in replicas {
            *counts.entry(id).or_insert(0) += 1;
        }
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [4, 4, 4, 4]);
}

#[tokio::test]
async fn a_group_finds_a_coordinator_while_a_broker_is_stopped() {
    let broker = Settings::new().brokers(3).start().await;
    broker.stop_node(0).await;
    let mut client = broker.client_of(1).await;
    let found = client.find_coordinator(0, "g").await;
    assert_eq!(ErrorCode(found.error_code), ErrorCode::NONE);
    let line = client.partition_line("__consumer_offsets", 0).await;
    assert!(line.ends_with("offline 0"), "{line}");
}

#[tokio::test]
async fn a_stopped_broker_may_be_named_and_is_chosen_last() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client().await;
    broker.stop_node(2).await;
    assert_eq!(create(&mut client, "t", &[&[2, 0], &[0, 2]]).await, fine());
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@0, replicas 2,0, isr 0, offline 2"
    );
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    let stopped = |index| {
        let message = format!(
            "All brokers specified in the manual partition assignment for partition {index} are \
             fenced or in controlled shutdown."
        );
        (invalid, message)
    };
    assert_eq!(create(&mut client, "u", &[&[0], &[2]]).await, stopped(1));
    assert_eq!(
        extend(&mut client, "t", 3, Some(&[&[2]])).await.0,
        invalid,
        "one replica"
    );
    assert_eq!(extend(&mut client, "t", 3, Some(&[&[1, 2]])).await, fine());
    assert_eq!(extend(&mut client, "t", 5, None).await, fine());
    for partition in [3, 4] {
        let line = client.partition_line("t", partition).await;
        assert!(!line.contains("offline"), "{line}");
    }
    for (factor, code) in [
        (3, ErrorCode::NONE),
        (4, ErrorCode::INVALID_REPLICATION_FACTOR),
    ] {
        let topic = Client::new_topic(&format!("v{factor}"), 1, &[]);
        let topic = topic.with_replication_factor(factor);
        let made = client.try_create_topic(topic).await;
        assert_eq!(ErrorCode(made.error_code), code, "{factor} of 3");
    }
    let line = client.partition_line("v3", 0).await;
    assert!(line.ends_with("offline 2"), "{line}");
    broker.start_node(2).await;
    assert!(client.partition_line("t", 0).await.ends_with("isr 0,2"));
}

#[tokio::test]
async fn lists_of_replicas_are_checked() {
    let broker = Settings::new().brokers(2).start().await;
    let mut client = broker.client().await;
    let invalid = |message: &str| (ErrorCode::INVALID_REPLICA_ASSIGNMENT, message.to_owned());
    let unregistered = invalid(
        "The manual partition assignment includes broker 99, but no such broker is registered.",
    );
    let twice = invalid("The manual partition assignment includes the broker 1 more than once.");
    assert_eq!(create(&mut client, "u", &[&[99]]).await, unregistered);
    assert_eq!(create(&mut client, "u", &[&[1, 1]]).await, twice);
    let uneven = invalid(
        "The manual partition assignment includes a partition with 1 replica(s), but this is not \
         consistent with previous partitions, which have 2 replica(s).",
    );
    assert_eq!(create(&mut client, "u", &[&[0, 1], &[0]]).await, uneven);
    assert_eq!(create(&mut client, "t", &[&[1]]).await, fine());
    assert_eq!(
        extend(&mut client, "t", 2, Some(&[&[99]])).await,
        unregistered
    );
    let counted = invalid(
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    );
    assert_eq!(extend(&mut client, "t", 3, Some(&[&[1]])).await, counted);
}
