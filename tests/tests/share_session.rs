//! Share sessions: epochs, connections, the limit, forgotten partitions.

use ottla_protocol::ErrorCode;
use ottla_tests::{ACCEPT, Ask, At, Member, OK, Queue, RELEASE, Settings};

const NOT_FOUND: ErrorCode = ErrorCode::SHARE_SESSION_NOT_FOUND;
const BAD_EPOCH: ErrorCode = ErrorCode::INVALID_SHARE_SESSION_EPOCH;

#[tokio::test]
async fn fetches_and_acknowledgements_share_one_epoch() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(2)).await;
    assert_eq!(a.ack(queue.at, 0, 0, ACCEPT).await, OK);
    a.fetch(&Ask::new().exactly(1)).await;
    assert_eq!(a.ack(queue.at, 1, 1, ACCEPT).await, OK);
    assert_eq!(a.epoch, 4);
}

#[tokio::test]
async fn opening_a_session_again_keeps_its_locks() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let ask = Ask::of(queue.at).exactly(5);
    assert_eq!(a.fetch(&ask).await.acquired(queue.at), "0-4#1");
    a.epoch = 0;
    assert_eq!(a.fetch(&ask).await.acquired(queue.at), "5-9#1");
    assert_eq!(a.ack(queue.at, 0, 4, ACCEPT).await, OK);
}

// D22, D23
#[tokio::test]
async fn an_opening_fetch_with_acknowledgements_is_refused_and_the_session_stays() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(5)).await;
    let refused = a
        .fetch_at(0, &Ask::of(queue.at).ack(queue.at, 0, 4, ACCEPT))
        .await;
    assert_eq!(refused.error(), ErrorCode::INVALID_REQUEST);
    assert_eq!(
        a.ack(queue.at, 0, 4, ACCEPT).await,
        OK,
        "at the epoch of before"
    );
}

#[tokio::test]
async fn without_a_session_every_other_epoch_is_not_found() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    for epoch in [1, 5, -1] {
        assert_eq!(
            a.fetch_at(epoch, &Ask::of(queue.at)).await.error(),
            NOT_FOUND
        );
        assert_eq!(
            a.acknowledge_at(epoch, &Ask::new()).await.error(),
            NOT_FOUND
        );
    }
    assert_eq!(a.acknowledge_at(0, &Ask::new()).await.error(), BAD_EPOCH);
}

#[tokio::test]
async fn a_wrong_epoch_is_refused_and_the_expected_one_still_works() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(1)).await;
    for epoch in [2, 7, -2] {
        assert_eq!(a.fetch_at(epoch, &Ask::new()).await.error(), BAD_EPOCH);
        assert_eq!(
            a.acknowledge_at(epoch, &Ask::new()).await.error(),
            BAD_EPOCH
        );
    }
    assert_eq!(a.acknowledge_at(0, &Ask::new()).await.error(), BAD_EPOCH);
    assert_eq!(
        a.fetch(&Ask::new().exactly(1)).await.acquired(queue.at),
        "1-1#1"
    );
}

#[tokio::test]
async fn errors_of_partitions_use_an_epoch_up_and_errors_of_the_request_do_not() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at.p(9))).await;
    assert_eq!(a.epoch, 1);
    let nothing = a.acknowledge(&Ask::new()).await;
    assert_eq!(nothing.0.responses.len(), 0);
    assert_eq!(a.epoch, 2, "zero partitions");
    let refused = a.try_fetch(&Ask::new().renew_and_fetch()).await;
    assert_eq!(refused.error(), ErrorCode::INVALID_REQUEST);
    a.fetch(&Ask::new()).await;
    assert_eq!(a.epoch, 3);
}

// D17
#[tokio::test]
async fn closing_by_acknowledgement_applies_it_and_releases_the_rest() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(5)).await;
    let closing = a
        .acknowledge_at(-1, &Ask::new().ack(queue.at, 0, 1, ACCEPT))
        .await;
    assert_eq!(closing.of(queue.at), Some(OK));
    let mut b = queue.member("b").await;
    let fetched = b.fetch(&Ask::of(queue.at).exactly(10)).await;
    assert_eq!(fetched.acquired(queue.at), "2-4#2 5-9#1 10-11#1");
    assert_eq!(a.acknowledge_at(1, &Ask::new()).await.error(), NOT_FOUND);
}

