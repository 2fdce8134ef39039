//! What a broker knows after a stop, however it was stopped.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use ottla_protocol::batch::{BatchBuilder, BatchOptions};
use ottla_protocol::messages::describe_configs_request::DescribeConfigsResource;
use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_protocol::messages::{
    ApiVersionsRequest, DescribeConfigsRequest, InitProducerIdRequest, MetadataRequest,
    UpdateFeaturesRequest,
};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_tests::{Child, Client, Launch, Settings, values, wall_ms};

/// How a process is stopped.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Clean,
    Kill,
}

impl Stop {
    async fn apply(self, child: Child) {
        match self {
            Self::Clean => {
                let exited = child.terminate().await;
                assert!(exited.status.success(), "{exited:?}");
            }
            Self::Kill => child.kill().await,
        }
    }
}

async fn start(dir: &Path) -> (Child, Client) {
    let child = Launch::new().data_dir(dir).start().await;
    let client = child.client().await;
    (child, client)
}

async fn producer_id(client: &mut Client) -> i64 {
    let request = InitProducerIdRequest::default().with_transactional_id(None);
    client.call(4, &request).await.producer_id.0
}

fn sequenced(producer_id: i64, base_sequence: i32, value: &str) -> bytes::Bytes {
    let options = BatchOptions {
        producer_id,
        producer_epoch: 0,
        base_sequence,
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    builder.push(wall_ms(), None, Some(value.as_bytes()));
    builder.build().unwrap()
}

async fn config(client: &mut Client, kind: i8, name: &str, key: &str) -> String {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configuration_keys(Some(vec![StrBytes::from_string(key.to_owned())]));
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let result = client.call(4, &request).await.results.remove(0);
    result.configs[0].value.as_ref().unwrap().to_string()
}

async fn share_version(client: &mut Client) -> Option<i16> {
    let mut request = ApiVersionsRequest {
        node_id: -1,
        ..Default::default()
    };
    request.client_software_name = StrBytes::from_static_str("tests");
    request.client_software_version = StrBytes::from_static_str("1");
    let response = client.call(4, &request).await;
    let found = response
        .finalized_features
        .iter()
        .find(|f| &*f.name == "share.version");
    found.map(|f| f.max_version_level)
}

async fn cluster_id(client: &mut Client) -> String {
    let metadata = client
        .call(12, &MetadataRequest::default().with_topics(Some(vec![])))
        .await;
    metadata.cluster_id.unwrap().to_string()
}

/// What was set up before the stop.
#[derive(Debug, PartialEq)]
struct Known {
    cluster: String,
    topics: Vec<String>,
    id: Uuid,
    retention: String,
    locks: String,
    threads: String,
    share_version: Option<i16>,
    records: Vec<String>,
}

async fn look(client: &mut Client) -> Known {
    Known {
        cluster: cluster_id(client).await,
        topics: client.topic_names().await,
        id: client.describe_topic("t", false).await.topic_id,
        retention: config(client, 2, "t", "retention.ms").await,
        locks: config(client, 32, "g", "share.partition.max.record.locks").await,
        threads: config(client, 4, "", "log.retention.ms").await,
        share_version: share_version(client).await,
        records: values(&client.fetch_all("t", 1, 0).await),
    }
}

async fn everything_survives(stop: Stop) {
    let dir = tempfile::tempdir().unwrap();
    let (child, mut client) = start(dir.path()).await;
    client
        .create_topic_with("t", 2, &[("retention.ms", "987654321")])
        .await;
    client.create_topic("gone", 1).await;
    assert_eq!(client.delete_topic("gone").await, ErrorCode::NONE);
    for (kind, name, key, value) in [
        (32, "g", "share.partition.max.record.locks", "123"),
        (4, "", "log.retention.ms", "1234567890"),
    ] {
        let set = client.alter_configs(kind, name, &[(key, value)]).await;
        assert_eq!(set.error_code, 0, "{set:?}");
    }
    let down = FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str("share.version"))
        .with_max_version_level(1)
        .with_upgrade_type(2);
    let request = UpdateFeaturesRequest::default().with_feature_updates(vec![down]);
    assert_eq!(client.call(2, &request).await.error_code, 0);
    for n in 0..20 {
        client.produce_values("t", 1, &[n.to_string()]).await;
    }
    let before = look(&mut client).await;
    assert_eq!((before.topics.len(), before.records.len()), (1, 20));
    assert_eq!((&*before.retention, &*before.locks), ("987654321", "123"));
    assert_eq!(
        (&*before.threads, before.share_version),
        ("1234567890", Some(1))
    );
    stop.apply(child).await;
    let (child, mut client) = start(dir.path()).await;
    assert_eq!(look(&mut client).await, before, "{stop:?}");
    assert_eq!(client.produce_values("t", 1, &["more"]).await, 20);
    // And once more, the other way.
    child.kill().await;
    let (_child, mut client) = start(dir.path()).await;
    assert_eq!(client.end_offset("t", 1).await, 21);
}

