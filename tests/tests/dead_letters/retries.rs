//! A dead letter topic that cannot be written: Kafka's retries without a write timeout, and what a
//! write timeout makes of them (KIP-1316, a draft).

use std::sync::Arc;

use ottla::dead_letters::GiveUp;
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::BrokerId;
use ottla_protocol::messages::create_topics_request::CreatableReplicaAssignment;
use ottla_protocol::messages::describe_share_group_delivery_response::DescribedShareGroupDelivery;
use ottla_storage::Faults;
use ottla_tests::{Ask, Client, Member, OK, Queue, REJECT, Settings, http, soon};

use crate::scene::{COPY, DLQ, FLAG, NAME, Scene, TAKES, header, offsets};

/// The write timeout.
const TIMEOUT: &str = "share.group.dlq.write.timeout.ms";

/// Three brokers. Broker 0 leads the source and coordinates; the dead letter topic is on broker 2.
async fn outage(group: &[(&str, &str)], replicas: &[i32], configs: &[(&str, &str)]) -> Scene {
    let settings = Settings::new()
        .brokers(3)
        .set("offsets.topic.num.partitions", "1")
        .set("share.coordinator.state.topic.num.partitions", "1");
    let broker = settings.start().await;
    let mut admin = broker.client_of(0).await;
    let replicas_of_source: &[&[i32]] = &[&[0]];
    let topic = admin
        .create_topic_on(Queue::TOPIC, replicas_of_source)
        .await;
    let mut all = vec![("share.auto.offset.reset", "earliest"), (NAME, DLQ)];
    all.extend(group);
    admin.configure_group(Queue::GROUP, &all).await;
    let coordinator = admin.find_coordinator(0, Queue::GROUP).await;
    let at = ottla_tests::At {
        topic,
        partition: 0,
    };
    let client = broker.client_of(*coordinator.node_id).await;
    let mut joined = Member::new(client, Queue::GROUP, "a");
    joined.join(&[Queue::TOPIC]).await;
    let member = Member::new(broker.client_of(0).await, Queue::GROUP, "a");
    let queue = Queue { broker, admin, at };
    let mut scene = Scene { queue, member };
    scene.queue.admin.create_topic_on(DLQ, &[replicas]).await;
    let mut all = TAKES.to_vec();
    all.extend(configs);
    scene.alter_topic(&all).await;
    scene
}

/// The dead letter topic's only broker is down.
async fn leaderless(group: &[(&str, &str)]) -> Scene {
    let scene = outage(group, &[2], &[]).await;
    scene.broker().stop_node(2).await;
    scene
}

impl Scene {
    /// The letters, where broker 2 has them.
    async fn letters_of_2(&self) -> String {
        let mut client = self.broker().client_of(2).await;
        offsets(&client.fetch_all(DLQ, 0, 0).await)
    }

    async fn pending(&self) -> Vec<serde_json::Value> {
        let path = format!("/api/share-groups/{}", Queue::GROUP);
        let answer = http(self.broker().admin(), "GET", &path).await.json();
        answer["share_partitions"][0]["pending_letters"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// State time passes, while members stay.
    async fn pass(&self, ms: i64) {
        self.broker().advance_holding_sessions(ms).await;
    }
}

// D45
#[tokio::test]
async fn without_a_timeout_a_missing_leader_is_waited_for_half_a_minute() {
    let mut scene = leaderless(&[]).await;
    scene.reject(10).await;
    let (mut seconds, mut attempts) = (0, vec![]);
    while scene.window() > 0 {
        assert_eq!(scene.window(), 10, "they go in one step");
        attempts.push(scene.counts().attempts());
        scene.pass(1_000).await;
        seconds += 1;
    }
    assert!((24..=36).contains(&seconds), "{seconds} s");
    assert_eq!(scene.counts().attempts(), 5, "{attempts:?}");
    assert_eq!(scene.outcome(GiveUp::RetriesExhausted), (0, 10));
    scene.broker().start_node(2).await;
    scene.pass(60_000).await;
    assert_eq!(scene.letters_of_2().await, "");
}

#[tokio::test]
async fn a_leader_that_is_back_in_time_gets_the_letters_at_the_next_attempt() {
    let mut scene = leaderless(&[]).await;
    scene.reject(3).await;
    scene.pass(4_000).await;
    scene.broker().start_node(2).await;
    scene.settle().await;
    assert_eq!(scene.letters_of_2().await, "", "Kafka's waits stand");
    scene.pass(5_000).await;
    assert_eq!(scene.letters_of_2().await, "0 1 2");
    assert_eq!(scene.outcome(GiveUp::Refused), (3, 0));
}

#[tokio::test]
async fn with_a_timeout_records_go_at_the_millisecond() {
    let mut scene = leaderless(&[(TIMEOUT, "5000")]).await;
    scene.reject(4).await;
    scene.pass(4_999).await;
    assert_eq!(scene.window(), 4);
    scene.pass(1).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::TimedOut), (0, 4));
    let counts = scene.counts();
    assert_eq!((counts.write_timeouts(), counts.late_writes()), (4, 0));
    scene.broker().start_node(2).await;
    scene.pass(60_000).await;
    assert_eq!(scene.letters_of_2().await, "", "every attempt is cancelled");
}

