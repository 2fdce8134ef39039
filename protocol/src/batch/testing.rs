//! Batches written by hand, so that tests can make each field lie.

use super::header::{BatchHeader, at, crc_of, put};
use super::varint;

/// A batch to be, field by field; its checksum and length are true unless given.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) base_offset: i64,
    pub(super) length: Option<i32>,
    pub(super) magic: i8,
    pub(super) crc: Option<u32>,
    pub(super) attributes: i16,
    pub(super) last_offset_delta: i32,
    pub(super) timestamp: i64,
    pub(super) max_timestamp: i64,
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    pub(super) base_sequence: i32,
    pub(super) count: i32,
    pub(super) payload: Vec<u8>,
}

impl Raw {
    pub(super) fn of(records: &[Vec<u8>]) -> Self {
        let count = records.len() as i32;
        Self {
            base_offset: 0,
            length: None,
            magic: 2,
            crc: None,
            attributes: 0,
            last_offset_delta: count - 1,
            timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count,
            payload: records.concat(),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let header = BatchHeader {
            base_offset: self.base_offset,
            batch_length: self.length.unwrap_or(self.payload.len() as i32 + 49),
            leader_epoch: -1,
            magic: self.magic,
            crc: 0,
            attributes: self.attributes,
            last_offset_delta: self.last_offset_delta,
            base_timestamp: self.timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            count: self.count,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&self.payload);
        let crc = self.crc.unwrap_or_else(|| crc_of(&bytes));
        put(&mut bytes, at::CRC, crc.to_be_bytes());
        bytes
    }
}

/// An encoded record without headers.
pub(super) fn raw_record<'a>(
    attributes: u8,
    timestamp_delta: i64,
    offset_delta: i32,
    key: impl Into<Option<&'a [u8]>>,
    value: impl Into<Option<&'a [u8]>>,
) -> Vec<u8> {
    let mut body = vec![attributes];
    varint::put(&mut body, timestamp_delta);
    varint::put(&mut body, i64::from(offset_delta));
    for field in [key.into(), value.into()] {
        varint::put(&mut body, field.map_or(-1, |bytes| bytes.len() as i64));
        body.extend_from_slice(field.unwrap_or_default());
    }
    body.push(0);
    let mut out = Vec::new();
    varint::put(&mut out, body.len() as i64);
    out.extend(body);
    out
}

/// The smallest record that is like most: a key, a value, the batch's timestamp.
pub(super) fn record(offset_delta: i32) -> Vec<u8> {
    raw_record(0, 0, offset_delta, &b"k"[..], &b"v"[..])
}
