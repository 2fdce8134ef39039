//! DescribeConfigs, IncrementalAlterConfigs, ListConfigResources: a sample of every kind of refusal.

use ottla_protocol::messages::describe_configs_request::DescribeConfigsResource;
use ottla_protocol::messages::describe_configs_response::DescribeConfigsResult;
use ottla_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_protocol::messages::{
    DescribeConfigsRequest, IncrementalAlterConfigsRequest, ListConfigResourcesRequest,
};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, Settings, batch_of};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const GROUP: i8 = 32;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

async fn describe(client: &mut Client, kind: i8, name: &str) -> DescribeConfigsResult {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default()
        .with_resources(vec![resource])
        .with_include_synonyms(true);
    client.call(4, &request).await.results.remove(0)
}

/// A config's value and the number of its source.
async fn value(client: &mut Client, kind: i8, name: &str, key: &str) -> (Option<String>, i8) {
    let described = describe(client, kind, name).await;
    let config = described.configs.iter().find(|c| &*c.name == key);
    let config = config.unwrap_or_else(|| panic!("{key} is not described"));
    (
        config.value.as_ref().map(ToString::to_string),
        config.config_source,
    )
}

#[tokio::test]
async fn an_empty_list_of_keys_asks_for_everything() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let all = describe(&mut client, GROUP, "g").await.configs.len();
    for (keys, described) in [(vec![], all), (vec![text("share.isolation.level")], 1)] {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(GROUP)
            .with_resource_name(text("g"))
            .with_configuration_keys(Some(keys));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let answer = client.call(4, &request).await;
        assert_eq!(answer.results[0].configs.len(), described);
    }
}

// C59
#[tokio::test]
async fn absent_resources_each_have_their_own_answer() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let resources = [
        (TOPIC, "nosuch"),
        (GROUP, "never-seen"),
        (BROKER, "99"),
        (BROKER, "x"),
        (GROUP, ""),
    ];
    let request = DescribeConfigsRequest::default().with_resources(
        resources
            .iter()
            .map(|(kind, name)| {
                DescribeConfigsResource::default()
                    .with_resource_type(*kind)
                    .with_resource_name(text(name))
                    .with_configuration_keys(None)
            })
            .collect(),
    );
    let results = client.call(4, &request).await.results;
    let got: Vec<_> = results
        .iter()
        .map(|r| {
            (
                ErrorCode(r.error_code),
                r.error_message.as_deref(),
                r.configs.len(),
            )
        })
        .collect();
    assert_eq!(got[0].0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(got[0].2, 0);
    assert_eq!(got[1], (ErrorCode::NONE, None, 21 + 12));
    let unexpected = "Unexpected broker id, expected 0 or empty string, but received 99";
    assert_eq!(got[2], (ErrorCode::INVALID_REQUEST, Some(unexpected), 0));
    let integer = "Broker id must be an integer, but it is: x";
    assert_eq!(got[3], (ErrorCode::INVALID_REQUEST, Some(integer), 0));
    assert_eq!(
        got[4],
        (
            ErrorCode::INVALID_REQUEST,
            Some("Group name must not be empty"),
            0
        )
    );
}

/// Type and name of a resource, a key and a value, and how they are refused.
type Refusal = (
    i8,
    &'static str,
    &'static str,
    &'static str,
    ErrorCode,
    &'static str,
);