// D17
#[tokio::test]
async fn closing_with_nothing_to_acknowledge_releases_all() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    a.close_session().await;
    let mut b = queue.member("b").await;
    let fetched = b.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.acquired(queue.at), "0-24#2");
}

#[tokio::test]
async fn closing_by_fetch_applies_acknowledgements_and_fetches_nothing() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(5)).await;
    let closing = a
        .fetch_at(-1, &Ask::new().ack(queue.at, 0, 1, ACCEPT))
        .await;
    assert_eq!(closing.error(), ErrorCode::NONE);
    assert_eq!(closing.acknowledge_error(queue.at), OK);
    assert_eq!(closing.acquired(queue.at), "");
    assert_eq!(a.fetch_at(1, &Ask::new()).await.error(), NOT_FOUND);
    let mut b = queue.member("b").await;
    let fetched = b.fetch(&Ask::of(queue.at).exactly(3)).await;
    assert_eq!(fetched.acquired(queue.at), "2-4#2");
}

#[tokio::test]
async fn closing_by_a_fetch_that_names_partitions_closes() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(5)).await;
    let closing = a.fetch_at(-1, &Ask::of(queue.at)).await;
    assert_eq!(closing.error(), ErrorCode::NONE);
    assert_eq!(closing.acquired(queue.at), "");
    assert_eq!(a.fetch_at(1, &Ask::new()).await.error(), NOT_FOUND);
}

// D18, D27
#[tokio::test]
async fn a_lost_connection_ends_its_session_at_once() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let mut b = queue.member("b").await;
    let sent = b.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    let (epoch, id) = (a.epoch, a.id.clone());
    drop(a);
    assert_eq!(b.receive_fetch(sent).await.acquired(queue.at), "0-24#2");
    let mut again = queue.stranger(&id).await;
    assert_eq!(again.fetch_at(epoch, &Ask::new()).await.error(), NOT_FOUND);
}

#[tokio::test]
async fn a_session_belongs_to_the_connection_that_opened_it() {
    let queue = Queue::filled(&[]).await;
    let mut opener = queue.member("a").await;
    opener.fetch(&Ask::of(queue.at).exactly(2)).await;
    let mut second = queue.stranger("a").await;
    second.epoch = opener.epoch;
    assert_eq!(second.ack(queue.at, 0, 0, ACCEPT).await, OK);
    opener.epoch = second.epoch;
    let open = queue.connections();
    drop(second);
    queue.until_connections(open - 1).await;
    assert_eq!(
        opener.ack(queue.at, 1, 1, ACCEPT).await,
        OK,
        "closing the second changes nothing"
    );

    let mut second = queue.stranger("a").await;
    second.epoch = opener.epoch;
    second.fetch(&Ask::new().exactly(1)).await;
    let open = queue.connections();
    drop(opener);
    queue.until_connections(open - 1).await;
    assert_eq!(second.try_fetch(&Ask::new()).await.error(), NOT_FOUND);
}

// D19
#[tokio::test]
async fn the_limit_of_sessions_refuses_new_ones_and_keeps_the_old() {
    let settings = Settings::new().set("group.share.max.share.sessions", "2");
    let mut queue = Queue::of(1, settings, &[]).await;
    queue.fill().await;
    let mut a = queue.member("a").await;
    let mut b = queue.member("b").await;
    let mut c = queue.member("c").await;
    let ask = Ask::of(queue.at).exactly(1);
    a.fetch(&ask).await;
    b.fetch(&ask).await;
    assert_eq!(
        c.try_fetch(&ask).await.error(),
        ErrorCode::SHARE_SESSION_LIMIT_REACHED
    );
    a.epoch = 0;
    assert_eq!(
        a.fetch(&ask).await.acquired(queue.at),
        "2-2#1",
        "an old one may open again"
    );
    assert_eq!(b.ack(queue.at, 1, 1, ACCEPT).await, OK);
    b.close_session().await;
    assert_eq!(c.fetch(&ask).await.acquired(queue.at), "3-3#1");
}

