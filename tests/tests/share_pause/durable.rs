//! A pause outlives restarts and moves, and ends with its group.

use ottla_tests::{Ask, At, Embedded, Launch, Member, OK, Queue, START_MS, Settings};

use super::{PAUSED, at, pause};

async fn member(broker: &Embedded, node: i32, id: &str) -> Member {
    Member::new(broker.client_of(node).await, Queue::GROUP, id)
}

#[tokio::test]
async fn a_restart_while_paused_stays_paused_and_a_resume_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let settings = || Settings::new().data_dir(dir.path());
    let mut queue = Queue::of(1, settings(), &[]).await;
    queue.fill().await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    a.fetch(&Ask::of(at).exactly(5)).await;
    assert_eq!(a.ack(at, 0, 4, ottla_tests::ACCEPT).await, OK);
    pause(&mut queue).await;
    queue.broker.shutdown().await;

    let broker = settings().start().await;
    let mut admin = broker.client().await;
    let shown = admin.delivery(Queue::GROUP).await;
    assert_eq!(shown.pause_reason.as_deref(), Some("ADMIN"));
    assert_eq!(
        (shown.paused_since_ms, shown.note.as_deref()),
        (START_MS, Some("why"))
    );
    let mut a = member(&broker, 0, "a").await;
    a.join(&[Queue::TOPIC]).await;
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "");
    assert_eq!(admin.resume(Queue::GROUP, None).await, OK);
    let fetched = a.fetch(&Ask::new()).await;
    assert_eq!(fetched.acquired(at), "5-9#1 10-24#1");
    broker.shutdown().await;
}

#[tokio::test]
async fn a_kill_while_paused_stays_paused() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = Launch::new().data_dir(dir.path()).start().await;
    let mut admin = child.client().await;
    let topic = admin.create_topic(Queue::TOPIC, 1).await;
    let configs = [("share.auto.offset.reset", "earliest")];
    admin.configure_group(Queue::GROUP, &configs).await;
    admin.produce_values(Queue::TOPIC, 0, &["a", "b"]).await;
    let mut a = Member::new(child.client().await, Queue::GROUP, "a");
    a.join(&[Queue::TOPIC]).await;
    assert_eq!(admin.pause(Queue::GROUP, Some("why")).await, OK);
    child.kill().await;
    let child = Launch::new().data_dir(dir.path()).start().await;
    let at = At {
        topic,
        partition: 0,
    };
    let mut a = Member::new(child.client().await, Queue::GROUP, "a");
    a.join(&[Queue::TOPIC]).await;
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "");
    assert_eq!(a.client.resume(Queue::GROUP, None).await, OK);
    assert_eq!(a.fetch(&Ask::new()).await.acquired(at), "0-1#1");
}

/// Three brokers; the topic is led by `leads`.
async fn three(leads: i32) -> (Embedded, At) {
    let broker = Settings::new().brokers(3).start().await;
    let mut admin = broker.client_of(0).await;
    let replicas: Vec<i32> = (0..3).map(|n| (leads + n) % 3).collect();
    let topic = admin.create_topic_on(Queue::TOPIC, &[&replicas]).await;
    let configs = [("share.auto.offset.reset", "earliest")];
    admin.configure_group(Queue::GROUP, &configs).await;
    let mut leader = broker.client_of(leads).await;
    leader
        .produce_values(Queue::TOPIC, 0, &["a", "b", "c"])
        .await;
    let at = At {
        topic,
        partition: 0,
    };
    (broker, at)
}

async fn coordinator(broker: &Embedded, ask: i32) -> i32 {
    let mut client = broker.client_of(ask).await;
    *client.find_coordinator(0, Queue::GROUP).await.node_id
}

#[tokio::test]
async fn a_pause_moves_with_the_coordinator_and_with_the_leader() {
    for leads in 0..3 {
        let (broker, at) = three(leads).await;
        let old = coordinator(&broker, 0).await;
        let mut a = member(&broker, old, "a").await;
        a.join(&[Queue::TOPIC]).await;
        assert_eq!(a.client.pause(Queue::GROUP, Some("why")).await, OK);
        let session = async |broker: &Embedded, leader: i32| {
            let mut a = member(broker, leader, "a").await;
            a.fetch(&Ask::of(at)).await.acquired(at)
        };
        assert_eq!(session(&broker, leads).await, "");
        drop(a);
        broker.stop_node(old).await;
        let ask = (old + 1) % 3;
        let new = coordinator(&broker, ask).await;
        assert_ne!(new, old);
        let leader = if leads == old { (leads + 1) % 3 } else { leads };
        assert_eq!(session(&broker, leader).await, "");
        let mut admin = broker.client_of(new).await;
        let line = format!("PAUSED ADMIN {START_MS}");
        assert_eq!(admin.delivery_line(Queue::GROUP).await, line);
        assert_eq!(admin.resume(Queue::GROUP, None).await, OK);
        assert_eq!(session(&broker, leader).await, "0-2#1");
    }
}

#[tokio::test]
async fn deleting_the_group_drops_its_pause_and_not_its_config() {
    let mut queue = Queue::filled(&[]).await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    pause(&mut queue).await;
    a.leave().await;
    assert_eq!(queue.admin.delete_group(Queue::GROUP).await, OK);
    let mut a = queue.member("a").await;
    assert_eq!(a.fetch(&Ask::of(at).exactly(1)).await.acquired(at), "0-0#1");
    a.close_session().await;
    queue.configure(&[(PAUSED, "true")]).await;
    a.leave().await;
    assert_eq!(queue.admin.delete_group(Queue::GROUP).await, OK);
    let mut b = queue.member("b").await;
    assert_eq!(b.fetch(&Ask::of(at)).await.acquired(at), "");
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        "PAUSED ADMIN -1"
    );
}

#[tokio::test]
async fn the_config_outlives_a_restart() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let settings = || Settings::new().data_dir(dir.path());
    let mut queue = Queue::of(1, settings(), &[(PAUSED, "true")]).await;
    queue.fill().await;
    let _a = queue.member("a").await;
    queue.broker.shutdown().await;
    let broker = settings().start().await;
    let mut a = member(&broker, 0, "a").await;
    a.join(&[Queue::TOPIC]).await;
    let at = queue.at;
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "");
    assert_eq!(
        a.client.delivery_line(Queue::GROUP).await,
        "PAUSED ADMIN -1"
    );
    broker.shutdown().await;
}
