//! Share groups: series by group, topic and share partition, under Kafka's names.
//!
//! A loaded share partition holds its series ([`SlotMetrics`]), so that a request looks nothing up by name.
//! Series go with their group, topic or partition; what no loaded share partition holds any more goes
//! with the next scrape, as in Kafka when a broker stops leading it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::share::types::AcquiredRange;
use ottla_coordinator::types::Uuid;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::histograms::{milliseconds, percent, records};
use super::labels::GroupLabel;
use super::share_requests::ShareRequests;
use crate::broker::Broker;
use crate::clock::Stopwatch;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartitionLabel {
    group: String,
    topic: String,
    partition: i32,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// What is measured of a group's fetches.
#[derive(Debug)]
pub struct GroupMetrics {
    acquire_time: Histogram,
    fetch_ratio: Histogram,
}

impl GroupMetrics {
    /// A fetch that asked for `asked` share partitions got records of `got` of them, or gave up waiting.
    pub fn fetched(&self, since: Stopwatch, asked: usize, got: usize) {
        self.acquire_time.observe(since.ms());
        if asked > 0 {
            self.fetch_ratio.observe(got as f64 * 100.0 / asked as f64);
        }
    }
}

/// What is measured of one share partition.
#[derive(Debug)]
pub struct SlotMetrics {
    label: PartitionLabel,
    /// Locks that expired.
    pub lock_timeouts: Counter,
    batch_records: Histogram,
    turn_time: Histogram,
    turn_ratio: Histogram,
    last_turn: Mutex<Option<Stopwatch>>,
    /// Of its group.
    pub group: Arc<GroupMetrics>,
}

impl SlotMetrics {
    /// A fetch had its turn at the share partition, and what it acquired.
    pub fn turn(&self, watch: Stopwatch, acquired: &[AcquiredRange]) {
        let busy = watch.ms();
        self.turn_time.observe(busy);
        let now = Some(Stopwatch::start());
        let mut last = self
            .last_turn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last, now);
        drop(last);
        if let Some(whole) = before.map(Stopwatch::ms).filter(|ms| *ms > 0.0) {
            self.turn_ratio.observe((busy / whole * 100.0).min(100.0));
        }
        for range in acquired {
            let count = range.last - range.first + 1;
            self.batch_records.observe(count as f64);
        }
    }
}

#[derive(Debug, Default)]
struct Held {
    groups: HashMap<Arc<str>, Arc<GroupMetrics>>,
    slots: HashMap<ShareKey, Arc<SlotMetrics>>,
}

/// The series of all share groups.
#[derive(Debug)]
pub struct ShareMetrics {
    held: RwLock<Held>,
    /// Requests by topic, and those that wait.
    pub requests: ShareRequests,
    /// How long it took to load a share partition.
    pub load_time: Histogram,
    /// Share sessions that ended because their connection did.
    pub session_evictions: Counter,
    /// Assignments made.
    pub rebalances: Counter,
    acquire_time: Histograms<GroupLabel>,
    fetch_ratio: Histograms<GroupLabel>,
    lock_timeouts: Family<PartitionLabel, Counter>,
    batch_records: Histograms<PartitionLabel>,
    turn_time: Histograms<PartitionLabel>,
    turn_ratio: Histograms<PartitionLabel>,
    in_flight: Family<PartitionLabel, Gauge>,
    in_flight_batches: Family<PartitionLabel, Gauge>,
    sessions: Gauge,
    session_partitions: Gauge,
    conflicts: Gauge,
}

