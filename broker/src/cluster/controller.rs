//! The control plane: every change of topics, leaders, configurations and features.
//!
//! A change is a batch of records appended to `__cluster_metadata` in KRaft's schemas, then applied
//! to the [`Image`] (`apply.rs`). One lock orders the changes; restart replays the log. What can be asked
//! for is in `commands.rs` (topics, features), `configs.rs` and `leaders.rs`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use ottla_protocol::Uuid;
use ottla_storage::{Log, Store};

use super::image::{CLUSTER_METADATA, Image, Topic};
use super::leadership::NOBODY;
use super::placement::Sites;
use crate::config::{BrokerConfig, Configs, GroupConfig, Isolation, StaticConfig};
use crate::error_code::ApiError;
use crate::features;
use crate::log_config::metadata_log_config;
use crate::records::{self, MetadataChange};
use crate::start_error::StartError;

/// A logical broker as the control plane sees it.
#[derive(Debug, Clone)]
pub struct BrokerState {
    /// Whether its port is open.
    pub alive: bool,
    /// Its rack, if one is set.
    pub rack: Option<String>,
}

/// What to make: a topic.
#[derive(Debug, Clone, Default)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Number of partitions; -1 for the default.
    pub partitions: i32,
    /// Replication factor; -1 for the default.
    pub replication_factor: i16,
    /// Replicas of each partition, by index, where the client chose them.
    pub assignments: Vec<(i32, Vec<i32>)>,
    /// Its own configuration.
    pub configs: BTreeMap<String, String>,
}

/// Configurations that were resolved since the last change.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    brokers: HashMap<i32, Arc<BrokerConfig>>,
    pub(super) groups: HashMap<String, Arc<GroupConfig>>,
    pub(super) isolation: Option<Arc<Isolation>>,
}

/// The control plane and the image that it maintains.
#[derive(Debug)]
pub struct Cluster {
    pub(super) image: RwLock<Image>,
    /// The metadata log; its lock orders all changes.
    log: Mutex<Arc<Log>>,
    pub(super) store: Arc<Store>,
    pub(super) brokers: RwLock<BTreeMap<i32, BrokerState>>,
    /// The first broker's id: its configuration is what topics and groups are resolved over.
    pub(super) first: i32,
    pub(super) snapshots: RwLock<Snapshots>,
    /// Where the next topic's first partition goes.
    pub(super) next_start: AtomicUsize,
}

impl Cluster {
    /// Opens the metadata log and replays it; a log that is new gets the features and defaults of a
    /// fresh cluster.
    pub fn open(
        store: Arc<Store>,
        statics: Arc<StaticConfig>,
        now: i64,
    ) -> Result<Self, StartError> {
        let levels = features::initial(statics.features()).map_err(StartError::Feature)?;
        let existing = store
            .logs()
            .into_iter()
            .find(|(dir, _)| dir == "__cluster_metadata-0");
        let log = match existing {
            Some((_, log)) => log,
            None => store.create_log(CLUSTER_METADATA, 0, [0; 16], metadata_log_config(), now)?,
        };
        let ids = statics.broker_ids();
        let image = Image::new(Configs::new(statics));
        let brokers = ids.iter().map(|&id| {
            (
                id,
                BrokerState {
                    alive: true,
                    rack: image.configs.broker(id).rack,
                },
            )
        });
        let cluster = Self {
            brokers: RwLock::new(brokers.collect()),
            image: RwLock::new(image),
            log: Mutex::new(Arc::clone(&log)),
            store,
            first: ids.first().copied().unwrap_or(0),
            snapshots: RwLock::default(),
            next_start: AtomicUsize::new(0),
        };
        let changes = records::read_metadata(&log)?;
        if changes.is_empty() {
            cluster.format(levels, now)?;
        } else {
            for change in changes {
                cluster.apply(change, now)?;
            }
            cluster.elect_after_restart(now)?;
        }
        cluster.skip_known_producers();
        cluster.report_groups();
        Ok(cluster)
    }

    /// Logs that came from another broker know producers whose ids this one has not handed out.
    fn skip_known_producers(&self) {
        let logs = self.store.logs();
        let known = logs.iter().flat_map(|(_, log)| log.producers());
        let ids = known.map(|producer| producer.producer_id);
        // Clients may write any id: one that leaves no room above it is none of a broker's.
        let highest = ids.filter(|&id| id < i64::MAX / 2).max();
        let mut image = self.image.write().unwrap_or_else(PoisonError::into_inner);
        image.next_producer_id = image.next_producer_id.max(highest.unwrap_or(-1) + 1);
    }

    /// The first records of a fresh cluster.
    fn format(&self, levels: BTreeMap<String, i16>, now: i64) -> Result<(), ApiError> {
        let elr = levels
            .get("eligible.leader.replicas.version")
            .is_some_and(|&level| level > 0);
        let mut changes: Vec<_> = levels
            .into_iter()
            .map(|(name, level)| MetadataChange::Feature { name, level })
            .collect();
        if elr {
            let initial = self.image().configs.initial_changes();
            changes.extend(initial.into_iter().map(MetadataChange::Config));
        }
        self.commit(&self.log_guard(), changes, now)
    }

    /// What a broker runs with.
    pub fn broker_config(&self, id: i32) -> Arc<BrokerConfig> {
        let kept = self
            .snapshots
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = kept.brokers.get(&id) {
            return Arc::clone(config);
        }
        drop(kept);
        let image = self.image();
        let config = Arc::new(image.configs.broker(id));
        let mut kept = self
            .snapshots
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        kept.brokers.insert(id, Arc::clone(&config));
        config
    }

    pub(super) fn log_guard(&self) -> MutexGuard<'_, Arc<Log>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The image, for a short look.
    pub fn image(&self) -> RwLockReadGuard<'_, Image> {
        self.image.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A topic by name.
    pub fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.image().topics.get(name).cloned()
    }

    /// A topic by id.
    pub fn topic_by_id(&self, id: Uuid) -> Option<Arc<Topic>> {
        self.image().topics_by_id.get(&id).cloned()
    }

    /// The logical brokers, stopped ones included.
    pub fn brokers(&self) -> BTreeMap<i32, BrokerState> {
        self.brokers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The ids of the brokers that are up.
    pub fn alive(&self) -> Vec<i32> {
        let brokers = self.brokers.read().unwrap_or_else(PoisonError::into_inner);
        brokers
            .iter()
            .filter(|(_, b)| b.alive)
            .map(|(&id, _)| id)
            .collect()
    }

    /// The brokers that replicas may be placed on.
    pub(super) fn sites(&self) -> Sites {
        let brokers = self.brokers.read().unwrap_or_else(PoisonError::into_inner);
        let up = brokers.iter().filter(|(_, broker)| broker.alive);
        Sites {
            registered: brokers.keys().copied().collect(),
            up: up.map(|(&id, broker)| (id, broker.rack.clone())).collect(),
        }
    }

    /// End offset and latest epoch of the metadata log.
    pub fn metadata_end(&self) -> (i64, i32) {
        let log = self.log_guard();
        (log.end_offset(), log.latest_epoch().unwrap_or(0))
    }

    /// The broker that answers for the controller: the first one that is up.
    pub fn controller_id(&self) -> i32 {
        self.alive().first().copied().unwrap_or(NOBODY)
    }
}
