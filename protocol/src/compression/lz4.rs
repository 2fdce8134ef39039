//! LZ4 frames as Kafka's clients write and read them: one frame of independent blocks without a
//! dictionary, its header's checksum the standard's (KIP-57).

use std::io::{self, Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::invalid;

const MAGIC: &[u8; 4] = b"\x04\x22\x4d\x18";
const UNCOMPRESSED: u32 = 1 << 31;

/// Reads one frame whose outline was found whole.
pub(super) struct Reader<'a> {
    inner: FrameDecoder<&'a [u8]>,
    ended: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> io::Result<Self> {
        check_outline(input)?;
        Ok(Self {
            inner: FrameDecoder::new(input),
            ended: false,
        })
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.ended || buf.is_empty() {
            return Ok(0);
        }
        let n = self.inner.read(buf)?;
        if n == 0 {
            self.ended = true;
            if !self.inner.get_ref().is_empty() {
                return Err(invalid("a block of the frame holds no bytes"));
            }
        }
        Ok(n)
    }
}

/// Walks the frame's header and block lengths: they must be what Kafka's readers understand, and
/// end with the input. The decoder by itself takes a frame without an end, several frames, linked
/// blocks and the legacy format.
fn check_outline(input: &[u8]) -> io::Result<()> {
    let Some(rest) = input.strip_prefix(MAGIC) else {
        return Err(invalid("it does not begin with a frame"));
    };
    let Some((&[flags, _block_size], rest)) = rest.split_first_chunk() else {
        return Err(invalid("the frame header is cut short"));
    };
    if flags & 0xc0 != 0x40 {
        return Err(invalid("the frame is of an unknown version"));
    }
    if flags & 0x20 == 0 {
        return Err(invalid(
            "the frame's blocks depend on each other, which no Kafka reader takes",
        ));
    }
    if flags & 0x01 != 0 {
        return Err(invalid("the frame needs a dictionary"));
    }
    let block_checksum = if flags & 0x10 == 0 { 0 } else { 4 };
    let content_size = if flags & 0x08 == 0 { 0 } else { 8 };
    let content_checksum = if flags & 0x04 == 0 { 0 } else { 4 };
    let mut rest = skip(rest, content_size + 1)?;
    loop {
        let Some((length, after)) = rest.split_first_chunk::<4>() else {
            return Err(invalid("the frame has no end"));
        };
        let length = u32::from_le_bytes(*length);
        rest = after;
        if length == 0 {
            break;
        }
        rest = skip(rest, (length & !UNCOMPRESSED) as usize + block_checksum)?;
    }
    if skip(rest, content_checksum)?.is_empty() {
        Ok(())
    } else {
        Err(invalid("bytes follow the frame"))
    }
}

fn skip(input: &[u8], n: usize) -> io::Result<&[u8]> {
    input
        .get(n..)
        .ok_or_else(|| invalid("the frame is cut short"))
}

/// Compresses into one frame of 64 KiB blocks, as Java's producer does.
pub(super) fn compress(input: &[u8]) -> io::Result<Vec<u8>> {
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(input)?;
    // An encoder that was given nothing writes nothing, not even the frame.
    if input.is_empty() {
        encoder.flush()?;
    }
    encoder.finish().map_err(io::Error::from)
}
