//! Share groups: heartbeats, assignment, states, and what an operator sees and may do.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::share_group_heartbeat_response::ShareGroupHeartbeatResponse;
use ottla_tests::{ACCEPT, Ask, Code, Member, OK, Queue, Settings, bare, says};

fn error(answer: &ShareGroupHeartbeatResponse) -> Code {
    let text = answer.error_message.as_ref().map(ToString::to_string);
    (answer.error_code, text)
}

/// The partitions of the first topic; `None`: unchanged.
fn assigned(answer: &ShareGroupHeartbeatResponse) -> Option<Vec<i32>> {
    let assignment = answer.assignment.as_ref()?;
    let topics = &assignment.topic_partitions;
    Some(
        topics
            .first()
            .map(|t| t.partitions.clone())
            .unwrap_or_default(),
    )
}

async fn kafka_profile(partitions: i32) -> Queue {
    let settings = Settings::new().set("ottla.profile", "kafka");
    Queue::of(partitions, settings, &[]).await
}

// --- Joining and assignment ------------------------------------------------------------------

#[tokio::test]
async fn the_first_heartbeat_carries_the_assignment() {
    let queue = Queue::of(3, Settings::new(), &[]).await;
    let mut a = queue.stranger("a").await;
    let answer = a.join(&[Queue::TOPIC]).await;
    assert_eq!(assigned(&answer), Some(vec![0, 1, 2]));
    assert_eq!(answer.heartbeat_interval_ms, 1000);
    assert_eq!(
        answer.member_id.as_ref().map(ToString::to_string),
        Some("a".to_owned())
    );
    assert_eq!(assigned(&a.beat().await), None, "unchanged");
}

#[tokio::test]
async fn in_kafkas_profile_the_assignment_comes_a_second_later() {
    let queue = kafka_profile(3).await;
    let mut a = queue.stranger("a").await;
    let answer = a.join(&[Queue::TOPIC]).await;
    assert_eq!(answer.member_epoch, 2);
    assert_eq!(assigned(&answer), Some(vec![]), "present but empty");
    assert_eq!(answer.heartbeat_interval_ms, 5000);
    queue.broker.advance(999).await;
    assert_eq!(assigned(&a.beat().await), None);
    queue.broker.advance(1).await;
    let answer = a.beat().await;
    assert_eq!(answer.member_epoch, 3);
    assert_eq!(assigned(&answer), Some(vec![0, 1, 2]));
}

// Kafka answers NOT_COORDINATOR until FindCoordinator was asked, and COORDINATOR_NOT_AVAILABLE then.
// D29
#[tokio::test]
async fn the_first_answers_of_a_fresh_broker_are_already_good() {
    let queue = Queue::start().await;
    let mut client = queue.broker.client().await;
    for (key_type, key) in [
        (0, Queue::GROUP.to_owned()),
        (2, format!("g:{}:0", base64_id(queue.at.topic))),
    ] {
        let found = client.find_coordinator(key_type, &key).await;
        assert_eq!(found.error_code, 0, "{found:?}");
        assert_eq!(*found.node_id, 0);
        assert_eq!(found.port, i32::from(queue.broker.address().port()));
    }
    let fresh = Queue::start().await;
    let mut a = fresh.member("a").await;
    let fetched = a.fetch(&Ask::of(fresh.at)).await;
    assert_eq!(fetched.fetch_error(fresh.at), OK);
}

fn base64_id(id: ottla_protocol::Uuid) -> String {
    ottla_coordinator::types::Uuid(*id.as_bytes()).to_string()
}