#[tokio::test]
async fn with_a_timeout_a_leader_that_is_back_wakes_the_retry() {
    let mut scene = leaderless(&[(TIMEOUT, "600000")]).await;
    scene.reject(3).await;
    scene.pass(100_000).await;
    assert_eq!(scene.window(), 3);
    assert!(scene.counts().attempts() > 5);
    scene.broker().start_node(2).await;
    scene.settle().await;
    assert_eq!(scene.letters_of_2().await, "0 1 2");
    assert_eq!(scene.outcome(GiveUp::Refused), (3, 0));
}

#[tokio::test]
async fn a_timeout_that_is_set_in_an_outage_frees_the_records() {
    let mut scene = leaderless(&[]).await;
    scene.reject(2).await;
    scene.pass(10_000).await;
    scene.queue.configure(&[(TIMEOUT, "30000")]).await;
    scene.settle().await;
    assert_eq!(scene.window(), 2, "20 s are left");
    scene.queue.configure(&[(TIMEOUT, "9000")]).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::TimedOut), (0, 2));
}

#[tokio::test]
async fn a_timeout_that_is_taken_back_leaves_kafkas_retries() {
    let mut scene = leaderless(&[(TIMEOUT, "3000")]).await;
    scene.reject(2).await;
    scene.pass(2_950).await;
    scene.queue.configure(&[(TIMEOUT, "-1")]).await;
    scene.pass(1_000).await;
    assert_eq!(scene.window(), 2);
    scene.pass(60_000).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::RetriesExhausted), (0, 2));
}

#[tokio::test]
async fn a_last_attempt_is_made_shortly_before_the_deadline() {
    let mut scene = leaderless(&[(TIMEOUT, "20000")]).await;
    scene.reject(2).await;
    scene.pass(19_899).await;
    let before = scene.counts().attempts();
    scene.pass(1).await;
    assert_eq!(scene.counts().attempts(), before + 1);
    scene.pass(99).await;
    assert_eq!(scene.counts().attempts(), before + 1);
    assert_eq!(scene.window(), 2);
}

#[tokio::test]
async fn waiting_letters_are_shown() {
    let mut scene = leaderless(&[]).await;
    let now = scene.broker().now();
    scene.reject(2).await;
    let pending = scene.pending().await;
    let [letter] = &*pending else {
        panic!("{pending:?}");
    };
    assert_eq!((&letter["first"], &letter["last"]), (&0.into(), &1.into()));
    assert_eq!(letter["cause"], "Offset rejected by client.");
    assert_eq!(letter["since_ms"], now);
    assert_eq!(letter["attempts"], 1);
    assert_eq!(letter["last_error"], "nobody leads dlq.t-0");
    let wait = letter["next_attempt_in_ms"].as_i64().unwrap();
    assert!((1_600..=2_400).contains(&wait), "{wait}");
}

// --- The ISR -----------------------------------------------------------------------------------

const MIN_ISR: &[(&str, &str)] = &[("min.insync.replicas", "2")];

#[tokio::test]
async fn without_a_timeout_too_small_an_isr_is_not_waited_for() {
    let mut scene = outage(&[], &[0, 2], MIN_ISR).await;
    scene.broker().stop_node(2).await;
    scene.reject(3).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::Refused), (0, 3));
    let counts = scene.counts();
    assert_eq!((counts.attempts(), counts.failed_attempts()), (1, 1));
}

