//! Where a share group begins, what an operator sees of its offsets, and what happens when they are
//! altered or deleted, or when records and topics go.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::alter_share_group_offsets_response::AlterShareGroupOffsetsResponse;
use ottla_tests::{ACCEPT, Ask, At, OK, Queue, RELEASE, Settings, bare, batch_of, says};

const NOT_CACHED: &str =
    "Batch record not found. The request batch offsets are not found in the cache.";
const MINUTE_MS: i64 = 60_000;

// --- share.auto.offset.reset -----------------------------------------------------------------

#[tokio::test]
async fn latest_is_decided_by_the_first_fetch_and_not_by_the_join() {
    let mut queue = Queue::with(&[("share.auto.offset.reset", "latest")]).await;
    let mut a = queue.member("a").await;
    queue.produce(5).await;
    assert_eq!(a.fetch(&Ask::of(queue.at)).await.acquired(queue.at), "");
    queue.produce(5).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "5-9#1");
}

#[tokio::test]
async fn latest_is_the_default() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = ottla_tests::Member::new(queue.broker.client().await, "other", "a");
    a.join(&[Queue::TOPIC]).await;
    assert_eq!(a.fetch(&Ask::of(queue.at)).await.acquired(queue.at), "");
    queue.produce(1).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "25-25#1");
}

#[tokio::test]
async fn earliest_is_the_start_of_the_log() {
    let mut queue = Queue::filled(&[]).await;
    queue.admin.delete_records(Queue::TOPIC, 0, 12).await;
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "12-19#1 20-24#1"
    );
}

/// Records of 3 h, 90 min, 20 min and 0 min ago; what a group that begins by `reset` gets.
async fn begins(reset: &str) -> String {
    let mut queue = Queue::with(&[("share.auto.offset.reset", reset)]).await;
    for minutes in [180, 90, 20, 0] {
        let at = queue.broker.now() - minutes * MINUTE_MS;
        let answer = queue
            .admin
            .produce(Queue::TOPIC, 0, batch_of(at, &["x"]))
            .await;
        assert_eq!(answer.error_code, 0, "{answer:?}");
    }
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await.acquired(queue.at)
}

#[tokio::test]
async fn a_duration_begins_at_the_first_record_that_is_young_enough() {
    for (reset, expected) in [
        ("by_duration:PT30M", "2-3#1"),
        ("by_duration:PT2H", "1-3#1"),
        ("by_duration:P1D", "0-3#1"),
        ("by_duration:P9999D", "0-3#1"),
        ("by_duration:PT1S", "3-3#1"),
    ] {
        assert_eq!(begins(reset).await, expected, "{reset}");
    }
}

#[tokio::test]
async fn other_reset_policies_are_refused() {
    let mut queue = Queue::start().await;
    for value in ["none", "EARLIEST", "by_duration:-PT1H", "by_duration:1h"] {
        let configs = [("share.auto.offset.reset", value)];
        let answer = queue.admin.alter_configs(32, Queue::GROUP, &configs).await;
        assert_eq!(
            answer.error_code,
            ErrorCode::INVALID_CONFIG.0,
            "{value}: {answer:?}"
        );
    }
    let configs = [("share.isolation.level", "serializable")];
    let answer = queue.admin.alter_configs(32, Queue::GROUP, &configs).await;
    assert_eq!(answer.error_code, ErrorCode::INVALID_CONFIG.0);
    let text = answer.error_message.unwrap_or_default();
    assert!(
        text.contains("String must be one of: read_committed, read_uncommitted"),
        "{text}"
    );
}

#[tokio::test]
async fn read_committed_delivers_plain_records_as_well() {
    let queue = Queue::filled(&[("share.isolation.level", "read_committed")]).await;
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-24#1"
    );
}