#[tokio::test]
async fn bad_heartbeats_are_refused_with_their_texts() {
    let queue = Queue::start().await;
    let mut a = queue.stranger("a").await;
    let topics: &[&str] = &[Queue::TOPIC];
    let invalid = ErrorCode::INVALID_REQUEST;
    let no_topics = says(
        invalid,
        "SubscribedTopicNames must be set in first request.",
    );
    for topics in [None, Some(&[][..])] {
        assert_eq!(error(&a.heartbeat(0, topics).await), no_topics);
    }
    for epoch in [-2, i32::MIN] {
        assert_eq!(
            error(&a.heartbeat(epoch, Some(topics)).await),
            says(invalid, "MemberEpoch is invalid.")
        );
    }
    let mut nobody = queue.stranger("").await;
    assert_eq!(
        error(&nobody.heartbeat(0, Some(topics)).await),
        bare(invalid)
    );
    let mut long = queue.stranger(&"x".repeat(37)).await;
    assert_eq!(error(&long.heartbeat(0, Some(topics)).await), bare(invalid));
    let mut longest = queue.stranger(&"x".repeat(36)).await;
    assert_eq!(error(&longest.heartbeat(0, Some(topics)).await), OK);
    let mut no_group = Member::new(queue.broker.client().await, "", "a");
    assert_eq!(
        error(&no_group.heartbeat(0, Some(topics)).await),
        says(invalid, "GroupId can't be empty.")
    );
}

#[tokio::test]
async fn an_empty_rack_is_refused() {
    use ottla_protocol::StrBytes;
    use ottla_protocol::messages::{GroupId, ShareGroupHeartbeatRequest, TopicName};
    let queue = Queue::start().await;
    let text = StrBytes::from_static_str;
    let request = ShareGroupHeartbeatRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_member_id(text("a"))
        .with_rack_id(Some(text("")))
        .with_subscribed_topic_names(Some(vec![TopicName(text(Queue::TOPIC))]));
    let answer = queue.broker.client().await.call(1, &request).await;
    assert_eq!(
        error(&answer),
        says(ErrorCode::INVALID_REQUEST, "RackId can't be empty.")
    );
}

#[tokio::test]
async fn an_unknown_topic_gives_an_empty_assignment_until_it_is_made() {
    let mut queue = Queue::start().await;
    let mut a = queue.stranger("a").await;
    let answer = a.join(&["later"]).await;
    assert_eq!(assigned(&answer), Some(vec![]));
    queue.admin.create_topic("later", 2).await;
    assert_eq!(assigned(&a.beat().await), Some(vec![0, 1]));
}

#[tokio::test]
async fn a_full_request_repeats_the_assignment() {
    let queue = Queue::start().await;
    let mut a = queue.member("a").await;
    let full = a.heartbeat(a.member_epoch, Some(&[Queue::TOPIC])).await;
    assert_eq!((error(&full), assigned(&full)), (OK, Some(vec![0])));
    let rejoin = a.heartbeat(0, Some(&[Queue::TOPIC])).await;
    assert_eq!((error(&rejoin), assigned(&rejoin)), (OK, Some(vec![0])));
}

#[tokio::test]
async fn a_changed_subscription_changes_the_assignment() {
    let mut queue = Queue::start().await;
    queue.admin.create_topic("u", 2).await;
    let mut a = queue.member("a").await;
    let before = a.member_epoch;
    let answer = a.heartbeat(before, Some(&["u"])).await;
    assert_eq!(assigned(&answer), Some(vec![0, 1]));
    assert!(answer.member_epoch > before);
    let answer = a.heartbeat(answer.member_epoch, Some(&[])).await;
    assert_eq!(assigned(&answer), Some(vec![]), "at once");
}

