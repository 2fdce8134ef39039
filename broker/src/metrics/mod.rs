//! Metrics, in Prometheus' text format on `GET /metrics`; `docs/metrics.md` lists them.
//!
//! What happens is counted where it happens; what is, is asked for when somebody looks.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use ottla_coordinator::group::GroupCounts;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::api::TABLE;
use crate::broker::Broker;
use crate::clock::Stopwatch;
use crate::dead_letters::LetterMetrics;
use crate::deliveries::DeliveryMetrics;
use crate::leaders::LeaderMetrics;

mod fetch_sessions;
mod histograms;
pub(crate) mod labels;
mod offsets;
pub mod share;
mod share_coordinator;
pub mod share_requests;

use fetch_sessions::FetchSessionMetrics;
pub use offsets::OffsetMetrics;
use share::ShareMetrics;
pub use share_coordinator::ShardState;
use share_coordinator::ShareCoordinatorMetrics;

/// The label of one API.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ApiLabel {
    api: &'static str,
}

/// The label of one acknowledgement type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AckLabel {
    ack_type: &'static str,
}

/// The labels of a number of groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GroupLabel {
    protocol: &'static str,
    state: &'static str,
}

/// One API's counters, looked up by its place in the table.
#[derive(Debug)]
struct ApiMetrics {
    requests: Counter,
    micros: Counter,
}

impl ApiMetrics {
    /// The counters of every API, in the order of the table.
    fn register(registry: &mut Registry) -> Vec<Self> {
        let requests = Family::<ApiLabel, Counter>::default();
        let micros = Family::<ApiLabel, Counter>::default();
        registry.register("requests", "Requests answered, by API", requests.clone());
        registry.register(
            "request_time_microseconds",
            "Time spent on requests, waiting included, by API",
            micros.clone(),
        );
        TABLE
            .iter()
            .map(|api| {
                let label = ApiLabel {
                    api: ottla_protocol::api_key::name(api.key).unwrap_or("?"),
                };
                Self {
                    requests: requests.get_or_create_owned(&label),
                    micros: micros.get_or_create_owned(&label),
                }
            })
            .collect()
    }
}

/// All of the broker's metrics.
pub struct Metrics {
    registry: Registry,
    apis: Vec<ApiMetrics>,
    /// Connections that this side ended because of what came in.
    pub connections_refused: Counter,
    /// Open connections.
    pub connections: Gauge,
    /// Batches that were refused.
    pub produce_refused: Counter,
    bytes_in: Counter,
    records_in: Counter,
    bytes_out: Counter,
    share_acquired: Counter,
    /// Assignments that consumer groups made.
    pub consumer_rebalances: Counter,
    share_acknowledged: Family<AckLabel, Counter>,
    /// Locks that expired.
    pub share_lock_timeouts: Counter,
    /// Share-partition state writes that failed.
    pub share_write_failures: Counter,
    fetch_sessions: FetchSessionMetrics,
    /// Committed offsets.
    pub offsets: OffsetMetrics,
    groups: Family<GroupLabel, Gauge>,
    leaders: LeaderMetrics,
    /// What share groups deliver.
    pub deliveries: DeliveryMetrics,
    dead_letters: LetterMetrics,
    /// Share groups and their partitions.
    pub share: ShareMetrics,
    /// The share coordinators.
    pub share_coordinator: ShareCoordinatorMetrics,
    /// Held while the numbers of a scrape are made and shown, so that two scrapes do not mix.
    scrape: Mutex<()>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn register_groups(registry: &mut Registry) -> Family<GroupLabel, Gauge> {
    let groups = Family::default();
    let help = "Groups, by protocol and state";
    registry.register("group_count", help, groups.clone());
    groups
}

fn acknowledgements(registry: &mut Registry) -> Family<AckLabel, Counter> {
    let family = Family::default();
    registry.register(
        "share_record_acknowledgements",
        "Records acknowledged by share consumers, by type",
        family.clone(),
    );
    family
}

impl Metrics {
    /// All counters at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("ottla");
        let apis = ApiMetrics::register(&mut registry);
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let connections_refused = counter("connections_refused", "Connections ended for bad input");
        let produce_refused = counter("produce_refused", "Produced batches that were refused");
        let bytes_in = counter("bytes_in", "Bytes of record batches appended by producers");
        let records_in = counter("records_in", "Records appended by producers");
        let bytes_out = counter("bytes_out", "Bytes of record batches sent to consumers");
        let share_acquired = counter(
            "share_records_acquired",
            "Records acquired by share consumers",
        );
        let consumer_rebalances = counter(
            "consumer_group_rebalance_count",
            "Assignments made by groups of the consumer protocol",
        );
        let share_lock_timeouts = counter(
            "share_acquisition_lock_timeouts",
            "Acquisition locks that expired",
        );
        let share_write_failures = counter(
            "share_state_write_failures",
            "Share-partition state writes that failed",
        );
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let share_acknowledged = acknowledgements(&mut registry);
        let fetch_sessions = FetchSessionMetrics::default();
        fetch_sessions.register(&mut registry);
        let groups = register_groups(&mut registry);
        let offsets = OffsetMetrics::default();
        offsets.register(&mut registry);
        let dead_letters = LetterMetrics::register(&mut registry);
        let share = ShareMetrics::register(&mut registry);
        let share_coordinator = ShareCoordinatorMetrics::register(&mut registry);
        Self {
            leaders: LeaderMetrics::register(&mut registry),
            deliveries: DeliveryMetrics::register(&mut registry),
            registry,
            apis,
            connections_refused,
            connections,
            produce_refused,
            bytes_in,
            records_in,
            bytes_out,
            share_acquired,
            consumer_rebalances,
            share_acknowledged,
            share_lock_timeouts,
            share_write_failures,
            fetch_sessions,
            offsets,
            groups,
            dead_letters,
            share,
            share_coordinator,
            scrape: Mutex::default(),
        }
    }

