//! Why a record batch was refused.

/// One reason why bytes are not an acceptable record batch.
///
/// Each variant names the Kafka error that a producer of such a batch gets from Apache Kafka 4.4.0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Fewer bytes than a batch header, or than the batch says it has. `CORRUPT_MESSAGE` (2).
    #[error("the record batch is cut short: {needed} bytes are needed, {have} are here")]
    Truncated {
        /// Bytes that the header, or the whole batch, takes.
        needed: usize,
        /// Bytes that were given.
        have: usize,
    },
    /// A batch length that cannot hold the header's own fields. `CORRUPT_MESSAGE` (2).
    #[error("the record batch declares a length of {0} bytes, less than its own header takes")]
    BadLength(i32),
    /// A message format other than 2. Produce answers `INVALID_RECORD` (87) for formats 0 and 1.
    #[error("record batches must be of message format 2, this one is of format {0}")]
    UnsupportedMagic(i8),
    /// The checksum does not match the bytes. `CORRUPT_MESSAGE` (2).
    #[error(
        "the record batch fails its checksum: it says {stored:#010x}, its bytes give {computed:#010x}"
    )]
    Checksum {
        /// The checksum that the batch carries.
        stored: u32,
        /// CRC-32C of the bytes from the attributes on.
        computed: u32,
    },
    /// An attribute value that names no known codec (5 to 7). `CORRUPT_MESSAGE` (2).
    #[error("the record batch names an unknown compression codec, {0}")]
    UnknownCodec(u8),
}
