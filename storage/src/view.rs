//! Reading a segment's published bytes: by reference through a mapping, or by copy.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use ottla_protocol::batch::{BatchHeader, HEADER_LEN};

use crate::file::File;
use crate::mapping::Mapping;

/// A way to read one segment.
#[derive(Debug, Clone)]
pub(crate) enum View {
    /// By reference.
    Mapped(Arc<Mapping>),
    /// By copy; so many bytes are published.
    Copied(Arc<File>, u64),
}

fn short() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the segment ends inside of a batch",
    )
}

impl View {
    /// The header of the batch at `at`, and nothing else of it.
    pub(crate) fn header(&self, at: u64) -> io::Result<BatchHeader> {
        let bytes = match self {
            Self::Mapped(mapping) => mapping.array::<HEADER_LEN>(at as usize).ok_or_else(short)?,
            Self::Copied(file, size) => {
                if at + HEADER_LEN as u64 > *size {
                    return Err(short());
                }
                let mut bytes = [0; HEADER_LEN];
                file.read_at(&mut bytes, at)?;
                bytes
            }
        };
        BatchHeader::parse(&bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    /// `len` bytes from `from` on.
    pub(crate) fn bytes(&self, from: u64, len: usize) -> io::Result<Bytes> {
        match self {
            Self::Mapped(mapping) => {
                let from = from as usize;
                mapping.slice(from..from + len).ok_or_else(short)
            }
            Self::Copied(file, size) => {
                if from + len as u64 > *size {
                    return Err(short());
                }
                let mut bytes = vec![0; len];
                file.read_at(&mut bytes, from)?;
                Ok(Bytes::from(bytes))
            }
        }
    }
}

/// Goes from batch to batch by their headers.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    view: &'a View,
    at: u64,
    limit: u64,
}

impl<'a> Walk<'a> {
    /// Walks from the batch at `at` up to `limit`, where a batch ends.
    pub(crate) fn new(view: &'a View, at: u64, limit: u64) -> Self {
        Self { view, at, limit }
    }

    /// The next batch and its position.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, BatchHeader)>> {
        if self.at >= self.limit {
            return Ok(None);
        }
        let header = self.view.header(self.at)?;
        let position = self.at;
        let next = position + header.size() as u64;
        if next > self.limit {
            return Err(short());
        }
        self.at = next;
        Ok(Some((position, header)))
    }
}
