//! A group that the breaker has paused: what happens meanwhile, and what ends it.

use ottla_coordinator::share::breaker::Counts;
use ottla_tests::{ACCEPT, Ask, OK, Queue, REJECT, RELEASE, START_MS};

use crate::scene::{BUCKET, DLQ, Scene, TRIPPED, breaker};

const PAUSED: &str = "ottla.share.delivery.paused";

// D50, D51
#[tokio::test]
async fn a_group_that_was_paused_loses_nothing_and_goes_on_where_it_stopped() {
    let mut scene = Scene::with(&[]).await;
    scene.trip().await;
    assert_eq!(scene.queue.produce(10).await, 40);
    for _ in 0..3 {
        assert_eq!(scene.acquired().await, "");
    }
    assert_eq!(scene.queue.start_and_lag().await.1, 10);
    let at = scene.at;
    let sent = scene.member.send_fetch(&Ask::new().patient()).await;
    scene.queue.parked(at, 1).await;
    let told = scene.queue.admin.resume(Queue::GROUP, Some("fixed")).await;
    assert_eq!(told, OK);
    assert_eq!(
        scene.member.receive_fetch(sent).await.acquired(at),
        "40-49#1"
    );
    let shown = scene.queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.last_resume_reason.as_deref(), Some("fixed"));
    assert_eq!(shown.counts.len(), 1, "a fresh window");
}

#[tokio::test]
async fn what_was_held_at_the_trip_can_be_settled_and_never_trips_it_again() {
    let mut scene = Scene::with(&[]).await;
    let at = scene.at;
    scene.queue.produce(100).await;
    scene.member.fetch(&Ask::of(at).exactly(60)).await;
    assert_eq!(scene.member.acks(at, 0, 39, &kinds(40)).await, OK);
    let wanted = Counts {
        delivered: 30,
        dlq_written: 10,
        given_up: 0,
    };
    crate::scene::until_counted(&scene.broker, &wanted).await;
    scene.advance(BUCKET).await;
    let since = scene.broker.now();
    assert_eq!(scene.line().await, format!("PAUSED {TRIPPED} {since}"));
    assert_eq!(scene.member.ack(at, 40, 41, ACCEPT).await, OK);
    assert_eq!(scene.member.ack(at, 42, 43, RELEASE).await, OK);
    assert_eq!(scene.member.ack(at, 44, 49, REJECT).await, OK);
    assert_eq!(scene.member.renew(at, 50, 59).await, OK);
    letters(&mut scene, 16).await;
    assert_eq!(scene.counts(), wanted, "nothing is counted while paused");
    assert_eq!(scene.queue.admin.resume(Queue::GROUP, None).await, OK);
    assert_eq!(scene.member.ack(at, 50, 59, REJECT).await, OK);
    letters(&mut scene, 26).await;
    scene.advance(6 * BUCKET).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    assert_eq!(
        scene.counts(),
        Counts::default(),
        "they were acquired before"
    );
    assert_eq!(scene.acquired().await, "42-43#2 60-99#1");
}

fn kinds(records: usize) -> Vec<i8> {
    let kind = |n: usize| if n % 4 == 3 { REJECT } else { ACCEPT };
    (0..records).map(kind).collect()
}

/// Waits until so many letters are in the topic.
async fn letters(scene: &mut Scene, wanted: i64) {
    while scene.queue.admin.end_offset(DLQ, 0).await < wanted {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.queue.admin.end_offset(DLQ, 0).await, wanted);
}

#[tokio::test]
async fn it_resumes_by_itself_at_the_millisecond() {
    let mut scene = Scene::with(&[
        (&breaker("auto.resume.enable"), "true"),
        (&breaker("auto.resume.ms"), "5000"),
    ])
    .await;
    scene.trip().await;
    let tripped = scene.broker.now();
    let shown = scene.queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.auto_resume_at_ms, tripped + 5000);
    scene.queue.produce(1).await;
    scene.advance(4999).await;
    assert_eq!(scene.line().await, format!("PAUSED {TRIPPED} {tripped}"));
    assert_eq!(scene.acquired().await, "");
    scene.advance(1).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    assert_eq!(scene.acquired().await, "40-40#1");
    let shown = scene.queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.last_resume_reason.as_deref(), Some("auto"));
    assert_eq!(shown.counts[0].bucket_start_ms, tripped + 5000);
}

#[tokio::test]
async fn the_time_in_force_decides_when_it_resumes() {
    let mut scene = Scene::with(&[]).await;
    scene.trip().await;
    scene.advance(7000).await;
    let on = breaker("auto.resume.enable");
    let after = breaker("auto.resume.ms");
    scene
        .queue
        .configure(&[(&after, "9000"), (&on, "true")])
        .await;
    scene.advance(1999).await;
    assert!(scene.line().await.starts_with("PAUSED"));
    scene.queue.configure(&[(&after, "9001")]).await;
    scene.advance(1).await;
    assert!(scene.line().await.starts_with("PAUSED"));
    scene.advance(1).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
}

#[tokio::test]
async fn an_administrators_pause_takes_the_place_of_the_trip_and_never_ends_by_itself() {
    let mut scene = Scene::with(&[(&breaker("auto.resume.enable"), "true")]).await;
    scene.trip().await;
    scene.advance(1).await;
    let since = scene.broker.now();
    assert_eq!(
        scene.queue.admin.pause(Queue::GROUP, Some("mine")).await,
        OK
    );
    let line = format!("PAUSED ADMIN {since}");
    assert_eq!(scene.line().await, line);
    assert!(!scene.queue.admin.delivery(Queue::GROUP).await.tripped);
    scene.advance(1_000_000).await;
    assert_eq!(scene.line().await, line);
}

#[tokio::test]
async fn the_config_is_shown_before_a_trip_and_never_clears_it() {
    let mut scene = Scene::with(&[]).await;
    scene.trip().await;
    let tripped = scene.line().await;
    scene.queue.configure(&[(PAUSED, "true")]).await;
    assert_eq!(scene.line().await, "PAUSED ADMIN -1");
    assert!(scene.queue.admin.delivery(Queue::GROUP).await.tripped);
    scene.queue.configure(&[(PAUSED, "false")]).await;
    assert_eq!(scene.line().await, tripped);
}

#[tokio::test]
async fn switching_the_breaker_off_leaves_a_tripped_group_paused() {
    let mut scene = Scene::with(&[]).await;
    scene.trip().await;
    let tripped = scene.line().await;
    scene
        .queue
        .configure(&[(&breaker("enable"), "false")])
        .await;
    scene.advance(1_000_000).await;
    assert_eq!(scene.line().await, tripped);
    assert_eq!(scene.queue.admin.resume(Queue::GROUP, None).await, OK);
    assert_eq!(scene.line().await, "RUNNING - -1");
}

#[tokio::test]
async fn a_group_that_is_resumed_trips_again_on_new_letters() {
    let mut scene = Scene::with(&[]).await;
    scene.trip().await;
    scene.advance(777).await;
    assert_eq!(scene.queue.admin.resume(Queue::GROUP, None).await, OK);
    scene.work(40).await;
    scene.advance(BUCKET).await;
    let since = START_MS + 2 * BUCKET + 777;
    assert_eq!(scene.line().await, format!("PAUSED {TRIPPED} {since}"));
    assert!(
        scene
            .shows(r#"ottla_dlq_circuit_breaker_tripped_total{group="g"} 2"#)
            .await
    );
}
