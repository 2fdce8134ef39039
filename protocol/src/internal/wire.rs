//! The primitives of Kafka's schemas, each in its plain and its flexible (KIP-482) form.

use bytes::Bytes;
use uuid::Uuid;

use super::InternalError;
use crate::Malformed;
use crate::reader::Reader;

/// Tagged fields of a struct that its schema does not name: kept through decode and encode, so that
/// a record which is rewritten loses nothing that a newer version put there. Ottla's own tags begin
/// at 9000.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Vec<(u32, Bytes)>);

impl Tags {
    /// The content of a tag.
    pub fn get(&self, tag: u32) -> Option<&Bytes> {
        let at = self.0.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
        self.0.get(at).map(|(_, content)| content)
    }

    /// Sets the content of a tag. It must not be one that the schema names.
    pub fn set(&mut self, tag: u32, content: Bytes) {
        match self.0.binary_search_by_key(&tag, |(tag, _)| *tag) {
            Ok(at) => self.0[at].1 = content,
            Err(at) => self.0.insert(at, (tag, content)),
        }
    }

    /// Takes a tag away.
    pub fn remove(&mut self, tag: u32) {
        self.0.retain(|(kept, _)| *kept != tag);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tags in ascending order, with their contents.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Bytes)> {
        self.0.iter().map(|(tag, content)| (*tag, content))
    }
}

/// Bytes being read, in one version of one schema.
pub(super) struct Decoder<'a> {
    reader: Reader<'a>,
    pub(super) version: i16,
    pub(super) flexible: bool,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(bytes),
            version: 0,
            flexible: false,
        }
    }

    /// Reads a value to the end of the bytes.
    pub(super) fn whole<T: Wire>(mut self) -> Result<T, InternalError> {
        let value = T::get(&mut self)?;
        match self.reader.remaining() {
            0 => Ok(value),
            n => Err(Malformed::Trailing(n).into()),
        }
    }

    pub(super) fn uvarint(&mut self) -> Result<u32, InternalError> {
        Ok(self.reader.uvarint()?)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InternalError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.reader.take(N)?);
        Ok(bytes)
    }

    /// Reads the tagged fields. `known` reads the content of those that the schema names, and says
    /// whether it did; the others are returned.
    pub(super) fn tags(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, InternalError>,
    ) -> Result<Tags, InternalError> {
        let mut unknown = Tags::default();
        let mut previous = None;
        for _ in 0..self.reader.tags()? {
            let tag = self.reader.uvarint()?;
            // Ascending, as Kafka writes them: no tag comes twice.
            if previous.is_some_and(|previous| previous >= tag) {
                return Err(InternalError::TagOrder(tag));
            }
            previous = Some(tag);
            let size = self.reader.uvarint()? as usize;
            let content = self.reader.take(size)?;
            let mut inner = Decoder {
                reader: Reader::new(content),
                ..*self
            };
            if !known(tag, &mut inner)? {
                unknown.0.push((tag, Bytes::copy_from_slice(content)));
            } else if inner.reader.remaining() > 0 {
                return Err(InternalError::TagSize(tag));
            }
        }
        Ok(unknown)
    }
}

/// Bytes being written, in one version of one schema.
pub(super) struct Encoder {
    out: Vec<u8>,
    pub(super) version: i16,
    pub(super) flexible: bool,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            out: Vec::with_capacity(64),
            version: 0,
            flexible: false,
        }
    }

    pub(super) fn finish(self) -> Bytes {
        Bytes::from(self.out)
    }

    pub(super) fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// A length of bytes or elements; `None` is null.
    fn length(&mut self, length: Option<usize>) {
        if self.flexible {
            self.uvarint(length.map_or(0, |n| n as u32 + 1));
        } else {
            length.map_or(-1, |n| n as i32).put(self);
        }
    }

    fn text(&mut self, text: Option<&str>) {
        let text = text.map(shorten);
        if self.flexible {
            self.length(text.map(str::len));
        } else {
            text.map_or(-1, |text| text.len() as i16).put(self);
        }
        self.out
            .extend_from_slice(text.unwrap_or_default().as_bytes());
    }

    /// Writes the tagged fields: those that the schema names, in ascending order, and the others.
    pub(super) fn tags(&mut self, known: Vec<(u32, Bytes)>, unknown: &Tags) {
        let mut all = known;
        all.extend(unknown.0.iter().cloned());
        all.sort_by_key(|(tag, _)| *tag);
        all.dedup_by_key(|(tag, _)| *tag);
        self.uvarint(all.len() as u32);
        for (tag, content) in all {
            self.uvarint(tag);
            self.uvarint(content.len() as u32);
            self.out.extend_from_slice(&content);
        }
    }

    /// The content of one tagged field.
    pub(super) fn tag_content(&self, value: &impl Wire) -> Bytes {
        let mut inner = Self {
            version: self.version,
            flexible: self.flexible,
            ..Self::new()
        };
        value.put(&mut inner);
        inner.finish()
    }
}

/// Strings of more bytes than Kafka's schemas take do not come from requests; one is cut rather
/// than written so that nobody could read it.
fn shorten(text: &str) -> &str {
    let mut end = text.len().min(i16::MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A type of Kafka's schemas.
pub(super) trait Wire: Sized {
    fn put(&self, to: &mut Encoder);

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError>;

    /// Whether a tagged field of this value is left out, its default being `default`.
    fn is_left_out(&self, default: &Self) -> bool
    where
        Self: PartialEq,
    {
        self == default
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Wire for $number {
            fn put(&self, to: &mut Encoder) {
                to.out.extend_from_slice(&self.to_be_bytes());
            }

            fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
                from.array().map(Self::from_be_bytes)
            }
        }
    )*};
}

numbers! { i8 i16 u16 i32 i64 f64 }

impl Wire for bool {
    fn put(&self, to: &mut Encoder) {
        i8::from(*self).put(to);
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        Ok(i8::get(from)? != 0)
    }
}

impl Wire for Uuid {
    fn put(&self, to: &mut Encoder) {
        to.out.extend_from_slice(self.as_bytes());
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        from.array().map(Self::from_bytes)
    }
}

impl Wire for Option<String> {
    fn put(&self, to: &mut Encoder) {
        to.text(self.as_deref());
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        let text = from.reader.string(from.flexible)?;
        Ok(text.map(str::to_owned))
    }
}

impl Wire for String {
    fn put(&self, to: &mut Encoder) {
        to.text(Some(self));
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        Option::<Self>::get(from)?.ok_or(Malformed::Null.into())
    }
}

impl Wire for Bytes {
    fn put(&self, to: &mut Encoder) {
        to.length(Some(self.len()));
        to.out.extend_from_slice(self);
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        let blob = from.reader.blob(from.flexible)?;
        blob.map(Self::copy_from_slice)
            .ok_or(Malformed::Null.into())
    }
}

impl<T: Wire> Wire for Option<Vec<T>> {
    fn put(&self, to: &mut Encoder) {
        to.length(self.as_ref().map(Vec::len));
        for element in self.iter().flatten() {
            element.put(to);
        }
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        let Some(count) = from.reader.count(from.flexible)? else {
            return Ok(None);
        };
        // Every element takes a byte at least. No memory is reserved by the count.
        if count > from.reader.remaining() {
            return Err(Malformed::Truncated.into());
        }
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(T::get(from)?);
        }
        Ok(Some(elements))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, to: &mut Encoder) {
        to.length(Some(self.len()));
        for element in self {
            element.put(to);
        }
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        Option::<Self>::get(from)?.ok_or(Malformed::Null.into())
    }
}