#[tokio::test]
async fn epochs_of_the_past_and_the_future_are_fenced() {
    let mut queue = Queue::start().await;
    let mut a = queue.member("a").await;
    for topic in ["u", "v", "w"] {
        queue.admin.create_topic(topic, 1).await;
        let answer = a
            .heartbeat(a.member_epoch, Some(&[Queue::TOPIC, topic]))
            .await;
        a.member_epoch = answer.member_epoch;
    }
    let now = a.member_epoch;
    let answer = a.heartbeat(now - 1, None).await;
    assert_eq!(error(&answer), OK, "the epoch before");
    assert_eq!((answer.member_epoch, assigned(&answer)), (now, None));
    let smaller = format!(
        "The share group member has a smaller member epoch ({}) than the one known by the group coordinator \
         ({now}), and it does not match the previous member epoch ({}). The member must abandon all its \
         partitions and rejoin.",
        now - 2,
        now - 1
    );
    assert_eq!(
        error(&a.heartbeat(now - 2, None).await),
        says(ErrorCode::FENCED_MEMBER_EPOCH, &smaller)
    );
    let greater = format!(
        "The share group member has a greater member epoch ({}) than the one known by the group coordinator \
         ({now}). The member must abandon all its partitions and rejoin.",
        now + 1
    );
    assert_eq!(
        error(&a.heartbeat(now + 1, None).await),
        says(ErrorCode::FENCED_MEMBER_EPOCH, &greater)
    );
}

// D39
#[tokio::test]
async fn unknown_groups_and_members_have_codes_of_their_own() {
    let mut queue = Queue::start().await;
    let mut a = queue.stranger("a").await;
    let none = ErrorCode::GROUP_ID_NOT_FOUND;
    assert_eq!(
        error(&a.heartbeat(1, None).await),
        says(none, "Share group g not found.")
    );
    assert_eq!(
        error(&a.heartbeat(-1, None).await),
        says(none, "Group g not found.")
    );
    let mut b = queue.member("b").await;
    let unknown = says(
        ErrorCode::UNKNOWN_MEMBER_ID,
        "Member a is not a member of group g.",
    );
    assert_eq!(error(&a.heartbeat(1, None).await), unknown);
    assert_eq!(error(&a.heartbeat(-1, None).await), unknown);
    b.leave().await;
    assert_eq!(queue.admin.delete_group(Queue::GROUP).await, OK);
    assert_eq!(
        error(&b.heartbeat(b.member_epoch, None).await),
        says(none, "Share group g not found.")
    );
}

// D38
#[tokio::test]
async fn a_member_that_left_may_join_again_at_once() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    for _ in 0..3 {
        a.leave().await;
        let malformed = a.heartbeat(-1, None).await;
        assert_ne!(malformed.error_code, 0);
        let answer = a.join(&[Queue::TOPIC]).await;
        assert_eq!(assigned(&answer), Some(vec![0]));
    }
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-24#1"
    );
}

#[tokio::test]
async fn whoever_leaves_keeps_session_and_locks() {
    let queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at).max_records(20)).await;
    a.leave().await;
    let mut b = queue.member("b").await;
    assert_eq!(
        b.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "20-24#1"
    );
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
    a.fetch(&Ask::new()).await;
    a.close_session().await;
    assert_eq!(b.fetch(&Ask::new()).await.acquired(queue.at), "10-19#2");
}

#[tokio::test]
async fn a_full_group_takes_no_more_members() {
    let settings = Settings::new().set("group.share.max.size", "2");
    let queue = Queue::of(1, settings, &[]).await;
    let mut a = queue.member("a").await;
    let mut b = queue.member("b").await;
    let mut c = queue.stranger("c").await;
    assert_eq!(
        error(&c.heartbeat(0, Some(&[Queue::TOPIC])).await),
        says(
            ErrorCode::GROUP_MAX_SIZE_REACHED,
            "The share group has reached its maximum capacity of 2 members."
        )
    );
    assert_eq!(error(&a.heartbeat(0, Some(&[Queue::TOPIC])).await), OK);
    b.leave().await;
    c.join(&[Queue::TOPIC]).await;
}

