//! The codecs of record batches: gzip, snappy, LZ4 and Zstandard, in the framings that Kafka's
//! clients write (KIP-98, KIP-57, KIP-110) and with the levels of KIP-390.
//!
//! Compressed bytes are foreign bytes. [`Decoder`] hands out what it decompresses piece by piece,
//! so that a batch can be checked without holding it; [`decompress`] collects up to a limit. Both
//! reserve memory only for bytes that are there, or for a codec's own bounded window. Data must end
//! where the compressed form ends: bytes behind it are an error (Kafka lets some of them pass).

mod lz4;
mod snappy;

use std::fmt;
use std::io::{self, Read, Write};

/// A codec, as bits 0 to 2 of a batch's attributes name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Records as they are.
    None,
    /// Gzip, RFC 1952, one or more members.
    Gzip,
    /// Snappy, in the framing of snappy-java ("xerial") or one raw block.
    Snappy,
    /// One LZ4 frame of independent blocks.
    Lz4,
    /// Zstandard, RFC 8878, one or more frames.
    Zstd,
}

impl Compression {
    /// Every codec, in the order of their attribute values.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec of an attribute value; `None` for 5 and above.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
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

    /// The codec's name, as a producer's `compression.type` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec that a topic's or a producer's `compression.type` names: `uncompressed` is `none`.
    /// `None` for `producer` and anything unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "uncompressed" {
            return Some(Self::None);
        }
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why compressed bytes could not be read, or bytes not be compressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The bytes are not what the codec writes.
    #[error("the {codec} data cannot be decompressed: {detail}")]
    Corrupt {
        /// The codec that the bytes should be of.
        codec: Compression,
        /// What is wrong with them.
        detail: String,
    },
    /// More comes out than the caller allows.
    #[error("the {codec} data decompresses to more than {limit} bytes")]
    TooLarge {
        /// The codec.
        codec: Compression,
        /// The limit in bytes.
        limit: usize,
    },
    /// The codec refused to compress.
    #[error("the bytes cannot be compressed with {codec}: {detail}")]
    Compress {
        /// The codec.
        codec: Compression,
        /// What it said.
        detail: String,
    },
}

/// Decompresses piece by piece, through [`Read`]. Its errors are of kind `InvalidData` or
/// `UnexpectedEof`; it reads from memory, so nothing else can fail.
pub struct Decoder<'a> {
    codec: Compression,
    inner: Inner<'a>,
}

enum Inner<'a> {
    Plain(&'a [u8]),
    Gzip(Box<flate2::bufread::MultiGzDecoder<&'a [u8]>>),
    Snappy(snappy::Reader<'a>),
    Lz4(Box<lz4::Reader<'a>>),
    Zstd(zstd::stream::read::Decoder<'static, &'a [u8]>),
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("codec", &self.codec)
            .finish_non_exhaustive()
    }
}

impl<'a> Decoder<'a> {
    /// A decoder of `input`, all of which must belong to the compressed data.
    pub fn new(codec: Compression, input: &'a [u8]) -> Result<Self, CompressionError> {
        let inner = match codec {
            Compression::None => Inner::Plain(input),
            Compression::Gzip => Inner::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(input))),
            Compression::Snappy => Inner::Snappy(snappy::Reader::new(input)),
            Compression::Lz4 => lz4::Reader::new(input)
                .map(|reader| Inner::Lz4(Box::new(reader)))
                .map_err(|error| corrupt(codec, &error))?,
            Compression::Zstd => zstd::stream::read::Decoder::with_buffer(input)
                .map(Inner::Zstd)
                .map_err(|error| corrupt(codec, &error))?,
        };
        Ok(Self { codec, inner })
    }

    /// Fills `buf` as far as there is data; less than asked for means the end.
    pub(crate) fn fill(&mut self, buf: &mut [u8]) -> Result<usize, CompressionError> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(corrupt(self.codec, &error)),
            }
        }
        Ok(filled)
    }

    /// The error of data that gives more than `limit` bytes.
    pub(crate) fn over(&self, limit: usize) -> CompressionError {
        CompressionError::TooLarge {
            codec: self.codec,
            limit,
        }
    }
}

impl Read for Decoder<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Plain(input) => input.read(buf),
            Inner::Gzip(reader) => reader.read(buf),
            Inner::Snappy(reader) => reader.read(buf),
            Inner::Lz4(reader) => reader.read(buf),
            Inner::Zstd(reader) => reader.read(buf),
        }
    }
}

fn corrupt(codec: Compression, error: &io::Error) -> CompressionError {
    CompressionError::Corrupt {
        codec,
        detail: error.to_string(),
    }
}

fn invalid(detail: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail)
}

/// Decompresses all of `input`, into at most `limit` bytes.
pub fn decompress(
    codec: Compression,
    input: &[u8],
    limit: usize,
) -> Result<Vec<u8>, CompressionError> {
    let mut output = Vec::new();
    Decoder::new(codec, input)?
        .take((limit as u64).saturating_add(1))
        .read_to_end(&mut output)
        .map_err(|error| corrupt(codec, &error))?;
    if output.len() > limit {
        return Err(CompressionError::TooLarge { codec, limit });
    }
    Ok(output)
}

/// Compresses `input`.
///
/// `level` means what `compression.gzip.level` (1 to 9, default 6) and `compression.zstd.level`
/// (up to 22, default 3) mean, and is brought into that range; `compression.lz4.level` is accepted
/// without effect (there is one way to compress), and snappy has no levels.
pub fn compress(
    codec: Compression,
    level: Option<i32>,
    input: &[u8],
) -> Result<Vec<u8>, CompressionError> {
    let result = match codec {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => gzip(level, input),
        Compression::Snappy => snappy::compress(input),
        Compression::Lz4 => lz4::compress(input),
        Compression::Zstd => {
            let range = zstd::compression_level_range();
            let level = level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
            zstd::bulk::compress(input, level.clamp(*range.start(), *range.end()))
        }
    };
    result.map_err(|error| CompressionError::Compress {
        codec,
        detail: error.to_string(),
    })
}

fn gzip(level: Option<i32>, input: &[u8]) -> io::Result<Vec<u8>> {
    let level = level.filter(|level| *level > 0).unwrap_or(6).min(9);
    let mut encoder =
        flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level as u32));
    encoder.write_all(input)?;
    encoder.finish()
}

#[cfg(test)]
mod tests;
