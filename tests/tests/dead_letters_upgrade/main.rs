//! Directories from before: one of Apache Kafka 4.4.0 whose broker died while dead letters were on their
//! way, and one of ours whose group record has never heard of a pause.
//!
//! `kafka-4.4.0` is what a real Kafka left; `make.rs` makes it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod make;
#[path = "../dead_letters_identical/stage.rs"]
#[allow(dead_code, reason = "the scenarios need more of it")]
mod stage;

use std::path::{Path, PathBuf};

use ottla_protocol::StrBytes;
use ottla_protocol::messages::UpdateFeaturesRequest;
use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_tests::{ACCEPT, Ask, At, Client, Embedded, Member, OK, Settings};

/// What a real Kafka left.
pub(crate) const KAFKA: &str = "kafka-4.4.0";
/// What we left before there were dead letters and pauses.
pub(crate) const OURS: &str = "ottla-0.1.0";

const GROUP: &str = "up.group";
const SOURCE: &str = "up.source";
const DLQ: &str = "dlq.up";

pub(crate) fn directory(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/dead_letters_upgrade").join(name)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Every group with a breaker that one letter would trip.
fn touchy(settings: Settings) -> Settings {
    let breaker = "ottla.group.default.share.group.dlq.circuit.breaker";
    settings
        .set(&format!("{breaker}.enable"), "true")
        .set(&format!("{breaker}.min.messages"), "1")
        .set(&format!("{breaker}.threshold"), "0.01")
}

/// Joins, and fetches from the first partitions of the source; what was acquired from each.
async fn take(client: Client, id: &str, partitions: i32) -> (Member, At, Vec<String>) {
    let mut member = Member::new(client, GROUP, id);
    let told = member.client.describe_topic(SOURCE, false).await;
    let at = At {
        topic: told.topic_id,
        partition: 0,
    };
    member.join(&[SOURCE]).await;
    let ask = (0..partitions).fold(Ask::new(), |ask, partition| ask.and(at.p(partition)));
    let fetched = member.fetch(&ask).await;
    let acquired = (0..partitions).map(|partition| fetched.acquired(at.p(partition)));
    (member, at, acquired.collect())
}

/// Letters as `partition-offset#count cause`, with the copied key.
async fn letters(broker: &Embedded) -> Vec<String> {
    let mut client = broker.client_of(1).await;
    let letters = client.fetch_all(DLQ, 0, 0).await;
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let mut lines: Vec<String> = letters
        .iter()
        .map(|letter| {
            let header = |index: usize| text(letter.headers[index].1.as_deref());
            let key = text(letter.key.as_deref());
            format!(
                "{}-{}#{} {key}: {}",
                header(1),
                header(2),
                header(4),
                header(5)
            )
        })
        .collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn the_letters_of_a_kafka_that_died_are_written_and_trip_nothing() {
    let dir = tempfile::tempdir().unwrap();
    copy(&directory(KAFKA), dir.path());
    let open = || touchy(Settings::new().brokers(2)).data_dir(dir.path());
    let broker = open().start().await;
    let (mut member, at, acquired) = take(broker.client_of(0).await, "new", 2).await;
    assert_eq!(acquired, ["10-11#2 12-19#1", ""]);
    assert_eq!(member.ack(at, 10, 19, ACCEPT).await, OK);
    broker.advance_holding_sessions(1).await;
    let mut expected: Vec<String> = (5..10)
        .map(|n| format!("0-{n}#1 k{n}: Offset rejected by client."))
        .collect();
    let limit =
        (0..6).map(|n| format!("1-{n}#2 k{n}: Offset delivery count exceeded the threshold."));
    expected.extend(limit);
    assert_eq!(letters(&broker).await, expected);
    let mut admin = broker.client_of(0).await;
    for partition in 0..2 {
        let (_, lag) = admin.start_and_lag(GROUP, SOURCE, partition).await;
        assert_eq!(lag, 0, "partition {partition}");
    }
    // Letters of a life before this one say nothing about this one.
    broker.advance_holding_sessions(120_000).await;
    assert_eq!(admin.paused(GROUP).await, None);
    broker.shutdown().await;

    // Once more: nothing is written twice.
    let broker = open().start().await;
    let (_, _, acquired) = take(broker.client_of(0).await, "newer", 2).await;
    assert_eq!(acquired, ["", ""]);
    broker.advance_holding_sessions(120_000).await;
    assert_eq!(letters(&broker).await, expected);
    broker.shutdown().await;
}

async fn pause_level(client: &mut Client, level: i16) -> i16 {
    let key = FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str("share.pause.version"))
        .with_max_version_level(level)
        .with_upgrade_type(1);
    let request = UpdateFeaturesRequest::default()
        .with_feature_updates(vec![key])
        .with_timeout_ms(10_000);
    client.call(1, &request).await.error_code
}

#[tokio::test]
async fn an_older_directory_of_ours_opens_and_learns_to_pause() {
    let dir = tempfile::tempdir().unwrap();
    copy(&directory(OURS), dir.path());
    let open = || Settings::new().data_dir(dir.path());
    let broker = open().start().await;
    let (mut member, at, acquired) = take(broker.client().await, "new", 1).await;
    assert_eq!(acquired, ["7-9#2 10-19#1"]);
    assert_eq!(member.ack(at, 7, 14, ACCEPT).await, OK);
    let mut admin = broker.client().await;
    assert_eq!(admin.paused(GROUP).await, None);
    assert_eq!(pause_level(&mut admin, 1).await, 0);
    assert_eq!(admin.pause(GROUP, Some("a look around")).await, OK);
    broker.shutdown().await;

    let broker = open().start().await;
    let mut admin = broker.client().await;
    assert_eq!(admin.paused(GROUP).await.as_deref(), Some("ADMIN"));
    let (mut member, at, acquired) = take(broker.client().await, "newer", 1).await;
    assert_eq!(acquired, [""]);
    assert_eq!(admin.resume(GROUP, None).await, OK);
    assert_eq!(member.fetch(&Ask::of(at)).await.acquired(at), "15-19#1");
    broker.shutdown().await;
}
