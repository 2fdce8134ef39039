//! The only way to decode foreign bytes.

use bytes::{Buf, Bytes};

use crate::{Request, api_key, reader::Malformed};

/// Bytes that are not the message that they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message has no such version.
    #[error("{api} has no version {version}")]
    UnsupportedVersion {
        /// The name of the API.
        api: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The bytes are not such a message.
    #[error("malformed {api} version {version} at byte {at}: {problem}")]
    Malformed {
        /// The name of the API.
        api: &'static str,
        /// The version.
        version: i16,
        /// Where in the body.
        at: usize,
        /// What is wrong.
        problem: Malformed,
    },
    /// The codec refuses what the walk accepted.
    #[error("cannot decode {api} version {version}: {reason}")]
    Refused {
        /// The name of the API.
        api: &'static str,
        /// The version.
        version: i16,
        /// What the codec says.
        reason: String,
    },
}

/// Decodes the body of a request.
pub fn decode<R: Request>(mut body: Bytes, version: i16) -> Result<R, DecodeError> {
    let api = api_key::name(R::KEY).unwrap_or("unknown API");
    if !(R::VERSIONS.min..=R::VERSIONS.max).contains(&version) {
        return Err(DecodeError::UnsupportedVersion { api, version });
    }
    let length = body.len();
    let request = R::decode(&mut body, version).map_err(|e| DecodeError::Refused {
        api,
        version,
        reason: format!("{e:#}"),
    })?;
    match body.remaining() {
        0 => Ok(request),
        rest => Err(DecodeError::Malformed {
            api,
            version,
            at: length - rest,
            problem: Malformed::Trailing(rest),
        }),
    }
}
