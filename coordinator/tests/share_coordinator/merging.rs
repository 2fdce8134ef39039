//! How states of records merge, against a model that keeps every record by itself.

use std::collections::BTreeMap;

use ottla_coordinator::share::state::{ShareKey, ShareState};
use ottla_coordinator::share::types::{StateBatch, StateWrite};
use ottla_coordinator::types::{TopicPartition, Uuid};
use proptest::prelude::*;

pub(crate) fn key(partition: i32) -> ShareKey {
    let partition = TopicPartition {
        topic_id: Uuid([1; 16]),
        partition,
    };
    ShareKey {
        group_id: "g".into(),
        partition,
    }
}

pub(crate) fn batch(first: i64, last: i64, state: u8, delivery_count: i16) -> StateBatch {
    StateBatch {
        first,
        last,
        state,
        delivery_count,
    }
}

pub(crate) fn write(start_offset: i64, batches: &[StateBatch]) -> StateWrite {
    StateWrite {
        start_offset,
        delivery_complete_count: 0,
        batches: batches.to_vec(),
    }
}

/// A log whose offsets count from 0, and the coordinator that reads it.
pub(crate) struct Log {
    pub(crate) state: ShareState,
    pub(crate) records: Vec<ottla_coordinator::share::state::ShareStateRecord>,
}

impl Log {
    pub(crate) fn new(updates_per_snapshot: u32) -> Self {
        Self {
            state: ShareState::new(updates_per_snapshot),
            records: Vec::new(),
        }
    }

    pub(crate) fn append(&mut self, record: ottla_coordinator::share::state::ShareStateRecord) {
        self.state.apply(&record, self.records.len() as i64);
        self.records.push(record);
    }

    pub(crate) fn initialized(start_offset: i64) -> Self {
        let mut log = Self::new(500);
        let record = log.state.initialize(0, &key(0), 2, start_offset).unwrap();
        log.append(record);
        log
    }

    pub(crate) fn write(&mut self, start_offset: i64, batches: &[StateBatch]) -> Vec<StateBatch> {
        let write = write(start_offset, batches);
        let record = self.state.write(0, &key(0), 2, 6, &write).unwrap();
        self.append(record);
        self.state.peek(&key(0)).unwrap().batches
    }
}

/// The first half of the sequence that was tried on Kafka 4.4.0, with its answers.
fn first_half() -> Log {
    let mut log = Log::initialized(10);
    assert_eq!(log.write(10, &[batch(10, 14, 0, 2)]), [batch(10, 14, 0, 2)]);
    assert_eq!(log.write(3, &[batch(3, 4, 0, 2)]), [batch(10, 14, 0, 2)]);
    assert_eq!(
        log.write(3, &[batch(8, 11, 2, 2)]),
        [batch(10, 11, 2, 2), batch(12, 14, 0, 2)]
    );
    assert_eq!(log.write(12, &[]), [batch(12, 14, 0, 2)]);
    let overlapping = [
        batch(12, 20, 0, 1),
        batch(15, 17, 2, 3),
        batch(16, 16, 4, 4),
    ];
    assert_eq!(
        log.write(12, &overlapping),
        [
            batch(12, 14, 0, 2),
            batch(15, 15, 2, 3),
            batch(16, 16, 4, 4),
            batch(17, 17, 2, 3),
            batch(18, 20, 0, 1)
        ]
    );
    let merged = log.write(12, &[batch(16, 16, 0, 1), batch(12, 14, 0, 5)]);
    assert_eq!(merged[..2], [batch(12, 14, 0, 5), batch(15, 15, 2, 3)]);
    let merged = log.write(
        12,
        &[
            batch(30, 34, 0, 1),
            batch(35, 39, 0, 1),
            batch(40, 44, 2, 1),
        ],
    );
    assert_eq!(merged[5..], [batch(30, 39, 0, 1), batch(40, 44, 2, 1)]);
    assert_eq!(log.write(12, &[batch(35, 36, 0, 1)]), merged);
    log
}

