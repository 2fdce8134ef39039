//! A DLQ topic that cannot be written must not stop its source (KIP-1316, a draft): twenty partitions,
//! the DLQ topic's only replica on a broker that is down, 45 seconds of broker time.

use ottla_protocol::messages::describe_share_group_delivery_response::DescribedShareGroupDelivery;
use ottla_tests::{ACCEPT, Client, Delivered, Embedded, Flow, OK, REJECT, Settings, bare};

const GROUP: &str = "g";
const TOPIC: &str = "t";
const DLQ: &str = "dlq.t";
const PARTITIONS: i32 = 20;
/// The broker whose only partition is that of the DLQ topic.
const DOWN: i32 = 2;

/// One step of the clock, in milliseconds.
const STEP_MS: i64 = 500;
const STEPS: i64 = 90;
const TIMEOUT_MS: i64 = 5000;
/// Records that a share partition may have in flight; reached within the timeout.
const WINDOW: i64 = 100;
/// Records of one step and partition.
const RECORDS: usize = 12;

/// Every fourth record is rejected.
#[allow(clippy::unnecessary_wraps, reason = "a rule may leave a record alone")]
fn every_fourth(record: Delivered) -> Option<i8> {
    Some(if record.offset % 4 == 0 {
        REJECT
    } else {
        ACCEPT
    })
}

#[allow(clippy::unnecessary_wraps, reason = "the same")]
fn none_works(_: Delivered) -> Option<i8> {
    Some(REJECT)
}

/// Three logical brokers, the source on the first two, the DLQ topic on the third, which is up yet.
struct Scene {
    broker: Embedded,
    flow: Flow,
}

impl Scene {
    async fn start(group: &[(&str, &str)]) -> Self {
        let settings = Settings::new()
            .brokers(3)
            .set("offsets.topic.replication.factor", "3")
            .set("share.coordinator.state.topic.replication.factor", "3");
        let broker = settings.start().await;
        let mut admin = broker.client_of(0).await;
        let leaders: Vec<i32> = (0..PARTITIONS).map(|n| n % 2).collect();
        let replicas: Vec<[i32; 2]> = leaders.iter().map(|&leader| [leader, 1 - leader]).collect();
        let replicas: Vec<&[i32]> = replicas.iter().map(|ids| &ids[..]).collect();
        let id = admin.create_topic_on(TOPIC, &replicas).await;
        admin.create_topic_on(DLQ, &[&[DOWN]]).await;
        let flag = [("errors.deadletterqueue.group.enable", "true")];
        assert_eq!(admin.alter_configs(2, DLQ, &flag).await.error_code, 0);
        let window = WINDOW.to_string();
        let mut configs = vec![
            ("share.auto.offset.reset", "earliest"),
            ("errors.deadletterqueue.topic.name", DLQ),
            ("share.partition.max.record.locks", &window),
        ];
        configs.extend(group);
        admin.configure_group(GROUP, &configs).await;
        let flow = Flow::join(&broker, GROUP, (TOPIC, id), &leaders).await;
        Self { broker, flow }
    }

    /// A client of whoever coordinates the group now.
    async fn coordinator(&self) -> Client {
        let mut client = self.broker.client_of(0).await;
        let found = client.find_coordinator(0, GROUP).await;
        self.broker.client_of(*found.node_id).await
    }

    async fn told(&self) -> DescribedShareGroupDelivery {
        self.coordinator().await.delivery(GROUP).await
    }

    /// Forty-five seconds of work; the longest time that a partition with records got none of them, in ms.
    async fn work(&mut self) -> i64 {
        let mut idle = vec![0; PARTITIONS as usize];
        let mut longest = 0;
        for _ in 0..STEPS {
            self.flow.produce(self.broker.now(), RECORDS).await;
            let came = self.flow.deliver(every_fourth).await;
            for (idle, came) in idle.iter_mut().zip(came) {
                *idle = if came == 0 { *idle + STEP_MS } else { 0 };
                longest = longest.max(*idle);
            }
            self.broker.advance_holding_sessions(STEP_MS).await;
        }
        longest
    }

    /// Lets everything that waits come to its end.
    async fn finish(&mut self) {
        for _ in 0..20 {
            self.broker.advance_holding_sessions(TIMEOUT_MS).await;
            self.flow.deliver(every_fourth).await;
        }
        for partition in 0..PARTITIONS {
            let mut asked = self.coordinator().await;
            let (_, lag) = asked.start_and_lag(GROUP, TOPIC, partition).await;
            assert_eq!(lag, 0, "partition {partition}");
        }
    }

    /// How many letters there are, each once; the DLQ topic's broker is up.
    async fn letters(&self) -> i64 {
        let mut client = self.broker.client_of(DOWN).await;
        let letters = client.fetch_all(DLQ, 0, 0).await;
        let mut seen = std::collections::BTreeSet::new();
        for letter in &letters {
            assert!(
                seen.insert(letter.headers[..4].to_vec()),
                "twice: {letter:?}"
            );
        }
        letters.len() as i64
    }
}

