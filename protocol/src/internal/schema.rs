//! How a schema is written down here: one macro for a struct, one for the records of a topic.

/// A struct of a schema.
///
/// Fields are in the order of the wire. `@ A..=B` before a field, or a tag, says in which versions
/// it exists, where these are not all. `tags` are the tagged fields, by ascending tag. Each struct
/// gets a field for tags that its schema does not name.
macro_rules! schema {
    (
        $(#[$attr:meta])*
        $name:ident {
            $( $(#[$fattr:meta])* $(@ $range:expr;)? $field:ident: $ty:ty $(= $default:expr)?, )*
        }
        $( tags {
            $( $(#[$tattr:meta])* $tag:literal $(@ $trange:expr;)? $tfield:ident: $tty:ty $(= $tdefault:expr)?, )*
        } )?
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[$fattr])* pub $field: $ty, )*
            $( $( $(#[$tattr])* pub $tfield: $tty, )* )?
            /// Tagged fields that the schema does not name.
            pub tags: $crate::internal::Tags,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: schema!(@default $($default)?), )*
                    $( $( $tfield: schema!(@default $($tdefault)?), )* )?
                    tags: $crate::internal::Tags::default(),
                }
            }
        }

        impl $crate::internal::wire::Wire for $name {
            fn put(&self, to: &mut $crate::internal::wire::Encoder) {
                $( if schema!(@exists to.version $($range)?) {
                    self.$field.put(to);
                } )*
                if to.flexible {
                    #[allow(unused_mut, reason = "a schema without tagged fields")]
                    let mut known = Vec::new();
                    $( $(
                        let default: $tty = schema!(@default $($tdefault)?);
                        if schema!(@exists to.version $($trange)?) && !self.$tfield.is_left_out(&default) {
                            known.push(($tag, to.tag_content(&self.$tfield)));
                        }
                    )* )?
                    to.tags(known, &self.tags);
                }
            }

            fn get(
                from: &mut $crate::internal::wire::Decoder<'_>,
            ) -> Result<Self, $crate::internal::InternalError> {
                let mut this = Self::default();
                $( if schema!(@exists from.version $($range)?) {
                    this.$field = $crate::internal::wire::Wire::get(from)?;
                } )*
                if from.flexible {
                    #[allow(unused_variables, reason = "a schema without tagged fields")]
                    let tags = from.tags(|tag, from| match tag {
                        $( $(
                            $tag if schema!(@exists from.version $($trange)?) => {
                                this.$tfield = $crate::internal::wire::Wire::get(from)?;
                                Ok(true)
                            }
                        )* )?
                        _ => Ok(false),
                    })?;
                    this.tags = tags;
                }
                Ok(this)
            }
        }

        #[cfg(test)]
        impl $crate::internal::tests::Sample for $name {
            fn sample(from: &mut $crate::internal::tests::Choices) -> Self {
                Self {
                    $( $field: $crate::internal::tests::Sample::sample(from), )*
                    $( $( $tfield: $crate::internal::tests::Sample::sample(from), )* )?
                    tags: $crate::internal::tests::Sample::sample(from),
                }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@exists $version:ident.version) => { true };
    (@exists $at:ident.version $range:expr) => { ($range).contains(&$at.version) };
}

/// A key: a struct without versions and tagged fields.
macro_rules! key {
    (
        $(#[$attr:meta])*
        $name:ident { $( $(#[$fattr:meta])* $field:ident: $ty:ty, )* }
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            $( $(#[$fattr])* pub $field: $ty, )*
        }

        impl $crate::internal::wire::Wire for $name {
            fn put(&self, to: &mut $crate::internal::wire::Encoder) {
                $( self.$field.put(to); )*
            }

            fn get(
                from: &mut $crate::internal::wire::Decoder<'_>,
            ) -> Result<Self, $crate::internal::InternalError> {
                $( let $field = $crate::internal::wire::Wire::get(from)?; )*
                Ok(Self { $($field),* })
            }
        }

        #[cfg(test)]
        impl $crate::internal::tests::Sample for $name {
            fn sample(from: &mut $crate::internal::tests::Choices) -> Self {
                Self { $( $field: $crate::internal::tests::Sample::sample(from), )* }
            }
        }
    };
}

/// The records of a coordinator's topic: key type, name, key, value, and the value's versions:
/// newest, first flexible one, the one that is written, and an older one for values that need it.
macro_rules! keyed_records {
    (
        $(#[$attr:meta])*
        $name:ident {
            $( $(#[$vattr:meta])*
               $type:literal $variant:ident($key:ident, $value:ident)
               newest $newest:literal flexible $flexible:literal writes $writes:literal
               $(or $older:literal if $needs:path)?, )*
        }
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $( $(#[$vattr])* $variant($key, Option<$value>), )*
        }

        impl $name {
            /// The record type that the key begins with.
            pub fn record_type(&self) -> i16 {
                match self { $( Self::$variant(..) => $type, )* }
            }

            /// The name that Kafka's schemas have for the record.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(..) => stringify!($variant), )* }
            }

            /// Whether the record deletes what its key names.
            pub fn is_tombstone(&self) -> bool {
                match self { $( Self::$variant(_, value) => value.is_none(), )* }
            }

            /// Key and value of the record, the value null for a tombstone. The value is written in
            /// the version that Kafka 4.4 writes.
            pub fn encode(&self) -> (bytes::Bytes, Option<bytes::Bytes>) {
                use $crate::internal::{encode_key, encode_value};
                match self { $(
                    Self::$variant(key, value) => (
                        encode_key($type, key),
                        value.as_ref().map(|value| {
                            let version = $writes;
                            $(let version = if $needs(value) { $older } else { version };)?
                            encode_value(value, version, version >= $flexible)
                        }),
                    ),
                )* }
            }

            /// Reads a record. `UnknownType` may be passed over by a reader that wants to know no
            /// more than this table.
            pub fn decode(
                key: &[u8],
                value: Option<&[u8]>,
            ) -> Result<Self, $crate::internal::InternalError> {
                use $crate::internal::{InternalError, decode_value, split_version};
                let (record_type, key) = split_version(key)?;
                match record_type {
                    $( $type => {
                        let key = $crate::internal::wire::Decoder::new(key).whole()?;
                        let value = value
                            .map(|value| decode_value(stringify!($variant), value, $newest, $flexible))
                            .transpose()?;
                        Ok(Self::$variant(key, value))
                    } )*
                    unknown => Err(InternalError::UnknownType(unknown.into())),
                }
            }

            /// One record of each type.
            #[cfg(test)]
            pub(super) fn samples(from: &mut $crate::internal::tests::Choices) -> Vec<Self> {
                use $crate::internal::tests::Sample;
                vec![$( Self::$variant(Sample::sample(from), Sample::sample(from)), )*]
            }

            /// The value in every version that can be read.
            #[cfg(test)]
            pub(super) fn in_every_version(&self) -> Vec<bytes::Bytes> {
                use $crate::internal::encode_value;
                match self { $(
                    Self::$variant(_, None) => Vec::new(),
                    Self::$variant(_, Some(value)) => (0..=$newest)
                        .map(|version| encode_value(value, version, version >= $flexible))
                        .collect(),
                )* }
            }
        }
    };
}

pub(super) use {key, keyed_records, schema};
