//! When a fetch that found nothing to acquire is answered.

use ottla_protocol::ErrorCode;
use ottla_tests::{ACCEPT, Ask, OK, Queue, RELEASE, Settings, bare, values};

#[tokio::test]
async fn with_nothing_to_acquire_the_answer_comes_after_the_wait() {
    let queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let fetched = a.fetch(&Ask::of(queue.at).max_wait(40)).await;
    assert_eq!(fetched.acquired(queue.at), "");
    assert_eq!(a.fetch(&Ask::new().max_wait(40)).await.listed(), []);
}

#[tokio::test]
async fn a_produce_answers_a_waiting_fetch() {
    let mut queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let sent = a.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.produce(3).await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(queue.at), "0-2#1");
    assert_eq!(
        values(&fetched.records(queue.at)),
        ["value 0", "value 1", "value 2"]
    );
}

#[tokio::test]
async fn an_expired_lock_answers_a_waiting_fetch() {
    let queue = Queue::filled(&[("share.record.lock.duration.ms", "1000")]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.broker.advance(999).await;
    queue.parked(queue.at, 1).await;
    queue.broker.advance(1).await;
    assert_eq!(
        b.receive_fetch(sent).await.offsets(queue.at).len(),
        25,
        "all of them at once"
    );
}

// Kafka lets it wait for MaxWaitMs.
#[tokio::test]
async fn a_release_answers_a_waiting_fetch() {
    for (first, last) in [(0, 24), (0, 9), (20, 24), (7, 7)] {
        let queue = Queue::filled(&[]).await;
        let mut a = queue.member("a").await;
        a.fetch(&Ask::of(queue.at)).await;
        let mut b = queue.member("b").await;
        let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
        queue.parked(queue.at, 1).await;
        assert_eq!(a.ack(queue.at, first, last, RELEASE).await, OK);
        let released: Vec<i64> = (first..=last).collect();
        assert_eq!(b.receive_fetch(sent).await.offsets(queue.at), released);
    }
}

// Kafka lets it wait for MaxWaitMs. D18
#[tokio::test]
async fn a_disconnect_answers_a_waiting_fetch() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    drop(a);
    let fetched = b.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(queue.at), "0-24#2");
}

#[tokio::test]
async fn a_closed_session_answers_a_waiting_fetch() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    a.close_session().await;
    assert_eq!(b.receive_fetch(sent).await.acquired(queue.at), "0-24#2");
}

#[tokio::test]
async fn room_in_the_window_answers_a_waiting_fetch() {
    let mut queue = Queue::with(&[("share.partition.max.record.locks", "100")]).await;
    for _ in 0..12 {
        queue.produce(10).await;
    }
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
    assert_eq!(b.receive_fetch(sent).await.acquired(queue.at), "100-109#1");
}

#[tokio::test]
async fn a_deleted_topic_answers_a_waiting_fetch() {
    let mut queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let sent = a.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.admin.delete_topic(Queue::TOPIC).await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(
        fetched.fetch_error(queue.at),
        bare(ErrorCode::UNKNOWN_TOPIC_ID)
    );
}

#[tokio::test]
async fn too_few_bytes_wait_and_then_come_anyway() {
    let mut queue = Queue::start().await;
    queue.produce(2).await;
    let mut a = queue.member("a").await;
    let ask = Ask::of(queue.at).min_bytes(1_000_000);
    assert_eq!(
        a.fetch(&ask.max_wait(40)).await.acquired(queue.at),
        "0-1#1",
        "after the wait, what there is"
    );
    let sent = a
        .send_fetch(&Ask::new().min_bytes(1_000_000).patient())
        .await;
    queue.parked(queue.at, 1).await;
    queue.produce(2).await;
    queue.parked(queue.at, 1).await;
    let large = "x".repeat(1_000_000);
    queue
        .admin
        .produce_values(Queue::TOPIC, 0, &[large.as_str()])
        .await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(queue.at), "2-4#1");
}

#[tokio::test]
async fn a_full_window_counts_for_no_bytes() {
    let mut queue = Queue::of(
        2,
        Settings::new(),
        &[("share.partition.max.record.locks", "100")],
    )
    .await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    for _ in 0..11 {
        queue.produce_to(1, 10).await;
    }
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(p1)).await;
    queue.produce_to(0, 1).await;
    for ask in [Ask::new().and(p0), Ask::new()] {
        let ask = ask.min_bytes(100_000).max_wait(30);
        let fetched = a.fetch(&ask).await;
        assert_eq!(fetched.acquired(p1), "");
    }
}

// D24
#[tokio::test]
async fn acknowledgements_of_another_connection_are_heard_while_a_fetch_waits() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let sent = a.send_fetch(&Ask::new().patient()).await;
    queue.parked(queue.at, 1).await;
    // The same member, over another connection, at the session's next epoch.
    let mut second = queue.stranger("a").await;
    second.epoch = a.epoch + 1;
    assert_eq!(second.ack(queue.at, 0, 9, ACCEPT).await, OK);
    assert_eq!(second.ack(queue.at, 10, 24, ACCEPT).await, OK);
    queue.produce(1).await;
    assert_eq!(a.receive_fetch(sent).await.acquired(queue.at), "25-25#1");
    assert_eq!(a.client.end_offset(Queue::TOPIC, 0).await, 26);
}
