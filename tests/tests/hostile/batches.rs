//! Record batches that lie. Each is refused with its error, nothing of it is stored, the partition
//! beside it in the same request is stored, and the connection goes on.

use bytes::Bytes;
use ottla_protocol::ErrorCode;
use ottla_protocol::batch::{self, BatchBuilder, BatchOptions};
use ottla_protocol::messages::produce_request::PartitionProduceData;
use ottla_tests::{Client, Embedded, START_MS, batch_of, values};

/// Where the fields of a batch header stand.
const BASE_OFFSET: usize = 0;
const LENGTH: usize = 8;
const MAGIC: usize = 16;
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const PRODUCER_ID: usize = 43;
const COUNT: usize = 57;
const RECORDS: usize = 61;

fn batch() -> Vec<u8> {
    batch_of(START_MS, &["one", "two", "three"]).to_vec()
}

/// The same batch with the bytes at `at` replaced.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = batch();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed
}

/// As [`with`], and its checksum right again.
fn sealed(at: usize, bytes: &[u8]) -> Vec<u8> {
    seal(with(at, bytes))
}

fn seal(mut batch: Vec<u8>) -> Vec<u8> {
    let crc = batch::crc_of(&batch).to_be_bytes();
    batch[CRC..CRC + 4].copy_from_slice(&crc);
    batch
}

async fn refused(what: &str, records: Option<Bytes>, want: ErrorCode) {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    for version in [3, 8, 12] {
        let mut request = Client::produce_request("t", 0, -1, batch().into());
        request.topic_data[0].partition_data.push(
            PartitionProduceData::default()
                .with_index(1)
                .with_records(records.clone()),
        );
        let response = client.call(version, &request).await;
        let partitions = &response.responses[0].partition_responses;
        assert_eq!(partitions[0].error_code, 0, "{what}: {partitions:?}");
        let answer = &partitions[1];
        let code = ErrorCode(answer.error_code);
        assert_eq!(
            code,
            want,
            "{what}, v{version}: {} {:?}",
            code.name(),
            answer.error_message
        );
        assert_eq!(
            (answer.base_offset, answer.log_append_time_ms),
            (-1, -1),
            "{what}"
        );
    }
    assert_eq!(
        client.end_offset("t", 1).await,
        0,
        "{what}: something was stored"
    );
    assert_eq!(
        client.end_offset("t", 0).await,
        9,
        "{what}: its neighbour was not stored"
    );
    assert_eq!(client.produce_values("t", 1, &["well"]).await, 0, "{what}");
}

#[tokio::test]
async fn a_wrong_checksum_is_a_corrupt_message() {
    refused(
        "a bit of the crc",
        Some(with(CRC, &[0xff]).into()),
        ErrorCode::CORRUPT_MESSAGE,
    )
    .await;
    let last = batch().len() - 1;
    refused(
        "the last byte",
        Some(with(last, &[9]).into()),
        ErrorCode::CORRUPT_MESSAGE,
    )
    .await;
    let time = with(27, &[1; 8]);
    refused(
        "the base timestamp",
        Some(time.into()),
        ErrorCode::CORRUPT_MESSAGE,
    )
    .await;
}

#[tokio::test]
async fn a_batch_length_that_lies_is_refused() {
    let longer = (batch().len() as i32 - 12 + 1).to_be_bytes();
    refused(
        "one too many",
        Some(with(LENGTH, &longer).into()),
        ErrorCode::INVALID_RECORD,
    )
    .await;
    let huge = i32::MAX.to_be_bytes();
    refused(
        "2 GiB",
        Some(with(LENGTH, &huge).into()),
        ErrorCode::INVALID_RECORD,
    )
    .await;
    for short in [48i32, 13, 0, -1, i32::MIN] {
        let bytes = with(LENGTH, &short.to_be_bytes());
        refused(
            "less than a header",
            Some(bytes.into()),
            ErrorCode::CORRUPT_MESSAGE,
        )
        .await;
    }
}

#[tokio::test]
async fn another_message_format_is_refused() {
    for old in [0, 1] {
        refused(
            "an old format",
            Some(with(MAGIC, &[old]).into()),
            ErrorCode::INVALID_RECORD,
        )
        .await;
    }
    for unknown in [3, 0x7f, 0xff] {
        let bytes = with(MAGIC, &[unknown]);
        refused(
            "an unknown format",
            Some(bytes.into()),
            ErrorCode::CORRUPT_MESSAGE,
        )
        .await;
    }
}

