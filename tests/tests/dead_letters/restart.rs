//! Dead letters over stops, crashes and moves of leaders between two steps of a write.

use std::collections::BTreeMap;
use std::path::Path;

use ottla::dead_letters::GiveUp;
use ottla_protocol::ErrorCode;
use ottla_tests::{Ask, At, Embedded, Member, OK, Queue, REJECT, START_MS, Settings};

use crate::scene::{DLQ, NAME, Scene, TAKES, header, offsets};

const STATE: &str = "__share_group_state";

fn settings(dir: &Path, now: i64) -> Settings {
    Settings::new()
        .brokers(3)
        .data_dir(dir)
        .at(now)
        .set("offsets.topic.num.partitions", "1")
        .set("share.coordinator.state.topic.num.partitions", "1")
}

/// Broker 0 leads the source, 1 the share state, 2 the dead letter topic; with replicas of the source.
async fn apart(dir: &Path, source: &[i32], group: &[(&str, &str)]) -> Scene {
    let broker = settings(dir, START_MS).start().await;
    let mut admin = broker.client_of(0).await;
    let topic = admin.create_topic_on(Queue::TOPIC, &[source]).await;
    admin.create_topic_on(STATE, &[&[1]]).await;
    admin.create_topic_on(DLQ, &[&[2]]).await;
    let answer = admin.alter_configs(2, DLQ, TAKES).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
    let mut all = vec![("share.auto.offset.reset", "earliest"), (NAME, DLQ)];
    all.extend(group);
    admin.configure_group(Queue::GROUP, &all).await;
    let at = At {
        topic,
        partition: 0,
    };
    let member = Member::new(broker.client_of(0).await, Queue::GROUP, "a");
    let queue = Queue { broker, admin, at };
    let mut scene = Scene { queue, member };
    let mut joining = Member::new(scene.coordinator().await, Queue::GROUP, "a");
    joining.join(&[Queue::TOPIC]).await;
    scene
}

/// The same data served again; the member fetches from the source's leader, which drives letters.
async fn again(scene: Scene, dir: &Path) -> Scene {
    let (at, now) = (scene.queue.at, scene.broker().now());
    scene.queue.broker.shutdown().await;
    let broker = settings(dir, now).start().await;
    let admin = broker.client_of(0).await;
    let member = Member::new(broker.client_of(0).await, Queue::GROUP, "a");
    let queue = Queue { broker, admin, at };
    let mut scene = Scene { queue, member };
    assert_eq!(scene.member.fetch(&Ask::of(at)).await.acquired(at), "");
    scene.settle().await;
    scene
}

async fn letters_of_2(broker: &Embedded) -> String {
    let mut client = broker.client_of(2).await;
    offsets(&client.fetch_all(DLQ, 0, 0).await)
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

// D46
#[tokio::test]
async fn letters_on_their_way_are_driven_again_after_a_restart() {
    let dir = dir();
    let limit = [("share.delivery.count.limit", "2")];
    let mut scene = apart(dir.path(), &[0], &limit).await;
    scene.broker().stop_node(2).await;
    scene.hold(3).await;
    scene.acknowledge(0, 2, &[REJECT, 2, REJECT]).await;
    scene.acquire(1, 1).await;
    scene.acknowledge(1, 1, &[REJECT]).await;
    assert_eq!(scene.window(), 3);
    let scene = again(scene, dir.path()).await;
    let mut client = scene.broker().client_of(2).await;
    let letters = client.fetch_all(DLQ, 0, 0).await;
    let causes: BTreeMap<String, String> = letters
        .iter()
        .map(|letter| {
            let name = |name| header(letter, name);
            (name("__dlq.errors.offset"), name("__dlq.errors.message"))
        })
        .collect();
    let rejected = "Offset rejected by client.".to_owned();
    // Why is not stored: at the limit it reads as too many deliveries.
    let limit = "Offset delivery count exceeded the threshold.".to_owned();
    let expected = [("0", &rejected), ("1", &limit), ("2", &rejected)];
    let expected = expected.map(|(offset, cause)| (offset.to_owned(), cause.clone()));
    assert_eq!(causes, BTreeMap::from(expected));
    assert_eq!(letters.len(), 3);
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::Refused), (3, 0));
}

#[tokio::test]
async fn without_a_topic_or_the_feature_they_are_archived_after_a_restart() {
    for feature in [false, true] {
        let dir = dir();
        let mut scene = apart(dir.path(), &[0], &[]).await;
        scene.broker().stop_node(2).await;
        scene.reject(3).await;
        assert_eq!(scene.window(), 3);
        if feature {
            let broker = &scene.broker().process.broker;
            let level = vec![("share.version".to_owned(), 1)];
            broker
                .cluster
                .set_features(level, broker.clock.now())
                .unwrap();
        } else {
            scene.queue.configure(&[(NAME, "")]).await;
        }
        let scene = again(scene, dir.path()).await;
        assert_eq!(scene.window(), 0);
        assert_eq!(letters_of_2(scene.broker()).await, "");
        assert_eq!(scene.outcome(GiveUp::Refused), (0, 0));
    }
}