#[tokio::test]
async fn with_a_timeout_too_small_an_isr_is_waited_for() {
    let mut scene = outage(&[(TIMEOUT, "60000")], &[0, 2], MIN_ISR).await;
    scene.broker().stop_node(2).await;
    scene.reject(3).await;
    scene.pass(30_000).await;
    assert_eq!(scene.window(), 3);
    scene.alter_topic(&[("min.insync.replicas", "1")]).await;
    scene.settle().await;
    assert_eq!(scene.letters().await, "0 1 2");
    // And again, until the replica is back.
    scene.alter_topic(MIN_ISR).await;
    scene.reject(1).await;
    assert_eq!(scene.letters().await, "0 1 2");
    scene.broker().start_node(2).await;
    scene.settle().await;
    assert_eq!(scene.letters().await, "0 1 2 3");
}

#[tokio::test]
async fn more_replicas_than_there_are_cannot_be_asked_for() {
    let mut scene = outage(&[], &[0], MIN_ISR).await;
    scene.reject(2).await;
    assert_eq!(scene.letters().await, "0 1");
}

// --- The disk -----------------------------------------------------------------------------------

/// A disk on which the dead letter topic cannot open the segment that its next letter needs.
async fn broken_disk(group: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Faults>, Scene) {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let settings = Settings::new()
        .data_dir(dir.path())
        .faults(Arc::clone(&faults));
    let mut scene = Scene::on(settings, 1, group).await;
    let mut configs = TAKES.to_vec();
    configs.push(("internal.segment.bytes", "500"));
    scene.create(&configs).await;
    scene.reject(1).await;
    assert_eq!(scene.letters().await, "0");
    faults.fail_opens(true);
    scene.reject(2).await;
    (dir, faults, scene)
}

#[tokio::test]
async fn without_a_timeout_a_disk_that_fails_is_not_waited_for() {
    let (_dir, faults, mut scene) = broken_disk(&[]).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::Refused), (1, 2));
    faults.fail_opens(false);
    scene.reject(1).await;
    assert_eq!(scene.letters().await, "0 3");
}