// D32
#[tokio::test]
async fn partitions_that_are_added_to_a_topic_are_read_from_their_start() {
    let mut queue = Queue::with(&[("share.auto.offset.reset", "latest")]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    queue.admin.grow_topic(Queue::TOPIC, 2).await;
    queue.produce_to(1, 5).await;
    let answer = a.beat().await;
    let assigned = answer.assignment.map(|a| a.topic_partitions);
    let partitions = assigned.unwrap_or_default().swap_remove(0).partitions;
    assert_eq!(partitions, [0, 1]);
    let fetched = a.fetch(&Ask::of(queue.at.p(1))).await;
    assert_eq!(fetched.acquired(queue.at.p(1)), "0-4#1");
}

// --- Describe --------------------------------------------------------------------------------

#[tokio::test]
async fn offsets_are_unknown_until_something_was_written() {
    let mut queue = Queue::filled(&[]).await;
    assert_eq!(queue.start_and_lag().await, (-1, -1), "no such group");
    let mut a = queue.member("a").await;
    assert_eq!(queue.start_and_lag().await, (-1, -1), "initialised");
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(queue.start_and_lag().await, (-1, -1), "acquired");
    assert_eq!(a.ack(queue.at, 3, 3, RELEASE).await, OK);
    assert_eq!(queue.start_and_lag().await, (0, 25));
}

#[tokio::test]
async fn the_stored_start_offset_trails_by_one_write() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 1, ACCEPT).await, OK);
    assert_eq!(queue.start_and_lag().await, (0, 23));
    assert_eq!(a.ack(queue.at, 2, 2, ACCEPT).await, OK);
    assert_eq!(queue.start_and_lag().await, (2, 22));
}

#[tokio::test]
async fn describing_the_unknown_is_no_error() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 1, ACCEPT).await, OK);
    let known = (Queue::GROUP, Queue::TOPIC, 0);
    for (group, topic, partition) in [
        ("nobody", known.1, 0),
        (known.0, "nothing", 0),
        (known.0, known.1, 7),
    ] {
        let found = queue.admin.start_and_lag(group, topic, partition).await;
        assert_eq!(found, (-1, -1), "{group} {topic} {partition}");
    }
    let unknown = queue
        .admin
        .describe_share_offsets(Queue::GROUP, Some(&[("nothing", &[0])]))
        .await;
    assert!(unknown.topics[0].topic_id.is_nil());
    let all = queue.admin.describe_share_offsets(Queue::GROUP, None).await;
    let names: Vec<_> = all
        .topics
        .iter()
        .map(|t| t.topic_name.to_string())
        .collect();
    assert_eq!(names, [Queue::TOPIC]);
    assert_eq!(all.topics[0].partitions[0].lag, 23);
    let none = queue.admin.describe_share_offsets("nobody", None).await;
    assert_eq!((none.error_code, none.topics.len()), (0, 0));
}

// --- Alter -----------------------------------------------------------------------------------

fn altered(answer: &AlterShareGroupOffsetsResponse) -> (i16, Option<String>) {
    let text = answer.error_message.as_ref().map(ToString::to_string);
    (answer.error_code, text)
}

#[tokio::test]
async fn offsets_of_a_group_with_members_cannot_be_altered_or_deleted() {
    let mut queue = Queue::filled(&[]).await;
    let _a = queue.member("a").await;
    let not_empty = says(ErrorCode::NON_EMPTY_GROUP, "The group is not empty.");
    let (group, topic) = (Queue::GROUP, Queue::TOPIC);
    let answer = queue.admin.try_alter_share_offset(group, topic, 0, 1).await;
    assert_eq!(altered(&answer), not_empty);
    let answer = queue.admin.delete_share_offsets(group, topic).await;
    let text = answer.error_message.map(|text| text.to_string());
    assert_eq!((answer.error_code, text), not_empty);
}

