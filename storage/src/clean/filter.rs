//! What becomes of each batch in a pass.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use ottla_protocol::batch::{self, BatchHeader, records};

use super::offset_map::OffsetMap;
use super::txns::{MarkerFate, Txns};
use crate::append::marker_of;
use crate::producer::Producers;
use crate::txn_index::Aborted;

/// What is written in the place of a batch.
#[derive(Debug)]
pub(crate) enum Fate {
    /// The batch as it is.
    Same,
    /// Another one.
    Other(Bytes),
    /// Nothing.
    Gone,
}

/// By which batch a producer is known.
#[derive(Debug, Clone, Copy)]
enum LastBatch {
    /// The one that ends at this offset.
    Data(i64),
    /// Its last marker, of this epoch.
    Marker(i16),
}

/// The producers that the log knows, each by its last batch: that one is kept, without records if
/// need be, so that a sequence number is still known after the next recovery.
#[derive(Debug)]
pub(crate) struct Remembered(BTreeMap<i64, LastBatch>);

impl Remembered {
    pub(crate) fn of(producers: &Producers) -> Self {
        let last = |(&id, producer): (&i64, &crate::producer::Producer)| {
            let last = match producer.batches.back() {
                Some(note) => LastBatch::Data(note.last_offset),
                None => LastBatch::Marker(producer.epoch),
            };
            (id, last)
        };
        Self(producers.map.iter().map(last).collect())
    }

    fn by(&self, header: &BatchHeader) -> bool {
        if !header.has_producer_id() {
            return false;
        }
        match self.0.get(&header.producer_id) {
            Some(&LastBatch::Data(offset)) => header.last_offset() == offset,
            Some(&LastBatch::Marker(epoch)) => {
                header.is_control() && header.producer_epoch == epoch
            }
            None => false,
        }
    }
}

/// The rules of one pass.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) map: OffsetMap,
    /// The last offset that the map covers: what is behind stays.
    pub(crate) latest: i64,
    pub(crate) txns: Txns,
    pub(crate) remembered: Remembered,
    pub(crate) now: i64,
    /// The delete horizon of tombstones and markers that have none yet.
    pub(crate) horizon: i64,
}

impl Filter {
    /// Decides on a batch; the batches come in the order of the log. With it comes the aborted
    /// transaction whose marker the batch is, if that is still needed.
    pub(crate) fn decide(
        &mut self,
        header: &BatchHeader,
        bytes: &Bytes,
    ) -> io::Result<(Fate, Option<Aborted>)> {
        if header.is_control() {
            return self.control(header, bytes);
        }
        let last = self.remembered.by(header);
        let aborted = self.txns.data(header);
        let fate = match (aborted, header.count) {
            (_, 0) if last => Fate::Same,
            (_, 0) => Fate::Gone,
            (true, _) => self.without_records(header)?,
            (false, _) => self.data(header, bytes)?,
        };
        Ok((fate, None))
    }

    fn control(
        &mut self,
        header: &BatchHeader,
        bytes: &Bytes,
    ) -> io::Result<(Fate, Option<Aborted>)> {
        let marker = if header.count == 0 {
            None
        } else {
            marker_of(bytes)
        };
        let entry = match self.txns.control(header, marker) {
            MarkerFate::Needed(entry) => return Ok((Fate::Same, entry)),
            MarkerFate::Idle => None,
        };
        let fate = match header.delete_horizon() {
            _ if header.count == 0 => {
                if self.remembered.by(header) {
                    Fate::Same
                } else {
                    Fate::Gone
                }
            }
            Some(horizon) if horizon <= self.now => self.without_records(header)?,
            Some(_) => Fate::Same,
            None => {
                let set = records(bytes).map_err(bad_batch)?;
                let keep = vec![true; header.count.unsigned_abs() as usize];
                let kept = batch::retain(&set, &keep, Some(self.horizon));
                Fate::Other(kept.map_err(bad_batch)?)
            }
        };
        Ok((fate, entry))
    }

    fn without_records(&self, header: &BatchHeader) -> io::Result<Fate> {
        if !self.remembered.by(header) {
            return Ok(Fate::Gone);
        }
        Ok(Fate::Other(batch::emptied(header).map_err(bad_batch)?))
    }

    fn data(&self, header: &BatchHeader, bytes: &Bytes) -> io::Result<Fate> {
        let set = records(bytes).map_err(bad_batch)?;
        let horizon = header.delete_horizon();
        let (mut keep, mut tombstones) = (Vec::new(), false);
        for record in &set {
            let record = record.map_err(bad_batch)?;
            let behind = record.offset > self.latest;
            let stays = behind
                || record.key.is_some_and(|key| {
                    let newest = self.map.get(key).is_none_or(|last| record.offset >= last);
                    newest && (record.value.is_some() || horizon.is_none_or(|at| self.now < at))
                });
            tombstones |= stays && !behind && record.value.is_none();
            keep.push(stays);
        }
        let set_horizon = tombstones && horizon.is_none();
        if !keep.contains(&true) {
            return self.without_records(header);
        }
        if !set_horizon && !keep.contains(&false) {
            return Ok(Fate::Same);
        }
        // What is written anew gets a new checksum, which must not cover damage up.
        if !batch::crc_ok(bytes) {
            return Err(bad_batch("a batch does not fit its checksum"));
        }
        let kept = batch::retain(&set, &keep, set_horizon.then_some(self.horizon));
        Ok(Fate::Other(kept.map_err(bad_batch)?))
    }
}

/// A batch that cannot be read ends the pass.
pub(crate) fn bad_batch(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
