//! Replicas in sync, those that stay eligible, leader epochs, and what producers and consumers are told.

use ottla_protocol::messages::OffsetForLeaderEpochRequest;
use ottla_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use ottla_protocol::{ErrorCode, Uuid};
use ottla_tests::{Client, Named, Settings, batch_of, http};

#[tokio::test]
async fn replicas_that_leave_an_isr_under_its_minimum_stay_eligible() {
    let broker = Settings::new().brokers(4).start().await;
    let mut client = broker.client_of(3).await;
    client.create_topic_on("t", &[&[0, 1, 2]]).await;
    let min = [("min.insync.replicas", "2")];
    assert_eq!(client.alter_configs(2, "t", &min).await.error_code, 0);
    let mut expect = async |line: &str| assert_eq!(client.partition_line("t", 0).await, line);
    broker.stop_node(2).await;
    expect("leader 0@0, replicas 0,1,2, isr 0,1, offline 2").await;
    broker.stop_node(0).await;
    expect("leader 1@1, replicas 0,1,2, isr 1, elr 0, offline 0,2").await;
    broker.stop_node(1).await;
    expect("leader -1@2, replicas 0,1,2, isr , elr 0,1, last 1, offline 0,1,2").await;
    broker.start_node(2).await;
    expect("leader -1@2, replicas 0,1,2, isr , elr 0,1, last 1, offline 0,1").await;
    broker.start_node(0).await;
    expect("leader 0@3, replicas 0,1,2, isr 0,2, offline 1").await;
    broker.start_node(1).await;
    expect("leader 0@3, replicas 0,1,2, isr 0,2,1").await;
}

#[tokio::test]
async fn without_the_feature_the_last_replica_stays_in_the_isr() {
    let settings = Settings::new().brokers(2);
    let settings = settings.set("feature.eligible.leader.replicas.version", "0");
    let broker = settings.start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[1]]).await;
    broker.stop_node(1).await;
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader -1@1, replicas 1, isr 1, offline 1"
    );
}

#[tokio::test]
async fn every_restart_raises_leader_epochs_by_two_as_a_stop_and_a_start() {
    let dir = tempfile::tempdir().unwrap();
    for epoch in [0, 2, 4] {
        let broker = Settings::new().data_dir(dir.path()).start().await;
        let mut client = broker.client().await;
        if epoch == 0 {
            client.create_topic("t", 1).await;
        }
        let expected = format!("leader 0@{epoch}, replicas 0, isr 0");
        assert_eq!(client.partition_line("t", 0).await, expected);
        assert_eq!(
            client.produce_values("t", 0, &["x"]).await,
            i64::from(epoch) / 2
        );
        broker.shutdown().await;
    }
}

#[tokio::test]
async fn the_end_of_an_epoch_is_told_after_leaders_moved() {
    let broker = Settings::new().brokers(2).start().await;
    let mut one = broker.client_of(1).await;
    let mut zero = broker.client_of(0).await;
    one.create_topic_on("t", &[&[0, 1]]).await;
    zero.produce_values("t", 0, &["a", "b"]).await;
    broker.stop_node(0).await;
    one.produce_values("t", 0, &["c"]).await;
    broker.start_node(0).await;
    let mut ask = async |current: i32, epoch: i32| {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(current)
            .with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(ottla_protocol::messages::TopicName("t".into()))
            .with_partitions(vec![partition]);
        let request = OffsetForLeaderEpochRequest::default().with_topics(vec![topic]);
        let response = one.call(4, &request).await;
        let found = &response.topics[0].partitions[0];
        (
            ErrorCode(found.error_code),
            found.leader_epoch,
            found.end_offset,
        )
    };
    assert_eq!(ask(-1, 0).await, (ErrorCode::NONE, 0, 2));
    assert_eq!(ask(1, 1).await, (ErrorCode::NONE, 1, 3));
    assert_eq!(ask(0, 0).await, (ErrorCode::FENCED_LEADER_EPOCH, -1, -1));
    assert_eq!(ask(2, 0).await, (ErrorCode::UNKNOWN_LEADER_EPOCH, -1, -1));
    let epochs: Vec<_> = [
        one.list_offset("t", 0, -2).await,
        one.list_offset("t", 0, -1).await,
    ]
    .map(|found| (found.offset, found.leader_epoch))
    .to_vec();
    assert_eq!(epochs, [(0, 0), (3, 1)]);
}

