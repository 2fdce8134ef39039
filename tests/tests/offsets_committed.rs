//! Committed offsets over the wire: every version, what is refused, what ends and when, restarts and
//! several brokers.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use ottla_protocol::messages::{OffsetCommitRequest, OffsetFetchRequest};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_tests::{
    Child, Client, Consumer, Embedded, Held, Launch, Named, OK, Settings, bare, heartbeat_error,
};

const TOPIC: &str = "orders";
const GROUP: &str = "billing";
const NONE: ErrorCode = ErrorCode::NONE;
const MINUTE: i64 = 60_000;
const WEEK: i64 = 7 * 24 * 60 * MINUTE;

async fn with_topic(broker: &Embedded) -> (Client, Named) {
    let mut client = broker.client().await;
    let id = client.create_topic(TOPIC, 3).await;
    (client, Named { name: TOPIC, id })
}

async fn started() -> (Embedded, Client, Named) {
    let broker = Embedded::start().await;
    let (client, topic) = with_topic(&broker).await;
    (broker, client, topic)
}

/// A partition without offset.
fn nothing() -> Held {
    (-1, -1, String::new(), NONE)
}

fn held(offset: i64, epoch: i32, metadata: &str) -> Held {
    (offset, epoch, metadata.to_owned(), NONE)
}

#[tokio::test]
async fn every_version_commits_and_fetches() {
    let (_broker, mut client, topic) = started().await;
    for version in 2..=10 {
        let group = format!("g{version}");
        let offsets = [(0, 5, Some("mine")), (2, 7, None)];
        let request = Client::commit_request(&group, topic, &offsets);
        let codes = client.commit_with(version, &request).await;
        assert_eq!(codes, [(0, NONE), (2, NONE)], "commit {version}");
        let epoch = if version < 6 { -1 } else { 0 };
        for fetch in 1..=10 {
            let known = if fetch < 5 { -1 } else { epoch };
            assert_eq!(
                client.committed(fetch, &group, topic, &[0, 1, 2, 0]).await,
                [
                    held(5, known, "mine"),
                    nothing(),
                    held(7, known, ""),
                    held(5, known, "mine")
                ],
                "commit {version}, fetch {fetch}"
            );
        }
    }
}

#[tokio::test]
async fn the_null_list_of_topics_means_all() {
    let (_broker, mut client, topic) = started().await;
    client.commit(GROUP, TOPIC, &[(1, 4)]).await;
    for version in 2..8 {
        let request = OffsetFetchRequest {
            group_id: Client::fetch_group(GROUP, None).group_id,
            topics: None,
            ..Default::default()
        };
        let answer = client.call(version, &request).await;
        assert_eq!(answer.error_code, 0);
        assert_eq!(answer.topics.len(), 1, "version {version}");
        assert_eq!(&**answer.topics[0].name, TOPIC);
        assert_eq!(answer.topics[0].partitions[0].committed_offset, 4);
    }
    let request = OffsetFetchRequest {
        groups: vec![Client::fetch_group(GROUP, None)],
        ..Default::default()
    };
    let by_id = client.call(10, &request).await;
    assert_eq!(by_id.groups[0].topics[0].topic_id, topic.id);
}

#[tokio::test]
async fn unknown_topics_and_partitions_are_refused_by_themselves() {
    let (_broker, mut client, topic) = started().await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let request =
        Client::commit_request(GROUP, topic, &[(0, 1, None), (3, 1, None), (-1, 1, None)]);
    for version in [2, 9, 10] {
        let codes = client.commit_with(version, &request).await;
        assert_eq!(codes, [(0, NONE), (3, unknown), (-1, unknown)]);
    }
    for id in [Uuid::nil(), Uuid::from_u64_pair(1, 2)] {
        let other = Named { name: "nope", id };
        let request = Client::commit_request("new", other, &[(0, 1, None)]);
        let codes = client.commit_with(9, &request).await;
        assert_eq!(codes, [(0, unknown)]);
        let codes = client.commit_with(10, &request).await;
        assert_eq!(codes, [(0, ErrorCode::UNKNOWN_TOPIC_ID)]);
        assert_eq!(client.committed(9, GROUP, other, &[0]).await, [nothing()]);
        let by_id = client.committed(10, GROUP, other, &[0]).await;
        assert_eq!(
            by_id,
            [(-1, -1, String::new(), ErrorCode::UNKNOWN_TOPIC_ID)]
        );
    }
    // Nothing was committed to `new`, so it does not exist.
    assert_eq!(
        client.list_groups(&[], &[]).await,
        [format!("{GROUP} classic Empty ")]
    );
}

