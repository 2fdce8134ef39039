//! What a restart and the moves of coordinators and leaders do to window and trip.

use ottla_coordinator::share::breaker::Counts;
use ottla_tests::{At, Embedded, Member, OK, Queue, START_MS, Settings};

use crate::scene::{
    BUCKET, Scene, TRIPPED, breaker, configure, counts, make_dlq, until_counted, work,
};

const LETTERS: Counts = Counts {
    delivered: 30,
    dlq_written: 10,
    given_up: 0,
};

#[tokio::test]
async fn a_restart_while_tripped_stays_paused() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let settings = || Settings::new().data_dir(dir.path());
    let mut scene = Scene::of(settings(), &[]).await;
    scene.trip().await;
    let tripped = scene.line().await;
    scene.queue.broker.shutdown().await;
    let broker = settings().at(START_MS + 2 * BUCKET).start().await;
    let mut admin = broker.client().await;
    assert_eq!(admin.delivery_line(Queue::GROUP).await, tripped);
    assert_eq!(admin.resume(Queue::GROUP, None).await, OK);
    broker.shutdown().await;
}

#[tokio::test]
async fn an_end_that_is_overdue_at_the_start_is_at_once() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let settings = || Settings::new().data_dir(dir.path());
    let own = [(&*breaker("auto.resume.enable"), "true")];
    let mut scene = Scene::of(settings(), &own).await;
    scene.trip().await;
    scene.queue.broker.shutdown().await;
    let broker = settings().at(START_MS + 1_000_000).start().await;
    broker.advance_holding_sessions(0).await;
    let mut admin = broker.client().await;
    assert_eq!(admin.delivery_line(Queue::GROUP).await, "RUNNING - -1");
    let shown = admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.last_resume_reason.as_deref(), Some("auto"));
    broker.shutdown().await;
}

#[tokio::test]
async fn a_restart_in_the_middle_of_a_window_begins_a_fresh_one() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let settings = || Settings::new().data_dir(dir.path());
    let mut scene = Scene::of(settings(), &[]).await;
    scene.work(40).await;
    scene.advance(BUCKET - 1).await;
    let now = scene.broker.now();
    scene.queue.broker.shutdown().await;
    let broker = settings().at(now).start().await;
    assert_eq!(counts(&broker, Queue::GROUP), Counts::default());
    broker.advance_holding_sessions(10 * BUCKET).await;
    let mut admin = broker.client().await;
    assert_eq!(admin.delivery_line(Queue::GROUP).await, "RUNNING - -1");
    broker.shutdown().await;
}

/// Three brokers, with the topic and its dead letters at one that does not coordinate the group.
async fn three() -> (Embedded, At, i32, i32) {
    let broker = Settings::new().brokers(3).start().await;
    let mut admin = broker.client_of(0).await;
    let coordinator = *admin.find_coordinator(0, Queue::GROUP).await.node_id;
    let leader = (coordinator + 1) % 3;
    let replicas = [leader, (leader + 1) % 3, coordinator];
    let topic = admin.create_topic_on(Queue::TOPIC, &[&replicas]).await;
    make_dlq(&mut admin).await;
    configure(&mut admin, Queue::GROUP, &[]).await;
    let at = At {
        topic,
        partition: 0,
    };
    (broker, at, coordinator, leader)
}

/// 40 records, a quarter of them rejected, at the leader of the topic.
async fn work_at(broker: &Embedded, leader: i32, at: At) {
    let values: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let mut client = broker.client_of(leader).await;
    let first = client.produce_values(Queue::TOPIC, 0, &values).await;
    let mut session = Member::new(client, Queue::GROUP, "a");
    work(&mut session, at, first, 40).await;
    session.close_session().await;
}

async fn line_at(broker: &Embedded, node: i32) -> String {
    let mut client = broker.client_of(node).await;
    client.delivery_line(Queue::GROUP).await
}

#[tokio::test]
async fn the_stop_of_the_coordinators_broker_begins_a_fresh_window() {
    let (broker, at, coordinator, leader) = three().await;
    let mut member = Member::new(broker.client_of(coordinator).await, Queue::GROUP, "a");
    member.join(&[Queue::TOPIC]).await;
    work_at(&broker, leader, at).await;
    until_counted(&broker, &LETTERS).await;
    drop(member);
    broker.advance_holding_sessions(BUCKET - 1).await;
    broker.stop_node(coordinator).await;
    assert_eq!(counts(&broker, Queue::GROUP), Counts::default());
    broker.advance_holding_sessions(10 * BUCKET).await;
    let mut client = broker.client_of(leader).await;
    let new = *client.find_coordinator(0, Queue::GROUP).await.node_id;
    assert_ne!(new, coordinator);
    assert_eq!(line_at(&broker, new).await, "RUNNING - -1");
    work_at(&broker, leader, at).await;
    until_counted(&broker, &LETTERS).await;
    broker.advance_holding_sessions(BUCKET).await;
    assert!(line_at(&broker, new).await.contains(TRIPPED));
}

#[tokio::test]
async fn the_move_of_a_partitions_leader_keeps_the_window() {
    let (broker, at, coordinator, leader) = three().await;
    let mut member = Member::new(broker.client_of(coordinator).await, Queue::GROUP, "a");
    member.join(&[Queue::TOPIC]).await;
    work_at(&broker, leader, at).await;
    until_counted(&broker, &LETTERS).await;
    broker.stop_node(leader).await;
    assert_eq!(counts(&broker, Queue::GROUP), LETTERS);
    broker.advance_holding_sessions(BUCKET).await;
    let line = format!("PAUSED {TRIPPED} {}", START_MS + BUCKET);
    assert_eq!(line_at(&broker, coordinator).await, line);
}

#[tokio::test]
async fn a_trip_moves_with_the_coordinator() {
    let (broker, at, coordinator, leader) = three().await;
    let mut member = Member::new(broker.client_of(coordinator).await, Queue::GROUP, "a");
    member.join(&[Queue::TOPIC]).await;
    work_at(&broker, leader, at).await;
    until_counted(&broker, &LETTERS).await;
    broker.advance_holding_sessions(BUCKET).await;
    let line = line_at(&broker, coordinator).await;
    assert!(line.contains(TRIPPED), "{line}");
    drop(member);
    broker.stop_node(coordinator).await;
    let mut client = broker.client_of(leader).await;
    let new = *client.find_coordinator(0, Queue::GROUP).await.node_id;
    assert_eq!(line_at(&broker, new).await, line);
}
