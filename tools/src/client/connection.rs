//! One connection to one broker.

use std::collections::BTreeMap;
use std::fmt;

use bytes::{Buf, Bytes, BytesMut};
use ottla_protocol::messages::ApiVersionsRequest;
use ottla_protocol::{ErrorCode, Request, StrBytes, api_key, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Error, Settings};
use crate::clock::Deadline;

/// No answer to a tool is larger.
const FRAME_MAX: usize = 100 << 20;
/// The version of ApiVersions that every broker with share groups knows.
const FIRST_QUESTION: i16 = 3;

/// An open connection, and what the broker behind it serves.
pub(super) struct Connection {
    address: String,
    stream: TcpStream,
    input: BytesMut,
    next_id: i32,
    client_id: Option<String>,
    request_timeout_ms: u64,
    versions: BTreeMap<i16, (i16, i16)>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection to {}", self.address)
    }
}

impl Connection {
    /// Connects and asks what is served.
    pub(super) async fn open(
        address: &str,
        settings: &Settings,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let lost = |reason: String| Error::Connection {
            address: address.to_owned(),
            reason,
        };
        let deadline = deadline.or(Deadline::after(settings.connect_timeout_ms));
        let stream = match deadline.bound(TcpStream::connect(address)).await {
            None => return Err(lost("no connection in time".to_owned())),
            Some(Err(error)) => return Err(lost(error.to_string())),
            Some(Ok(stream)) => stream,
        };
        stream
            .set_nodelay(true)
            .map_err(|error| lost(error.to_string()))?;
        let mut connection = Self {
            address: address.to_owned(),
            stream,
            input: BytesMut::new(),
            next_id: 1,
            client_id: settings.client_id.clone(),
            request_timeout_ms: settings.request_timeout_ms,
            versions: BTreeMap::new(),
        };
        connection.negotiate(deadline).await?;
        Ok(connection)
    }

    async fn negotiate(&mut self, deadline: Deadline) -> Result<(), Error> {
        let request = ApiVersionsRequest {
            client_software_name: StrBytes::from_static_str("ottla-tools"),
            client_software_version: StrBytes::from_static_str(env!("CARGO_PKG_VERSION")),
            ..Default::default()
        };
        let (id, frame) = self.exchange(&request, FIRST_QUESTION, deadline).await?;
        // A broker that does not know the version answers in version 0: id, then the code.
        let mut code = frame.get(4..6).unwrap_or_default();
        if code.len() == 2 && code.get_i16() == ErrorCode::UNSUPPORTED_VERSION.0 {
            return Err(self.lost("the broker is older than share groups"));
        }
        let answer = self.read::<ApiVersionsRequest>(id, FIRST_QUESTION, frame)?;
        if answer.error_code != 0 {
            return Err(Error::refused(answer.error_code, None));
        }
        let served = answer.api_keys.iter();
        self.versions = served
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect();
        Ok(())
    }

    /// The highest version of an API that both ends know, from `least` on.
    pub(super) fn version<R: Request>(&self, least: i16) -> Option<i16> {
        let (min, max) = self.versions.get(&R::KEY)?;
        let common = R::VERSIONS.max.min(*max);
        (common >= R::VERSIONS.min.max(*min).max(least)).then_some(common)
    }

    /// Asks in the highest common version.
    pub(super) async fn call<R: Request>(
        &mut self,
        least: i16,
        request: &R,
        deadline: Deadline,
    ) -> Result<R::Response, Error> {
        let version = self.version::<R>(least).ok_or_else(|| Error::Unsupported {
            address: self.address.clone(),
            api: api_key::name(R::KEY).unwrap_or("an API of that number"),
            key: R::KEY,
            note: None,
        })?;
        let deadline = deadline.or(Deadline::after(self.request_timeout_ms));
        let (id, frame) = self.exchange(request, version, deadline).await?;
        self.read::<R>(id, version, frame)
    }

    /// Sends a request and receives a frame.
    async fn exchange<R: Request>(
        &mut self,
        request: &R,
        version: i16,
        deadline: Deadline,
    ) -> Result<(i32, Bytes), Error> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let mut out = frame::encode_request(id, self.client_id.as_deref(), request, version)
            .map_err(|error| self.lost(&format!("key {}: {error}", R::KEY)))?;
        match deadline.bound(self.stream.write_all_buf(&mut out)).await {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(self.lost(&error.to_string())),
            None => return Err(self.lost("the request could not be sent in time")),
        }
        match deadline.bound(self.receive()).await {
            Some(frame) => Ok((id, frame?)),
            None => Err(self.lost("no answer in time")),
        }
    }

    async fn receive(&mut self) -> Result<Bytes, Error> {
        loop {
            if let Some(prefix) = self.input.first_chunk::<4>() {
                // Whoever speaks first and not in frames: HTTP, TLS, SSH.
                let length = frame::frame_length(*prefix, FRAME_MAX)
                    .map_err(|_| self.lost("what answers there is not a Kafka broker"))?;
                if self.input.len() >= 4 + length {
                    self.input.advance(4);
                    return Ok(self.input.split_to(length).freeze());
                }
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) => return Err(self.lost("the broker closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
    }

    /// Reads the answer, once it is known to be one.
    fn read<R: Request>(&self, id: i32, version: i16, frame: Bytes) -> Result<R::Response, Error> {
        if frame.get(..4) != Some(&id.to_be_bytes()[..]) {
            return Err(self.lost("what answers there is not a Kafka broker"));
        }
        frame::decode_response::<R::Response>(frame, version)
            .map(|(_, answer)| answer)
            .map_err(|error| self.lost(&format!("key {} version {version}: {error}", R::KEY)))
    }

    fn lost(&self, reason: &str) -> Error {
        Error::Connection {
            address: self.address.clone(),
            reason: reason.to_owned(),
        }
    }
}
