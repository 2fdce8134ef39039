//! Listeners: binds a logical broker's ports and accepts connections until the broker is stopped.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::broker::Broker;
use crate::clock;
use crate::connection;
use crate::context::Connection;
use crate::node::{Node, NodeListener};

/// Binds `address`, reusing it after a restart; the kernel queues `backlog` connections.
pub fn bind(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Accepts until `stop` says so, then closes every connection that it accepted.
pub async fn accept(
    broker: Arc<Broker>,
    node: Arc<Node>,
    listener: Arc<NodeListener>,
    socket: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|&stopped| stopped) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Ok(local) = stream.local_addr() else {
                    continue;
                };
                let id = broker.next_connection_id();
                let conn = Arc::new(Connection::new(id, peer, local, Arc::clone(&listener)));
                node.connection_opened(&conn);
                let serve = connection::serve(Arc::clone(&broker), Arc::clone(&node), conn, stream);
                connections.spawn(serve);
            }
            Err(error) => {
                // Out of descriptors, most likely: wait for connections to end.
                tracing::warn!(%error, listener = %listener.name, "could not accept a connection; raise `ulimit -n`?");
                clock::wire_sleep(50).await;
            }
        }
    }
    drop(socket);
    node.close_connections();
    while connections.join_next().await.is_some() {}
}
