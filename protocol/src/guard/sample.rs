//! Well-formed bodies of any request, for tests and fuzzers.

use super::shape::{Field, Kind};
use super::table;
use crate::frame;

/// A well-formed body, and where in it a hostile peer would put other lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The body.
    pub body: Vec<u8>,
    /// Every length and count in it.
    pub lengths: Vec<LengthField>,
    /// Where every number stands that is no length, and its width in bytes.
    pub numbers: Vec<(usize, usize)>,
}

/// Where a length stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthField {
    /// Its first byte.
    pub at: usize,
    /// Its width in bytes.
    pub width: usize,
    /// Whether it is a varint (length plus one), else a big-endian integer.
    pub compact: bool,
}

/// What a sample may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variety {
    /// Whether known tagged fields are set.
    pub tags: bool,
    /// The most elements of a list.
    pub elements: u32,
    /// The longest string or blob, in bytes.
    pub string: u32,
}

/// Builds a well-formed body of a request; `None` if Kafka 4.4 has no such API or version.
///
/// `choose(n)` picks a number below `n`: it is the only source of variety, so that the same choices
/// give the same body. It is asked with `elements + 1` for the count of a list, `string + 1` for a
/// length, 4 for null (0 is null), 3 for the number of unknown tagged fields.
pub fn sample(
    key: i16,
    version: i16,
    variety: Variety,
    choose: &mut dyn FnMut(u32) -> u32,
) -> Option<Sample> {
    let shape = table::shape(key).filter(|s| (s.min..=s.max).contains(&version))?;
    let compact = frame::is_flexible(key, version);
    let mut builder = Builder {
        sample: Sample::default(),
        version,
        compact,
        variety,
        choose,
    };
    builder.fields(shape.fields);
    Some(builder.sample)
}

/// The versions of a request in Kafka 4.4, first and last; `None` for a key without requests.
pub fn versions(key: i16) -> Option<(i16, i16)> {
    table::shape(key).map(|shape| (shape.min, shape.max))
}

struct Builder<'a> {
    sample: Sample,
    version: i16,
    compact: bool,
    variety: Variety,
    choose: &'a mut dyn FnMut(u32) -> u32,
}

impl Builder<'_> {
    fn fields(&mut self, fields: &'static [Field]) {
        let version = self.version;
        for field in fields
            .iter()
            .filter(|f| f.tag.is_none() && f.in_version(version))
        {
            self.field(field);
        }
        if self.compact {
            self.tags(fields);
        }
    }

    fn field(&mut self, field: &Field) {
        let null = field.null_since <= self.version && (self.choose)(4) == 0;
        match field.kind {
            Kind::Fixed(width) => self.fixed(width),
            Kind::Str => self.bytes(null, 2),
            Kind::Blob => self.bytes(null, 4),
            Kind::Nested(fields) if field.null_since <= self.version => {
                self.sample.body.push(if null { 0xff } else { 1 });
                if !null {
                    self.fields(fields);
                }
            }
            Kind::Nested(fields) => self.fields(fields),
            Kind::FixedList(width) => self.list(null, |s| s.fixed(width)),
            Kind::StrList => self.list(null, |s| s.bytes(false, 2)),
            Kind::List { fields, .. } => self.list(null, |s| s.fields(fields)),
        }
    }

    /// A number; one byte wide it is 0 or 1, as it may be a bool.
    fn fixed(&mut self, width: usize) {
        let at = self.sample.body.len();
        self.sample.numbers.push((at, width));
        let bound = if width == 1 { 2 } else { 256 };
        for _ in 0..width {
            let byte = (self.choose)(bound) as u8;
            self.sample.body.push(byte);
        }
    }

    fn bytes(&mut self, null: bool, width: usize) {
        let length = (self.choose)(self.variety.string + 1) as usize;
        self.length((!null).then_some(length), width);
        for _ in 0..if null { 0 } else { length } {
            let byte = b'a' + (self.choose)(26) as u8;
            self.sample.body.push(byte);
        }
    }

    fn list(&mut self, null: bool, mut element: impl FnMut(&mut Self)) {
        let count = (self.choose)(self.variety.elements + 1) as usize;
        self.length((!null).then_some(count), 4);
        for _ in 0..if null { 0 } else { count } {
            element(self);
        }
    }

    fn length(&mut self, length: Option<usize>, width: usize) {
        let at = self.sample.body.len();
        if self.compact {
            uvarint(&mut self.sample.body, length.map_or(0, |n| n + 1));
        } else {
            let plain = length.map_or(-1, |n| n as i32).to_be_bytes();
            self.sample.body.extend_from_slice(&plain[4 - width..]);
        }
        let width = self.sample.body.len() - at;
        self.sample.lengths.push(LengthField {
            at,
            width,
            compact: self.compact,
        });
    }

    fn tags(&mut self, fields: &'static [Field]) {
        let version = self.version;
        let mut known: Vec<_> = fields
            .iter()
            .filter(|f| self.variety.tags && f.in_version(version))
            .filter_map(|f| Some((f.tag?, f)))
            .collect();
        known.sort_by_key(|(tag, _)| *tag);
        let unknown = (self.choose)(3) as usize;
        uvarint(&mut self.sample.body, known.len() + unknown);
        for (tag, field) in known {
            let lengths = self.sample.lengths.len();
            let numbers = self.sample.numbers.len();
            let before = self.sample.body.len();
            self.field(field);
            let value = self.sample.body.split_off(before);
            uvarint(&mut self.sample.body, tag as usize);
            uvarint(&mut self.sample.body, value.len());
            let moved = self.sample.body.len() - before;
            self.sample.body.extend_from_slice(&value);
            for length in &mut self.sample.lengths[lengths..] {
                length.at += moved;
            }
            for (at, _) in &mut self.sample.numbers[numbers..] {
                *at += moved;
            }
        }
        for tag in 0..unknown {
            uvarint(&mut self.sample.body, 1_000 + tag);
            let length = (self.choose)(5) as usize;
            uvarint(&mut self.sample.body, length);
            let filled = self.sample.body.len() + length;
            self.sample.body.resize(filled, 7);
        }
    }
}

fn uvarint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
