//! Consumer groups of the consumer protocol (KIP-848): heartbeats, assignment, revocation, static
//! members, regular expressions, restarts and several brokers.

use std::path::Path;

use ottla_protocol::messages::metadata_request::MetadataRequestTopic;
use ottla_protocol::messages::{MetadataRequest, TopicName};
use ottla_protocol::{ErrorCode, Uuid};
use ottla_tests::{
    Child, Client, Consumer, Embedded, Launch, OK, Settings, bare, heartbeat_error, says,
};

const TOPIC: &str = "orders";
const GROUP: &str = "billing";

/// A broker in this process with a topic of some partitions.
async fn broker_with(settings: Settings, partitions: i32) -> Embedded {
    let broker = settings.start().await;
    broker.client().await.create_topic(TOPIC, partitions).await;
    broker
}

async fn broker() -> Embedded {
    broker_with(Settings::new(), 3).await
}

async fn member(broker: &Embedded, id: &str) -> Consumer {
    Consumer::new(broker.client().await, GROUP, id)
}

async fn joined(broker: &Embedded, id: &str) -> Consumer {
    let mut member = member(broker, id).await;
    let answer = member.join(&[TOPIC]).await;
    assert_eq!(heartbeat_error(&answer), OK);
    member
}

async fn state(broker: &Embedded) -> (String, i32, i32) {
    broker.client().await.consumer_group_state(GROUP).await
}

#[tokio::test]
async fn the_first_heartbeat_of_a_new_group_carries_its_assignment() {
    let broker = broker().await;
    let mut a = member(&broker, "a").await;
    let answer = a.join(&[TOPIC]).await;
    assert_eq!(heartbeat_error(&answer), OK);
    assert_eq!((answer.member_epoch, a.partitions()), (2, vec![0, 1, 2]));
    assert_eq!(answer.heartbeat_interval_ms, 1000);
    assert!(a.quiet().await.assignment.is_none(), "unchanged");
    assert_eq!(state(&broker).await, ("Stable".to_owned(), 2, 2));
}

#[tokio::test]
async fn two_members_rebalance_and_nothing_is_given_before_it_was_given_up() {
    let broker = broker().await;
    let mut a = joined(&broker, "a").await;
    let mut b = joined(&broker, "b").await;
    assert_eq!(b.partitions(), Vec::<i32>::new());
    a.quiet().await;
    assert_eq!(
        (a.epoch, a.partitions()),
        (2, vec![0, 1]),
        "told to give up 2"
    );
    b.beat().await;
    assert_eq!(b.partitions(), Vec::<i32>::new(), "not given up yet");
    a.beat().await;
    assert_eq!(a.epoch, 3);
    b.beat().await;
    assert_eq!((b.epoch, b.partitions()), (3, vec![2]));
    assert_eq!(state(&broker).await, ("Stable".to_owned(), 3, 3));
    assert_eq!(b.leave(-1).await.member_epoch, -1);
    a.beat().await;
    assert_eq!((a.epoch, a.partitions()), (4, vec![0, 1, 2]));
}

// C52
#[tokio::test]
async fn a_fenced_consumer_joins_again_with_epoch_0() {
    let broker = broker().await;
    let mut a = joined(&broker, "a").await;
    let answer = a.beat_in(a.epoch + 1).await;
    let text = "The consumer group member has a greater member epoch (3) than the one known by \
                the group coordinator (2). The member must abandon all its partitions and rejoin.";
    let fenced = says(ErrorCode::FENCED_MEMBER_EPOCH, text);
    assert_eq!(heartbeat_error(&answer), fenced);
    let answer = a.join(&[TOPIC]).await;
    assert_eq!(heartbeat_error(&answer), OK);
    assert_eq!(a.partitions(), [0, 1, 2]);
}

// C52
#[tokio::test]
async fn a_consumer_of_a_group_that_is_gone_learns_so_and_joins_again() {
    let broker = broker().await;
    let mut a = member(&broker, "a").await;
    let answer = a.beat_in(5).await;
    let text = "Consumer group billing not found.";
    let unknown = says(ErrorCode::GROUP_ID_NOT_FOUND, text);
    assert_eq!(heartbeat_error(&answer), unknown);
    assert_eq!(heartbeat_error(&a.join(&[TOPIC]).await), OK);
    let mut stranger = member(&broker, "b").await;
    let text = "Member b is not a member of group billing.";
    let answer = stranger.beat_in(1).await;
    assert_eq!(
        heartbeat_error(&answer),
        says(ErrorCode::UNKNOWN_MEMBER_ID, text)
    );
}

