//! A logical broker: its listeners, its connections, and the share and fetch sessions opened through it.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ottla_coordinator::share::session::ShareSessions;
use tokio::sync::Notify;

use crate::broker::Broker;
use crate::config::{BrokerConfig, Listener};
use crate::context::Connection;
use crate::fetch_sessions::FetchSessions;
use crate::shares::Handle;
use crate::start_error::StartError;

/// One listener of a logical broker.
#[derive(Debug)]
pub struct NodeListener {
    /// Its name, `PLAINTEXT` unless one was given.
    pub name: String,
    /// Where to bind; several addresses where a name such as `localhost` has several.
    pub addresses: Vec<SocketAddr>,
    /// Host and port that clients are told. Without one they are told the address that they used.
    pub advertised: Option<(String, u16)>,
    /// The port that was bound, once it is.
    port: AtomicU16,
}

impl NodeListener {
    /// A listener that is not bound yet.
    pub fn new(
        name: String,
        addresses: Vec<SocketAddr>,
        advertised: Option<(String, u16)>,
    ) -> Self {
        let port = addresses.first().map_or(0, SocketAddr::port);
        Self {
            name,
            addresses,
            advertised,
            port: AtomicU16::new(port),
        }
    }

    /// The port in use.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Acquire)
    }

    /// Notes the port that a bind to port 0 was given.
    pub fn bound(&self, port: u16) {
        self.port.store(port, Ordering::Release);
    }
}

/// A logical broker.
#[derive(Debug)]
pub struct Node {
    /// Its id.
    pub id: i32,
    /// Its rack, if one is set.
    pub rack: Option<String>,
    /// Its listeners, in the order of the configuration.
    pub listeners: Vec<Arc<NodeListener>>,
    sessions: Mutex<ShareSessions<Handle>>,
    fetch_sessions: Mutex<FetchSessions>,
    connections: Mutex<HashMap<u64, Weak<Connection>>>,
    /// Told for each connection that is accepted.
    opened: Notify,
}

impl Node {
    /// A broker without connections, as it is configured.
    pub fn from_config(config: &BrokerConfig) -> Result<Self, StartError> {
        let listeners = config
            .listeners
            .iter()
            .map(|listener| resolve(listener).map(Arc::new))
            .collect::<Result<_, StartError>>()?;
        let limit = usize::try_from(config.share_groups.max_share_sessions).unwrap_or(0);
        let slots = usize::try_from(config.network.fetch_session_slots).unwrap_or(0);
        Ok(Self {
            id: config.node_id,
            rack: config.rack.clone(),
            listeners,
            sessions: Mutex::new(ShareSessions::new(limit)),
            fetch_sessions: Mutex::new(FetchSessions::new(slots)),
            connections: Mutex::default(),
            opened: Notify::new(),
        })
    }

    /// The share sessions of this broker.
    pub fn sessions(&self) -> MutexGuard<'_, ShareSessions<Handle>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fetch sessions of this broker.
    pub fn fetch_sessions(&self) -> MutexGuard<'_, FetchSessions> {
        self.fetch_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Host and port by which a client on `conn` reaches this broker: on the listener of the same
    /// name, as advertised, or by the address that the client itself used.
    pub fn endpoint(&self, conn: &Connection) -> Option<(String, i32)> {
        let listener = self
            .listeners
            .iter()
            .find(|l| l.name == conn.listener.name)?;
        Some(match &listener.advertised {
            Some((host, port)) => {
                let port = if *port == 0 { listener.port() } else { *port };
                (host.clone(), i32::from(port))
            }
            None => (
                conn.local.ip().to_canonical().to_string(),
                i32::from(listener.port()),
            ),
        })
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Weak<Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection was accepted.
    pub fn connection_opened(&self, conn: &Arc<Connection>) {
        self.connections().insert(conn.id, Arc::downgrade(conn));
        self.opened.notify_waiters();
    }

    /// Resolves once `count` connections are open.
    pub async fn connected(&self, count: usize) {
        loop {
            let opened = self.opened.notified();
            if self.connection_count() >= count {
                return;
            }
            opened.await;
        }
    }

    /// A connection ended: the share sessions that it opened end too, and their records are released.
    /// A broker that stops releases nothing: its share partitions are left as they were persisted, as
    /// after a kill.
    pub fn connection_closed(&self, broker: &Broker, conn: &Connection) {
        self.connections().remove(&conn.id);
        let closed = self.sessions().close_connection(conn.id);
        let evicted = closed.len() as u64;
        broker.metrics.share.session_evictions.inc_by(evicted);
        if conn.is_stopping() {
            return;
        }
        for session in closed {
            broker.shares.release_session(broker, self.id, &session);
        }
    }

    /// Number of open connections.
    pub fn connection_count(&self) -> usize {
        self.connections().len()
    }

    /// Ends every connection, and the fetch sessions, as after a restart.
    pub fn close_connections(&self) {
        self.fetch_sessions().clear();
        let all: Vec<_> = self
            .connections()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for conn in all {
            conn.stop();
        }
    }
}

/// Looks up where a listener binds.
fn resolve(listener: &Listener) -> Result<NodeListener, StartError> {
    let unknown = |host: &str, reason| StartError::Host {
        host: host.to_owned(),
        listener: listener.name.clone(),
        reason,
    };
    let mut addresses = vec![];
    for (host, required) in listener.bind_addresses() {
        match (host, listener.bind.port).to_socket_addrs() {
            Ok(found) => addresses.extend(found),
            Err(error) if required => return Err(unknown(host, Some(error))),
            Err(_) => {}
        }
    }
    if addresses.is_empty() {
        return Err(unknown(&listener.bind.host, None));
    }
    let advertised = listener
        .advertised
        .as_ref()
        .map(|told| (told.host.clone(), told.port));
    Ok(NodeListener::new(
        listener.name.clone(),
        addresses,
        advertised,
    ))
}
