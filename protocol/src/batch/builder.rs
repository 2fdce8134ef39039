//! Building batches: for the internal topics, for transaction markers, and for records that a
//! broker writes or compresses anew.

use bytes::Bytes;

use super::error::BatchError;
use super::header::{
    ATTR_CODEC, ATTR_CONTROL, ATTR_TRANSACTIONAL, BatchHeader, HEADER_LEN, LOG_OVERHEAD, at,
    crc_of, put,
};
use super::validate::DECOMPRESSED_LIMIT;
use super::{records_up_to, varint};
use crate::compression::{Compression, compress};

/// What a batch says beside its records. The default is a plain batch: no producer, no codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence number of the first record, -1 for none.
    pub base_sequence: i32,
    /// Whether the batch belongs to a transaction.
    pub transactional: bool,
    /// Whether its records are control records.
    pub control: bool,
    /// The codec.
    pub compression: Compression,
    /// The codec's level, `None` for its default; see [`compress`].
    pub level: Option<i32>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            transactional: false,
            control: false,
            compression: Compression::None,
            level: None,
        }
    }
}

/// Collects records into one batch, whose offsets begin at 0 and whose leader epoch is -1 until an
/// append sets both.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    options: BatchOptions,
    /// Room for the header, then the encoded records.
    bytes: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new(BatchOptions::default())
    }
}

impl BatchBuilder {
    /// A batch without records.
    pub fn new(options: BatchOptions) -> Self {
        let bytes = vec![0; HEADER_LEN];
        Self {
            options,
            bytes,
            count: 0,
            base_timestamp: -1,
            max_timestamp: -1,
        }
    }

    /// A batch as Kafka's coordinators write theirs to the internal topics: without a producer, but
    /// of base sequence 0.
    pub fn coordinator() -> Self {
        Self::new(BatchOptions {
            base_sequence: 0,
            ..BatchOptions::default()
        })
    }

    /// Adds a record. `timestamp` is in milliseconds since the epoch; the first one is the batch's
    /// base timestamp.
    pub fn push(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.push_with_headers(timestamp, key, value, std::iter::empty());
    }

    /// Adds a record with headers: (key, value) pairs in order, the value `None` for null.
    pub fn push_with_headers<'h, I>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: I,
    ) where
        I: IntoIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
        I::IntoIter: Clone,
    {
        if self.count == 0 {
            self.base_timestamp = timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let headers = headers.into_iter();
        let (length, header_count) = self.length(timestamp, key, value, headers.clone());
        let out = &mut self.bytes;
        out.reserve(length + varint::size(length as i64));
        varint::put(out, length as i64);
        out.push(0);
        varint::put(out, timestamp_delta);
        varint::put(out, i64::from(self.count));
        put_bytes(out, key);
        put_bytes(out, value);
        varint::put(out, header_count);
        for (key, value) in headers {
            put_bytes(out, Some(key));
            put_bytes(out, value);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Bytes that the batch would have, before compression, with this record added.
    pub fn size_with<'h, I>(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: I,
    ) -> usize
    where
        I: IntoIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
    {
        let (length, _) = self.length(timestamp, key, value, headers);
        self.bytes.len() + varint::size(length as i64) + length
    }

    /// The length of a record at the end of the batch, and the number of its headers.
    fn length<'h>(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h [u8], Option<&'h [u8]>)>,
    ) -> (usize, i64) {
        let base = if self.count == 0 {
            timestamp
        } else {
            self.base_timestamp
        };
        let (mut header_count, mut header_size) = (0i64, 0);
        for (key, value) in headers {
            header_count += 1;
            header_size += size_of_bytes(Some(key)) + size_of_bytes(value);
        }
        let length = 1
            + varint::size(timestamp.wrapping_sub(base))
            + varint::size(i64::from(self.count))
            + size_of_bytes(key)
            + size_of_bytes(value)
            + varint::size(header_count)
            + header_size;
        (length, header_count)
    }

    /// How many records were added.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Whether no record was added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the batch has so far, before compression.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The batch. Fails if it holds no record, more bytes than a length can say, or cannot be
    /// compressed.
    pub fn build(self) -> Result<Bytes, BatchError> {
        if self.count == 0 {
            return Err(BatchError::Empty);
        }
        let options = self.options;
        let mut attributes = i16::from(options.compression.code());
        if options.transactional {
            attributes |= ATTR_TRANSACTIONAL;
        }
        if options.control {
            attributes |= ATTR_CONTROL;
        }
        let bytes = match options.compression {
            Compression::None => self.bytes,
            codec => with_payload(&compress(codec, options.level, &self.bytes[HEADER_LEN..])?),
        };
        seal(
            bytes,
            BatchHeader {
                base_offset: 0,
                batch_length: 0,
                leader_epoch: -1,
                magic: 2,
                crc: 0,
                attributes,
                last_offset_delta: self.count - 1,
                base_timestamp: self.base_timestamp,
                max_timestamp: self.max_timestamp,
                producer_id: options.producer_id,
                producer_epoch: options.producer_epoch,
                base_sequence: options.base_sequence,
                count: self.count,
            },
        )
    }
}

