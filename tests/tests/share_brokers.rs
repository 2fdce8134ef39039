//! Share groups over several logical brokers: leaders, coordinators, and what becomes of both when
//! brokers stop and start.

use ottla_protocol::ErrorCode;
use ottla_tests::{
    ACCEPT, Ask, At, Embedded, Member, OK, Queue, RELEASE, Settings, ShareFetched, bare,
};

/// Three brokers and a topic whose partition n is led by broker n, with the others as replicas.
async fn three_brokers() -> (Embedded, At) {
    let broker = Settings::new().brokers(3).start().await;
    let mut admin = broker.client_of(0).await;
    let replicas: &[&[i32]] = &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]];
    let topic = admin.create_topic_on(Queue::TOPIC, replicas).await;
    let configs = [("share.auto.offset.reset", "earliest")];
    admin.configure_group(Queue::GROUP, &configs).await;
    for partition in 0..3 {
        let mut leader = broker.client_of(partition).await;
        leader
            .produce_values(Queue::TOPIC, partition, &["a", "b", "c", "d", "e"])
            .await;
    }
    let at = At {
        topic,
        partition: 0,
    };
    (broker, at)
}

/// The broker that coordinates the group.
async fn coordinator(broker: &Embedded, ask: i32) -> i32 {
    let mut client = broker.client_of(ask).await;
    let found = client.find_coordinator(0, Queue::GROUP).await;
    assert_eq!(found.error_code, 0, "{found:?}");
    *found.node_id
}

/// Joins at the coordinator; the connection stays open with the member.
async fn join(broker: &Embedded, ask: i32, id: &str) -> Member {
    let at = coordinator(broker, ask).await;
    let mut member = Member::new(broker.client_of(at).await, Queue::GROUP, id);
    member.join(&[Queue::TOPIC]).await;
    member
}

async fn session(broker: &Embedded, node: i32, id: &str) -> Member {
    Member::new(broker.client_of(node).await, Queue::GROUP, id)
}

fn leader_hint(fetched: &ShareFetched, at: At) -> (i32, usize) {
    let leader = fetched
        .partition(at)
        .map_or(-1, |p| p.current_leader.leader_id);
    (leader, fetched.0.node_endpoints.len())
}

// D25
#[tokio::test]
async fn the_wrong_broker_names_the_leader() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 0, "a").await;
    let mut wrong = session(&broker, 2, "a").await;
    let fetched = wrong.fetch(&Ask::of(at)).await;
    assert_eq!(
        fetched.fetch_error(at),
        bare(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    );
    assert_eq!(leader_hint(&fetched, at), (0, 3));
    let endpoint = fetched.0.node_endpoints.iter().find(|e| *e.node_id == 0);
    let port = endpoint.map(|e| e.port);
    assert_eq!(port, Some(i32::from(broker.address_of(0).port())));
    let answer = wrong.acknowledge(&Ask::new().ack(at, 0, 0, ACCEPT)).await;
    assert_eq!(answer.of(at), Some(bare(ErrorCode::NOT_LEADER_OR_FOLLOWER)));
    let leader = &answer.0.responses[0].partitions[0].current_leader;
    assert_eq!((leader.leader_id, answer.0.node_endpoints.len()), (0, 3));
}

#[tokio::test]
async fn a_good_partition_is_served_beside_one_of_another_leader() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 0, "a").await;
    let mut session = session(&broker, 1, "a").await;
    let fetched = session.fetch(&Ask::of(at).and(at.p(1))).await;
    assert_eq!(fetched.acquired(at.p(1)), "0-4#1");
    assert_eq!(
        fetched.fetch_error(at),
        bare(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    );
}

#[tokio::test]
async fn only_the_coordinator_answers_for_a_group() {
    let (broker, _) = three_brokers().await;
    let right = coordinator(&broker, 0).await;
    let not_coordinator = ErrorCode::NOT_COORDINATOR.0;
    for node in (0..3).filter(|&node| node != right) {
        let mut client = broker.client_of(node).await;
        let answer = client.describe_share_group(Queue::GROUP).await;
        assert_eq!(answer.error_code, not_coordinator);
        let answer = client.describe_share_offsets(Queue::GROUP, None).await;
        assert_eq!(answer.error_code, not_coordinator);
        let answer = client
            .try_alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 1)
            .await;
        assert_eq!(answer.error_code, not_coordinator);
        assert_eq!(client.delete_group(Queue::GROUP).await.0, not_coordinator);
        let mut member = Member::new(client, Queue::GROUP, "a");
        let answer = member.heartbeat(0, Some(&[Queue::TOPIC])).await;
        assert_eq!(answer.error_code, not_coordinator);
    }
    let mut member = join(&broker, 0, "a").await;
    let listed = member.client.list_groups(&[], &[]).await;
    assert_eq!(listed, ["g share Stable share"]);
    let mut other = broker.client_of((right + 1) % 3).await;
    assert_eq!(other.list_groups(&[], &[]).await, [""; 0]);
}