#[tokio::test]
async fn a_consumer_that_keeps_its_partitions_is_removed_by_the_clock() {
    let broker = broker().await;
    let mut a = joined(&broker, "a").await;
    let mut b = joined(&broker, "b").await;
    a.quiet().await;
    broker.advance(9_999).await;
    b.beat().await;
    assert_eq!(b.partitions(), Vec::<i32>::new());
    broker.advance(1).await;
    assert_eq!(a.quiet().await.error_code, ErrorCode::UNKNOWN_MEMBER_ID.0);
    b.beat().await;
    assert_eq!(b.partitions(), [0, 1, 2]);
}

#[tokio::test]
async fn a_silent_consumer_is_removed_by_the_clock() {
    let broker = broker().await;
    let admin = &mut broker.client().await;
    let configs = [("consumer.session.timeout.ms", "5000")];
    admin.configure_group(GROUP, &configs).await;
    let mut a = joined(&broker, "a").await;
    broker.advance(4_999).await;
    assert_eq!(heartbeat_error(&a.quiet().await), OK);
    broker.advance_holding_sessions(60_000).await;
    assert_eq!(heartbeat_error(&a.quiet().await), OK);
    broker.advance(5_000).await;
    assert_eq!(a.quiet().await.error_code, ErrorCode::UNKNOWN_MEMBER_ID.0);
    assert_eq!(state(&broker).await, ("Empty".to_owned(), 3, 3));
}

#[tokio::test]
async fn a_static_consumer_returns_to_its_partitions() {
    let broker = broker().await;
    let mut first = member(&broker, "one").await.instance("till");
    first.join(&[TOPIC]).await;
    let mut second = member(&broker, "two").await.instance("till");
    let answer = second.join(&[TOPIC]).await;
    let text = "Static member two with instance id till cannot join the group because the \
                instance id is owned by one member.";
    assert_eq!(
        heartbeat_error(&answer),
        says(ErrorCode::UNRELEASED_INSTANCE_ID, text)
    );
    assert_eq!(first.leave(-2).await.member_epoch, -2);
    let answer = second.join(&[TOPIC]).await;
    assert_eq!(
        (answer.member_epoch, second.partitions()),
        (2, vec![0, 1, 2])
    );
    let text = "Static member one with instance id till was fenced by member two.";
    let answer = first.quiet().await;
    assert_eq!(
        heartbeat_error(&answer),
        says(ErrorCode::FENCED_INSTANCE_ID, text)
    );
}

#[tokio::test]
async fn an_expression_finds_topics_old_and_new() {
    let broker = broker().await;
    let admin = &mut broker.client().await;
    admin.create_topic("other", 1).await;
    let mut a = member(&broker, "a").await;
    let answer = a.join_matching("ord.*").await;
    assert_eq!(heartbeat_error(&answer), OK);
    assert_eq!(a.partitions(), [0, 1, 2]);
    let new = admin.create_topic("ordinary", 1).await;
    a.beat().await;
    assert!(a.owned.contains(&(new, vec![0])), "{a:?}");
    assert_eq!(a.owned.len(), 2);
    let answer = a.join_matching("ord(").await;
    let text = "SubscribedTopicRegex `ord(` is not a valid regular expression: missing closing ).";
    let refused = says(ErrorCode::INVALID_REGULAR_EXPRESSION, text);
    assert_eq!(heartbeat_error(&answer), refused);
}

#[tokio::test]
async fn a_group_of_another_type_is_not_a_consumer_group() {
    let broker = broker().await;
    let admin = &mut broker.client().await;
    let mut shares = ottla_tests::Member::new(broker.client().await, GROUP, "s");
    shares.join(&[TOPIC]).await;
    let mut a = member(&broker, "a").await;
    let text = "Group billing is not a consumer group.";
    let refused = says(ErrorCode::GROUP_ID_NOT_FOUND, text);
    assert_eq!(heartbeat_error(&a.join(&[TOPIC]).await), refused);
    let described = admin.describe_consumer_group(GROUP).await;
    let text = described.error_message.map(|text| text.to_string());
    assert_eq!((described.error_code, text), refused);
}

#[tokio::test]
async fn without_the_feature_nobody_joins() {
    let broker = broker_with(
        Settings::new().set("group.coordinator.rebalance.protocols", "classic"),
        1,
    )
    .await;
    let mut a = member(&broker, "a").await;
    let answer = a.join(&[TOPIC]).await;
    assert_eq!(
        heartbeat_error(&answer),
        bare(ErrorCode::UNSUPPORTED_VERSION)
    );
}

