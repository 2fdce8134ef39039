//! Compacted topics, as a client sees them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod internal;
mod kill;
mod share;
mod topics;

use std::collections::BTreeMap;

use bytes::Bytes;
use ottla_protocol::batch::{BatchBuilder, BatchOptions};
use ottla_tests::{Client, Fetched};

/// Configurations under which compaction has something to do soon: small segments, any dirt counts.
const COMPACTED: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("internal.segment.bytes", "2000"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("delete.retention.ms", "60000"),
];

/// Longer than the cleaner rests.
const A_REST_MS: i64 = 16_000;

/// A batch of keys with their values; no value deletes.
fn keyed(timestamp: i64, pairs: &[(&str, Option<&str>)], options: BatchOptions) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for (key, value) in pairs {
        builder.push(timestamp, Some(key.as_bytes()), value.map(str::as_bytes));
    }
    builder.build().unwrap()
}

async fn put(client: &mut Client, pairs: &[(&str, Option<&str>)]) -> i64 {
    let batch = keyed(client.timestamp, pairs, BatchOptions::default());
    let answer = client.produce("t", 0, batch).await;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    answer.base_offset
}

/// Appends records of keys of their own until the segment before is complete.
async fn roll(client: &mut Client) {
    for n in 0..2 {
        let value = "x".repeat(1500);
        let end = client.end_offset("t", 0).await;
        put(client, &[(&format!("filler {n} {end}"), Some(&value))]).await;
    }
}

fn text(part: Option<&Bytes>) -> String {
    String::from_utf8(part.unwrap().to_vec()).unwrap()
}

/// The last value of each key, fillers left out.
fn last_values(records: &[Fetched]) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for record in records {
        let key = text(record.key.as_ref());
        if key.starts_with("filler") {
            continue;
        }
        match &record.value {
            Some(_) => values.insert(key, text(record.value.as_ref())),
            None => values.remove(&key),
        };
    }
    values
}
