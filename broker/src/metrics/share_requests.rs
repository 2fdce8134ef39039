//! ShareFetch and acknowledgements of all topics and by topic, and the fetches that wait.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use ottla_coordinator::types::Uuid;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::cluster::Cluster;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TopicLabel {
    topic: String,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Records.
    Fetch,
    /// Acknowledgements to be taken, with a ShareFetch or alone.
    Acknowledgement,
}

/// The topics of one request, each with whether any of its partitions failed.
pub type TopicsAsked = BTreeMap<Uuid, bool>;

#[derive(Debug, Clone, Default)]
struct Counters {
    total: [Counter; 2],
    failed: [Counter; 2],
}

impl Counters {
    fn count(&self, asked: Asked, failed: bool) {
        self.total[asked as usize].inc();
        if failed {
            self.failed[asked as usize].inc();
        }
    }
}

/// Counters of requests.
#[derive(Debug, Default)]
pub struct ShareRequests {
    all: Counters,
    topics: RwLock<HashMap<Uuid, (TopicLabel, Arc<Counters>)>>,
    total: [Family<TopicLabel, Counter>; 2],
    failed: [Family<TopicLabel, Counter>; 2],
    expired: Counter,
    delayed: Gauge,
    watched: Gauge,
}

impl ShareRequests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let requests = Self::default();
        let kinds = [
            (Asked::Fetch, "share_fetch"),
            (Asked::Acknowledgement, "share_acknowledgement"),
        ];
        for (asked, name) in kinds {
            let (all, at) = (&requests.all, asked as usize);
            let counters = [
                ("total", "Requests", &all.total[at], &requests.total[at]),
                (
                    "failed",
                    "Requests refused, or refused for a partition",
                    &all.failed[at],
                    &requests.failed[at],
                ),
            ];
            for (which, help, counter, family) in counters {
                let name = format!("{which}_{name}_requests");
                registry.register(&name, help, counter.clone());
                let help = format!("{help}, by topic");
                registry.register(format!("topic_{name}"), help, family.clone());
            }
        }
        registry.register(
            "delayed_share_fetch_expires",
            "ShareFetches that waited in vain",
            requests.expired.clone(),
        );
        let gauges = [
            (
                "num_delayed_operations",
                "Requests that wait",
                &requests.delayed,
            ),
            (
                "purgatory_size",
                "What the waiting requests watch",
                &requests.watched,
            ),
        ];
        for (name, help, gauge) in gauges {
            let labels = [("delayed_operation".into(), "ShareFetch".into())].into_iter();
            let registry = registry.sub_registry_with_labels(labels);
            registry.register(name, help, gauge.clone());
        }
        requests
    }

    /// A request was refused as a whole.
    pub fn refused(&self, asked: Asked) {
        self.all.count(asked, true);
    }

    /// A request was answered.
    pub fn answered(&self, cluster: &Cluster, asked: Asked, topics: &TopicsAsked) {
        let failed = topics.values().any(|failed| *failed);
        self.all.count(asked, failed);
        for (&topic, &failed) in topics {
            if let Some(counters) = self.of_topic(cluster, topic) {
                counters.count(asked, failed);
            }
        }
    }

    /// The counters of a topic that exists.
    fn of_topic(&self, cluster: &Cluster, id: Uuid) -> Option<Arc<Counters>> {
        let known = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, counters)) = known.get(&id) {
            return Some(Arc::clone(counters));
        }
        drop(known);
        let wanted = ottla_protocol::Uuid::from_bytes(id.0);
        let label = TopicLabel {
            topic: cluster.topic_by_id(wanted)?.name.to_string(),
        };
        let of = |families: &[Family<TopicLabel, Counter>; 2]| {
            [0, 1].map(|at| families[at].get_or_create_owned(&label))
        };
        let counters = Arc::new(Counters {
            total: of(&self.total),
            failed: of(&self.failed),
        });
        let mut known = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(id, (label, Arc::clone(&counters)));
        drop(known);
        // Deleted meanwhile, perhaps before there was anything to forget.
        if cluster.topic_by_id(wanted).is_none() {
            self.topic_deleted(id);
        }
        Some(counters)
    }

    pub(super) fn topic_deleted(&self, id: Uuid) {
        let mut known = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((label, _)) = known.remove(&id) {
            for family in self.total.iter().chain(&self.failed) {
                family.remove(&label);
            }
        }
    }

    /// A ShareFetch begins to wait; it watches so many things until what is returned is dropped.
    pub fn wait(&self, watched: usize) -> Waiting<'_> {
        let watched = watched as i64;
        self.delayed.inc();
        self.watched.inc_by(watched);
        Waiting {
            requests: self,
            watched,
        }
    }

    /// A ShareFetch waited in vain.
    pub fn expired(&self) {
        self.expired.inc();
    }
}

/// A ShareFetch that waits.
#[derive(Debug)]
pub struct Waiting<'a> {
    requests: &'a ShareRequests,
    watched: i64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.requests.delayed.dec();
        self.requests.watched.dec_by(self.watched);
    }
}