// D21
#[tokio::test]
async fn closing_a_session_with_one_broker_leaves_the_locks_of_another() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 0, "a").await;
    let mut zero = session(&broker, 0, "a").await;
    let mut one = session(&broker, 1, "a").await;
    assert_eq!(zero.fetch(&Ask::of(at)).await.acquired(at), "0-4#1");
    let p1 = at.p(1);
    assert_eq!(one.fetch(&Ask::of(p1)).await.acquired(p1), "0-4#1");
    zero.close_session().await;
    let mut other = session(&broker, 1, "b").await;
    assert_eq!(other.fetch(&Ask::of(p1)).await.acquired(p1), "");
    assert_eq!(one.ack(p1, 0, 4, ACCEPT).await, OK);
    let mut other = session(&broker, 0, "b").await;
    assert_eq!(other.fetch(&Ask::of(at)).await.acquired(at), "0-4#2");
}

// D21
#[tokio::test]
async fn a_session_that_named_another_brokers_partition_does_not_release_it() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 0, "a").await;
    let p1 = at.p(1);
    let mut one = session(&broker, 1, "a").await;
    one.fetch(&Ask::of(p1)).await;
    let mut zero = session(&broker, 0, "a").await;
    zero.fetch(&Ask::of(p1)).await;
    zero.close_session().await;
    drop(zero);
    assert_eq!(one.ack(p1, 0, 4, ACCEPT).await, OK);
}

// D25
#[tokio::test]
async fn acknowledgements_go_to_the_new_leader_once_records_are_acquired_there() {
    let (broker, at) = three_brokers().await;
    let mut member = join(&broker, 2, "a").await;
    let mut zero = session(&broker, 0, "a").await;
    zero.fetch(&Ask::of(at)).await;
    assert_eq!(zero.ack(at, 0, 1, ACCEPT).await, OK);
    assert_eq!(zero.ack(at, 2, 2, RELEASE).await, OK);
    broker.stop_node(0).await;
    let mut one = session(&broker, 1, "a").await;
    let ask = Ask::new().ack(at, 3, 3, ACCEPT);
    assert_eq!(
        one.acknowledge_at(1, &ask).await.error(),
        ErrorCode::SHARE_SESSION_NOT_FOUND,
        "sessions do not move"
    );
    let fetched = one.fetch(&Ask::of(at)).await;
    assert_eq!(
        fetched.acquired(at),
        "2-2#2 3-4#1",
        "what was written holds, what was only acquired is lost"
    );
    assert_eq!(one.ack(at, 2, 4, ACCEPT).await, OK);
    broker.start_node(0).await;
    let mut back = session(&broker, 0, "a").await;
    let fetched = back.fetch(&Ask::of(at)).await;
    assert_eq!(
        fetched.fetch_error(at),
        bare(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        "the leader stays"
    );
    assert_eq!(leader_hint(&fetched, at).0, 1);
    member.client = broker.client_of(coordinator(&broker, 1).await).await;
    member.beat().await;
}

// D26
#[tokio::test]
async fn a_broker_that_restarts_between_fetch_and_acknowledgement_says_so() {
    let broker = Settings::new().brokers(2).start().await;
    let mut admin = broker.client_of(0).await;
    let topic = admin.create_topic_on(Queue::TOPIC, &[&[1]]).await;
    let at = At {
        topic,
        partition: 0,
    };
    let configs = [("share.auto.offset.reset", "earliest")];
    admin.configure_group(Queue::GROUP, &configs).await;
    let _member = join(&broker, 0, "a").await;
    let mut one = session(&broker, 1, "a").await;
    one.client
        .produce_values(Queue::TOPIC, 0, &["a", "b", "c"])
        .await;
    assert_eq!(one.fetch(&Ask::of(at)).await.acquired(at), "0-2#1");
    broker.stop_node(1).await;
    broker.start_node(1).await;
    let mut again = session(&broker, 1, "a").await;
    let ask = Ask::new().ack(at, 0, 2, ACCEPT);
    assert_eq!(
        again.acknowledge_at(one.epoch, &ask).await.error(),
        ErrorCode::SHARE_SESSION_NOT_FOUND
    );
    assert_eq!(again.fetch(&Ask::of(at)).await.acquired(at), "0-2#1");
    assert_eq!(again.ack(at, 0, 2, ACCEPT).await, OK);
}

// D28
#[tokio::test]
async fn a_waiting_fetch_ends_when_its_broker_stops() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 1, "a").await;
    let mut zero = session(&broker, 0, "a").await;
    zero.fetch(&Ask::of(at)).await;
    let sent = zero.send_fetch(&Ask::new().patient()).await;
    broker.stop_node(0).await;
    // Answered or cut off, but not left hanging.
    let _ = sent;
    let _ = zero.client.receive_or_closed().await;
    let mut other = session(&broker, 1, "b").await;
    assert_eq!(other.fetch(&Ask::of(at)).await.acquired(at), "0-4#1");
}

