#![allow(clippy::unwrap_used, reason = "tests")]
//! Records that do not parse or do not decompress, in every codec.

use super::tests::{NOW, one, validate};
use super::*;
use crate::batch::testing::{Raw, raw_record, record};
use crate::compression::{CompressionError, compress};

#[test]
fn records_that_do_not_parse_are_refused_in_every_codec() {
    // Key length, value length, header count, then what follows them.
    let body = |fields: &[u8]| [&[(2 * (3 + fields.len())) as u8, 0, 0, 0][..], fields].concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (body(&[3, 1, 0]), "key length"),
        (body(&[0xc8, 1, 1, 0]), "key length"),
        (body(&[0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 0]), "key length"),
        (body(&[1, 3, 0]), "value length"),
        (body(&[1, 1, 1]), "header count"),
        (body(&[1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f]), "its length"),
        (body(&[1, 1, 2, 1, 1]), "header key length"),
        (body(&[1, 1, 2, 0, 3]), "header value length"),
        (body(&[1, 1, 0, 0]), "its length"),
        (body(&[1, 1]), "its length"),
        (vec![0], "its length"),
        (vec![1], "its length"),
        (vec![20, 0, 0, 0, 1, 1, 0], "its length"),
        (
            vec![0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1],
            "the batch ends",
        ),
        (vec![0xff; 12], "too long"),
        (vec![0x80], "the batch ends"),
    ];
    for (bytes, what) in cases {
        for codec in Compression::ALL {
            let raw = Raw {
                attributes: i16::from(codec.code()),
                payload: compress(codec, None, &bytes).unwrap(),
                ..one()
            };
            let error = validate(raw.bytes()).unwrap_err();
            let text = error.to_string();
            let cut = vec![20, 0, 0, 0, 1, 1, 0] == bytes;
            assert!(
                text.contains(what) || cut && text.contains("ends inside"),
                "{codec} {text}"
            );
        }
    }
    for bytes in [
        body(&[1, 1, 2, 0, 1]),
        body(&[1, 1, 4, 2, b'a', 0, 2, b'a', 1]),
        body(&[1, 1, 2, 4, 0xff, 0xfe, 0]),
    ] {
        assert!(
            validate(
                Raw {
                    payload: bytes,
                    ..one()
                }
                .bytes()
            )
            .is_ok()
        );
    }
}

#[test]
fn compressed_records_must_decompress_within_the_limit_and_end_there() {
    for codec in Compression::ALL.into_iter().skip(1) {
        let attributes = i16::from(codec.code());
        let batch = |payload: Vec<u8>| {
            Bytes::from(
                Raw {
                    attributes,
                    payload,
                    ..one()
                }
                .bytes(),
            )
        };
        let big = raw_record(0, 0, 0, &b"k"[..], &vec![b'x'; 100_000][..]);
        let packed = batch(compress(codec, None, &big).unwrap());
        let checks = |decompressed_limit| ProduceChecks {
            decompressed_limit,
            ..ProduceChecks::at(NOW)
        };
        assert!(
            validate_produce(&packed, &checks(big.len())).is_ok(),
            "{codec}"
        );
        let limit = big.len() - 1;
        assert_eq!(
            validate_produce(&packed, &checks(limit)),
            Err(BatchError::Compression(CompressionError::TooLarge {
                codec,
                limit
            }))
        );
        let tail = compress(codec, None, &[&record(0)[..], b"abc"].concat()).unwrap();
        assert_eq!(
            validate_produce(&batch(tail), &checks(1000)),
            Err(BatchError::Trailing)
        );
        for damaged in [record(0), b"".to_vec()] {
            assert!(
                validate_produce(&batch(damaged), &checks(1000)).is_err(),
                "{codec}"
            );
        }
    }
}

#[test]
fn zstd_needs_produce_7() {
    let payload = compress(Compression::Zstd, None, &record(0)).unwrap();
    let bytes = Bytes::from(
        Raw {
            attributes: 4,
            payload,
            ..one()
        }
        .bytes(),
    );
    let checks = |produce_version| ProduceChecks {
        produce_version,
        ..ProduceChecks::at(NOW)
    };
    assert!(validate_produce(&bytes, &checks(7)).is_ok());
    assert_eq!(
        validate_produce(&bytes, &checks(6)),
        Err(BatchError::ZstdTooEarly(6))
    );
}
