//! What the rows of the table are made of: fields in wire order, each a primitive, a struct or a list.

/// The shape of one request: the versions that Kafka 4.4 has and the fields of all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) key: i16,
    pub(crate) min: i16,
    pub(crate) max: i16,
    pub(crate) fields: &'static [Field],
}

/// One field of a struct.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) kind: Kind,
    /// First and last version that has the field.
    pub(crate) since: i16,
    pub(crate) until: i16,
    /// First version in which it may be null.
    pub(crate) null_since: i16,
    /// Its number, if it travels as a tagged field.
    pub(crate) tag: Option<u32>,
}

/// How a field looks on the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// So many bytes.
    Fixed(usize),
    /// A length and UTF-8.
    Str,
    /// A length and opaque bytes: records, tokens, metadata of other protocols.
    Blob,
    /// A struct in place; with a presence byte in front where it may be null.
    Nested(&'static [Field]),
    /// A count and so many fixed-width elements.
    FixedList(usize),
    /// A count and strings.
    StrList,
    /// A count and structs, each of which takes `memory` bytes once decoded.
    List {
        fields: &'static [Field],
        memory: usize,
    },
}

/// No version: beyond all.
const NEVER: i16 = i16::MAX;

pub(super) const I8: Field = field(Kind::Fixed(1));
pub(super) const I16: Field = field(Kind::Fixed(2));
pub(super) const I32: Field = field(Kind::Fixed(4));
pub(super) const I64: Field = field(Kind::Fixed(8));
pub(super) const UUID: Field = field(Kind::Fixed(16));
pub(super) const STR: Field = field(Kind::Str);
pub(super) const BLOB: Field = field(Kind::Blob);
pub(super) const I8S: Field = field(Kind::FixedList(1));
pub(super) const I16S: Field = field(Kind::FixedList(2));
pub(super) const I32S: Field = field(Kind::FixedList(4));
pub(super) const I64S: Field = field(Kind::FixedList(8));
pub(super) const UUIDS: Field = field(Kind::FixedList(16));
pub(super) const STRS: Field = field(Kind::StrList);

/// A row of the table.
pub(super) const fn row(key: i16, min: i16, max: i16, fields: &'static [Field]) -> Shape {
    Shape {
        key,
        min,
        max,
        fields,
    }
}

/// A list of structs.
pub(super) const fn list(fields: &'static [Field]) -> Field {
    field(Kind::List {
        fields,
        memory: memory_of_struct(fields),
    })
}

/// A struct in place.
pub(super) const fn nested(fields: &'static [Field]) -> Field {
    field(Kind::Nested(fields))
}

const fn field(kind: Kind) -> Field {
    Field {
        kind,
        since: 0,
        until: NEVER,
        null_since: NEVER,
        tag: None,
    }
}

impl Field {
    /// On the wire from this version on.
    pub(super) const fn since(mut self, version: i16) -> Self {
        self.since = version;
        self
    }

    /// On the wire up to this version, inclusive.
    pub(super) const fn until(mut self, version: i16) -> Self {
        self.until = version;
        self
    }

    /// May be null.
    pub(super) const fn null(self) -> Self {
        self.null_since(0)
    }

    /// May be null from this version on.
    pub(super) const fn null_since(mut self, version: i16) -> Self {
        self.null_since = version;
        self
    }

    /// Travels in the tag section, under this number.
    pub(super) const fn tag(mut self, tag: u32) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Whether a version has the field.
    pub(crate) const fn in_version(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }
}

/// A decoded `Bytes` or string.
pub(super) const MEMORY_OF_STRING: usize = 32;
/// The header of a `Vec` or of a map of tagged fields.
const MEMORY_OF_VEC: usize = 24;

/// The size of a decoded struct: the fields of all versions and its map of unknown tagged fields.
const fn memory_of_struct(fields: &[Field]) -> usize {
    let mut sum = MEMORY_OF_VEC;
    let mut at = 0;
    while at < fields.len() {
        sum += match fields[at].kind {
            Kind::Fixed(width) => width,
            Kind::Str | Kind::Blob => MEMORY_OF_STRING,
            Kind::Nested(fields) => memory_of_struct(fields) + 8,
            Kind::FixedList(_) | Kind::StrList | Kind::List { .. } => MEMORY_OF_VEC,
        };
        at += 1;
    }
    sum.next_multiple_of(8)
}
