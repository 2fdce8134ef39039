//! Committed offsets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Committed offsets, under the names of Kafka's group coordinator.
#[derive(Debug, Default)]
pub struct OffsetMetrics {
    stored: Gauge,
    /// Commits, one a partition.
    pub commits: Counter,
    /// Offsets that ended by time.
    pub expirations: Counter,
    /// Offsets that were deleted.
    pub deletions: Counter,
}

impl OffsetMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "num_offsets",
            "Committed offsets of all groups",
            self.stored.clone(),
        );
        let counters = [
            ("commit", "Offsets committed", &self.commits),
            (
                "expiration",
                "Committed offsets that ended by time",
                &self.expirations,
            ),
            (
                "deletion",
                "Committed offsets that were deleted",
                &self.deletions,
            ),
        ];
        for (what, help, counter) in counters {
            registry.register(format!("offset_{what}_count"), help, counter.clone());
        }
    }

    /// A shard that had `before` offsets has `after` now.
    pub fn changed(&self, before: usize, after: usize) {
        self.stored.inc_by(after as i64 - before as i64);
    }
}
