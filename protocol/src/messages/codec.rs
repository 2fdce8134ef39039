//! How our own messages are put on the wire: one trait for field types, one macro for structs.
//!
//! A message declares its fields once, in wire order; the macro derives the struct, its defaults and
//! kafka-protocol's traits. A field that the encoded version lacks is left out, whatever it holds.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use kafka_protocol::messages::{BrokerId, GroupId, TopicName};
use kafka_protocol::protocol::StrBytes;
pub(super) use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use uuid::Uuid;

/// The encoding in force: which version, and whether lengths are compact and tags follow structs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire {
    pub(super) version: i16,
    pub(super) flexible: bool,
}

/// A type that knows its encoding under every [`Wire`].
pub(super) trait Field: Sized {
    fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()>;
    fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self>;
    fn size(&self, wire: Wire) -> usize;
}

macro_rules! fixed_width {
    ($($t:ty: $put:ident $get:ident)*) => {$(
        impl Field for $t {
            fn put<B: ByteBufMut>(&self, buf: &mut B, _: Wire) -> Result<()> {
                buf.$put(*self);
                Ok(())
            }
            fn get<B: ByteBuf>(buf: &mut B, _: Wire) -> Result<Self> {
                Ok(buf.$get()?)
            }
            fn size(&self, _: Wire) -> usize {
                size_of::<Self>()
            }
        }
    )*};
}

fixed_width! {
    i8: put_i8 try_get_i8
    i16: put_i16 try_get_i16
    i32: put_i32 try_get_i32
    i64: put_i64 try_get_i64
    f64: put_f64 try_get_f64
}

impl Field for bool {
    fn put<B: ByteBufMut>(&self, buf: &mut B, _: Wire) -> Result<()> {
        buf.put_u8(u8::from(*self));
        Ok(())
    }
    fn get<B: ByteBuf>(buf: &mut B, _: Wire) -> Result<Self> {
        Ok(buf.try_get_u8()? != 0)
    }
    fn size(&self, _: Wire) -> usize {
        1
    }
}

impl Field for Uuid {
    fn put<B: ByteBufMut>(&self, buf: &mut B, _: Wire) -> Result<()> {
        buf.put_slice(self.as_bytes());
        Ok(())
    }
    fn get<B: ByteBuf>(buf: &mut B, _: Wire) -> Result<Self> {
        let mut id = [0; 16];
        buf.try_copy_to_slice(&mut id)?;
        Ok(Self::from_bytes(id))
    }
    fn size(&self, _: Wire) -> usize {
        16
    }
}

impl Field for BrokerId {
    fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()> {
        self.0.put(buf, wire)
    }
    fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self> {
        i32::get(buf, wire).map(Self)
    }
    fn size(&self, _: Wire) -> usize {
        4
    }
}

/// Strings: a 16-bit length, or a compact one, before UTF-8.
macro_rules! string {
    ($($t:ty: |$value:ident| $bytes:expr, $from:expr;)*) => {$(
        impl Field for Option<$t> {
            fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()> {
                let bytes = self.as_ref().map(|$value| $bytes);
                ensure!(bytes.is_none_or(|b| b.len() <= MAX_STRING), "string too long");
                put_bytes(buf, bytes, wire.flexible, |buf, n| buf.put_i16(n as i16));
                Ok(())
            }
            fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self> {
                let length = get_length(buf, wire.flexible, |buf| Ok(buf.try_get_i16()?.into()))?;
                length.map(|n| Ok($from(StrBytes::from_utf8(buf.try_get_bytes(n)?)?))).transpose()
            }
            fn size(&self, wire: Wire) -> usize {
                let length = self.as_ref().map(|$value| $bytes.len());
                size_of_length(length, wire.flexible, 2) + length.unwrap_or(0)
            }
        }
        impl Field for $t {
            fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()> {
                let $value = self;
                let bytes: &[u8] = $bytes;
                ensure!(bytes.len() <= MAX_STRING, "string too long");
                put_bytes(buf, Some(bytes), wire.flexible, |buf, n| buf.put_i16(n as i16));
                Ok(())
            }
            fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self> {
                not_null(Option::<Self>::get(buf, wire)?)
            }
            fn size(&self, wire: Wire) -> usize {
                let $value = self;
                let length = $bytes.len();
                size_of_length(Some(length), wire.flexible, 2) + length
            }
        }
    )*};
}

