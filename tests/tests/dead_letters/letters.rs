//! What is in a letter, and in which batches and partitions letters are.

use bytes::Bytes;
use ottla::dead_letters::GiveUp;
use ottla_protocol::batch::{BatchBuilder, BatchHeader, BatchOptions};
use ottla_protocol::compression::Compression;
use ottla_tests::{ACCEPT, Ask, Fetched, OK, Queue, REJECT, RELEASE, START_MS, decode_batches};

use crate::scene::{COPY, DLQ, NAME, Scene, TAKES, header, offsets};

fn shown(letter: &Fetched) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = letter.headers.iter();
    headers
        .map(|(key, value)| format!("{}={}", text(key), text(value.as_deref().unwrap())))
        .collect()
}

fn value(letter: &Fetched) -> Option<String> {
    let value = letter.value.as_deref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Key and value of each letter, `-` for null.
fn copies(letters: &[Fetched]) -> Vec<String> {
    let text = |part: &Option<Bytes>| {
        let part = part.as_deref().map(String::from_utf8_lossy);
        part.unwrap_or("-".into()).into_owned()
    };
    let copy = |l: &Fetched| format!("{}:{}", text(&l.key), text(&l.value));
    letters.iter().map(copy).collect()
}

async fn batches(scene: &mut Scene, partition: i32) -> Vec<(BatchHeader, Vec<Fetched>)> {
    let data = scene.queue.admin.fetch(DLQ, partition, 0).await;
    decode_batches(data.records.as_deref().unwrap_or_default())
}

/// The offsets of the letters of each batch: `0 1 | 2`.
async fn batched(scene: &mut Scene) -> String {
    let all = batches(scene, 0).await;
    let each = all.iter().map(|(_, letters)| offsets(letters));
    each.collect::<Vec<_>>().join(" | ")
}

#[tokio::test]
async fn a_rejected_record_becomes_a_letter_with_six_headers() {
    let mut scene = Scene::start().await;
    scene.broker().advance(1_000).await;
    assert_eq!(scene.reject(2).await, (0, 1));
    let letters = scene.letters_in(0).await;
    assert_eq!(letters.len(), 2);
    assert_eq!(
        shown(&letters[1]),
        [
            "__dlq.errors.topic=t",
            "__dlq.errors.partition=0",
            "__dlq.errors.offset=1",
            "__dlq.errors.group=g",
            "__dlq.errors.delivery.count=1",
            "__dlq.errors.message=Offset rejected by client.",
        ]
    );
    assert_eq!((&letters[1].key, &letters[1].value), (&None, &None));
    assert_eq!(letters[1].timestamp, START_MS + 1_000);
    assert_eq!(scene.outcome(GiveUp::Refused), (2, 0));
    assert_eq!(scene.window(), 0);
}

#[tokio::test]
async fn a_record_at_the_delivery_limit_becomes_a_letter() {
    let mut scene = Scene::with(&[("share.delivery.count.limit", "2")]).await;
    let (first, last) = scene.hold(3).await;
    scene.acknowledge(first, last, &[RELEASE]).await;
    assert_eq!(scene.letters().await, "");
    // Released, expired, and given back with the end of the session.
    scene.acquire(0, 2).await;
    scene.acknowledge(0, 0, &[RELEASE]).await;
    assert_eq!(scene.letters().await, "0");
    scene.broker().advance_holding_sessions(30_000).await;
    assert_eq!(scene.letters().await, "0 1 2");
    let letters = scene.letters_in(0).await;
    for letter in &letters {
        let told = "Offset delivery count exceeded the threshold.";
        assert_eq!(header(letter, "__dlq.errors.message"), told);
        assert_eq!(header(letter, "__dlq.errors.delivery.count"), "2");
    }
    scene.hold(1).await;
    scene.acknowledge(3, 3, &[RELEASE]).await;
    scene.acquire(3, 3).await;
    scene.member.close_session().await;
    scene.settle().await;
    assert_eq!(scene.letters().await, "0 1 2 3");
}

#[tokio::test]
async fn a_copy_carries_key_and_value_and_no_header_of_the_record() {
    let mut scene = Scene::with(&[(COPY, "true")]).await;
    let mut builder = BatchBuilder::default();
    let own = [(b"own".as_slice(), Some(b"x".as_slice()))];
    builder.push_with_headers(START_MS - 5, Some(b"k"), Some(b"v"), own);
    builder.push(START_MS - 5, None, Some(b"w"));
    builder.push(START_MS - 5, Some(b"tombstone"), None);
    let batch = builder.build().unwrap();
    let answer = scene.queue.admin.produce(Queue::TOPIC, 0, batch).await;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    scene.acquire(0, 2).await;
    scene.acknowledge(0, 2, &[REJECT]).await;
    let letters = scene.letters_in(0).await;
    assert_eq!(copies(&letters), ["k:v", "-:w", "tombstone:-"]);
    assert_eq!(letters[0].headers.len(), 6);
    assert_eq!(letters[0].timestamp, START_MS);
}

#[tokio::test]
async fn letters_are_plain_batches_whatever_the_source_is_compressed_with() {
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let mut scene = Scene::with(&[(COPY, "true")]).await;
        let mut builder = BatchBuilder::new(BatchOptions {
            compression: codec,
            ..BatchOptions::default()
        });
        for value in ["one", "two"] {
            builder.push(START_MS, None, Some(value.as_bytes()));
        }
        let batch = builder.build().unwrap();
        scene.queue.admin.produce(Queue::TOPIC, 0, batch).await;
        scene.acquire(0, 1).await;
        scene.acknowledge(0, 1, &[REJECT]).await;
        let all = batches(&mut scene, 0).await;
        let [(header, letters)] = &*all else {
            panic!("{all:?}");
        };
        assert_eq!(copies(letters), ["-:one", "-:two"]);
        assert_eq!((header.magic, header.attributes), (2, 0));
        let producer = (header.producer_id, header.producer_epoch);
        assert_eq!((producer, header.base_sequence), ((-1, -1), -1));
    }
}