#[tokio::test]
async fn a_silent_member_is_removed_when_its_session_ends() {
    let mut queue = Queue::with(&[("share.session.timeout.ms", "3000")]).await;
    let mut a = queue.member("a").await;
    let mut b = queue.member("b").await;
    let before = queue.admin.describe_share_group(Queue::GROUP).await;
    queue.broker.advance(2999).await;
    b.beat().await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(group.members.len(), 2);
    queue.broker.advance(1).await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(group.members.len(), 1);
    assert_eq!(group.group_epoch, before.group_epoch + 1);
    assert_eq!(
        error(&a.heartbeat(a.member_epoch, None).await),
        says(
            ErrorCode::UNKNOWN_MEMBER_ID,
            "Member a is not a member of group g."
        )
    );
}

#[tokio::test]
async fn held_sessions_outlast_any_advance() {
    let mut queue = Queue::with(&[("share.session.timeout.ms", "3000")]).await;
    let mut a = queue.member("a").await;
    queue.broker.advance_holding_sessions(3_600_000).await;
    a.beat().await;
    queue.broker.advance(3000).await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(group.members.len(), 0);
}

/// The partitions of each member once all have heard of the newest assignment.
async fn shared_out(partitions: i32, members: usize) -> Vec<Vec<i32>> {
    let queue = Queue::of(partitions, Settings::new(), &[]).await;
    let mut all = vec![];
    for n in 0..members {
        all.push(queue.member(&format!("m{n}")).await);
    }
    let mut shares = vec![];
    for member in &mut all {
        member.beat().await;
        let full = member
            .heartbeat(member.member_epoch, Some(&[Queue::TOPIC]))
            .await;
        shares.push(assigned(&full).unwrap_or_default());
    }
    shares
}

#[tokio::test]
async fn partitions_are_shared_out_evenly_and_nobody_goes_without() {
    for (partitions, members) in [
        (1, 3),
        (2, 2),
        (3, 2),
        (4, 3),
        (6, 3),
        (6, 1),
        (2, 4),
        (2, 7),
    ] {
        let shares = shared_out(partitions, members).await;
        let counts: Vec<usize> = shares.iter().map(Vec::len).collect();
        let (least, most) = (counts.iter().min(), counts.iter().max());
        assert!(least >= Some(&1), "{partitions} over {members}: {shares:?}");
        if partitions as usize >= members {
            assert!(
                most <= least.map(|n| n + 1).as_ref(),
                "{partitions} over {members}: {shares:?}"
            );
        }
        for partition in 0..partitions {
            assert!(
                shares.iter().any(|share| share.contains(&partition)),
                "nobody has {partition} of {partitions} over {members}: {shares:?}"
            );
        }
    }
}

// --- What an operator sees -------------------------------------------------------------------

#[tokio::test]
async fn a_group_is_described() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    let mut a = queue.member("a").await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(
        (group.error_code, &*group.group_state, &*group.assignor_name),
        (0, "Stable", "simple")
    );
    assert_eq!(group.authorized_operations, 3400);
    assert_eq!(group.assignment_epoch, group.group_epoch);
    let member = &group.members[0];
    assert_eq!(
        (&*member.member_id, &*member.client_id, &*member.client_host),
        ("a", "tests", "/127.0.0.1")
    );
    assert_eq!(member.member_epoch, a.member_epoch);
    let topic = &member.assignment.topic_partitions[0];
    assert_eq!(
        (topic.topic_id, topic.partitions.clone()),
        (queue.at.topic, vec![0, 1])
    );
    a.leave().await;
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!((&*group.group_state, group.members.len()), ("Empty", 0));
}

#[tokio::test]
async fn describing_an_unknown_group_says_so() {
    let mut queue = Queue::start().await;
    let group = queue.admin.describe_share_group("nobody").await;
    let text = group.error_message.map(|text| text.to_string());
    assert_eq!(
        (group.error_code, text),
        says(ErrorCode::GROUP_ID_NOT_FOUND, "Group nobody not found.")
    );
    let group = queue.admin.describe_share_group("").await;
    assert_eq!(group.error_code, ErrorCode::INVALID_GROUP_ID.0);
}

