//! The ways into a pause and out of it, and what is shown.

use ottla_tests::{Ask, OK, Queue, START_MS};

use super::{PAUSED, at, contains, pause, resume};

async fn tags(queue: &mut Queue) -> Vec<(i32, String)> {
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    let read = |bytes: &bytes::Bytes| String::from_utf8_lossy(&bytes[1..]).into_owned();
    let tags = group.unknown_tagged_fields.iter();
    tags.map(|(tag, value)| (*tag, read(value))).collect()
}

fn tag(number: i32, text: &str) -> (i32, String) {
    (number, text.to_owned())
}

#[tokio::test]
async fn a_pause_is_shown_with_reason_time_and_note() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    assert_eq!(tags(&mut queue).await, [tag(9000, "RUNNING")]);
    queue.broker.advance_holding_sessions(1234).await;
    assert_eq!(queue.admin.pause(Queue::GROUP, Some("why")).await, OK);
    let shown = queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.paused_since_ms, START_MS + 1234);
    assert_eq!(shown.note.as_deref(), Some("why"));
    assert_eq!(shown.pause_reason.as_deref(), Some("ADMIN"));
    assert!(!shown.tripped);
    let told = tags(&mut queue).await;
    assert_eq!(
        (&told[0], &told[1]),
        (&tag(9000, "PAUSED"), &tag(9001, "ADMIN"))
    );
    assert_eq!((told[2].0, &told[3]), (9002, &tag(9004, "why")));
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    let since = (START_MS + 1234).to_be_bytes();
    assert_eq!(group.unknown_tagged_fields[&9002][..], since);
}

#[tokio::test]
async fn a_second_pause_changes_the_note_alone() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    pause(&mut queue).await;
    queue.broker.advance_holding_sessions(1000).await;
    assert_eq!(queue.admin.pause(Queue::GROUP, None).await, OK);
    let shown = queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.paused_since_ms, START_MS);
    assert_eq!(shown.note.as_deref(), Some(""));
}

#[tokio::test]
async fn what_was_said_at_the_last_resume_is_shown() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    assert_eq!(
        queue.admin.delivery(Queue::GROUP).await.last_resume_reason,
        None
    );
    pause(&mut queue).await;
    resume(&mut queue).await;
    let shown = queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.last_resume_reason.as_deref(), Some("done"));
    assert_eq!(
        (&*shown.delivery_state, shown.pause_reason),
        ("RUNNING", None)
    );
    assert_eq!(
        tags(&mut queue).await,
        [tag(9000, "RUNNING"), tag(9003, "done")]
    );
}

#[tokio::test]
async fn the_config_pauses_a_group_that_has_no_member_yet() {
    let mut queue = Queue::filled(&[(PAUSED, "true")]).await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "");
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        "PAUSED ADMIN -1"
    );
    let sent = a.send_fetch(&Ask::new().patient()).await;
    queue.parked(at, 1).await;
    queue.configure(&[(PAUSED, "false")]).await;
    assert_eq!(a.receive_fetch(sent).await.acquired(at), "0-24#1");
}

#[tokio::test]
async fn the_config_is_resumed_by_the_config_alone() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    queue.configure(&[(PAUSED, "true")]).await;
    let (code, text) = queue.admin.resume(Queue::GROUP, None).await;
    assert_eq!(code, ottla_protocol::ErrorCode::INVALID_REQUEST.0);
    assert!(contains(text.as_ref(), PAUSED), "{text:?}");
    queue.configure(&[(PAUSED, "false")]).await;
    let shown = queue.admin.delivery(Queue::GROUP).await;
    assert_eq!(&*shown.delivery_state, "RUNNING");
    assert_eq!(shown.last_resume_reason.as_deref(), Some(PAUSED));
}

#[tokio::test]
async fn switching_the_config_off_ends_an_administrators_pause_too() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    pause(&mut queue).await;
    queue.configure(&[(PAUSED, "false")]).await;
    let line = format!("PAUSED ADMIN {START_MS}");
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        line,
        "it was not on"
    );
    queue.configure(&[(PAUSED, "true")]).await;
    assert_eq!(queue.admin.delivery_line(Queue::GROUP).await, line);
    queue.configure(&[(PAUSED, "false")]).await;
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        "RUNNING - -1"
    );
}

#[tokio::test]
async fn metrics_say_who_is_paused_and_why() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    let line = r#"ottla_share_group_delivery_paused{group="g",reason="ADMIN"} 1"#;
    let metrics = async |queue: &Queue| {
        ottla_tests::http(queue.broker.admin(), "GET", "/metrics")
            .await
            .body
    };
    assert!(!metrics(&queue).await.contains(line));
    pause(&mut queue).await;
    assert!(metrics(&queue).await.contains(line));
    resume(&mut queue).await;
    assert!(!metrics(&queue).await.contains(line));
}