#[tokio::test]
async fn with_a_timeout_a_disk_that_fails_is_waited_for() {
    let (_dir, faults, mut scene) = broken_disk(&[(TIMEOUT, "60000")]).await;
    scene.pass(20_000).await;
    assert_eq!(scene.window(), 2);
    faults.fail_opens(false);
    scene.pass(30_000).await;
    assert_eq!(scene.letters().await, "0 1 2");
    assert_eq!(scene.outcome(GiveUp::Refused), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_reach_the_disk_after_their_time_are_late_and_given_up_both() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    // Real time: who moves the clock waits for the write, which waits for the disk.
    let settings = Settings::new()
        .real_clock()
        .data_dir(dir.path())
        .faults(Arc::clone(&faults));
    let mut scene = Scene::on(settings, 1, &[]).await;
    scene.create(TAKES).await;
    let (first, last) = scene.hold(3).await;
    faults.hold_writes(Some(DLQ));
    let told = scene.member.acks(scene.queue.at, first, last, &[REJECT]);
    assert_eq!(told.await, OK);
    told_in_time(&mut scene, |_| faults.writes_held() == 1).await;
    scene
        .queue
        .admin
        .configure_group(Queue::GROUP, &[(TIMEOUT, "1")])
        .await;
    told_in_time(&mut scene, |told| told.write_timeouts == 3).await;
    // The source goes on, though the letters are on their way to the disk still.
    assert_eq!(scene.window(), 0);
    faults.hold_writes(None);
    told_in_time(&mut scene, |told| told.late_writes == 3).await;
    assert_eq!(scene.letters().await, "0 1 2");
    assert_eq!(scene.outcome(GiveUp::TimedOut), (0, 3));
}

/// Asks for the group's numbers until they are as they should be.
async fn told_in_time(scene: &mut Scene, is_so: impl Fn(&DescribedShareGroupDelivery) -> bool) {
    let mut coordinator = scene.coordinator().await;
    let asked = async { while !is_so(&coordinator.delivery(Queue::GROUP).await) {} };
    soon("the group's numbers", asked).await;
}

// --- What changes meanwhile ----------------------------------------------------------------------

#[tokio::test]
async fn a_topic_that_is_made_anew_meanwhile_gets_the_letters() {
    for (timeout, wait) in [("-1", 5_000), ("600000", 0)] {
        let mut scene = leaderless(&[(TIMEOUT, timeout)]).await;
        scene.reject(2).await;
        let before = scene.queue.admin.describe_topic(DLQ, false).await.topic_id;
        assert_eq!(scene.queue.admin.delete_topic(DLQ).await, ErrorCode::NONE);
        let assignment = CreatableReplicaAssignment::default().with_broker_ids(vec![BrokerId(0)]);
        let topic = Client::new_topic(DLQ, -1, TAKES).with_assignments(vec![assignment]);
        let made = scene.queue.admin.try_create_topic(topic).await;
        assert_eq!(made.error_code, 0, "{made:?}");
        scene.pass(wait).await;
        let after = scene.queue.admin.describe_topic(DLQ, false).await.topic_id;
        assert_ne!(before, after);
        assert_eq!(scene.letters().await, "0 1", "timeout {timeout}");
        assert_eq!(scene.outcome(GiveUp::Refused), (2, 0));
    }
}

#[tokio::test]
async fn a_topic_that_is_deleted_meanwhile_is_named() {
    let mut scene = leaderless(&[]).await;
    scene.reject(2).await;
    scene.queue.admin.delete_topic(DLQ).await;
    scene.pass(5_000).await;
    assert_eq!(scene.window(), 0);
    assert_eq!(scene.outcome(GiveUp::TopicMissing), (0, 2));
}

#[tokio::test]
async fn a_flag_that_is_taken_away_meanwhile_is_seen() {
    let mut scene = leaderless(&[]).await;
    scene.reject(2).await;
    scene.alter_topic(&[(FLAG, "false")]).await;
    scene.pass(5_000).await;
    assert_eq!(scene.outcome(GiveUp::FlagMissing), (0, 2));
}

#[tokio::test]
async fn letters_keep_their_topic_when_the_group_names_another() {
    for other in ["dlq.other", ""] {
        let mut scene = leaderless(&[(COPY, "true")]).await;
        let admin = &mut scene.queue.admin;
        let replicas: &[&[i32]] = &[&[0]];
        admin.create_topic_on("dlq.other", replicas).await;
        admin.alter_configs(2, "dlq.other", TAKES).await;
        scene.reject(2).await;
        scene.queue.configure(&[(NAME, other)]).await;
        scene.broker().start_node(2).await;
        scene.pass(5_000).await;
        assert_eq!(scene.letters_of_2().await, "0 1");
        scene.reject(1).await;
        let letters = scene.queue.admin.fetch_all("dlq.other", 0, 0).await;
        let expected = if other.is_empty() { "" } else { "2" };
        assert_eq!(offsets(&letters), expected);
    }
}

#[tokio::test]
async fn altered_offsets_end_the_letters_that_wait() {
    let mut scene = leaderless(&[]).await;
    scene.reject(3).await;
    scene.leave().await;
    let mut coordinator = scene.coordinator().await;
    coordinator
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 1)
        .await;
    scene.settle().await;
    assert_eq!(scene.outcome(GiveUp::SourceChanged), (0, 3));
    scene.broker().start_node(2).await;
    scene.pass(60_000).await;
    assert_eq!(scene.letters_of_2().await, "");
}

#[tokio::test]
async fn deleted_offsets_groups_and_topics_end_the_letters_that_wait() {
    for what in ["offsets", "group", "topic"] {
        let mut scene = leaderless(&[]).await;
        scene.reject(3).await;
        scene.leave().await;
        let mut admin = scene.coordinator().await;
        match what {
            "offsets" => {
                let answer = admin.delete_share_offsets(Queue::GROUP, Queue::TOPIC).await;
                assert_eq!(answer.responses[0].error_code, 0, "{answer:?}");
            }
            "group" => assert_eq!(admin.delete_group(Queue::GROUP).await, OK),
            _ => assert_eq!(admin.delete_topic(Queue::TOPIC).await, ErrorCode::NONE),
        }
        scene.settle().await;
        assert_eq!(scene.outcome(GiveUp::SourceChanged), (0, 3), "{what}");
        assert!(scene.pending_anywhere().is_empty());
    }
}

