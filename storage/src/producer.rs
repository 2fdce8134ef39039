//! What a log remembers of its producers: idempotence, open transactions, the last stable offset.
//!
//! Sources: KIP-98 (exactly once), KIP-360, KIP-890; the behaviour of Apache Kafka 4.4.0.

use std::collections::{BTreeMap, VecDeque};

pub(crate) use ottla_protocol::batch::EndTxnMarker as Marker;
use ottla_protocol::batch::{BatchHeader, sequence_add};

use crate::error::AppendError;
use crate::txn_index::Aborted;

/// So many batches of a producer are recognised when they come again.
const REMEMBERED: usize = 5;

/// Where an append comes from, which decides what is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A producer: epochs, sequence numbers and duplicates are checked.
    #[default]
    Client,
    /// A coordinator (markers, internal topics): epochs are checked.
    Coordinator,
    /// Another log: the batch keeps its offsets and its leader epoch, nothing is checked.
    Replica,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchNote {
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: i64,
    pub(crate) offset_delta: i32,
    pub(crate) timestamp: i64,
}

impl BatchNote {
    fn first_sequence(&self) -> i32 {
        let back = (i64::from(i32::MAX) + 1 - i64::from(self.offset_delta)) as i32;
        if self.offset_delta == 0 {
            self.last_sequence
        } else {
            sequence_add(self.last_sequence, back)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    pub(crate) coordinator_epoch: i32,
    pub(crate) last_timestamp: i64,
    pub(crate) txn_first_offset: Option<i64>,
    pub(crate) batches: VecDeque<BatchNote>,
}

impl Producer {
    pub(crate) fn new() -> Self {
        Self {
            epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            txn_first_offset: None,
            batches: VecDeque::new(),
        }
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }
}

/// A producer as the outside sees it (`DescribeProducers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerView {
    /// Producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Its last sequence number, -1 for none.
    pub last_sequence: i32,
    /// Timestamp of its last batch in milliseconds since the epoch, -1 for none.
    pub last_timestamp: i64,
    /// Epoch of the coordinator that ended its last transaction, -1 for none.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub txn_first_offset: Option<i64>,
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Append,
    /// The log has it already.
    Duplicate {
        base_offset: i64,
        last_offset: i64,
        timestamp: i64,
    },
}

/// All producers of a log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Producers {
    pub(crate) map: BTreeMap<i64, Producer>,
    /// First offset of each open transaction, and whose it is.
    ongoing: BTreeMap<i64, i64>,
}

impl Producers {
    /// Whether a batch may be appended. Changes nothing.
    pub(crate) fn check(
        &self,
        header: &BatchHeader,
        marker: Option<Marker>,
        origin: Origin,
    ) -> Result<Check, AppendError> {
        if !header.has_producer_id() || origin == Origin::Replica {
            return Ok(Check::Append);
        }
        let Some(known) = self.map.get(&header.producer_id) else {
            return Ok(Check::Append);
        };
        if origin == Origin::Client
            && let Some(duplicate) = duplicate(known, header)
        {
            return Ok(duplicate);
        }
        if header.producer_epoch < known.epoch {
            return Err(AppendError::InvalidProducerEpoch {
                producer_id: header.producer_id,
                epoch: header.producer_epoch,
                current: known.epoch,
            });
        }
        if let Some(marker) = marker {
            return check_marker(known, header, marker);
        }
        if origin == Origin::Client {
            check_sequence(known, header)?;
        }
        if known.txn_first_offset.is_some() && !header.is_transactional() {
            return Err(AppendError::InvalidTxnState {
                producer_id: header.producer_id,
            });
        }
        Ok(Check::Append)
    }

