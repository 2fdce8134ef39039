//! The 61-byte header of a record batch of message format 2.

use super::BatchError;
use crate::compression::Compression;

/// Bytes before the part that `batch_length` counts: the base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
/// Bytes of a whole batch header, from the base offset to the record count.
pub const HEADER_LEN: usize = 61;

/// Where the header's fields start, in bytes from the start of the batch.
pub mod at {
    /// Base offset, `i64`. Outside the checksum.
    pub const BASE_OFFSET: usize = 0;
    /// Length of everything behind this field, `i32`. Outside the checksum.
    pub const LENGTH: usize = 8;
    /// Partition leader epoch, `i32`. Outside the checksum.
    pub const LEADER_EPOCH: usize = 12;
    /// Message format, `i8`; at the same place in formats 0 and 1. Outside the checksum.
    pub const MAGIC: usize = 16;
    /// CRC-32C of everything from the attributes on, `u32`.
    pub const CRC: usize = 17;
    /// Attributes, `i16`. The checksum begins here.
    pub const ATTRIBUTES: usize = 21;
    /// Last offset minus base offset, `i32`.
    pub const LAST_OFFSET_DELTA: usize = 23;
    /// Timestamp that the records' deltas add to, or the delete horizon, `i64`.
    pub const BASE_TIMESTAMP: usize = 27;
    /// Largest timestamp of the records, or the log append time, `i64`.
    pub const MAX_TIMESTAMP: usize = 35;
    /// Producer id, `i64`, -1 for none.
    pub const PRODUCER_ID: usize = 43;
    /// Producer epoch, `i16`, -1 for none.
    pub const PRODUCER_EPOCH: usize = 51;
    /// Sequence number of the first record, `i32`, -1 for none.
    pub const BASE_SEQUENCE: usize = 53;
    /// Number of records, `i32`.
    pub const COUNT: usize = 57;
}

/// Mask of the codec in the attributes.
pub const ATTR_CODEC: i16 = 0x07;
/// Set when `max_timestamp` is the time of the append, which then is every record's timestamp.
pub const ATTR_LOG_APPEND_TIME: i16 = 0x08;
/// Set when the batch belongs to a transaction.
pub const ATTR_TRANSACTIONAL: i16 = 0x10;
/// Set when the records are control records (transaction markers, leader changes).
pub const ATTR_CONTROL: i16 = 0x20;
/// Set when the base timestamp is the delete horizon of compaction.
pub const ATTR_DELETE_HORIZON: i16 = 0x40;

/// What a batch's timestamps mean (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer's time of each record.
    CreateTime,
    /// The broker's time of the append, one for the whole batch.
    LogAppendTime,
}

