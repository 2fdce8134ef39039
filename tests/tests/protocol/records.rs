//! Record bytes: what goes in comes out.

use bytes::Bytes;
use ottla_protocol::ErrorCode;
use ottla_protocol::batch::{BatchBuilder, BatchOptions};
use ottla_protocol::compression::Compression;
use ottla_tests::{Client, Embedded, Fetched, START_MS, decode_batches, values};

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

/// Every mix of null, empty and repeated in keys, values and headers.
fn mixed(compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        ..BatchOptions::default()
    });
    let parts = [
        None,
        Some(&b""[..]),
        Some(&b"text"[..]),
        Some(&[0xff; 300][..]),
    ];
    for key in parts {
        for value in parts {
            builder.push(START_MS, key, value);
            builder.push_with_headers(START_MS, key, value, [(&b"h"[..], None)]);
            let several = [
                (&b""[..], Some(&b"v"[..])),
                (b"h", Some(b"")),
                (b"h", None),
                (b"h", Some(b"x")),
            ];
            builder.push_with_headers(START_MS, key, value, several);
        }
    }
    builder.build().unwrap()
}

// C20, C39
#[tokio::test]
async fn every_mix_of_null_and_empty_comes_back_byte_for_byte_in_every_codec() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let mut offset = 0;
    for codec in CODECS {
        let batch = mixed(codec);
        let answer = client.produce("t", 0, batch.clone()).await;
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, offset),
            "{codec:?}"
        );
        let back = client.fetch("t", 0, offset).await.records.unwrap();
        // All but the base offset and the leader epoch, which are the broker's.
        assert_eq!(back[8..12], batch[8..12], "{codec:?}");
        assert_eq!(back[16..], batch[16..], "{codec:?}");
        let (header, records) = decode_batches(&back).remove(0);
        assert_eq!((header.base_offset, records.len()), (offset, 48));
        assert_eq!(records[0].key, None);
        assert_eq!(records[47].headers.len(), 4);
        offset += 48;
    }
}

// C22: Kafka 4.4.0 serves zstd to every version of Fetch (measured), and old clients that know the
// codec read it; only producers must be new enough to send it.
#[tokio::test]
async fn zstd_is_taken_from_produce_v7_on_and_served_to_every_fetch() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let zstd = mixed(Compression::Zstd);
    for version in 3..7 {
        let request = Client::produce_request("t", 0, -1, zstd.clone());
        let response = client.call(version, &request).await;
        let code = ErrorCode(response.responses[0].partition_responses[0].error_code);
        assert_eq!(code, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, "v{version}");
    }
    assert_eq!(client.end_offset("t", 0).await, 0);
    assert_eq!(client.produce("t", 0, zstd).await.error_code, 0);
    for version in 4..=12 {
        let response = client
            .call(version, &Client::fetch_request("t", 0, 0))
            .await;
        let partition = &response.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0, "v{version}");
        let records = partition.records.as_ref().unwrap();
        assert_eq!(decode_batches(records)[0].1.len(), 48, "v{version}");
    }
}

// C23, C24
#[tokio::test]
async fn a_fetch_at_the_end_has_empty_records_no_preferred_replica_and_no_aborted_transactions() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    for isolation in [0i8, 1] {
        for version in 4..=12 {
            let request = Client::fetch_request("t", 0, 0).with_isolation_level(isolation);
            let response = client.call(version, &request).await;
            let partition = &response.responses[0].partitions[0];
            assert_eq!(partition.error_code, 0);
            assert_eq!(partition.records.as_deref(), Some(&[][..]), "v{version}");
            assert_eq!(partition.preferred_read_replica.0, -1, "v{version}");
            let aborted = partition
                .aborted_transactions
                .as_deref()
                .unwrap_or_default();
            assert!(aborted.is_empty(), "v{version}");
            assert_eq!(
                (partition.high_watermark, partition.last_stable_offset),
                (0, 0)
            );
        }
    }
}

#[tokio::test]
async fn a_compacted_topic_takes_no_record_without_a_key() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client
        .create_topic_with("t", 1, &[("cleanup.policy", "compact")])
        .await;
    let mut builder = BatchBuilder::default();
    builder.push(START_MS, Some(b"k"), Some(b"fine"));
    builder.push(START_MS, None, Some(b"no key"));
    let answer = client.produce("t", 0, builder.build().unwrap()).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::INVALID_RECORD);
    assert_eq!(
        answer
            .record_errors
            .iter()
            .map(|e| e.batch_index)
            .collect::<Vec<_>>(),
        [1]
    );
    let fault = "Compacted topic cannot accept message without key in topic partition t-0";
    assert_eq!(
        answer.record_errors[0].batch_index_error_message.as_deref(),
        Some(fault)
    );
    let message = format!(
        "One or more records have been rejected due to 1 record errors in total, and only showing \
         the first three errors at most: [RecordError(batchIndex=1, message='{fault}')]"
    );
    assert_eq!(answer.error_message.as_deref(), Some(&*message));
    assert_eq!(client.end_offset("t", 0).await, 0);
}

