//! Topics that come and go under their clients.

use ottla_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use ottla_protocol::messages::describe_topic_partitions_request::TopicRequest;
use ottla_protocol::messages::{
    DeleteRecordsRequest, DescribeClusterRequest, DescribeTopicPartitionsRequest, MetadataRequest,
    TopicName,
};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, Settings, batch_of, values};

fn name(text: &str) -> TopicName {
    TopicName(StrBytes::from_string(text.to_owned()))
}

// C25
#[tokio::test]
async fn the_controller_is_a_broker_that_is_alive() {
    let broker = Settings::new().brokers(3).start().await;
    for stopped in [None, Some(0), Some(1)] {
        if let Some(id) = stopped {
            broker.stop_node(id).await;
        }
        let mut client = broker.client_of(2).await;
        let metadata = client
            .call(12, &MetadataRequest::default().with_topics(Some(vec![])))
            .await;
        let alive: Vec<i32> = metadata.brokers.iter().map(|b| b.node_id.0).collect();
        assert!(alive.contains(&metadata.controller_id.0), "{metadata:?}");
        let cluster = client
            .call(1, &DescribeClusterRequest::default().with_endpoint_type(1))
            .await;
        assert!(alive.contains(&cluster.controller_id.0), "{cluster:?}");
    }
}

// C26
#[tokio::test]
async fn describe_topic_partitions_has_empty_lists_where_a_null_would_break_clients() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 3).await;
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(vec![TopicRequest::default().with_name(name("t"))])
        .with_response_partition_limit(2000)
        .with_cursor(None);
    let response = client.call(0, &request).await;
    let topic = &response.topics[0];
    assert_eq!((topic.error_code, topic.partitions.len()), (0, 3));
    assert!(response.next_cursor.is_none());
    for partition in &topic.partitions {
        assert_eq!(partition.eligible_leader_replicas.as_deref(), Some(&[][..]));
        assert_eq!(partition.last_known_elr.as_deref(), Some(&[][..]));
        assert!(partition.offline_replicas.is_empty());
        assert_eq!(
            (partition.replica_nodes.len(), partition.isr_nodes.len()),
            (1, 1)
        );
    }
}

#[tokio::test]
async fn describe_topic_partitions_goes_on_from_its_cursor() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    for topic in ["a", "b"] {
        client.create_topic(topic, 3).await;
    }
    let mut request = DescribeTopicPartitionsRequest::default()
        .with_topics(
            ["b", "a"]
                .map(|t| TopicRequest::default().with_name(name(t)))
                .to_vec(),
        )
        .with_response_partition_limit(2)
        .with_cursor(None);
    let mut seen = vec![];
    loop {
        let response = client.call(0, &request).await;
        for topic in &response.topics {
            let topic_name = topic.name.as_ref().unwrap().to_string();
            seen.extend(
                topic
                    .partitions
                    .iter()
                    .map(|p| (topic_name.clone(), p.partition_index)),
            );
        }
        let Some(cursor) = response.next_cursor else {
            break;
        };
        let next = ottla_protocol::messages::describe_topic_partitions_request::Cursor::default()
            .with_topic_name(cursor.topic_name)
            .with_partition_index(cursor.partition_index);
        request = request.with_cursor(Some(next));
        assert!(seen.len() < 20, "{seen:?}");
    }
    let want: Vec<(String, i32)> = ["a", "b"]
        .iter()
        .flat_map(|t| (0..3).map(|p| ((*t).to_owned(), p)))
        .collect();
    assert_eq!(seen, want);
}

// C27
#[tokio::test]
async fn create_topics_tells_configs_with_a_source_that_clients_know() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let made = client
        .try_create_topic(Client::new_topic("t", 1, &[("retention.ms", "5000")]))
        .await;
    let configs = made.configs.unwrap();
    assert!(configs.len() > 20);
    for config in &configs {
        assert!((1..=8).contains(&config.config_source), "{config:?}");
    }
    let own = configs.iter().find(|c| &*c.name == "retention.ms").unwrap();
    assert_eq!((own.value.as_deref(), own.config_source), (Some("5000"), 1));
}

// C45
#[tokio::test]
async fn a_topic_that_is_made_again_has_a_new_id_and_nothing_of_the_old_one() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let old = client.create_topic("t", 1).await;
    client.produce_values("t", 0, &["old"]).await;
    let mut fetch = Client::fetch_request("", 0, 1);
    fetch.topics[0].topic_id = old;
    assert_eq!(
        client.call(13, &fetch).await.responses[0].partitions[0].error_code,
        0
    );
    assert_eq!(client.delete_topic("t").await, ErrorCode::NONE);
    let gone = client.call(13, &fetch).await.responses[0].partitions[0].error_code;
    assert_eq!(ErrorCode(gone), ErrorCode::UNKNOWN_TOPIC_ID);
    let new = client.create_topic("t", 1).await;
    assert_ne!(old, new);
    let gone = client.call(13, &fetch).await.responses[0].partitions[0].error_code;
    assert_eq!(ErrorCode(gone), ErrorCode::UNKNOWN_TOPIC_ID);
    let mut produce = Client::produce_request("", 0, -1, batch_of(client.timestamp, &["stale"]));
    produce.topic_data[0].topic_id = old;
    let answer = client.call(13, &produce).await;
    let code = answer.responses[0].partition_responses[0].error_code;
    assert_eq!(ErrorCode(code), ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(client.end_offset("t", 0).await, 0);
    client.produce_values("t", 0, &["new"]).await;
    fetch.topics[0].topic_id = new;
    fetch.topics[0].partitions[0].fetch_offset = 0;
    assert_eq!(
        client.call(13, &fetch).await.responses[0].partitions[0].error_code,
        0
    );
    assert_eq!(values(&client.fetch_all("t", 0, 0).await), ["new"]);
}