// D34
#[tokio::test]
async fn any_offset_is_stored_unchecked() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.leave().await;
    for (offset, lag) in [(7, 18), (25, 0), (1000, -975), (-1, -1), (-5, 30)] {
        queue
            .admin
            .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, offset)
            .await;
        assert_eq!(queue.start_and_lag().await, (offset, lag));
    }
}

#[tokio::test]
async fn altering_what_does_not_exist_fails_by_partition() {
    let mut queue = Queue::start().await;
    for (topic, partition) in [("nothing", 0), (Queue::TOPIC, 5)] {
        let answer = queue
            .admin
            .try_alter_share_offset(Queue::GROUP, topic, partition, 1)
            .await;
        assert_eq!(answer.error_code, 0);
        let result = &answer.responses[0].partitions[0];
        assert_eq!(
            result.error_code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0,
            "{answer:?}"
        );
    }
}

// D33
#[tokio::test]
async fn offsets_can_be_set_before_the_groups_first_use() {
    let mut queue = Queue::filled(&[]).await;
    queue
        .admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 11)
        .await;
    assert_eq!(
        queue.admin.list_groups(&[], &[]).await,
        ["g share Empty share"]
    );
    assert_eq!(queue.start_and_lag().await, (11, 14));
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "11-19#1 20-24#1"
    );
}

// Kafka serves the old offset until a write is fenced or the connection closes.
#[tokio::test]
async fn altered_offsets_hold_at_once_on_a_loaded_partition() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK);
    a.leave().await;
    for (offset, expected) in [
        (19, "19-19#1 20-24#1"),
        (7, "7-9#1 10-24#1"),
        (-1, "0-24#1"),
    ] {
        queue
            .admin
            .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, offset)
            .await;
        a.join(&[Queue::TOPIC]).await;
        let acquired = a.fetch(&Ask::new()).await.acquired(queue.at);
        assert_eq!(
            acquired, expected,
            "{offset}: same session, same connection"
        );
        a.leave().await;
    }
}

#[tokio::test]
async fn altered_offsets_answer_a_waiting_fetch() {
    let mut queue = Queue::filled(&[("share.auto.offset.reset", "latest")]).await;
    let mut a = queue.member("a").await;
    let sent = a.send_fetch(&Ask::of(queue.at).patient()).await;
    queue.parked(queue.at, 1).await;
    queue.stranger("a").await.leave().await;
    queue
        .admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 20)
        .await;
    assert_eq!(a.receive_fetch(sent).await.acquired(queue.at), "20-24#1");
}

#[tokio::test]
async fn acknowledgements_from_before_an_alteration_are_fenced() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    a.leave().await;
    queue
        .admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 3)
        .await;
    let answer = a.acknowledge(&Ask::new().ack(queue.at, 0, 9, ACCEPT)).await;
    let fenced = "Error in write state RPC. The coordinator rejected the request because the state \
                  epoch did not match.";
    assert_eq!(
        answer.of(queue.at),
        Some(says(ErrorCode::NOT_LEADER_OR_FOLLOWER, fenced))
    );
    let leader = &answer.0.responses[0].partitions[0].current_leader;
    assert_eq!(leader.leader_id, 0);
    assert_eq!(answer.0.node_endpoints.len(), 1);
    assert_eq!(
        a.fetch(&Ask::new()).await.acquired(queue.at),
        "3-9#1 10-24#1",
        "the next fetch loads the new state"
    );
}

// Kafka hangs such a group for ever.
#[tokio::test]
async fn a_negative_offset_falls_back_to_the_reset_policy() {
    let mut queue = Queue::filled(&[]).await;
    queue
        .admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, -5)
        .await;
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-24#1"
    );
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK);
}

