//! What the cluster looks like: topics, partitions, their leaders, stored configurations, features.
//!
//! The image changes only by applying a record that was appended to `__cluster_metadata`
//! ([`super::controller`]); everything else reads it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use ottla_coordinator::wait::WaitList;
use ottla_protocol::Uuid;
use ottla_storage::Log;

use super::leadership::Leadership;
use crate::config::{Configs, LogDefaults, TopicConfig};
use crate::log_config::log_config;

/// One partition: its log, and who leads it.
pub struct Partition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's index.
    pub index: i32,
    /// The records.
    pub log: Arc<Log>,
    /// Requests that wait for records, for a change of leader, or for the end of the partition.
    pub waiters: Arc<WaitList>,
    leadership: RwLock<Arc<Leadership>>,
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.index)
    }
}

impl Partition {
    /// A partition over an open log, whose publishes wake its waiters.
    pub fn new(
        topic: Arc<str>,
        topic_id: Uuid,
        index: i32,
        log: Arc<Log>,
        leadership: Leadership,
    ) -> Self {
        let waiters = Arc::new(WaitList::new());
        let wake = Arc::clone(&waiters);
        log.on_publish(Arc::new(move || wake.wake_all()));
        Self {
            topic,
            topic_id,
            index,
            log,
            waiters,
            leadership: RwLock::new(Arc::new(leadership)),
        }
    }

    /// Leader, replicas, ISR.
    pub fn leadership(&self) -> Arc<Leadership> {
        Arc::clone(
            &self
                .leadership
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// The leading broker, or [`NOBODY`].
    pub fn leader(&self) -> i32 {
        self.leadership
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .leader
    }

    /// Replaces the leadership and wakes whoever waits, so that requests notice.
    pub(super) fn set_leadership(&self, next: Leadership) {
        *self
            .leadership
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        self.waiters.wake_all();
    }
}

/// One topic.
#[derive(Debug)]
pub struct Topic {
    /// Its name.
    pub name: Arc<str>,
    /// Its id.
    pub id: Uuid,
    partitions: RwLock<Arc<[Arc<Partition>]>>,
    config: RwLock<Arc<TopicConfig>>,
}

impl Topic {
    /// A topic without partitions.
    pub fn new(name: Arc<str>, id: Uuid, config: TopicConfig) -> Self {
        Self {
            name,
            id,
            partitions: RwLock::new(Arc::new([])),
            config: RwLock::new(Arc::new(config)),
        }
    }

    /// The partitions, by index.
    pub fn partitions(&self) -> Arc<[Arc<Partition>]> {
        Arc::clone(
            &self
                .partitions
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// One partition.
    pub fn partition(&self, index: i32) -> Option<Arc<Partition>> {
        let partitions = self
            .partitions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        partitions.get(usize::try_from(index).ok()?).cloned()
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<TopicConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_config(&self, config: TopicConfig, log: &LogDefaults) {
        for partition in self.partitions().iter() {
            partition.log.set_config(log_config(&config, log));
        }
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    pub(super) fn add_partition(&self, partition: Partition) {
        let mut slot = self
            .partitions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all = slot.to_vec();
        all.push(Arc::new(partition));
        all.sort_by_key(|p| p.index);
        *slot = all.into();
    }

    /// Whether it is one of the broker's own topics.
    pub fn is_internal(&self) -> bool {
        is_internal(&self.name)
    }
}

/// Group offsets and group metadata.
pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
/// State of share partitions.
pub const SHARE_GROUP_STATE: &str = "__share_group_state";
/// State of transactions.
pub const TRANSACTION_STATE: &str = "__transaction_state";
/// The log of the image itself; not a topic that clients see.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Whether `name` is one of the broker's own topics, which clients do not write.
pub fn is_internal(name: &str) -> bool {
    matches!(
        name,
        CONSUMER_OFFSETS | SHARE_GROUP_STATE | TRANSACTION_STATE
    )
}

/// The whole image.
#[derive(Debug)]
pub struct Image {
    /// Topics by name.
    pub topics: BTreeMap<Arc<str>, Arc<Topic>>,
    /// Topics by id.
    pub topics_by_id: HashMap<Uuid, Arc<Topic>>,
    /// Rises after a topic has come or gone, and after one has a partition more.
    pub topics_version: i64,
    /// Static and stored configurations.
    pub configs: Configs,
    /// Finalized feature levels.
    pub features: BTreeMap<String, i16>,
    /// Counts the changes of features.
    pub features_epoch: i64,
    /// The first producer id that has not been handed out.
    pub next_producer_id: i64,
}

impl Image {
    /// Nothing but the static configuration.
    pub fn new(configs: Configs) -> Self {
        Self {
            topics: BTreeMap::new(),
            topics_by_id: HashMap::new(),
            topics_version: 0,
            configs,
            features: BTreeMap::new(),
            features_epoch: 0,
            next_producer_id: 0,
        }
    }
}