#[tokio::test]
async fn metadata_has_a_bound_and_the_offset_has_none() {
    let broker = Settings::new()
        .set("offset.metadata.max.bytes", "10")
        .start()
        .await;
    let (mut client, topic) = with_topic(&broker).await;
    let too_long = "12345678901";
    let offsets = [(0, -7, Some("1234567890")), (1, i64::MAX, Some(too_long))];
    let request = Client::commit_request(GROUP, topic, &offsets);
    let codes = client.commit_with(9, &request).await;
    assert_eq!(
        codes,
        [(0, NONE), (1, ErrorCode::OFFSET_METADATA_TOO_LARGE)]
    );
    assert_eq!(
        client.committed(9, GROUP, topic, &[0, 1]).await,
        [held(-7, 0, "1234567890"), nothing()]
    );
}

#[tokio::test]
async fn several_groups_are_fetched_at_once_and_one_that_is_unknown_has_nothing() {
    let (_broker, mut client, _) = started().await;
    client.commit("a", TOPIC, &[(0, 1), (1, 2)]).await;
    client.commit("b", TOPIC, &[(2, 3)]).await;
    let (held, codes) = client.all_committed(&["b", "none", "a", ""]).await;
    let of =
        |group: &str, partition, offset| (group.to_owned(), TOPIC.to_owned(), partition, offset);
    assert_eq!(held, [of("b", 2, 3), of("a", 0, 1), of("a", 1, 2)]);
    assert_eq!(codes, [NONE; 4]);
}

