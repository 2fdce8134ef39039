//! Frames: the length prefix, request headers, and responses ready to be written.
//!
//! A frame is a 4-byte big-endian length and as many bytes: a header, then a body.

use bytes::{Buf, BufMut, Bytes};

use crate::reader::{Malformed, Reader};
use crate::splice::{Splice, Spliced};
use crate::{Decodable, Encodable, HeaderVersion, Request, StrBytes, api_key};

/// A frame that cannot be answered. The connection that sent it is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length prefix is negative or above the limit; `looks_like` says what it may really be.
    #[error("frame length {length} is outside 0 to {max}{}", hint(*.looks_like))]
    Length {
        /// The length that was declared.
        length: i32,
        /// The limit in force (`socket.request.max.bytes`).
        max: usize,
        /// What the four bytes look like.
        looks_like: Option<Sniffed>,
    },
    /// The frame ends inside its header, or the header is malformed.
    #[error("bad request header in a frame of {length} bytes: {problem}")]
    Header {
        /// Bytes of the frame without its prefix.
        length: usize,
        /// What is wrong.
        problem: Malformed,
    },
    /// A response that is not what it should be (seen by clients only).
    #[error("cannot read a response of {length} bytes: {reason}")]
    Response {
        /// Bytes of the frame without its prefix.
        length: usize,
        /// What is wrong.
        reason: String,
    },
    /// A key that Kafka 4.4 does not have.
    #[error("unknown API key {key} version {version}, client {}", client_id.as_deref().unwrap_or("(none)"))]
    UnknownApi {
        /// The key.
        key: i16,
        /// The version asked for.
        version: i16,
        /// The correlation id.
        correlation_id: i32,
        /// The client id, as far as it can be read.
        client_id: Option<StrBytes>,
    },
}

/// A message that cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The message cannot be put into this version.
    #[error("cannot encode version {version}: {reason}")]
    Message {
        /// The version.
        version: i16,
        /// What the codec says.
        reason: String,
    },
    /// The frame is longer than a frame can be.
    #[error("a response of {0} bytes does not fit a frame")]
    TooLong(usize),
}

/// What a client that does not speak Kafka seems to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// A TLS handshake: the client was told to use TLS and this listener is plaintext.
    Tls,
    /// HTTP: a browser, a health check, a scraper.
    Http,
    /// An SSH client.
    Ssh,
    /// A load balancer's PROXY protocol line.
    Proxy,
}

impl Sniffed {
    /// What to do about it, for the log.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Tls => "a TLS hello on a plaintext listener? set security.protocol to PLAINTEXT",
            Self::Http => "an HTTP request? this port speaks Kafka; HTTP is on the admin port",
            Self::Ssh => "an SSH client? this port speaks Kafka",
            Self::Proxy => "a PROXY protocol header? switch it off in the load balancer",
        }
    }
}

fn hint(seen: Option<Sniffed>) -> String {
    seen.map_or_else(String::new, |s| format!(" ({})", s.advice()))
}

/// Tells what a first length prefix that makes no sense really is.
///
/// All four are far above any sensible frame length, so this is asked only once a length is refused.
pub fn sniff(first4: [u8; 4]) -> Option<Sniffed> {
    match &first4 {
        [0x16, 0x03, 0..=4, _] => Some(Sniffed::Tls),
        b"GET " | b"POST" | b"HEAD" | b"PUT " | b"DELE" | b"OPTI" | b"PATC" | b"CONN" | b"TRAC"
        | b"PRI " => Some(Sniffed::Http),
        b"SSH-" => Some(Sniffed::Ssh),
        b"PROX" => Some(Sniffed::Proxy),
        _ => None,
    }
}

/// Reads a length prefix: the bytes that follow it, from 0 to `max`.
pub fn frame_length(prefix: [u8; 4], max: usize) -> Result<usize, FrameError> {
    let length = i32::from_be_bytes(prefix);
    usize::try_from(length)
        .ok()
        .filter(|n| *n <= max)
        .ok_or_else(|| FrameError::Length {
            length,
            max,
            looks_like: sniff(prefix),
        })
}

/// The header of a request, of any header version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestHeader {
    /// Which API.
    pub api_key: i16,
    /// Which version of it; not checked against what is served.
    pub api_version: i16,
    /// Echoed by the response.
    pub correlation_id: i32,
    /// What the client calls itself, or null.
    pub client_id: Option<StrBytes>,
}

/// Whether a version of an API uses compact lengths and tagged fields; `false` for unknown keys.
pub fn is_flexible(api_key: i16, version: i16) -> bool {
    api_key::first_flexible(api_key).is_some_and(|first| version >= first)
}

/// Header version of a request: 2 for flexible versions, else 1.
pub fn request_header_version(api_key: i16, version: i16) -> i16 {
    if is_flexible(api_key, version) { 2 } else { 1 }
}

/// Header version of a response: 1 for flexible versions, else 0; always 0 for `ApiVersions`, whose
/// response must be readable to a client that knows no version yet (KIP-511).
pub fn response_header_version(api_key: i16, version: i16) -> i16 {
    i16::from(api_key != api_key::API_VERSIONS && is_flexible(api_key, version))
}

