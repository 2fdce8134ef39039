//! What `/metrics` says of share groups, under Kafka's names.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use ottla_tests::{ACCEPT, Ask, At, Embedded, Member, Queue, RELEASE, Settings, http};

/// The lines of a scrape, without comments.
async fn scrape(broker: &Embedded) -> Vec<String> {
    let body = http(broker.admin(), "GET", "/metrics").await.body;
    assert!(body.trim_end().ends_with("# EOF"), "{body}");
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// The value of the one series that begins so, labels included.
fn value(lines: &[String], series: &str) -> i64 {
    let wanted = format!("{series} ");
    let mut found = lines.iter().filter(|line| line.starts_with(&wanted));
    let line = found.next();
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{}", lines.join("\n")));
    assert!(found.next().is_none(), "{series} twice");
    line[wanted.len()..].parse::<f64>().unwrap() as i64
}

fn of_partition(name: &str, partition: i32) -> String {
    format!("ottla_{name}{{group=\"g\",topic=\"t\",partition=\"{partition}\"}}")
}

#[tokio::test]
async fn a_share_partition_shows_what_is_in_flight_and_what_expired() {
    let queue = Queue::filled(&[]).await;
    let mut member = queue.member("m").await;
    let fetched = member.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.acquired(queue.at), "0-24#1");
    let lines = scrape(&queue.broker).await;
    let at = |name: &str| value(&lines, &of_partition(name, 0));
    assert_eq!(at("in_flight_message_count"), 25);
    assert_eq!(at("in_flight_batch_message_count_sum"), 25);
    assert_eq!(at("in_flight_batch_message_count_count"), 1);
    assert_eq!(at("acquisition_lock_timeout_total"), 0);
    assert!(at("fetch_lock_time_ms_count") >= 1);

    member.ack(queue.at, 0, 4, ACCEPT).await;
    member.ack(queue.at, 5, 9, RELEASE).await;
    queue.broker.advance_holding_sessions(30_000).await;
    let lines = scrape(&queue.broker).await;
    let at = |name: &str| value(&lines, &of_partition(name, 0));
    assert_eq!(at("in_flight_message_count"), 20, "from offset 5 on");
    assert_eq!(at("acquisition_lock_timeout_total"), 15);
    let acked = |kind: &str| {
        let series = format!("ottla_share_record_acknowledgements_total{{ack_type=\"{kind}\"}}");
        value(&lines, &series)
    };
    assert_eq!((acked("Accept"), acked("Release")), (5, 5));
    assert!(value(&lines, "ottla_partition_load_time_ms_count") >= 1);
    assert!(value(&lines, "ottla_share_coordinator_write_total") >= 2);
    assert!(value(&lines, "ottla_share_coordinator_write_latency_ms_count") >= 2);
    assert!(value(&lines, "ottla_share_group_rebalance_count_total") >= 1);
    let active = "ottla_share_coordinator_num_partitions{state=\"active\"}";
    assert!(value(&lines, active) >= 1);
}

#[tokio::test]
async fn requests_are_counted_as_a_whole_and_by_topic() {
    let mut queue = Queue::of(2, Settings::new(), &[]).await;
    queue.produce(3).await;
    let mut member = queue.member("m").await;
    let both = Ask::of(queue.at).and(queue.at.p(1));
    member.fetch(&both).await;
    member.ack(queue.at, 0, 2, ACCEPT).await;
    let wrong = member.ack(queue.at.p(1), 0, 0, ACCEPT).await;
    assert!(wrong.0 != 0, "{wrong:?}");
    let unknown = At {
        topic: ottla_protocol::Uuid::from_bytes([7; 16]),
        partition: 0,
    };
    member.try_fetch(&Ask::of(unknown)).await;
    let lines = scrape(&queue.broker).await;
    let all = |name: &str| value(&lines, &format!("ottla_{name}_requests_total"));
    assert_eq!(
        (all("total_share_fetch"), all("failed_share_fetch")),
        (2, 1)
    );
    let acks = (
        all("total_share_acknowledgement"),
        all("failed_share_acknowledgement"),
    );
    assert_eq!(acks, (2, 1));
    let of_topic = |name: &str| {
        value(
            &lines,
            &format!("ottla_topic_{name}_requests_total{{topic=\"t\"}}"),
        )
    };
    assert_eq!(of_topic("total_share_fetch"), 2);
    assert_eq!(of_topic("failed_share_fetch"), 0);
    assert_eq!(of_topic("total_share_acknowledgement"), 2);
    assert_eq!(of_topic("failed_share_acknowledgement"), 1);
    let ratio = "ottla_request_topic_partitions_fetch_ratio_sum{group=\"g\"}";
    assert_eq!(value(&lines, ratio), 50, "one of two, then none of three");
    assert_eq!(
        value(
            &lines,
            "ottla_topic_partitions_acquire_time_ms_count{group=\"g\"}"
        ),
        2
    );
}