/// The longest string that Kafka reads or writes, in bytes.
const MAX_STRING: usize = i16::MAX as usize;

string! {
    StrBytes: |s| s.as_bytes(), std::convert::identity;
    GroupId: |s| s.0.as_bytes(), GroupId;
    TopicName: |s| s.0.as_bytes(), TopicName;
}

impl Field for Option<Bytes> {
    fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()> {
        ensure!(
            self.as_ref().is_none_or(|b| i32::try_from(b.len()).is_ok()),
            "bytes too long"
        );
        put_bytes(buf, self.as_deref(), wire.flexible, B::put_i32);
        Ok(())
    }
    fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self> {
        let length = get_length(buf, wire.flexible, |buf| Ok(buf.try_get_i32()?))?;
        Ok(length.map(|n| buf.try_get_bytes(n)).transpose()?)
    }
    fn size(&self, wire: Wire) -> usize {
        let length = self.as_ref().map(Bytes::len);
        size_of_length(length, wire.flexible, 4) + length.unwrap_or(0)
    }
}

impl<T: Field> Field for Option<Vec<T>> {
    fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()> {
        let Some(items) = self else {
            put_length(buf, None, wire.flexible, B::put_i32);
            return Ok(());
        };
        items.put(buf, wire)
    }
    fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self> {
        let Some(count) = get_length(buf, wire.flexible, |buf| Ok(buf.try_get_i32()?))? else {
            return Ok(None);
        };
        // Every element takes at least a byte: what is left bounds what may be reserved.
        ensure!(
            count <= buf.remaining(),
            "{count} elements in {} bytes",
            buf.remaining()
        );
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(T::get(buf, wire)?);
        }
        Ok(Some(items))
    }
    fn size(&self, wire: Wire) -> usize {
        match self {
            Some(items) => items.size(wire),
            None => size_of_length(None, wire.flexible, 4),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn put<B: ByteBufMut>(&self, buf: &mut B, wire: Wire) -> Result<()> {
        ensure!(i32::try_from(self.len()).is_ok(), "array too long");
        put_length(buf, Some(self.len()), wire.flexible, B::put_i32);
        self.iter().try_for_each(|item| item.put(buf, wire))
    }
    fn get<B: ByteBuf>(buf: &mut B, wire: Wire) -> Result<Self> {
        not_null(Option::<Self>::get(buf, wire)?)
    }
    fn size(&self, wire: Wire) -> usize {
        size_of_length(Some(self.len()), wire.flexible, 4)
            + self.iter().map(|item| item.size(wire)).sum::<usize>()
    }
}

fn not_null<T>(value: Option<T>) -> Result<T> {
    match value {
        Some(value) => Ok(value),
        None => bail!("null in a field that is never null"),
    }
}

/// Writes a length: `wide` writes the plain form (-1 = null), else `length + 1` as a varint.
fn put_length<B: ByteBufMut>(
    buf: &mut B,
    length: Option<usize>,
    flexible: bool,
    wide: impl FnOnce(&mut B, i32),
) {
    if flexible {
        put_uvarint(buf, length.map_or(0, |n| n as u32 + 1));
    } else {
        wide(buf, length.map_or(-1, |n| n as i32));
    }
}

fn put_bytes<B: ByteBufMut>(
    buf: &mut B,
    bytes: Option<&[u8]>,
    flexible: bool,
    wide: impl FnOnce(&mut B, i32),
) {
    put_length(buf, bytes.map(<[u8]>::len), flexible, wide);
    buf.put_slice(bytes.unwrap_or_default());
}

/// Reads a length; `None` is null.
fn get_length<B: ByteBuf>(
    buf: &mut B,
    flexible: bool,
    wide: impl FnOnce(&mut B) -> Result<i32>,
) -> Result<Option<usize>> {
    if flexible {
        return Ok((get_uvarint(buf)? as usize).checked_sub(1));
    }
    match wide(buf)? {
        -1 => Ok(None),
        n => Ok(Some(usize::try_from(n)?)),
    }
}

fn size_of_length(length: Option<usize>, flexible: bool, wide: usize) -> usize {
    if flexible {
        uvarint_size(length.map_or(0, |n| n as u32 + 1))
    } else {
        wide
    }
}

pub(super) fn put_uvarint<B: ByteBufMut>(buf: &mut B, mut value: u32) {
    while value >= 0x80 {
        buf.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    buf.put_u8(value as u8);
}

pub(super) fn get_uvarint<B: ByteBuf>(buf: &mut B) -> Result<u32> {
    let mut value = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = buf.try_get_u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(u32::try_from(value)?);
        }
    }
    bail!("varint of more than five bytes")
}