#[tokio::test]
async fn topics_configs_features_and_records_survive_a_clean_stop() {
    everything_survives(Stop::Clean).await;
}

#[tokio::test]
async fn topics_configs_features_and_records_survive_a_kill() {
    everything_survives(Stop::Kill).await;
}

async fn producers_survive(stop: Stop) {
    let dir = tempfile::tempdir().unwrap();
    let (child, mut client) = start(dir.path()).await;
    client.create_topic("t", 1).await;
    let mut ids = vec![
        producer_id(&mut client).await,
        producer_id(&mut client).await,
    ];
    let id = ids[0];
    for sequence in 0..3 {
        let answer = client.produce("t", 0, sequenced(id, sequence, "x")).await;
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, i64::from(sequence))
        );
    }
    stop.apply(child).await;
    let (_child, mut client) = start(dir.path()).await;
    // Sent again, it is known; with a gap it is refused; in order it goes on.
    let again = client.produce("t", 0, sequenced(id, 2, "x")).await;
    assert_eq!((again.error_code, again.base_offset), (0, 2), "{stop:?}");
    let gap = client.produce("t", 0, sequenced(id, 4, "x")).await;
    assert_eq!(
        ErrorCode(gap.error_code),
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        "{stop:?}"
    );
    let next = client.produce("t", 0, sequenced(id, 3, "x")).await;
    assert_eq!((next.error_code, next.base_offset), (0, 3), "{stop:?}");
    ids.push(producer_id(&mut client).await);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "a producer id was given twice");
}

#[tokio::test]
async fn a_producer_id_that_a_log_knows_is_not_handed_out() {
    let dir = tempfile::tempdir().unwrap();
    let (child, mut client) = start(dir.path()).await;
    client.create_topic("t", 1).await;
    for foreign in [5_000, i64::MAX] {
        let answer = client.produce("t", 0, sequenced(foreign, 0, "x")).await;
        assert_eq!(answer.error_code, 0);
    }
    Stop::Clean.apply(child).await;
    let (_child, mut client) = start(dir.path()).await;
    assert_eq!(producer_id(&mut client).await, 5_001);
}

#[tokio::test]
async fn producers_and_their_ids_survive_a_clean_stop() {
    producers_survive(Stop::Clean).await;
}

#[tokio::test]
async fn producers_and_their_ids_survive_a_kill() {
    producers_survive(Stop::Kill).await;
}