#[tokio::test]
async fn a_fetch_that_waits_is_in_the_purgatory_and_counted_when_its_time_is_over() {
    let queue = Queue::start().await;
    let mut member = queue.member("m").await;
    let sent = member.send_fetch(&Ask::of(queue.at).patient()).await;
    let waiting = "ottla_num_delayed_operations{delayed_operation=\"ShareFetch\"}";
    let watched = "ottla_purgatory_size{delayed_operation=\"ShareFetch\"}";
    let mut lines = scrape(&queue.broker).await;
    while value(&lines, waiting) < 1 {
        lines = scrape(&queue.broker).await;
    }
    assert_eq!(value(&lines, watched), 2, "the share partition and its log");
    assert_eq!(value(&lines, "ottla_share_sessions_count"), 1);
    assert_eq!(value(&lines, "ottla_share_partitions_count"), 1);
    drop((member, sent));
    while value(&lines, waiting) > 0 || value(&lines, "ottla_share_sessions_count") > 0 {
        lines = scrape(&queue.broker).await;
    }
    assert_eq!(value(&lines, watched), 0);
    assert_eq!(value(&lines, "ottla_share_session_evictions_total"), 1);
    assert_eq!(value(&lines, "ottla_delayed_share_fetch_expires_total"), 0);

    let mut other = queue.member("n").await;
    other.fetch(&Ask::of(queue.at).max_wait(1)).await;
    let lines = scrape(&queue.broker).await;
    assert_eq!(value(&lines, "ottla_delayed_share_fetch_expires_total"), 1);
}

#[tokio::test]
async fn series_go_with_their_group_and_their_topic() {
    let mut queue = Queue::filled(&[]).await;
    let mut member = queue.member("m").await;
    member.fetch(&Ask::of(queue.at)).await;
    member.ack(queue.at, 0, 2, ACCEPT).await;
    let named = |lines: &[String], label: &str| {
        let named = lines.iter().filter(|line| line.contains(label));
        named.cloned().collect::<Vec<_>>()
    };
    let lines = scrape(&queue.broker).await;
    assert!(named(&lines, "group=\"g\"").len() > 20);
    // The session lives on, and remembers the share partition.
    member.leave().await;
    let deleted = queue.admin.delete_group(Queue::GROUP).await;
    assert!(deleted.0 == 0, "{deleted:?}");
    let lines = scrape(&queue.broker).await;
    assert_eq!(named(&lines, "group=\"g\""), Vec::<String>::new());
    assert!(!named(&lines, "topic=\"t\"").is_empty());
    queue.admin.delete_topic(Queue::TOPIC).await;
    let lines = scrape(&queue.broker).await;
    assert_eq!(named(&lines, "topic=\"t\""), Vec::<String>::new());
}

#[tokio::test]
async fn the_series_of_a_share_partition_stay_while_its_topic_has_another_leader() {
    let broker = Settings::new().brokers(2).start().await;
    let mut admin = broker.client_of(0).await;
    let topic = admin.create_topic_on("t", &[&[1, 0]]).await;
    admin
        .configure_group("g", &[("share.auto.offset.reset", "earliest")])
        .await;
    let at = At {
        topic,
        partition: 0,
    };
    let mut producer = broker.client_of(1).await;
    producer.produce_values("t", 0, &["a"]).await;
    let coordinator = *admin.find_coordinator(0, "g").await.node_id;
    let client = broker.client_of(coordinator).await;
    Member::new(client, "g", "m").join(&["t"]).await;
    for leader in [1, 0] {
        let mut session = Member::new(broker.client_of(leader).await, "g", "m");
        assert_eq!(session.fetch(&Ask::of(at)).await.acquired(at), "0-0#1");
        if leader == 1 {
            broker.stop_node(1).await;
        }
    }
    let lines = scrape(&broker).await;
    assert_eq!(
        value(&lines, &of_partition("in_flight_message_count", 0)),
        1
    );
    assert!(value(&lines, &of_partition("fetch_lock_time_ms_count", 0)) >= 2);
}

#[tokio::test]
async fn groups_whose_dead_letters_are_off_are_counted() {
    let topic = "ottla.group.default.errors.deadletterqueue.topic.name";
    let strict = "ottla.group.default.share.group.dlq.strict.isolation";
    let settings = Settings::new().set(topic, "dlq.x").set(strict, "true");
    let queue = Queue::of(1, settings, &[]).await;
    let lines = scrape(&queue.broker).await;
    assert_eq!(value(&lines, "ottla_dlq_isolation_conflicts"), 1);
}

/// Every metric is in the table of `docs/metrics.md`.
#[tokio::test]
async fn every_metric_is_documented() {
    let queue = Queue::filled(&[]).await;
    let mut member = queue.member("m").await;
    member.fetch(&Ask::of(queue.at)).await;
    member.ack(queue.at, 0, 2, ACCEPT).await;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md"));
    let page = page.unwrap();
    let body = http(queue.broker.admin(), "GET", "/metrics").await.body;
    let types = body.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: BTreeSet<String> = types
        .map(|rest| {
            let (name, kind) = rest.split_once(' ').unwrap();
            let suffix = if kind == "counter" { "_total" } else { "" };
            format!("`{name}{suffix}`")
        })
        .collect();
    assert!(names.len() > 40, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(*name)).collect();
    assert!(missing.is_empty(), "not in docs/metrics.md: {missing:#?}");
}