/// Reads a request's header off the front of a frame and leaves the body.
///
/// Accepts every key of Kafka 4.4 at any version: what is served is decided by the caller.
pub fn request_header(buf: &mut Bytes) -> Result<RequestHeader, FrameError> {
    let mut reader = Reader::new(buf);
    let parsed = header_fields(&mut reader);
    let read = reader.position();
    let header = parsed.map_err(|problem| FrameError::Header {
        length: buf.len(),
        problem,
    })?;
    let RequestHeader {
        api_key: key,
        api_version: version,
        correlation_id,
        client_id,
    } = header;
    if api_key::name(key).is_none() {
        return Err(FrameError::UnknownApi {
            key,
            version,
            correlation_id,
            client_id,
        });
    }
    buf.advance(read);
    Ok(RequestHeader {
        api_key: key,
        api_version: version,
        correlation_id,
        client_id,
    })
}

fn header_fields(reader: &mut Reader<'_>) -> Result<RequestHeader, Malformed> {
    let api_key = reader.i16()?;
    let api_version = reader.i16()?;
    let correlation_id = reader.i32()?;
    // The client id keeps its plain length in every header version.
    let client_id = match reader.string(false) {
        // Whatever follows an unknown key is for the log only.
        Err(_) if api_key::name(api_key).is_none() => None,
        client_id => client_id?,
    };
    let client_id = client_id.map(|id| StrBytes::from_string(id.to_owned()));
    if is_flexible(api_key, api_version) {
        reader.skip_tags()?;
    }
    Ok(RequestHeader {
        api_key,
        api_version,
        correlation_id,
        client_id,
    })
}

/// A whole response frame, length prefix included, as the parts that one vectored write sends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseFrame {
    parts: Spliced,
}

impl ResponseFrame {
    /// The parts, in order: encoded fields and, by reference, records.
    pub fn parts(&self) -> &[Bytes] {
        self.parts.parts()
    }

    /// Bytes still to be written.
    pub fn total_len(&self) -> usize {
        self.parts.remaining()
    }
}

/// Reading consumes the frame; `chunks_vectored` hands out all parts for `writev`.
impl Buf for ResponseFrame {
    fn remaining(&self) -> usize {
        self.parts.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.parts.chunk()
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [std::io::IoSlice<'a>]) -> usize {
        self.parts.chunks_vectored(into)
    }

    fn advance(&mut self, count: usize) {
        self.parts.advance(count);
    }
}

/// Encodes a response into a frame.
///
/// The `Bytes` of `splice` that occur in the response (recognised by address) become parts of the
/// frame by reference; everything else is encoded into one buffer.
pub fn encode_response<R: Encodable + HeaderVersion>(
    correlation_id: i32,
    response: &R,
    version: i16,
    splice: &[Bytes],
) -> Result<ResponseFrame, EncodeError> {
    let mut out = Splice::new(splice);
    out.put_i32(0);
    out.put_i32(correlation_id);
    if R::header_version(version) >= 1 {
        out.put_u8(0);
    }
    encode_into(&mut out, response, version)?;
    finish(out)
}

/// Encodes a request into a frame, as a client does.
pub fn encode_request<R: Request>(
    correlation_id: i32,
    client_id: Option<&str>,
    request: &R,
    version: i16,
) -> Result<ResponseFrame, EncodeError> {
    let mut out = Splice::new(&[]);
    out.put_i32(0);
    out.put_i16(R::KEY);
    out.put_i16(version);
    out.put_i32(correlation_id);
    match client_id {
        Some(id) => {
            let id = &id.as_bytes()[..id.len().min(i16::MAX as usize)];
            out.put_i16(id.len() as i16);
            out.put_slice(id);
        }
        None => out.put_i16(-1),
    }
    if is_flexible(R::KEY, version) {
        out.put_u8(0);
    }
    encode_into(&mut out, request, version)?;
    finish(out)
}

/// Decodes a response frame without its length prefix, as a client does: correlation id and message.
///
/// For the frames of a trusted broker (a test's, our own): responses are not walked before.
pub fn decode_response<R: Decodable + HeaderVersion>(
    mut frame: Bytes,
    version: i16,
) -> Result<(i32, R), FrameError> {
    let length = frame.len();
    let bad = |reason: String| FrameError::Response { length, reason };
    let mut reader = Reader::new(&frame);
    let correlation_id = reader.i32().map_err(|e| bad(e.to_string()))?;
    if R::header_version(version) >= 1 {
        reader.skip_tags().map_err(|e| bad(e.to_string()))?;
    }
    frame.advance(reader.position());
    let message = R::decode(&mut frame, version).map_err(|e| bad(format!("{e:#}")))?;
    if frame.has_remaining() {
        return Err(bad(Malformed::Trailing(frame.remaining()).to_string()));
    }
    Ok((correlation_id, message))
}

fn encode_into<M: Encodable>(
    out: &mut Splice<'_>,
    message: &M,
    version: i16,
) -> Result<(), EncodeError> {
    message
        .encode(out, version)
        .map_err(|e| EncodeError::Message {
            version,
            reason: format!("{e:#}"),
        })
}

fn finish(mut out: Splice<'_>) -> Result<ResponseFrame, EncodeError> {
    let total = out.len();
    let length = i32::try_from(total - 4).map_err(|_| EncodeError::TooLong(total))?;
    out.set_prefix(length.to_be_bytes());
    Ok(ResponseFrame {
        parts: out.finish(),
    })
}
