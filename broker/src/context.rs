//! What a handler knows about its request: the broker, the logical broker that was asked, and the
//! connection it came in on.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ottla_coordinator::wait::{Signal, Woken};
use ottla_protocol::StrBytes;
use tokio::sync::Notify;

use crate::broker::Broker;
use crate::clock::WireDeadline;
use crate::config::BrokerConfig;
use crate::node::{Node, NodeListener};

/// One client connection.
#[derive(Debug)]
pub struct Connection {
    /// Unique in this process.
    pub id: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address that the client connected to.
    pub local: SocketAddr,
    /// The listener that accepted it.
    pub listener: Arc<NodeListener>,
    closed: AtomicBool,
    stopping: AtomicBool,
    closing: Notify,
    parked: Mutex<Option<Arc<Signal>>>,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(id: u64, peer: SocketAddr, local: SocketAddr, listener: Arc<NodeListener>) -> Self {
        Self {
            id,
            peer,
            local,
            listener,
            closed: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            closing: Notify::new(),
            parked: Mutex::default(),
        }
    }

    /// Marks the connection as gone and wakes the request that is parked on it.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        let parked = self
            .parked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(signal) = parked {
            signal.wake(Woken::Closed);
        }
    }

    /// Ends the connection because the broker stops.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.close();
    }

    /// Whether it ends because the broker stops.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether the client is gone.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Resolves once the connection is closed, by either side.
    pub async fn closed(&self) {
        let closing = self.closing.notified();
        if !self.is_closed() {
            closing.await;
        }
    }

    /// Waits on `signal` until it fires, the deadline passes, or the client goes away. The signal
    /// must have been registered with everything that may fire it before the caller's last look.
    pub async fn park(&self, signal: &Arc<Signal>, deadline: WireDeadline) -> Woken {
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(signal));
        if self.is_closed() {
            return Woken::Closed;
        }
        let woken = deadline
            .bound(signal.wait())
            .await
            .unwrap_or(Woken::Expired);
        self.parked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        woken
    }
}

/// The context of one request.
#[derive(Debug, Clone)]
pub struct Cx {
    /// The process.
    pub broker: Arc<Broker>,
    /// The logical broker whose port was used.
    pub node: Arc<Node>,
    /// The connection.
    pub connection: Arc<Connection>,
    /// The version of the request.
    pub version: i16,
    /// The client's name for itself.
    pub client_id: Option<StrBytes>,
}

impl Cx {
    /// The client's name for itself, or the empty string.
    pub fn client_id(&self) -> &str {
        self.client_id.as_deref().unwrap_or("")
    }

    /// The client's host as groups record it: `/` and the address, as Kafka writes it.
    pub fn client_host(&self) -> String {
        format!("/{}", self.connection.peer.ip())
    }

    /// What the logical broker runs with.
    pub fn config(&self) -> Arc<BrokerConfig> {
        self.broker.cluster.broker_config(self.node.id)
    }

    /// State time now.
    pub fn now(&self) -> i64 {
        self.broker.clock.now()
    }
}
