//! Requests that name the same thing again and again: a few bytes must not be worth a whole
//! description, or a copy of a long name, each time.

use ottla_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use ottla_protocol::messages::describe_configs_request::DescribeConfigsResource;
use ottla_protocol::messages::elect_leaders_request::TopicPartitions;
use ottla_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use ottla_protocol::messages::metadata_request::MetadataRequestTopic;
use ottla_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use ottla_protocol::messages::{
    AlterPartitionReassignmentsRequest, ConsumerGroupDescribeRequest, DescribeConfigsRequest,
    DescribeGroupsRequest, ElectLeadersRequest, GroupId, JoinGroupRequest, MetadataRequest,
    OffsetFetchRequest, ShareGroupDescribeRequest, TopicName,
};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Child, Client, Consumer, Launch};

use crate::support::alive;

const MIB: u64 = 1 << 20;
/// How often something is named; by a long name, since the decoder refuses lists of tiny elements.
const TIMES: usize = 100_001;
const TOPIC: &str = "a-topic-with-a-name-that-is-as-long-as-those-of-many-installations-are";
const CONSUMER: &str = "a-consumer-group-with-a-name-that-is-as-long-as-those-of-installations";
const CLASSIC: &str = "a-classic-group-with-a-name-that-is-as-long-as-those-of-installations";

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

fn groups(id: &str) -> Vec<GroupId> {
    vec![GroupId(text(id)); TIMES]
}

/// A broker with a topic of many partitions, a consumer group and its offsets.
async fn broker() -> (Child, Client) {
    let child = Launch::new().start().await;
    let mut client = child.client().await;
    client.create_topic(TOPIC, 100).await;
    let offsets: Vec<_> = (0..100).map(|partition| (partition, 7)).collect();
    client.commit(CLASSIC, TOPIC, &offsets).await;
    let mut consumer = Consumer::new(child.client().await, CONSUMER, "m");
    assert_eq!(consumer.join(&[TOPIC]).await.error_code, 0);
    (child, client)
}

async fn stays_small(child: &Child, before: u64) {
    alive(&mut child.client().await).await;
    let grown = child.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 256 * MIB, "{} MiB", grown / MIB);
}

#[tokio::test]
async fn what_is_described_as_a_whole_is_described_once() {
    let (child, mut client) = broker().await;
    let before = child.resident_bytes();

    let request = ConsumerGroupDescribeRequest::default().with_group_ids(groups(CONSUMER));
    assert_eq!(client.call(1, &request).await.groups.len(), 1);
    let request = ShareGroupDescribeRequest::default().with_group_ids(groups(CONSUMER));
    assert_eq!(client.call(1, &request).await.groups.len(), 1);
    let request = DescribeGroupsRequest::default().with_groups(groups(CLASSIC));
    assert_eq!(client.call(6, &request).await.groups.len(), 1);

    let all = OffsetFetchRequestGroup {
        group_id: GroupId(text(CLASSIC)),
        topics: None,
        ..Default::default()
    };
    let request = OffsetFetchRequest {
        groups: vec![all; TIMES],
        ..Default::default()
    };
    let answer = client.call(9, &request).await;
    assert_eq!(answer.groups.len(), 1);
    assert_eq!(answer.groups[0].topics[0].partitions.len(), 100);

    let named = MetadataRequestTopic::default().with_name(Some(topic(TOPIC)));
    let request = MetadataRequest::default().with_topics(Some(vec![named; TIMES]));
    assert_eq!(client.call(13, &request).await.topics.len(), 1);

    let resource = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(TOPIC))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource; TIMES]);
    assert_eq!(client.call(4, &request).await.results.len(), 1);

    stays_small(&child, before).await;
}

#[tokio::test]
async fn a_member_with_the_longest_name_has_an_id_that_can_be_told() {
    let child = Launch::new()
        .set("group.initial.rebalance.delay.ms", "0")
        .start()
        .await;
    let mut client = child.client().await;
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let request = JoinGroupRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_group_instance_id(Some(text(&"\u{e4}".repeat(i16::MAX as usize / 2))))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let joined = client.call(5, &request).await;
    assert_eq!(joined.error_code, 0);
    assert_eq!(joined.leader, joined.member_id);
    let described = client.describe_group(5, "g").await;
    assert_eq!(described.members.len(), 1);
}

#[tokio::test]
async fn a_long_name_is_not_copied_for_each_of_its_partitions() {
    let (child, mut client) = broker().await;
    let before = child.resident_bytes();
    let long = "n".repeat(i16::MAX as usize);

    let elect = |partitions: usize| {
        let named = TopicPartitions::default()
            .with_topic(topic(&long))
            .with_partitions((0..partitions as i32).collect());
        ElectLeadersRequest::default().with_topic_partitions(Some(vec![named]))
    };
    let answer = client.call(2, &elect(50_000)).await;
    let results = &answer.replica_election_results[0].partition_result;
    assert_eq!(results.len(), 50_000);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0;
    assert!(results.iter().all(|result| result.error_code == unknown));
    let answer = client.call(2, &elect(TIMES)).await;
    assert_eq!(answer.error_code, ErrorCode::INVALID_REQUEST.0);

    let reassign = |partitions: usize| {
        let partition = ReassignablePartition::default().with_replicas(None);
        let named = ReassignableTopic::default()
            .with_name(topic(&long))
            .with_partitions(vec![partition; partitions]);
        AlterPartitionReassignmentsRequest::default().with_topics(vec![named])
    };
    let answer = client.call(1, &reassign(50_000)).await;
    assert_eq!(answer.responses[0].partitions.len(), 50_000);
    let answer = client.call(1, &reassign(TIMES)).await;
    assert_eq!(answer.error_code, ErrorCode::INVALID_REQUEST.0);

    stays_small(&child, before).await;
}