/// The control batch that ends a transaction (KIP-98): one record, commit or abort, of a producer
/// and the epoch of the transaction coordinator that decided it. `timestamp` is in milliseconds
/// since the epoch.
pub fn end_txn_marker(
    producer_id: i64,
    producer_epoch: i16,
    commit: bool,
    coordinator_epoch: i32,
    timestamp: i64,
) -> Result<Bytes, BatchError> {
    let mut batch = BatchBuilder::new(BatchOptions {
        producer_id,
        producer_epoch,
        transactional: true,
        control: true,
        ..BatchOptions::default()
    });
    let key = [0, 0, 0, u8::from(commit)];
    let [a, b, c, d] = coordinator_epoch.to_be_bytes();
    batch.push(timestamp, Some(&key), Some(&[0, 0, a, b, c, d]));
    batch.build()
}

/// What a transaction marker says, read from the key and value of its control record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// Committed, or else aborted.
    pub commit: bool,
    /// Epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// Reads the marker of a control record; `None` for control records of other kinds (leader
    /// changes and the like) and for broken ones.
    pub fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let &[0, _, 0, kind @ (0 | 1), ..] = key else {
            return None;
        };
        let &[_, _, a, b, c, d, ..] = value else {
            return None;
        };
        Some(Self {
            commit: kind == 1,
            coordinator_epoch: i32::from_be_bytes([a, b, c, d]),
        })
    }
}

/// The batch anew with another codec, for a topic whose `compression.type` is not `producer`.
/// Everything else stays: offsets, producer, timestamps.
pub fn recompress(
    batch: &[u8],
    codec: Compression,
    level: Option<i32>,
) -> Result<Bytes, BatchError> {
    let set = records_up_to(batch, DECOMPRESSED_LIMIT)?;
    let header = *set.header();
    let attributes = header.attributes & !ATTR_CODEC | i16::from(codec.code());
    let bytes = with_payload(&compress(codec, level, set.payload())?);
    seal(
        bytes,
        BatchHeader {
            attributes,
            ..header
        },
    )
}

pub(super) fn with_payload(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
    bytes.resize(HEADER_LEN, 0);
    bytes.extend_from_slice(payload);
    bytes
}

/// Writes the header, with the length and the checksum, into the room in front of the records.
pub(super) fn seal(mut bytes: Vec<u8>, header: BatchHeader) -> Result<Bytes, BatchError> {
    let Ok(batch_length) = i32::try_from(bytes.len() - LOG_OVERHEAD) else {
        return Err(BatchError::TooLong(bytes.len()));
    };
    put(
        &mut bytes,
        0,
        BatchHeader {
            batch_length,
            ..header
        }
        .to_bytes(),
    );
    let crc = crc_of(&bytes);
    put(&mut bytes, at::CRC, crc.to_be_bytes());
    Ok(Bytes::from(bytes))
}

fn size_of_bytes(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => varint::size(bytes.len() as i64) + bytes.len(),
        None => 1,
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            varint::put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => varint::put(out, -1),
    }
}