#[tokio::test]
async fn a_record_count_that_lies_is_refused() {
    for count in [0i32, 1, 2, 4, -1, i32::MAX] {
        let bytes = sealed(COUNT, &count.to_be_bytes());
        refused(
            "the count alone",
            Some(bytes.into()),
            ErrorCode::INVALID_RECORD,
        )
        .await;
        let mut both = with(COUNT, &count.to_be_bytes());
        both[LAST_OFFSET_DELTA..LAST_OFFSET_DELTA + 4]
            .copy_from_slice(&count.wrapping_sub(1).to_be_bytes());
        refused(
            "count and delta",
            Some(seal(both).into()),
            ErrorCode::INVALID_RECORD,
        )
        .await;
    }
}

// C34
#[tokio::test]
async fn a_record_size_that_lies_is_refused() {
    // A zigzag varint: 10 says 5, the size of a record with a value of one byte less.
    for size in [&[10u8][..], &[0x40], &[0x7e], &[1], &[0]] {
        refused(
            "a record size",
            Some(sealed(RECORDS, size).into()),
            ErrorCode::INVALID_RECORD,
        )
        .await;
    }
    let mut gigabytes = batch();
    gigabytes.splice(RECORDS..=RECORDS, [0xfe, 0xff, 0xff, 0xff, 0x0f]);
    let length = (gigabytes.len() as i32 - 12).to_be_bytes();
    gigabytes[LENGTH..LENGTH + 4].copy_from_slice(&length);
    refused(
        "2 GiB of record",
        Some(seal(gigabytes).into()),
        ErrorCode::INVALID_RECORD,
    )
    .await;
}

#[tokio::test]
async fn none_or_several_batches_are_refused() {
    refused("null", None, ErrorCode::INVALID_RECORD).await;
    refused("nothing", Some(Bytes::new()), ErrorCode::INVALID_RECORD).await;
    refused(
        "less than a header",
        Some(vec![0; 11].into()),
        ErrorCode::INVALID_RECORD,
    )
    .await;
    let two = [batch(), batch()].concat();
    refused("two batches", Some(two.into()), ErrorCode::INVALID_RECORD).await;
    let cut = batch()[..batch().len() - 1].to_vec();
    refused("a cut batch", Some(cut.into()), ErrorCode::INVALID_RECORD).await;
}

#[tokio::test]
async fn a_base_offset_other_than_0_is_refused() {
    let bytes = with(BASE_OFFSET, &5i64.to_be_bytes());
    refused(
        "a base offset",
        Some(bytes.into()),
        ErrorCode::INVALID_RECORD,
    )
    .await;
}

#[tokio::test]
async fn control_batches_and_unknown_codecs_are_refused() {
    let control = sealed(ATTRIBUTES, &[0, 0x20]);
    refused("control", Some(control.into()), ErrorCode::INVALID_RECORD).await;
    for codec in [5, 6, 7] {
        let bytes = sealed(ATTRIBUTES, &[0, codec]);
        refused(
            "a codec",
            Some(bytes.into()),
            ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
        )
        .await;
    }
    // Plain records that claim to be compressed.
    for codec in 1..=4 {
        if codec < 4 {
            let bytes = sealed(ATTRIBUTES, &[0, codec]);
            refused(
                "compressed in name only",
                Some(bytes.into()),
                ErrorCode::INVALID_RECORD,
            )
            .await;
        }
    }
}

#[tokio::test]
async fn a_producer_without_a_sequence_is_refused() {
    let mut builder = BatchBuilder::new(BatchOptions {
        producer_id: 5,
        producer_epoch: 0,
        base_sequence: -1,
        ..BatchOptions::default()
    });
    builder.push(START_MS, None, Some(b"x"));
    let bytes = builder.build().unwrap();
    assert_eq!(bytes[PRODUCER_ID + 7], 5);
    refused("no sequence", Some(bytes), ErrorCode::INVALID_RECORD).await;
}

#[tokio::test]
async fn a_batch_over_max_message_bytes_is_refused_by_the_topics_own_limit() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client
        .create_topic_with("small", 1, &[("max.message.bytes", "200")])
        .await;
    let fits = batch_of(START_MS, &[vec![1; 120]]);
    assert!(fits.len() <= 200);
    assert_eq!(client.produce("small", 0, fits).await.error_code, 0);
    let large = batch_of(START_MS, &[vec![1; 200]]);
    let answer = client.produce("small", 0, large).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(client.end_offset("small", 0).await, 1);
}

#[tokio::test]
async fn any_flipped_byte_behind_the_leader_epoch_is_seen() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    let good = batch();
    for at in LENGTH..good.len() {
        // The leader epoch is set by the broker and outside the checksum.
        if (12..16).contains(&at) {
            continue;
        }
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let answer = client.produce("t", 0, bad.into()).await;
        assert_ne!(answer.error_code, 0, "byte {at}");
    }
    assert_eq!(client.end_offset("t", 0).await, 0);
    client.produce("t", 0, good.into()).await;
    assert_eq!(
        values(&client.fetch_all("t", 0, 0).await),
        ["one", "two", "three"]
    );
}
