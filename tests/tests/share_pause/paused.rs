//! What a paused group does, and what it does not.

use ottla_protocol::ErrorCode;
use ottla_tests::{ACCEPT, Ask, OK, Queue, REJECT, RELEASE};

use super::{at, pause, records, resume};

// D51
#[tokio::test]
async fn nothing_is_acquired_and_no_state_or_count_changes() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(at(&queue)).exactly(5))
            .await
            .acquired(at(&queue)),
        "0-4#1"
    );
    assert_eq!(a.ack(at(&queue), 0, 2, RELEASE).await, OK);
    let before = records(&queue);
    pause(&mut queue).await;
    for id in ["b", "c"] {
        let mut member = queue.member(id).await;
        for _ in 0..3 {
            let fetched = member.fetch(&Ask::of(at(&queue)).max_wait(1)).await;
            assert_eq!(fetched.acquired(at(&queue)), "");
        }
        member.close_session().await;
    }
    assert_eq!(records(&queue), before);
    assert_eq!(queue.start_and_lag().await, (0, 25));
    resume(&mut queue).await;
    let mut d = queue.member("d").await;
    let fetched = d.fetch(&Ask::of(at(&queue))).await;
    assert_eq!(fetched.acquired(at(&queue)), "0-2#2 5-9#1 10-24#1");
}

#[tokio::test]
async fn members_stay_and_heartbeat_and_others_join() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    pause(&mut queue).await;
    assert_eq!(a.beat().await.error_code, 0);
    let _b = queue.member("b").await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!((&*group.group_state, group.members.len()), ("Stable", 2));
    queue.broker.advance_holding_sessions(600_000).await;
    assert_eq!(a.beat().await.error_code, 0);
}

#[tokio::test]
async fn a_fetch_waits_its_time_and_a_resume_wakes_it_at_once() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    pause(&mut queue).await;
    let at = at(&queue);
    let empty = a.fetch(&Ask::of(at).max_wait(20)).await;
    assert_eq!(empty.acquired(at), "");
    let sent = a.send_fetch(&Ask::new().patient()).await;
    queue.parked(at, 1).await;
    resume(&mut queue).await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(fetched.acquired(at), "0-24#1");
}

#[tokio::test]
async fn a_pause_reaches_a_fetch_that_already_waits() {
    let mut queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    let sent = a.send_fetch(&Ask::of(at).patient()).await;
    queue.parked(at, 1).await;
    pause(&mut queue).await;
    queue.produce(3).await;
    queue.parked(at, 1).await;
    resume(&mut queue).await;
    assert_eq!(a.receive_fetch(sent).await.acquired(at), "0-2#1");
}

#[tokio::test]
async fn records_that_are_held_can_be_accepted_released_rejected_and_renewed() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    a.fetch(&Ask::of(at).exactly(10)).await;
    pause(&mut queue).await;
    assert_eq!(a.ack(at, 0, 1, ACCEPT).await, OK);
    assert_eq!(a.ack(at, 2, 3, RELEASE).await, OK);
    assert_eq!(a.ack(at, 4, 5, REJECT).await, OK);
    assert_eq!(a.renew(at, 6, 7).await, OK);
    assert_eq!(queue.start_and_lag().await.0, 2);
    assert_eq!(a.ack(at, 6, 9, ACCEPT).await, OK);
    resume(&mut queue).await;
    let fetched = a.fetch(&Ask::new()).await;
    assert_eq!(fetched.acquired(at), "2-3#2 10-24#1");
}

#[tokio::test]
async fn acknowledgements_that_ride_along_are_taken_while_the_fetch_waits() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    a.fetch(&Ask::of(at).exactly(10)).await;
    pause(&mut queue).await;
    // As many bytes as there are would be enough for an answer at once.
    let ask = Ask::new().ack(at, 0, 4, ACCEPT).min_bytes(10);
    let fetched = a.fetch(&ask.max_wait(20)).await;
    assert_eq!(
        (fetched.acquired(at), fetched.acknowledge_error(at)),
        (String::new(), OK)
    );
    assert_eq!(queue.start_and_lag().await.1, 20);
    let ask = Ask::new().ack(at, 5, 7, ACCEPT).ack(at, 8, 9, RELEASE);
    let sent = a.send_fetch(&ask.min_bytes(10).patient()).await;
    queue.parked(at, 1).await;
    assert_eq!(queue.start_and_lag().await.1, 17, "before the answer");
    resume(&mut queue).await;
    let fetched = a.receive_fetch(sent).await;
    assert_eq!(fetched.acknowledge_error(at), OK);
    assert_eq!(fetched.acquired(at), "8-9#2 10-24#1");
}

#[tokio::test]
async fn locks_expire_while_paused_and_the_resume_delivers_what_they_held() {
    let mut queue = Queue::filled(&[("share.record.lock.duration.ms", "1000")]).await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    a.fetch(&Ask::of(at).exactly(10)).await;
    pause(&mut queue).await;
    queue.broker.advance(1000).await;
    let told = a.ack(at, 0, 0, ACCEPT).await;
    assert_eq!(told.0, ErrorCode::INVALID_RECORD_STATE.0);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(at), "");
    resume(&mut queue).await;
    assert_eq!(a.fetch(&Ask::new().exactly(10)).await.acquired(at), "0-9#2");
}

#[tokio::test]
async fn a_partition_that_is_loaded_while_paused_delivers_nothing() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    pause(&mut queue).await;
    let at = at(&queue);
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "");
    resume(&mut queue).await;
    assert_eq!(a.fetch(&Ask::new().exactly(1)).await.acquired(at), "0-0#1");
}

#[tokio::test]
async fn another_group_is_not_concerned() {
    let mut queue = Queue::filled(&[]).await;
    let _a = queue.member("a").await;
    pause(&mut queue).await;
    let configs = [("share.auto.offset.reset", "earliest")];
    queue.admin.configure_group("h", &configs).await;
    let mut other = ottla_tests::Member::new(queue.broker.client().await, "h", "b");
    other.join(&[Queue::TOPIC]).await;
    let fetched = other.fetch(&Ask::of(at(&queue)).exactly(2)).await;
    assert_eq!(fetched.acquired(at(&queue)), "0-1#1");
    assert_eq!(queue.admin.delivery_line("h").await, "RUNNING - -1");
}
