//! The control plane: every change of topics, leaders, configurations and features.
//!
//! A change is a batch of records appended to `__cluster_metadata` in KRaft's schemas, then applied
//! to the [`Image`]. One lock orders the changes; restart replays the log.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use ottla_protocol::{ErrorCode, Uuid};
use ottla_storage::{Log, Store};

use super::image::{CLUSTER_METADATA, Image, Leadership, NOBODY, Partition, Topic};
use super::placement;
use crate::config::{
    BrokerConfig, ConfigChange, Configs, GroupConfig, ResourceType, StaticConfig, TopicConfig,
};
use crate::error_code::ApiError;
use crate::features;
use crate::log_config::{log_config, metadata_log_config};
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
struct Snapshots {
    brokers: HashMap<i32, Arc<BrokerConfig>>,
    groups: HashMap<String, Arc<GroupConfig>>,
}

/// Group configurations that are kept resolved at most.
const GROUPS_KEPT: usize = 10_000;

/// The control plane and the image that it maintains.
#[derive(Debug)]
pub struct Cluster {
    image: RwLock<Image>,
    /// The metadata log; its lock orders all changes.
    log: Mutex<Arc<Log>>,
    store: Arc<Store>,
    brokers: RwLock<BTreeMap<i32, BrokerState>>,
    /// The first broker's id: its configuration is what topics and groups are resolved over.
    first: i32,
    snapshots: RwLock<Snapshots>,
    /// Where the next topic's first partition goes.
    next_start: AtomicUsize,
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
            // As after any restart, the same leaders lead in a new epoch.
            let elections = cluster.elections();
            cluster.commit(cluster.log_guard(), elections, now)?;
        }
        Ok(cluster)
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
        self.commit(self.log_guard(), changes, now)
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

    /// What a group runs with.
    pub fn group_config(&self, group: &str) -> Arc<GroupConfig> {
        let kept = self
            .snapshots
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = kept.groups.get(group) {
            return Arc::clone(config);
        }
        drop(kept);
        let image = self.image();
        let config = Arc::new(image.configs.group(self.first, group));
        let mut kept = self
            .snapshots
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.groups.len() >= GROUPS_KEPT {
            kept.groups.clear();
        }
        kept.groups.insert(group.to_owned(), Arc::clone(&config));
        config
    }

    fn log_guard(&self) -> MutexGuard<'_, Arc<Log>> {
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

    /// The broker that answers for the controller: the first one that is up.
    pub fn controller_id(&self) -> i32 {
        self.alive().first().copied().unwrap_or(NOBODY)
    }

    /// Appends the changes as one batch and applies them.
    fn commit(
        &self,
        log: MutexGuard<'_, Arc<Log>>,
        changes: Vec<MetadataChange>,
        now: i64,
    ) -> Result<(), ApiError> {
        if changes.is_empty() {
            return Ok(());
        }
        records::append_metadata(&log, &changes, now)?;
        for change in changes {
            self.apply(change, now)?;
        }
        drop(log);
        Ok(())
    }

    fn apply(&self, change: MetadataChange, now: i64) -> Result<(), ApiError> {
        let mut image = self.image.write().unwrap_or_else(PoisonError::into_inner);
        match change {
            MetadataChange::Topic { name, id } => {
                let name: Arc<str> = name.into();
                let config = self.resolve(&image, &name);
                let topic = Arc::new(Topic::new(Arc::clone(&name), id, config));
                image.topics.insert(name, Arc::clone(&topic));
                image.topics_by_id.insert(id, topic);
            }
            MetadataChange::Partition {
                topic_id,
                index,
                leadership,
            } => {
                let Some(topic) = image.topics_by_id.get(&topic_id).cloned() else {
                    return Ok(());
                };
                drop(image);
                self.add_partition(&topic, index, leadership, now)?;
            }
            MetadataChange::PartitionChange {
                topic_id,
                index,
                leader,
                replicas,
                isr,
            } => {
                let topic = image.topics_by_id.get(&topic_id).cloned();
                drop(image);
                if let Some(partition) = topic.and_then(|t| t.partition(index)) {
                    change_leadership(&partition, leader, replicas, isr);
                }
            }
            MetadataChange::RemoveTopic { id } => {
                let Some(topic) = image.topics_by_id.remove(&id) else {
                    return Ok(());
                };
                image.topics.remove(&topic.name);
                image
                    .configs
                    .remove_resource(ResourceType::Topic, &topic.name);
                drop(image);
                self.remove_logs(&topic, now)?;
            }
            MetadataChange::Config(change) => {
                image.configs.apply(&change);
                *self
                    .snapshots
                    .write()
                    .unwrap_or_else(PoisonError::into_inner) = Snapshots::default();
                self.reconfigure(&image, &change);
            }
            MetadataChange::Feature { name, level } => {
                image.features.insert(name, level);
                image.features_epoch += 1;
            }
            MetadataChange::ProducerIds { next } => image.next_producer_id = next,
        }
        Ok(())
    }

    fn resolve(&self, image: &Image, topic: &str) -> TopicConfig {
        image.configs.topic(self.first, topic)
    }

    /// A stored configuration changed: topics take over what concerns them.
    fn reconfigure(&self, image: &Image, change: &ConfigChange) {
        let log = image.configs.broker(self.first).log;
        let set = |topic: &Arc<Topic>| topic.set_config(self.resolve(image, &topic.name), &log);
        match change.resource {
            ResourceType::Topic => {
                if let Some(topic) = image.topics.get(change.name.as_str()) {
                    set(topic);
                }
            }
            ResourceType::Broker => image.topics.values().for_each(set),
            _ => {}
        }
    }

    fn add_partition(
        &self,
        topic: &Arc<Topic>,
        index: i32,
        leadership: Leadership,
        now: i64,
    ) -> Result<(), ApiError> {
        let defaults = self.broker_config(self.first);
        let config = log_config(&topic.config(), &defaults.log);
        let log = match self.store.log(&topic.name, index) {
            Some(log) => {
                log.set_config(config);
                log
            }
            None => {
                let id = *topic.id.as_bytes();
                self.store.create_log(&topic.name, index, id, config, now)?
            }
        };
        let name = Arc::clone(&topic.name);
        topic.add_partition(Partition::new(name, topic.id, index, log, leadership));
        Ok(())
    }

    fn remove_logs(&self, topic: &Topic, now: i64) -> Result<(), ApiError> {
        for partition in topic.partitions().iter() {
            partition.set_leadership(Leadership {
                leader: NOBODY,
                ..Leadership::clone(&partition.leadership())
            });
            self.store.delete_log(&topic.name, partition.index, now)?;
        }
        Ok(())
    }

    /// Makes a topic. `validate_only` checks and reports what would be made.
    pub fn create_topic(
        &self,
        new: &NewTopic,
        validate_only: bool,
        now: i64,
    ) -> Result<(Uuid, Vec<Vec<i32>>), ApiError> {
        let log = self.log_guard();
        placement::check_name(&new.name)?;
        if let Some(clash) = self.clash(&new.name) {
            return Err(clash);
        }
        let start = self.next_start.fetch_add(1, Ordering::Relaxed);
        let replicas = placement::place(
            new,
            &self.broker_config(self.first).topics,
            &self.alive(),
            start,
        )?;
        let id = records::random_topic_id();
        if validate_only {
            return Ok((Uuid::nil(), replicas));
        }
        // The configuration comes first, so that replay makes the topic with it.
        let mut changes: Vec<_> = new
            .configs
            .iter()
            .map(|(key, value)| {
                MetadataChange::Config(ConfigChange {
                    resource: ResourceType::Topic,
                    name: new.name.clone(),
                    key: key.clone(),
                    value: Some(value.clone()),
                })
            })
            .collect();
        changes.push(MetadataChange::Topic {
            name: new.name.clone(),
            id,
        });
        changes.extend(replicas.iter().enumerate().map(|(index, replicas)| {
            let leadership = self.first_leadership(replicas);
            MetadataChange::Partition {
                topic_id: id,
                index: index as i32,
                leadership,
            }
        }));
        self.commit(log, changes, now)?;
        tracing::info!(topic = %new.name, partitions = replicas.len(), "topic created");
        Ok((id, replicas))
    }

    /// The error for a name that is taken, or that Kafka's metric names could not tell from one.
    fn clash(&self, name: &str) -> Option<ApiError> {
        let image = self.image();
        if image.topics.contains_key(name) {
            let message = format!("Topic '{name}' already exists.");
            return Some(ApiError::new(ErrorCode::TOPIC_ALREADY_EXISTS, message));
        }
        let folded = name.replace('.', "_");
        let twin = image
            .topics
            .keys()
            .find(|t| t.replace('.', "_") == folded)?;
        let message = format!("Topic '{name}' collides with existing topic: {twin}");
        Some(ApiError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))
    }

    fn first_leadership(&self, replicas: &[i32]) -> Leadership {
        let alive = self.alive();
        let isr: Vec<i32> = replicas
            .iter()
            .copied()
            .filter(|r| alive.contains(r))
            .collect();
        Leadership {
            leader: isr.first().copied().unwrap_or(NOBODY),
            leader_epoch: 0,
            partition_epoch: 0,
            replicas: replicas.to_vec(),
            isr: if isr.is_empty() {
                replicas.to_vec()
            } else {
                isr
            },
        }
    }

    /// Adds partitions until there are `total`; `assignments` are the new partitions' replicas.
    pub fn create_partitions(
        &self,
        name: &str,
        total: i32,
        assignments: Option<Vec<Vec<i32>>>,
        validate_only: bool,
        now: i64,
    ) -> Result<(), ApiError> {
        let log = self.log_guard();
        let topic = self
            .topic(name)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let have = topic.partitions();
        let start = self.next_start.fetch_add(1, Ordering::Relaxed);
        let replicas = placement::extend(name, &have, total, assignments, &self.alive(), start)?;
        if validate_only {
            return Ok(());
        }
        let changes = replicas
            .iter()
            .enumerate()
            .map(|(i, replicas)| MetadataChange::Partition {
                topic_id: topic.id,
                index: (have.len() + i) as i32,
                leadership: self.first_leadership(replicas),
            })
            .collect();
        self.commit(log, changes, now)
    }

    /// Deletes a topic; its files go after `file.delete.delay.ms`.
    pub fn delete_topic(&self, id: Uuid, now: i64) -> Result<(), ApiError> {
        let log = self.log_guard();
        let topic = self.topic_by_id(id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
        self.commit(log, vec![MetadataChange::RemoveTopic { id }], now)?;
        tracing::info!(topic = %topic.name, "topic deleted");
        Ok(())
    }

    /// Stores configuration values that were checked.
    pub fn store_configs(&self, changes: Vec<ConfigChange>, now: i64) -> Result<(), ApiError> {
        let changes = changes.into_iter().map(MetadataChange::Config).collect();
        self.commit(self.log_guard(), changes, now)
    }

    /// Sets features' finalized levels, all of them or none; 0 removes one.
    pub fn set_features(&self, levels: Vec<(String, i16)>, now: i64) -> Result<(), ApiError> {
        let set = |(name, level)| MetadataChange::Feature { name, level };
        let changes = levels.into_iter().map(set).collect();
        self.commit(self.log_guard(), changes, now)
    }

    /// Hands out a block of producer ids: the first one of `count`.
    pub fn allocate_producer_ids(&self, count: i64, now: i64) -> Result<i64, ApiError> {
        let log = self.log_guard();
        let first = self.image().next_producer_id;
        self.commit(
            log,
            vec![MetadataChange::ProducerIds {
                next: first + count,
            }],
            now,
        )?;
        Ok(first)
    }

    /// Marks a logical broker as up or down and moves leadership accordingly.
    pub fn set_alive(&self, id: i32, alive: bool, now: i64) -> Result<(), ApiError> {
        let log = self.log_guard();
        {
            let mut brokers = self.brokers.write().unwrap_or_else(PoisonError::into_inner);
            let Some(broker) = brokers.get_mut(&id) else {
                return Err(ErrorCode::BROKER_ID_NOT_REGISTERED.into());
            };
            broker.alive = alive;
        }
        let up = self.alive();
        let mut changes = vec![];
        for topic in self.image().topics.values() {
            for partition in topic.partitions().iter() {
                let leadership = partition.leadership();
                if leadership.replicas.contains(&id) {
                    changes.extend(placement::react(partition, &leadership, &up, id, alive));
                }
            }
        }
        self.commit(log, changes, now)
    }

    /// After a restart: the same leaders, in a new epoch.
    fn elections(&self) -> Vec<MetadataChange> {
        let alive = self.alive();
        let mut changes = vec![];
        for topic in self.image().topics.values() {
            for partition in topic.partitions().iter() {
                changes.push(placement::elect_anew(partition, &alive));
            }
        }
        changes
    }
}

fn change_leadership(
    partition: &Partition,
    leader: Option<i32>,
    replicas: Option<Vec<i32>>,
    isr: Option<Vec<i32>>,
) {
    let mut next = Leadership::clone(&partition.leadership());
    if let Some(leader) = leader {
        next.leader = leader;
        next.leader_epoch += 1;
    }
    next.partition_epoch += 1;
    next.replicas = replicas.unwrap_or(next.replicas);
    next.isr = isr.unwrap_or(next.isr);
    partition.set_leadership(next);
}