impl ShareMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            held: RwLock::default(),
            requests: ShareRequests::register(registry),
            load_time: milliseconds(),
            session_evictions: Counter::default(),
            rebalances: Counter::default(),
            acquire_time: Family::new_with_constructor(milliseconds),
            fetch_ratio: Family::new_with_constructor(percent),
            lock_timeouts: Family::default(),
            batch_records: Family::new_with_constructor(records),
            turn_time: Family::new_with_constructor(milliseconds),
            turn_ratio: Family::new_with_constructor(percent),
            in_flight: Family::default(),
            in_flight_batches: Family::default(),
            sessions: Gauge::default(),
            session_partitions: Gauge::default(),
            conflicts: Gauge::default(),
        };
        metrics.register_groups(registry);
        metrics.register_partitions(registry);
        metrics
    }

    fn register_groups(&self, registry: &mut Registry) {
        registry.register(
            "partition_load_time_ms",
            "Time to load the state of a share partition",
            self.load_time.clone(),
        );
        registry.register(
            "topic_partitions_acquire_time_ms",
            "Time from the start of a ShareFetch until it acquires records or stops waiting, by group",
            self.acquire_time.clone(),
        );
        registry.register(
            "request_topic_partitions_fetch_ratio",
            "Of the share partitions of a ShareFetch, how many percent gave records, by group",
            self.fetch_ratio.clone(),
        );
        registry.register(
            "share_sessions_count",
            "Share sessions",
            self.sessions.clone(),
        );
        registry.register(
            "share_partitions_count",
            "Partitions in share sessions",
            self.session_partitions.clone(),
        );
        registry.register(
            "share_session_evictions",
            "Share sessions that ended because their connection did",
            self.session_evictions.clone(),
        );
        registry.register(
            "share_group_rebalance_count",
            "Assignments made by share groups",
            self.rebalances.clone(),
        );
        registry.register(
            "dlq_isolation_conflicts",
            "Groups whose dead letters are off because another group names the topic that they want alone",
            self.conflicts.clone(),
        );
    }

    fn register_partitions(&self, registry: &mut Registry) {
        registry.register(
            "in_flight_message_count",
            "Offsets between the first and the last that a share partition keeps state of",
            self.in_flight.clone(),
        );
        registry.register(
            "in_flight_batch_count",
            "Runs of offsets in one state that a share partition keeps",
            self.in_flight_batches.clone(),
        );
        registry.register(
            "in_flight_batch_message_count",
            "Records of each acquired batch",
            self.batch_records.clone(),
        );
        registry.register(
            "acquisition_lock_timeout",
            "Records whose acquisition lock expired, by share partition",
            self.lock_timeouts.clone(),
        );
        registry.register(
            "fetch_lock_time_ms",
            "Time that a ShareFetch works on one share partition: reading and acquiring",
            self.turn_time.clone(),
        );
        registry.register(
            "fetch_lock_ratio",
            "Of the time since the last ShareFetch worked on the share partition, how many percent this one did",
            self.turn_ratio.clone(),
        );
    }

    /// The series of a share partition that is being loaded.
    pub fn slot(&self, key: &ShareKey, topic: &str) -> Arc<SlotMetrics> {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = held.slots.get(key) {
            return Arc::clone(slot);
        }
        let group = held.groups.entry(Arc::clone(&key.group_id));
        let group = Arc::clone(group.or_insert_with(|| {
            let label = GroupLabel {
                group: key.group_id.to_string(),
            };
            Arc::new(GroupMetrics {
                acquire_time: self.acquire_time.get_or_create_owned(&label),
                fetch_ratio: self.fetch_ratio.get_or_create_owned(&label),
            })
        }));
        let label = PartitionLabel {
            group: key.group_id.to_string(),
            topic: topic.to_owned(),
            partition: key.partition.partition,
        };
        let slot = Arc::new(SlotMetrics {
            lock_timeouts: self.lock_timeouts.get_or_create_owned(&label),
            batch_records: self.batch_records.get_or_create_owned(&label),
            turn_time: self.turn_time.get_or_create_owned(&label),
            turn_ratio: self.turn_ratio.get_or_create_owned(&label),
            last_turn: Mutex::default(),
            label,
            group,
        });
        held.slots.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// A group is gone, and its series with it.
    pub fn group_deleted(&self, group: &str) {
        self.forget_slots(|key, _| &*key.group_id == group);
        self.forget_groups(|name, _| name == group);
    }

    /// A topic is gone, and its series with it.
    pub fn topic_deleted(&self, topic: Uuid) {
        self.forget_slots(|key, _| key.partition.topic_id == topic);
        self.requests.topic_deleted(topic);
    }

    fn forget_slots(&self, which: impl Fn(&ShareKey, &Arc<SlotMetrics>) -> bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        for (_, slot) in held.slots.extract_if(|key, slot| which(key, slot)) {
            let label = &slot.label;
            self.lock_timeouts.remove(label);
            self.batch_records.remove(label);
            self.turn_time.remove(label);
            self.turn_ratio.remove(label);
        }
    }

    fn forget_groups(&self, which: impl Fn(&str, &Arc<GroupMetrics>) -> bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        for (group, _) in held
            .groups
            .extract_if(|group, metrics| which(group, metrics))
        {
            let label = GroupLabel {
                group: group.to_string(),
            };
            self.acquire_time.remove(&label);
            self.fetch_ratio.remove(&label);
        }
    }

    /// What there is now. One at a time: see [`super::Metrics::render`].
    pub(super) fn observe(&self, broker: &Broker) {
        // Nobody but the map holds it: no share partition of it is loaded.
        self.forget_slots(|_, slot| Arc::strong_count(slot) == 1);
        self.forget_groups(|_, group| Arc::strong_count(group) == 1);
        let mut in_flight = BTreeMap::new();
        for slot in broker.shares.current() {
            let runs = slot.cell.in_flight();
            let records: i64 = runs.iter().map(|run| run.last - run.first + 1).sum();
            in_flight.insert(slot.key.clone(), (records, runs.len() as i64));
        }
        self.in_flight.clear();
        self.in_flight_batches.clear();
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        for (key, (records, runs)) in in_flight {
            // A group that was deleted since has no series any more.
            if let Some(slot) = held.slots.get(&key) {
                self.in_flight.get_or_create_owned(&slot.label).set(records);
                let batches = self.in_flight_batches.get_or_create_owned(&slot.label);
                batches.set(runs);
            }
        }
        drop(held);
        let (mut sessions, mut partitions) = (0, 0);
        for node in broker.nodes() {
            let of_node = node.sessions();
            sessions += of_node.len();
            partitions += of_node.partition_count();
        }
        self.sessions.set(sessions as i64);
        self.session_partitions.set(partitions as i64);
        let isolation = broker.cluster.isolation();
        self.conflicts.set(isolation.all_refused().len() as i64);
    }
}
