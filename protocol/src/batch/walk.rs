//! The walk over the encoded records of a batch, shared by validation (which may decompress while
//! it walks) and by iteration (which has the bytes).
//!
//! A record: length (varint of what follows), attributes `i8`, timestamp delta (varlong), offset
//! delta (varint), key and value (varint length, -1 for null, and bytes), header count (varint),
//! headers (key with a length of at least 0, value as above). All varints are zigzag.

use super::error::{BatchError, RecordFault};
use super::varint;
use crate::compression::Decoder;

/// Where a walk takes its bytes from.
pub(super) trait Source {
    /// The next byte; `None` at the end.
    fn next(&mut self) -> Result<Option<u8>, BatchError>;

    /// Passes over `n` bytes; false if there are fewer.
    fn skip(&mut self, n: usize) -> Result<bool, BatchError>;
}

/// Bytes that are there.
pub(super) struct Slice<'a>(pub(super) &'a [u8]);

impl Source for Slice<'_> {
    #[inline]
    fn next(&mut self) -> Result<Option<u8>, BatchError> {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                Ok(Some(byte))
            }
            None => Ok(None),
        }
    }

    #[inline]
    fn skip(&mut self, n: usize) -> Result<bool, BatchError> {
        match self.0.get(n..) {
            Some(rest) => {
                self.0 = rest;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// Bytes that a decoder makes, through a window of fixed size.
pub(super) struct Stream<'a> {
    decoder: Decoder<'a>,
    window: Box<[u8]>,
    at: usize,
    end: usize,
    /// Bytes that may still come out of the decoder.
    left: usize,
    limit: usize,
}

/// Bytes of the window: a Snappy block, half an LZ4 one.
const WINDOW: usize = 32 * 1024;

impl<'a> Stream<'a> {
    pub(super) fn new(decoder: Decoder<'a>, limit: usize) -> Self {
        let window = vec![0; WINDOW].into_boxed_slice();
        Self {
            decoder,
            window,
            at: 0,
            end: 0,
            left: limit,
            limit,
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<bool, BatchError> {
        self.at = 0;
        self.end = self.decoder.fill(&mut self.window)?;
        self.left = self
            .left
            .checked_sub(self.end)
            .ok_or_else(|| self.decoder.over(self.limit))?;
        Ok(self.end > 0)
    }
}

impl Source for Stream<'_> {
    #[inline]
    fn next(&mut self) -> Result<Option<u8>, BatchError> {
        if self.at == self.end && !self.refill()? {
            return Ok(None);
        }
        let byte = self.window.get(self.at).copied();
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, mut n: usize) -> Result<bool, BatchError> {
        while n > self.end - self.at {
            n -= self.end - self.at;
            if !self.refill()? {
                return Ok(false);
            }
        }
        self.at += n;
        Ok(true)
    }
}

/// What a walk learns of one record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outline {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) has_key: bool,
}

/// A walk over records, which are counted from 0 for errors.
pub(super) struct Walk<S> {
    source: S,
    index: i32,
    /// Bytes that the record at hand still has.
    left: usize,
}

impl<S: Source> Walk<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            index: 0,
            left: 0,
        }
    }

    /// Walks one record, which must be there.
    pub(super) fn record(&mut self) -> Result<Outline, BatchError> {
        // The length is not part of what it counts.
        self.left = 5;
        let length = self.varint()?;
        self.left = usize::try_from(length)
            .map_err(|_| self.fault(RecordFault::Length(i64::from(length))))?;
        self.byte()?;
        let timestamp_delta = self.varlong()?;
        let offset_delta = self.varint()?;
        let has_key = self.bytes("key length", -1)?;
        self.bytes("value length", -1)?;
        let headers = self.varint()?;
        if headers < 0 {
            return Err(self.field("header count", headers));
        }
        for _ in 0..headers {
            self.bytes("header key length", 0)?;
            self.bytes("header value length", -1)?;
        }
        if self.left > 0 {
            return Err(self.fault(RecordFault::Length(i64::from(length))));
        }
        self.index = self.index.saturating_add(1);
        Ok(Outline {
            timestamp_delta,
            offset_delta,
            has_key,
        })
    }

    /// Whether no byte is left.
    pub(super) fn at_end(&mut self) -> Result<bool, BatchError> {
        Ok(self.source.next()?.is_none())
    }

    #[cold]
    fn fault(&self, fault: RecordFault) -> BatchError {
        BatchError::record(self.index, fault)
    }

    #[cold]
    fn field(&self, what: &'static str, value: i32) -> BatchError {
        self.fault(RecordFault::Field {
            what,
            value: i64::from(value),
        })
    }

    /// Passes over a length and so many bytes; whether they are there (-1 is null).
    #[inline]
    fn bytes(&mut self, what: &'static str, least: i32) -> Result<bool, BatchError> {
        let length = self.varint()?;
        if length < 0 {
            return if length < least {
                Err(self.field(what, length))
            } else {
                Ok(false)
            };
        }
        let n = length as usize;
        if n > self.left {
            return Err(self.field(what, length));
        }
        self.left -= n;
        if !self.source.skip(n)? {
            return Err(self.fault(RecordFault::Cut));
        }
        Ok(true)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, BatchError> {
        if self.left == 0 {
            return Err(self.fault(RecordFault::Length(0)));
        }
        self.left -= 1;
        match self.source.next()? {
            Some(byte) => Ok(byte),
            None => Err(self.fault(RecordFault::Cut)),
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<i32, BatchError> {
        varint::read(|| self.byte())?.ok_or_else(|| self.fault(RecordFault::Varint))
    }

    #[inline]
    fn varlong(&mut self) -> Result<i64, BatchError> {
        varint::read_long(|| self.byte())?.ok_or_else(|| self.fault(RecordFault::Varint))
    }
}
