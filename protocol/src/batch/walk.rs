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
    /// The next byte; `None` at the end, or at a failure.
    fn next(&mut self) -> Option<u8>;

    /// Passes over `n` bytes; false if there are fewer, or at a failure.
    fn skip(&mut self, n: usize) -> bool;

    /// Why there are no more bytes, if that is not their end. Kept apart from the bytes, whose path
    /// it would slow down.
    fn failure(&mut self) -> Option<BatchError>;
}

/// Bytes that are there.
pub(super) struct Slice<'a>(pub(super) &'a [u8]);

impl Source for Slice<'_> {
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    #[inline]
    fn skip(&mut self, n: usize) -> bool {
        let rest = self.0.get(n..);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }

    fn failure(&mut self) -> Option<BatchError> {
        None
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
    failure: Option<BatchError>,
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
            failure: None,
        }
    }

    #[cold]
    fn refill(&mut self) -> bool {
        (self.at, self.end) = (0, 0);
        match self.decoder.fill(&mut self.window) {
            Ok(n) if n <= self.left => {
                self.left -= n;
                self.end = n;
            }
            Ok(_) => self.failure = Some(self.decoder.over(self.limit).into()),
            Err(error) => self.failure = Some(error.into()),
        }
        self.end > 0
    }
}

impl Source for Stream<'_> {
    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.at == self.end && !self.refill() {
            return None;
        }
        let byte = self.window.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn skip(&mut self, mut n: usize) -> bool {
        while n > self.end - self.at {
            n -= self.end - self.at;
            if !self.refill() {
                return false;
            }
        }
        self.at += n;
        true
    }

    fn failure(&mut self) -> Option<BatchError> {
        self.failure.take()
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
        match self.fields() {
            Ok(outline) => {
                self.index = self.index.saturating_add(1);
                Ok(outline)
            }
            Err(fault) => Err(self.error(fault)),
        }
    }

    /// Whether no byte is left.
    pub(super) fn at_end(&mut self) -> Result<bool, BatchError> {
        let ended = self.source.next().is_none();
        self.source.failure().map_or(Ok(ended), Err)
    }

    #[cold]
    fn error(&mut self, fault: RecordFault) -> BatchError {
        self.source
            .failure()
            .unwrap_or(BatchError::record(self.index, fault))
    }

    #[inline]
    fn fields(&mut self) -> Result<Outline, RecordFault> {
        // The length is not part of what it counts.
        self.left = 5;
        let length = self.varint()?;
        let bad_length = RecordFault::Length(i64::from(length));
        let Ok(left) = usize::try_from(length) else {
            return Err(bad_length);
        };
        self.left = left;
        self.byte()?;
        let timestamp_delta = self.varlong()?;
        let offset_delta = self.varint()?;
        let has_key = self.bytes("key length", -1)?;
        self.bytes("value length", -1)?;
        let headers = self.varint()?;
        if headers < 0 {
            return Err(field("header count", headers));
        }
        for _ in 0..headers {
            self.bytes("header key length", 0)?;
            self.bytes("header value length", -1)?;
        }
        if self.left > 0 {
            return Err(bad_length);
        }
        Ok(Outline {
            timestamp_delta,
            offset_delta,
            has_key,
        })
    }

    /// Passes over a length and so many bytes; whether they are there (-1 is null).
    #[inline]
    fn bytes(&mut self, what: &'static str, least: i32) -> Result<bool, RecordFault> {
        let length = self.varint()?;
        if length < 0 {
            return if length < least {
                Err(field(what, length))
            } else {
                Ok(false)
            };
        }
        let n = length as usize;
        if n > self.left {
            return Err(field(what, length));
        }
        self.left -= n;
        if self.source.skip(n) {
            Ok(true)
        } else {
            Err(RecordFault::Cut)
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, RecordFault> {
        if self.left == 0 {
            return Err(RecordFault::Length(0));
        }
        self.left -= 1;
        self.source.next().ok_or(RecordFault::Cut)
    }

    #[inline]
    fn varint(&mut self) -> Result<i32, RecordFault> {
        varint::read(|| self.byte())?.ok_or(RecordFault::Varint)
    }

    #[inline]
    fn varlong(&mut self) -> Result<i64, RecordFault> {
        varint::read_long(|| self.byte())?.ok_or(RecordFault::Varint)
    }
}

#[cold]
fn field(what: &'static str, value: i32) -> RecordFault {
    RecordFault::Field {
        what,
        value: i64::from(value),
    }
}
