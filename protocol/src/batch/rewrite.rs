//! Batches that lose records: what compaction writes in the place of a batch.
//!
//! Offsets are never renumbered: base offset, last offset delta, base sequence, producer, leader
//! epoch and codec stay, so that consumers reach the end and producers' sequences survive (KIP-98,
//! "compaction"; KIP-534 for the delete horizon).

use bytes::Bytes;

use super::builder::{seal, with_payload};
use super::error::BatchError;
use super::header::{
    ATTR_CONTROL, ATTR_DELETE_HORIZON, ATTR_LOG_APPEND_TIME, ATTR_TRANSACTIONAL, BatchHeader,
    HEADER_LEN, TimestampType,
};
use super::{RecordSet, varint};
use crate::compression::{Compression, compress};

/// The batch with the records for which `keep` is true, by their place in the batch, and without
/// the others. `horizon` (milliseconds since the epoch) becomes the delete horizon of a batch that
/// has none yet; records keep their timestamps.
///
/// Fails with [`BatchError::Empty`] if no record is kept: see [`emptied`].
pub fn retain(
    set: &RecordSet<'_>,
    keep: &[bool],
    horizon: Option<i64>,
) -> Result<Bytes, BatchError> {
    let mut header = *set.header();
    let horizon = horizon.filter(|_| header.delete_horizon().is_none());
    let mut shift = 0;
    if let Some(horizon) = horizon {
        shift = header.base_timestamp.wrapping_sub(horizon);
        header.base_timestamp = horizon;
        header.attributes |= ATTR_DELETE_HORIZON;
    }
    let mut payload = Vec::with_capacity(HEADER_LEN + set.payload().len());
    payload.resize(HEADER_LEN, 0);
    let mut records = set.iter();
    let (mut count, mut newest) = (0, -1);
    let mut keep = keep.iter().copied();
    loop {
        let before = records.rest();
        let Some(record) = records.next() else { break };
        let record = record?;
        if !keep.next().unwrap_or(false) {
            continue;
        }
        let encoded = &before[..before.len() - records.rest().len()];
        if shift == 0 {
            payload.extend_from_slice(encoded);
        } else {
            put_shifted(&mut payload, encoded, shift)?;
        }
        count += 1;
        newest = newest.max(record.timestamp);
    }
    if count == 0 {
        return Err(BatchError::Empty);
    }
    header.count = count;
    if header.timestamp_type() == TimestampType::CreateTime {
        header.max_timestamp = newest;
    }
    let bytes = match header.compression()? {
        Compression::None => payload,
        codec => with_payload(&compress(codec, None, &payload[HEADER_LEN..])?),
    };
    seal(bytes, header)
}

/// One encoded record with `shift` added to its timestamp delta.
fn put_shifted(out: &mut Vec<u8>, encoded: &[u8], shift: i64) -> Result<(), BatchError> {
    let mut rest = encoded;
    let mut byte = || -> Result<u8, super::RecordFault> {
        let (&first, tail) = rest.split_first().ok_or(super::RecordFault::Cut)?;
        rest = tail;
        Ok(first)
    };
    let read = (|| {
        varint::read(&mut byte)?;
        let attributes = byte()?;
        Ok((attributes, varint::read_long(&mut byte)?))
    })();
    let (attributes, delta) = match read {
        Ok((attributes, Some(delta))) => (attributes, delta),
        Ok((_, None)) => return Err(BatchError::record(0, super::RecordFault::Varint)),
        Err(fault) => return Err(BatchError::record(0, fault)),
    };
    let delta = delta.wrapping_add(shift);
    let length = 1 + varint::size(delta) + rest.len();
    varint::put(out, length as i64);
    out.push(attributes);
    varint::put(out, delta);
    out.extend_from_slice(rest);
    Ok(())
}

