//! Group configs: defaults for all groups, and rules over several groups, over the wire.

use ottla_protocol::messages::alter_configs_request::{
    AlterConfigsResource as Replaced, AlterableConfig as Pair,
};
use ottla_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_protocol::messages::{AlterConfigsRequest, IncrementalAlterConfigsRequest};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Ask, At, Client, Consumer, Launch, Member, Settings};

const GROUP: i8 = 32;
const TOPIC: &str = "errors.deadletterqueue.topic.name";
const STRICT: &str = "share.group.dlq.strict.isolation";
const BREAKER: &str = "share.group.dlq.circuit.breaker.enable";

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What of each group is set in one request, and each group's answer.
type Sets<'a> = &'a [(&'a str, &'a [(&'a str, &'a str)])];
type Answers = Vec<(ErrorCode, Option<String>)>;

async fn incremental(client: &mut Client, groups: Sets<'_>, dry: bool) -> Answers {
    let config = |(key, value): &(&str, &str)| {
        AlterableConfig::default()
            .with_name(text(key))
            .with_value(Some(text(value)))
    };
    let resources = groups.iter().map(|(group, configs)| {
        AlterConfigsResource::default()
            .with_resource_type(GROUP)
            .with_resource_name(text(group))
            .with_configs(configs.iter().map(config).collect())
    });
    let request = IncrementalAlterConfigsRequest::default()
        .with_validate_only(dry)
        .with_resources(resources.collect());
    let answers = client.call(1, &request).await.responses.into_iter();
    let answers = answers.map(|a| (ErrorCode(a.error_code), a.error_message));
    answers
        .map(|(code, message)| (code, message.map(|text| text.to_string())))
        .collect()
}

async fn replace(client: &mut Client, groups: Sets<'_>) -> Answers {
    let config = |(key, value): &(&str, &str)| {
        Pair::default()
            .with_name(text(key))
            .with_value(Some(text(value)))
    };
    let resources = groups.iter().map(|(group, configs)| {
        Replaced::default()
            .with_resource_type(GROUP)
            .with_resource_name(text(group))
            .with_configs(configs.iter().map(config).collect())
    });
    let request = AlterConfigsRequest::default().with_resources(resources.collect());
    let answers = client.call(2, &request).await.responses.into_iter();
    let answers = answers.map(|a| (ErrorCode(a.error_code), a.error_message));
    answers
        .map(|(code, message)| (code, message.map(|text| text.to_string())))
        .collect()
}

fn codes(answers: &Answers) -> Vec<ErrorCode> {
    answers.iter().map(|(code, _)| *code).collect()
}

const OK: ErrorCode = ErrorCode::NONE;
const NO: ErrorCode = ErrorCode::INVALID_CONFIG;

#[tokio::test]
async fn a_default_for_all_groups_reaches_groups_that_set_nothing() {
    let broker = Settings::new()
        .set("ottla.group.default.share.auto.offset.reset", "earliest")
        .set("ottla.group.default.share.heartbeat.interval.ms", "1234")
        .set("ottla.group.default.share.record.lock.duration.ms", "2000")
        .set("ottla.group.default.share.delivery.count.limit", "3")
        .set("ottla.group.default.consumer.heartbeat.interval.ms", "2345")
        .start()
        .await;
    let mut client = broker.client().await;
    let topic = client.create_topic("t", 1).await;
    let at = At {
        topic,
        partition: 0,
    };
    client.produce_values("t", 0, &["a"]).await;

    let mut member = Member::new(broker.client().await, "g", "m");
    assert_eq!(member.join(&["t"]).await.heartbeat_interval_ms, 1234);
    for count in 1..=3 {
        let fetched = member.fetch(&Ask::of(at)).await;
        assert_eq!(fetched.acquired(at), format!("0-0#{count}"));
        broker.advance_holding_sessions(1999).await;
        assert_eq!(member.fetch(&Ask::of(at)).await.acquired(at), "");
        broker.advance_holding_sessions(1).await;
    }
    assert_eq!(member.fetch(&Ask::of(at)).await.acquired(at), "");

    let mut consumer = Consumer::new(broker.client().await, "c", "m");
    let joined = consumer.join(&["t"]).await;
    assert_eq!(joined.heartbeat_interval_ms, 2345);
}

#[tokio::test]
async fn a_default_that_no_group_may_have_ends_the_start_with_its_name() {
    let exited = Launch::new()
        .set(
            "ottla.group.default.share.group.dlq.circuit.breaker.threshold",
            "NaN",
        )
        .run_to_its_end()
        .await;
    assert_eq!(exited.status.code(), Some(1));
    let line = "ottla.group.default.share.group.dlq.circuit.breaker.threshold: Invalid value NaN";
    assert!(exited.stderr.contains(line), "{}", exited.stderr);
}

