//! Fetch sessions as a client sees them, with the answers that were measured on Kafka 4.4.0.

use bytes::Bytes;
use ottla_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use ottla_protocol::messages::fetch_response::FetchResponse;
use ottla_protocol::messages::{FetchRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_tests::{Client, Embedded, Settings, http};

/// The partitions of topic `t` that are asked for, each from an offset.
fn asked(topic: &str, wanted: &[(i32, i64)]) -> FetchTopic {
    let partitions = wanted.iter().map(|&(index, offset)| {
        FetchPartition::default()
            .with_partition(index)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(1 << 20)
    });
    FetchTopic::default()
        .with_topic(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(partitions.collect())
}

/// A request of a session that does not wait.
fn request(session: (i32, i32), topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest::default()
        .with_max_wait_ms(0)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_session_id(session.0)
        .with_session_epoch(session.1)
        .with_topics(topics)
}

fn forget(topic: &str, partitions: &[i32]) -> Vec<ForgottenTopic> {
    let topic = ForgottenTopic::default()
        .with_topic(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(partitions.to_vec());
    vec![topic]
}

/// Partition, error and number of bytes of each part of an answer.
fn parts(response: &FetchResponse) -> Vec<(i32, i16, usize)> {
    let all = response.responses.iter().flat_map(|t| &t.partitions);
    all.map(|p| {
        let bytes = p.records.as_ref().map_or(0, Bytes::len);
        (p.partition_index, p.error_code, bytes)
    })
    .collect()
}

fn indexes(response: &FetchResponse) -> Vec<i32> {
    parts(response).iter().map(|(index, ..)| *index).collect()
}

async fn start(partitions: i32) -> (Embedded, Client) {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", partitions).await;
    (broker, client)
}

/// Opens a session of the first `count` partitions of `t`, each from its start.
async fn open(client: &mut Client, count: i32) -> i32 {
    let wanted: Vec<_> = (0..count).map(|index| (index, 0)).collect();
    let response = client
        .call(12, &request((0, 0), vec![asked("t", &wanted)]))
        .await;
    assert_eq!(indexes(&response), (0..count).collect::<Vec<_>>());
    assert!(response.session_id > 0, "{response:?}");
    response.session_id
}

#[tokio::test]
async fn an_incremental_answer_holds_what_is_new_and_nothing_else() {
    let (_broker, mut client) = start(3).await;
    let id = open(&mut client, 3).await;
    let nothing = client.call(12, &request((id, 1), vec![])).await;
    assert_eq!((nothing.session_id, parts(&nothing)), (id, vec![]));
    client.produce_values("t", 1, &["a"]).await;
    let one = client.call(12, &request((id, 2), vec![])).await;
    assert_eq!(indexes(&one), [1]);
    // Not fetched on from there, so it comes again.
    let again = client.call(12, &request((id, 3), vec![])).await;
    assert_eq!(parts(&again), parts(&one));
    let on = request((id, 4), vec![asked("t", &[(1, 1)])]);
    assert_eq!(parts(&client.call(12, &on).await), []);
}

// C54
#[tokio::test]
async fn a_forgotten_partition_is_not_served_and_a_new_offset_is_honoured() {
    let (_broker, mut client) = start(3).await;
    for partition in 0..3 {
        client.produce_values("t", partition, &["a"]).await;
        client.produce_values("t", partition, &["b"]).await;
    }
    let id = open(&mut client, 3).await;
    let at_the_end = vec![asked("t", &[(0, 2), (1, 2), (2, 2)])];
    let response = client.call(12, &request((id, 1), at_the_end)).await;
    assert_eq!(parts(&response), []);
    client.produce_values("t", 0, &["c"]).await;
    let seek =
        request((id, 2), vec![asked("t", &[(2, 1)])]).with_forgotten_topics_data(forget("t", &[0]));
    let response = client.call(12, &seek).await;
    assert_eq!(indexes(&response), [2]);
    let records = response.responses[0].partitions[0].records.as_deref();
    assert_eq!(records.unwrap()[..8], 1i64.to_be_bytes());
    // Forgotten until it is asked for again.
    client.produce_values("t", 0, &["d"]).await;
    let back = request((id, 3), vec![asked("t", &[(0, 3), (2, 2)])]);
    assert_eq!(indexes(&client.call(12, &back).await), [0]);
}

#[tokio::test]
async fn a_session_without_partitions_is_over() {
    let (_broker, mut client) = start(1).await;
    let id = open(&mut client, 1).await;
    let last = request((id, 1), vec![]).with_forgotten_topics_data(forget("t", &[0]));
    let response = client.call(12, &last).await;
    assert_eq!((response.error_code, response.session_id), (0, 0));
    let gone = client.call(12, &request((id, 2), vec![])).await;
    assert_eq!(
        ErrorCode(gone.error_code),
        ErrorCode::FETCH_SESSION_ID_NOT_FOUND
    );
}

#[tokio::test]
async fn wrong_epochs_and_ids_are_refused_and_the_session_goes_on() {
    let (_broker, mut client) = start(1).await;
    let id = open(&mut client, 1).await;
    let cases = [
        ((id, 2), ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        ((id, i32::MAX), ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        ((id, -2), ErrorCode::INVALID_FETCH_SESSION_EPOCH),
        ((id ^ 1, 1), ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        ((0, 1), ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        ((-1, 1), ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
    ];
    for (session, code) in cases {
        let response = client.call(12, &request(session, vec![])).await;
        assert_eq!(ErrorCode(response.error_code), code, "{session:?}");
        assert_eq!((response.session_id, parts(&response)), (0, vec![]));
    }
    // By topic ids what was opened by names.
    let by_id = client.call(13, &request((id, 1), vec![])).await;
    let mixed = ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR;
    assert_eq!(ErrorCode(by_id.error_code), mixed);
    assert_eq!(
        client.call(12, &request((id, 1), vec![])).await.error_code,
        0
    );
}

#[tokio::test]
async fn a_full_request_ends_the_session_that_it_names() {
    let (_broker, mut client) = start(1).await;
    for epoch in [0, -1] {
        let id = open(&mut client, 1).await;
        let full = request((id, epoch), vec![asked("t", &[(0, 0)])]);
        let response = client.call(12, &full).await;
        assert_eq!(indexes(&response), [0]);
        assert_eq!(response.session_id != 0, epoch == 0);
        assert_ne!(response.session_id, id);
        let gone = client.call(12, &request((id, 1), vec![])).await;
        assert_eq!(
            ErrorCode(gone.error_code),
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND
        );
    }
}

// C31
#[tokio::test]
async fn partitions_take_turns_when_an_answer_holds_one_batch() {
    let (_broker, mut client) = start(3).await;
    for partition in 0..3 {
        for _ in 0..4 {
            client.produce_values("t", partition, &["x"]).await;
        }
    }
    let id = open(&mut client, 3).await;
    let mut positions = [4, 4, 4];
    let back = vec![asked("t", &[(0, 0), (1, 0), (2, 0)])];
    let mut next = request((id, 1), back);
    let mut served = vec![];
    positions.fill(0);
    for epoch in 2..8 {
        let response = client.call(12, &next.with_max_bytes(1)).await;
        let full: Vec<i32> = parts(&response)
            .iter()
            .filter(|(.., bytes)| *bytes > 0)
            .map(|(index, ..)| *index)
            .collect();
        assert_eq!(full.len(), 1, "one batch, whole");
        positions[full[0] as usize] += 1;
        let offset = positions[full[0] as usize];
        next = request((id, epoch), vec![asked("t", &[(full[0], offset)])]);
        served.extend(full);
    }
    let (first, second) = served.split_at(3);
    let mut each = first.to_vec();
    each.sort_unstable();
    assert_eq!((each, first), (vec![0, 1, 2], second), "{served:?}");
}

#[tokio::test]
async fn a_waiting_incremental_fetch_is_woken_by_any_of_its_partitions() {
    let (broker, mut client) = start(3).await;
    let id = open(&mut client, 3).await;
    let waits = request((id, 1), vec![]).with_max_wait_ms(i32::MAX);
    let sent = client.send(12, &waits).await;
    let mut producer = broker.client().await;
    producer.produce_values("t", 2, &["a"]).await;
    let response = client.receive(sent).await;
    assert_eq!(indexes(&response), [2]);
}

#[tokio::test]
async fn a_fetch_that_was_overtaken_in_its_session_is_told_so() {
    let (broker, mut client) = start(1).await;
    let id = open(&mut client, 1).await;
    let waits = request((id, 1), vec![]).with_max_wait_ms(i32::MAX);
    let sent = client.send(12, &waits).await;
    let mut other = broker.client().await;
    // Wait until the first request was taken.
    while other.call(12, &request((id, 2), vec![])).await.error_code != 0 {}
    other.produce_values("t", 0, &["a"]).await;
    let response = client.receive(sent).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::INVALID_FETCH_SESSION_EPOCH
    );
    let next = other.call(12, &request((id, 3), vec![])).await;
    assert_eq!(indexes(&next), [0]);
}

#[tokio::test]
async fn a_partition_that_is_not_there_is_named_each_time_and_does_not_end_the_wait_of_others() {
    let (broker, mut client) = start(1).await;
    let both = vec![asked("t", &[(0, 0)]), asked("nobody", &[(0, 0)])];
    let opened = client.call(12, &request((0, 0), both)).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0;
    assert_eq!(parts(&opened), [(0, 0, 0), (0, unknown, 0)]);
    let waits = request((opened.session_id, 1), vec![]).with_max_wait_ms(i32::MAX);
    let sent = client.send(12, &waits).await;
    broker.client().await.produce_values("t", 0, &["a"]).await;
    let woken = parts(&client.receive(sent).await);
    assert_eq!((woken.len(), woken[1]), (2, (0, unknown, 0)));
    // Alone it is answered at once.
    let alone = request((0, -1), vec![asked("nobody", &[(0, 0)])]).with_max_wait_ms(i32::MAX);
    assert_eq!(parts(&client.call(12, &alone).await), [(0, unknown, 0)]);
}

#[tokio::test]
async fn sessions_go_by_topic_ids_and_notice_a_topic_that_was_made_anew() {
    let (_broker, mut client) = start(1).await;
    let id = client.describe_topic("t", false).await.topic_id;
    let by_id = |id: Uuid| {
        asked("", &[(0, 0)])
            .with_topic_id(id)
            .with_topic(TopicName::default())
    };
    let opened = client.call(16, &request((0, 0), vec![by_id(id)])).await;
    assert_eq!(opened.responses[0].topic_id, id);
    let session = opened.session_id;
    client.produce_values("t", 0, &["a"]).await;
    let response = client.call(16, &request((session, 1), vec![])).await;
    assert_eq!(
        (indexes(&response), response.responses[0].topic_id),
        (vec![0], id)
    );
    client.delete_topic("t").await;
    client.create_topic("t", 1).await;
    let response = client.call(16, &request((session, 2), vec![])).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_ID.0;
    assert_eq!(parts(&response), [(0, unknown, 0)]);
}

// C53
#[tokio::test]
async fn a_client_that_opens_a_session_with_every_poll_costs_nobody_a_session() {
    let slots = "max.incremental.fetch.session.cache.slots";
    let broker = Settings::new().set(slots, "50").start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 3).await;
    let mine = open(&mut client, 3).await;
    let mut greedy = broker.client().await;
    let mut given = 0;
    for _ in 0..10_000 {
        let all = vec![asked("t", &[(0, 0), (1, 0), (2, 0)])];
        let response = greedy.call(12, &request((0, 0), all)).await;
        assert_eq!(
            (response.error_code, indexes(&response)),
            (0, vec![0, 1, 2])
        );
        given += usize::from(response.session_id != 0);
    }
    assert_eq!(given, 49);
    let still = client.call(12, &request((mine, 1), vec![])).await;
    assert_eq!((still.error_code, still.session_id), (0, mine));
    let metrics = http(broker.admin(), "GET", "/metrics").await.body;
    for line in [
        "ottla_num_incremental_fetch_sessions 50",
        "ottla_num_incremental_fetch_partitions_cached 150",
        "ottla_incremental_fetch_session_evictions_total 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    // Sessions that nobody uses give way after two minutes.
    broker.advance(121_000).await;
    assert!(open(&mut greedy, 3).await > 0);
}

#[tokio::test]
async fn a_broker_that_was_stopped_has_forgotten_its_sessions() {
    let broker = Settings::new().brokers(2).start().await;
    let mut client = broker.client_of(1).await;
    client.create_topic_on("t", &[&[1]]).await;
    let id = open(&mut client, 1).await;
    broker.stop_node(1).await;
    broker.start_node(1).await;
    let mut client = broker.client_of(1).await;
    let response = client.call(12, &request((id, 1), vec![])).await;
    assert_eq!(
        ErrorCode(response.error_code),
        ErrorCode::FETCH_SESSION_ID_NOT_FOUND
    );
}
