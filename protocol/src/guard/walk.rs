//! One pass over the bytes of a message, by its shape, before anything is decoded.

use super::shape::{Field, Kind, MEMORY_OF_STRING};
use crate::reader::{Malformed, Reader};

/// The most elements in one collection (Kafka 4.4).
const MAX_ELEMENTS: usize = 1_000_000;

/// The memory that decoding may take on top of the frame: this, and [`BUDGET_FACTOR`] bytes for each
/// byte of the frame. Strings, blobs and records are slices of the frame and cost only their handle.
///
/// Ordinary requests need far less than the factor: a `Fetch` partition takes three times its bytes,
/// a committed offset five. What exceeds it are frames made of the tiniest elements (an empty string is
/// one byte that becomes 32), and those only above the base, which covers 14,000 topic names.
pub(crate) const BUDGET_BASE: usize = 1 << 20;
/// See [`BUDGET_BASE`].
pub(crate) const BUDGET_FACTOR: usize = 8;

/// An allocation's own cost.
const MEMORY_OF_ALLOCATION: usize = 16;
/// A map's first node, and its share of further ones.
const MEMORY_OF_FIRST_TAG: usize = 432;
const MEMORY_OF_TAG: usize = 96;

/// The memory that decoding a frame of this many bytes may take.
pub(crate) const fn budget(length: usize) -> usize {
    BUDGET_BASE + BUDGET_FACTOR * length
}

/// Walks a struct's fields; on success the reader stands behind them.
///
/// An error comes with the position at which the walk stopped.
pub(crate) fn walk(
    bytes: &[u8],
    fields: &'static [Field],
    version: i16,
    compact: bool,
) -> Result<usize, (usize, Malformed)> {
    let limit = budget(bytes.len());
    let mut walk = Walk {
        reader: Reader::new(bytes),
        version,
        compact,
        left: limit,
        limit,
    };
    match walk.fields(fields) {
        Ok(()) => Ok(walk.reader.position()),
        Err(problem) => Err((walk.reader.position(), problem)),
    }
}

struct Walk<'a> {
    reader: Reader<'a>,
    version: i16,
    compact: bool,
    /// What is left of the budget.
    left: usize,
    limit: usize,
}

impl Walk<'_> {
    fn fields(&mut self, fields: &'static [Field]) -> Result<(), Malformed> {
        for field in fields {
            if field.tag.is_none() && field.in_version(self.version) {
                self.field(field)?;
            }
        }
        if self.compact {
            self.tags(fields)
        } else {
            Ok(())
        }
    }

    fn field(&mut self, field: &Field) -> Result<(), Malformed> {
        let nullable = field.null_since <= self.version;
        match field.kind {
            Kind::Fixed(width) => self.reader.take(width).map(drop),
            Kind::Str => not_null(self.reader.string(self.compact)?.is_some(), nullable),
            Kind::Blob => not_null(self.reader.blob(self.compact)?.is_some(), nullable),
            Kind::Nested(fields) if nullable => match self.reader.i8()? {
                1 => self.fields(fields),
                -1 => Ok(()),
                other => Err(Malformed::Length(other.into())),
            },
            Kind::Nested(fields) => self.fields(fields),
            Kind::FixedList(width) => {
                let count = self.count(nullable, width)?;
                self.reader.take(count * width).map(drop)
            }
            Kind::StrList => {
                for _ in 0..self.count(nullable, MEMORY_OF_STRING)? {
                    not_null(self.reader.string(self.compact)?.is_some(), false)?;
                }
                Ok(())
            }
            Kind::List { fields, memory } => {
                for _ in 0..self.count(nullable, memory)? {
                    self.fields(fields)?;
                }
                Ok(())
            }
        }
    }

    /// Reads a list's count and charges its elements, of `memory` bytes each.
    fn count(&mut self, nullable: bool, memory: usize) -> Result<usize, Malformed> {
        let Some(count) = self.reader.count(self.compact)? else {
            return not_null(false, nullable).map(|()| 0);
        };
        if count > MAX_ELEMENTS {
            return Err(Malformed::Elements(count));
        }
        // Every element takes a byte at least.
        if count > self.reader.remaining() {
            return Err(Malformed::Truncated);
        }
        if count > 0 {
            self.charge(MEMORY_OF_ALLOCATION + count * memory)?;
        }
        Ok(count)
    }

    fn tags(&mut self, fields: &'static [Field]) -> Result<(), Malformed> {
        let mut memory = MEMORY_OF_FIRST_TAG;
        for _ in 0..self.reader.tags()? {
            let tag = self.reader.uvarint()?;
            let size = self.reader.uvarint()? as usize;
            let Some(field) = fields.iter().find(|field| field.tag == Some(tag)) else {
                self.reader.take(size)?;
                self.charge(std::mem::replace(&mut memory, MEMORY_OF_TAG))?;
                continue;
            };
            if !field.in_version(self.version) {
                return Err(Malformed::Tag(tag));
            }
            let start = self.reader.position();
            self.field(field)?;
            if self.reader.position() - start != size {
                return Err(Malformed::Tag(tag));
            }
        }
        Ok(())
    }

    fn charge(&mut self, memory: usize) -> Result<(), Malformed> {
        self.left = self
            .left
            .checked_sub(memory)
            .ok_or(Malformed::Budget(self.limit))?;
        Ok(())
    }
}

fn not_null(present: bool, nullable: bool) -> Result<(), Malformed> {
    if present || nullable {
        Ok(())
    } else {
        Err(Malformed::Null)
    }
}
