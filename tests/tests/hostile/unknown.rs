//! Names, numbers and epochs that nobody knows: an error at the right place, and no more.

use ottla_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use ottla_protocol::messages::delete_topics_request::DeleteTopicState;
use ottla_protocol::messages::metadata_request::MetadataRequestTopic;
use ottla_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use ottla_protocol::messages::share_acknowledge_request::ShareAcknowledgeRequest;
use ottla_protocol::messages::share_fetch_request::{
    FetchPartition, FetchTopic, ShareFetchRequest,
};
use ottla_protocol::messages::{
    BrokerId, CreatePartitionsRequest, DeleteGroupsRequest, DeleteRecordsRequest,
    DeleteTopicsRequest, DescribeTopicPartitionsRequest, GroupId, MetadataRequest,
    OffsetForLeaderEpochRequest, ShareGroupDescribeRequest, ShareGroupHeartbeatRequest, TopicName,
};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_tests::{Client, Embedded, batch_of};

fn name(text: &str) -> TopicName {
    TopicName(StrBytes::from_string(text.to_owned()))
}

async fn broker_with_a_topic() -> (Embedded, Client, Uuid) {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("t", 1).await;
    (broker, client, id)
}

#[tokio::test]
async fn unknown_topics_and_partitions_in_produce() {
    let (_broker, mut client, id) = broker_with_a_topic().await;
    let batch = batch_of(client.timestamp, &["x"]);
    for (topic, partition) in [("no", 0), ("t", 1), ("t", -1), ("t", i32::MAX), ("", 0)] {
        let answer = client.produce(topic, partition, batch.clone()).await;
        let code = ErrorCode(answer.error_code);
        assert_eq!(
            code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            "{topic:?} {partition}"
        );
    }
    let mut request = Client::produce_request("", 0, -1, batch);
    for (topic, partition, want) in [
        (Uuid::from_u128(7), 0, ErrorCode::UNKNOWN_TOPIC_ID),
        (Uuid::nil(), 0, ErrorCode::UNKNOWN_TOPIC_ID),
        (id, 9, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (id, 0, ErrorCode::NONE),
    ] {
        request.topic_data[0].topic_id = topic;
        request.topic_data[0].partition_data[0].index = partition;
        let response = client.call(13, &request).await;
        let code = response.responses[0].partition_responses[0].error_code;
        assert_eq!(ErrorCode(code), want, "{topic} {partition}");
    }
    assert_eq!(client.topic_names().await, ["t"]);
}

#[tokio::test]
async fn unknown_topics_partitions_and_epochs_in_fetch() {
    let (_broker, mut client, id) = broker_with_a_topic().await;
    client.produce_values("t", 0, &["x"]).await;
    for (topic, partition) in [("no", 0), ("t", 1), ("t", -1)] {
        let data = client.fetch(topic, partition, 0).await;
        assert_eq!(
            ErrorCode(data.error_code),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        );
        assert_eq!(
            data.records.as_deref(),
            Some(&[][..]),
            "records must not be null"
        );
    }
    for offset in [-2, -1, 2, i64::MAX] {
        let data = client.fetch("t", 0, offset).await;
        assert_eq!(
            ErrorCode(data.error_code),
            ErrorCode::OFFSET_OUT_OF_RANGE,
            "{offset}"
        );
    }
    let epoch = client.list_offset("t", 0, -1).await.leader_epoch;
    let mut request = Client::fetch_request("t", 0, 0);
    for (asked, want) in [
        (epoch, ErrorCode::NONE),
        (-1, ErrorCode::NONE),
        (epoch + 1, ErrorCode::UNKNOWN_LEADER_EPOCH),
        (i32::MAX, ErrorCode::UNKNOWN_LEADER_EPOCH),
    ] {
        request.topics[0].partitions[0].current_leader_epoch = asked;
        let response = client.call(12, &request).await;
        assert_eq!(
            ErrorCode(response.responses[0].partitions[0].error_code),
            want,
            "epoch {asked}"
        );
    }
    let mut request = Client::fetch_request("", 0, 0);
    for (topic, want) in [
        (id, ErrorCode::NONE),
        (Uuid::from_u128(7), ErrorCode::UNKNOWN_TOPIC_ID),
    ] {
        request.topics[0].topic_id = topic;
        let response = client.call(13, &request).await;
        assert_eq!(
            ErrorCode(response.responses[0].partitions[0].error_code),
            want
        );
    }
    let request = Client::fetch_request("t", 0, 0)
        .with_session_id(77)
        .with_session_epoch(3);
    let response = client.call(12, &request).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::FETCH_SESSION_ID_NOT_FOUND
    );
}

