//! A running Ottla: the broker, its open ports, and how it starts and stops.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::admin;
use crate::broker::Broker;
use crate::clock;
use crate::node::{Node, NodeListener};
use crate::server;
use crate::start_error::StartError;

/// How long a clean stop waits for connections before it goes on without them, in milliseconds.
const STOP_WAIT_MS: u64 = 300;

/// How long a started broker waits for the clients that it had when it was stopped, in milliseconds:
/// the Java client tries again after 50 ms, and calls meanwhile fail without having been sent.
const COME_BACK_MS: u64 = 500;

/// Connections to the admin port that the kernel queues.
const ADMIN_BACKLOG: u32 = 64;

/// The accepting tasks of one logical broker.
#[derive(Debug)]
struct OpenNode {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// A running Ottla.
#[derive(Debug)]
pub struct Process {
    /// The broker.
    pub broker: Arc<Broker>,
    open: Mutex<BTreeMap<i32, OpenNode>>,
    /// Connections that stopped brokers had.
    left: Mutex<BTreeMap<i32, usize>>,
    admin: Mutex<Option<JoinHandle<()>>>,
    admin_address: OnceLock<SocketAddr>,
    ready: AtomicBool,
}

/// A listener with its bound sockets.
type Bound = (Arc<NodeListener>, Vec<TcpListener>);

impl Process {
    /// Opens every port and starts serving. Ports open only now, when everything behind them is up.
    pub async fn start(
        broker: Arc<Broker>,
        admin_at: Option<SocketAddr>,
    ) -> Result<Arc<Self>, StartError> {
        let process = Arc::new(Self {
            broker,
            open: Mutex::default(),
            left: Mutex::default(),
            admin: Mutex::default(),
            admin_address: OnceLock::new(),
            ready: AtomicBool::new(false),
        });
        // All ports are bound before the first one accepts: a client that reaches one broker finds all.
        let mut bound = vec![];
        for node in process.broker.nodes() {
            bound.push((Arc::clone(node), bind_all(&process.broker, node)?));
        }
        if let Some(at) = admin_at {
            let socket = server::bind(at, ADMIN_BACKLOG).map_err(|reason| StartError::Listen {
                address: at,
                option: "--admin-listen",
                reason,
            })?;
            process
                .admin_address
                .get_or_init(|| socket.local_addr().unwrap_or(at));
            let router = admin::router(Arc::clone(&process));
            let serve = async move {
                if let Err(error) = axum::serve(socket, router).await {
                    tracing::error!(%error, "the admin port failed");
                }
            };
            *process.admin.lock().await = Some(tokio::spawn(serve));
        }
        for (node, listeners) in bound {
            process.open_node(&node, listeners).await;
        }
        let driver = Arc::clone(&process.broker);
        tokio::spawn(async move { driver.deadlines.drive(&driver.clock).await });
        process.ready.store(true, Ordering::Release);
        Ok(process)
    }

    /// Whether everything is served.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Where the admin port is, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address.get().copied()
    }

