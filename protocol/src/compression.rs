//! The codecs of record batches.

/// A codec, as bits 0 to 2 of a batch's attributes name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Records as they are.
    None,
    /// Gzip, RFC 1952.
    Gzip,
    /// Snappy, in the framing of snappy-java or raw.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl Compression {
    /// The codec of an attribute value; `None` for 5 and above.
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return None,
        })
    }

    /// The attribute value.
    pub fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The name that `compression.type` uses; `none` becomes `uncompressed` there.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}
