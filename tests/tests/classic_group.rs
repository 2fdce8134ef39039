//! Groups of the classic protocol over the wire: rebalances, static members, time, restarts, several
//! brokers.

use ottla_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use ottla_protocol::messages::{GroupId, JoinGroupRequest, ListGroupsRequest};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{ClassicMember, Embedded, START_MS, Settings};

const GROUP: &str = "billing";
const OK: ErrorCode = ErrorCode::NONE;

async fn member(broker: &Embedded) -> ClassicMember {
    let mut client = broker.client().await;
    // The coordinator's topic is made when somebody looks for it.
    let found = client.find_coordinator(0, GROUP).await;
    assert_eq!(found.error_code, 0, "{found:?}");
    ClassicMember::new(client, GROUP)
}

async fn named(broker: &Embedded, instance: &str) -> ClassicMember {
    let client = member(broker).await.client;
    ClassicMember::named(client, GROUP, instance)
}

fn code(number: i16) -> ErrorCode {
    ErrorCode(number)
}

/// Joins alone, and assigns everything to itself.
async fn alone(mut member: ClassicMember) -> ClassicMember {
    assert_eq!(code(member.join().await.error_code), OK);
    let id = member.id.clone();
    let synced = member.sync(&[(&id, "everything")]).await;
    assert_eq!(&*synced.assignment, b"everything");
    member
}

/// `new` joins the group of the leader `old`; they share.
async fn together(old: &mut ClassicMember, new: &mut ClassicMember) {
    let coming = if new.instance.is_some() {
        new.send_join().await
    } else {
        new.send_first_join().await
    };
    // The leader learns of it by a heartbeat.
    while old.beat().await == OK {}
    let again = old.join().await;
    assert_eq!(code(again.error_code), OK, "{again:?}");
    assert_eq!(again.members.len(), 2);
    assert_eq!(code(new.joined(coming).await.error_code), OK);
    assert!(old.leads() && !new.leads());
    assert_eq!(old.generation, new.generation);
    let waiting = new.send_sync(&[]).await;
    let (one, two) = (old.id.clone(), new.id.clone());
    let shares = [(&*one, "left"), (&*two, "right")];
    assert_eq!(&*old.sync(&shares).await.assignment, b"left");
    assert_eq!(&*new.client.receive(waiting).await.assignment, b"right");
}

async fn state(broker: &Embedded) -> (String, usize) {
    broker.client().await.classic_group(GROUP).await
}

fn is(state: &str, members: usize) -> (String, usize) {
    (state.to_owned(), members)
}

// C51
#[tokio::test]
async fn the_first_poll_of_a_new_group_waits_for_nothing() {
    let broker = Embedded::start().await;
    let mut member = alone(member(&broker).await).await;
    assert_eq!(member.beat().await, OK);
    assert_eq!(member.generation, 1);
    // State time stands still: no delay of the group's was part of it.
    assert_eq!(broker.now(), START_MS);
    assert_eq!(state(&broker).await, is("Stable", 1));
}

// C51
#[tokio::test]
async fn the_first_rebalance_waits_for_others_where_it_is_told_to() {
    let settings = Settings::new().set("group.initial.rebalance.delay.ms", "3000");
    let broker = settings.start().await;
    let mut a = member(&broker).await;
    let mut b = member(&broker).await;
    let (first, second) = (a.send_first_join().await, b.send_first_join().await);
    while state(&broker).await != is("PreparingRebalance", 2) {}
    broker.advance(3_000).await;
    assert_eq!(state(&broker).await, is("PreparingRebalance", 2));
    broker.advance(3_000).await;
    assert_eq!(a.joined(first).await.generation_id, 1);
    assert_eq!(b.joined(second).await.generation_id, 1);
}