#[tokio::test]
async fn unknown_topics_partitions_epochs_and_timestamps_in_list_offsets() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    for (topic, partition) in [("no", 0), ("t", 1), ("t", -1)] {
        let found = client.list_offset(topic, partition, -1).await;
        assert_eq!(
            ErrorCode(found.error_code),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        );
        assert_eq!(
            (found.offset, found.timestamp, found.leader_epoch),
            (-1, -1, -1)
        );
    }
    let mut request = Client::list_offsets_request("t", 0, -1);
    request.topics[0].partitions[0].current_leader_epoch = 1000;
    let response = client.call(11, &request).await;
    let code = response.topics[0].partitions[0].error_code;
    assert_eq!(ErrorCode(code), ErrorCode::UNKNOWN_LEADER_EPOCH);
    for timestamp in [-7, -100, i64::MIN] {
        let found = client.list_offset("t", 0, timestamp).await;
        assert_eq!(
            ErrorCode(found.error_code),
            ErrorCode::UNSUPPORTED_VERSION,
            "{timestamp}"
        );
    }
}

#[tokio::test]
async fn unknown_topics_in_metadata_and_deletions() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(
        ErrorCode(client.describe_topic("no", false).await.error_code),
        unknown
    );
    assert_eq!(client.delete_topic("no").await, unknown);

    let state = DeleteTopicState::default().with_topic_id(Uuid::from_u128(7));
    let request = DeleteTopicsRequest::default().with_topics(vec![state]);
    let response = client.call(6, &request).await;
    assert_eq!(
        ErrorCode(response.responses[0].error_code),
        ErrorCode::UNKNOWN_TOPIC_ID
    );
    let neither = DeleteTopicsRequest::default().with_topics(vec![DeleteTopicState::default()]);
    let response = client.call(6, &neither).await;
    assert_eq!(
        ErrorCode(response.responses[0].error_code),
        ErrorCode::INVALID_REQUEST
    );

    let by_id = MetadataRequestTopic::default()
        .with_topic_id(Uuid::from_u128(7))
        .with_name(None);
    let request = MetadataRequest::default().with_topics(Some(vec![by_id]));
    let response = client.call(12, &request).await;
    assert_eq!(
        ErrorCode(response.topics[0].error_code),
        ErrorCode::UNKNOWN_TOPIC_ID
    );
}

#[tokio::test]
async fn unknown_partitions_in_deletions_of_records_and_questions_for_epochs() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    for (topic, partition) in [("no", 0), ("t", 5)] {
        let partition = DeleteRecordsPartition::default()
            .with_partition_index(partition)
            .with_offset(0);
        let topic = DeleteRecordsTopic::default()
            .with_name(name(topic))
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]);
        let response = client.call(2, &request).await;
        assert_eq!(
            ErrorCode(response.topics[0].partitions[0].error_code),
            unknown
        );
    }
    for (topic, partition) in [("no", 0), ("t", 5)] {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(partition)
            .with_leader_epoch(0);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(name(topic))
            .with_partitions(vec![partition]);
        let request = OffsetForLeaderEpochRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_topics(vec![topic]);
        let response = client.call(4, &request).await;
        assert_eq!(
            ErrorCode(response.topics[0].partitions[0].error_code),
            unknown
        );
    }
}

#[tokio::test]
async fn unknown_topics_in_descriptions_and_growth() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let wanted =
        ottla_protocol::messages::describe_topic_partitions_request::TopicRequest::default()
            .with_name(name("no"));
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(vec![wanted])
        .with_response_partition_limit(100)
        .with_cursor(None);
    let response = client.call(0, &request).await;
    assert_eq!(ErrorCode(response.topics[0].error_code), unknown);

    let wanted =
        ottla_protocol::messages::create_partitions_request::CreatePartitionsTopic::default()
            .with_name(name("no"))
            .with_count(3)
            .with_assignments(None);
    let request = CreatePartitionsRequest::default().with_topics(vec![wanted]);
    let response = client.call(3, &request).await;
    assert_eq!(ErrorCode(response.results[0].error_code), unknown);
}

#[tokio::test]
async fn unknown_groups_in_descriptions_and_deletions() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    let request = ShareGroupDescribeRequest::default()
        .with_group_ids(vec![GroupId(StrBytes::from_static_str("no"))]);
    let response = client.call(1, &request).await;
    assert_eq!(
        ErrorCode(response.groups[0].error_code),
        ErrorCode::GROUP_ID_NOT_FOUND
    );
    assert_eq!(
        response.groups[0].error_message.as_deref(),
        Some("Group no not found.")
    );

    let request = DeleteGroupsRequest {
        groups_names: vec![GroupId(StrBytes::from_static_str("no"))],
        ..Default::default()
    };
    let response = client.call(3, &request).await;
    assert_eq!(
        ErrorCode(response.results[0].error_code),
        ErrorCode::GROUP_ID_NOT_FOUND
    );
}

