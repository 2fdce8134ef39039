#![allow(clippy::unwrap_used, reason = "tests")]
//! Whole batches: Apache Kafka's own read here, ours built, checked, damaged and read back.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::compression::Compression;

type Field = Option<Vec<u8>>;

#[derive(Debug, Clone)]
struct Given {
    timestamp: i64,
    key: Field,
    value: Field,
    headers: Vec<(Vec<u8>, Field)>,
}

const NOW: i64 = 1_800_000_000_000;

fn field() -> impl Strategy<Value = Field> {
    proptest::option::weighted(0.9, proptest::collection::vec(any::<u8>(), 0..100))
}

fn given_record() -> impl Strategy<Value = Given> {
    let headers = proptest::collection::vec(
        (proptest::collection::vec(any::<u8>(), 0..9), field()),
        0..4,
    );
    (NOW - 1000..NOW + 1000, field(), field(), headers).prop_map(
        |(timestamp, key, value, headers)| Given {
            timestamp,
            key,
            value,
            headers,
        },
    )
}

fn codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(Compression::ALL.to_vec())
}

fn build(records: &[Given], options: BatchOptions) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for record in records {
        builder.push_with_headers(
            record.timestamp,
            record.key.as_deref(),
            record.value.as_deref(),
            record
                .headers
                .iter()
                .map(|(key, value)| (&key[..], value.as_deref())),
        );
    }
    builder.build().unwrap()
}

fn assert_same(batch: &[u8], records_given: &[Given], base_offset: i64) {
    let set = records(batch).unwrap();
    let read: Vec<_> = set.iter().map(Result::unwrap).collect();
    assert_eq!(read.len(), records_given.len());
    for (i, (read, given)) in read.iter().zip(records_given).enumerate() {
        assert_eq!(read.offset, base_offset + i as i64);
        assert_eq!(read.timestamp, given.timestamp);
        assert_eq!(read.key, given.key.as_deref());
        assert_eq!(read.value, given.value.as_deref());
        assert_eq!(read.headers.len(), given.headers.len());
        assert!(
            read.headers
                .iter()
                .eq(given.headers.iter().map(|(k, v)| (&k[..], v.as_deref())))
        );
    }
}