#[tokio::test]
async fn leader_epochs_rise_with_every_start_and_each_knows_its_end() {
    use ottla_protocol::messages::OffsetForLeaderEpochRequest;
    use ottla_protocol::messages::offset_for_leader_epoch_request::{
        OffsetForLeaderPartition, OffsetForLeaderTopic,
    };
    let dir = tempfile::tempdir().unwrap();
    let mut epochs = vec![];
    for stop in [Stop::Clean, Stop::Kill, Stop::Clean] {
        let (child, mut client) = start(dir.path()).await;
        if epochs.is_empty() {
            client.create_topic("t", 1).await;
        }
        epochs.push(client.describe_topic("t", false).await.partitions[0].leader_epoch);
        client.produce_values("t", 0, &["a", "b"]).await;
        let latest = client.list_offset("t", 0, -1).await;
        assert_eq!(latest.leader_epoch, *epochs.last().unwrap());
        stop.apply(child).await;
    }
    assert!(
        epochs.windows(2).all(|pair| pair[0] < pair[1]),
        "{epochs:?}"
    );
    let (_child, mut client) = start(dir.path()).await;
    for (n, &epoch) in epochs.iter().enumerate() {
        let partition = OffsetForLeaderPartition::default()
            .with_partition(0)
            .with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(ottla_protocol::messages::TopicName(
                StrBytes::from_static_str("t"),
            ))
            .with_partitions(vec![partition]);
        let request = OffsetForLeaderEpochRequest::default()
            .with_replica_id(ottla_protocol::messages::BrokerId(-1))
            .with_topics(vec![topic]);
        let found = client
            .call(4, &request)
            .await
            .topics
            .remove(0)
            .partitions
            .remove(0);
        assert_eq!(
            (found.leader_epoch, found.end_offset),
            (epoch, 2 * (n as i64 + 1))
        );
    }
    // The records of every start are there, with the epoch that wrote them.
    let data = client.fetch("t", 0, 0).await;
    let batches = ottla_tests::decode_batches(&data.records.unwrap());
    let wrote: Vec<i32> = batches
        .iter()
        .map(|(header, _)| header.leader_epoch)
        .collect();
    assert_eq!(wrote, epochs);
}

#[tokio::test]
async fn deleted_records_stay_deleted_after_a_kill() {
    use ottla_protocol::messages::DeleteRecordsRequest;
    use ottla_protocol::messages::delete_records_request::{
        DeleteRecordsPartition, DeleteRecordsTopic,
    };
    let dir = tempfile::tempdir().unwrap();
    let (child, mut client) = start(dir.path()).await;
    client.create_topic("t", 1).await;
    client.produce_values("t", 0, &["a", "b", "c"]).await;
    let partition = DeleteRecordsPartition::default()
        .with_partition_index(0)
        .with_offset(2);
    let topic = DeleteRecordsTopic::default()
        .with_name(ottla_protocol::messages::TopicName(
            StrBytes::from_static_str("t"),
        ))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]);
    assert_eq!(
        client.call(2, &request).await.topics[0].partitions[0].error_code,
        0
    );
    // The start offset is checkpointed with the next round of the clock, as in Kafka.
    child.advance(60_000).await;
    child.kill().await;
    let (_child, mut client) = start(dir.path()).await;
    assert_eq!(client.list_offset("t", 0, -2).await.offset, 2);
    assert_eq!(values(&client.fetch_all("t", 0, 2).await), ["c"]);
}

#[tokio::test]
async fn sigterm_ends_within_a_second_though_clients_are_connected_and_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (child, mut client) = start(dir.path()).await;
    client.create_topic("t", 3).await;
    client.produce_values("t", 0, &["a"]).await;
    let mut waiting = child.client().await;
    let patient = Client::fetch_request("t", 0, 1)
        .with_min_bytes(1)
        .with_max_wait_ms(25_000);
    let _ = waiting.send(12, &patient).await;
    let stopwatch = ottla::clock::Stopwatch::start();
    let exited = child.terminate().await;
    let took = stopwatch.ms();
    assert!(exited.status.success(), "{exited:?}");
    assert!(took < 1000.0, "{took} ms");
    assert!(waiting.receive_or_closed().await.is_none());
    // A clean stop leaves nothing to recover.
    let (child, mut client) = start(dir.path()).await;
    assert_eq!(client.end_offset("t", 0).await, 1);
    assert!(!child.stderr().contains("recover"), "{}", child.stderr());
}