#[tokio::test]
async fn several_segments_read_in_small_pieces_give_every_record_once() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client
        .create_topic_with("t", 1, &[("segment.bytes", "1048576")])
        .await;
    let mut want = vec![];
    for batch in 0..60 {
        let records: Vec<String> = (0..4)
            .map(|n| format!("{batch}/{n} {}", "x".repeat(20_000)))
            .collect();
        client.produce_values("t", 0, &records).await;
        want.extend(records);
    }
    for max in [1, 50_000, 100_000, 300_000, i32::MAX] {
        let (mut got, mut offset) = (vec![], 0);
        loop {
            let mut request = Client::fetch_request("t", 0, offset);
            request.topics[0].partitions[0].partition_max_bytes = max;
            let mut response = client.call(12, &request).await;
            let partition = response.responses[0].partitions.remove(0);
            assert_eq!(partition.error_code, 0);
            let batches = decode_batches(&partition.records.unwrap());
            let Some((last, _)) = batches.last() else {
                break;
            };
            offset = last.last_offset() + 1;
            got.extend(batches.into_iter().flat_map(|(_, records)| records));
        }
        assert_eq!(values(&got), want, "in pieces of {max} bytes");
        let offsets: Vec<i64> = got.iter().map(|r| r.offset).collect();
        assert_eq!(offsets, (0..240).collect::<Vec<i64>>());
    }
}

#[tokio::test]
async fn a_fetch_from_within_a_batch_gets_that_batch() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    client.produce_values("t", 0, &["a", "b", "c"]).await;
    let records = client.fetch("t", 0, 2).await.records.unwrap();
    assert_eq!(decode_batches(&records)[0].0.base_offset, 0);
    assert_eq!(values(&client.fetch_all("t", 0, 2).await), ["c"]);
}

#[tokio::test]
async fn a_topic_with_a_codec_of_its_own_stores_every_batch_in_it() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let names = ["uncompressed", "gzip", "snappy", "lz4", "zstd"];
    for (name, stored) in names.into_iter().zip(CODECS) {
        client
            .create_topic_with(name, 1, &[("compression.type", name)])
            .await;
        for sent in CODECS {
            let answer = client.produce(name, 0, mixed(sent)).await;
            assert_eq!(answer.error_code, 0, "{sent:?} to {name}: {answer:?}");
        }
        let records = client.fetch(name, 0, 0).await.records.unwrap();
        let batches = decode_batches(&records);
        assert_eq!(batches.len(), 5, "{name}");
        for (header, _) in &batches {
            assert_eq!(header.compression().unwrap(), stored, "{name}");
        }
        let (_, want) = decode_batches(&mixed(Compression::None)).remove(0);
        let same = |(got, want): (&Fetched, &Fetched)| {
            (&got.key, &got.value, &got.headers) == (&want.key, &want.value, &want.headers)
        };
        for (_, got) in &batches {
            assert_eq!(got.len(), want.len());
            assert!(got.iter().zip(&want).all(same), "{name}");
        }
    }
}

#[tokio::test]
async fn a_batch_that_outgrows_the_limit_in_its_topics_codec_is_refused() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let configs = [
        ("compression.type", "uncompressed"),
        ("max.message.bytes", "1000"),
    ];
    client.create_topic_with("t", 1, &configs).await;
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::Gzip,
        ..BatchOptions::default()
    });
    builder.push(START_MS, None, Some(&[0; 5000]));
    let small = builder.build().unwrap();
    assert!(small.len() < 500);
    let answer = client.produce("t", 0, small).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(client.end_offset("t", 0).await, 0);
}

/// Text that packs better the longer one looks.
fn prose() -> Vec<u8> {
    let mut seed = 7u32;
    let words = (0..20_000).flat_map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("{:x} ", (seed >> 20) % 1000).into_bytes()
    });
    words.collect()
}

#[tokio::test]
async fn the_levels_of_a_topics_codec_have_their_effect() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    for (codec, levels) in [("gzip", ["1", "9"]), ("zstd", ["-100", "19"])] {
        let mut sizes = vec![];
        for level in levels {
            let topic = format!("{codec}.{level}");
            let key = format!("compression.{codec}.level");
            let configs = [("compression.type", codec), (&key, level)];
            client.create_topic_with(&topic, 1, &configs).await;
            client.produce_values(&topic, 0, &[prose()]).await;
            sizes.push(client.fetch(&topic, 0, 0).await.records.unwrap().len());
        }
        assert!(sizes[0] > sizes[1], "{codec}: {sizes:?}");
    }
}

#[tokio::test]
async fn records_of_five_megabytes_pass_in_every_codec() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let value = Bytes::from(prose().repeat(80)).slice(..5 << 20);
    let limit = [("max.message.bytes", "6000000")];
    client.create_topic_with("t", 1, &limit).await;
    for (offset, codec) in (0..).zip(CODECS) {
        let mut batch = BatchBuilder::new(BatchOptions {
            compression: codec,
            ..BatchOptions::default()
        });
        batch.push(START_MS, None, Some(&value));
        let answer = client.produce("t", 0, batch.build().unwrap()).await;
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, offset),
            "{codec:?}"
        );
    }
    let all = client.fetch_all("t", 0, 0).await;
    assert_eq!(all.len(), CODECS.len());
    assert!(
        all.iter()
            .all(|record| record.value.as_ref() == Some(&value))
    );
}
