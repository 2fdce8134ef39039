//! A trip, or its end, that cannot be recorded, and groups that are deleted.

use ottla_coordinator::share::breaker::Counts;
use ottla_protocol::ErrorCode;
use ottla_tests::{Ask, At, Member, OK, Queue, Settings, http};

use crate::scene::{BUCKET, Scene, TRIPPED, breaker, configure, make_dlq, until_counted, work};

/// How long after a failure it is tried again.
const RETRY: i64 = 1000;

#[tokio::test]
async fn what_cannot_be_recorded_is_tried_again_and_not_lost() {
    let settings = Settings::new().brokers(2);
    let settings = settings.set("offsets.topic.num.partitions", "1");
    let broker = settings.start().await;
    let mut admin = broker.client_of(0).await;
    let coordinator = *admin.find_coordinator(0, Queue::GROUP).await.node_id;
    let other = 1 - coordinator;
    let topic = admin.create_topic_on(Queue::TOPIC, &[&[coordinator]]).await;
    make_dlq(&mut admin).await;
    let resumes = [
        (&*breaker("auto.resume.enable"), "true"),
        (&*breaker("auto.resume.ms"), "5000"),
    ];
    configure(&mut admin, Queue::GROUP, &resumes).await;
    let min = [("min.insync.replicas", "2")];
    let altered = admin.alter_configs(2, "__consumer_offsets", &min).await;
    assert_eq!(altered.error_code, 0);
    let mut admin = broker.client_of(coordinator).await;
    let mut member = Member::new(broker.client_of(coordinator).await, Queue::GROUP, "a");
    member.join(&[Queue::TOPIC]).await;
    let values: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    admin.produce_values(Queue::TOPIC, 0, &values).await;
    let at = At {
        topic,
        partition: 0,
    };
    work(&mut member, at, 0, 40).await;
    let wanted = Counts {
        delivered: 30,
        dlq_written: 10,
        given_up: 0,
    };
    until_counted(&broker, &wanted).await;

    broker.stop_node(other).await;
    broker.advance_holding_sessions(BUCKET + 3 * RETRY).await;
    assert_eq!(admin.delivery_line(Queue::GROUP).await, "RUNNING - -1");
    admin.produce_values(Queue::TOPIC, 0, &["late"]).await;
    let fetched = member.fetch(&Ask::of(at)).await;
    assert_eq!(fetched.acquired(at), "40-40#1", "it is not paused halfway");
    broker.start_node(other).await;
    broker.advance_holding_sessions(RETRY).await;
    let since = broker.now();
    let line = format!("PAUSED {TRIPPED} {since}");
    assert_eq!(admin.delivery_line(Queue::GROUP).await, line);

    broker.stop_node(other).await;
    broker.advance_holding_sessions(5000 + 2 * RETRY).await;
    assert_eq!(admin.delivery_line(Queue::GROUP).await, line);
    broker.start_node(other).await;
    broker.advance_holding_sessions(RETRY).await;
    let shown = admin.delivery(Queue::GROUP).await;
    assert_eq!(&*shown.delivery_state, "RUNNING");
    assert_eq!(shown.last_resume_reason.as_deref(), Some("auto"));
    let metrics = http(broker.admin(), "GET", "/metrics").await.body;
    let once = r#"ottla_dlq_circuit_breaker_tripped_total{group="g"} 1"#;
    assert!(metrics.contains(once), "{metrics}");
}

#[tokio::test]
async fn a_group_that_is_deleted_while_tripped_leaves_nothing_behind() {
    let auto = [(&*breaker("auto.resume.enable"), "true")];
    let mut scene = Scene::with(&auto).await;
    let at = scene.at;
    scene.trip().await;
    let of_group = async |scene: &Scene| {
        let told = http(scene.broker.admin(), "GET", "/metrics").await.body;
        let delivery = [
            "_delivery_paused",
            "_breaker_tripped",
            "_dlq_rate",
            "_window_records",
        ];
        let lines = told.lines().filter(|line| line.contains(r#"group="g""#));
        let named = |line: &&str| delivery.iter().any(|name| line.contains(name));
        lines.filter(named).count()
    };
    assert_eq!(of_group(&scene).await, 6);
    scene.member.leave().await;
    assert_eq!(scene.queue.admin.delete_group(Queue::GROUP).await, OK);
    assert_eq!(of_group(&scene).await, 0);
    let gone = scene.queue.admin.try_delivery(Queue::GROUP).await;
    assert_eq!(gone.error_code, ErrorCode::GROUP_ID_NOT_FOUND.0);
    // When it would have resumed by itself.
    scene.advance(1_000_000).await;

    scene.member = scene.queue.member("b").await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    let shown = scene.queue.admin.delivery(Queue::GROUP).await;
    assert!(shown.breaker_enabled && !shown.tripped);
    assert_eq!(scene.counts(), Counts::default());
    assert_eq!(scene.acquired().await, "0-39#1");
    let fetched = scene.member.fetch(&Ask::new()).await;
    assert_eq!(fetched.acquired(at), "");
    assert_eq!(scene.queue.admin.pause(Queue::GROUP, None).await, OK);
    scene.queue.produce(1).await;
    assert_eq!(scene.member.fetch(&Ask::new()).await.acquired(at), "");
    assert_eq!(scene.queue.admin.resume(Queue::GROUP, None).await, OK);
    assert_eq!(
        scene.member.fetch(&Ask::new()).await.acquired(at),
        "40-40#1"
    );
}