const REFUSALS: &[Refusal] = &[
    (
        TOPIC,
        "cfgt",
        "bogus",
        "1",
        ErrorCode::INVALID_CONFIG,
        "Unknown topic config name: bogus",
    ),
    (
        TOPIC,
        "cfgt",
        "retention.ms",
        "x",
        ErrorCode::INVALID_CONFIG,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    (
        TOPIC,
        "cfgt",
        "segment.bytes",
        "10",
        ErrorCode::INVALID_CONFIG,
        "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576",
    ),
    (
        TOPIC,
        "cfgt",
        "cleanup.policy",
        "foo",
        ErrorCode::INVALID_CONFIG,
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    (
        TOPIC,
        "nosuch",
        "retention.ms",
        "1",
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        "The topic 'nosuch' does not exist.",
    ),
    (
        TOPIC,
        "",
        "retention.ms",
        "1",
        ErrorCode::INVALID_REQUEST,
        "Default topic resources are not allowed.",
    ),
    (
        GROUP,
        "cg",
        "bogus",
        "1",
        ErrorCode::INVALID_CONFIG,
        "Unknown group config name: bogus",
    ),
    (
        GROUP,
        "cg",
        "share.delivery.count.limit",
        "11",
        ErrorCode::INVALID_CONFIG,
        "share.delivery.count.limit must be in the range 2 to 10 inclusive.",
    ),
    (
        GROUP,
        "",
        "share.delivery.count.limit",
        "3",
        ErrorCode::INVALID_REQUEST,
        "Default group resources are not allowed.",
    ),
    (
        BROKER,
        "99",
        "log.retention.ms",
        "1000",
        ErrorCode::INVALID_REQUEST,
        "Unexpected broker id, expected 0, but received 99",
    ),
    (
        BROKER,
        "",
        "group.share.max.size",
        "5",
        ErrorCode::INVALID_REQUEST,
        "Cannot update these configs dynamically: [group.share.max.size]",
    ),
];

#[tokio::test]
async fn what_cannot_be_set_is_refused_in_kafkas_words() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("cfgt", 1).await;
    for &(kind, name, key, setting, code, message) in REFUSALS {
        let answer = client.alter_configs(kind, name, &[(key, setting)]).await;
        let got = (
            ErrorCode(answer.error_code),
            answer.error_message.as_deref(),
        );
        assert_eq!(
            got,
            (code, Some(message)),
            "{kind} {name:?} {key}={setting}"
        );
    }
}

#[tokio::test]
async fn one_bad_value_of_a_resource_leaves_all_of_it_unchanged() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let pairs = [("retention.ms", "5000"), ("segment.bytes", "1")];
    assert_ne!(client.alter_configs(TOPIC, "t", &pairs).await.error_code, 0);
    assert_eq!(
        value(&mut client, TOPIC, "t", "retention.ms").await,
        (Some("604800000".into()), 5)
    );
}

#[tokio::test]
async fn a_config_is_set_seen_used_and_deleted() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let large = batch_of(client.timestamp, &[vec![1; 500]]);
    assert_eq!(
        client
            .alter_configs(TOPIC, "t", &[("max.message.bytes", "200")])
            .await
            .error_code,
        0
    );
    assert_eq!(
        value(&mut client, TOPIC, "t", "max.message.bytes").await,
        (Some("200".into()), 1)
    );
    let answer = client.produce("t", 0, large.clone()).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::MESSAGE_TOO_LARGE);
    let delete = AlterableConfig::default()
        .with_name(text("max.message.bytes"))
        .with_config_operation(1)
        .with_value(None);
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text("t"))
        .with_configs(vec![delete]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    assert_eq!(client.call(1, &request).await.responses[0].error_code, 0);
    assert_eq!(
        value(&mut client, TOPIC, "t", "max.message.bytes").await,
        (Some("1048588".into()), 5)
    );
    assert_eq!(client.produce("t", 0, large).await.error_code, 0);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let set = AlterableConfig::default()
        .with_name(text("retention.ms"))
        .with_value(Some(text("7")));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text("t"))
        .with_configs(vec![set]);
    let request = IncrementalAlterConfigsRequest::default()
        .with_resources(vec![resource])
        .with_validate_only(true);
    assert_eq!(client.call(1, &request).await.responses[0].error_code, 0);
    assert_eq!(value(&mut client, TOPIC, "t", "retention.ms").await.1, 5);
}

#[tokio::test]
async fn a_brokers_default_reaches_topics_until_they_have_their_own() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    assert_eq!(
        client
            .alter_configs(BROKER, "", &[("message.max.bytes", "300")])
            .await
            .error_code,
        0
    );
    assert_eq!(
        value(&mut client, TOPIC, "t", "max.message.bytes").await,
        (Some("300".into()), 3)
    );
    let large = batch_of(client.timestamp, &[vec![1; 500]]);
    let answer = client.produce("t", 0, large.clone()).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(
        client
            .alter_configs(TOPIC, "t", &[("max.message.bytes", "9000")])
            .await
            .error_code,
        0
    );
    assert_eq!(client.produce("t", 0, large).await.error_code, 0);
}

#[tokio::test]
async fn only_groups_with_stored_configs_are_listed() {
    let broker = Settings::new()
        .set("auto.create.topics.enable", "true")
        .start()
        .await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let request = ListConfigResourcesRequest::default().with_resource_types(vec![GROUP]);
    assert!(client.call(1, &request).await.config_resources.is_empty());
    let set = client
        .alter_configs(GROUP, "g", &[("share.auto.offset.reset", "earliest")])
        .await;
    assert_eq!(set.error_code, 0, "{set:?}");
    let listed = client.call(1, &request).await.config_resources;
    let got: Vec<_> = listed
        .iter()
        .map(|r| (r.resource_type, r.resource_name.to_string()))
        .collect();
    assert_eq!(got, [(GROUP, "g".to_owned())]);
    let request = ListConfigResourcesRequest::default().with_resource_types(vec![TOPIC]);
    let listed = client.call(1, &request).await.config_resources;
    assert_eq!(listed.len(), 1);
    assert_eq!(&*listed[0].resource_name, "t");
}
