//! Committed offsets of classic groups: who may commit when, and how long offsets of members stay.

use bytes::{BufMut, Bytes, BytesMut};
use ottla_protocol::messages::OffsetCommitRequest;
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{ClassicMember, Client, Embedded, Named, OK, bare};

const TOPIC: &str = "orders";
const GROUP: &str = "billing";
const NONE: ErrorCode = ErrorCode::NONE;
const DAY: i64 = 24 * 60 * 60_000;

/// A consumer's subscription to one topic, in version 0.
fn subscription(topic: &str) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(1);
    bytes.put_i16(topic.len() as i16);
    bytes.put_slice(topic.as_bytes());
    bytes.put_i32(-1);
    bytes.freeze()
}

fn consumer(client: Client) -> ClassicMember {
    let mut member = ClassicMember::new(client, GROUP);
    member.protocols = vec![("range".to_owned(), subscription(TOPIC))];
    member
}

fn commit(topic: Named, member: &ClassicMember, generation: i32) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: generation,
        member_id: StrBytes::from_string(member.id.clone()),
        group_instance_id: member.instance.clone().map(StrBytes::from_string),
        ..Client::commit_request(GROUP, topic, &[(0, 4, None)])
    }
}

async fn started() -> (Embedded, Client, Named) {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic(TOPIC, 1).await;
    (broker, client, Named { name: TOPIC, id })
}

#[tokio::test]
async fn a_member_commits_in_its_generation_once_it_has_its_assignment() {
    let (broker, mut client, topic) = started().await;
    let mut member = consumer(broker.client().await);
    assert_eq!(ErrorCode(member.join().await.error_code), NONE);
    let now = member.generation;
    for (generation, code) in [
        (now, ErrorCode::REBALANCE_IN_PROGRESS),
        (now + 1, ErrorCode::ILLEGAL_GENERATION),
    ] {
        let request = commit(topic, &member, generation);
        assert_eq!(client.commit_with(9, &request).await, [(0, code)]);
    }
    let id = member.id.clone();
    assert_eq!(ErrorCode(member.sync(&[(&id, "")]).await.error_code), NONE);
    for version in 2..=10 {
        let request = commit(topic, &member, now);
        assert_eq!(client.commit_with(version, &request).await, [(0, NONE)]);
    }
    for generation in [now - 1, now + 1, -1] {
        let request = commit(topic, &member, generation);
        let codes = client.commit_with(9, &request).await;
        assert_eq!(codes, [(0, ErrorCode::ILLEGAL_GENERATION)]);
    }
    let outside = Client::commit_request(GROUP, topic, &[(0, 4, None)]);
    let codes = client.commit_with(9, &outside).await;
    assert_eq!(codes, [(0, ErrorCode::UNKNOWN_MEMBER_ID)]);
    member.leave().await;
    assert_eq!(client.commit_with(9, &outside).await, [(0, NONE)]);
    let old = commit(topic, &member, now);
    let codes = client.commit_with(9, &old).await;
    assert_eq!(codes, [(0, ErrorCode::UNKNOWN_MEMBER_ID)]);
}

#[tokio::test]
async fn a_static_member_that_was_replaced_is_fenced() {
    let (broker, mut client, topic) = started().await;
    let mut member = ClassicMember::named(broker.client().await, GROUP, "i");
    member.protocols = vec![("range".to_owned(), subscription(TOPIC))];
    assert_eq!(ErrorCode(member.join().await.error_code), NONE);
    let id = member.id.clone();
    member.sync(&[(&id, "")]).await;
    let request = commit(topic, &member, member.generation);
    assert_eq!(client.commit_with(9, &request).await, [(0, NONE)]);
    let mut other = request.clone();
    other.member_id = StrBytes::from_static_str("other");
    let codes = client.commit_with(9, &other).await;
    assert_eq!(codes, [(0, ErrorCode::FENCED_INSTANCE_ID)]);
    other.group_instance_id = Some(StrBytes::from_static_str("j"));
    let codes = client.commit_with(9, &other).await;
    assert_eq!(codes, [(0, ErrorCode::UNKNOWN_MEMBER_ID)]);
}

#[tokio::test]
async fn offsets_of_a_live_group_stay_and_go_a_week_after_its_last_member_left() {
    let (broker, mut client, topic) = started().await;
    let mut member = consumer(broker.client().await);
    member.join().await;
    let id = member.id.clone();
    member.sync(&[(&id, "")]).await;
    let request = commit(topic, &member, member.generation);
    assert_eq!(client.commit_with(9, &request).await, [(0, NONE)]);
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    let codes = client.delete_offsets(GROUP, TOPIC, &[0]).await;
    assert_eq!(codes, Ok(vec![subscribed]));
    let refused = client.delete_group(GROUP).await;
    assert_eq!(refused, bare(ErrorCode::NON_EMPTY_GROUP));

    broker.advance_holding_sessions(30 * DAY).await;
    assert_eq!(client.committed(9, GROUP, topic, &[0]).await[0].0, 4);
    member.leave().await;
    broker.advance(7 * DAY - 1).await;
    assert_eq!(client.committed(9, GROUP, topic, &[0]).await[0].0, 4);
    broker.advance(600_000).await;
    assert_eq!(client.list_groups(&[], &[]).await, Vec::<String>::new());
    assert_ne!(client.delete_group(GROUP).await, OK);
}
