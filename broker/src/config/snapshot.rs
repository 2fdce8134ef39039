//! Typed snapshots out of resolved text: one macro, so that a field and its key stand in one line.

use std::collections::BTreeMap;

use super::value;

/// Reads one field out of the resolved text of its key; `None` in is Kafka's null.
pub(super) trait Field: Sized {
    /// The typed value, or `None` where the text does not fit the type.
    fn read(text: Option<&str>) -> Option<Self>;
}

macro_rules! number_fields {
    ($($number:ty),*) => { $(impl Field for $number {
        fn read(text: Option<&str>) -> Option<Self> {
            let number = text?.trim().parse::<i64>().ok()?;
            Some(number.clamp(Self::MIN.into(), Self::MAX.into()) as Self)
        }
    })* };
}
number_fields!(i16, i32, i64);

impl Field for f64 {
    fn read(text: Option<&str>) -> Option<Self> {
        value::double(text?)
    }
}

impl Field for bool {
    fn read(text: Option<&str>) -> Option<Self> {
        value::boolean(text?)
    }
}

impl Field for String {
    fn read(text: Option<&str>) -> Option<Self> {
        text.map(str::to_owned)
    }
}

impl Field for Vec<String> {
    fn read(text: Option<&str>) -> Option<Self> {
        text.map(value::list)
    }
}

impl Field for BTreeMap<String, i32> {
    fn read(text: Option<&str>) -> Option<Self> {
        value::host_limits(text?)
    }
}

impl<T: Field> Field for Option<T> {
    fn read(text: Option<&str>) -> Option<Self> {
        match text {
            None => Some(None),
            Some(text) => T::read(Some(text)).map(Some),
        }
    }
}

/// A snapshot whose every field comes from one key.
///
/// `resolve` asks for the text of each key and names the first whose text does not fit; with checked
/// texts, which is all that [`super::Configs`] holds, there is none.
macro_rules! snapshot {
    ($(#[$outer:meta])* pub struct $name:ident { $($(#[$inner:meta])* pub $field:ident: $kind:ty = $key:literal,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$inner])* #[doc = concat!(" (`", $key, "`)")] pub $field: $kind,)* }

        impl $name {
            /// Every field from the text of its key; `Err` is the first key whose text does not fit.
            pub(super) fn resolve(
                text: &dyn Fn(&'static str) -> Option<String>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: $crate::config::snapshot::Field::read(text($key).as_deref()).ok_or($key)?,)*
                })
            }

            /// The keys that this snapshot reads.
            #[cfg(test)]
            pub(super) const KEYS: &'static [&'static str] = &[$($key),*];
        }
    };
}
pub(super) use snapshot;