#[tokio::test]
async fn the_old_leader_tells_a_client_of_its_epoch_who_leads_now() {
    let broker = Settings::new().brokers(3).start().await;
    let mut zero = broker.client_of(0).await;
    let topic = zero.create_topic_on("t", &[&[0, 1]]).await;
    broker.stop_node(0).await;
    broker.start_node(0).await;
    let mut request = Client::fetch_request("", 0, 0);
    request.topics[0].topic_id = topic;
    for (node, code) in [
        (0, ErrorCode::FENCED_LEADER_EPOCH),
        (2, ErrorCode::NOT_LEADER_OR_FOLLOWER),
    ] {
        let mut client = broker.client_of(node).await;
        request.topics[0].partitions[0].current_leader_epoch = 0;
        let response = client.call(16, &request).await;
        let partition = &response.responses[0].partitions[0];
        let leader = &partition.current_leader;
        assert_eq!(ErrorCode(partition.error_code), code);
        assert_eq!((leader.leader_id.0, leader.leader_epoch), (1, 1));
        let port = i32::from(broker.address_of(1).port());
        let mut endpoints = response.node_endpoints.iter();
        assert!(endpoints.any(|e| e.node_id.0 == 1 && e.port == port));
        let mut asked = Client::list_offsets_request("t", 0, -1);
        asked.topics[0].partitions[0].current_leader_epoch = 0;
        let answer = client.call(11, &asked).await;
        assert_eq!(ErrorCode(answer.topics[0].partitions[0].error_code), code);
    }
}

#[tokio::test]
async fn a_minimum_above_the_number_of_replicas_asks_for_all_of_them() {
    let broker = Settings::new().brokers(2).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let min = [("min.insync.replicas", "3")];
    assert_eq!(client.alter_configs(2, "t", &min).await.error_code, 0);
    assert_eq!(client.produce_values("t", 0, &["both"]).await, 0);
    broker.stop_node(1).await;
    let answer = client
        .produce("t", 0, batch_of(client.timestamp, &["x"]))
        .await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::NOT_ENOUGH_REPLICAS);
    let old = Client::produce_request("t", 0, -1, batch_of(client.timestamp, &["x"]));
    let response = client.call(9, &old).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(ErrorCode(code), ErrorCode::NOT_ENOUGH_REPLICAS);
}

#[tokio::test]
async fn a_coordinator_short_of_replicas_takes_no_commits() {
    let settings = Settings::new().brokers(2);
    let settings = settings.set("offsets.topic.num.partitions", "1");
    let broker = settings.start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic("t", 1).await;
    let coordinator = *client.find_coordinator(0, "g").await.node_id;
    let min = [("min.insync.replicas", "2")];
    let altered = client.alter_configs(2, "__consumer_offsets", &min).await;
    assert_eq!(altered.error_code, 0);
    let mut client = broker.client_of(coordinator).await;
    client.commit("g", "t", &[(0, 1)]).await;
    broker.stop_node(1 - coordinator).await;
    let named = Named {
        name: "t",
        id: Uuid::nil(),
    };
    let request = Client::commit_request("g", named, &[(0, 2, None)]);
    let refused = [(0, ErrorCode::COORDINATOR_NOT_AVAILABLE)];
    assert_eq!(client.commit_with(9, &request).await, refused);
    broker.start_node(1 - coordinator).await;
    client.commit("g", "t", &[(0, 3)]).await;
}

#[tokio::test]
async fn metrics_count_leaders_and_what_is_wrong_with_them() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1], &[1, 0]]).await;
    client.create_topic_on("u", &[&[2]]).await;
    let min = [("min.insync.replicas", "2")];
    assert_eq!(client.alter_configs(2, "t", &min).await.error_code, 0);
    broker.stop_node(1).await;
    broker.stop_node(2).await;
    let text = http(broker.admin(), "GET", "/metrics").await.body;
    let expected = [
        "ottla_replica_manager_leader_count{broker=\"0\"} 2",
        "ottla_replica_manager_leader_count{broker=\"1\"} 0",
        "ottla_replica_manager_partition_count{broker=\"1\"} 2",
        "ottla_replica_manager_under_replicated_partitions{broker=\"0\"} 2",
        "ottla_replica_manager_under_min_isr_partition_count{broker=\"0\"} 2",
        "ottla_replica_manager_at_min_isr_partition_count{broker=\"0\"} 0",
        "ottla_replica_manager_reassigning_partitions{broker=\"0\"} 0",
        "ottla_controller_global_topic_count 2",
        "ottla_controller_global_partition_count 3",
        "ottla_controller_offline_partitions_count 1",
        "ottla_controller_preferred_replica_imbalance_count 2",
        "ottla_controller_active_broker_count 1",
        "ottla_controller_fenced_broker_count 2",
    ];
    for line in expected {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
}