#[tokio::test]
async fn everything_acknowledged_before_a_kill_under_load_is_there() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let (child, mut client) = start(dir.path()).await;
        let topic = format!("t{round}");
        client.create_topic(&topic, 1).await;
        let mut loads = vec![];
        for worker in 0..3 {
            let address = child.address();
            let topic = topic.clone();
            loads.push(tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                let mut acknowledged = vec![];
                for n in 0.. {
                    let value = format!("{worker}/{n} {}", "x".repeat(500));
                    let batch = ottla_tests::batch_of(client.timestamp, &[&value]);
                    let request = Client::produce_request(&topic, 0, -1, batch);
                    let bytes = client.encode(n, 12, &request);
                    if client.try_send_bytes(&bytes).await.is_err() {
                        break;
                    }
                    let Some(_) = client.receive_or_closed().await else {
                        break;
                    };
                    acknowledged.push(value);
                }
                acknowledged
            }));
        }
        // Enough is under way once the log has grown.
        while client.end_offset(&topic, 0).await < 300 {}
        child.kill().await;
        let (child, mut client) = start(dir.path()).await;
        let stored: std::collections::HashSet<String> =
            values(&client.fetch_all(&topic, 0, 0).await)
                .into_iter()
                .collect();
        let mut count = 0;
        for load in loads {
            for value in load.await.unwrap() {
                assert!(stored.contains(&value), "lost: {}", &value[..10]);
                count += 1;
            }
        }
        assert!(
            count >= 300 && count <= stored.len(),
            "{count} of {}",
            stored.len()
        );
        child.terminate().await;
    }
}

#[tokio::test]
async fn an_embedded_broker_may_start_again_on_the_directory_of_one_that_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept = vec![];
    for n in 0..3 {
        let broker = Settings::new().data_dir(dir.path()).start().await;
        let mut client = broker.client().await;
        if n == 0 {
            client.create_topic("t", 1).await;
        }
        assert_eq!(client.produce_values("t", 0, &[n.to_string()]).await, n);
        // The caller may hold on to what it had.
        kept.push((broker.process.clone(), client));
        broker.shutdown().await;
    }
}

#[tokio::test]
async fn state_time_goes_on_where_the_data_left_it() {
    let dir = tempfile::tempdir().unwrap();
    let hour = 3_600_000;
    let broker = Settings::new().data_dir(dir.path()).start().await;
    let began = broker.now();
    broker.advance(hour).await;
    // Its records carry the time that was reached.
    broker.client().await.create_topic("late", 1).await;
    broker.shutdown().await;
    let behind = Settings::new().data_dir(dir.path()).at(began).start().await;
    assert_eq!(behind.now(), began + hour);
    behind.shutdown().await;
    let ahead = Settings::new()
        .data_dir(dir.path())
        .at(began + 2 * hour)
        .start()
        .await;
    assert_eq!(ahead.now(), began + 2 * hour);
    ahead.shutdown().await;
}

#[tokio::test]
async fn a_directory_of_another_broker_is_refused_and_its_number_named() {
    let dir = tempfile::tempdir().unwrap();
    let seven = Settings::new().set("node.id", "7").data_dir(dir.path());
    let broker = seven.start().await;
    broker.client().await.create_topic("t", 1).await;
    broker.shutdown().await;
    let other = Settings::new().data_dir(dir.path()).try_start().await;
    let refusal = other.map(drop).unwrap_err().to_string();
    assert!(refusal.contains("start with --set node.id=7"), "{refusal}");
    let seven = Settings::new().set("node.id", "7").data_dir(dir.path());
    seven.start().await.shutdown().await;
}

#[tokio::test]
async fn groups_whose_broker_does_not_start_again_stop_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let three = Settings::new()
        .brokers(3)
        .data_dir(dir.path())
        .start()
        .await;
    let mut client = three.client().await;
    client.create_topic("t", 3).await;
    client.find_coordinator(0, "g").await;
    three.shutdown().await;
    let one = Settings::new().data_dir(dir.path()).start().await;
    let mut client = one.client().await;
    let topic = client.describe_topic("t", false).await;
    let led = topic.partitions.iter().find(|p| *p.leader_id == 0);
    let partition = led.unwrap().partition_index;
    assert_eq!(
        client
            .produce_values("t", partition, &["v".to_owned()])
            .await,
        0
    );
    one.shutdown().await;
}
