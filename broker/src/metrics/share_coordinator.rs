//! The share coordinators: writes, loads, and the partitions of `__share_group_state`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::histograms::milliseconds;
use crate::broker::Broker;
use crate::clock::Stopwatch;
use crate::cluster::image::SHARE_GROUP_STATE;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartitionLabel {
    topic: &'static str,
    partition: i32,
}

/// What a share coordinator's partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardState {
    /// Its state is in memory.
    Active,
    /// It has a leader, and is loaded when it is asked next.
    Loading,
    /// Nobody leads it.
    Failed,
}

impl ShardState {
    const ALL: [Self; 3] = [Self::Active, Self::Loading, Self::Failed];

    fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Loading => "loading",
            Self::Failed => "failed",
        }
    }
}

/// The numbers of all share coordinators, under the names of Kafka's `share-coordinator-metrics`.
#[derive(Debug)]
pub struct ShareCoordinatorMetrics {
    writes: Counter,
    write_latency: Histogram,
    load_time: Histogram,
    partitions: Family<StateLabel, Gauge>,
    pruned: Family<PartitionLabel, Gauge>,
}

impl ShareCoordinatorMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            writes: Counter::default(),
            write_latency: milliseconds(),
            load_time: milliseconds(),
            partitions: Family::default(),
            pruned: Family::default(),
        };
        registry.register(
            "share_coordinator_write",
            "Changes of share state written",
            metrics.writes.clone(),
        );
        registry.register(
            "share_coordinator_write_latency_ms",
            "Time to write one change of share state",
            metrics.write_latency.clone(),
        );
        registry.register(
            "share_coordinator_partition_load_time_ms",
            "Time to load a partition of __share_group_state",
            metrics.load_time.clone(),
        );
        registry.register(
            "share_coordinator_num_partitions",
            "Partitions of __share_group_state, by state",
            metrics.partitions.clone(),
        );
        registry.register(
            "share_coordinator_last_pruned_offset",
            "The offset below which a partition of __share_group_state was deleted",
            metrics.pruned.clone(),
        );
        metrics
    }

    /// A change was written.
    pub fn wrote(&self, since: Stopwatch) {
        self.writes.inc();
        self.write_latency.observe(since.ms());
    }

    /// A partition was replayed.
    pub fn loaded(&self, since: Stopwatch) {
        self.load_time.observe(since.ms());
    }

    pub(super) fn observe(&self, broker: &Broker) {
        let shards = broker.share_states.states(broker);
        for state in ShardState::ALL {
            let label = StateLabel {
                state: state.name(),
            };
            let count = shards.iter().filter(|(_, of, _)| *of == state).count();
            self.partitions
                .get_or_create_owned(&label)
                .set(count as i64);
        }
        self.pruned.clear();
        for (partition, _, pruned) in shards {
            if pruned > 0 {
                let label = PartitionLabel {
                    topic: SHARE_GROUP_STATE,
                    partition,
                };
                self.pruned.get_or_create_owned(&label).set(pruned);
            }
        }
    }
}