// C46
#[tokio::test]
async fn asking_about_a_topic_makes_it_only_if_the_request_says_so() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    assert_eq!(client.delete_topic("t").await, ErrorCode::NONE);
    let told = client.describe_topic("t", false).await;
    assert_eq!(
        ErrorCode(told.error_code),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    client.fetch("t", 0, 0).await;
    client.list_offset("t", 0, -1).await;
    let batch = batch_of(client.timestamp, &["x"]);
    client.produce("t", 0, batch).await;
    assert_eq!(client.topic_names().await, Vec::<String>::new());
    let told = client.describe_topic("t", true).await;
    assert_eq!((told.error_code, told.partitions.len()), (0, 1));
    assert_eq!(client.topic_names().await, ["t"]);
}

#[tokio::test]
async fn nothing_is_made_where_the_broker_does_not_allow_it() {
    let settings = Settings::new().set("auto.create.topics.enable", "false");
    let broker = settings.start().await;
    let mut client = broker.client().await;
    let told = client.describe_topic("t", true).await;
    assert_eq!(
        ErrorCode(told.error_code),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    assert_eq!(client.topic_names().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_cannot_be_is_refused_when_it_is_asked_for() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let long = "x".repeat(250);
    for bad in ["", ".", "..", "a b", "a/b", "\u{e9}", &long] {
        let told = client.describe_topic(bad, true).await;
        assert_eq!(
            ErrorCode(told.error_code),
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            "{bad:?}"
        );
    }
    let told = client.describe_topic(&"x".repeat(249), true).await;
    assert_eq!(told.error_code, 0);
}

// C47
#[tokio::test]
async fn five_clients_that_meet_at_a_new_topic_all_get_a_leader_at_once() {
    let broker = Settings::new().set("num.partitions", "3").start().await;
    for round in 0..20 {
        let topic = format!("t{round}");
        let mut clients = vec![];
        for _ in 0..5 {
            clients.push(broker.client().await);
        }
        let mut sent = vec![];
        let wanted = ottla_protocol::messages::metadata_request::MetadataRequestTopic::default()
            .with_name(Some(name(&topic)));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![wanted]))
            .with_allow_auto_topic_creation(true);
        for client in &mut clients {
            sent.push(client.send(12, &request).await);
        }
        let mut ids = vec![];
        for (client, sent) in clients.iter_mut().zip(sent) {
            let told = client.receive(sent).await.topics.remove(0);
            assert_eq!((told.error_code, told.partitions.len()), (0, 3));
            assert!(
                told.partitions
                    .iter()
                    .all(|p| p.error_code == 0 && p.leader_id.0 == 0)
            );
            ids.push(told.topic_id);
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        for client in &mut clients {
            client.produce_values(&topic, 2, &["first try"]).await;
        }
        assert_eq!(clients[0].end_offset(&topic, 2).await, 5);
    }
}

async fn delete_records(client: &mut Client, offset: i64) -> (ErrorCode, i64) {
    let partition = DeleteRecordsPartition::default()
        .with_partition_index(0)
        .with_offset(offset);
    let topic = DeleteRecordsTopic::default()
        .with_name(name("t"))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(1000);
    let response = client.call(2, &request).await;
    let result = &response.topics[0].partitions[0];
    (ErrorCode(result.error_code), result.low_watermark)
}

// C55
#[tokio::test]
async fn a_position_that_was_deleted_is_out_of_range_and_both_resets_work() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    for n in 0..10 {
        client.produce_values("t", 0, &[n.to_string()]).await;
    }
    assert_eq!(delete_records(&mut client, 6).await, (ErrorCode::NONE, 6));
    let data = client.fetch("t", 0, 3).await;
    assert_eq!(ErrorCode(data.error_code), ErrorCode::OFFSET_OUT_OF_RANGE);
    // Kafka tells no offsets with the error; the client asks for them.
    assert_eq!((data.high_watermark, data.log_start_offset), (-1, -1));
    let earliest = client.list_offset("t", 0, -2).await.offset;
    assert_eq!(earliest, 6);
    assert_eq!(
        values(&client.fetch_all("t", 0, earliest).await),
        ["6", "7", "8", "9"]
    );
    let latest = client.list_offset("t", 0, -1).await.offset;
    assert_eq!(
        (latest, client.fetch("t", 0, latest).await.error_code),
        (10, 0)
    );
    let data = client.fetch("t", 0, 7).await;
    assert_eq!(data.log_start_offset, 6);
    // Backwards is no error and moves nothing; beyond the end is one.
    assert_eq!(delete_records(&mut client, 2).await, (ErrorCode::NONE, 6));
    assert_eq!(
        delete_records(&mut client, 11).await,
        (ErrorCode::OFFSET_OUT_OF_RANGE, -1)
    );
    assert_eq!(
        delete_records(&mut client, -2).await,
        (ErrorCode::OFFSET_OUT_OF_RANGE, -1)
    );
    assert_eq!(delete_records(&mut client, -1).await, (ErrorCode::NONE, 10));
    assert_eq!(client.list_offset("t", 0, -2).await.offset, 10);
    assert_eq!(client.produce_values("t", 0, &["next"]).await, 10);
}

#[tokio::test]
async fn nobody_produces_to_internal_topics() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("__consumer_offsets", 1).await;
    let batch = batch_of(client.timestamp, &["mine"]);
    let answer = client.produce("__consumer_offsets", 0, batch).await;
    assert_eq!(
        ErrorCode(answer.error_code),
        ErrorCode::INVALID_TOPIC_EXCEPTION
    );
    assert_eq!(client.end_offset("__consumer_offsets", 0).await, 0);
}