#[tokio::test]
async fn a_commit_that_is_no_members_is_refused_in_the_words_of_its_version() {
    let (_broker, mut client, topic) = started().await;
    let of_member = |group: &str| OffsetCommitRequest {
        generation_id_or_member_epoch: 3,
        member_id: StrBytes::from_static_str("m"),
        ..Client::commit_request(group, topic, &[(0, 1, None), (9, 1, None)])
    };
    let unknown = (9, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    for (version, code) in [
        (8, ErrorCode::ILLEGAL_GENERATION),
        (9, ErrorCode::GROUP_ID_NOT_FOUND),
        (10, ErrorCode::GROUP_ID_NOT_FOUND),
    ] {
        let codes = client.commit_with(version, &of_member(GROUP)).await;
        assert_eq!(codes, [(0, code), unknown], "version {version}");
    }
    client.commit(GROUP, TOPIC, &[(0, 1)]).await;
    let codes = client.commit_with(9, &of_member(GROUP)).await;
    assert_eq!(codes, [(0, ErrorCode::UNKNOWN_MEMBER_ID), unknown]);
}

#[tokio::test]
async fn the_epoch_of_a_consumer_groups_member_counts_for_commit_and_fetch() {
    let (broker, mut client, topic) = started().await;
    let mut member = Consumer::new(broker.client().await, GROUP, "m");
    assert_eq!(heartbeat_error(&member.join(&[TOPIC]).await), OK);
    let commit = |epoch: i32, id: &str| OffsetCommitRequest {
        generation_id_or_member_epoch: epoch,
        member_id: StrBytes::from_string(id.to_owned()),
        ..Client::commit_request(GROUP, topic, &[(0, 4, None)])
    };
    for (version, epoch, id, code) in [
        (9, member.epoch, "m", NONE),
        (10, member.epoch, "m", NONE),
        (8, member.epoch, "m", ErrorCode::UNSUPPORTED_VERSION),
        (9, member.epoch - 1, "m", ErrorCode::STALE_MEMBER_EPOCH),
        (9, member.epoch + 1, "m", ErrorCode::STALE_MEMBER_EPOCH),
        (9, -1, "m", ErrorCode::STALE_MEMBER_EPOCH),
        (9, member.epoch, "other", ErrorCode::UNKNOWN_MEMBER_ID),
        (9, -1, "", ErrorCode::UNKNOWN_MEMBER_ID),
    ] {
        let codes = client.commit_with(version, &commit(epoch, id)).await;
        assert_eq!(
            codes,
            [(0, code)],
            "version {version}, epoch {epoch}, {id:?}"
        );
    }
    for (id, epoch, code) in [
        (None, -1, NONE),
        (Some("m"), member.epoch, NONE),
        (Some("m"), member.epoch + 1, ErrorCode::STALE_MEMBER_EPOCH),
        (Some("m"), -1, ErrorCode::STALE_MEMBER_EPOCH),
        (Some("other"), member.epoch, ErrorCode::UNKNOWN_MEMBER_ID),
    ] {
        let mut group = Client::fetch_group(GROUP, None);
        group.member_id = id.map(StrBytes::from_static_str);
        group.member_epoch = epoch;
        let request = OffsetFetchRequest {
            groups: vec![group],
            ..Default::default()
        };
        let answer = client.call(9, &request).await.groups.swap_remove(0);
        assert_eq!(ErrorCode(answer.error_code), code, "{id:?} {epoch}");
        assert_eq!(answer.topics.len(), usize::from(code == NONE));
    }
}

#[tokio::test]
async fn offsets_are_deleted_unless_a_member_subscribes_to_the_topic() {
    let (broker, mut client, topic) = started().await;
    let id = client.create_topic("other", 1).await;
    let other = Named { name: "other", id };
    let missing = client.delete_offsets(GROUP, TOPIC, &[0]).await;
    assert_eq!(missing, Err(ErrorCode::GROUP_ID_NOT_FOUND));
    let nameless = client.delete_offsets("", TOPIC, &[0]).await;
    assert_eq!(nameless, Err(ErrorCode::INVALID_GROUP_ID));

    client.commit(GROUP, TOPIC, &[(0, 1), (1, 1)]).await;
    client.commit(GROUP, "other", &[(0, 1)]).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let codes = client.delete_offsets(GROUP, TOPIC, &[0, 2, 7]).await;
    assert_eq!(codes, Ok(vec![NONE, NONE, unknown]));
    assert_eq!(
        client.delete_offsets(GROUP, "nope", &[0]).await,
        Ok(vec![unknown])
    );
    let left = client.committed(9, GROUP, topic, &[0, 1]).await;
    assert_eq!(left, [nothing(), held(1, 0, "")]);

    let mut member = Consumer::new(broker.client().await, "live", "m");
    assert_eq!(heartbeat_error(&member.join(&[TOPIC]).await), OK);
    let mut commit = Client::commit_request("live", other, &[(0, 4, None)]);
    commit.generation_id_or_member_epoch = member.epoch;
    commit.member_id = StrBytes::from_static_str("m");
    assert_eq!(client.commit_with(9, &commit).await, [(0, NONE)]);
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    let codes = client.delete_offsets("live", TOPIC, &[0, 7]).await;
    assert_eq!(codes, Ok(vec![subscribed, unknown]));
    let codes = client.delete_offsets("live", "other", &[0]).await;
    assert_eq!(codes, Ok(vec![NONE]));
    let refused = client.delete_group("live").await;
    assert_eq!(refused, bare(ErrorCode::NON_EMPTY_GROUP));
    member.leave(-1).await;
    assert_eq!(client.delete_group("live").await, OK);
    assert_eq!(client.delete_group(GROUP).await, OK);
    assert_eq!(client.list_groups(&[], &[]).await, Vec::<String>::new());
    let gone = client.delete_group(GROUP).await;
    assert_eq!(gone, bare(ErrorCode::GROUP_ID_NOT_FOUND));
    assert_eq!(client.committed(9, GROUP, topic, &[1]).await, [nothing()]);
}

// C45
#[tokio::test]
async fn offsets_end_with_their_topic() {
    let (broker, mut client, _) = started().await;
    client.create_topic("other", 1).await;
    client.commit(GROUP, TOPIC, &[(0, 1)]).await;
    client.commit(GROUP, "other", &[(0, 2)]).await;
    client.commit("lone", TOPIC, &[(2, 3)]).await;
    assert_eq!(client.delete_topic(TOPIC).await, NONE);
    let id = client.create_topic(TOPIC, 3).await;
    let topic = Named { name: TOPIC, id };
    for version in [9, 10] {
        assert_eq!(
            client.committed(version, GROUP, topic, &[0]).await,
            [nothing()]
        );
    }
    let (held, _) = client.all_committed(&[GROUP, "lone"]).await;
    assert_eq!(held, [(GROUP.to_owned(), "other".to_owned(), 0, 2)]);
    broker.advance(10 * MINUTE).await;
    assert_eq!(
        client.list_groups(&[], &[]).await,
        [format!("{GROUP} classic Empty ")]
    );
}

#[tokio::test]
async fn offsets_from_outside_expire_a_week_after_their_commit() {
    let (broker, mut client, topic) = started().await;
    client.commit(GROUP, TOPIC, &[(0, 1), (1, 1)]).await;
    broker.advance(WEEK / 2).await;
    client.commit(GROUP, TOPIC, &[(1, 2)]).await;
    broker.advance(WEEK / 2 - MINUTE).await;
    let both = [held(1, 0, ""), held(2, 0, "")];
    assert_eq!(client.committed(9, GROUP, topic, &[0, 1]).await, both);
    broker.advance(11 * MINUTE).await;
    let one = [nothing(), held(2, 0, "")];
    assert_eq!(client.committed(9, GROUP, topic, &[0, 1]).await, one);
    broker.advance(WEEK).await;
    assert_eq!(client.list_groups(&[], &[]).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_retention_in_the_request_counts_alone() {
    let broker = Settings::new()
        .set("offsets.retention.check.interval.ms", "1000")
        .start()
        .await;
    let (mut client, topic) = with_topic(&broker).await;
    for version in [2, 4, 5] {
        let mut request = Client::commit_request(GROUP, topic, &[(0, 1, None)]);
        request.retention_time_ms = 5_000;
        assert_eq!(client.commit_with(version, &request).await, [(0, NONE)]);
        broker.advance(4_999).await;
        assert_eq!(client.committed(9, GROUP, topic, &[0]).await[0].0, 1);
        broker.advance(1_001).await;
        // From version 5 on the request has no such field.
        let left = client.committed(9, GROUP, topic, &[0]).await[0].0;
        assert_eq!(left, if version < 5 { -1 } else { 1 });
    }
}

#[tokio::test]
async fn offsets_of_a_live_consumer_group_stay_where_it_subscribes() {
    let (broker, mut client, topic) = started().await;
    client.create_topic("other", 1).await;
    let mut member = Consumer::new(broker.client().await, GROUP, "m");
    assert_eq!(heartbeat_error(&member.join(&[TOPIC]).await), OK);
    let commit = OffsetCommitRequest {
        generation_id_or_member_epoch: member.epoch,
        member_id: StrBytes::from_static_str("m"),
        ..Client::commit_request(GROUP, topic, &[(0, 4, None)])
    };
    assert_eq!(client.commit_with(9, &commit).await, [(0, NONE)]);
    broker.advance_holding_sessions(2 * WEEK).await;
    assert_eq!(
        client.committed(9, GROUP, topic, &[0]).await,
        [held(4, 0, "")]
    );
    member.leave(-1).await;
    broker.advance(10 * MINUTE).await;
    assert_eq!(client.list_groups(&[], &[]).await, Vec::<String>::new());
}

async fn start(dir: &Path) -> Child {
    Launch::new().data_dir(dir).start().await
}

#[tokio::test]
async fn committed_offsets_survive_a_kill_and_tombstones_too() {
    let dir = tempfile::tempdir().unwrap();
    let child = start(dir.path()).await;
    let mut client = child.client().await;
    let id = client.create_topic(TOPIC, 3).await;
    let topic = Named { name: TOPIC, id };
    client.commit(GROUP, TOPIC, &[(0, 1), (1, 2)]).await;
    client.commit(GROUP, TOPIC, &[(0, 8)]).await;
    client.commit("gone", TOPIC, &[(0, 1)]).await;
    assert_eq!(
        client.delete_offsets(GROUP, TOPIC, &[1]).await,
        Ok(vec![NONE])
    );
    assert_eq!(client.delete_group("gone").await, OK);
    child.kill().await;

    let child = start(dir.path()).await;
    let mut client = child.client().await;
    let left = client.committed(10, GROUP, topic, &[0, 1]).await;
    assert_eq!(left, [held(8, 0, ""), nothing()]);
    assert_eq!(
        client.list_groups(&[], &[]).await,
        [format!("{GROUP} classic Empty ")]
    );
}

#[tokio::test]
async fn offsets_move_with_their_coordinator() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(0).await;
    let id = client.create_topic_on(TOPIC, &[&[0, 1, 2]]).await;
    let topic = Named { name: TOPIC, id };
    let found = client.find_coordinator(0, GROUP).await;
    let first = *found.node_id;
    broker
        .client_of(first)
        .await
        .commit(GROUP, TOPIC, &[(0, 6)])
        .await;

    let mut wrong = broker.client_of((first + 1) % 3).await;
    let request = Client::commit_request(GROUP, topic, &[(0, 7, None)]);
    let codes = wrong.commit_with(9, &request).await;
    assert_eq!(codes, [(0, ErrorCode::NOT_COORDINATOR)]);
    let (_, codes) = wrong.all_committed(&[GROUP]).await;
    assert_eq!(codes, [ErrorCode::NOT_COORDINATOR]);
    let by_partition = wrong.committed(1, GROUP, topic, &[0]).await;
    assert_eq!(
        by_partition,
        [(-1, -1, String::new(), ErrorCode::NOT_COORDINATOR)]
    );

    broker.stop_node(first).await;
    let other = (first + 1) % 3;
    let mut client = broker.client_of(other).await;
    let second = *client.find_coordinator(0, GROUP).await.node_id;
    assert_ne!(second, first);
    let mut client = broker.client_of(second).await;
    assert_eq!(
        client.committed(9, GROUP, topic, &[0]).await,
        [held(6, 0, "")]
    );
    client.commit(GROUP, TOPIC, &[(0, 7)]).await;
    broker.start_node(first).await;
    let now = *client.find_coordinator(0, GROUP).await.node_id;
    let mut client = broker.client_of(now).await;
    assert_eq!(
        client.committed(9, GROUP, topic, &[0]).await,
        [held(7, 0, "")]
    );
}

#[tokio::test]
async fn offsets_are_counted() {
    let (broker, mut client, _) = started().await;
    client.commit(GROUP, TOPIC, &[(0, 1), (1, 1), (2, 1)]).await;
    client.commit(GROUP, TOPIC, &[(0, 2)]).await;
    client.delete_offsets(GROUP, TOPIC, &[2]).await.unwrap();
    let metric = async |name: &str| {
        let text = ottla_tests::http(broker.admin(), "GET", "/metrics")
            .await
            .body;
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.rsplit(' ').next())
            .map(str::to_owned)
    };
    let is = |value: &str| Some(value.to_owned());
    assert_eq!(metric("ottla_offset_commit_count_total").await, is("4"));
    assert_eq!(metric("ottla_offset_deletion_count_total").await, is("1"));
    assert_eq!(metric("ottla_num_offsets").await, is("2"));
    broker.advance(2 * WEEK).await;
    assert_eq!(metric("ottla_offset_expiration_count_total").await, is("2"));
    assert_eq!(metric("ottla_num_offsets").await, is("0"));
}