#[tokio::test]
async fn isolation_is_judged_by_what_holds_after_the_whole_request() {
    let broker = Settings::new().start().await;
    let mut client = broker.client().await;
    let x = [(TOPIC, "dlq.x"), (STRICT, "true")];
    let y = [(TOPIC, "dlq.y"), (STRICT, "true")];
    let set = incremental(&mut client, &[("a", &x), ("b", &y)], false).await;
    assert_eq!(codes(&set), [OK, OK]);
    // Alone, either would be refused.
    let alone = incremental(&mut client, &[("b", &x[..1])], false).await;
    assert_eq!(codes(&alone), [NO]);
    let text = alone[0].1.as_deref().unwrap();
    assert!(
        text.contains("group 'a'") && text.contains("group 'b'"),
        "{text}"
    );
    for _ in 0..2 {
        let dry = incremental(&mut client, &[("b", &x[..1]), ("a", &y[..1])], true).await;
        assert_eq!(codes(&dry), [OK, OK], "a dry run, which changes nothing");
    }
    let swapped = incremental(&mut client, &[("b", &x[..1]), ("a", &y[..1])], false).await;
    assert_eq!(codes(&swapped), [OK, OK]);
    let back = replace(&mut client, &[("a", &x), ("b", &y)]).await;
    assert_eq!(codes(&back), [OK, OK]);
    let both = replace(&mut client, &[("a", &x), ("b", &x)]).await;
    assert_eq!(codes(&both), [OK, NO], "a has it already");
    let fresh = incremental(&mut client, &[("c", &[(TOPIC, "dlq.z")]), ("d", &x)], false).await;
    assert_eq!(codes(&fresh), [OK, NO], "the rest of the request holds");
    // AlterConfigs of another config drops the isolation, and the topic is free to be shared.
    let dropped = replace(&mut client, &[("a", &x[..1]), ("e", &x[..1])]).await;
    assert_eq!(codes(&dropped), [OK, OK]);
}

#[tokio::test]
async fn the_breaker_needs_the_feature_of_pausing() {
    let broker = Settings::new()
        .set("feature.share.pause.version", "0")
        .start()
        .await;
    let mut client = broker.client().await;
    let answers = incremental(&mut client, &[("g", &[(BREAKER, "true")])], false).await;
    assert_eq!(codes(&answers), [NO]);
    let text = answers[0].1.as_deref().unwrap();
    assert!(text.contains("share.pause.version"), "{text}");
}

#[tokio::test]
async fn conflicts_that_a_start_finds_are_logged_and_the_broker_serves() {
    let dir = tempfile::tempdir().unwrap();
    let first = Launch::new().data_dir(dir.path()).start().await;
    let mut client = first.client().await;
    let own = [(TOPIC, "dlq.x"), (STRICT, "true"), (BREAKER, "true")];
    let set = incremental(&mut client, &[("alone", &own)], false).await;
    assert_eq!(codes(&set), [OK]);
    first.terminate().await;

    let second = Launch::new()
        .data_dir(dir.path())
        .set(&format!("ottla.group.default.{TOPIC}"), "dlq.x")
        .set(&format!("ottla.group.default.{BREAKER}"), "true")
        .start()
        .await;
    let mut client = second.client().await;
    let set = incremental(&mut client, &[("alone", &[(TOPIC, "dlq.own")])], false).await;
    assert_eq!(codes(&set), [OK], "a way out of the conflict");
    let stderr = second.terminate().await.stderr;
    let line = stderr
        .lines()
        .find(|line| line.contains("dead letters are off"));
    let line = line.unwrap_or_else(|| panic!("{stderr}"));
    assert!(line.contains("ERROR") && line.contains("alone"), "{line}");
    assert!(line.contains("ottla.group.default.errors.deadletterqueue.topic.name=dlq.x"));
}

#[tokio::test]
async fn a_breaker_that_a_start_finds_without_its_feature_is_off_and_named() {
    let child = Launch::new()
        .set("feature.share.pause.version", "0")
        .set(&format!("ottla.group.default.{BREAKER}"), "true")
        .start()
        .await;
    let stderr = child.terminate().await.stderr;
    let line = stderr.lines().find(|line| line.contains("has no effect"));
    let line = line.unwrap_or_else(|| panic!("{stderr}"));
    assert!(
        line.contains("ERROR") && line.contains(BREAKER) && line.contains("share.pause.version")
    );
}
