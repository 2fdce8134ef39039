//! What is looked at before a letter is written: each failed check archives the records without a
//! letter, counted by its reason.

use ottla::dead_letters::GiveUp;
use ottla_protocol::ErrorCode;
use ottla_tests::{Ask, Member, OK, Queue, REJECT, START_MS, Settings, http};

use crate::scene::{AUTO_CREATE, DLQ, FLAG, NAME, PREFIX, Scene, TAKES, offsets};

async fn archives(scene: &mut Scene, why: GiveUp) {
    let before = scene.counts().given_up(why);
    scene.reject(3).await;
    let (_, given_up) = scene.outcome(why);
    assert_eq!(given_up - before, 3, "{why:?}");
    assert_eq!(scene.window(), 0);
    // Nothing was sent: only the reason has a line.
    assert_eq!(scene.counts().attempts(), 0);
}

#[tokio::test]
async fn a_name_without_the_prefix_is_refused_also_where_the_topic_takes_letters() {
    let mut scene = Scene::with(&[(NAME, "letters")]).await;
    let admin = &mut scene.queue.admin;
    admin.create_topic_with("letters", 1, TAKES).await;
    archives(&mut scene, GiveUp::Prefix).await;
    scene.alter_brokers(&[(AUTO_CREATE, "true")]).await;
    archives(&mut scene, GiveUp::Prefix).await;
    scene.alter_brokers(&[(PREFIX, "")]).await;
    scene.reject(1).await;
    let letters = scene.queue.admin.fetch_all("letters", 0, 0).await;
    assert_eq!(offsets(&letters), "6");
}

#[tokio::test]
async fn a_missing_topic_is_named() {
    let mut scene = Scene::without_topic(&[]).await;
    archives(&mut scene, GiveUp::TopicMissing).await;
    let admin = &mut scene.queue.admin;
    assert!(!admin.topic_names().await.contains(&DLQ.to_owned()));
}

#[tokio::test]
async fn a_topic_that_takes_no_letters_is_named() {
    let mut scene = Scene::without_topic(&[]).await;
    scene.create(&[]).await;
    archives(&mut scene, GiveUp::FlagMissing).await;
    scene.alter_topic(TAKES).await;
    scene.reject(1).await;
    assert_eq!(scene.letters().await, "3");
    scene.alter_topic(&[(FLAG, "false")]).await;
    scene.reject(1).await;
    assert_eq!(scene.letters().await, "3");
}

#[tokio::test]
async fn a_compacted_topic_is_named() {
    let mut scene = Scene::without_topic(&[]).await;
    let mut configs = TAKES.to_vec();
    configs.push(("cleanup.policy", "compact"));
    scene.create(&configs).await;
    archives(&mut scene, GiveUp::Compacted).await;
}

#[tokio::test]
async fn a_missing_topic_is_made_where_that_is_allowed() {
    let settings = Settings::new()
        .set(AUTO_CREATE, "true")
        .set("num.partitions", "3");
    let mut scene = Scene::on(settings, 1, &[]).await;
    scene.reject(2).await;
    assert_eq!(scene.letters().await, "0 1");
    let found = scene.queue.admin.describe_topic(DLQ, false).await;
    assert_eq!(found.partitions.len(), 3);
    let topic = scene.broker().process.broker.cluster.topic(DLQ).unwrap();
    assert!(topic.config().dlq_group_enable);
}

#[tokio::test]
async fn a_name_that_no_topic_can_have_is_named() {
    let settings = || Settings::new().set(AUTO_CREATE, "true");
    let long = format!("dlq.{}", "x".repeat(250));
    for name in ["dlq.no good", &long] {
        let mut scene = Scene::on(settings(), 1, &[(NAME, name)]).await;
        archives(&mut scene, GiveUp::InvalidName).await;
    }
    let settings = settings().set(PREFIX, "");
    let mut scene = Scene::on(settings, 1, &[(NAME, "..")]).await;
    archives(&mut scene, GiveUp::InvalidName).await;
}