    /// A request was answered.
    pub fn request(&self, key: i16, watch: Stopwatch) {
        if let Ok(at) = TABLE.binary_search_by_key(&key, |api| api.key) {
            self.apis[at].requests.inc();
            self.apis[at].micros.inc_by((watch.seconds() * 1e6) as u64);
        }
    }

    /// A producer's batch was stored.
    pub fn produced(&self, bytes: usize, records: i32) {
        self.bytes_in.inc_by(bytes as u64);
        self.records_in
            .inc_by(u64::from(records.max(0).unsigned_abs()));
    }

    /// Record bytes were sent.
    pub fn fetched(&self, bytes: usize) {
        self.bytes_out.inc_by(bytes as u64);
    }

    /// Records were acquired.
    pub fn acquired(&self, records: u64) {
        self.share_acquired.inc_by(records);
    }

    /// Records were acknowledged with `ack_type`, Kafka's word for it.
    pub fn acknowledged(&self, ack_type: &'static str, records: u64) {
        self.share_acknowledged
            .get_or_create_owned(&AckLabel { ack_type })
            .inc_by(records);
    }

    /// How many groups there are of each protocol in each state.
    fn groups(&self, counts: &GroupCounts) {
        self.groups.clear();
        for (&(group_type, state), &count) in counts {
            let protocol = group_type.name();
            self.groups
                .get_or_create_owned(&GroupLabel { protocol, state })
                .set(count as i64);
        }
    }

    /// The text of `GET /metrics`.
    pub fn render(&self, broker: &Broker) -> String {
        let _alone = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        let open: usize = broker.nodes().map(|node| node.connection_count()).sum();
        self.connections.set(open as i64);
        self.groups(&broker.groups.counts(broker));
        self.fetch_sessions.observe(broker);
        self.leaders.observe(&broker.cluster);
        let deliveries = broker.deliveries.views(broker.clock.now());
        self.deliveries.observe(&deliveries);
        broker.dead_letters.observe(&self.dead_letters);
        self.share.observe(broker);
        self.share_coordinator.observe(broker);
        let mut out = String::new();
        if let Err(error) = text::encode(&mut out, &self.registry) {
            tracing::error!(%error, "metrics could not be rendered");
        }
        out
    }
}
