//! kill -9 while logs are compacted and cut, under load.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ottla_protocol::batch::BatchOptions;
use ottla_tests::{Child, Client, Launch};

use crate::{A_REST_MS, keyed, last_values};

const KEYS: u32 = 40;
const ROUNDS: usize = 6;
const WRITERS: u32 = 3;

async fn start(dir: &Path) -> (Child, Client) {
    let launch = Launch::new().data_dir(dir);
    let child = launch.set("log.cleaner.backoff.ms", "100").start().await;
    let client = child.client().await;
    (child, client)
}

/// What a writer knows of its keys: the last value that was acknowledged, and a value that was sent
/// behind it and may be there or not.
type Told = BTreeMap<String, (Option<String>, Option<Option<String>>)>;

/// Puts and deletes keys of its own until the broker is gone.
async fn write(address: std::net::SocketAddr, writer: u32, round: usize, mut told: Told) -> Told {
    let mut client = Client::connect(address).await;
    for n in 0..u32::MAX {
        let key = format!("w{writer} k{}", n % KEYS);
        let value = (n % 7 != 3).then(|| format!("{round}/{n} {}", "x".repeat(60)));
        let pairs = [(key.as_str(), value.as_deref())];
        let batch = keyed(client.timestamp, &pairs, BatchOptions::default());
        let request = Client::produce_request("t", 0, -1, batch);
        let entry = told.entry(key).or_default();
        entry.1 = Some(value.clone());
        let Some(answer) = client.call_or_lost(12, &request).await else {
            return told;
        };
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
        *entry = (value, None);
    }
    told
}

fn check(found: &BTreeMap<String, String>, told: &Told, what: &str) {
    for (key, (acknowledged, maybe)) in told {
        let found = found.get(key);
        let as_told = found == acknowledged.as_ref();
        let as_sent = maybe.as_ref().is_some_and(|sent| found == sent.as_ref());
        assert!(
            as_told || as_sent,
            "{what}: {key} is {found:?}, {acknowledged:?} or {maybe:?} was told"
        );
    }
}

fn bytes_of(dir: &Path, suffix: &str) -> u64 {
    let entries = std::fs::read_dir(dir.join("t-0")).unwrap();
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}

#[tokio::test]
async fn the_last_value_of_every_key_survives_kills_while_it_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let mut told: Vec<Told> = (0..WRITERS).map(|_| Told::new()).collect();
    let mut appended = 0;
    for round in 0..ROUNDS {
        let (child, mut client) = start(dir.path()).await;
        if round == 0 {
            let configs = [
                ("cleanup.policy", "compact"),
                ("internal.segment.bytes", "20000"),
                ("min.cleanable.dirty.ratio", "0.01"),
                ("delete.retention.ms", "1000"),
                ("file.delete.delay.ms", "0"),
            ];
            client.create_topic_with("t", 1, &configs).await;
        }
        let begin = client.end_offset("t", 0).await;
        let writers: Vec<_> = (0..WRITERS)
            .zip(std::mem::take(&mut told))
            .map(|(writer, told)| tokio::spawn(write(child.address(), writer, round, told)))
            .collect();
        // Segments fill, and the clock lets them be compacted again and again, until the kill.
        let until = begin + 1500 + 400 * round as i64;
        while client.end_offset("t", 0).await < until {
            child.advance(200).await;
        }
        child.kill().await;
        for writer in writers {
            told.push(writer.await.unwrap());
        }
        let (child, mut client) = start(dir.path()).await;
        appended = client.end_offset("t", 0).await;
        let found = last_values(&client.fetch_all("t", 0, 0).await);
        for told in &told {
            check(&found, told, &format!("round {round}"));
        }
        child.kill().await;
    }
    // At rest: little more than one value a key is left of it all, and no leftover files.
    let (child, mut client) = start(dir.path()).await;
    for _ in 0..4 {
        let value = "x".repeat(15_000);
        let pairs = [("last", Some(value.as_str()))];
        let batch = keyed(client.timestamp, &pairs, BatchOptions::default());
        assert_eq!(client.produce("t", 0, batch).await.error_code, 0);
        child.advance(A_REST_MS).await;
    }
    let mut found = last_values(&client.fetch_all("t", 0, 0).await);
    found.remove("last");
    for told in &told {
        check(&found, told, "at rest");
    }
    let keys: BTreeSet<_> = found.keys().collect();
    assert!(keys.len() <= (KEYS * WRITERS) as usize);
    let size = bytes_of(dir.path(), ".log");
    assert!(size < 120_000, "{size} bytes of {appended} records");
    for suffix in [".cleaned", ".swap", ".deleted"] {
        assert_eq!(bytes_of(dir.path(), suffix), 0, "{suffix}");
    }
    assert!(child.terminate().await.status.success());
}

#[tokio::test]
async fn retention_and_kills_take_whole_segments_from_the_front_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut next = 0;
    for round in 0..4 {
        let (child, mut client) = start(dir.path()).await;
        if round == 0 {
            let configs = [
                ("retention.bytes", "30000"),
                ("internal.segment.bytes", "5000"),
                ("file.delete.delay.ms", "0"),
            ];
            client.create_topic_with("t", 1, &configs).await;
        }
        for n in 0..200 {
            let value = format!("{} {}", next + n, "x".repeat(100));
            let batch = keyed(
                client.timestamp,
                &[("k", Some(&value))],
                BatchOptions::default(),
            );
            let answer = client.produce("t", 0, batch).await;
            assert_eq!((answer.error_code, answer.base_offset), (0, next + n));
            if n == 150 {
                child.advance(600_000).await;
            }
        }
        next += 200;
        child.kill().await;
        let (child, mut client) = start(dir.path()).await;
        assert_eq!(client.end_offset("t", 0).await, next);
        let start = client.list_offset("t", 0, -2).await.offset;
        let records = client.fetch_all("t", 0, start).await;
        assert!(records.iter().map(|r| r.offset).eq(start..next), "no hole");
        child.advance(600_000).await;
        let size = bytes_of(dir.path(), ".log");
        assert!((30_000..40_000).contains(&size), "{size}");
        child.kill().await;
    }
}