// D44
#[tokio::test]
async fn a_missing_topic_is_made_once_under_concurrency() {
    let settings = Settings::new().set(AUTO_CREATE, "true");
    let scene = Scene::on(settings, 8, &[]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for partition in 0..8 {
        let at = scene.queue.at.p(partition);
        let client = scene.broker().client().await;
        tasks.spawn(async move {
            let mut member = Member::new(client, Queue::GROUP, &format!("m{partition}"));
            member.join(&[Queue::TOPIC]).await;
            let client = &mut member.client;
            client
                .produce_values(Queue::TOPIC, partition, &["a", "b"])
                .await;
            member.fetch(&Ask::of(at)).await;
            assert_eq!(member.ack(at, 0, 1, REJECT).await, OK);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut scene = scene;
    scene.settle().await;
    assert_eq!(scene.letters_in(0).await.len(), 16);
    assert_eq!(scene.outcome(GiveUp::Refused), (16, 0));
}

// D43
#[tokio::test]
async fn the_brokers_settings_are_read_at_each_write() {
    let mut scene = Scene::without_topic(&[]).await;
    archives(&mut scene, GiveUp::TopicMissing).await;
    scene
        .alter_brokers(&[(PREFIX, "q."), (AUTO_CREATE, "true")])
        .await;
    scene.reject(1).await;
    assert_eq!(scene.counts().given_up(GiveUp::Prefix), 1);
    scene.queue.configure(&[(NAME, "q.t")]).await;
    scene.reject(1).await;
    let letters = scene.queue.admin.fetch_all("q.t", 0, 0).await;
    assert_eq!(offsets(&letters), "4");
}

#[tokio::test]
async fn what_one_broker_says_wins_over_what_all_say() {
    let mut scene = Scene::start().await;
    scene.alter_brokers(&[(PREFIX, "other.")]).await;
    let node = scene.broker().process.broker.nodes().next().unwrap().id;
    let own = [(PREFIX, "dlq.")];
    let admin = &mut scene.queue.admin;
    let answer = admin.alter_configs(4, &node.to_string(), &own).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
    scene.reject(2).await;
    assert_eq!(scene.letters().await, "0 1");
    scene.alter_brokers(&[(PREFIX, "")]).await;
    let own = [(PREFIX, "none.")];
    let admin = &mut scene.queue.admin;
    admin.alter_configs(4, &node.to_string(), &own).await;
    scene.reject(1).await;
    assert_eq!(scene.letters().await, "0 1");
    assert_eq!(scene.outcome(GiveUp::Prefix), (2, 1));
}

// D49
#[tokio::test]
async fn a_loop_is_cut_unless_it_is_allowed() {
    let mut scene = Scene::with(&[(NAME, Queue::TOPIC)]).await;
    scene.alter_brokers(&[(PREFIX, "")]).await;
    let answer = scene
        .queue
        .admin
        .alter_configs(2, Queue::TOPIC, TAKES)
        .await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE);
    archives(&mut scene, GiveUp::Loop).await;
    let configs = [("ottla.share.dlq.allow.loop", "true")];
    scene.queue.configure(&configs).await;
    scene.reject(1).await;
    let records = scene.queue.admin.fetch_all(Queue::TOPIC, 0, 4).await;
    assert_eq!(offsets(&records), "3");
}

// D42
#[tokio::test]
async fn share_version_1_archives_without_a_letter() {
    let settings = Settings::new().set("feature.share.version", "1");
    let mut scene = Scene::on(settings, 1, &[]).await;
    scene.create(TAKES).await;
    scene.reject(3).await;
    assert_eq!(scene.letters().await, "");
    assert_eq!(scene.outcome(GiveUp::Refused), (0, 0));
    assert_eq!(scene.window(), 0);
}

#[tokio::test]
async fn share_version_goes_down_and_up_again_live() {
    let mut scene = Scene::start().await;
    scene.reject(1).await;
    for (version, letters) in [(1, "0"), (2, "0 2")] {
        let broker = &scene.broker().process.broker;
        let level = vec![("share.version".to_owned(), version)];
        broker
            .cluster
            .set_features(level, broker.clock.now())
            .unwrap();
        scene.reject(1).await;
        assert_eq!(scene.letters().await, letters, "share.version={version}");
        assert_eq!(scene.window(), 0);
    }
    assert_eq!(scene.outcome(GiveUp::Refused), (2, 0));
}

#[tokio::test]
async fn what_was_written_and_given_up_is_on_the_metrics_page() {
    let mut scene = Scene::start().await;
    scene.reject(5).await;
    scene.alter_topic(&[(FLAG, "false")]).await;
    scene.reject(2).await;
    let page = http(scene.broker().admin(), "GET", "/metrics").await.body;
    let lines = page.lines().filter(|line| {
        !line.starts_with('#')
            && (line.contains("_dead_letter_queue_") || line.contains("_dlq_given_up"))
    });
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "ottla_dead_letter_queue_record_count_total{group=\"g\"} 5",
            "ottla_dead_letter_queue_produce_requests_total{group=\"g\"} 1",
            "ottla_dlq_given_up_total{group=\"g\",reason=\"flag_missing\"} 2",
        ]
    );
    assert_eq!(scene.broker().now(), START_MS);
}

#[tokio::test]
async fn groups_that_do_not_share_their_topic_are_named() {
    let default = |key: &str| format!("ottla.group.default.{key}");
    let settings = Settings::new()
        .set(&default(NAME), DLQ)
        .set(&default("share.group.dlq.strict.isolation"), "true");
    let mut scene = Scene::on(settings, 1, &[]).await;
    scene.create(TAKES).await;
    archives(&mut scene, GiveUp::IsolationConflict).await;
    assert_eq!(scene.letters().await, "");
}
