//! What brokers tell of themselves: producers of a partition, the quorum; and configs that are replaced
//! as a whole.

use ottla_protocol::batch::{BatchBuilder, BatchOptions};
use ottla_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use ottla_protocol::messages::describe_producers_request::TopicRequest;
use ottla_protocol::messages::describe_producers_response::PartitionResponse;
use ottla_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use ottla_protocol::messages::describe_quorum_response::DescribeQuorumResponse;
use ottla_protocol::messages::{
    AlterConfigsRequest, DescribeProducersRequest, DescribeQuorumRequest, TopicName,
};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, START_MS, Settings};

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

async fn producers(client: &mut Client, topic: &str, index: i32) -> PartitionResponse {
    let topic = TopicRequest::default()
        .with_name(TopicName(text(topic)))
        .with_partition_indexes(vec![index]);
    let request = DescribeProducersRequest::default().with_topics(vec![topic]);
    let mut response = client.call(0, &request).await;
    response.topics.swap_remove(0).partitions.swap_remove(0)
}

#[tokio::test]
async fn producers_are_told_by_every_replica() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let options = BatchOptions {
        producer_id: 77,
        producer_epoch: 3,
        base_sequence: 0,
        ..BatchOptions::default()
    };
    let mut batch = BatchBuilder::new(options);
    for _ in 0..4 {
        batch.push(START_MS, None, Some(b"a"));
    }
    let answer = client.produce("t", 0, batch.build().unwrap()).await;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    client.produce_values("t", 0, &["nobody's"]).await;
    for id in [0, 1] {
        let told = producers(&mut broker.client_of(id).await, "t", 0).await;
        assert_eq!((told.error_code, told.active_producers.len()), (0, 1));
        let one = &told.active_producers[0];
        assert_eq!(
            (one.producer_id.0, one.producer_epoch, one.last_sequence),
            (77, 3, 3)
        );
        assert_eq!(
            (one.last_timestamp, one.current_txn_start_offset),
            (START_MS, -1)
        );
    }
    let elsewhere = producers(&mut broker.client_of(2).await, "t", 0).await;
    let code = ErrorCode(elsewhere.error_code);
    assert_eq!(code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    for (topic, index) in [("t", 1), ("nobody", 0)] {
        let told = producers(&mut client, topic, index).await;
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        assert_eq!(ErrorCode(told.error_code), unknown, "{topic}-{index}");
    }
}

async fn quorum(
    client: &mut Client,
    version: i16,
    topic: &str,
    index: i32,
) -> DescribeQuorumResponse {
    let partition = PartitionData::default().with_partition_index(index);
    let topic = TopicData::default()
        .with_topic_name(TopicName(text(topic)))
        .with_partitions(vec![partition]);
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    client.call(version, &request).await
}

#[tokio::test]
async fn the_metadata_log_has_one_voter_and_the_others_observe() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(1).await;
    let response = quorum(&mut client, 2, "__cluster_metadata", 0).await;
    let told = &response.topics[0].partitions[0];
    assert_eq!((told.error_code, told.leader_id.0), (0, 0));
    let voters: Vec<_> = told.current_voters.iter().map(|v| v.replica_id.0).collect();
    let observers: Vec<_> = told.observers.iter().map(|v| v.replica_id.0).collect();
    assert_eq!((voters, observers), (vec![0], vec![1, 2]));
    let all = told.current_voters.iter().chain(&told.observers);
    for replica in all {
        assert_eq!(replica.log_end_offset, told.high_watermark);
    }
    let port = broker.address_of(0).port();
    assert_eq!(response.nodes[0].listeners[0].port, port);
    let before = told.high_watermark;
    client.create_topic("t", 1).await;
    for version in 0..=2 {
        let grown = quorum(&mut client, version, "__cluster_metadata", 0).await;
        assert!(grown.topics[0].partitions[0].high_watermark > before);
        for (topic, index) in [("__cluster_metadata", 1), ("nobody", 0)] {
            let told = quorum(&mut client, version, topic, index).await;
            let code = ErrorCode(told.topics[0].partitions[0].error_code);
            assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
}

fn resource(topic: &str, configs: &[(&str, &str)]) -> AlterConfigsResource {
    let configs = configs.iter().map(|(key, value)| {
        AlterableConfig::default()
            .with_name(text(key))
            .with_value(Some(text(value)))
    });
    AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(topic))
        .with_configs(configs.collect())
}

/// Replaces configs and returns the codes of the answers.
async fn replace(
    client: &mut Client,
    validate_only: bool,
    resources: Vec<AlterConfigsResource>,
) -> Vec<ErrorCode> {
    let request = AlterConfigsRequest::default()
        .with_resources(resources)
        .with_validate_only(validate_only);
    let responses = client.call(2, &request).await.responses;
    responses.iter().map(|r| ErrorCode(r.error_code)).collect()
}

#[tokio::test]
async fn what_alter_configs_does_not_name_goes_back_to_its_default() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client
        .create_topic_with("t", 1, &[("retention.ms", "1000"), ("segment.ms", "2000")])
        .await;
    let topic = broker.process.broker.cluster.topic("t").unwrap();
    let config = || (topic.config().retention_ms, topic.config().segment_ms);
    assert_eq!(config(), (1000, 2000));
    let one = || vec![resource("t", &[("segment.ms", "3000")])];
    assert_eq!(replace(&mut client, true, one()).await, [ErrorCode::NONE]);
    assert_eq!(config(), (1000, 2000));
    assert_eq!(replace(&mut client, false, one()).await, [ErrorCode::NONE]);
    assert_eq!(config(), (604_800_000, 3000));
    let mixed = vec![
        resource("t", &[("segment.ms", "x")]),
        resource("nobody", &[]),
    ];
    assert_eq!(
        replace(&mut client, false, mixed).await,
        [
            ErrorCode::INVALID_CONFIG,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        ]
    );
    let twice = vec![resource("t", &[]), resource("t", &[])];
    let refused = ErrorCode::INVALID_REQUEST;
    assert_eq!(replace(&mut client, false, twice).await, [refused, refused]);
    assert_eq!(config(), (604_800_000, 3000));
}