/// The header of one record batch, field by field as it is on the wire and on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record (kept when compaction removed that record).
    pub base_offset: i64,
    /// Bytes behind this field: the batch's size less [`LOG_OVERHEAD`]. At least 49 once parsed.
    pub batch_length: i32,
    /// Epoch of the partition leader that appended the batch; -1 from a producer.
    pub leader_epoch: i32,
    /// Message format; 2 once parsed.
    pub magic: i8,
    /// CRC-32C of the bytes from the attributes to the end.
    pub crc: u32,
    /// Codec, timestamp type and the three flags; see the `ATTR_` constants.
    pub attributes: i16,
    /// Last offset minus `base_offset`.
    pub last_offset_delta: i32,
    /// Milliseconds since the epoch that record timestamps are relative to.
    pub base_timestamp: i64,
    /// Largest record timestamp in milliseconds since the epoch, -1 for none.
    pub max_timestamp: i64,
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence number of the first record, -1 for none.
    pub base_sequence: i32,
    /// Number of records as declared; never trust it to reserve memory.
    pub count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; what follows it need not be there.
    ///
    /// Checks that the format is 2 and that the length can hold the header; checks neither the
    /// checksum ([`crc_ok`]) nor the remaining fields. Only the first 17 bytes are needed to refuse
    /// another format.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        if let Some(&magic) = bytes.get(at::MAGIC)
            && magic != 2
        {
            return Err(BatchError::UnsupportedMagic(magic as i8));
        }
        let Some(b) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated {
                needed: HEADER_LEN,
                have: bytes.len(),
            });
        };
        let header = Self {
            base_offset: i64::from_be_bytes(field(b, at::BASE_OFFSET)),
            batch_length: i32::from_be_bytes(field(b, at::LENGTH)),
            leader_epoch: i32::from_be_bytes(field(b, at::LEADER_EPOCH)),
            magic: 2,
            crc: u32::from_be_bytes(field(b, at::CRC)),
            attributes: i16::from_be_bytes(field(b, at::ATTRIBUTES)),
            last_offset_delta: i32::from_be_bytes(field(b, at::LAST_OFFSET_DELTA)),
            base_timestamp: i64::from_be_bytes(field(b, at::BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(field(b, at::MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(field(b, at::PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(field(b, at::PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(field(b, at::BASE_SEQUENCE)),
            count: i32::from_be_bytes(field(b, at::COUNT)),
        };
        if header.batch_length < (HEADER_LEN - LOG_OVERHEAD) as i32 {
            return Err(BatchError::BadLength(header.batch_length));
        }
        Ok(header)
    }

    /// The header as its 61 bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut b = [0; HEADER_LEN];
        put(&mut b, at::BASE_OFFSET, self.base_offset.to_be_bytes());
        put(&mut b, at::LENGTH, self.batch_length.to_be_bytes());
        put(&mut b, at::LEADER_EPOCH, self.leader_epoch.to_be_bytes());
        put(&mut b, at::MAGIC, self.magic.to_be_bytes());
        put(&mut b, at::CRC, self.crc.to_be_bytes());
        put(&mut b, at::ATTRIBUTES, self.attributes.to_be_bytes());
        put(
            &mut b,
            at::LAST_OFFSET_DELTA,
            self.last_offset_delta.to_be_bytes(),
        );
        put(
            &mut b,
            at::BASE_TIMESTAMP,
            self.base_timestamp.to_be_bytes(),
        );
        put(&mut b, at::MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(&mut b, at::PRODUCER_ID, self.producer_id.to_be_bytes());
        put(
            &mut b,
            at::PRODUCER_EPOCH,
            self.producer_epoch.to_be_bytes(),
        );
        put(&mut b, at::BASE_SEQUENCE, self.base_sequence.to_be_bytes());
        put(&mut b, at::COUNT, self.count.to_be_bytes());
        b
    }

    /// Bytes of the whole batch, [`LOG_OVERHEAD`] included.
    pub fn size(&self) -> usize {
        usize::try_from(self.batch_length)
            .unwrap_or(0)
            .saturating_add(LOG_OVERHEAD)
    }

    /// Offset of the last record (saturating, for a header of nonsense).
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset that follows the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Whether the batch was written inside a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & ATTR_TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records, which no client is shown.
    pub fn is_control(&self) -> bool {
        self.attributes & ATTR_CONTROL != 0
    }

    /// Whether a producer id came with the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }

    /// The codec of the records. Codes 5 to 7 are unknown.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        let code = (self.attributes & ATTR_CODEC) as u8;
        Compression::from_code(code).ok_or(BatchError::UnknownCodec(code))
    }

    /// What the timestamps mean.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & ATTR_LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Compaction's delete horizon in milliseconds since the epoch, where one was set (KIP-534).
    pub fn delete_horizon(&self) -> Option<i64> {
        (self.attributes & ATTR_DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Sequence number of the last record: behind `i32::MAX` it goes on at 0. -1 without sequences.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        sequence_add(self.base_sequence, self.last_offset_delta)
    }
}

/// Adds to a sequence number, which behind `i32::MAX` goes on at 0. `by` below 0 adds nothing.
pub fn sequence_add(sequence: i32, by: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(by.max(0));
    (sum & i64::from(i32::MAX)) as i32
}

fn field<const N: usize>(b: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&b[at..at + N]);
    out
}

pub(super) fn put<const N: usize>(b: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = b.get_mut(at..at + N) {
        place.copy_from_slice(&value);
    }
}

/// Computes the checksum of one whole batch: CRC-32C from the attributes to the end.
pub fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(at::ATTRIBUTES..).unwrap_or_default())
}

/// Whether `batch`, exactly one whole batch, carries the checksum that its bytes give.
/// False for anything shorter than a header.
pub fn crc_ok(batch: &[u8]) -> bool {
    match batch.first_chunk::<HEADER_LEN>() {
        Some(b) => u32::from_be_bytes(field(b, at::CRC)) == crc_of(batch),
        None => false,
    }
}

/// Writes what a leader sets at append, both outside the checksum: the base offset and its epoch.
/// Leaves anything shorter than a header alone.
pub fn stamp(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    put(batch, at::BASE_OFFSET, base_offset.to_be_bytes());
    put(batch, at::LEADER_EPOCH, leader_epoch.to_be_bytes());
}

/// Makes `batch`, exactly one whole batch, one of log append time `now` (milliseconds since the
/// epoch): sets the attribute and the max timestamp, and computes the checksum anew.
/// Leaves anything shorter than a header alone.
pub fn set_log_append_time(batch: &mut [u8], now: i64) {
    let Some(b) = batch.first_chunk::<HEADER_LEN>() else {
        return;
    };
    let attributes = i16::from_be_bytes(field(b, at::ATTRIBUTES)) | ATTR_LOG_APPEND_TIME;
    put(batch, at::ATTRIBUTES, attributes.to_be_bytes());
    put(batch, at::MAX_TIMESTAMP, now.to_be_bytes());
    let crc = crc_of(batch);
    put(batch, at::CRC, crc.to_be_bytes());
}

/// The batches of a byte slice, one after the other.
///
/// Made by [`Batches::new`], it answers a cut-off last batch with one `Err`; made by
/// [`Batches::whole`], it ends before it (a fetch may cut the last batch). A header that cannot be
/// parsed is an `Err` in both. After an `Err` it is at its end. No checksum is computed.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
    position: usize,
    allow_cut: bool,
}

impl<'a> Batches<'a> {
    /// Every byte must belong to a whole batch.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            position: 0,
            allow_cut: false,
        }
    }

    /// Whole batches only; a cut-off tail is left out.
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            position: 0,
            allow_cut: true,
        }
    }

    /// Bytes of the batches given out so far: where the next one starts, or the first bad byte.
    pub fn position(&self) -> usize {
        self.position
    }

    fn take(&mut self) -> Result<(BatchHeader, &'a [u8]), BatchError> {
        let header = BatchHeader::parse(self.rest)?;
        let size = header.size();
        let Some((batch, rest)) = self.rest.split_at_checked(size) else {
            return Err(BatchError::Truncated {
                needed: size,
                have: self.rest.len(),
            });
        };
        self.rest = rest;
        self.position += size;
        Ok((header, batch))
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<(BatchHeader, &'a [u8]), BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.take() {
            Ok(item) => Some(Ok(item)),
            Err(error) => {
                self.rest = &[];
                let cut = matches!(error, BatchError::Truncated { .. });
                (!(cut && self.allow_cut)).then_some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Batches<'_> {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn batch(payload: &[u8]) -> Vec<u8> {
        let header = BatchHeader {
            base_offset: 7,
            batch_length: (49 + payload.len()) as i32,
            leader_epoch: 3,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: 4,
            base_timestamp: 10,
            max_timestamp: 20,
            producer_id: 99,
            producer_epoch: 1,
            base_sequence: i32::MAX - 1,
            count: 5,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(payload);
        let crc = crc_of(&bytes);
        put(&mut bytes, at::CRC, crc.to_be_bytes());
        bytes
    }

    #[test]
    fn a_header_reads_back_as_it_was_written() {
        let bytes = batch(b"abc");
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(header.to_bytes(), bytes[..HEADER_LEN]);
        assert_eq!(header.size(), bytes.len());
        assert_eq!(header.last_offset(), 11);
        assert_eq!(header.last_sequence(), 2);
        assert!(crc_ok(&bytes));
    }

    #[test]
    fn stamping_keeps_the_checksum_and_log_append_time_renews_it() {
        let mut bytes = batch(b"abc");
        stamp(&mut bytes, 1000, 8);
        assert!(crc_ok(&bytes));
        set_log_append_time(&mut bytes, 777);
        assert!(crc_ok(&bytes));
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!((header.base_offset, header.leader_epoch), (1000, 8));
        assert_eq!(header.max_timestamp, 777);
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        bytes[HEADER_LEN] ^= 1;
        assert!(!crc_ok(&bytes));
    }

    #[test]
    fn a_cut_tail_is_an_error_or_the_end() {
        let mut bytes = batch(b"abc");
        let one = bytes.len();
        bytes.extend(batch(b"defg"));
        assert_eq!(Batches::new(&bytes).map(Result::unwrap).count(), 2);
        for cut in one + 1..bytes.len() {
            let mut strict = Batches::new(&bytes[..cut]);
            assert!(strict.next().unwrap().is_ok());
            assert!(matches!(
                strict.next(),
                Some(Err(BatchError::Truncated { .. }))
            ));
            assert_eq!(strict.position(), one);
            assert!(strict.next().is_none());
            assert_eq!(Batches::whole(&bytes[..cut]).map(Result::unwrap).count(), 1);
        }
    }

    #[test]
    fn other_formats_and_short_lengths_are_refused() {
        let mut bytes = batch(b"");
        bytes[at::MAGIC] = 1;
        assert_eq!(
            BatchHeader::parse(&bytes),
            Err(BatchError::UnsupportedMagic(1))
        );
        assert_eq!(
            BatchHeader::parse(&bytes[..17]),
            Err(BatchError::UnsupportedMagic(1))
        );
        bytes[at::MAGIC] = 2;
        put(&mut bytes, at::LENGTH, 48i32.to_be_bytes());
        assert_eq!(BatchHeader::parse(&bytes), Err(BatchError::BadLength(48)));
        put(&mut bytes, at::LENGTH, (-1i32).to_be_bytes());
        assert!(matches!(
            Batches::whole(&bytes).next(),
            Some(Err(BatchError::BadLength(-1)))
        ));
    }
}
