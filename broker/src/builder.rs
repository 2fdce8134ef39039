//! Embedding: a broker in the caller's process, on the caller's tokio runtime.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ottla_storage::{LogConfig, StoreOptions};

use crate::broker::Broker;
use crate::clock::Clock;
use crate::config::{Configs, HostPort, Origin, StaticConfig};
use crate::process::Process;
use crate::seed::Seeds;
use crate::start_error::StartError;

/// Settings of an embedded broker: those of a `server.properties`.
#[derive(Debug, Default)]
pub struct Builder {
    settings: Vec<(String, String, Origin)>,
    data_dir: Option<PathBuf>,
    frozen_at: Option<i64>,
}

impl Builder {
    /// The defaults, in memory, on 127.0.0.1:9092.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a Kafka or `ottla.` configuration.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings
            .push((key.to_owned(), value.to_owned(), Origin::Set));
        self
    }

    /// Keeps the data in a directory.
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(dir.into());
        self
    }

    /// State time stands at `now` (milliseconds since the epoch) until it is advanced.
    #[must_use]
    pub fn frozen_clock(mut self, now: i64) -> Self {
        self.frozen_at = Some(now);
        self
    }

    /// Starts serving; ports are open when this returns.
    pub async fn start(self) -> Result<Arc<Process>, StartError> {
        let statics = Arc::new(StaticConfig::new(self.settings)?);
        let mut options = store_options(&statics);
        if let Some(dir) = self.data_dir {
            options.data_dir = Some(dir);
        }
        let clock = self.frozen_at.map_or_else(Clock::real, Clock::frozen);
        start(statics, options, clock, &Seeds::default()).await
    }
}

/// How the configuration wants its data kept.
pub fn store_options(statics: &Arc<StaticConfig>) -> StoreOptions {
    let first = statics.broker_ids().first().copied().unwrap_or(0);
    let log = Configs::new(Arc::clone(statics)).broker(first).log;
    let mut dirs = statics.data_dirs().into_iter();
    let data_dir = dirs.next();
    for more in dirs {
        tracing::warn!(dir = %more.display(), "only the first of log.dirs is used");
    }
    let memory_max_bytes = statics
        .memory_max_bytes()
        .unwrap_or_else(ottla_storage::default_memory_max);
    StoreOptions {
        data_dir,
        memory_max_bytes,
        portable: statics.portable(),
        log_config: LogConfig::default(),
        node_id: first,
        retention_check_ms: log.retention_check_interval_ms,
        ..StoreOptions::default()
    }
}

/// Opens the data, makes what it is to start with, and opens the ports.
pub async fn start(
    statics: Arc<StaticConfig>,
    options: StoreOptions,
    clock: Clock,
    seeds: &Seeds,
) -> Result<Arc<Process>, StartError> {
    let admin = match statics.admin_listener()? {
        Some(at) => Some(admin_address(&at).await?),
        None => None,
    };
    let broker = Broker::open(statics, options, clock)?;
    seeds.sow(&broker)?;
    Process::start(broker, admin).await
}

async fn admin_address(at: &HostPort) -> Result<SocketAddr, StartError> {
    let unknown = |reason| StartError::Host {
        host: at.host.clone(),
        listener: "ottla.admin.listener".to_owned(),
        reason,
    };
    let found = tokio::net::lookup_host((at.host.as_str(), at.port)).await;
    let mut found = found.map_err(|error| unknown(Some(error)))?;
    found.next().ok_or_else(|| unknown(None))
}
