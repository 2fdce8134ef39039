//! Embedding: a broker in the caller's process, on the caller's tokio runtime.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use ottla_storage::{LogConfig, StoreOptions};

use crate::broker::Broker;
use crate::clock::Clock;
use crate::config::{Origin, StaticConfig};
use crate::process::Process;

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
    pub async fn start(self) -> anyhow::Result<Arc<Process>> {
        let statics = Arc::new(StaticConfig::new(self.settings)?);
        let mut options = store_options(&statics)?;
        if let Some(dir) = self.data_dir {
            options.data_dir = Some(dir);
        }
        let clock = self.frozen_at.map_or_else(Clock::real, Clock::frozen);
        start(statics, options, clock).await
    }
}

/// How the configuration wants its data kept.
pub fn store_options(statics: &StaticConfig) -> anyhow::Result<StoreOptions> {
    let mut dirs = statics.data_dirs().into_iter();
    let data_dir = dirs.next();
    for more in dirs {
        tracing::warn!(dir = %more.display(), "only the first of log.dirs is used");
    }
    let memory_max_bytes = statics
        .memory_max_bytes()
        .unwrap_or_else(ottla_storage::default_memory_max);
    Ok(StoreOptions {
        data_dir,
        memory_max_bytes,
        portable: statics.portable(),
        log_config: LogConfig::default(),
        node_id: statics.broker_ids().first().copied().unwrap_or(0),
        ..StoreOptions::default()
    })
}

/// Opens the data and the ports.
pub async fn start(
    statics: Arc<StaticConfig>,
    options: StoreOptions,
    clock: Clock,
) -> anyhow::Result<Arc<Process>> {
    let admin = match statics.admin_listener()? {
        Some(at) => Some(
            tokio::net::lookup_host((at.host.as_str(), at.port))
                .await
                .with_context(|| format!("the admin host {} is not known", at.host))?
                .next()
                .with_context(|| format!("the admin host {} has no address", at.host))?,
        ),
        None => None,
    };
    let broker = Broker::open(statics, options, clock)?;
    Process::start(broker, admin).await
}
