#![allow(clippy::unwrap_used, reason = "tests")]
//! What a produced batch gets, case by case; each case was put to Apache Kafka 4.4.0, and where
//! the answer here is another one, the variant in `error.rs` says so.

use super::*;
use crate::batch::testing::{Raw, raw_record, record};

pub(super) const NOW: i64 = 1_796_064_476_965;
const HOUR: i64 = 3_600_000;

pub(super) fn validate(bytes: Vec<u8>) -> Result<ValidBatch, BatchError> {
    validate_produce(&Bytes::from(bytes), &ProduceChecks::at(NOW))
}

pub(super) fn one() -> Raw {
    Raw {
        timestamp: NOW,
        max_timestamp: NOW,
        ..Raw::of(&[record(0)])
    }
}

fn fault_of(result: Result<ValidBatch, BatchError>) -> (i32, RecordFault) {
    match result {
        Err(BatchError::Record { index, fault }) => (index, fault),
        other => panic!("not a record fault: {other:?}"),
    }
}

#[test]
fn a_good_batch_is_taken_by_reference() {
    let bytes = Bytes::from(one().bytes());
    let valid = validate_produce(&bytes, &ProduceChecks::at(NOW)).unwrap();
    assert_eq!(valid.records.as_ptr(), bytes.as_ptr());
    assert_eq!(valid.header, BatchHeader::parse(&bytes).unwrap());
    assert_eq!(
        (valid.max_timestamp, valid.offset_of_max_timestamp_delta),
        (NOW, 0)
    );
}

#[test]
fn there_must_be_exactly_one_whole_batch() {
    let batch = one().bytes();
    assert_eq!(validate(vec![]), Err(BatchError::Empty));
    for cut in [1, 10, 40, 61, batch.len() - 1] {
        assert!(
            validate(batch[..cut].to_vec()).unwrap_err().is_truncated(),
            "{cut}"
        );
    }
    assert_eq!(
        validate([&batch[..], &batch].concat()),
        Err(BatchError::MoreThanOne)
    );
    // A tail that is too short, or cut, is no batch; one that can be no message is corrupt.
    assert_eq!(
        validate([&batch[..], b"12345"].concat()).unwrap().records,
        batch
    );
    assert_eq!(
        validate([&batch[..], &batch[..65]].concat())
            .unwrap()
            .records,
        batch
    );
    assert_eq!(
        validate([&batch[..], &[0; 12]].concat()),
        Err(BatchError::BadLength(0))
    );
    assert_eq!(
        validate([&batch[..], &[0; 70]].concat()),
        Err(BatchError::BadLength(0))
    );
}

#[test]
fn lengths_that_lie_are_refused() {
    for length in [i32::MIN, -1, 0, 13, 48] {
        let raw = Raw {
            length: Some(length),
            ..one()
        };
        assert_eq!(validate(raw.bytes()), Err(BatchError::BadLength(length)));
    }
    let true_length = one().bytes().len() as i32 - 12;
    for length in [true_length + 1, i32::MAX] {
        let raw = Raw {
            length: Some(length),
            ..one()
        };
        assert!(validate(raw.bytes()).unwrap_err().is_truncated());
    }
    let raw = Raw {
        length: Some(true_length - 1),
        ..one()
    };
    assert!(matches!(
        validate(raw.bytes()),
        Err(BatchError::Checksum { .. })
    ));
}

#[test]
fn other_message_formats_and_checksums_are_refused() {
    for magic in [0, 1, 3, -1] {
        let raw = Raw { magic, ..one() };
        assert_eq!(
            validate(raw.bytes()),
            Err(BatchError::UnsupportedMagic(magic))
        );
    }
    let raw = Raw {
        crc: Some(5),
        ..one()
    };
    assert!(matches!(
        validate(raw.bytes()),
        Err(BatchError::Checksum { stored: 5, .. })
    ));
}