#[tokio::test]
async fn groups_are_listed_by_state_and_type() {
    let mut queue = Queue::start().await;
    let mut other = Member::new(queue.broker.client().await, "empty", "a");
    other.join(&[Queue::TOPIC]).await;
    other.leave().await;
    let _a = queue.member("a").await;
    let (empty, stable) = ("empty share Empty share", "g share Stable share");
    let all = [empty, stable];
    assert_eq!(queue.admin.list_groups(&[], &[]).await, all);
    assert_eq!(queue.admin.list_groups(&[], &["SHARE"]).await, all);
    assert_eq!(queue.admin.list_groups(&["stable"], &[]).await, [stable]);
    assert_eq!(
        queue.admin.list_groups(&["EMPTY"], &["share"]).await,
        [empty]
    );
    let nothing: [&str; 0] = [];
    assert_eq!(queue.admin.list_groups(&["nonsense"], &[]).await, nothing);
    assert_eq!(queue.admin.list_groups(&[], &["nonsense"]).await, nothing);
    assert_eq!(queue.admin.list_groups(&[], &["classic"]).await, nothing);
}

#[tokio::test]
async fn only_empty_groups_are_deleted_and_their_state_goes_with_them() {
    let mut queue = Queue::filled(&[]).await;
    assert_eq!(
        queue.admin.delete_group("nobody").await.0,
        ErrorCode::GROUP_ID_NOT_FOUND.0
    );
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 24, ACCEPT).await, OK);
    assert_eq!(
        queue.admin.delete_group(Queue::GROUP).await.0,
        ErrorCode::NON_EMPTY_GROUP.0
    );
    a.leave().await;
    assert_eq!(queue.admin.delete_group(Queue::GROUP).await, OK);
    assert_eq!(queue.admin.list_groups(&[], &[]).await, [""; 0]);
    assert_eq!(queue.start_and_lag().await, (-1, -1));
    a.join(&[Queue::TOPIC]).await;
    a.epoch = 0;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-24#1",
        "begins again"
    );
}

#[tokio::test]
async fn new_groups_work_once_the_topic_of_share_state_was_deleted() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    a.fetch(&Ask::of(queue.at)).await;
    assert_eq!(a.ack(queue.at, 0, 9, ACCEPT).await, OK);
    let gone = queue.admin.delete_topic("__share_group_state").await;
    assert_eq!(gone, ErrorCode::NONE);
    let from_start = [("share.auto.offset.reset", "earliest")];
    queue.admin.configure_group("another", &from_start).await;
    let mut b = Member::new(queue.broker.client().await, "another", "b");
    b.join(&[Queue::TOPIC]).await;
    let fetched = b.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.acquired(queue.at), "0-24#1");
    assert_eq!(b.ack(queue.at, 0, 24, ACCEPT).await, OK);
    let names = queue.admin.topic_names().await;
    assert!(
        names.contains(&"__share_group_state".to_owned()),
        "{names:?}"
    );
}

#[tokio::test]
async fn share_version_0_refuses_share_groups_and_1_serves_them() {
    let settings = Settings::new().set("feature.share.version", "0");
    let mut queue = Queue::of(1, settings, &[]).await;
    let mut a = queue.stranger("a").await;
    let unsupported = ErrorCode::UNSUPPORTED_VERSION;
    let answer = a.heartbeat(0, Some(&[Queue::TOPIC])).await;
    assert_eq!(answer.error_code, unsupported.0);
    assert_eq!(a.try_fetch(&Ask::of(queue.at)).await.error(), unsupported);
    assert_eq!(a.acknowledge_at(1, &Ask::new()).await.error(), unsupported);
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(group.error_code, unsupported.0);

    let settings = Settings::new().set("feature.share.version", "1");
    let mut queue = Queue::of(1, settings, &[]).await;
    queue.fill().await;
    let mut a = queue.member("a").await;
    assert_eq!(
        a.fetch(&Ask::of(queue.at)).await.acquired(queue.at),
        "0-24#1"
    );
}
