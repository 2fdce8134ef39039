//! Letters are those of Apache Kafka 4.4.0 (KIP-1191), byte for byte: the same scenarios, played here and there.
//!
//! `kafka-4.4.0.txt` is what a real Kafka did. `OTTLA_REFERENCE=HOST:PORT` names one to play against as well
//! (started by `cargo xtask letters` and `cargo xtask test`); with `UPDATE_LETTERS=1` its letters are written to the file.

mod scenarios;
mod stage;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use ottla_tests::Settings;

/// What was seen, by scenario.
type Played = BTreeMap<&'static str, Vec<String>>;

/// Plays all scenarios on one broker: those at once that do not change the whole cluster.
async fn play(at: SocketAddr) -> Played {
    let mut played = Played::new();
    let mut running = vec![];
    macro_rules! start {
        ($($name:ident)*) => { $(running.push((stringify!($name), tokio::spawn(scenarios::$name(at))));)* };
    }
    start!(reject copies delivery_limit codecs stored partitions mixed switched sizes large flag refused);
    for (name, scenario) in running {
        let seen = scenario.await;
        played.insert(
            name,
            seen.unwrap_or_else(|error| panic!("{name} at {at}: {error}")),
        );
    }
    played.insert("auto_creation", scenarios::auto_creation(at).await);
    played.insert("feature", scenarios::feature(at).await);
    played
}

fn text(played: &Played) -> String {
    let section = |(name, seen): (&&str, &Vec<String>)| format!("== {name}\n{}\n", seen.join("\n"));
    played.iter().map(section).collect()
}

#[track_caller]
fn same(one: &str, other: &str, who: &str) {
    let lines = one.lines().zip(other.lines());
    if let Some((at, (a, b))) = lines.enumerate().find(|(_, (a, b))| a != b) {
        panic!("{who} differ in line {}:\n  {a}\n  {b}", at + 1);
    }
    assert_eq!(one.lines().count(), other.lines().count(), "{who}");
}

fn recorded() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dead_letters_identical/kafka-4.4.0.txt")
}

fn reference() -> Option<SocketAddr> {
    let at = std::env::var("OTTLA_REFERENCE").ok()?;
    Some(
        at.parse()
            .unwrap_or_else(|error| panic!("OTTLA_REFERENCE={at}: {error}")),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_are_those_of_a_real_kafka() {
    let kafka = match reference() {
        Some(at) => Some(text(&play(at).await)),
        None => None,
    };
    if let Some(kafka) = &kafka
        && std::env::var_os("UPDATE_LETTERS").is_some()
    {
        std::fs::write(recorded(), kafka).unwrap_or_else(|error| panic!("{error}"));
    }
    let file = std::fs::read_to_string(recorded()).unwrap_or_else(|error| panic!("{error}"));
    if let Some(kafka) = &kafka {
        same(
            &file,
            kafka,
            "the recorded letters and those of the Kafka that runs",
        );
    }
    let broker = Settings::new()
        .set("num.partitions", "1")
        .set("group.share.min.record.lock.duration.ms", "1000")
        .real_clock()
        .start()
        .await;
    let ours = text(&play(broker.address()).await);
    broker.shutdown().await;
    same(&file, &ours, "Kafka's letters and ours");
}
