//! What a recorded change does to the image and to the logs; the same at replay.

use std::sync::{Arc, MutexGuard, PoisonError, RwLockWriteGuard};

use ottla_storage::Log;

use super::controller::{Cluster, Snapshots};
use super::image::{Image, Partition, Topic};
use super::leadership::{Leadership, NOBODY};
use crate::config::{ConfigChange, ResourceType, TopicConfig};
use crate::error_code::ApiError;
use crate::log_config::log_config;
use crate::records::{self, MetadataChange};

impl Cluster {
    /// Appends the changes as one batch and applies them. Whoever holds the log's lock sees the image
    /// that its changes will be applied to.
    pub(super) fn commit(
        &self,
        log: &MutexGuard<'_, Arc<Log>>,
        changes: Vec<MetadataChange>,
        now: i64,
    ) -> Result<(), ApiError> {
        if changes.is_empty() {
            return Ok(());
        }
        records::append_metadata(log, &changes, now)?;
        for change in changes {
            self.apply(change, now)?;
        }
        Ok(())
    }

    pub(super) fn apply(&self, change: MetadataChange, now: i64) -> Result<(), ApiError> {
        let mut image = self.image_mut();
        match change {
            MetadataChange::Topic { name, id } => {
                let name: Arc<str> = name.into();
                let config = self.resolve(&image, &name);
                let topic = Arc::new(Topic::new(Arc::clone(&name), id, config));
                image.topics.insert(name, Arc::clone(&topic));
                image.topics_by_id.insert(id, topic);
                image.topics_version += 1;
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
                self.image_mut().topics_version += 1;
            }
            MetadataChange::PartitionChange {
                topic_id,
                index,
                change,
            } => {
                let topic = image.topics_by_id.get(&topic_id).cloned();
                drop(image);
                if let Some(partition) = topic.and_then(|t| t.partition(index)) {
                    let next = partition.leadership().after(change);
                    partition.set_leadership(next);
                }
            }
            MetadataChange::RemoveTopic { id } => {
                let Some(topic) = image.topics_by_id.remove(&id) else {
                    return Ok(());
                };
                image.topics.remove(&topic.name);
                image.topics_version += 1;
                image
                    .configs
                    .remove_resource(ResourceType::Topic, &topic.name);
                drop(image);
                self.remove_logs(&topic, now)?;
            }
            MetadataChange::Config(change) => {
                image.configs.apply(&change);
                self.forget_snapshots();
                self.reconfigure(&image, &change);
            }
            MetadataChange::Feature { name, level } => {
                image.features.insert(name, level);
                image.features_epoch += 1;
                // A group's configs depend on features.
                self.forget_snapshots();
            }
            MetadataChange::ProducerIds { next } => image.next_producer_id = next,
        }
        Ok(())
    }

    /// To be called under the image's lock, so that nobody keeps what was resolved before.
    fn forget_snapshots(&self) {
        *self
            .snapshots
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Snapshots::default();
    }

    fn image_mut(&self) -> RwLockWriteGuard<'_, Image> {
        self.image.write().unwrap_or_else(PoisonError::into_inner)
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
}
