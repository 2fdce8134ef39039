//! Topics, partitions, features and producer ids: what can be asked of the control plane.

use std::sync::atomic::Ordering;

use ottla_protocol::{ErrorCode, Uuid};

use super::controller::{Cluster, NewTopic};
use super::leadership::Leadership;
use super::placement;
use crate::config::{ConfigChange, ResourceType};
use crate::error_code::ApiError;
use crate::records::{self, MetadataChange};

impl Cluster {
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
            &self.sites(),
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
        self.commit(&log, changes, now)?;
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
        let up = replicas.iter().copied();
        let isr = up.filter(|r| alive.contains(r)).collect();
        Leadership::new(replicas.to_vec(), isr)
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
        let replicas = placement::extend(name, &have, total, assignments, &self.sites(), start)?;
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
        self.commit(&log, changes, now)
    }

    /// Deletes a topic; its files go after `file.delete.delay.ms`.
    pub fn delete_topic(&self, id: Uuid, now: i64) -> Result<(), ApiError> {
        let log = self.log_guard();
        let topic = self.topic_by_id(id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
        self.commit(&log, vec![MetadataChange::RemoveTopic { id }], now)?;
        tracing::info!(topic = %topic.name, "topic deleted");
        Ok(())
    }

    /// Sets features' finalized levels, all of them or none; 0 removes one.
    pub fn set_features(&self, levels: Vec<(String, i16)>, now: i64) -> Result<(), ApiError> {
        let set = |(name, level)| MetadataChange::Feature { name, level };
        let changes = levels.into_iter().map(set).collect();
        self.commit(&self.log_guard(), changes, now)
    }

    /// Hands out a block of producer ids: the first one of `count`.
    pub fn allocate_producer_ids(&self, count: i64, now: i64) -> Result<i64, ApiError> {
        let log = self.log_guard();
        let first = self.image().next_producer_id;
        self.commit(
            &log,
            vec![MetadataChange::ProducerIds {
                next: first + count,
            }],
            now,
        )?;
        Ok(first)
    }
}
