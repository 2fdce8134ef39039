//! What an answer says of several partitions, of empty and of unknown ones.

use ottla_protocol::ErrorCode;
use ottla_tests::{
    ACCEPT, Ask, At, Member, OK, Queue, Settings, ShareFetched, bare, batch_of, says,
};

/// One line a fetch: the partitions that gave records.
fn served(fetched: &ShareFetched, at: At, partitions: i32) -> String {
    let mut line = vec![];
    for partition in 0..partitions {
        let acquired = fetched.acquired(at.p(partition));
        if !acquired.is_empty() {
            line.push(format!("p{partition} {acquired}"));
        }
    }
    line.join("; ")
}

async fn three_partitions() -> (Queue, Member, Ask) {
    let mut queue = Queue::of(3, Settings::new(), &[]).await;
    for partition in 0..3 {
        queue.produce_to(partition, 10).await;
    }
    let member = queue.member("a").await;
    let ask = (0..3).fold(Ask::new(), |ask, p| ask.and(queue.at.p(p)));
    (queue, member, ask)
}

// D22
#[tokio::test]
async fn partitions_of_a_session_take_turns() {
    let (queue, mut a, ask) = three_partitions().await;
    let mut lines = vec![served(
        &a.fetch(&ask.max_records(5).mode(1)).await,
        queue.at,
        3,
    )];
    for _ in 0..5 {
        let fetched = a.fetch(&Ask::new().exactly(5)).await;
        lines.push(served(&fetched, queue.at, 3));
    }
    assert_eq!(lines[0], "p0 0-4#1");
    let first_half = &lines[..4];
    for partition in 0..3 {
        let first = format!("p{partition} 0-4#1");
        assert!(first_half.contains(&first), "{first} starved: {lines:?}");
    }
    lines.sort();
    let expected = [
        "p0 0-4#1", "p0 5-9#1", "p1 0-4#1", "p1 5-9#1", "p2 0-4#1", "p2 5-9#1",
    ];
    assert_eq!(
        lines, expected,
        "each fetch serves one partition, and each record comes once"
    );
}

#[tokio::test]
async fn whole_batches_of_several_partitions_take_turns_too() {
    let (queue, mut a, ask) = three_partitions().await;
    let mut lines = vec![served(&a.fetch(&ask.max_records(5)).await, queue.at, 3)];
    for _ in 0..2 {
        let fetched = a.fetch(&Ask::new().max_records(5)).await;
        lines.push(served(&fetched, queue.at, 3));
    }
    assert_eq!(lines, ["p0 0-9#1", "p1 0-9#1", "p2 0-9#1"]);
}

#[tokio::test]
async fn one_read_stops_at_a_segment_border() {
    let mut queue = Queue::start().await;
    queue
        .admin
        .alter_configs(2, Queue::TOPIC, &[("segment.bytes", "1048576")])
        .await;
    let large = "x".repeat(700_000);
    let at = queue.admin.timestamp;
    for _ in 0..2 {
        let answer = queue
            .admin
            .produce(Queue::TOPIC, 0, batch_of(at, &[&large]))
            .await;
        assert_eq!(answer.error_code, 0);
    }
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-0#1"
    );
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "1-1#1");
}

#[tokio::test]
async fn partitions_with_nothing_to_say_are_left_out_after_the_first_fetch() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    let mut a = queue.member("a").await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    let first = a.fetch(&Ask::of(p0).and(p1)).await;
    assert_eq!(first.listed(), [p0, p1], "named by the request");
    assert_eq!(a.fetch(&Ask::new()).await.listed(), []);
    queue.produce_to(1, 1).await;
    assert_eq!(a.fetch(&Ask::new()).await.listed(), [p1], "has records");
    let with_ack = a.fetch(&Ask::new().ack(p1, 0, 0, ACCEPT)).await;
    assert_eq!(with_ack.listed(), [p1], "carried an acknowledgement");
    assert_eq!(with_ack.acknowledge_error(p1), OK);
}

// D41, C23
#[tokio::test]
async fn records_of_an_empty_partition_are_empty_and_not_null() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    queue.produce_to(1, 3).await;
    let mut a = queue.member("a").await;
    let (p0, p1) = (queue.at, queue.at.p(1));
    for version in [1, 2] {
        let ask = Ask::of(p0).and(p1);
        let ask = if version == 1 { ask.v1() } else { ask };
        a.epoch = 0;
        let fetched = a.fetch(&ask).await;
        for at in [p0, p1] {
            let data = fetched.partition(at).map(|p| p.records.is_some());
            assert_eq!(data, Some(true), "{fetched:?}");
        }
    }
    let failed = a
        .fetch(&Ask::of(At {
            topic: ottla_protocol::Uuid::from_u128(7),
            partition: 0,
        }))
        .await;
    let all = failed.0.responses.iter().flat_map(|t| &t.partitions);
    assert!(all.clone().count() > 0 && all.clone().all(|p| p.records.is_some()));
}

#[tokio::test]
async fn membership_is_not_checked_once_the_group_has_initialised_the_partition() {
    let queue = Queue::filled(&[]).await;
    queue.member("a").await;
    let mut stranger = queue.stranger("not even a uuid, and never joined").await;
    let fetched = stranger.fetch(&Ask::of(queue.at).exactly(5)).await;
    assert_eq!(fetched.acquired(queue.at), "0-4#1");
    assert_eq!(stranger.ack(queue.at, 0, 4, ACCEPT).await, OK);
}

// Kafka says UNKNOWN_SERVER_ERROR and nothing more.
#[tokio::test]
async fn a_group_that_was_never_initialised_is_told_so_by_partition_on_each_fetch() {
    let queue = Queue::filled(&[]).await;
    let uninitialised = says(
        ErrorCode::INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    );
    let mut stranger = Member::new(queue.broker.client().await, "never", "a");
    let fetched = stranger.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.fetch_error(queue.at), uninitialised);
    let again = stranger.fetch(&Ask::new()).await;
    assert_eq!(again.fetch_error(queue.at), uninitialised);
    let mut nameless = Member::new(queue.broker.client().await, "", "a");
    let fetched = nameless.fetch(&Ask::of(queue.at)).await;
    assert_eq!(
        fetched.fetch_error(queue.at).0,
        ErrorCode::INVALID_REQUEST.0
    );
}

#[tokio::test]
async fn unknown_topics_and_partitions_fail_on_each_fetch_until_they_are_forgotten() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let no_topic = At {
        topic: ottla_protocol::Uuid::from_u128(0xdead),
        partition: 0,
    };
    let no_partition = queue.at.p(9);
    let first = a
        .fetch(&Ask::of(queue.at).and(no_topic).and(no_partition).exactly(1))
        .await;
    assert_eq!(
        first.acquired(queue.at),
        "0-0#1",
        "a good partition is served beside them"
    );
    for fetched in [first, a.fetch(&Ask::new().exactly(1)).await] {
        assert_eq!(
            fetched.fetch_error(no_topic),
            bare(ErrorCode::UNKNOWN_TOPIC_ID)
        );
        let unknown = bare(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        assert_eq!(fetched.fetch_error(no_partition), unknown);
    }
    let ask = Ask::new().forget(no_topic).forget(no_partition).exactly(1);
    assert_eq!(a.fetch(&ask).await.listed(), [queue.at]);
}