#[tokio::test]
async fn an_offset_beyond_the_end_waits_for_the_log() {
    let mut queue = Queue::filled(&[]).await;
    queue
        .admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 30)
        .await;
    let mut a = queue.member("a").await;
    assert_eq!(a.fetch(&Ask::of(queue.at)).await.acquired(queue.at), "");
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK, "below the start");
    queue.produce(3).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "");
    let sent = a.send_fetch(&Ask::new().patient()).await;
    queue.parked(queue.at, 1).await;
    queue.produce(10).await;
    assert_eq!(a.receive_fetch(sent).await.acquired(queue.at), "30-37#1");
}

// --- Delete ----------------------------------------------------------------------------------

#[tokio::test]
async fn deleted_offsets_begin_again_by_the_reset_policy() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK);
    a.leave().await;
    let answer = queue
        .admin
        .delete_share_offsets(Queue::GROUP, Queue::TOPIC)
        .await;
    assert_eq!(answer.error_code, 0);
    assert_eq!(answer.responses[0].error_code, 0);
    assert_eq!(answer.responses[0].topic_id, queue.at.topic);
    assert_eq!(queue.start_and_lag().await, (-1, -1));
    a.join(&[Queue::TOPIC]).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "0-24#1");
}

#[tokio::test]
async fn deleting_what_is_not_there_says_what_is_missing() {
    let mut queue = Queue::start().await;
    let answer = queue
        .admin
        .delete_share_offsets("nobody", Queue::TOPIC)
        .await;
    let text = answer.error_message.map(|text| text.to_string());
    assert_eq!(
        (answer.error_code, text),
        says(ErrorCode::GROUP_ID_NOT_FOUND, "Group nobody not found.")
    );
    let mut a = queue.member("a").await;
    a.leave().await;
    queue.admin.create_topic("unused", 1).await;
    for (topic, message) in [
        ("nothing", "This server does not host this topic-partition."),
        ("unused", "There is no offset information to delete."),
    ] {
        let answer = queue.admin.delete_share_offsets(Queue::GROUP, topic).await;
        assert_eq!(answer.error_code, 0, "{answer:?}");
        let result = &answer.responses[0];
        let text = result.error_message.as_ref().map(ToString::to_string);
        assert_eq!(
            (result.error_code, text),
            says(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message)
        );
    }
}

// --- Records and topics that go --------------------------------------------------------------

// D3, D12
#[tokio::test]
async fn deleted_records_are_done_and_the_rest_keeps_state_and_counts() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 0, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 17, 17, RELEASE).await, OK);
    let before = queue.start_and_lag().await;
    queue.admin.delete_records(Queue::TOPIC, 0, 15).await;
    assert_eq!(
        queue.start_and_lag().await.0,
        before.0,
        "the stored start stays until the next write"
    );
    assert_eq!(a.ack(queue.at, 5, 9, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 16, 16, ACCEPT).await, OK);
    assert_eq!(queue.start_and_lag().await.0, 15);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "17-17#2");
    assert_eq!(a.ack(queue.at, 15, 15, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 17, 24, ACCEPT).await, OK);
}

#[tokio::test]
async fn after_all_records_are_deleted_new_ones_are_served() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    queue.admin.delete_records(Queue::TOPIC, 0, -1).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "");
    queue.produce(4).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "25-28#1");
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK);
    assert_eq!(a.ack(queue.at, 25, 28, ACCEPT).await, OK);
}

#[tokio::test]
async fn retention_that_overtakes_a_group_counts_as_done() {
    let mut queue = Queue::filled(&[]).await;
    let configs = [("retention.ms", "3600000"), ("segment.ms", "600000")];
    queue.admin.alter_configs(2, Queue::TOPIC, &configs).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    queue.broker.advance_holding_sessions(7_200_000).await;
    queue.admin.timestamp = queue.broker.now();
    assert_eq!(queue.produce(2).await, 25);
    queue.broker.advance_holding_sessions(600_000).await;
    let start = queue.admin.list_offset(Queue::TOPIC, 0, -2).await.offset;
    assert_eq!(start, 25, "retention has run");
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK, "trimmed");
    assert_eq!(a.fetch(&Ask::new()).await.acquired(queue.at), "25-26#1");
}

