//! Why a broker does not start, or does not stop cleanly: one line that says what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use ottla_storage::{OpenError, StorageError};

use crate::config::ConfigError;
use crate::error_code::ApiError;

/// Why a broker does not start, or does not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A feature that the configuration asks for does not exist at that level.
    #[error("{0}")]
    Feature(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What the data directory holds cannot be replayed.
    #[error("the data could not be read: {0}")]
    Replay(#[from] ApiError),
    /// A log could not be made or closed.
    #[error("the data could not be written: {0}")]
    Storage(#[from] StorageError),
    /// A host of a listener has no address.
    #[error("the host {host} of listener {listener} is not known{}", reason.as_ref().map_or_else(String::new, |e| format!(": {e}")))]
    Host {
        /// The host.
        host: String,
        /// The listener.
        listener: String,
        /// What the resolver said, if it said something.
        reason: Option<io::Error>,
    },
    /// A port is taken, or may not be opened.
    #[error(
        "cannot listen on {address}: {reason}; is another broker running? \
         Choose another address with {option} HOST:PORT (port 0 = any)"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag that sets it.
        option: &'static str,
        /// What the system said.
        reason: io::Error,
    },
    /// A topic or group that was asked for at the start could not be made.
    #[error("{option} {name}: {reason}")]
    Seed {
        /// The flag.
        option: &'static str,
        /// Its value.
        name: String,
        /// Why not.
        reason: ApiError,
    },
    /// No logical broker has this id, or it is in the other state already.
    #[error("{0}")]
    Node(String),
    /// The ready file could not be written.
    #[error("the file {path} could not be written: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}
