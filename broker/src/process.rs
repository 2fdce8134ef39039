//! A running Ottla: the broker, its open ports, and how it starts and stops.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use ottla_protocol::ErrorCode;

use crate::admin;
use crate::broker::Broker;
use crate::cli::{SeedGroup, SeedTopic};
use crate::clock;
use crate::cluster::NewTopic;
use crate::config::{AlterOp, OpKind, ResourceType, World};
use crate::error_code::ApiError;
use crate::node::{Node, NodeListener};
use crate::server;

/// How long a clean stop waits for connections before it goes on without them, in milliseconds.
const STOP_WAIT_MS: u64 = 300;

/// How long a started broker waits for the clients that it had when it was stopped, in milliseconds:
/// the Java client tries again after 50 ms, and calls meanwhile fail without having been sent.
const COME_BACK_MS: u64 = 500;

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
    ) -> anyhow::Result<Arc<Self>> {
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
            bound.push((Arc::clone(node), bind_all(node)?));
        }
        if let Some(at) = admin_at {
            let socket = server::bind(at).with_context(|| {
                format!("cannot open the admin port {at}; choose another with --admin-listen")
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
                let host = match &l.advertised {
                    Some((host, _)) => host.clone(),
                    None => l.addresses.first()?.ip().to_string(),
                };
                let host = if host.contains(':') {
                    format!("[{host}]")
                } else {
                    host
                };
                Some(format!("{host}:{}", l.port()))
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
    pub async fn stop_node(&self, id: i32) -> anyhow::Result<()> {
        let mut open = self.open.lock().await;
        let Some(node) = open.remove(&id) else {
            bail!("there is no running broker {id}");
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
    pub async fn start_node(&self, id: i32) -> anyhow::Result<()> {
        let Some(node) = self.broker.node(id) else {
            bail!("there is no broker {id}")
        };
        if self.open.lock().await.contains_key(&id) {
            bail!("broker {id} is running");
        }
        let listeners = bind_all(&node)?;
        self.broker.node_up(id)?;
        self.open_node(&node, listeners).await;
        tracing::info!(broker = id, "logical broker started");
        let clients = self.left.lock().await.remove(&id).unwrap_or(0);
        clock::wire_timeout(COME_BACK_MS, node.connected(clients)).await;
        Ok(())
    }

    /// A clean stop: no new requests, connections closed, the log closed.
    pub async fn shutdown(&self) -> anyhow::Result<()> {
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
        self.broker
            .close()
            .context("the data could not be closed cleanly; the next start recovers it")
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

/// Binds all addresses of a broker's listeners; the second and later addresses of a listener (the IPv6
/// loopback) share the port of the first and may be missing on this machine.
fn bind_all(node: &Node) -> anyhow::Result<Vec<Bound>> {
    let mut bound = vec![];
    for listener in &node.listeners {
        let mut sockets = vec![];
        for (at, address) in listener.addresses.iter().enumerate() {
            let address = SocketAddr::new(address.ip(), listener.port());
            match server::bind(address) {
                Ok(socket) => {
                    listener.bound(socket.local_addr()?.port());
                    sockets.push(socket);
                }
                Err(error) if at > 0 => tracing::debug!(%address, %error, "not bound"),
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!(
                            "cannot listen on {address}; is another broker running? \
                             Choose another address with --listen HOST:PORT (port 0 = any)"
                        )
                    });
                }
            }
        }
        bound.push((Arc::clone(listener), sockets));
    }
    Ok(bound)
}

impl Process {
    /// Makes the topics and sets the group configurations that were asked for at the start.
    pub fn seed(&self, topics: &[SeedTopic], groups: &[SeedGroup]) -> anyhow::Result<()> {
        for topic in topics {
            let new = NewTopic {
                name: topic.name.clone(),
                partitions: topic.partitions.unwrap_or(-1),
                replication_factor: -1,
                ..Default::default()
            };
            match self.broker.create_topic(&new, false) {
                Err(error) if error.code != ErrorCode::TOPIC_ALREADY_EXISTS => {
                    return Err(error).with_context(|| format!("--topic {}", topic.name));
                }
                _ => {}
            }
        }
        for group in groups {
            let ops: Vec<AlterOp> = group
                .configs
                .iter()
                .map(|(key, value)| AlterOp {
                    key: key.clone(),
                    kind: OpKind::Set,
                    value: Some(value.clone()),
                })
                .collect();
            let changes = {
                let image = self.broker.cluster.image();
                let world = World {
                    broker: self.broker.config().node_id,
                    topic_exists: &|_| true,
                    elr: true,
                    loggers: &[],
                };
                let kind = ResourceType::Group.wire();
                image
                    .configs
                    .incremental_alter(&world, kind, &group.name, &ops)
            };
            let changes = changes
                .map_err(ApiError::from)
                .with_context(|| format!("--group {}", group.name))?;
            self.broker.store_configs(changes)?;
        }
        Ok(())
    }
}
