//! A client that says exactly what it is told, and hears everything.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use ottla_protocol::{Request, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{hexdump, soon, wall_ms};

/// The largest frame that a client takes.
const FRAME_MAX: usize = 256 << 20;

/// A request that was sent and not answered yet.
#[derive(Debug)]
#[must_use = "receive the answer"]
pub struct Sent<R> {
    /// Its correlation id.
    pub correlation_id: i32,
    /// Its version.
    pub version: i16,
    request: PhantomData<R>,
}

/// One connection to a broker.
pub struct Client {
    stream: TcpStream,
    input: BytesMut,
    next_correlation_id: i32,
    last_sent: Bytes,
    last_received: Bytes,
    /// Where it is connected to.
    pub address: SocketAddr,
    /// The client id of the next requests.
    pub client_id: Option<String>,
    /// What [`Client::produce_values`] stamps records with, in milliseconds since the epoch.
    pub timestamp: i64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "client of {}\nlast sent: {}last received: {}still in the buffer: {}",
            self.address,
            hexdump(&self.last_sent),
            hexdump(&self.last_received),
            hexdump(&self.input)
        )
    }
}

impl Client {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = soon("connecting", TcpStream::connect(address)).await;
        let stream = stream.unwrap_or_else(|error| panic!("connecting to {address}: {error}"));
        if let Err(error) = stream.set_nodelay(true) {
            panic!("TCP_NODELAY: {error}");
        }
        Self {
            stream,
            input: BytesMut::new(),
            next_correlation_id: 1,
            last_sent: Bytes::new(),
            last_received: Bytes::new(),
            address,
            client_id: Some("tests".to_owned()),
            timestamp: wall_ms(),
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let sent = self.send(version, request).await;
        self.receive(sent).await
    }

    /// Sends a request without waiting for its answer.
    pub async fn send<R: Request>(&mut self, version: i16, request: &R) -> Sent<R> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let bytes = self.encode(correlation_id, version, request);
        self.send_bytes(&bytes).await;
        Sent {
            correlation_id,
            version,
            request: PhantomData,
        }
    }

    /// The frame of a request, length prefix included.
    pub fn encode<R: Request>(&self, correlation_id: i32, version: i16, request: &R) -> Bytes {
        match frame::encode_request(correlation_id, self.client_id.as_deref(), request, version) {
            Ok(mut frame) => frame.copy_to_bytes(frame.remaining()),
            Err(error) => panic!("key {} version {version}: {error}", R::KEY),
        }
    }

    /// Waits for the answer to a request; the one before it must have been received.
    pub async fn receive<R: Request>(&mut self, sent: Sent<R>) -> R::Response {
        let frame = self.receive_frame().await;
        match frame::decode_response::<R::Response>(frame, sent.version) {
            Ok((id, response)) if id == sent.correlation_id => response,
            Ok((id, _)) => panic!(
                "answer to {id} came instead of {}\n{self:?}",
                sent.correlation_id
            ),
            Err(error) => panic!("key {} version {}: {error}\n{self:?}", R::KEY, sent.version),
        }
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.last_sent = Bytes::copy_from_slice(&bytes[..bytes.len().min(4096)]);
        let written = soon("sending", self.stream.write_all(bytes)).await;
        if let Err(error) = written {
            panic!("sending {} bytes: {error}\n{self:?}", bytes.len());
        }
    }

    /// Sends bytes to a broker that may already have closed the connection.
    pub async fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.last_sent = Bytes::copy_from_slice(&bytes[..bytes.len().min(4096)]);
        soon("sending", self.stream.write_all(bytes)).await
    }

    /// Sends a frame: the length of `body`, and `body`.
    pub async fn send_frame(&mut self, body: &[u8]) {
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        self.send_bytes(&frame).await;
    }

    /// The next frame, without its length prefix.
    pub async fn receive_frame(&mut self) -> Bytes {
        match self.receive_or_closed().await {
            Some(frame) => frame,
            None => panic!("the broker closed the connection\n{self:?}"),
        }
    }

    /// The next frame, or `None` once the broker has closed the connection.
    pub async fn receive_or_closed(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(frame);
            }
            let read = ottla::clock::wire_timeout(
                crate::PATIENCE_MS,
                self.stream.read_buf(&mut self.input),
            );
            match read.await {
                Some(Ok(0)) if self.input.is_empty() => return None,
                Some(Ok(0)) => panic!("the broker closed the connection within a frame\n{self:?}"),
                Some(Ok(_)) => {}
                // A peer that closes with our bytes unread resets the connection.
                Some(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return None;
                }
                Some(Err(error)) => panic!("receiving: {error}\n{self:?}"),
                None => panic!("no answer for {} ms\n{self:?}", crate::PATIENCE_MS),
            }
        }
    }

    /// Splits the next complete frame off the input.
    fn take_frame(&mut self) -> Option<Bytes> {
        let prefix = self.input.first_chunk::<4>()?;
        let length = match frame::frame_length(*prefix, FRAME_MAX) {
            Ok(length) => length,
            Err(error) => panic!("{error}\n{self:?}"),
        };
        if self.input.len() < 4 + length {
            return None;
        }
        self.input.advance(4);
        self.last_received = self.input.split_to(length).freeze();
        Some(self.last_received.clone())
    }

    /// Sends a request to a broker that may be killed meanwhile; `None` when no whole answer came.
    pub async fn call_or_lost<R: Request>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Option<R::Response> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let bytes = self.encode(correlation_id, version, request);
        self.try_send_bytes(&bytes).await.ok()?;
        let frame = loop {
            if let Some(frame) = self.take_frame() {
                break frame;
            }
            let read = soon("an answer", self.stream.read_buf(&mut self.input));
            if !matches!(read.await, Ok(bytes) if bytes > 0) {
                return None;
            }
        };
        match frame::decode_response::<R::Response>(frame, version) {
            Ok((id, response)) if id == correlation_id => Some(response),
            other => panic!("key {}: {:?}\n{self:?}", R::KEY, other.map(|(id, _)| id)),
        }
    }

    /// Waits until the broker closes the connection; anything that it sends first is a failure.
    pub async fn expect_close(&mut self) {
        if let Some(frame) = self.receive_or_closed().await {
            panic!(
                "an answer instead of a close: {}\n{self:?}",
                hexdump(&frame)
            );
        }
    }

    /// Closes the sending half: the broker sees the end of the stream.
    pub async fn finish_sending(&mut self) {
        if let Err(error) = self.stream.shutdown().await {
            panic!("closing the sending half: {error}");
        }
    }
}
