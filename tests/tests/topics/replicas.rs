//! Several logical brokers: leaders, the wrong port, in-sync replicas.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::DescribeClusterRequest;
use ottla_tests::{Client, Settings, batch_of, values};

#[tokio::test]
async fn the_wrong_port_says_so_and_names_the_leader() {
    let broker = Settings::new().brokers(2).start().await;
    let mut right = broker.client_of(1).await;
    let mut wrong = broker.client_of(0).await;
    right.create_topic_on("t", &[&[1]]).await;
    right.produce_values("t", 0, &["a"]).await;
    let moved = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    let batch = batch_of(wrong.timestamp, &["b"]);
    let response = wrong
        .call(12, &Client::produce_request("t", 0, -1, batch))
        .await;
    let answer = &response.responses[0].partition_responses[0];
    assert_eq!(
        (
            ErrorCode(answer.error_code),
            answer.current_leader.leader_id.0
        ),
        (moved, 1)
    );
    let port = i32::from(broker.address_of(1).port());
    assert!(
        response
            .node_endpoints
            .iter()
            .any(|e| e.node_id.0 == 1 && e.port == port)
    );
    let mut request = Client::fetch_request("", 0, 0);
    request.topics[0].topic_id = right.describe_topic("t", false).await.topic_id;
    let response = wrong.call(16, &request).await;
    let partition = &response.responses[0].partitions[0];
    assert_eq!(
        (
            ErrorCode(partition.error_code),
            partition.current_leader.leader_id.0
        ),
        (moved, 1)
    );
    assert!(
        response
            .node_endpoints
            .iter()
            .any(|e| e.node_id.0 == 1 && e.port == port)
    );
    assert_eq!(
        ErrorCode(wrong.list_offset("t", 0, -1).await.error_code),
        moved
    );
    assert_eq!(right.end_offset("t", 0).await, 1);
}

#[tokio::test]
async fn a_stopped_broker_hands_its_partitions_to_the_replicas_that_are_left() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[1, 0]]).await;
    client.create_topic_on("alone", &[&[1]]).await;
    broker
        .client_of(1)
        .await
        .produce_values("t", 0, &["before"])
        .await;
    let before = client.describe_topic("t", false).await;
    let mut dropped = broker.client_of(1).await;
    broker.stop_node(1).await;
    dropped.expect_close().await;
    let told = client.describe_topic("t", false).await;
    let moved = &told.partitions[0];
    assert_eq!((moved.error_code, moved.leader_id.0), (0, 0));
    assert!(moved.leader_epoch > before.partitions[0].leader_epoch);
    let isr: Vec<i32> = moved.isr_nodes.iter().map(|id| id.0).collect();
    let offline: Vec<i32> = moved.offline_replicas.iter().map(|id| id.0).collect();
    assert_eq!((isr, offline), (vec![0], vec![1]));
    let lost = client
        .describe_topic("alone", false)
        .await
        .partitions
        .remove(0);
    assert_eq!(ErrorCode(lost.error_code), ErrorCode::LEADER_NOT_AVAILABLE);
    assert_eq!(lost.leader_id.0, -1);
    assert_eq!(client.produce_values("t", 0, &["after"]).await, 1);
    assert_eq!(
        values(&client.fetch_all("t", 0, 0).await),
        ["before", "after"]
    );

    let request = DescribeClusterRequest::default().with_endpoint_type(1);
    let alive = client.call(2, &request).await.brokers;
    assert_eq!(
        alive.iter().map(|b| b.broker_id.0).collect::<Vec<_>>(),
        [0, 2]
    );
    let all = client
        .call(2, &request.with_include_fenced_brokers(true))
        .await
        .brokers;
    let fenced: Vec<_> = all
        .iter()
        .filter(|b| b.is_fenced)
        .map(|b| b.broker_id.0)
        .collect();
    assert_eq!(fenced, [1]);

    broker.start_node(1).await;
    for (topic, leader) in [("t", 0), ("alone", 1)] {
        let partition = client
            .describe_topic(topic, false)
            .await
            .partitions
            .remove(0);
        assert_eq!(
            (partition.error_code, partition.leader_id.0),
            (0, leader),
            "{topic}"
        );
        assert!(partition.offline_replicas.is_empty());
    }
}

#[tokio::test]
async fn a_fetch_with_the_epoch_of_an_old_leader_is_fenced() {
    let broker = Settings::new().brokers(2).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[1, 0]]).await;
    let old = client.describe_topic("t", false).await.partitions[0].leader_epoch;
    broker.stop_node(1).await;
    let mut request = Client::fetch_request("t", 0, 0);
    request.topics[0].partitions[0].current_leader_epoch = old;
    let response = client.call(12, &request).await;
    let code = ErrorCode(response.responses[0].partitions[0].error_code);
    assert_eq!(code, ErrorCode::FENCED_LEADER_EPOCH);
}

#[tokio::test]
async fn acks_all_honours_min_insync_replicas() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1, 2]]).await;
    let set = client
        .alter_configs(2, "t", &[("min.insync.replicas", "2")])
        .await;
    assert_eq!(set.error_code, 0);
    broker.stop_node(1).await;
    assert_eq!(client.produce_values("t", 0, &["two left"]).await, 0);
    broker.stop_node(2).await;
    let batch = batch_of(client.timestamp, &["one left"]);
    let answer = client.produce("t", 0, batch.clone()).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::NOT_ENOUGH_REPLICAS);
    assert_eq!(client.end_offset("t", 0).await, 1);
    // The other acknowledgements do not ask for replicas.
    let response = client
        .call(12, &Client::produce_request("t", 0, 1, batch.clone()))
        .await;
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    broker.start_node(2).await;
    assert_eq!(client.produce("t", 0, batch).await.error_code, 0);
    assert_eq!(client.end_offset("t", 0).await, 3);
}