#[test]
fn batches_merge_as_in_kafka() {
    let mut log = first_half();
    log.write(12, &[batch(50, 59, 2, 2)]);
    log.write(12, &[batch(52, 53, 0, 1)]);
    let merged = log.write(12, &[batch(52, 53, 2, 1)]);
    assert_eq!(
        merged[7..],
        [batch(50, 59, 2, 2)],
        "a lower count never wins"
    );
    let merged = log.write(12, &[batch(52, 53, 0, 3)]);
    assert_eq!(
        merged[7..],
        [
            batch(50, 51, 2, 2),
            batch(52, 53, 0, 3),
            batch(54, 59, 2, 2)
        ]
    );
    let merged = log.write(12, &[batch(54, 55, 4, 2)]);
    assert_eq!(merged[9..], [batch(54, 55, 4, 2), batch(56, 59, 2, 2)]);
    for state in [2, 0, 3, 4] {
        assert_eq!(
            log.write(12, &[batch(54, 55, state, 2)]),
            merged,
            "a lower state never wins"
        );
    }
    log.write(
        12,
        &[
            batch(70, 71, 0, 2),
            batch(70, 71, 0, 3),
            batch(72, 73, 0, 3),
        ],
    );
    let merged = log.write(-1, &[]);
    assert_eq!(merged.last(), Some(&batch(70, 73, 0, 3)));
    let merged = log.write(40, &[]);
    assert_eq!(merged[0], batch(40, 44, 2, 1));
}

#[test]
fn the_ends_of_the_offset_range_are_no_special_case() {
    let mut log = Log::initialized(-1);
    let (low, high) = (i64::MIN, i64::MAX);
    assert_eq!(
        log.write(-1, &[batch(low, high, 0, 1)]),
        [batch(-1, high, 0, 1)]
    );
    assert_eq!(
        log.write(-1, &[batch(high, high, 2, 1), batch(low, 0, 2, 1)]),
        [
            batch(-1, 0, 2, 1),
            batch(1, high - 1, 0, 1),
            batch(high, high, 2, 1)
        ]
    );
    assert_eq!(
        log.write(-1, &[batch(5, high, 4, 9)])[2..],
        [batch(5, high, 4, 9)]
    );
    assert_eq!(log.write(high, &[]), [batch(high, high, 4, 9)]);
}

const OFFSETS: i64 = 24;

fn writes() -> impl Strategy<Value = Vec<(i64, Vec<StateBatch>)>> {
    let state = prop::sample::select(vec![0_u8, 2, 3, 4]);
    let batches = (0..OFFSETS, 0..8_i64, state, 1..4_i16)
        .prop_map(|(first, length, state, count)| batch(first, first + length, state, count));
    let start = prop_oneof![3 => Just(0), 1 => 0..OFFSETS];
    prop::collection::vec((start, prop::collection::vec(batches, 0..4)), 0..20)
}

proptest! {
    #[test]
    fn merging_agrees_with_a_record_by_record_model(writes in writes()) {
        let mut log = Log::initialized(0);
        let mut start = 0;
        let mut model: BTreeMap<i64, (i16, u8)> = BTreeMap::new();
        for (start_offset, batches) in writes {
            let seen = log.write(start_offset, &batches);
            start = start.max(start_offset);
            for batch in &batches {
                for offset in batch.first..=batch.last {
                    let rank = (batch.delivery_count, batch.state);
                    let known = model.entry(offset).or_insert(rank);
                    *known = rank.max(*known);
                }
            }
            model.retain(|offset, _| *offset >= start);
            let flat = |batch: &StateBatch| {
                let rank = (batch.delivery_count, batch.state);
                (batch.first..=batch.last).map(move |offset| (offset, rank)).collect::<Vec<_>>()
            };
            let offsets: Vec<_> = seen.iter().flat_map(flat).collect();
            prop_assert_eq!(&offsets, &model.clone().into_iter().collect::<Vec<_>>());
            let joined = seen.windows(2).all(|pair| {
                pair[0].last + 1 < pair[1].first
                    || (pair[0].state, pair[0].delivery_count)
                        != (pair[1].state, pair[1].delivery_count)
            });
            prop_assert!(joined, "neighbours in one state are one batch: {seen:?}");
        }
    }

    #[test]
    fn snapshots_change_nothing_but_the_log(writes in writes(), per_snapshot in 0..4_u32) {
        let mut plain = Log::initialized(0);
        let mut often = Log::new(per_snapshot);
        let record = often.state.initialize(0, &key(0), 2, 0).unwrap();
        often.append(record);
        for (start_offset, batches) in writes {
            plain.write(start_offset, &batches);
            often.write(start_offset, &batches);
            prop_assert_eq!(plain.state.peek(&key(0)), often.state.peek(&key(0)));
        }
        let mut replayed = ShareState::new(per_snapshot);
        let from = usize::try_from(often.state.prune_offset()).unwrap();
        for (offset, record) in often.records.iter().enumerate().skip(from) {
            replayed.apply(record, offset as i64);
        }
        prop_assert_eq!(often.state.peek(&key(0)), replayed.peek(&key(0)));
        prop_assert!(often.records.len() - from <= per_snapshot as usize + 1);
    }
}