fn given_up(told: &DescribedShareGroupDelivery) -> i64 {
    told.given_up.iter().map(|one| one.records).sum()
}

#[tokio::test]
async fn a_write_timeout_keeps_the_source_flowing_while_the_dlq_is_down() {
    let timeout = TIMEOUT_MS.to_string();
    let mut scene = Scene::start(&[("share.group.dlq.write.timeout.ms", &timeout)]).await;
    scene.broker.stop_node(DOWN).await;
    let longest = scene.work().await;
    // The window fills before the first letters time out, and never again for longer.
    assert!(
        longest > 0,
        "the window was never full: the scene shows nothing"
    );
    assert!(
        longest <= TIMEOUT_MS,
        "a partition stood still for {longest} ms"
    );
    let lost = scene.told().await;
    assert!(lost.write_timeouts > 0, "{lost:?}");
    scene.finish().await;
    let told = scene.told().await;
    assert_eq!(told.write_timeouts, scene.flow.rejected(), "{told:?}");
    assert_eq!(given_up(&told), told.write_timeouts, "{told:?}");
    assert_eq!((told.letters_written, told.late_writes), (0, 0), "{told:?}");
    assert_eq!(
        scene.flow.produced(),
        scene.flow.accepted() + scene.flow.rejected()
    );

    // The broker is back: letters are written again, and only new ones.
    scene.broker.start_node(DOWN).await;
    let before = scene.flow.rejected();
    scene.flow.produce(scene.broker.now(), RECORDS).await;
    scene.flow.deliver(every_fourth).await;
    scene.finish().await;
    let told = scene.told().await;
    assert_eq!(told.write_timeouts, before, "{told:?}");
    assert_eq!(
        told.letters_written,
        scene.flow.rejected() - before,
        "{told:?}"
    );
    assert_eq!(scene.letters().await, told.letters_written);
    scene.broker.shutdown().await;
}

#[tokio::test]
async fn without_a_write_timeout_the_same_outage_stops_the_source() {
    let mut scene = Scene::start(&[]).await;
    scene.broker.stop_node(DOWN).await;
    let longest = scene.work().await;
    // Five attempts over about thirty seconds, as Apache Kafka makes them.
    assert!(
        longest >= 20_000,
        "a partition stood still for {longest} ms only"
    );
    let told = scene.told().await;
    assert_eq!(told.write_timeouts, 0, "{told:?}");
    assert!(given_up(&told) > 0, "{told:?}");
    scene.broker.shutdown().await;
}

#[tokio::test]
async fn a_timeout_that_is_set_in_the_middle_of_an_outage_frees_the_source() {
    let mut scene = Scene::start(&[]).await;
    scene.broker.stop_node(DOWN).await;
    let mut idle = 0;
    for _ in 0..20 {
        scene.flow.produce(scene.broker.now(), RECORDS).await;
        let came = scene.flow.deliver(every_fourth).await;
        idle = if came.iter().all(|&came| came == 0) {
            idle + 1
        } else {
            0
        };
        scene.broker.advance_holding_sessions(STEP_MS).await;
    }
    assert!(idle > 4, "the window was not full");
    let timeout = TIMEOUT_MS.to_string();
    let mut admin = scene.broker.client_of(0).await;
    admin
        .configure_group(GROUP, &[("share.group.dlq.write.timeout.ms", &timeout)])
        .await;
    scene.broker.advance_holding_sessions(1).await;
    let came = scene.flow.deliver(every_fourth).await;
    assert!(came.iter().all(|&came| came > 0), "{came:?}");
    scene.broker.shutdown().await;
}

#[tokio::test]
async fn letters_wait_for_the_end_of_a_short_outage() {
    let mut scene = Scene::start(&[("share.group.dlq.write.timeout.ms", "60000")]).await;
    scene.broker.stop_node(DOWN).await;
    scene.flow.produce(scene.broker.now(), RECORDS).await;
    scene.flow.deliver(every_fourth).await;
    scene.broker.advance_holding_sessions(20_000).await;
    assert_eq!(scene.told().await.letters_written, 0);
    // Who waits is woken by the leader that comes back.
    scene.broker.start_node(DOWN).await;
    scene.broker.advance_holding_sessions(1).await;
    let told = scene.told().await;
    assert_eq!(told.letters_written, scene.flow.rejected(), "{told:?}");
    assert_eq!((told.write_timeouts, given_up(&told)), (0, 0), "{told:?}");
    assert_eq!(scene.letters().await, scene.flow.rejected());
    scene.broker.shutdown().await;
}

