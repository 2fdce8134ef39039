//! A cursor over foreign bytes: every read is checked, nothing is allocated.

/// What is wrong with bytes that a peer sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end inside a field.
    #[error("the bytes end inside a field")]
    Truncated,
    /// A length or count is negative, or above what its type may hold.
    #[error("a length of {0} is not valid")]
    Length(i64),
    /// Null where null is not allowed.
    #[error("null in a field that is never null")]
    Null,
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// A varint of more than 32 bits.
    #[error("a varint has more than 32 bits")]
    Varint,
    /// A collection beyond Kafka's limit of elements.
    #[error("{0} elements are more than a collection may hold")]
    Elements(usize),
    /// More tagged fields in one struct than Kafka accepts.
    #[error("{0} tagged fields are more than a struct may hold")]
    Tags(usize),
    /// A known tagged field that this version lacks, or whose size is not that of its content.
    #[error("tagged field {0} is not of this version or not of the size that it declares")]
    Tag(u32),
    /// Bytes left over behind the last field.
    #[error("{0} bytes are left behind the last field")]
    Trailing(usize),
    /// Decoding would take more memory than a frame of this size may ask for.
    #[error("decoding would take more than {0} bytes of memory")]
    Budget(usize),
}

/// The longest string that Kafka accepts, in bytes.
const MAX_STRING: usize = i16::MAX as usize;
/// The most tagged fields in one struct (Kafka 4.4).
const MAX_TAGS: usize = 10_000;

/// A position in a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read.
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).ok_or(Malformed::Truncated)?;
        self.at += length;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Malformed::Truncated)
    }

    #[inline]
    pub(crate) fn i8(&mut self) -> Result<i8, Malformed> {
        self.array().map(i8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn uvarint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| Malformed::Varint);
            }
        }
        Err(Malformed::Varint)
    }

    /// A length in its compact form, or else as the integer that `plain` reads; `None` is null.
    #[inline]
    fn length(
        &mut self,
        compact: bool,
        plain: impl FnOnce(&mut Self) -> Result<i32, Malformed>,
    ) -> Result<Option<usize>, Malformed> {
        if compact {
            return Ok((self.uvarint()? as usize).checked_sub(1));
        }
        match plain(self)? {
            -1 => Ok(None),
            n => usize::try_from(n)
                .map(Some)
                .map_err(|_| Malformed::Length(n.into())),
        }
    }

    /// A string, checked to be UTF-8; `None` is null.
    #[inline]
    pub(crate) fn string(&mut self, compact: bool) -> Result<Option<&'a str>, Malformed> {
        let Some(length) = self.length(compact, |r| Ok(r.i16()?.into()))? else {
            return Ok(None);
        };
        if length > MAX_STRING {
            return Err(Malformed::Length(length as i64));
        }
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes)
            .map(Some)
            .map_err(|_| Malformed::Utf8)
    }

    /// Opaque bytes or records; `None` is null.
    #[inline]
    pub(crate) fn blob(&mut self, compact: bool) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.length(compact, Self::i32)?;
        length.map(|n| self.take(n)).transpose()
    }

    /// The count of an array; `None` is null.
    #[inline]
    pub(crate) fn count(&mut self, compact: bool) -> Result<Option<usize>, Malformed> {
        self.length(compact, Self::i32)
    }

    /// The number of tagged fields that follow.
    #[inline]
    pub(crate) fn tags(&mut self) -> Result<usize, Malformed> {
        let count = self.uvarint()? as usize;
        if count > MAX_TAGS {
            Err(Malformed::Tags(count))
        } else {
            Ok(count)
        }
    }

    /// Reads past a section of tagged fields.
    pub(crate) fn skip_tags(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.tags()? {
            self.uvarint()?;
            let size = self.uvarint()?;
            self.take(size as usize)?;
        }
        Ok(())
    }
}
