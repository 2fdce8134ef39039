//! The records inside a batch, decompressed if need be and borrowed from there.

use std::borrow::Cow;

use super::error::{BatchError, RecordFault};
use super::header::{BatchHeader, HEADER_LEN, TimestampType};
use super::validate::DECOMPRESSED_LIMIT;
use super::varint;
use crate::compression::{Compression, decompress};

/// One record, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset in the partition.
    pub offset: i64,
    /// Milliseconds since the epoch, -1 for none; the batch's max timestamp under log append time.
    pub timestamp: i64,
    /// The key, `None` for null.
    pub key: Option<&'a [u8]>,
    /// The value, `None` for null.
    pub value: Option<&'a [u8]>,
    /// The headers, in order; keys may repeat.
    pub headers: Headers<'a>,
}

/// A record's headers: (key, value) pairs, the value `None` for null. Keys should be UTF-8; nobody
/// checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    /// Encoded headers, walked once and found whole.
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Headers<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The headers, from the first.
    pub fn iter(&self) -> HeaderIter<'a> {
        HeaderIter {
            rest: self.bytes,
            left: self.count,
        }
    }
}

impl<'a> IntoIterator for &Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);
    type IntoIter = HeaderIter<'a>;

    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

/// Iterator over a record's headers.
#[derive(Debug, Clone)]
pub struct HeaderIter<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut fields = Fields(self.rest);
        let key = fields.header_key().ok()?;
        let value = fields.bytes("header value length").ok()?;
        self.rest = fields.0;
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for HeaderIter<'_> {}

/// The records of one batch: its header and its decompressed bytes.
#[derive(Debug, Clone)]
pub struct RecordSet<'a> {
    header: BatchHeader,
    payload: Cow<'a, [u8]>,
}

/// Opens one whole batch, decompressing to at most [`DECOMPRESSED_LIMIT`] bytes. The checksum is
/// not looked at.
pub fn records(batch: &[u8]) -> Result<RecordSet<'_>, BatchError> {
    records_up_to(batch, DECOMPRESSED_LIMIT)
}

/// Opens one whole batch, decompressing to at most `limit` bytes.
pub fn records_up_to(batch: &[u8], limit: usize) -> Result<RecordSet<'_>, BatchError> {
    let header = BatchHeader::parse(batch)?;
    let Some(payload) = batch.get(HEADER_LEN..header.size()) else {
        return Err(BatchError::Truncated {
            needed: header.size(),
            have: batch.len(),
        });
    };
    let payload = match header.compression()? {
        Compression::None => Cow::Borrowed(payload),
        codec => Cow::Owned(decompress(codec, payload, limit)?),
    };
    Ok(RecordSet { header, payload })
}

impl<'a> RecordSet<'a> {
    /// The encoded records, decompressed: the batch's own bytes where it is not compressed.
    pub fn into_payload(self) -> Cow<'a, [u8]> {
        self.payload
    }

    /// The batch's header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The encoded records, decompressed.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The records, from the first. Ends after one `Err`. As many as the header counts must be
    /// there, and nothing behind them.
    pub fn iter(&self) -> Records<'_> {
        Records {
            header: self.header,
            rest: &self.payload,
            index: 0,
            done: false,
        }
    }
}

impl<'a> IntoIterator for &'a RecordSet<'_> {
    type Item = Result<Record<'a>, BatchError>;
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// Iterator over the records of a [`RecordSet`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    header: BatchHeader,
    rest: &'a [u8],
    index: i32,
    done: bool,
}

impl<'a> Records<'a> {
    /// The bytes of the records that are still to come.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self) -> Result<Record<'a>, RecordFault> {
        let mut fields = Fields(self.rest);
        let length = fields.varint()?;
        let bad = RecordFault::Length(i64::from(length));
        let length = usize::try_from(length).map_err(|_| bad.clone())?;
        let body = fields.take(length).ok_or(RecordFault::Cut)?;
        let rest = fields.0;
        let mut fields = Fields(body);
        fields.take(1).ok_or_else(|| bad.clone())?;
        let timestamp_delta = fields.varlong()?;
        let offset_delta = fields.varint()?;
        let key = fields.bytes("key length")?;
        let value = fields.bytes("value length")?;
        let headers = fields.headers()?;
        if !fields.0.is_empty() {
            return Err(bad);
        }
        self.rest = rest;
        let timestamp = match self.header.timestamp_type() {
            TimestampType::LogAppendTime => self.header.max_timestamp,
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
        };
        let offset = self
            .header
            .base_offset
            .wrapping_add(i64::from(offset_delta));
        Ok(Record {
            offset,
            timestamp,
            key,
            value,
            headers,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.index >= self.header.count {
            self.done = true;
            return (!self.rest.is_empty()).then_some(Err(BatchError::Trailing));
        }
        let record = self
            .take()
            .map_err(|fault| BatchError::record(self.index, fault));
        self.done = record.is_err();
        self.index += 1;
        Some(record)
    }
}

impl std::iter::FusedIterator for Records<'_> {}

/// A cursor over the fields of one record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Result<u8, RecordFault> {
        let (&byte, rest) = self.0.split_first().ok_or(RecordFault::Cut)?;
        self.0 = rest;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<i32, RecordFault> {
        varint::read(|| self.byte())?.ok_or(RecordFault::Varint)
    }

    fn varlong(&mut self) -> Result<i64, RecordFault> {
        varint::read_long(|| self.byte())?.ok_or(RecordFault::Varint)
    }

    fn bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, RecordFault> {
        let length = self.varint()?;
        if length == -1 {
            return Ok(None);
        }
        let taken = usize::try_from(length).ok().and_then(|n| self.take(n));
        let fault = RecordFault::Field {
            what,
            value: i64::from(length),
        };
        taken.map(Some).ok_or(fault)
    }

    fn header_key(&mut self) -> Result<&'a [u8], RecordFault> {
        let what = "header key length";
        self.bytes(what)?
            .ok_or(RecordFault::Field { what, value: -1 })
    }

    fn headers(&mut self) -> Result<Headers<'a>, RecordFault> {
        let count = self.varint()?;
        let bad = RecordFault::Field {
            what: "header count",
            value: i64::from(count),
        };
        let count = usize::try_from(count).map_err(|_| bad)?;
        let all = self.0;
        for _ in 0..count {
            self.header_key()?;
            self.bytes("header value length")?;
        }
        Ok(Headers {
            bytes: &all[..all.len() - self.0.len()],
            count,
        })
    }
}
