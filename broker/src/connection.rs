//! One client connection: frames in, answers out, in order.
//!
//! One task a connection and one request at a time, as in Kafka, so the order of answers needs no
//! bookkeeping. While a request is parked its connection keeps reading into a bounded buffer, so
//! that it sees the client go away; a handler is then told through [`Connection::close`] and runs to
//! its end, for it may hold records between an acquisition and a reply. Answers that are ready while
//! the next frame is already here leave in one write.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf, Bytes, BytesMut};
use ottla_protocol::frame::{self, FrameError, ResponseFrame, Sniffed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::api::{self, Reply};
use crate::broker::Broker;
use crate::clock;
use crate::context::{Connection, Cx};
use crate::node::Node;

/// How much is read ahead while a request is in progress.
const READ_AHEAD_MAX: usize = 256 * 1024;
/// The first piece of a read buffer; it grows as bytes arrive, never by the length that was declared.
const READ_CHUNK: usize = 16 * 1024;
/// Answers that are held back for one write at most.
const HELD_BYTES_MAX: usize = 256 * 1024;
/// How long a stopping broker waits for a client to hang up, in milliseconds.
const HANG_UP_MS: u64 = 250;
/// `IoSlice`s of one vectored write.
const SLICES_MAX: usize = 64;

/// Why a connection ended.
enum End {
    /// The client closed it, or the socket failed.
    Gone,
    /// This side closes it, for this reason.
    Refused(String),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Serves one connection until it ends, then releases what it held.
pub async fn serve(broker: Arc<Broker>, node: Arc<Node>, conn: Arc<Connection>, stream: TcpStream) {
    // Small answers must not wait for the peer's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let config = broker.cluster.broker_config(node.id);
    let (read, write) = stream.into_split();
    let mut session = Session {
        read,
        write,
        input: BytesMut::new(),
        held: VecDeque::new(),
        held_bytes: 0,
        frame_max: config.network.request_max_bytes.max(0) as usize,
        // Negative: never.
        idle_ms: u64::try_from(config.network.connections_max_idle_ms).unwrap_or(u64::MAX >> 20),
        conn: Arc::clone(&conn),
    };
    let end = session.run(&broker, &node).await;
    conn.close();
    if let Err(End::Refused(reason)) = end {
        broker.metrics.connections_refused.inc();
        tracing::warn!(peer = %conn.peer, listener = %conn.listener.name, "connection closed: {reason}");
    }
    node.connection_closed(&broker, &conn);
    if conn.is_stopping() {
        session.hang_up().await;
    }
}

struct Session {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    input: BytesMut,
    held: VecDeque<ResponseFrame>,
    held_bytes: usize,
    frame_max: usize,
    idle_ms: u64,
    conn: Arc<Connection>,
}

impl Session {
    async fn run(&mut self, broker: &Arc<Broker>, node: &Arc<Node>) -> Result<(), End> {
        loop {
            match self.take_frame()? {
                Some(body) => self.request(broker, node, body).await?,
                None => {
                    self.flush().await?;
                    self.fill().await?;
                }
            }
        }
    }

    /// Says goodbye and waits a moment for the client to hang up too: a stop is over when the clients
    /// have seen it, so that a restart within milliseconds looks to them like any other.
    async fn hang_up(&mut self) {
        let goodbye = async {
            self.write.shutdown().await?;
            self.input.clear();
            while self.read.read_buf(&mut self.input).await? > 0 {
                self.input.clear();
            }
            io::Result::Ok(())
        };
        // A client that does not hang up is left behind.
        let _ = clock::wire_timeout(HANG_UP_MS, goodbye).await;
    }

    /// Splits the next complete frame off the input, without its length.
    fn take_frame(&mut self) -> Result<Option<Bytes>, End> {
        let Some(&prefix) = self.input.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(prefix);
        if length < 0 || length as usize > self.frame_max {
            return Err(End::Refused(bad_length(prefix, length, self.frame_max)));
        }
        let total = 4 + length as usize;
        if self.input.len() < total {
            // Room for the rest of this frame, but no more than doubles what has arrived.
            let missing = total - self.input.len();
            self.input
                .reserve(missing.min(self.input.len().max(READ_CHUNK)));
            return Ok(None);
        }
        let mut frame = self.input.split_to(total).freeze();
        frame.advance(4);
        Ok(Some(frame))
    }

    /// Reads some bytes; an idle connection holds no buffer while it waits.
    async fn fill(&mut self) -> Result<(), End> {
        if self.input.is_empty() {
            self.input = BytesMut::new();
            let ready = tokio::select! {
                biased;
                () = self.conn.closed() => return Err(End::Gone),
                ready = clock::wire_timeout(self.idle_ms, self.read.readable()) => ready,
            };
            let Some(ready) = ready else {
                tracing::debug!(peer = %self.conn.peer, "connection idle for {} ms, closed", self.idle_ms);
                return Err(End::Gone);
            };
            ready?;
            self.input.reserve(READ_CHUNK);
        }
        tokio::select! {
            biased;
            () = self.conn.closed() => Err(End::Gone),
            read = self.read.read_buf(&mut self.input) => match read? {
                0 => Err(End::Gone),
                _ => Ok(()),
            },
        }
    }

    async fn request(
        &mut self,
        broker: &Arc<Broker>,
        node: &Arc<Node>,
        mut body: Bytes,
    ) -> Result<(), End> {
        let header = frame::request_header(&mut body).map_err(|error| refuse_header(&error))?;
        let cx = Cx {
            broker: Arc::clone(broker),
            node: Arc::clone(node),
            connection: Arc::clone(&self.conn),
            version: header.api_version,
            client_id: header.client_id.clone(),
        };
        let mut handler = pin!(api::dispatch(&cx, &header, body));
        let reply = match poll_once(handler.as_mut()).await {
            Some(reply) => reply,
            None => {
                self.flush().await.ok();
                self.drive(handler).await
            }
        };
        match reply {
            Reply::Send(frame) => {
                self.held_bytes += frame.remaining();
                self.held.push_back(frame);
                if self.held_bytes >= HELD_BYTES_MAX {
                    self.flush().await?;
                }
            }
            Reply::Nothing => {}
            Reply::Close(reason) => {
                self.flush().await?;
                return Err(End::Refused(reason));
            }
        }
        if self.conn.is_closed() {
            Err(End::Gone)
        } else {
            Ok(())
        }
    }

    /// Runs a parked handler to its end while watching for the client to go away.
    async fn drive<F: Future>(&mut self, mut handler: Pin<&mut F>) -> F::Output {
        loop {
            if self.conn.is_closed() || self.input.len() >= READ_AHEAD_MAX {
                return handler.await;
            }
            if self.input.capacity() - self.input.len() < 4096 {
                self.input.reserve(READ_CHUNK);
            }
            tokio::select! {
                biased;
                reply = handler.as_mut() => return reply,
                read = self.read.read_buf(&mut self.input) => {
                    if !matches!(read, Ok(n) if n > 0) {
                        self.conn.close();
                    }
                }
            }
        }
    }

    /// Writes what is held, vectored; record bytes go out from where they lie.
    async fn flush(&mut self) -> Result<(), End> {
        while let Some(first) = self.held.front_mut() {
            if !first.has_remaining() {
                self.held.pop_front();
                continue;
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut used = 0;
            for frame in &self.held {
                used += frame.chunks_vectored(&mut slices[used..]);
                if used == SLICES_MAX {
                    break;
                }
            }
            let written = tokio::select! {
                biased;
                written = self.write.write_vectored(&slices[..used]) => written?,
                () = self.conn.closed() => return Err(End::Gone),
            };
            if written == 0 {
                return Err(End::Gone);
            }
            self.advance(written);
        }
        self.held_bytes = 0;
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        while written > 0 {
            let Some(first) = self.held.front_mut() else {
                return;
            };
            let step = written.min(first.remaining());
            first.advance(step);
            written -= step;
            if !first.has_remaining() {
                self.held.pop_front();
            }
        }
    }
}

/// Polls a future once: most requests are answered without waiting.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn bad_length(prefix: [u8; 4], length: i32, max: usize) -> String {
    match frame::sniff(prefix) {
        Some(Sniffed::Http) => "an HTTP request on a Kafka port; the pages are on the admin port \
                                (--admin-listen)"
            .to_owned(),
        Some(Sniffed::Tls) => "a TLS handshake on a plaintext listener; set the client's \
                               security.protocol to PLAINTEXT"
            .to_owned(),
        _ if length < 0 => {
            format!("a frame with the negative length {length}; is this a Kafka client?")
        }
        _ => format!(
            "a frame of {length} bytes is larger than socket.request.max.bytes={max}; \
             raise it, or is this no Kafka client?"
        ),
    }
}

fn refuse_header(error: &FrameError) -> End {
    End::Refused(format!("a request that cannot be read: {error}"))
}