pub(super) const fn uvarint_size(value: u32) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        0x20_0000..=0xfff_ffff => 4,
        _ => 5,
    }
}

/// Writes a struct's tag section: the known tags that are set, already encoded, then the unknown ones.
pub(super) fn put_tags<B: ByteBufMut>(
    buf: &mut B,
    known: &[(u32, Vec<u8>)],
    unknown: &BTreeMap<i32, Bytes>,
) {
    put_uvarint(buf, (known.len() + unknown.len()) as u32);
    let known = known.iter().map(|(tag, value)| (*tag, value.as_slice()));
    for (tag, value) in known.chain(unknown.iter().map(|(tag, value)| (*tag as u32, &value[..]))) {
        put_uvarint(buf, tag);
        put_uvarint(buf, value.len() as u32);
        buf.put_slice(value);
    }
}

/// Size of the same tag section; `known` gives tag and size of value of each known tag that is set.
pub(super) fn size_of_tags(known: &[(u32, usize)], unknown: &BTreeMap<i32, Bytes>) -> usize {
    let one = |(tag, size): (u32, usize)| uvarint_size(tag) + uvarint_size(size as u32) + size;
    uvarint_size((known.len() + unknown.len()) as u32)
        + known.iter().copied().map(one).sum::<usize>()
        + unknown
            .iter()
            .map(|(&tag, value)| one((tag as u32, value.len())))
            .sum::<usize>()
}

