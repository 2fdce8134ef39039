//! A broker in this process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ottla::builder;
use ottla::clock::Clock;
use ottla::config::{Origin, StaticConfig};
use ottla::process::Process;
use ottla::seed::Seeds;
use ottla_storage::Faults;

use crate::{Client, HttpAnswer, START_MS, http};

/// How an embedded broker is to be started.
#[derive(Debug, Default)]
pub struct Settings {
    lines: Vec<(String, String, Origin)>,
    data_dir: Option<PathBuf>,
    faults: Option<Arc<Faults>>,
    real_clock: bool,
    now: Option<i64>,
}

impl Settings {
    /// In memory, one logical broker, ports that are free, a clock that stands at [`START_MS`].
    pub fn new() -> Self {
        Self::default()
            .set("listeners", "PLAINTEXT://127.0.0.1:0")
            .set("ottla.admin.listener", "127.0.0.1:0")
    }

    /// A line of a `server.properties`.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.lines
            .push((key.to_owned(), value.to_owned(), Origin::Set));
        self
    }

    /// Several logical brokers, with ids from 0 and a free port each.
    #[must_use]
    pub fn brokers(mut self, count: i32) -> Self {
        self = self.set("ottla.brokers", &count.to_string());
        for id in 0..count {
            self = self.set(&format!("ottla.listeners.{id}"), "PLAINTEXT://127.0.0.1:0");
        }
        self
    }

    /// On disk.
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(dir.into());
        self
    }

    /// On a disk that fails on command; needs a data directory.
    #[must_use]
    pub fn faults(mut self, faults: Arc<Faults>) -> Self {
        self.faults = Some(faults);
        self
    }

    /// State time is the wall clock's, plus what it is advanced by.
    #[must_use]
    pub fn real_clock(mut self) -> Self {
        self.real_clock = true;
        self
    }

    /// The frozen clock stands at `now` instead of [`START_MS`].
    #[must_use]
    pub fn at(mut self, now: i64) -> Self {
        self.now = Some(now);
        self
    }

    /// Starts it; fails as the binary would.
    pub async fn try_start(self) -> anyhow::Result<Embedded> {
        let statics = Arc::new(StaticConfig::new(self.lines)?);
        let mut options = builder::store_options(&statics);
        if self.data_dir.is_some() {
            options.data_dir = self.data_dir;
        }
        options.faults = self.faults;
        let clock = if self.real_clock {
            Clock::real()
        } else {
            Clock::frozen(self.now.unwrap_or(START_MS))
        };
        let process = builder::start(statics, options, clock, &Seeds::default()).await?;
        Ok(Embedded { process })
    }

    /// Starts it.
    pub async fn start(self) -> Embedded {
        self.try_start()
            .await
            .unwrap_or_else(|error| panic!("the broker did not start: {error:#}"))
    }
}

/// A broker in this process.
#[derive(Debug)]
pub struct Embedded {
    /// The broker and its ports.
    pub process: Arc<Process>,
}

impl Embedded {
    /// A broker with [`Settings::new`].
    pub async fn start() -> Self {
        Settings::new().start().await
    }

    /// Where the first logical broker listens.
    pub fn address(&self) -> SocketAddr {
        let first = self.process.broker.nodes().next().map_or(0, |node| node.id);
        self.address_of(first)
    }

    /// Where a logical broker listens.
    pub fn address_of(&self, id: i32) -> SocketAddr {
        let node = self
            .process
            .broker
            .node(id)
            .unwrap_or_else(|| panic!("there is no broker {id}"));
        SocketAddr::from(([127, 0, 0, 1], node.listeners[0].port()))
    }

    /// Its admin port.
    pub fn admin(&self) -> SocketAddr {
        self.process
            .admin_address()
            .unwrap_or_else(|| panic!("this broker has no admin port"))
    }

    /// A client of the first logical broker. It stamps its records with the time now.
    pub async fn client(&self) -> Client {
        let first = self.process.broker.nodes().next().map_or(0, |node| node.id);
        self.client_of(first).await
    }

    /// A client of a logical broker.
    pub async fn client_of(&self, id: i32) -> Client {
        let mut client = Client::connect(self.address_of(id)).await;
        client.timestamp = self.now();
        client
    }

    /// State time, in milliseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.process.broker.clock.now()
    }

    /// Moves the clock and does all that falls due on the way.
    pub async fn advance(&self, ms: i64) {
        self.walk(ms, false).await;
    }

    /// The same, while members' sessions stand still.
    pub async fn advance_holding_sessions(&self, ms: i64) {
        self.walk(ms, true).await;
    }

    async fn walk(&self, ms: i64, hold_sessions: bool) {
        let broker = Arc::clone(&self.process.broker);
        let walk = move || broker.deadlines.advance(&broker.clock, ms, hold_sessions);
        if let Err(error) = tokio::task::spawn_blocking(walk).await {
            panic!("the clock could not be advanced: {error}");
        }
    }

    /// Stops one logical broker.
    pub async fn stop_node(&self, id: i32) {
        if let Err(error) = self.process.stop_node(id).await {
            panic!("broker {id} did not stop: {error:#}");
        }
    }

    /// Starts a logical broker that was stopped.
    pub async fn start_node(&self, id: i32) {
        if let Err(error) = self.process.start_node(id).await {
            panic!("broker {id} did not start: {error:#}");
        }
    }

    /// A clean stop.
    pub async fn shutdown(self) {
        if let Err(error) = self.process.shutdown().await {
            panic!("the broker did not stop cleanly: {error:#}");
        }
    }
}

/// The admin port of a broker that tells where it is.
pub(crate) async fn advance_over_http(
    admin: SocketAddr,
    ms: i64,
    hold_sessions: bool,
) -> HttpAnswer {
    let hold = if hold_sessions { "&hold=sessions" } else { "" };
    let answer = http(admin, "POST", &format!("/api/clock/advance?ms={ms}{hold}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}