#[tokio::test]
async fn a_missing_group_or_member_is_an_invalid_request() {
    let queue = Queue::filled(&[]).await;
    let mut client = queue.broker.client().await;
    for (no_group, no_member) in [(true, false), (false, true)] {
        let mut fetch = Ask::of(queue.at).fetch_request("g", "a", 0);
        let mut acknowledge = Ask::new().acknowledge_request("g", "a", 1);
        if no_group {
            fetch.group_id = None;
            acknowledge.group_id = None;
        }
        if no_member {
            fetch.member_id = None;
            acknowledge.member_id = None;
        }
        let invalid = ErrorCode::INVALID_REQUEST.0;
        assert_eq!(client.call(2, &fetch).await.error_code, invalid);
        assert_eq!(client.call(2, &acknowledge).await.error_code, invalid);
    }
}

// D22
#[tokio::test]
async fn forgotten_partitions_are_not_fetched_and_keep_their_locks() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    queue.produce_to(0, 3).await;
    queue.produce_to(1, 3).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(p0).and(p1).exactly(500)).await;
    queue.produce_to(0, 1).await;
    queue.produce_to(1, 1).await;
    let fetched = a.fetch(&Ask::new().forget(p1)).await;
    assert_eq!(
        (fetched.acquired(p0), fetched.acquired(p1)),
        ("3-3#1".into(), String::new())
    );
    assert_eq!(a.ack(p1, 0, 0, ACCEPT).await, OK, "outside the session");
    let fetched = a.fetch(&Ask::new().ack(p1, 1, 1, ACCEPT)).await;
    assert_eq!(fetched.acknowledge_error(p1), OK);
    assert_eq!(fetched.acquired(p1), "3-3#1", "named again, fetched again");
    assert_eq!(a.ack(p1, 2, 3, ACCEPT).await, OK);
}

#[tokio::test]
async fn forgetting_twice_or_the_unknown_is_no_error() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(1)).await;
    let unknown = At {
        topic: ottla_protocol::Uuid::from_u128(1),
        partition: 3,
    };
    for _ in 0..2 {
        let ask = Ask::new()
            .forget(queue.at)
            .forget(unknown)
            .forget(queue.at.p(77));
        assert_eq!(a.fetch(&ask).await.listed(), []);
    }
}

#[tokio::test]
async fn a_partition_added_and_forgotten_by_an_opening_fetch_is_fetched() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let fetched = a
        .fetch(&Ask::of(queue.at).forget(queue.at).exactly(1))
        .await;
    assert_eq!(fetched.acquired(queue.at), "0-0#1");
}

// D27
#[tokio::test]
async fn a_session_without_partitions_may_be_kept_and_closed() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(5)).await;
    a.fetch(&Ask::new().forget(queue.at)).await;
    assert_eq!(a.fetch(&Ask::new()).await.listed(), []);
    a.close_session().await;
    let mut empty = queue.stranger("empty").await;
    empty.fetch(&Ask::new()).await;
    empty.close_session().await;
}

#[tokio::test]
async fn records_that_are_released_by_a_fetch_come_with_the_next() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).exactly(10)).await;
    let mut offsets = vec![];
    let mut ask = Ask::new().ack(queue.at, 0, 9, RELEASE).exactly(10);
    for _ in 0..3 {
        offsets.extend(a.fetch(&ask).await.offsets(queue.at));
        ask = Ask::new().exactly(10);
    }
    offsets.sort_unstable();
    assert_eq!(offsets, (0..25).collect::<Vec<i64>>());
}

// D53
#[tokio::test]
async fn an_operator_can_see_that_a_group_has_its_members() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    let _b = queue.member("b").await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    let ids: Vec<&str> = group.members.iter().map(|m| &*m.member_id).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[tokio::test]
async fn sessions_of_different_groups_do_not_meet() {
    let mut queue = Queue::filled(&[]).await;
    queue
        .admin
        .configure_group("other", &[("share.auto.offset.reset", "earliest")])
        .await;
    let mut a = queue.member("a").await;
    let mut same_id = Member::new(queue.broker.client().await, "other", "a");
    same_id.join(&[Queue::TOPIC]).await;
    for member in [&mut a, &mut same_id] {
        let fetched = member.fetch(&Ask::of(queue.at)).await;
        assert_eq!(fetched.acquired(queue.at), "0-24#1");
    }
    a.close_session().await;
    assert_eq!(same_id.ack(queue.at, 0, 24, ACCEPT).await, OK);
}