/// Declares the structs of one message, the message itself among them.
///
/// `pub field: Type = default, since V, until W;` is on the wire from version V (else from the first
/// one) to version W (else to the last one);
/// a `tagged` block holds the fields that travel as tags of flexible versions when not at default.
macro_rules! messages {
    (
        versions $min:literal..=$max:literal, flexible $flexible:literal;
        $(
            $(#[$meta:meta])*
            pub struct $name:ident {
                $($(#[$fmeta:meta])* pub $field:ident: $type:ty = $default:expr $(, since $since:literal)? $(, until $until:literal)?;)*
                $(tagged {
                    $($(#[$tmeta:meta])* $tag:literal => pub $tfield:ident: $ttype:ty = $tdefault:expr;)*
                })?
            }
        )*
    ) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $type,)*
            $($($(#[$tmeta])* pub $tfield: $ttype,)*)?
            /// Tagged fields that this version does not know, by tag, as they came.
            pub unknown_tagged_fields: std::collections::BTreeMap<i32, bytes::Bytes>,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($($tfield: $tdefault,)*)?
                    unknown_tagged_fields: std::collections::BTreeMap::new(),
                }
            }
        }

        impl $crate::messages::codec::Field for $name {
            fn put<B: $crate::messages::codec::ByteBufMut>(
                &self,
                buf: &mut B,
                wire: $crate::messages::codec::Wire,
            ) -> anyhow::Result<()> {
                use $crate::messages::codec::Field;
                $(if true $(&& wire.version >= $since)? $(&& wire.version <= $until)? {
                    Field::put(&self.$field, buf, wire)?;
                })*
                if wire.flexible {
                    #[allow(unused_mut, reason = "most structs have no known tag")]
                    let mut known: Vec<(u32, Vec<u8>)> = Vec::new();
                    $($(if self.$tfield != $tdefault {
                        let mut value = Vec::new();
                        Field::put(&self.$tfield, &mut value, wire)?;
                        known.push(($tag, value));
                    })*)?
                    $crate::messages::codec::put_tags(buf, &known, &self.unknown_tagged_fields);
                }
                Ok(())
            }

            fn get<B: $crate::messages::codec::ByteBuf>(
                buf: &mut B,
                wire: $crate::messages::codec::Wire,
            ) -> anyhow::Result<Self> {
                use $crate::messages::codec::{Field, get_uvarint};
                let mut message = Self::default();
                $(if true $(&& wire.version >= $since)? $(&& wire.version <= $until)? {
                    message.$field = Field::get(buf, wire)?;
                })*
                if wire.flexible {
                    for _ in 0..get_uvarint(buf)? {
                        let tag = get_uvarint(buf)?;
                        let size = get_uvarint(buf)? as usize;
                        #[allow(unused_mut, reason = "only known tags read further")]
                        let mut value = buf.try_get_bytes(size)?;
                        match tag {
                            $($($tag => message.$tfield = Field::get(&mut value, wire)?,)*)?
                            _ => {
                                message.unknown_tagged_fields.insert(tag as i32, value);
                            }
                        }
                    }
                }
                Ok(message)
            }

            fn size(&self, wire: $crate::messages::codec::Wire) -> usize {
                use $crate::messages::codec::Field;
                #[allow(unused_mut, reason = "a struct may have no plain field")]
                let mut size = 0;
                $(if true $(&& wire.version >= $since)? $(&& wire.version <= $until)? {
                    size += Field::size(&self.$field, wire);
                })*
                if wire.flexible {
                    #[allow(unused_mut, reason = "most structs have no known tag")]
                    let mut known: Vec<(u32, usize)> = Vec::new();
                    $($(if self.$tfield != $tdefault {
                        known.push(($tag, Field::size(&self.$tfield, wire)));
                    })*)?
                    size += $crate::messages::codec::size_of_tags(
                        &known,
                        &self.unknown_tagged_fields,
                    );
                }
                size
            }
        }

        impl $name {
            /// The encoding of a version, or an error for a version that the message lacks.
            fn wire(version: i16) -> anyhow::Result<$crate::messages::codec::Wire> {
                anyhow::ensure!(
                    ($min..=$max).contains(&version),
                    concat!(stringify!($name), " has no version {}"),
                    version
                );
                Ok($crate::messages::codec::Wire { version, flexible: version >= $flexible })
            }
        }

        impl $crate::Encodable for $name {
            fn encode<B: $crate::messages::codec::ByteBufMut>(
                &self,
                buf: &mut B,
                version: i16,
            ) -> anyhow::Result<()> {
                $crate::messages::codec::Field::put(self, buf, Self::wire(version)?)
            }
            fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
                Ok($crate::messages::codec::Field::size(self, Self::wire(version)?))
            }
        }

        impl $crate::Decodable for $name {
            fn decode<B: $crate::messages::codec::ByteBuf>(
                buf: &mut B,
                version: i16,
            ) -> anyhow::Result<Self> {
                $crate::messages::codec::Field::get(buf, Self::wire(version)?)
            }
        }

        impl $crate::Message for $name {
            const VERSIONS: $crate::VersionRange = $crate::VersionRange { min: $min, max: $max };
            const DEPRECATED_VERSIONS: Option<$crate::VersionRange> = None;
        }
    )*};
}

/// Ties a request to its key and its response.
macro_rules! request {
    ($request:ident = $key:path => $response:ty) => {
        impl $crate::Request for $request {
            const KEY: i16 = $key;
            type Response = $response;
        }

        impl $crate::HeaderVersion for $request {
            fn header_version(version: i16) -> i16 {
                $crate::frame::request_header_version($key, version)
            }
        }
    };
}

/// Gives a response the header version of its key.
macro_rules! response {
    ($response:ident = $key:path) => {
        impl $crate::HeaderVersion for $response {
            fn header_version(version: i16) -> i16 {
                $crate::frame::response_header_version($key, version)
            }
        }
    };
}

pub(super) use {messages, request, response};
