//! Leaders of the whole process: brokers that go and come back, elections and reassignments with what
//! follows from them, the return of leadership to preferred replicas, and the numbers of all that.

use std::sync::{Arc, Weak};

use ottla_coordinator::types::Ts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::broker::Broker;
use crate::cluster::{Cluster, Elected, Leadership, NOBODY, Reassignment};
use crate::deadlines::Due;
use crate::error_code::ApiError;

impl Broker {
    /// A logical broker goes down: leaders and coordinators move to the others.
    pub fn node_down(&self, id: i32) -> Result<(), ApiError> {
        self.node_moved(id, false)
    }

    /// A logical broker is back.
    pub fn node_up(&self, id: i32) -> Result<(), ApiError> {
        self.node_moved(id, true)
    }

    fn node_moved(&self, id: i32, alive: bool) -> Result<(), ApiError> {
        self.cluster.set_alive(id, alive, self.clock.now())?;
        self.leaders_moved();
        Ok(())
    }

    /// Elects leaders, see [`Cluster::elect_leaders`].
    pub(crate) fn elect_leaders(
        &self,
        wanted: Option<Vec<(Arc<str>, i32)>>,
        unclean: bool,
    ) -> Vec<Elected> {
        let now = self.clock.now();
        let elected = self.cluster.elect_leaders(wanted, unclean, now);
        self.leaders_moved();
        elected
    }

    /// Changes the replicas of partitions, see [`Cluster::reassign`]; each has its own outcome.
    pub fn reassign(&self, moves: &[Reassignment], same_factor: bool) -> Vec<Result<(), ApiError>> {
        let now = self.clock.now();
        let each = moves.iter();
        let outcomes = each.map(|to| self.cluster.reassign(to, same_factor, now));
        let outcomes = outcomes.collect();
        self.leaders_moved();
        outcomes
    }

    /// What follows a change of leaders: share partitions and coordinators go with them.
    pub(crate) fn leaders_moved(&self) {
        self.shares.leaders_changed(self);
        self.groups.leaders_changed(self);
        self.dead_letters.wake(self);
    }
}

/// Lets preferred replicas lead again, every `leader.imbalance.check.interval.seconds`.
#[derive(Debug)]
pub(crate) struct Rebalancer(pub(crate) Weak<Broker>);

impl Rebalancer {
    /// When it looks next; never where `auto.leader.rebalance.enable` is off.
    pub(crate) fn next(broker: &Broker, now: Ts) -> Option<Ts> {
        let topics = &broker.config().topics;
        let wait = topics.leader_imbalance_check_interval_s;
        let wait = wait.saturating_mul(1000);
        topics
            .auto_leader_rebalance
            .then(|| now.saturating_add(wait))
    }
}

impl Due for Rebalancer {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.0.upgrade()?;
        if broker.cluster.prefer_leaders(now) {
            broker.leaders_moved();
        }
        Self::next(&broker, now)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BrokerLabel {
    broker: i32,
}

type PerBroker = Family<BrokerLabel, Gauge>;

/// Kafka's gauges of `ReplicaManager` (a logical broker each) and `KafkaController`.
#[derive(Debug)]
pub(crate) struct LeaderMetrics {
    leaders: PerBroker,
    partitions: PerBroker,
    under_replicated: PerBroker,
    under_min_isr: PerBroker,
    at_min_isr: PerBroker,
    reassigning: PerBroker,
    global_topics: Gauge,
    global_partitions: Gauge,
    offline: Gauge,
    imbalance: Gauge,
    active: Gauge,
    fenced: Gauge,
}

impl LeaderMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let mut of_broker = |name: &str, help: &str| {
            let family = PerBroker::default();
            registry.register(format!("replica_manager_{name}"), help, family.clone());
            family
        };
        let leaders = of_broker("leader_count", "Partitions that the broker leads");
        let partitions = of_broker("partition_count", "Partitions that the broker replicates");
        let under_replicated = of_broker(
            "under_replicated_partitions",
            "Partitions led by the broker that have fewer replicas in sync than replicas",
        );
        let under_min_isr = of_broker(
            "under_min_isr_partition_count",
            "Partitions led by the broker whose ISR is under min.insync.replicas",
        );
        let at_min_isr = of_broker(
            "at_min_isr_partition_count",
            "Partitions led by the broker whose ISR is just min.insync.replicas",
        );
        let reassigning = of_broker(
            "reassigning_partitions",
            "Partitions led by the broker whose replicas are being changed",
        );
        let mut of_cluster = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(format!("controller_{name}"), help, gauge.clone());
            gauge
        };
        Self {
            leaders,
            partitions,
            under_replicated,
            under_min_isr,
            at_min_isr,
            reassigning,
            global_topics: of_cluster("global_topic_count", "Topics"),
            global_partitions: of_cluster("global_partition_count", "Partitions"),
            offline: of_cluster("offline_partitions_count", "Partitions that nobody leads"),
            imbalance: of_cluster(
                "preferred_replica_imbalance_count",
                "Partitions that are not led by their preferred replica",
            ),
            active: of_cluster("active_broker_count", "Logical brokers that are up"),
            fenced: of_cluster("fenced_broker_count", "Logical brokers that are stopped"),
        }
    }

    /// Counts everything anew.
    pub(crate) fn observe(&self, cluster: &Cluster) {
        let brokers = cluster.brokers();
        let up = brokers.values().filter(|broker| broker.alive).count();
        self.active.set(up as i64);
        self.fenced.set((brokers.len() - up) as i64);
        for &broker in brokers.keys() {
            for family in self.per_broker() {
                family.get_or_create(&BrokerLabel { broker }).set(0);
            }
        }
        for gauge in [&self.global_partitions, &self.offline, &self.imbalance] {
            gauge.set(0);
        }
        let image = cluster.image();
        self.global_topics.set(image.topics.len() as i64);
        for topic in image.topics.values() {
            let min_isr = topic.config().min_insync_replicas;
            for partition in topic.partitions().iter() {
                self.count(&partition.leadership(), min_isr);
            }
        }
    }

    fn per_broker(&self) -> [&PerBroker; 6] {
        [
            &self.leaders,
            &self.partitions,
            &self.under_replicated,
            &self.under_min_isr,
            &self.at_min_isr,
            &self.reassigning,
        ]
    }

    fn count(&self, partition: &Leadership, min_isr: i32) {
        let add = |family: &PerBroker, broker| {
            family.get_or_create(&BrokerLabel { broker }).inc();
        };
        self.global_partitions.inc();
        if partition.leader != partition.preferred() {
            self.imbalance.inc();
        }
        for &replica in &partition.replicas {
            add(&self.partitions, replica);
        }
        let leader = partition.leader;
        if leader == NOBODY {
            self.offline.inc();
            return;
        }
        add(&self.leaders, leader);
        if partition.isr.len() < partition.original().len() {
            add(&self.under_replicated, leader);
        }
        match partition.isr.len().cmp(&partition.min_isr(min_isr)) {
            std::cmp::Ordering::Less => add(&self.under_min_isr, leader),
            std::cmp::Ordering::Equal => add(&self.at_min_isr, leader),
            std::cmp::Ordering::Greater => {}
        }
        if partition.is_reassigning() {
            add(&self.reassigning, leader);
        }
    }
}