#[test]
fn counts_offsets_and_last_offset_delta_must_agree() {
    for (count, last_offset_delta) in [
        (0, 0),
        (0, -1),
        (-1, 0),
        (-1, -2),
        (1, 5),
        (1, -5),
        (i32::MIN, i32::MAX),
    ] {
        let raw = Raw {
            last_offset_delta,
            count,
            ..one()
        };
        assert_eq!(
            validate(raw.bytes()),
            Err(BatchError::Count {
                count,
                last_offset_delta
            })
        );
    }
    let raw = Raw {
        count: i32::MAX,
        last_offset_delta: i32::MAX - 1,
        ..one()
    };
    assert_eq!(fault_of(validate(raw.bytes())), (1, RecordFault::Cut));
    let raw = Raw {
        count: 1,
        last_offset_delta: 0,
        ..Raw::of(&[record(0), record(1)])
    };
    assert_eq!(validate(raw.bytes()), Err(BatchError::Trailing));
    for base_offset in [5, -5] {
        let raw = Raw {
            base_offset,
            ..one()
        };
        assert_eq!(
            validate(raw.bytes()),
            Err(BatchError::BaseOffset(base_offset))
        );
    }
    for (deltas, index, delta) in [
        (&[1][..], 0, 1),
        (&[0, 2], 1, 2),
        (&[0, 0], 1, 0),
        (&[-1], 0, -1),
    ] {
        let records: Vec<_> = deltas.iter().map(|delta| record(*delta)).collect();
        let got = fault_of(validate(Raw::of(&records).bytes()));
        assert_eq!(got, (index, RecordFault::OffsetDelta(delta)));
    }
}

#[test]
fn flags_and_producers_have_rules() {
    let with = |attributes, producer_id, producer_epoch, base_sequence| {
        validate(
            Raw {
                attributes,
                producer_id,
                producer_epoch,
                base_sequence,
                ..one()
            }
            .bytes(),
        )
    };
    assert_eq!(with(0x20, -1, -1, -1), Err(BatchError::Control));
    assert_eq!(with(0x30, 5, 0, 0), Err(BatchError::Control));
    assert_eq!(
        with(0x10, -1, -1, -1),
        Err(BatchError::TransactionalWithoutProducer)
    );
    assert_eq!(
        with(0, 5, 0, -1),
        Err(BatchError::Sequence {
            producer_id: 5,
            sequence: -1
        })
    );
    assert_eq!(
        with(0, 5, 0, -2),
        Err(BatchError::Sequence {
            producer_id: 5,
            sequence: -2
        })
    );
    assert_eq!(
        with(0, 5, -1, 0),
        Err(BatchError::ProducerEpoch {
            producer_id: 5,
            epoch: -1
        })
    );
    for codec in 5..8 {
        assert_eq!(
            with(codec, -1, -1, -1),
            Err(BatchError::UnknownCodec(codec as u8))
        );
    }
    for (attributes, producer_id, epoch, sequence) in [
        (0x10, 5, 0, 0),
        (0, 5, 0, i32::MAX),
        (0, -2, 0, 0),
        (0, -1, -1, 0),
        (0x40, -1, -1, -1),
        (0x4080, -1, -1, -1),
    ] {
        assert!(
            with(attributes, producer_id, epoch, sequence).is_ok(),
            "{attributes:#x}"
        );
    }
}

#[test]
fn a_batch_may_be_as_large_as_max_message_bytes() {
    let bytes = Bytes::from(one().bytes());
    let checks = |max_message_bytes| ProduceChecks {
        max_message_bytes,
        ..ProduceChecks::at(NOW)
    };
    assert!(validate_produce(&bytes, &checks(bytes.len())).is_ok());
    let limit = bytes.len() - 1;
    assert_eq!(
        validate_produce(&bytes, &checks(limit)),
        Err(BatchError::TooLarge {
            size: bytes.len(),
            limit
        })
    );
}