#[tokio::test]
async fn a_deleted_topic_leaves_group_session_and_lists() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    let epoch = a.member_epoch;
    queue.admin.delete_topic(Queue::TOPIC).await;
    assert_eq!(
        a.ack(queue.at, 0, 9, ACCEPT).await,
        bare(ErrorCode::UNKNOWN_TOPIC_ID)
    );
    for _ in 0..2 {
        let fetched = a.fetch(&Ask::new()).await;
        assert_eq!(
            fetched.fetch_error(queue.at),
            bare(ErrorCode::UNKNOWN_TOPIC_ID)
        );
    }
    assert_eq!(
        a.fetch(&Ask::new().forget(queue.at)).await.listed(),
        [],
        "the session is still good"
    );
    let answer = a.beat().await;
    let assigned = answer.assignment.map(|a| a.topic_partitions.len());
    assert_eq!(assigned, Some(0));
    assert!(a.member_epoch > epoch);
    let all = queue.admin.describe_share_offsets(Queue::GROUP, None).await;
    assert_eq!(all.topics.len(), 0);
}

#[tokio::test]
async fn a_topic_that_is_made_anew_begins_anew() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK);
    queue.admin.delete_topic(Queue::TOPIC).await;
    let topic = queue.admin.create_topic(Queue::TOPIC, 1).await;
    queue.produce(3).await;
    a.beat().await;
    let new = At {
        topic,
        partition: 0,
    };
    let fetched = a.fetch(&Ask::of(new)).await;
    assert_eq!(fetched.acquired(new), "0-2#1");
    assert_eq!(
        fetched.fetch_error(queue.at),
        bare(ErrorCode::UNKNOWN_TOPIC_ID),
        "the old one is still in the session"
    );
}

#[tokio::test]
async fn a_start_beyond_the_log_has_nothing_in_the_cache() {
    let mut queue = Queue::filled(&[]).await;
    queue
        .admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 25)
        .await;
    let mut a = queue.member("a").await;
    assert_eq!(a.fetch(&Ask::of(queue.at)).await.acquired(queue.at), "");
    assert_eq!(
        a.ack(queue.at, 25, 25, ACCEPT).await,
        says(ErrorCode::INVALID_RECORD_STATE, NOT_CACHED)
    );
}

// D37
#[tokio::test]
async fn the_state_log_stays_bounded_beside_a_cold_partition() {
    let settings = Settings::new().set("share.coordinator.state.topic.num.partitions", "1");
    let mut queue = Queue::of(2, settings, &[]).await;
    queue.produce_to(1, 1).await;
    let mut a = queue.member("a").await;
    let (hot, cold) = (queue.at, queue.at.p(1));
    a.fetch(&Ask::of(hot).and(cold)).await;
    assert_eq!(a.ack(cold, 0, 0, RELEASE).await, OK);
    for _ in 0..40 {
        queue.produce(50).await;
        let fetched = a.fetch(&Ask::new().forget(cold)).await;
        for offset in fetched.offsets(hot) {
            assert_eq!(a.ack(hot, offset, offset, ACCEPT).await, OK);
        }
    }
    let state_log = |queue: &Queue| {
        let topic = queue
            .broker
            .process
            .broker
            .cluster
            .topic("__share_group_state");
        let partition = topic.and_then(|topic| topic.partition(0));
        partition.map_or((0, 0), |p| (p.log.start_offset(), p.log.end_offset()))
    };
    let (_, written) = state_log(&queue);
    assert!(written >= 2000, "{written}");
    for _ in 0..3 {
        queue.broker.advance_holding_sessions(600_000).await;
    }
    let (start, end) = state_log(&queue);
    assert!(end - start < 600, "{start} to {end}");
    assert_eq!(
        queue.start_and_lag().await,
        (1999, 0),
        "and says what it said before"
    );
}
