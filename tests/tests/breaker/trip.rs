//! When the breaker trips and when it does not.

use ottla_coordinator::share::breaker::Counts;
use ottla_tests::{ACCEPT, Ask, GAP, Member, OK, Queue, RELEASE, START_MS};

use crate::scene::{BUCKET, DLQ, Scene, TRIPPED, breaker, configure, counts, until, work};

// D50
#[tokio::test]
async fn a_quarter_of_rejects_trips_at_the_end_of_the_bucket_and_not_before() {
    let mut scene = Scene::with(&[]).await;
    scene.work(40).await;
    let tripped = r#"ottla_dlq_circuit_breaker_tripped_total{group="g"} 1"#;
    scene.advance(BUCKET - 1).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    assert!(!scene.shows(tripped).await);
    scene.work(4).await;
    scene.advance(1).await;
    let line = format!("PAUSED {TRIPPED} {}", START_MS + BUCKET);
    assert_eq!(scene.line().await, line);
    assert!(scene.shows(tripped).await);
    assert!(scene.shows(r#"ottla_dlq_rate{group="g"} 0.25"#).await);
    let window = r#"ottla_dlq_window_records{group="g",outcome="dead_letter"} 11"#;
    assert!(scene.shows(window).await);
}

#[tokio::test]
async fn what_is_shown_is_what_tripped_it() {
    let mut scene = Scene::with(&[]).await;
    scene.work(20).await;
    scene.advance(BUCKET / 2).await;
    scene.work(20).await;
    scene.advance(BUCKET / 2).await;
    let shown = scene.queue.admin.delivery(Queue::GROUP).await;
    assert!(shown.tripped && shown.breaker_enabled && !shown.timeout_pause_enabled);
    let rules = (shown.window_ms, shown.buckets, shown.min_messages);
    assert_eq!(rules, (60_000, 6, 20));
    assert!((shown.threshold - 0.2).abs() < 1e-9 && (shown.rate - 0.25).abs() < 1e-9);
    let counted: Vec<_> = shown
        .counts
        .iter()
        .map(|c| {
            (
                c.bucket_start_ms - START_MS,
                c.delivered,
                c.dlq_written,
                c.given_up,
            )
        })
        .collect();
    assert_eq!(counted, [(0, 30, 10, 0), (BUCKET, 0, 0, 0)]);
    assert_eq!((&*shown.dlq_topic, shown.auto_resume_at_ms), (DLQ, -1));
    assert_eq!(shown.note.as_deref(), Some(""));
}

#[tokio::test]
async fn a_quarter_of_rejects_does_not_trip_at_a_threshold_of_three_tenths() {
    let mut scene = Scene::with(&[(&breaker("threshold"), "0.3")]).await;
    for _ in 0..8 {
        scene.work(40).await;
        scene.advance(BUCKET).await;
        assert_eq!(scene.line().await, "RUNNING - -1");
    }
}

#[tokio::test]
async fn fewer_records_than_min_messages_do_not_trip_it() {
    let mut scene = Scene::with(&[]).await;
    scene.work(16).await;
    scene.advance(BUCKET).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    scene.work(4).await;
    scene.advance(BUCKET).await;
    let line = format!("PAUSED {TRIPPED} {}", START_MS + 2 * BUCKET);
    assert_eq!(scene.line().await, line);
}

#[tokio::test]
async fn what_is_older_than_the_window_counts_no_more() {
    let mut scene = Scene::with(&[]).await;
    scene.work(16).await;
    scene.advance(6 * BUCKET).await;
    scene.work(16).await;
    scene.advance(BUCKET).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
}

#[tokio::test]
async fn gaps_and_released_records_are_no_samples() {
    let mut scene = Scene::with(&[]).await;
    let at = scene.at;
    scene.queue.produce(10).await;
    scene.member.fetch(&Ask::of(at)).await;
    assert_eq!(scene.member.ack(at, 0, 2, RELEASE).await, OK);
    assert_eq!(scene.member.ack(at, 3, 4, GAP).await, OK);
    assert_eq!(scene.member.ack(at, 5, 9, ACCEPT).await, OK);
    let wanted = Counts {
        delivered: 5,
        ..Counts::default()
    };
    assert_eq!(scene.counts(), wanted);
}

#[tokio::test]
async fn without_a_topic_of_dead_letters_rejects_count_for_nothing() {
    let mut scene = Scene::with(&[("errors.deadletterqueue.topic.name", "")]).await;
    let at = scene.at;
    let first = scene.queue.produce(40).await;
    work(&mut scene.member, at, first, 40).await;
    scene.advance(BUCKET).await;
    let wanted = Counts {
        delivered: 30,
        ..Counts::default()
    };
    assert_eq!(scene.counts(), wanted);
    assert_eq!(scene.line().await, "RUNNING - -1");
}

#[tokio::test]
async fn letters_given_up_are_shown_and_pause_only_a_group_that_asked_for_it() {
    for asked in ["false", "true"] {
        let mut scene = Scene::with(&[
            ("errors.deadletterqueue.topic.name", "dlq.missing"),
            ("ottla.share.dlq.timeout.pause.enable", asked),
        ])
        .await;
        let at = scene.at;
        let first = scene.queue.produce(80).await;
        work(&mut scene.member, at, first, 80).await;
        let wanted = Counts {
            delivered: 60,
            given_up: 20,
            dlq_written: 0,
        };
        until(&scene.broker, Queue::GROUP, &wanted).await;
        assert_eq!(
            scene
                .queue
                .admin
                .delivery(Queue::GROUP)
                .await
                .given_up_in_window,
            20
        );
        scene.advance(BUCKET).await;
        let line = match asked {
            "true" => format!("PAUSED DLQ_WRITE_TIMEOUTS {}", START_MS + BUCKET),
            _ => "RUNNING - -1".to_owned(),
        };
        assert_eq!(scene.line().await, line);
    }
}

#[tokio::test]
async fn groups_that_share_a_topic_of_dead_letters_have_rates_of_their_own() {
    let mut scene = Scene::with(&[]).await;
    configure(&mut scene.queue.admin, "h", &[]).await;
    let mut other = Member::new(scene.broker.client().await, "h", "b");
    other.join(&[Queue::TOPIC]).await;
    let at = scene.at;
    scene.work(40).await;
    other.fetch(&Ask::of(at)).await;
    assert_eq!(other.ack(at, 0, 39, ACCEPT).await, OK);
    let wanted = Counts {
        delivered: 40,
        ..Counts::default()
    };
    assert_eq!(counts(&scene.broker, "h"), wanted);
    scene.advance(BUCKET).await;
    assert_eq!(scene.queue.admin.delivery_line("h").await, "RUNNING - -1");
    let line = format!("PAUSED {TRIPPED} {}", START_MS + BUCKET);
    assert_eq!(scene.line().await, line);
}

#[tokio::test]
async fn another_threshold_holds_from_the_next_end_of_a_bucket_and_another_window_begins_anew() {
    let mut scene = Scene::with(&[(&breaker("threshold"), "0.3")]).await;
    scene.work(40).await;
    scene.advance(BUCKET + 1).await;
    scene
        .queue
        .configure(&[(&breaker("threshold"), "0.25")])
        .await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    scene
        .queue
        .configure(&[(&breaker("window.ms"), "30000")])
        .await;
    assert_eq!(scene.counts(), Counts::default());
    scene.advance(60_000).await;
    assert_eq!(scene.line().await, "RUNNING - -1");

    let mut scene = Scene::with(&[(&breaker("threshold"), "0.3")]).await;
    scene.work(40).await;
    scene.advance(BUCKET + 1).await;
    scene
        .queue
        .configure(&[(&breaker("threshold"), "0.25")])
        .await;
    scene.advance(BUCKET - 1).await;
    let line = format!("PAUSED {TRIPPED} {}", START_MS + 2 * BUCKET);
    assert_eq!(scene.line().await, line);
}

#[tokio::test]
async fn the_window_begins_when_the_breaker_is_switched_on() {
    let mut scene = Scene::with(&[(&breaker("enable"), "false")]).await;
    let at = scene.at;
    let first = scene.queue.produce(40).await;
    work(&mut scene.member, at, first, 40).await;
    while scene.queue.admin.end_offset(DLQ, 0).await < 10 {
        tokio::task::yield_now().await;
    }
    scene.advance(3000).await;
    assert_eq!(scene.counts(), Counts::default(), "nobody counts");
    scene.queue.configure(&[(&breaker("enable"), "true")]).await;
    assert_eq!(scene.counts(), Counts::default());
    scene.work(40).await;
    scene.advance(BUCKET - 1).await;
    assert_eq!(scene.line().await, "RUNNING - -1");
    scene.advance(1).await;
    let line = format!("PAUSED {TRIPPED} {}", START_MS + 3000 + BUCKET);
    assert_eq!(scene.line().await, line);
}
