//! CreateTopics, CreatePartitions, DeleteTopics.

use ottla_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use ottla_protocol::messages::{CreatePartitionsRequest, CreateTopicsRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, Settings};

async fn refused(
    client: &mut Client,
    name: &str,
    partitions: i32,
    factor: i16,
) -> (ErrorCode, String) {
    let topic = Client::new_topic(name, partitions, &[]).with_replication_factor(factor);
    let made = client.try_create_topic(topic).await;
    assert_eq!(
        (made.num_partitions, made.replication_factor),
        (-1, -1),
        "{made:?}"
    );
    (
        ErrorCode(made.error_code),
        made.error_message.unwrap().to_string(),
    )
}

#[tokio::test]
async fn a_topic_is_made_as_asked_or_with_the_brokers_defaults() {
    let broker = Settings::new().set("num.partitions", "4").start().await;
    let mut client = broker.client().await;
    for (partitions, want) in [(3, 3), (-1, 4)] {
        let name = format!("t{partitions}");
        let made = client
            .try_create_topic(Client::new_topic(&name, partitions, &[]))
            .await;
        assert_eq!(
            (
                made.error_code,
                made.num_partitions,
                made.replication_factor
            ),
            (0, want, 1)
        );
        let told = client.describe_topic(&name, false).await;
        assert_eq!(
            (told.topic_id, told.partitions.len() as i32),
            (made.topic_id, want)
        );
        assert!(!told.is_internal);
        let indexes: Vec<i32> = told.partitions.iter().map(|p| p.partition_index).collect();
        assert_eq!(indexes, (0..want).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_in_kafkas_words() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let exists = refused(&mut client, "t", 1, -1).await;
    assert_eq!(
        exists,
        (
            ErrorCode::TOPIC_ALREADY_EXISTS,
            "Topic 't' already exists.".to_owned()
        )
    );
    let few = refused(&mut client, "n", 0, -1).await;
    let text = "Number of partitions was set to an invalid non-positive value.";
    assert_eq!(few, (ErrorCode::INVALID_PARTITIONS, text.to_owned()));
    let none = refused(&mut client, "n", 1, 0).await;
    let text = "Replication factor must be larger than 0, or -1 to use the default value.";
    assert_eq!(
        none,
        (ErrorCode::INVALID_REPLICATION_FACTOR, text.to_owned())
    );
    let many = refused(&mut client, "n", 1, 2).await;
    let text = "Unable to replicate the partition 2 time(s): The target replication factor of 2 \
                cannot be reached because only 1 broker(s) are registered or some brokers have all \
                their log directories cordoned.";
    assert_eq!(
        many,
        (ErrorCode::INVALID_REPLICATION_FACTOR, text.to_owned())
    );
    for (bad, text) in [
        ("", "Topic name is invalid: the empty string is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        (
            "a b",
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII \
             alphanumerics, '.', '_' and '-'",
        ),
    ] {
        let got = refused(&mut client, bad, 1, -1).await;
        assert_eq!(got, (ErrorCode::INVALID_TOPIC_EXCEPTION, text.to_owned()));
    }
    let config = client
        .try_create_topic(Client::new_topic("n", 1, &[("bogus", "1")]))
        .await;
    assert_eq!(ErrorCode(config.error_code), ErrorCode::INVALID_CONFIG);
    assert_eq!(
        config.error_message.as_deref(),
        Some("Unknown topic config name: bogus")
    );
    assert_eq!(client.topic_names().await, ["t"]);
}

#[tokio::test]
async fn names_that_differ_only_in_dots_and_underscores_collide() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("a.b", 1).await;
    let (code, text) = refused(&mut client, "a_b", 1, -1).await;
    assert_eq!(code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(text, "Topic 'a_b' collides with existing topic: a.b");
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_makes_nothing() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let request = CreateTopicsRequest::default()
        .with_topics(vec![
            Client::new_topic("good", 2, &[]),
            Client::new_topic("bad", 0, &[]),
        ])
        .with_validate_only(true);
    let response = client.call(7, &request).await;
    let codes: Vec<_> = response
        .topics
        .iter()
        .map(|t| ErrorCode(t.error_code))
        .collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::INVALID_PARTITIONS]);
    assert_eq!(response.topics[0].num_partitions, 2);
    assert_eq!(client.topic_names().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_topic_that_is_named_twice_in_a_request_is_refused_and_others_are_made() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let request = CreateTopicsRequest::default().with_topics(
        ["twice", "once", "twice"]
            .map(|t| Client::new_topic(t, 1, &[]))
            .to_vec(),
    );
    let response = client.call(7, &request).await;
    assert_eq!(response.topics.len(), 2);
    for topic in &response.topics {
        let want = if &**topic.name == "once" {
            ErrorCode::NONE
        } else {
            ErrorCode::INVALID_REQUEST
        };
        assert_eq!(ErrorCode(topic.error_code), want, "{topic:?}");
    }
    assert_eq!(client.topic_names().await, ["once"]);
}

#[tokio::test]
async fn too_many_partitions_for_one_request_refuse_all_of_it() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let request = CreateTopicsRequest::default().with_topics(vec![
        Client::new_topic("a", 6000, &[]),
        Client::new_topic("b", 4001, &[]),
    ]);
    for topic in client.call(7, &request).await.topics {
        assert_eq!(ErrorCode(topic.error_code), ErrorCode::POLICY_VIOLATION);
        let text = "Excessively large number of partitions per request.";
        assert_eq!(topic.error_message.as_deref(), Some(text));
    }
    assert_eq!(client.topic_names().await, Vec::<String>::new());
}