/// Downstream and DLQ both dead, the breaker on: how the group fares, and how much of the topic is left.
async fn double_outage(opt_in: &str) -> (Option<String>, i64, Scene) {
    let timeout = TIMEOUT_MS.to_string();
    let configs = [
        ("share.group.dlq.write.timeout.ms", timeout.as_str()),
        ("share.group.dlq.circuit.breaker.enable", "true"),
        ("share.group.dlq.circuit.breaker.min.messages", "500"),
        ("ottla.share.dlq.timeout.pause.enable", opt_in),
    ];
    let mut scene = Scene::start(&configs).await;
    scene.broker.stop_node(DOWN).await;
    for _ in 0..40 {
        scene.flow.produce(scene.broker.now(), RECORDS).await;
    }
    for _ in 0..STEPS {
        scene.flow.deliver(none_works).await;
        scene.broker.advance_holding_sessions(STEP_MS).await;
    }
    let paused = scene.coordinator().await.paused(GROUP).await;
    let left = scene.flow.produced() - scene.flow.rejected();
    (paused, left, scene)
}

#[tokio::test]
async fn a_double_outage_drains_the_topic_and_says_so() {
    let (paused, left, scene) = double_outage("false").await;
    assert_eq!((paused, left), (None, 0));
    let told = scene.told().await;
    assert_eq!(told.write_timeouts, scene.flow.rejected(), "{told:?}");
    // There is no rate, but there are letters given up for all to see.
    assert!(told.rate == 0.0, "{told:?}");
    assert!(told.given_up_in_window > 0, "{told:?}");
    scene.broker.shutdown().await;
}

#[tokio::test]
async fn a_double_outage_pauses_the_group_where_that_is_wished() {
    let (paused, left, mut scene) = double_outage("true").await;
    assert_eq!(paused.as_deref(), Some("DLQ_WRITE_TIMEOUTS"));
    assert!(left > 0, "nothing is left");
    let told = scene.told().await;
    assert_eq!(told.write_timeouts, scene.flow.rejected(), "{told:?}");
    // What is left is delivered after the repair.
    scene.broker.start_node(DOWN).await;
    let mut admin = scene.coordinator().await;
    assert_eq!(admin.resume(GROUP, Some("repaired")).await, OK);
    scene.flow.deliver(every_fourth).await;
    scene.finish().await;
    assert_eq!(
        scene.flow.produced(),
        scene.flow.accepted() + scene.flow.rejected()
    );
    scene.broker.shutdown().await;
}

/// Two groups that name one DLQ topic; one rejects, the other does not.
#[tokio::test]
async fn two_groups_on_one_dlq_topic_see_their_own_letters_only() {
    let broker = Settings::new().start().await;
    let mut admin = broker.client().await;
    let id = admin.create_topic(TOPIC, 1).await;
    let flag = [("errors.deadletterqueue.group.enable", "true")];
    admin.create_topic_with(DLQ, 1, &flag).await;
    let configs = [
        ("share.auto.offset.reset", "earliest"),
        ("errors.deadletterqueue.topic.name", DLQ),
        ("share.group.dlq.circuit.breaker.enable", "true"),
        ("share.group.dlq.circuit.breaker.min.messages", "10"),
        ("share.group.dlq.circuit.breaker.threshold", "0.2"),
    ];
    admin.configure_group("bad", &configs).await;
    admin.configure_group("good", &configs).await;
    let mut bad = Flow::join(&broker, "bad", (TOPIC, id), &[0]).await;
    let mut good = Flow::join(&broker, "good", (TOPIC, id), &[0]).await;
    bad.produce(broker.now(), 40).await;
    bad.deliver(every_fourth).await;
    good.deliver(|_| Some(ACCEPT)).await;
    broker.advance_holding_sessions(10_000).await;
    let tripped = admin.delivery("bad").await;
    assert_eq!(
        tripped.pause_reason.as_deref(),
        Some("DLQ_CIRCUIT_BREAKER_TRIPPED"),
        "{tripped:?}"
    );
    assert_eq!(tripped.letters_written, 10, "{tripped:?}");
    let calm = admin.delivery("good").await;
    assert_eq!(
        (&*calm.delivery_state, calm.letters_written),
        ("RUNNING", 0),
        "{calm:?}"
    );
    assert_eq!(admin.end_offset(DLQ, 0).await, 10);

    // Strict isolation is refused while the topic is shared, in either order, and names the other group.
    let strict = [("share.group.dlq.strict.isolation", "true")];
    let refused = admin.alter_configs(32, "good", &strict).await;
    let message = refused.error_message.as_deref().unwrap_or_default();
    assert_eq!(
        refused.error_code,
        bare(ottla_protocol::ErrorCode::INVALID_CONFIG).0,
        "{refused:?}"
    );
    assert!(
        message.contains("good") && message.contains("bad"),
        "{message}"
    );
    let other = [("errors.deadletterqueue.topic.name", "")];
    assert_eq!(admin.alter_configs(32, "bad", &other).await.error_code, 0);
    assert_eq!(admin.alter_configs(32, "good", &strict).await.error_code, 0);
    let again = [("errors.deadletterqueue.topic.name", DLQ)];
    let refused = admin.alter_configs(32, "bad", &again).await;
    let message = refused.error_message.as_deref().unwrap_or_default();
    assert!(
        message.contains("good") && message.contains("bad"),
        "{message}"
    );
    broker.shutdown().await;
}