impl Scene {
    /// The one member leaves the group, so that it may be changed.
    async fn leave(&mut self) {
        let client = self.coordinator().await;
        let mut member = Member::new(client, Queue::GROUP, "a");
        member.leave().await;
    }

    fn pending_anywhere(&self) -> Vec<serde_json::Value> {
        let broker = &self.broker().process.broker;
        broker.shares.inspect(broker, Queue::GROUP)
    }
}

// --- Leaders of the source -------------------------------------------------------------------------

#[tokio::test]
async fn a_source_leader_that_moves_takes_the_letters_along_once() {
    let mut scene = outage(&[], &[2], &[]).await;
    let admin = &mut scene.queue.admin;
    let replicas: &[&[i32]] = &[&[1, 0]];
    let topic = admin.create_topic_on("moving", replicas).await;
    let at = ottla_tests::At {
        topic,
        partition: 0,
    };
    let client = scene.coordinator().await;
    let mut joined = Member::new(client, Queue::GROUP, "b");
    joined.join(&["moving"]).await;
    let mut leader = scene.broker().client_of(1).await;
    leader.produce_values("moving", 0, &["a", "b"]).await;
    let mut member = Member::new(leader, Queue::GROUP, "b");
    member.fetch(&Ask::of(at)).await;
    scene.broker().stop_node(2).await;
    assert_eq!(member.ack(at, 0, 1, REJECT).await, OK);
    scene.settle().await;
    scene.broker().stop_node(1).await;
    scene.settle().await;
    assert_eq!(scene.outcome(GiveUp::Refused), (0, 0), "nothing is lost");
    // The first fetch from the new leader drives them again.
    let client = scene.broker().client_of(0).await;
    let mut member = Member::new(client, Queue::GROUP, "b");
    assert_eq!(member.fetch(&Ask::of(at)).await.acquired(at), "");
    scene.broker().start_node(2).await;
    scene.pass(5_000).await;
    assert_eq!(scene.letters_of_2().await, "0 1");
    assert_eq!(scene.outcome(GiveUp::Refused), (2, 0));
}

// --- Groups that wait for each other ------------------------------------------------------------

#[tokio::test]
async fn share_partitions_take_turns() {
    const OTHER: &str = "h";
    let configs = [(COPY, "true"), (TIMEOUT, "600000")];
    let mut scene = leaderless(&configs).await;
    let mut all = vec![("share.auto.offset.reset", "earliest"), (NAME, DLQ)];
    all.extend(configs);
    scene.queue.admin.configure_group(OTHER, &all).await;
    Member::new(scene.coordinator().await, OTHER, "b")
        .join(&[Queue::TOPIC])
        .await;
    let value = "v".repeat(600_000);
    for _ in 0..4 {
        let admin = &mut scene.queue.admin;
        admin.produce_values(Queue::TOPIC, 0, &[&value]).await;
    }
    let at = scene.queue.at;
    let mut other = Member::new(scene.broker().client_of(0).await, OTHER, "b");
    for member in [&mut scene.member, &mut other] {
        assert_eq!(member.fetch(&Ask::of(at)).await.offsets(at), [0, 1, 2, 3]);
        assert_eq!(member.ack(at, 0, 3, REJECT).await, OK);
    }
    scene.settle().await;
    scene.broker().start_node(2).await;
    scene.settle().await;
    let mut client = scene.broker().client_of(2).await;
    let letters = client.fetch_all(DLQ, 0, 0).await;
    let groups = letters.iter().map(|l| header(l, "__dlq.errors.group"));
    let groups: Vec<String> = groups.collect();
    assert_ne!(groups[0], groups[3], "{groups:?}");
    for group in [Queue::GROUP, OTHER] {
        let own = letters.iter().zip(&groups).filter(|(_, of)| *of == group);
        let own: Vec<String> = own
            .map(|(letter, _)| header(letter, "__dlq.errors.offset"))
            .collect();
        assert_eq!(own, ["0", "1", "2", "3"], "{group}");
    }
    assert_eq!(scene.counts().written(), 4);
}
