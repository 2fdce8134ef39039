//! Fetch sessions.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::broker::Broker;

/// The fetch sessions of all logical brokers, under the names of Kafka's `FetchSessionCache`.
#[derive(Debug, Default)]
pub(super) struct FetchSessionMetrics {
    sessions: Gauge,
    partitions: Gauge,
    evictions: Counter,
}

impl FetchSessionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "num_incremental_fetch_sessions",
            "Fetch sessions",
            self.sessions.clone(),
        );
        registry.register(
            "num_incremental_fetch_partitions_cached",
            "Partitions in fetch sessions",
            self.partitions.clone(),
        );
        registry.register(
            "incremental_fetch_session_evictions",
            "Fetch sessions that gave way to others",
            self.evictions.clone(),
        );
    }
    /// What they are now.
    pub(super) fn observe(&self, broker: &Broker) {
        let (mut sessions, mut partitions, mut evicted) = (0, 0, 0);
        for node in broker.nodes() {
            let cache = node.fetch_sessions();
            sessions += cache.len();
            partitions += cache.partitions();
            evicted += cache.evicted();
        }
        self.sessions.set(sessions as i64);
        self.partitions.set(partitions as i64);
        // Evictions only grow; another scrape may have been quicker.
        let seen = self.evictions.inner();
        seen.fetch_max(evicted, std::sync::atomic::Ordering::Relaxed);
    }
}