/// Everything that takes foreign bytes, on `bytes`.
fn exercise(bytes: &[u8]) {
    let checks = ProduceChecks {
        decompressed_limit: 1 << 20,
        ..ProduceChecks::at(NOW)
    };
    let _ = validate_produce(&Bytes::copy_from_slice(bytes), &checks);
    for batch in Batches::new(bytes).flatten() {
        let _ = (
            crc_ok(batch.1),
            batch.0.last_sequence(),
            batch.0.last_offset(),
        );
    }
    if let Ok(set) = records_up_to(bytes, 1 << 20) {
        for record in set.iter().flatten() {
            let _ = record.headers.iter().count();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn built_batches_are_valid_and_read_back_identical(
        given in proptest::collection::vec(given_record(), 1..30),
        codec in codec(),
        again in codec(),
        base_offset in 0i64..1 << 40,
    ) {
        let options = BatchOptions { compression: codec, ..BatchOptions::default() };
        let batch = build(&given, options);
        let valid = validate_produce(&batch, &ProduceChecks::at(NOW)).unwrap();
        prop_assert_eq!(valid.records.as_ptr(), batch.as_ptr());
        let newest = given.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(valid.max_timestamp, newest);
        let index = valid.offset_of_max_timestamp_delta as usize;
        prop_assert_eq!(index, given.iter().position(|r| r.timestamp == newest).unwrap());

        let recoded = recompress(&batch, again, Some(1)).unwrap();
        prop_assert_eq!(validate_produce(&recoded, &ProduceChecks::at(NOW)).unwrap().header.compression(), Ok(again));
        for batch in [batch, recoded] {
            let mut stored = batch.to_vec();
            stamp(&mut stored, base_offset, 7);
            prop_assert!(crc_ok(&stored));
            assert_same(&stored, &given, base_offset);
        }
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic(
        given in proptest::collection::vec(given_record(), 1..8),
        codec in codec(),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let batch = build(&given, BatchOptions { compression: codec, ..BatchOptions::default() });
        let checks = ProduceChecks::at(NOW);
        let place = at.index(batch.len());
        prop_assert!(validate_produce(&batch.slice(..place), &checks).is_err());
        let mut damaged = batch.to_vec();
        damaged[place] ^= flip;
        // The leader epoch is the broker's to set, and outside the checksum.
        if !(12..16).contains(&place) {
            prop_assert!(validate_produce(&Bytes::from(damaged.clone()), &checks).is_err());
        }
        exercise(&damaged);
        // The same damage behind a checksum that is right.
        let crc = crc_of(&damaged);
        header::put(&mut damaged, at::CRC, crc.to_be_bytes());
        exercise(&damaged);
    }

    #[test]
    fn lies_with_a_right_checksum_are_errors_and_cost_nothing(
        given in proptest::collection::vec(given_record(), 1..8),
        codec in codec(),
        count in any::<i32>(),
        last_offset_delta in any::<i32>(),
    ) {
        let batch = build(&given, BatchOptions { compression: codec, ..BatchOptions::default() });
        let lie = |count: i32, last: i32| {
            let mut lying = batch.to_vec();
            header::put(&mut lying, at::COUNT, count.to_be_bytes());
            header::put(&mut lying, at::LAST_OFFSET_DELTA, last.to_be_bytes());
            let crc = crc_of(&lying);
            header::put(&mut lying, at::CRC, crc.to_be_bytes());
            lying
        };
        for lying in [lie(count, last_offset_delta), lie(count, count.wrapping_sub(1)), lie(i32::MAX, i32::MAX - 1)] {
            let header = BatchHeader::parse(&lying).unwrap();
            if header.count != given.len() as i32 {
                prop_assert!(validate_produce(&Bytes::from(lying.clone()), &ProduceChecks::at(NOW)).is_err());
                prop_assert!(records(&lying).unwrap().iter().any(|record| record.is_err()) || header.count <= 0);
            }
            exercise(&lying);
        }
    }

    #[test]
    fn noise_behind_a_header_never_panics(
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        codec in codec(),
        count in -2i32..5,
    ) {
        let mut raw = testing::Raw::of(&[noise]);
        raw.attributes = i16::from(codec.code());
        raw.count = count;
        raw.last_offset_delta = count.wrapping_sub(1);
        exercise(&raw.bytes());
        exercise(&raw.payload);
    }
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

/// From the log of an Apache Kafka 4.4.0: what its Java producer sent with each codec.
const FROM_JAVA: [(Compression, &str); 4] = [
    (
        Compression::Gzip,
        "00000000000000040000006d00000000028238a034000100000002000001a22dccd9c6000001a22dccd9c70000000000000002000000000000000000031f8b08000000000000ff73636060e0c84ead34302a4bcc294d55c0240d18dc189898406a0c71aa3104a96101a931c2a9c6880100fae540ba6c000000",
    ),
    (
        Compression::Snappy,
        "00000000000000070000007a0000000002646df78a000200000002000001a22dccda2b000001a22dccda7500000000000000030000000000000000000382534e41505059000000000100000001000000356e3c46000000086b6579303276616c7565204606002c30004800940102086b65793162250000310525000401250032622500043200",
    ),
    (
        Compression::Lz4,
        "000000000000000a000000750000000002fc9bf219000300000002000001a22dccdaca000001a22dccdaed00000000000000040000000000000000000304224d1860408235000000fe0146000000086b6579303276616c75652006006030004600460224001f3124000610312400100424001f3224000350756520320000000000",
    ),
    (
        Compression::Zstd,
        "000000000000000d0000006f000000000201ff8524000400000002000001a22dccdb4b000001a22dccdb6600000000000000050000000000000000000328b52ffd0058940100440246000000086b6579303276616c756520300046003402086b6579313100460036043232000400600508ca518b17af2c01010000",
    ),
];

#[test]
fn batches_of_the_java_producer_are_read() {
    for (codec, text) in FROM_JAVA {
        let stored = hex(text);
        let header = BatchHeader::parse(&stored).unwrap();
        assert_eq!(header.compression(), Ok(codec));
        let set = records(&stored).unwrap();
        for (i, record) in set.iter().map(Result::unwrap).enumerate() {
            assert_eq!(record.offset, header.base_offset + i as i64);
            assert_eq!(record.key, Some(format!("key{i}").as_bytes()));
            assert_eq!(
                record.value,
                Some(format!("value value value value {i}").as_bytes())
            );
        }
        let mut sent = stored;
        stamp(&mut sent, 0, -1);
        let valid = validate_produce(&Bytes::from(sent), &ProduceChecks::at(header.max_timestamp));
        assert_eq!(valid.unwrap().header.count, 3);
    }
}

#[test]
fn transaction_markers_are_kafkas_byte_for_byte() {
    // From the same log: a commit by transaction coordinator epoch 0, then an abort.
    let commit = hex(
        "00000000000000010000004200000000028fc686a6003000000000000001a22dccd866000001a22dccd86600000000000000010001ffffffff000000012000000008000000010c00000000000000",
    );
    let abort = hex(
        "0000000000000003000000420000000002a949c9b1003000000000000001a22dccd8a7000001a22dccd8a700000000000000010002ffffffff000000012000000008000000000c00000000000000",
    );
    for (stored, is_commit, epoch) in [(commit, true, 1), (abort, false, 2)] {
        let header = BatchHeader::parse(&stored).unwrap();
        assert!(header.is_control() && header.is_transactional());
        let mut ours = end_txn_marker(1, epoch, is_commit, 0, header.max_timestamp)
            .unwrap()
            .to_vec();
        stamp(&mut ours, header.base_offset, 0);
        assert_eq!(ours, stored);
        let set = records(&stored).unwrap();
        let record = set.iter().next().unwrap().unwrap();
        assert_eq!(
            EndTxnMarker::decode(record.key.unwrap(), record.value.unwrap()),
            Some(EndTxnMarker {
                commit: is_commit,
                coordinator_epoch: 0
            })
        );
    }
    assert_eq!(EndTxnMarker::decode(&[0, 0, 0, 2], &[0; 6]), None);
    assert_eq!(EndTxnMarker::decode(&[0, 0], &[]), None);
}

#[test]
fn the_builder_refuses_to_build_nothing() {
    assert_eq!(BatchBuilder::default().build(), Err(BatchError::Empty));
    let mut builder = BatchBuilder::coordinator();
    builder.push(5, Some(b"k"), None);
    assert_eq!((builder.count(), builder.size()), (1, HEADER_LEN + 8));
    let header = BatchHeader::parse(&builder.build().unwrap()).unwrap();
    assert_eq!(
        (
            header.base_sequence,
            header.producer_id,
            header.max_timestamp
        ),
        (0, -1, 5)
    );
}