async fn grow(client: &mut Client, count: i32, dry: bool) -> (ErrorCode, Option<String>) {
    let topic = CreatePartitionsTopic::default()
        .with_name(TopicName(StrBytes::from_static_str("t")))
        .with_count(count)
        .with_assignments(None);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![topic])
        .with_validate_only(dry);
    let result = client.call(3, &request).await.results.remove(0);
    (
        ErrorCode(result.error_code),
        result.error_message.map(|m| m.to_string()),
    )
}

#[tokio::test]
async fn a_topic_grows_and_never_shrinks() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    client.produce_values("t", 1, &["kept"]).await;
    assert_eq!(grow(&mut client, 5, true).await, (ErrorCode::NONE, None));
    assert_eq!(client.describe_topic("t", false).await.partitions.len(), 2);
    assert_eq!(grow(&mut client, 5, false).await, (ErrorCode::NONE, None));
    assert_eq!(client.describe_topic("t", false).await.partitions.len(), 5);
    assert_eq!(client.produce_values("t", 4, &["new"]).await, 0);
    assert_eq!(client.end_offset("t", 1).await, 1);
    for (count, text) in [
        (5, "Topic already has 5 partition(s)."),
        (
            4,
            "The topic t currently has 5 partition(s); 4 would not be an increase.",
        ),
        (
            -1,
            "The topic t currently has 5 partition(s); -1 would not be an increase.",
        ),
    ] {
        let got = grow(&mut client, count, false).await;
        assert_eq!(got, (ErrorCode::INVALID_PARTITIONS, Some(text.to_owned())));
    }
}

#[tokio::test]
async fn topics_can_be_kept_from_being_deleted() {
    let broker = Settings::new()
        .set("delete.topic.enable", "false")
        .start()
        .await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    assert_eq!(
        client.delete_topic("t").await,
        ErrorCode::TOPIC_DELETION_DISABLED
    );
    assert_eq!(client.topic_names().await, ["t"]);
}

#[tokio::test]
async fn without_auto_creation_not_even_internal_topics_come_from_metadata() {
    let never = ("auto.create.topics.enable", "false");
    let broker = Settings::new().set(never.0, never.1).start().await;
    let mut client = broker.client().await;
    for topic in ["t", "__consumer_offsets", "__share_group_state"] {
        let told = client.describe_topic(topic, true).await;
        let code = ErrorCode(told.error_code);
        assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "{topic}");
    }
    assert!(client.topic_names().await.is_empty());
}
