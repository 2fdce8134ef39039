//! DescribeLogDirs and AlterReplicaLogDirs, as measured on Kafka 4.4.0.

use ottla_protocol::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use ottla_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use ottla_protocol::messages::describe_log_dirs_response::DescribeLogDirsResult;
use ottla_protocol::messages::{AlterReplicaLogDirsRequest, DescribeLogDirsRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Settings};

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

async fn describe(client: &mut Client, topics: Option<&[(&str, &[i32])]>) -> DescribeLogDirsResult {
    let wanted = topics.map(|topics| {
        let wanted = topics
            .iter()
            .map(|(topic, indexes)| DescribableLogDirTopic {
                topic: name(topic),
                partitions: indexes.to_vec(),
                ..Default::default()
            });
        wanted.collect()
    });
    let request = DescribeLogDirsRequest {
        topics: wanted,
        ..Default::default()
    };
    let mut response = client.call(5, &request).await;
    assert_eq!((response.error_code, response.results.len()), (0, 1));
    response.results.swap_remove(0)
}

/// Topic, partition and size of each log.
fn logs(dir: &DescribeLogDirsResult) -> Vec<(String, i32, i64)> {
    let topics = dir.topics.iter();
    topics
        .flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|p| (topic.name.to_string(), p.partition_index, p.partition_size))
        })
        .collect()
}

async fn alter(client: &mut Client, dir: &str, topic: &str, index: i32) -> ErrorCode {
    let topic = AlterReplicaLogDirTopic::default()
        .with_name(name(topic))
        .with_partitions(vec![index]);
    let dir = AlterReplicaLogDir::default()
        .with_path(StrBytes::from_string(dir.to_owned()))
        .with_topics(vec![topic]);
    let request = AlterReplicaLogDirsRequest::default().with_dirs(vec![dir]);
    let response = client.call(2, &request).await;
    ErrorCode(response.results[0].partitions[0].error_code)
}

#[tokio::test]
async fn logs_are_listed_with_their_sizes_in_the_one_directory() {
    let data = tempfile::tempdir().unwrap();
    let broker = Settings::new().data_dir(data.path()).start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    client.produce_values("t", 0, &["a"]).await;
    let dir = describe(&mut client, None).await;
    assert_eq!(&*dir.log_dir, data.path().to_str().unwrap());
    let size = std::fs::metadata(data.path().join("t-0/00000000000000000000.log"));
    let size = size.unwrap().len() as i64;
    let t = |index, size| ("t".to_owned(), index, size);
    assert_eq!(logs(&dir), [t(0, size), t(1, 0)]);
    assert!(dir.total_bytes > 0 && (0..=dir.total_bytes).contains(&dir.usable_bytes));
    assert!(!dir.is_cordoned && dir.error_code == 0);
    let some: &[(&str, &[i32])] = &[("t", &[1, 7, 1]), ("nobody", &[0])];
    assert_eq!(logs(&describe(&mut client, Some(some)).await), [t(1, 0)]);
    for nothing in [&[][..], &[("t", &[][..])]] {
        assert_eq!(logs(&describe(&mut client, Some(nothing)).await), []);
    }
}

#[tokio::test]
async fn in_memory_the_directory_is_called_memory_and_has_the_size_of_its_bound() {
    let bound = Settings::new().set("ottla.memory.max.bytes", "50000000");
    let broker = bound.start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let before = describe(&mut client, None).await;
    assert_eq!(
        (&*before.log_dir, before.total_bytes),
        ("memory", 50_000_000)
    );
    client.produce_values("t", 0, &[vec![0u8; 100_000]]).await;
    let after = describe(&mut client, None).await;
    assert!(after.usable_bytes <= before.usable_bytes - 100_000);
}

#[tokio::test]
async fn each_broker_lists_what_it_is_a_replica_of() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0, 1], &[1, 2]]).await;
    for (id, wanted) in [(0, vec![0]), (1, vec![0, 1]), (2, vec![1])] {
        let dir = describe(&mut broker.client_of(id).await, None).await;
        let indexes: Vec<i32> = logs(&dir).iter().map(|(_, index, _)| *index).collect();
        assert_eq!(indexes, wanted, "broker {id}");
    }
}

#[tokio::test]
async fn replicas_move_to_where_they_are_and_nowhere_else() {
    let broker = Settings::new().brokers(2).start().await;
    let mut client = broker.client_of(0).await;
    client.create_topic_on("t", &[&[0]]).await;
    client.create_topic_on("far", &[&[1]]).await;
    let cases = [
        ("memory", "t", 0, ErrorCode::NONE),
        ("memory", "t", 9, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("memory", "nobody", 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("memory", "far", 0, ErrorCode::NOT_LEADER_OR_FOLLOWER),
        ("/elsewhere", "t", 0, ErrorCode::LOG_DIR_NOT_FOUND),
        ("/elsewhere", "nobody", 0, ErrorCode::LOG_DIR_NOT_FOUND),
    ];
    for (dir, topic, index, code) in cases {
        let answer = alter(&mut client, dir, topic, index).await;
        assert_eq!(answer, code, "{topic}-{index} to {dir}");
    }
}