/// What stays of a batch whose records are all gone but whose producer is still known by it: a
/// batch of no records with its offsets, sequence and largest timestamp.
pub fn emptied(header: &BatchHeader) -> Result<Bytes, BatchError> {
    let kept = ATTR_LOG_APPEND_TIME | ATTR_TRANSACTIONAL | ATTR_CONTROL;
    seal(
        vec![0; HEADER_LEN],
        BatchHeader {
            attributes: header.attributes & kept,
            base_timestamp: -1,
            count: 0,
            ..*header
        },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::{BatchBuilder, BatchOptions, crc_ok, records};
    use super::*;

    type Plain = (i64, i64, Vec<u8>, Option<Vec<u8>>, usize);

    fn built(codec: Compression) -> Bytes {
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id: 9,
            producer_epoch: 1,
            base_sequence: 40,
            transactional: true,
            compression: codec,
            ..BatchOptions::default()
        });
        for i in 0..5i64 {
            let value = (i != 3).then(|| vec![b'v'; 10 + i as usize]);
            let headers: &[(&[u8], Option<&[u8]>)] = &[(b"h", None), (b"i", Some(b"x"))];
            builder.push_with_headers(
                1_000_000 + i * 7,
                Some(&[i as u8]),
                value.as_deref(),
                headers.iter().copied(),
            );
        }
        let mut bytes = builder.build().unwrap().to_vec();
        super::super::stamp(&mut bytes, 100, 6);
        bytes.into()
    }

    fn plain(batch: &[u8]) -> Vec<Plain> {
        let set = records(batch).unwrap();
        set.iter()
            .map(|record| {
                let r = record.unwrap();
                let (key, value) = (r.key.unwrap().to_vec(), r.value.map(<[u8]>::to_vec));
                (r.offset, r.timestamp, key, value, r.headers.len())
            })
            .collect()
    }

    #[test]
    fn kept_records_are_as_they_were_in_every_codec() {
        for codec in Compression::ALL {
            for horizon in [None, Some(5), Some(1_000_000), Some(1 << 50)] {
                let batch = built(codec);
                let set = records(&batch).unwrap();
                let keep = [false, true, false, true, false];
                let kept = retain(&set, &keep, horizon).unwrap();
                assert!(crc_ok(&kept));
                let (old, new) = (*set.header(), BatchHeader::parse(&kept).unwrap());
                let all = plain(&batch);
                assert_eq!(plain(&kept), [all[1].clone(), all[3].clone()]);
                assert_eq!((new.base_offset, new.last_offset()), (100, 104));
                assert_eq!(new.last_sequence(), old.last_sequence());
                assert_eq!(new.compression().unwrap(), codec);
                assert_eq!((new.leader_epoch, new.count), (6, 2));
                assert_eq!(new.max_timestamp, 1_000_021);
                assert_eq!(new.delete_horizon(), horizon);
                // The second time the horizon stays.
                let again = retain(&records(&kept).unwrap(), &[false, true], Some(77)).unwrap();
                assert_eq!(plain(&again), [all[3].clone()]);
                let header = BatchHeader::parse(&again).unwrap();
                assert_eq!(header.delete_horizon(), horizon.or(Some(77)));
            }
        }
    }

    #[test]
    fn an_emptied_batch_keeps_offsets_and_sequence() {
        let batch = built(Compression::Gzip);
        let old = BatchHeader::parse(&batch).unwrap();
        let empty = emptied(&old).unwrap();
        assert!(crc_ok(&empty));
        let new = BatchHeader::parse(&empty).unwrap();
        assert_eq!(empty.len(), HEADER_LEN);
        assert_eq!((new.base_offset, new.last_offset()), (100, 104));
        assert_eq!(new.last_sequence(), 44);
        assert!(new.is_transactional() && plain(&empty).is_empty());
        let set = records(&batch).unwrap();
        assert!(matches!(
            retain(&set, &[false; 5], None),
            Err(BatchError::Empty)
        ));
    }
}