#[tokio::test]
async fn the_dead_letter_topic_has_its_own_codec_and_its_own_time() {
    let mut scene = Scene::without_topic(&[(COPY, "true")]).await;
    let mut configs = TAKES.to_vec();
    configs.extend([
        ("compression.type", "gzip"),
        ("message.timestamp.type", "LogAppendTime"),
    ]);
    scene.create(&configs).await;
    scene.reject(3).await;
    let all = batches(&mut scene, 0).await;
    let [(header, letters)] = &*all else {
        panic!("{all:?}");
    };
    assert_eq!(header.compression().unwrap(), Compression::Gzip);
    assert_eq!(header.attributes, 1 | 8);
    assert_eq!(letters[2].timestamp, scene.broker().now());
    assert_eq!(value(&letters[2]).as_deref(), Some("value 2"));
}

#[tokio::test]
async fn letters_go_to_the_partition_of_the_same_number_or_around() {
    for (source, dlq, expected) in [(5, 3, [0, 1, 2, 0, 1]), (3, 5, [0, 1, 2, 0, 0])] {
        let mut scene = Scene::on(ottla_tests::Settings::new(), source, &[]).await;
        scene.queue.admin.create_topic_with(DLQ, dlq, TAKES).await;
        for partition in 0..source {
            scene.queue.produce_to(partition, 1).await;
            let at = scene.queue.at.p(partition);
            scene.member.fetch(&Ask::of(at)).await;
            assert_eq!(scene.member.ack(at, 0, 0, REJECT).await, OK);
        }
        scene.settle().await;
        let mut found = vec![vec![]; dlq as usize];
        for (partition, found) in (0..dlq).zip(&mut found) {
            for letter in scene.letters_in(partition).await {
                found.push(header(&letter, "__dlq.errors.partition"));
            }
            found.sort();
        }
        let mut wanted = vec![vec![]; dlq as usize];
        for (partition, &to) in expected.iter().enumerate().take(source as usize) {
            wanted[to as usize].push(partition.to_string());
        }
        assert_eq!(found, wanted);
    }
}

#[tokio::test]
async fn neighbours_of_one_acknowledgement_are_one_batch() {
    let mut scene = Scene::start().await;
    scene.queue.produce(10).await;
    scene.hold_more(10).await;
    scene.acknowledge(0, 14, &[REJECT]).await;
    let whole = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14";
    assert_eq!(batched(&mut scene).await, whole);
    let kinds = [REJECT, REJECT, ACCEPT, REJECT, RELEASE];
    scene.acknowledge(15, 19, &kinds).await;
    let all = batched(&mut scene).await;
    let mixed = all.strip_prefix(whole).unwrap();
    assert_eq!(mixed, " | 15 16 | 18");
}

impl Scene {
    /// Produces more, and lets the member acquire all from the start on.
    async fn hold_more(&mut self, records: usize) {
        let first = self.queue.produce(records).await;
        self.acquire(0, first + records as i64 - 1).await;
    }
}

#[tokio::test]
async fn gaps_and_releases_give_no_letter() {
    let mut scene = Scene::start().await;
    scene.hold(3).await;
    scene.acknowledge(0, 2, &[0, ACCEPT, RELEASE]).await;
    assert_eq!(scene.letters().await, "");
    assert_eq!(scene.outcome(GiveUp::Refused), (0, 0));
}

// --- The limits table of sizes ----------------------------------------------------------------

/// One batch a record of so many bytes; all of them rejected at once.
async fn reject_sizes(scene: &mut Scene, sizes: &[usize], codec: Option<Compression>) {
    let mut builders = vec![];
    for (index, &size) in sizes.iter().enumerate() {
        if codec.is_none() || index == 0 {
            let compression = codec.unwrap_or(Compression::None);
            builders.push(BatchBuilder::new(BatchOptions {
                compression,
                ..BatchOptions::default()
            }));
        }
        let value = vec![b'v'; size];
        let builder = builders.last_mut().unwrap();
        builder.push(START_MS, Some(b"k"), Some(&value));
    }
    for builder in builders {
        let batch = builder.build().unwrap();
        let answer = scene.queue.admin.produce(Queue::TOPIC, 0, batch).await;
        assert_eq!(answer.error_code, 0, "{answer:?}");
    }
    let last = sizes.len() as i64 - 1;
    scene.acquire(0, last).await;
    scene.acknowledge(0, last, &[REJECT]).await;
}