fn heartbeat(group: &'static str, member: &'static str, epoch: i32) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str(group)))
        .with_member_id(StrBytes::from_static_str(member))
        .with_member_epoch(epoch)
        .with_rack_id(None)
        .with_subscribed_topic_names((epoch == 0).then(|| vec![name("t")]))
}

#[tokio::test]
async fn unknown_groups_members_and_epochs_in_heartbeats() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    let response = client.call(1, &heartbeat("no", "m", 5)).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::GROUP_ID_NOT_FOUND
    );
    assert_eq!(
        response.error_message.as_deref(),
        Some("Share group no not found.")
    );
    let response = client.call(1, &heartbeat("g", "m", 0)).await;
    assert_eq!(ErrorCode(response.error_code), ErrorCode::NONE);
    for epoch in [5, -1] {
        let response = client.call(1, &heartbeat("g", "stranger", epoch)).await;
        assert_eq!(ErrorCode(response.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
        let message = response.error_message.unwrap();
        assert_eq!(&*message, "Member stranger is not a member of group g.");
    }
    let response = client.call(1, &heartbeat("g", "m", 1000)).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::FENCED_MEMBER_EPOCH
    );
    let response = client.call(1, &heartbeat("g", "m", -7)).await;
    assert_eq!(ErrorCode(response.error_code), ErrorCode::INVALID_REQUEST);
}

/// A share fetch of one partition by member `m` of group `g`.
fn session(epoch: i32, topic: Uuid, partition: i32) -> ShareFetchRequest {
    ShareFetchRequest {
        group_id: Some(GroupId(StrBytes::from_static_str("g"))),
        member_id: Some(StrBytes::from_static_str("m")),
        share_session_epoch: epoch,
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: i32::MAX,
        max_records: 10,
        batch_size: 10,
        topics: vec![FetchTopic {
            topic_id: topic,
            partitions: vec![FetchPartition {
                partition_index: partition,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[tokio::test]
async fn unknown_share_sessions_epochs_and_topics() {
    let (_broker, mut client, id) = broker_with_a_topic().await;
    let joined = client.call(1, &heartbeat("g", "m", 0)).await;
    assert_eq!(ErrorCode(joined.error_code), ErrorCode::NONE);
    let response = client.call(2, &session(4, id, 0)).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::SHARE_SESSION_NOT_FOUND
    );
    let response = client.call(2, &session(0, Uuid::from_u128(7), 0)).await;
    let data = &response.responses[0].partitions[0];
    assert_eq!(ErrorCode(data.error_code), ErrorCode::UNKNOWN_TOPIC_ID);
    let response = client.call(2, &session(9, id, 0)).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::INVALID_SHARE_SESSION_EPOCH
    );
    let acknowledge = ShareAcknowledgeRequest {
        group_id: Some(GroupId(StrBytes::from_static_str("g"))),
        member_id: Some(StrBytes::from_static_str("stranger")),
        share_session_epoch: 1,
        ..Default::default()
    };
    let response = client.call(2, &acknowledge).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::SHARE_SESSION_NOT_FOUND
    );
}

#[tokio::test]
async fn an_excessive_number_of_partitions_is_refused_and_nothing_is_made() {
    let (_broker, mut client, _) = broker_with_a_topic().await;
    for partitions in [i32::MAX, 1_000_000, 10_001] {
        let made = client
            .try_create_topic(Client::new_topic("many", partitions, &[]))
            .await;
        assert_eq!(
            ErrorCode(made.error_code),
            ErrorCode::POLICY_VIOLATION,
            "{partitions}: {made:?}"
        );
    }
    for partitions in [0, -2, i32::MIN] {
        let made = client
            .try_create_topic(Client::new_topic("few", partitions, &[]))
            .await;
        assert_eq!(
            ErrorCode(made.error_code),
            ErrorCode::INVALID_PARTITIONS,
            "{partitions}"
        );
    }
    let wanted =
        ottla_protocol::messages::create_partitions_request::CreatePartitionsTopic::default()
            .with_name(name("t"))
            .with_count(i32::MAX)
            .with_assignments(None);
    let request = CreatePartitionsRequest::default().with_topics(vec![wanted]);
    let response = client.call(3, &request).await;
    assert_ne!(response.results[0].error_code, 0);
    assert_eq!(client.topic_names().await, ["t"]);
}