#[tokio::test]
async fn two_members_share_and_one_leaves() {
    let broker = Embedded::start().await;
    let mut a = alone(member(&broker).await).await;
    let mut b = member(&broker).await;
    together(&mut a, &mut b).await;
    assert_eq!(state(&broker).await, is("Stable", 2));
    let left = b.leave().await;
    assert_eq!((left.error_code, left.members[0].error_code), (0, 0));
    assert_eq!(a.beat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    let again = a.join().await;
    assert_eq!((again.generation_id, again.members.len()), (3, 1));
    a.leave().await;
    assert_eq!(state(&broker).await, is("Empty", 0));
}

#[tokio::test]
async fn a_member_needs_an_id_from_version_4_on() {
    let broker = Embedded::start().await;
    for version in 0..=9 {
        let mut member = member(&broker).await;
        member.group = format!("group-{version}");
        member.version = version;
        let sent = member.send_join().await;
        let answer = member.joined(sent).await;
        let expected = if version < 4 {
            OK
        } else {
            ErrorCode::MEMBER_ID_REQUIRED
        };
        assert_eq!(code(answer.error_code), expected, "version {version}");
        assert!(answer.member_id.starts_with("tests-"), "{answer:?}");
        assert_eq!(code(member.join().await.error_code), OK);
    }
}

#[tokio::test]
async fn a_static_member_restarts_without_a_rebalance() {
    let broker = Embedded::start().await;
    let mut a = alone(named(&broker, "a").await).await;
    let mut b = named(&broker, "b").await;
    together(&mut a, &mut b).await;
    let mut back = named(&broker, "b").await;
    let joined = back.join().await;
    assert_eq!((joined.error_code, joined.generation_id), (0, 2));
    assert_ne!(back.id, b.id);
    assert_eq!(&*back.sync(&[]).await.assignment, b"right");
    assert_eq!(a.beat().await, OK);
    assert_eq!(b.beat().await, ErrorCode::FENCED_INSTANCE_ID);
    // The leader too, which is told not to assign.
    let mut leader = named(&broker, "a").await;
    let joined = leader.join().await;
    assert!(joined.skip_assignment && leader.leads());
    assert_eq!(joined.members.len(), 2);
    assert_eq!(&*leader.sync(&[]).await.assignment, b"left");
    assert_eq!(state(&broker).await, is("Stable", 2));
}

// C63
#[tokio::test]
async fn a_member_that_is_too_slow_is_removed_once_and_comes_back_as_a_new_one() {
    let broker = Embedded::start().await;
    let mut a = alone(member(&broker).await).await;
    let mut slow = member(&broker).await;
    together(&mut a, &mut slow).await;
    broker.advance(6_000).await;
    assert_eq!(a.beat().await, OK);
    broker.advance(4_000).await;
    assert_eq!(slow.beat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(a.beat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(a.join().await.members.len(), 1);
    let id = a.id.clone();
    a.sync(&[(&id, "everything")]).await;
    slow.id.clear();
    together(&mut a, &mut slow).await;
    for _ in 0..5 {
        broker.advance(5_000).await;
        assert_eq!((a.beat().await, slow.beat().await), (OK, OK));
    }
    assert_eq!(a.generation, 4);
}

#[tokio::test]
async fn members_whose_sessions_are_held_outlive_any_time() {
    let broker = Embedded::start().await;
    let mut a = alone(member(&broker).await).await;
    broker.advance_holding_sessions(86_400_000).await;
    assert_eq!(a.beat().await, OK);
    broker.advance(10_000).await;
    assert_eq!(a.beat().await, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[tokio::test]
async fn who_does_not_join_again_in_time_holds_nobody_up() {
    let broker = Embedded::start().await;
    let mut absent = member(&broker).await;
    absent.session_timeout_ms = 600_000;
    let _absent = alone(absent).await;
    let mut b = member(&broker).await;
    let coming = b.send_first_join().await;
    while state(&broker).await != is("PreparingRebalance", 2) {}
    broker.advance(60_000).await;
    let joined = b.joined(coming).await;
    assert_eq!((joined.error_code, joined.members.len()), (0, 1));
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_leaves_the_group_whole() {
    let broker = Embedded::start().await;
    let mut a = alone(member(&broker).await).await;
    let mut gone = member(&broker).await;
    let _unheard = gone.send_first_join().await;
    while a.beat().await == OK {}
    drop(gone);
    let joined = a.join().await;
    assert_eq!((joined.error_code, joined.members.len()), (0, 2));
    // Nobody fetches the second assignment, and nobody sends heartbeats for it.
    let id = a.id.clone();
    a.sync(&[(&id, "everything")]).await;
    broker.advance(9_000).await;
    a.beat().await;
    broker.advance(1_000).await;
    assert_eq!(a.beat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(a.join().await.members.len(), 1);
}

#[tokio::test]
async fn a_group_lives_on_over_a_restart() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let start = async || Settings::new().data_dir(dir.path()).start().await;
    let broker = start().await;
    let mut a = alone(named(&broker, "a").await).await;
    let mut b = named(&broker, "b").await;
    together(&mut a, &mut b).await;
    broker.shutdown().await;
    let broker = start().await;
    a.client = broker.client().await;
    b.client = broker.client().await;
    assert_eq!(state(&broker).await, is("Stable", 2));
    assert_eq!((a.beat().await, b.beat().await), (OK, OK));
    assert_eq!(&*b.sync(&[]).await.assignment, b"right");
    // Their sessions began with the start.
    broker.advance(10_000).await;
    assert_eq!(a.beat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(state(&broker).await, is("Empty", 0));
    broker.shutdown().await;
}

#[tokio::test]
async fn members_follow_their_coordinator_to_another_broker() {
    let broker = Settings::new().brokers(3).start().await;
    let coordinator = async |ask: i32| {
        let found = broker.client_of(ask).await.find_coordinator(0, GROUP).await;
        assert_eq!(found.error_code, 0, "{found:?}");
        *found.node_id
    };
    let first = coordinator(0).await;
    let other = (first + 1) % 3;
    let mut a = alone(ClassicMember::new(broker.client_of(first).await, GROUP)).await;
    let mut lost = ClassicMember::new(broker.client_of(other).await, GROUP);
    let sent = lost.send_join().await;
    let answer = lost.joined(sent).await;
    assert_eq!(code(answer.error_code), ErrorCode::NOT_COORDINATOR);
    broker.stop_node(first).await;
    let next = coordinator(other).await;
    assert_ne!(next, first);
    a.client = broker.client_of(next).await;
    assert_eq!(a.beat().await, OK);
    let mut b = ClassicMember::new(broker.client_of(next).await, GROUP);
    together(&mut a, &mut b).await;
    assert_eq!(a.generation, 2);
}

#[tokio::test]
async fn a_join_that_waits_is_sent_to_the_new_coordinator() {
    let broker = Settings::new().brokers(2).start().await;
    let found = broker.client_of(0).await.find_coordinator(0, GROUP).await;
    let first = *found.node_id;
    let _a = alone(ClassicMember::new(broker.client_of(first).await, GROUP)).await;
    let mut b = ClassicMember::new(broker.client_of(first).await, GROUP);
    let coming = b.send_first_join().await;
    let mut observer = broker.client_of(first).await;
    while observer.classic_group(GROUP).await != is("PreparingRebalance", 2) {}
    broker.stop_node(first).await;
    // Its broker is gone: it hears NOT_COORDINATOR, or the end of the connection.
    let answer = b.client.receive_or_closed().await;
    drop((answer, coming));
    let mut observer = broker.client_of(1 - first).await;
    assert_eq!(observer.classic_group(GROUP).await, is("Stable", 1));
}

#[tokio::test]
async fn groups_begin_anew_once_their_topic_was_deleted() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let mut a = alone(member(&broker).await).await;
    let mut b = member(&broker).await;
    let coming = b.send_first_join().await;
    while a.beat().await == OK {}
    assert_eq!(client.delete_topic("__consumer_offsets").await, OK);
    let sent_away = b.joined(coming).await.error_code;
    assert_eq!(code(sent_away), ErrorCode::NOT_COORDINATOR);
    assert!(client.list_groups(&[], &[]).await.is_empty());
    assert_eq!(
        client.topic_names().await,
        [""; 0],
        "nobody needs it until now"
    );
    assert_eq!(a.beat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    let mut again = alone(member(&broker).await).await;
    assert_eq!((again.generation, again.beat().await), (1, OK));
    assert_eq!(state(&broker).await, is("Stable", 1));
    let topic = client.describe_topic("__consumer_offsets", false).await;
    let mut end = 0;
    for partition in &topic.partitions {
        let index = partition.partition_index;
        end += client.end_offset("__consumer_offsets", index).await;
    }
    assert_eq!(end, 2, "the group, and its first generation");
}

#[tokio::test]
async fn assignments_that_cannot_be_written_are_given_again_once_there_is_room() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let faults = ottla_storage::Faults::new();
    let settings = Settings::new().data_dir(dir.path());
    let broker = settings.faults(faults.clone()).start().await;
    let mut a = alone(member(&broker).await).await;
    let mut b = member(&broker).await;
    let coming = b.send_first_join().await;
    while a.beat().await == OK {}
    assert_eq!(code(a.join().await.error_code), OK);
    b.joined(coming).await;
    let waiting = b.send_sync(&[]).await;
    faults.set_room(Some(0));
    let (one, two) = (a.id.clone(), b.id.clone());
    let shares = [(&*one, "left"), (&*two, "right")];
    assert_eq!(
        code(a.sync(&shares).await.error_code),
        ErrorCode::NOT_COORDINATOR
    );
    assert_eq!(state(&broker).await, is("CompletingRebalance", 2));
    faults.set_room(None);
    assert_eq!(&*a.sync(&shares).await.assignment, b"left");
    let parked = code(b.client.receive(waiting).await.error_code);
    // It was told as the leader was, or it came after that and got its share.
    assert!(parked == ErrorCode::NOT_COORDINATOR || parked == OK);
    assert_eq!(&*b.sync(&[]).await.assignment, b"right");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_as_kafka_says_it() {
    let broker = Embedded::start().await;
    let mut a = alone(member(&broker).await).await;
    let mut other = member(&broker).await;
    other.protocol_type = "connect".to_owned();
    let refused = other.join().await;
    assert_eq!(
        code(refused.error_code),
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL
    );
    assert_eq!((refused.generation_id, refused.protocol_name), (-1, None));
    other.protocol_type = "consumer".to_owned();
    other.session_timeout_ms = 99;
    assert_eq!(
        code(other.join().await.error_code),
        ErrorCode::INVALID_SESSION_TIMEOUT
    );
    other.group = String::new();
    assert_eq!(
        code(other.join().await.error_code),
        ErrorCode::INVALID_GROUP_ID
    );
    let mut sync = a.sync_request(&[]);
    sync.protocol_name = None;
    let refused = a.client.call(5, &sync).await;
    assert_eq!(
        code(refused.error_code),
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL
    );
    assert_eq!(code(a.client.call(4, &sync).await.error_code), OK);
    a.generation = 9;
    assert_eq!(a.beat().await, ErrorCode::ILLEGAL_GENERATION);
}

#[tokio::test]
async fn a_group_that_does_not_exist_is_dead_or_not_found() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let old = client.describe_group(5, "nobody").await;
    assert_eq!((old.error_code, &*old.group_state), (0, "Dead"));
    let new = client.describe_group(6, "nobody").await;
    assert_eq!(code(new.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(
        new.error_message.as_deref(),
        Some("Group nobody not found.")
    );
    assert_eq!(&*new.group_state, "Dead");
}

#[tokio::test]
async fn groups_are_listed_with_type_state_and_protocol() {
    let broker = Embedded::start().await;
    let _a = alone(member(&broker).await).await;
    let filter = |text: &'static str| vec![StrBytes::from_static_str(text)];
    let mut client = broker.client().await;
    for (states, types, count) in [("stable", "Classic", 1), ("Empty", "classic", 0)] {
        let request = ListGroupsRequest::default()
            .with_states_filter(filter(states))
            .with_types_filter(filter(types));
        let listed = client.call(5, &request).await.groups;
        assert_eq!(listed.len(), count);
        for group in listed {
            assert_eq!(&**group.group_id, GROUP);
            assert_eq!(&*group.protocol_type, "consumer");
            assert_eq!(&*group.group_type, "classic");
        }
    }
}

#[tokio::test]
async fn a_hundred_members_settle_in_one_group() {
    let broker = Embedded::start().await;
    let mut members = vec![alone(member(&broker).await).await];
    let mut waiting = Vec::new();
    for _ in 1..100 {
        let mut new = member(&broker).await;
        let coming = new.send_first_join().await;
        waiting.push((new, coming));
    }
    while state(&broker).await.1 != 100 {}
    let joined = members[0].join().await;
    assert_eq!(joined.members.len(), 100);
    for (mut new, coming) in waiting {
        assert_eq!(new.joined(coming).await.generation_id, 2);
        members.push(new);
    }
    let mut syncs = Vec::new();
    for member in &mut members[1..] {
        syncs.push(member.send_sync(&[]).await);
    }
    let ids: Vec<_> = members.iter().map(|member| member.id.clone()).collect();
    let shares: Vec<_> = ids.iter().map(|id| (&**id, &**id)).collect();
    members[0].sync(&shares).await;
    for (member, sync) in members[1..].iter_mut().zip(syncs) {
        let synced = member.client.receive(sync).await;
        assert_eq!(&*synced.assignment, member.id.as_bytes());
    }
    assert_eq!(state(&broker).await, is("Stable", 100));
}

#[tokio::test]
async fn many_protocols_in_one_request_cost_nothing() {
    let broker = Embedded::start().await;
    let mut member = member(&broker).await;
    let protocol = |number: i32| {
        JoinGroupRequestProtocol::default()
            .with_name(StrBytes::from_string(format!("p{}", number % 50_000)))
    };
    let request = JoinGroupRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str(GROUP)))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols((0..100_000).map(protocol).collect());
    for _ in 0..2 {
        let answer = member.client.call(3, &request).await;
        assert_eq!(code(answer.error_code), OK);
        let leaving = ottla_protocol::messages::LeaveGroupRequest::default()
            .with_group_id(GroupId(StrBytes::from_static_str(GROUP)))
            .with_member_id(answer.member_id);
        assert_eq!(member.client.call(2, &leaving).await.error_code, 0);
    }
}
