//! The numbers of share groups' delivery (KIP-1249 and KIP-1316, drafts).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ottla_coordinator::share::breaker::Counts;
use ottla_coordinator::share::delivery::{DeliveryView, PauseReason};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::labels::{GroupLabel, ReasonLabel};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WindowLabel {
    group: String,
    outcome: &'static str,
}

/// Delivery state, breaker and window of every share group.
#[derive(Debug, Default)]
pub struct DeliveryMetrics {
    paused: Family<ReasonLabel, Gauge>,
    tripped: Family<GroupLabel, Counter>,
    rate: Family<GroupLabel, Gauge<f64, AtomicU64>>,
    window: Family<WindowLabel, Gauge>,
}

impl DeliveryMetrics {
    /// Registers them all.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "share_group_delivery_paused",
            "1 for each share group whose delivery is paused, by reason",
            metrics.paused.clone(),
        );
        registry.register(
            "dlq_circuit_breaker_tripped",
            "Times that a share group's circuit breaker has tripped",
            metrics.tripped.clone(),
        );
        registry.register(
            "dlq_rate",
            "Dead letters to all records of the breaker's window",
            metrics.rate.clone(),
        );
        registry.register(
            "dlq_window_records",
            "Records of the breaker's window, by outcome",
            metrics.window.clone(),
        );
        metrics
    }

    /// A breaker tripped.
    pub fn tripped(&self, group: &str) {
        let group = group.to_owned();
        self.tripped
            .get_or_create_owned(&GroupLabel { group })
            .inc();
    }

    /// A group is gone, and its series with it.
    pub fn group_deleted(&self, group: &str) {
        let group = group.to_owned();
        self.tripped.remove(&GroupLabel { group });
    }

    /// What the groups deliver now.
    pub fn observe(&self, views: &[(Arc<str>, DeliveryView)]) {
        self.paused.clear();
        self.rate.clear();
        self.window.clear();
        for (name, view) in views {
            let group = name.to_string();
            if let Some(reason) = view.reason.map(PauseReason::name) {
                let group = group.clone();
                self.paused
                    .get_or_create_owned(&ReasonLabel { group, reason })
                    .set(1);
            }
            let counts = view.counts();
            let on = view.rules.breaker.enabled || view.rules.breaker.trips_on_given_up;
            if !on && counts == Counts::default() {
                continue;
            }
            let outcomes = [
                ("delivered", counts.delivered),
                ("dead_letter", counts.dlq_written),
                ("given_up", counts.given_up),
            ];
            for (outcome, records) in outcomes {
                let group = group.clone();
                self.window
                    .get_or_create_owned(&WindowLabel { group, outcome })
                    .set(records);
            }
            self.rate
                .get_or_create_owned(&GroupLabel { group })
                .set(counts.rate());
        }
    }
}