/// Value sizes of the letters of each batch: `400 400 | - 3`.
async fn sizes(scene: &mut Scene) -> String {
    let mut told = vec![];
    let mut from = 0;
    loop {
        let data = scene.queue.admin.fetch(DLQ, 0, from).await;
        let all = decode_batches(data.records.as_deref().unwrap_or_default());
        let Some((last, _)) = all.last() else {
            return told.join(" | ");
        };
        from = last.last_offset() + 1;
        for (_, letters) in &all {
            let size = |l: &Fetched| {
                let value = l.value.as_deref();
                value.map_or("-".to_owned(), |value| value.len().to_string())
            };
            told.push(letters.iter().map(size).collect::<Vec<_>>().join(" "));
        }
    }
}

async fn sized(max: &str) -> Scene {
    let mut scene = Scene::with(&[(COPY, "true")]).await;
    scene.alter_topic(&[("max.message.bytes", max)]).await;
    scene
}

#[tokio::test]
async fn a_record_that_is_too_large_for_the_topic_costs_its_own_copy_only() {
    let mut scene = sized("1000").await;
    reject_sizes(&mut scene, &[10, 2000, 20], None).await;
    assert_eq!(sizes(&mut scene).await, "10 - 20");
    assert_eq!(scene.outcome(GiveUp::TooLarge), (3, 0));
}

#[tokio::test]
async fn letters_are_split_over_as_many_batches_as_the_topic_needs() {
    let mut scene = sized("1500").await;
    reject_sizes(&mut scene, &[400; 6], None).await;
    assert_eq!(sizes(&mut scene).await, "400 400 | 400 400 | 400 400");
    let counts = scene.counts();
    assert_eq!((counts.attempts(), counts.written()), (1, 6));
}

#[tokio::test]
async fn large_records_are_a_batch_each() {
    let mut scene = Scene::with(&[(COPY, "true")]).await;
    reject_sizes(&mut scene, &[700_000; 3], None).await;
    assert_eq!(sizes(&mut scene).await, "700000 | 700000 | 700000");
}

#[tokio::test]
async fn a_large_compressed_batch_is_copied_record_by_record() {
    let mut scene = Scene::with(&[(COPY, "true")]).await;
    reject_sizes(&mut scene, &[600_000; 4], Some(Compression::Gzip)).await;
    let all = sizes(&mut scene).await;
    assert_eq!(all, "600000 | 600000 | 600000 | 600000");
}

#[tokio::test]
async fn a_topic_that_takes_not_even_the_headers_is_named() {
    let mut scene = sized("100").await;
    reject_sizes(&mut scene, &[10, 20], None).await;
    assert_eq!(scene.letters().await, "");
    assert_eq!(scene.outcome(GiveUp::TooLarge), (0, 2));
    assert_eq!(scene.window(), 0);
    scene.alter_topic(&[("max.message.bytes", "1048588")]).await;
    let (first, _) = scene.reject(1).await;
    assert_eq!(scene.letters().await, first.to_string());
}

#[tokio::test]
async fn a_topic_of_one_byte_costs_one_attempt() {
    let mut scene = sized("1").await;
    scene.reject(1_000).await;
    assert_eq!(scene.outcome(GiveUp::TooLarge), (0, 1_000));
    assert_eq!(scene.window(), 0);
    let counts = scene.counts();
    assert_eq!((counts.attempts(), counts.failed_attempts()), (1, 1));
}

#[tokio::test]
async fn a_trimmed_record_costs_its_own_copy_only() {
    let mut scene = Scene::with(&[(COPY, "true")]).await;
    let broker = &scene.queue.broker;
    let mut client = broker.client().await;
    // Nobody leads the topic's partition until the log's start has moved: the letters wait.
    scene.hold(4).await;
    client.delete_records(Queue::TOPIC, 0, 2).await;
    scene.acknowledge(2, 3, &[REJECT]).await;
    let letters = scene.letters_in(0).await;
    assert_eq!(copies(&letters), ["-:value 2", "-:value 3"]);
}

#[tokio::test]
async fn letters_are_switched_on_and_off_live() {
    let mut scene = Scene::with(&[(NAME, "")]).await;
    scene.hold(4).await;
    scene.acknowledge(0, 0, &[REJECT]).await;
    assert_eq!(scene.letters().await, "");
    scene.queue.configure(&[(NAME, DLQ)]).await;
    scene.acknowledge(1, 1, &[REJECT]).await;
    assert_eq!(scene.letters().await, "1");
    scene.queue.configure(&[(COPY, "true")]).await;
    scene.acknowledge(2, 2, &[REJECT]).await;
    scene.queue.configure(&[(NAME, "")]).await;
    scene.acknowledge(3, 3, &[REJECT]).await;
    let letters = scene.letters_in(0).await;
    assert_eq!(copies(&letters), ["-:-", "-:value 2"]);
    assert_eq!(scene.window(), 0);
}