#[tokio::test]
async fn a_described_group_tells_what_members_have_and_are_to_have() {
    let broker = broker().await;
    let _a = joined(&broker, "a").await;
    let _b = joined(&broker, "b").await;
    let group = broker.client().await.describe_consumer_group(GROUP).await;
    assert_eq!(group.assignor_name.as_str(), "uniform");
    let members: Vec<_> = group
        .members
        .iter()
        .map(|member| {
            let of =
                |a: &ottla_protocol::messages::consumer_group_describe_response::Assignment| {
                    let topics = a.topic_partitions.iter();
                    topics
                        .flat_map(|t| t.partitions.clone())
                        .collect::<Vec<_>>()
                };
            let (has, target) = (of(&member.assignment), of(&member.target_assignment));
            (
                member.member_id.as_str(),
                member.member_epoch,
                has,
                target,
                member.member_type,
            )
        })
        .collect();
    let expected = [
        ("a", 2, vec![0, 1, 2], vec![0, 1], 1),
        ("b", 3, vec![], vec![2], 1),
    ];
    assert_eq!(members, expected);
}

// --- Restarts and several brokers ------------------------------------------------------------

async fn start(dir: &Path) -> Child {
    Launch::new().data_dir(dir).start().await
}

#[tokio::test]
async fn a_consumer_group_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    child.client().await.create_topic(TOPIC, 2).await;
    let mut a = Consumer::new(child.client().await, GROUP, "a");
    a.join(&[TOPIC]).await;
    let mut b = Consumer::new(child.client().await, GROUP, "b");
    b.join(&[TOPIC]).await;
    a.quiet().await;
    child.kill().await;

    let child = start(dir.path()).await;
    let reconnect = async |member: &mut Consumer| {
        let fresh: Client = child.client().await;
        member.client = fresh;
    };
    reconnect(&mut a).await;
    reconnect(&mut b).await;
    let answer = b.beat().await;
    assert_eq!(heartbeat_error(&answer), OK);
    assert_eq!(
        b.partitions(),
        Vec::<i32>::new(),
        "still to be given up by the other"
    );
    assert_eq!(heartbeat_error(&a.beat().await), OK);
    b.beat().await;
    assert_eq!((a.partitions(), b.partitions()), (vec![0], vec![1]));
    let state = child.client().await.consumer_group_state(GROUP).await;
    assert_eq!(state, ("Stable".to_owned(), 3, 3));
}

#[tokio::test]
async fn consumers_follow_their_coordinator_to_another_broker() {
    let broker = Settings::new().brokers(3).start().await;
    broker.client_of(0).await.create_topic(TOPIC, 2).await;
    let coordinator = async |ask: i32| {
        let found = broker.client_of(ask).await.find_coordinator(0, GROUP).await;
        assert_eq!(found.error_code, 0, "{found:?}");
        *found.node_id
    };
    let first = coordinator(0).await;
    let mut a = Consumer::new(broker.client_of(first).await, GROUP, "a");
    a.join(&[TOPIC]).await;
    let other = (first + 1) % 3;
    a.client = broker.client_of(other).await;
    assert_eq!(
        heartbeat_error(&a.quiet().await),
        bare(ErrorCode::NOT_COORDINATOR)
    );
    broker.stop_node(first).await;
    let next = coordinator(other).await;
    assert_ne!(next, first);
    a.client = broker.client_of(next).await;
    assert_eq!(heartbeat_error(&a.quiet().await), OK);
    assert_eq!((a.epoch, a.partitions()), (2, vec![0, 1]));
}

#[tokio::test]
async fn metadata_by_id_ignores_the_empty_name_that_the_java_client_says_beside_it() {
    let broker = broker().await;
    let mut client = broker.client().await;
    let id = client.create_topic("other", 1).await;
    let by_id = MetadataRequestTopic::default()
        .with_topic_id(id)
        .with_name(Some(TopicName::default()));
    let unknown = by_id.clone().with_topic_id(Uuid::from_u128(9));
    let request = MetadataRequest::default().with_topics(Some(vec![by_id, unknown]));
    let answer = client.call(13, &request).await;
    let named: Vec<_> = answer
        .topics
        .iter()
        .map(|topic| {
            (
                topic.error_code,
                topic.name.as_ref().map(|name| name.to_string()),
            )
        })
        .collect();
    let expected = [
        (0, Some("other".to_owned())),
        (ErrorCode::UNKNOWN_TOPIC_ID.0, None),
    ];
    assert_eq!(named, expected);
}