    /// The addresses for `bootstrap.servers`.
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<String> = self
            .broker
            .nodes()
            .flat_map(|node| &node.listeners)
            .filter_map(|l| {
                let (host, port) = match &l.advertised {
                    Some((host, port)) => (host.clone(), *port),
                    None => (reachable(l.addresses.first()?.ip()).to_string(), 0),
                };
                let host = if host.contains(':') {
                    format!("[{host}]")
                } else {
                    host
                };
                let port = if port == 0 { l.port() } else { port };
                Some(format!("{host}:{port}"))
            })
            .collect();
        addresses.join(",")
    }

    async fn open_node(&self, node: &Arc<Node>, listeners: Vec<Bound>) {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = vec![];
        for (listener, sockets) in listeners {
            for socket in sockets {
                tasks.push(tokio::spawn(server::accept(
                    Arc::clone(&self.broker),
                    Arc::clone(node),
                    Arc::clone(&listener),
                    socket,
                    stopped.clone(),
                )));
            }
        }
        self.open
            .lock()
            .await
            .insert(node.id, OpenNode { stop, tasks });
    }

    /// Stops one logical broker: leaders and coordinators move, its connections close, its port refuses.
    pub async fn stop_node(&self, id: i32) -> Result<(), StartError> {
        let mut open = self.open.lock().await;
        let Some(node) = open.remove(&id) else {
            return Err(StartError::Node(format!("there is no running broker {id}")));
        };
        let clients = self
            .broker
            .node(id)
            .map_or(0, |node| node.connection_count());
        self.left.lock().await.insert(id, clients);
        self.broker.node_down(id)?;
        close(node).await;
        tracing::info!(broker = id, "logical broker stopped");
        Ok(())
    }

    /// Starts a stopped logical broker again, on the same port. Answers when its former clients are
    /// back, so that a restart within milliseconds looks to them like any other, or after a moment.
    pub async fn start_node(&self, id: i32) -> Result<(), StartError> {
        let Some(node) = self.broker.node(id) else {
            return Err(StartError::Node(format!("there is no broker {id}")));
        };
        if self.open.lock().await.contains_key(&id) {
            return Err(StartError::Node(format!("broker {id} is running")));
        }
        let listeners = bind_all(&self.broker, &node)?;
        self.broker.node_up(id)?;
        self.open_node(&node, listeners).await;
        tracing::info!(broker = id, "logical broker started");
        let clients = self.left.lock().await.remove(&id).unwrap_or(0);
        clock::wire_timeout(COME_BACK_MS, node.connected(clients)).await;
        Ok(())
    }

    /// A clean stop: no new requests, connections closed, the log synced and closed. The sync waits for
    /// the disk, and so for what other programs have written too.
    pub async fn shutdown(&self) -> Result<(), StartError> {
        self.ready.store(false, Ordering::Release);
        let nodes = std::mem::take(&mut *self.open.lock().await);
        let closing = async {
            for node in nodes.into_values() {
                close(node).await;
            }
        };
        if clock::wire_timeout(STOP_WAIT_MS, closing).await.is_none() {
            tracing::debug!("some requests were still in progress at the stop");
        }
        if let Some(admin) = self.admin.lock().await.take() {
            admin.abort();
        }
        self.broker.deadlines.stop();
        let broker = Arc::clone(&self.broker);
        let close = tokio::task::spawn_blocking(move || broker.close());
        match close.await {
            Ok(closed) => closed,
            Err(error) => Err(StartError::Node(format!(
                "the data was not closed: {error}"
            ))),
        }
    }
}

async fn close(node: OpenNode) {
    node.stop.send_replace(true);
    for task in node.tasks {
        if let Err(error) = task.await {
            tracing::error!(%error, "a listener failed");
        }
    }
}

/// An address by which a listener that binds `ip` is reached from this machine.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Binds all addresses of a broker's listeners; the second and later addresses of a listener (the IPv6
/// loopback) share the port of the first and may be missing on this machine.
fn bind_all(broker: &Broker, node: &Node) -> Result<Vec<Bound>, StartError> {
    let config = broker.cluster.broker_config(node.id);
    let backlog = u32::try_from(config.network.listen_backlog)
        .unwrap_or(0)
        .max(1);
    let mut bound = vec![];
    for listener in &node.listeners {
        let mut sockets = vec![];
        for (at, address) in listener.addresses.iter().enumerate() {
            let address = SocketAddr::new(address.ip(), listener.port());
            match server::bind(address, backlog) {
                Ok(socket) => {
                    let bound = socket.local_addr().map_or(address.port(), |at| at.port());
                    listener.bound(bound);
                    sockets.push(socket);
                }
                Err(error) if at > 0 => tracing::debug!(%address, %error, "not bound"),
                Err(reason) => {
                    return Err(StartError::Listen {
                        address,
                        option: "--listen",
                        reason,
                    });
                }
            }
        }
        bound.push((Arc::clone(listener), sockets));
    }
    Ok(bound)
}
