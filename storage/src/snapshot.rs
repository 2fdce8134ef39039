//! Producer snapshots: the state of a log's producers up to an offset, in Kafka's `.snapshot` files.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use crate::file::{read_file, write_file};
use crate::producer::{BatchNote, Producer, Producers};

const VERSION: i16 = 1;
const HEAD: usize = 10;
const CHECKED_FROM: usize = 6;
const ENTRY: usize = 46;

/// Writes the snapshot.
pub(crate) fn store(path: &Path, producers: &Producers) -> io::Result<()> {
    write_file(path, &encode(producers))
}

/// Reads a snapshot; `None` if there is none, or if it is damaged.
pub(crate) fn load(path: &Path) -> io::Result<Option<Producers>> {
    Ok(read_file(path)?.and_then(|bytes| decode(&bytes)))
}

fn encode(producers: &Producers) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + ENTRY * producers.map.len());
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(producers.map.len() as i32).to_be_bytes());
    for (producer_id, producer) in &producers.map {
        let last = producer.batches.back();
        out.extend_from_slice(&producer_id.to_be_bytes());
        out.extend_from_slice(&producer.epoch.to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |b| b.last_sequence).to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |b| b.last_offset).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, |b| b.offset_delta).to_be_bytes());
        out.extend_from_slice(&producer.last_timestamp.to_be_bytes());
        out.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
        out.extend_from_slice(&producer.txn_first_offset.unwrap_or(-1).to_be_bytes());
    }
    let crc = crc32c::crc32c(&out[CHECKED_FROM..]);
    out[2..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
    out
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }
}

fn decode(bytes: &[u8]) -> Option<Producers> {
    let mut fields = Fields(bytes);
    let version = fields.i16()?;
    let crc = fields.i32()? as u32;
    if version != VERSION || crc != crc32c::crc32c(&bytes[CHECKED_FROM..]) {
        return None;
    }
    let count = fields.i32()?;
    let mut producers = Producers::default();
    for _ in 0..count {
        let producer_id = fields.i64()?;
        let epoch = fields.i16()?;
        let last_sequence = fields.i32()?;
        let last_offset = fields.i64()?;
        let offset_delta = fields.i32()?;
        let timestamp = fields.i64()?;
        let coordinator_epoch = fields.i32()?;
        let txn_first_offset = fields.i64()?;
        let mut batches = VecDeque::new();
        if last_offset >= 0 {
            batches.push_back(BatchNote {
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
            });
        }
        let producer = Producer {
            epoch,
            coordinator_epoch,
            last_timestamp: timestamp,
            txn_first_offset: (txn_first_offset >= 0).then_some(txn_first_offset),
            batches,
        };
        producers.restore(producer_id, producer);
    }
    fields.0.is_empty().then_some(producers)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_snapshot_reads_back_and_damage_is_noticed() {
        let mut producers = Producers::default();
        let mut producer = Producer::new();
        producer.epoch = 3;
        producer.txn_first_offset = Some(11);
        producer.last_timestamp = 99;
        producer.batches.push_back(BatchNote {
            last_sequence: 5,
            last_offset: 17,
            offset_delta: 2,
            timestamp: 99,
        });
        producers.restore(1, producer);
        producers.restore(2, Producer::new());
        let bytes = encode(&producers);
        assert_eq!(bytes.len(), 10 + 2 * 46);
        assert_eq!(decode(&bytes).unwrap(), producers);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None);
        }
    }

    #[test]
    fn no_producers_take_ten_bytes() {
        assert_eq!(encode(&Producers::default()).len(), 10);
    }
}