    /// Takes note of a batch that is in the log; `header` has its final offsets and timestamps.
    /// Returns the transaction that it aborted.
    pub(crate) fn update(
        &mut self,
        header: &BatchHeader,
        marker: Option<Marker>,
    ) -> Option<Aborted> {
        if !header.has_producer_id() || (header.is_control() && marker.is_none()) {
            return None;
        }
        let producer = self
            .map
            .entry(header.producer_id)
            .or_insert_with(Producer::new);
        producer.set_epoch(header.producer_epoch);
        producer.last_timestamp = header.max_timestamp;
        if let Some(marker) = marker {
            producer.coordinator_epoch = marker.coordinator_epoch;
            let first_offset = producer.txn_first_offset.take()?;
            self.ongoing.remove(&first_offset);
            let last_offset = header.last_offset();
            return (!marker.commit).then(|| Aborted {
                producer_id: header.producer_id,
                first_offset,
                last_offset,
                last_stable_offset: self.first_open().unwrap_or(last_offset + 1),
            });
        }
        if producer.batches.len() == REMEMBERED {
            producer.batches.pop_front();
        }
        producer.batches.push_back(BatchNote {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        if header.is_transactional() && producer.txn_first_offset.is_none() {
            producer.txn_first_offset = Some(header.base_offset);
            self.ongoing.insert(header.base_offset, header.producer_id);
        }
        None
    }

    /// First offset of the oldest open transaction.
    pub(crate) fn first_open(&self) -> Option<i64> {
        self.ongoing.keys().next().copied()
    }

    /// Adds a producer from a snapshot.
    pub(crate) fn restore(&mut self, producer_id: i64, producer: Producer) {
        if let Some(first) = producer.txn_first_offset {
            self.ongoing.insert(first, producer_id);
        }
        self.map.insert(producer_id, producer);
    }

    /// Forgets producers that were silent for `expiration_ms` and have no transaction open.
    pub(crate) fn expire(&mut self, now: i64, expiration_ms: i64) {
        self.map.retain(|_, producer| {
            producer.txn_first_offset.is_some()
                || now.saturating_sub(producer.last_timestamp) < expiration_ms
        });
    }

    pub(crate) fn views(&self) -> Vec<ProducerView> {
        let view = |(&producer_id, producer): (&i64, &Producer)| ProducerView {
            producer_id,
            epoch: producer.epoch,
            last_sequence: producer.batches.back().map_or(-1, |b| b.last_sequence),
            last_timestamp: producer.last_timestamp,
            coordinator_epoch: producer.coordinator_epoch,
            txn_first_offset: producer.txn_first_offset,
        };
        self.map.iter().map(view).collect()
    }
}

fn duplicate(known: &Producer, header: &BatchHeader) -> Option<Check> {
    if known.epoch != header.producer_epoch || header.base_sequence < 0 {
        return None;
    }
    let same = |note: &&BatchNote| {
        note.last_sequence == header.last_sequence()
            && note.first_sequence() == header.base_sequence
    };
    known
        .batches
        .iter()
        .find(same)
        .map(|note| Check::Duplicate {
            base_offset: note.last_offset - i64::from(note.offset_delta),
            last_offset: note.last_offset,
            timestamp: note.timestamp,
        })
}

fn check_marker(
    known: &Producer,
    header: &BatchHeader,
    marker: Marker,
) -> Result<Check, AppendError> {
    if marker.coordinator_epoch < known.coordinator_epoch {
        return Err(AppendError::CoordinatorFenced {
            producer_id: header.producer_id,
            epoch: marker.coordinator_epoch,
            current: known.coordinator_epoch,
        });
    }
    Ok(Check::Append)
}

fn check_sequence(known: &Producer, header: &BatchHeader) -> Result<(), AppendError> {
    let last = match known.batches.back() {
        Some(note) if known.epoch == header.producer_epoch => note.last_sequence,
        _ => -1,
    };
    let first = header.base_sequence;
    let follows = if last < 0 {
        first == 0
    } else {
        first == sequence_add(last, 1)
    };
    if follows {
        return Ok(());
    }
    Err(AppendError::OutOfOrderSequence {
        producer_id: header.producer_id,
        first,
        last,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use ottla_protocol::batch::{ATTR_CONTROL, ATTR_TRANSACTIONAL};

    fn header(epoch: i16, sequence: i32, count: i32, base_offset: i64) -> BatchHeader {
        BatchHeader {
            base_offset,
            batch_length: 49,
            leader_epoch: 0,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp: 0,
            max_timestamp: 100,
            producer_id: 7,
            producer_epoch: epoch,
            base_sequence: sequence,
            count,
        }
    }

    fn client(producers: &Producers, header: &BatchHeader) -> Result<Check, AppendError> {
        producers.check(header, None, Origin::Client)
    }

    #[test]
    fn the_last_five_batches_are_recognised_and_older_ones_are_out_of_order() {
        let mut producers = Producers::default();
        for i in 0..7 {
            let batch = header(0, i * 3, 3, i64::from(i) * 3 + 100);
            assert_eq!(client(&producers, &batch).unwrap(), Check::Append);
            producers.update(&batch, None);
        }
        for i in 0..7 {
            let again = client(&producers, &header(0, i * 3, 3, 0));
            if i < 2 {
                assert!(matches!(
                    again,
                    Err(AppendError::OutOfOrderSequence { last: 20, .. })
                ));
            } else {
                let base_offset = i64::from(i) * 3 + 100;
                let expected = Check::Duplicate {
                    base_offset,
                    last_offset: base_offset + 2,
                    timestamp: 100,
                };
                assert_eq!(again.unwrap(), expected);
            }
        }
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let mut producers = Producers::default();
        producers.update(&header(0, i32::MAX - 1, 4, 0), None);
        let again = client(&producers, &header(0, i32::MAX - 1, 4, 0)).unwrap();
        assert!(matches!(again, Check::Duplicate { base_offset: 0, .. }));
        assert_eq!(
            client(&producers, &header(0, 2, 1, 0)).unwrap(),
            Check::Append
        );
        assert!(client(&producers, &header(0, 3, 1, 0)).is_err());
    }

    #[test]
    fn a_new_epoch_starts_at_sequence_zero_and_fences_the_old_one() {
        let mut producers = Producers::default();
        producers.update(&header(0, 0, 1, 0), None);
        assert!(client(&producers, &header(1, 1, 1, 0)).is_err());
        assert_eq!(
            client(&producers, &header(1, 0, 1, 0)).unwrap(),
            Check::Append
        );
        producers.update(&header(1, 0, 1, 1), None);
        assert!(matches!(
            client(&producers, &header(0, 1, 1, 0)),
            Err(AppendError::InvalidProducerEpoch {
                epoch: 0,
                current: 1,
                ..
            })
        ));
    }

    #[test]
    fn an_open_transaction_holds_the_stable_offset_until_its_marker() {
        let mut producers = Producers::default();
        let mut data = header(0, 0, 2, 10);
        data.attributes = ATTR_TRANSACTIONAL;
        producers.update(&data, None);
        assert_eq!(producers.first_open(), Some(10));
        assert!(matches!(
            client(&producers, &header(0, 2, 1, 12)),
            Err(AppendError::InvalidTxnState { .. })
        ));
        let mut end = header(1, -1, 1, 12);
        end.attributes = ATTR_TRANSACTIONAL | ATTR_CONTROL;
        let marker = |coordinator_epoch| {
            Some(Marker {
                commit: false,
                coordinator_epoch,
            })
        };
        let aborted = producers.update(&end, marker(5)).unwrap();
        assert_eq!((aborted.first_offset, aborted.last_offset), (10, 12));
        assert_eq!(aborted.last_stable_offset, 13);
        assert_eq!(producers.first_open(), None);
        assert!(matches!(
            producers.check(&end, marker(4), Origin::Coordinator),
            Err(AppendError::CoordinatorFenced { .. })
        ));
        let next = header(1, 0, 1, 13);
        assert_eq!(client(&producers, &next).unwrap(), Check::Append);
    }

    #[test]
    fn silent_producers_expire_unless_in_a_transaction() {
        let mut producers = Producers::default();
        producers.update(&header(0, 0, 1, 0), None);
        producers.expire(1099, 1000);
        assert_eq!(producers.views().len(), 1);
        producers.expire(1100, 1000);
        assert_eq!(producers.views().len(), 0);
        let mut data = header(0, 0, 1, 0);
        data.attributes = ATTR_TRANSACTIONAL;
        producers.update(&data, None);
        producers.expire(9999, 1000);
        assert_eq!(producers.views().len(), 1);
    }
}