#[tokio::test]
async fn the_write_timeout_begins_anew_with_a_restart() {
    let dir = dir();
    let timeout = [("share.group.dlq.write.timeout.ms", "10000")];
    let mut scene = apart(dir.path(), &[0], &timeout).await;
    scene.broker().stop_node(2).await;
    scene.reject(2).await;
    scene.broker().advance_holding_sessions(9_000).await;
    scene.queue.admin.delete_topic(DLQ).await;
    // Nobody leads the new one either, once its broker is stopped again.
    let (at, now) = (scene.queue.at, scene.broker().now());
    scene.queue.broker.shutdown().await;
    let broker = settings(dir.path(), now).start().await;
    let mut admin = broker.client_of(0).await;
    admin.create_topic_on(DLQ, &[&[2]]).await;
    admin.alter_configs(2, DLQ, TAKES).await;
    broker.stop_node(2).await;
    let member = Member::new(broker.client_of(0).await, Queue::GROUP, "a");
    let queue = Queue { broker, admin, at };
    let mut scene = Scene { queue, member };
    scene.member.fetch(&Ask::of(at)).await;
    scene.broker().advance_holding_sessions(9_999).await;
    assert_eq!(scene.window(), 2);
    scene.broker().advance_holding_sessions(1).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::TimedOut), (0, 2));
}

/// The letters are stored, and the state of their records could not say so.
async fn stored_but_not_archived(dir: &Path, source: &[i32]) -> Scene {
    let mut scene = apart(dir, source, &[]).await;
    scene.broker().stop_node(2).await;
    scene.reject(2).await;
    scene.broker().stop_node(1).await;
    scene.broker().start_node(2).await;
    scene.broker().advance_holding_sessions(5_000).await;
    assert_eq!(letters_of_2(scene.broker()).await, "0 1");
    assert_eq!(scene.outcome(GiveUp::Refused), (2, 0));
    scene
}

#[tokio::test]
async fn a_crash_between_letter_and_state_writes_the_letter_again() {
    let dir = dir();
    let scene = stored_but_not_archived(dir.path(), &[0]).await;
    let scene = again(scene, dir.path()).await;
    assert_eq!(letters_of_2(scene.broker()).await, "0 1 0 1");
    assert_eq!(scene.window(), 0);
}

/// The source's leader moves from broker 0 to 2, and the new one loads what is stored.
async fn move_leader(scene: &mut Scene) {
    scene.broker().start_node(1).await;
    scene.broker().stop_node(0).await;
    let client = scene.broker().client_of(2).await;
    scene.member = Member::new(client, Queue::GROUP, "a");
    let at = scene.queue.at;
    assert_eq!(scene.member.fetch(&Ask::of(at)).await.acquired(at), "");
    scene.settle().await;
    assert_eq!(scene.window(), 0);
}

#[tokio::test]
async fn a_move_of_the_leader_between_letter_and_state_does_not() {
    let dir = dir();
    let mut scene = stored_but_not_archived(dir.path(), &[0, 2]).await;
    let attempts = scene.counts().attempts();
    move_leader(&mut scene).await;
    assert_eq!(letters_of_2(scene.broker()).await, "0 1");
    assert_eq!(scene.outcome(GiveUp::Refused), (2, 0), "counted once");
    assert_eq!(scene.counts().attempts(), attempts, "nothing to write");
}

#[tokio::test]
async fn a_move_of_the_leader_between_timeout_and_state_gives_no_second_outcome() {
    let dir = dir();
    let timeout = [("share.group.dlq.write.timeout.ms", "5000")];
    let mut scene = apart(dir.path(), &[0, 2], &timeout).await;
    scene.broker().stop_node(2).await;
    scene.reject(2).await;
    // The state cannot say that the time is over.
    scene.broker().stop_node(1).await;
    scene.broker().advance_holding_sessions(5_000).await;
    assert_eq!(scene.outcome(GiveUp::TimedOut), (0, 2));
    scene.broker().start_node(2).await;
    move_leader(&mut scene).await;
    assert_eq!(letters_of_2(scene.broker()).await, "");
    assert_eq!(scene.outcome(GiveUp::TimedOut), (0, 2));
}

// D48
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_amid_rejects_neither_loses_nor_doubles_a_letter() {
    let dir = dir();
    let mut scene = apart(dir.path(), &[0], &[]).await;
    let records = 400;
    scene.queue.produce(records).await;
    let at = scene.queue.at;
    let mut member = Member::new(scene.broker().client_of(0).await, Queue::GROUP, "a");
    member.fetch(&Ask::of(at)).await;
    let storm = tokio::spawn(async move {
        for offset in 0..records as i64 {
            assert_eq!(member.ack(at, offset, offset, REJECT).await, OK);
        }
    });
    let counts = scene.counts();
    ottla_tests::soon("some letters", async {
        while counts.written() < 50 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let now = scene.broker().now();
    scene.queue.broker.shutdown().await;
    storm.abort();
    let _ = storm.await;
    let broker = settings(dir.path(), now).start().await;
    let admin = broker.client_of(0).await;
    let member = Member::new(broker.client_of(0).await, Queue::GROUP, "a");
    let queue = Queue { broker, admin, at };
    let mut scene = Scene { queue, member };
    // What was not rejected before the stop is rejected now.
    let offsets = scene.member.fetch(&Ask::of(at)).await.offsets(at);
    for offset in offsets {
        assert_eq!(scene.member.ack(at, offset, offset, REJECT).await, OK);
    }
    scene.settle().await;
    let mut client = scene.broker().client_of(2).await;
    let letters = client.fetch_all(DLQ, 0, 0).await;
    let mut told: Vec<i64> = letters
        .iter()
        .map(|letter| header(letter, "__dlq.errors.offset").parse().unwrap())
        .collect();
    told.sort_unstable();
    assert_eq!(told, (0..records as i64).collect::<Vec<_>>());
}
