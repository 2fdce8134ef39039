//! Snappy as Kafka's clients write it: snappy-java's framing, or (librdkafka, Go) one raw block.
//!
//! The framing is 16 bytes of head (8 of magic, two version numbers that nobody checks), then
//! blocks: a big-endian length and that many bytes of raw snappy. A head may come again between
//! blocks, where two streams were joined.

use std::io::{self, Read};

use super::invalid;

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const HEAD: usize = 16;
/// Bytes of input in a block, snappy-java's default.
const BLOCK: usize = 32 * 1024;

/// Reads block by block. Holds one decompressed block.
pub(super) struct Reader<'a> {
    input: &'a [u8],
    framed: bool,
    block: Vec<u8>,
    taken: usize,
    failed: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let framed = input.len() >= HEAD && input.starts_with(MAGIC);
        // No data at all is no raw block either: it would have to say that its length is 0.
        Self {
            input,
            framed,
            block: Vec::new(),
            taken: 0,
            failed: input.is_empty(),
        }
    }

    fn next_block(&mut self) -> io::Result<&'a [u8]> {
        if !self.framed {
            return Ok(std::mem::take(&mut self.input));
        }
        while self.input.len() >= HEAD && self.input.starts_with(MAGIC) {
            self.input = &self.input[HEAD..];
        }
        if self.input.is_empty() {
            return Ok(&[]);
        }
        let Some((length, rest)) = self.input.split_first_chunk::<4>() else {
            return Err(invalid("a block's length is cut short"));
        };
        let length = u32::from_be_bytes(*length) as usize;
        let Some((block, rest)) = rest.split_at_checked(length) else {
            return Err(invalid("a block is cut short"));
        };
        if block.is_empty() {
            return Err(invalid("a block has no bytes"));
        }
        self.input = rest;
        Ok(block)
    }

    /// Decompresses the next block that holds bytes; false at the end.
    fn refill(&mut self) -> io::Result<bool> {
        while !self.input.is_empty() {
            let raw = self.next_block()?;
            if raw.is_empty() {
                break;
            }
            let declared = snap::raw::decompress_len(raw).map_err(broken)?;
            // Three bytes of input can copy at most 64 bytes of output: more is a lie, and
            // believing it would reserve memory by a declared length.
            if declared / 22 > raw.len() {
                return Err(invalid("a block declares more bytes than it can hold"));
            }
            self.block.clear();
            self.block.resize(declared, 0);
            snap::raw::Decoder::new()
                .decompress(raw, &mut self.block)
                .map_err(broken)?;
            self.taken = 0;
            if !self.block.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.failed {
            return Err(invalid("there is no data"));
        }
        if self.taken == self.block.len() && !self.refill().inspect_err(|_| self.failed = true)? {
            return Ok(0);
        }
        let n = self.block[self.taken..].as_ref().read(buf)?;
        self.taken += n;
        Ok(n)
    }
}

fn broken(error: snap::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Compresses into snappy-java's framing, which every client reads.
pub(super) fn compress(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(HEAD + input.len() / 2);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    let mut block = vec![0; snap::raw::max_compress_len(BLOCK.min(input.len()))];
    for chunk in input.chunks(BLOCK) {
        let n = encoder.compress(chunk, &mut block).map_err(broken)?;
        out.extend_from_slice(&(n as u32).to_be_bytes());
        out.extend_from_slice(&block[..n]);
    }
    Ok(out)
}