// D28
#[tokio::test]
async fn a_fetch_that_waits_for_another_partition_ends_when_a_leader_moves_here() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 1, "a").await;
    let mut one = session(&broker, 1, "a").await;
    let p1 = at.p(1);
    one.fetch(&Ask::of(p1)).await;
    let wrong = one.fetch(&Ask::new().and(at)).await;
    assert_eq!(leader_hint(&wrong, at).0, 0);
    broker.stop_node(0).await;
    assert_eq!(
        one.fetch(&Ask::new()).await.acquired(at),
        "0-4#1",
        "the same session serves what its broker leads now"
    );
}

#[tokio::test]
async fn a_group_survives_the_loss_of_its_coordinator() {
    let (broker, at) = three_brokers().await;
    let first = coordinator(&broker, 0).await;
    let mut member = join(&broker, 0, "a").await;
    let epoch = member.member_epoch;
    let leader = (0..3).find(|&node| node != first).unwrap_or_default();
    let mine = at.p(leader);
    let mut reader = session(&broker, leader, "a").await;
    reader.fetch(&Ask::of(mine)).await;
    assert_eq!(reader.ack(mine, 0, 2, ACCEPT).await, OK);
    broker.stop_node(first).await;

    let second = coordinator(&broker, leader).await;
    assert_ne!(second, first);
    let mut client = broker.client_of(second).await;
    let group = client.describe_share_group(Queue::GROUP).await;
    assert_eq!(
        (&*group.group_state, group.members.len()),
        ("Stable", 1),
        "replayed"
    );
    assert_eq!(
        client
            .start_and_lag(Queue::GROUP, Queue::TOPIC, leader)
            .await
            .1,
        2
    );
    member.client = client;
    let answer = member.heartbeat(epoch, None).await;
    assert_eq!((answer.error_code, answer.member_epoch), (0, epoch));
    assert_eq!(
        reader.ack(mine, 3, 4, ACCEPT).await,
        OK,
        "locks do not care who coordinates"
    );

    broker.start_node(first).await;
    let third = coordinator(&broker, leader).await;
    member.client = broker.client_of(third).await;
    member.beat().await;
    // The sessions run on at the new coordinator.
    broker.advance(45_000).await;
    let group = member.client.describe_share_group(Queue::GROUP).await;
    assert_eq!((&*group.group_state, group.members.len()), ("Empty", 0));
}

#[tokio::test]
async fn accepted_records_stay_accepted_however_often_leaders_move() {
    let (broker, at) = three_brokers().await;
    let _member = join(&broker, 0, "a").await;
    let mut leader = 0;
    for offset in 0..5 {
        let mut reader = session(&broker, leader, "a").await;
        let fetched = reader.fetch(&Ask::of(at).exactly(1)).await;
        assert_eq!(fetched.acquired(at), format!("{offset}-{offset}#1"));
        assert_eq!(reader.ack(at, offset, offset, ACCEPT).await, OK);
        let next = (leader + 1) % 3;
        broker.stop_node(leader).await;
        broker.start_node(leader).await;
        let topic = broker
            .client_of(next)
            .await
            .describe_topic(Queue::TOPIC, false)
            .await;
        let partition = topic.partitions.iter().find(|p| p.partition_index == 0);
        leader = partition.map_or(-1, |p| *p.leader_id);
    }
    let mut reader = session(&broker, leader, "a").await;
    assert_eq!(reader.fetch(&Ask::of(at)).await.acquired(at), "");
}