#[test]
fn timestamps_outside_the_topics_bounds_are_refused_record_by_record() {
    let records = [
        record(0),
        raw_record(0, 2 * HOUR, 1, &b"k"[..], &b"v"[..]),
        raw_record(0, 3 * HOUR, 2, &b"k"[..], &b"v"[..]),
    ];
    let raw = Raw {
        timestamp: NOW,
        ..Raw::of(&records)
    };
    let Err(BatchError::Rejected(rejected)) = validate(raw.bytes()) else {
        panic!("taken")
    };
    assert!(rejected.is_timestamp());
    assert_eq!(rejected.total, 2);
    let indexes: Vec<_> = rejected.first.iter().map(|(index, _)| *index).collect();
    assert_eq!(indexes, [1, 2]);

    let before = ProduceChecks {
        before_max_ms: 1000,
        ..ProduceChecks::at(NOW)
    };
    let stamped = |timestamp| Bytes::from(Raw { timestamp, ..one() }.bytes());
    for good in [-1, NOW - 1000, NOW, NOW + HOUR] {
        assert!(validate_produce(&stamped(good), &before).is_ok(), "{good}");
    }
    for bad in [NOW - 1001, NOW + HOUR + 1, -2, 0] {
        let error = validate_produce(&stamped(bad), &before).unwrap_err();
        assert!(
            matches!(error, BatchError::Rejected(r) if r.is_timestamp()),
            "{bad}"
        );
    }
    let old = ProduceChecks::at(NOW);
    for good in [-5, 0, NOW - 365 * 24 * HOUR] {
        assert!(validate_produce(&stamped(good), &old).is_ok(), "{good}");
    }
}

#[test]
fn a_max_timestamp_that_lies_is_put_right() {
    for lie in [5, NOW + 100 * HOUR] {
        let raw = Raw {
            max_timestamp: lie,
            ..one()
        };
        let valid = validate(raw.bytes()).unwrap();
        assert_eq!(valid.header.max_timestamp, NOW);
        assert_eq!(valid.records, one().bytes());
    }
    let records = [
        record(0),
        raw_record(0, 9, 1, &b"k"[..], &b"v"[..]),
        raw_record(0, 9, 2, &b"k"[..], &b"v"[..]),
    ];
    let raw = Raw {
        timestamp: NOW,
        max_timestamp: 0,
        ..Raw::of(&records)
    };
    let valid = validate(raw.bytes()).unwrap();
    assert_eq!(
        (valid.max_timestamp, valid.offset_of_max_timestamp_delta),
        (NOW + 9, 1)
    );
    let raw = Raw {
        timestamp: -5,
        max_timestamp: -5,
        ..one()
    };
    assert_eq!(validate(raw.bytes()).unwrap().header.max_timestamp, -1);
}

#[test]
fn log_append_time_is_the_topics_to_set() {
    let marked = Bytes::from(
        Raw {
            attributes: 8,
            ..one()
        }
        .bytes(),
    );
    let create = validate_produce(&marked, &ProduceChecks::at(NOW)).unwrap();
    assert_eq!(create.records, one().bytes());

    let append = ProduceChecks {
        timestamp_type: TimestampType::LogAppendTime,
        ..ProduceChecks::at(NOW + 7)
    };
    let Err(BatchError::Rejected(rejected)) = validate_produce(&marked, &append) else {
        panic!("taken")
    };
    assert!(rejected.is_timestamp());
    let future = Bytes::from(
        Raw {
            timestamp: NOW + 100 * HOUR,
            ..one()
        }
        .bytes(),
    );
    let valid = validate_produce(&future, &append).unwrap();
    assert_eq!(valid.records, future);
    assert_eq!(valid.max_timestamp, NOW + 7);
}

#[test]
fn compacted_topics_want_keys() {
    let records = [
        record(0),
        raw_record(0, 0, 1, None, &b"v"[..]),
        raw_record(0, 0, 2, &b""[..], &b"v"[..]),
    ];
    let bytes = Bytes::from(Raw::of(&records).bytes());
    assert!(validate_produce(&bytes, &ProduceChecks::at(NOW)).is_ok());
    let compacted = ProduceChecks {
        compacted: true,
        ..ProduceChecks::at(NOW)
    };
    let Err(BatchError::Rejected(rejected)) = validate_produce(&bytes, &compacted) else {
        panic!("taken")
    };
    assert_eq!(
        rejected,
        Rejected {
            total: 1,
            first: vec![(1, RecordFault::NullKey)]
        }
    );

    let many: Vec<_> = (0..3000)
        .map(|i| raw_record(0, 0, i, None, &b"v"[..]))
        .collect();
    let bytes = Bytes::from(Raw::of(&many).bytes());
    let Err(BatchError::Rejected(rejected)) = validate_produce(&bytes, &compacted) else {
        panic!("taken")
    };
    assert_eq!(
        (rejected.total, rejected.first.len()),
        (3000, Rejected::KEPT)
    );
    assert!(!rejected.is_timestamp());
}
