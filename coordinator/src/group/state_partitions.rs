//! Which share partitions of a group have state at the share coordinator: record type 15, and what
//! becomes of it.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{AfterDelete, GroupEffect, InitializePartition};
use super::records::{GroupRecord, NamedTopicPartitions, ShareStatePartitionsValue};
use super::share_group::ShareGroup;
use crate::types::{TopicImage, TopicPartition, Uuid};

/// Some partitions of a topic that have share-partition state, or are about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateTopic {
    pub(super) name: String,
    pub(super) partitions: BTreeSet<i32>,
}

pub(super) type StateTopics = BTreeMap<Uuid, StateTopic>;

/// Record 15, in a form to look things up in.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct StatePartitions {
    pub(super) initializing: StateTopics,
    pub(super) initialized: StateTopics,
    pub(super) deleting: BTreeMap<Uuid, String>,
}

impl StatePartitions {
    pub(super) fn load(value: &ShareStatePartitionsValue) -> Self {
        let topics = |named: &[NamedTopicPartitions]| -> StateTopics {
            let topic = |topic: &NamedTopicPartitions| {
                let partitions = topic.partitions.iter().copied().collect();
                (
                    topic.topic_id,
                    StateTopic {
                        name: topic.topic_name.clone(),
                        partitions,
                    },
                )
            };
            named.iter().map(topic).collect()
        };
        Self {
            initializing: topics(&value.initializing_topics),
            initialized: topics(&value.initialized_topics),
            deleting: value.deleting_topics.iter().cloned().collect(),
        }
    }

    pub(super) fn record(&self, group_id: &str) -> GroupRecord {
        let value = ShareStatePartitionsValue {
            initializing_topics: named(&self.initializing),
            initialized_topics: named(&self.initialized),
            deleting_topics: self
                .deleting
                .iter()
                .map(|(&id, name)| (id, name.clone()))
                .collect(),
        };
        GroupRecord::ShareStatePartitions {
            group_id: group_id.to_owned(),
            value: Some(value),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.initializing.is_empty() && self.initialized.is_empty() && self.deleting.is_empty()
    }

    pub(super) fn knows(&self, topic_id: &Uuid) -> bool {
        self.initializing.contains_key(topic_id)
            || self.initialized.contains_key(topic_id)
            || self.deleting.contains_key(topic_id)
    }

    /// Every partition that has state, or is about to, of the topics that `wanted` accepts.
    pub(super) fn partitions(&self, wanted: impl Fn(&Uuid) -> bool) -> Vec<TopicPartition> {
        let mut all = BTreeSet::new();
        for (&topic_id, topic) in self.initializing.iter().chain(&self.initialized) {
            if wanted(&topic_id) {
                let of_topic = topic.partitions.iter();
                all.extend(of_topic.map(|&partition| TopicPartition {
                    topic_id,
                    partition,
                }));
            }
        }
        all.into_iter().collect()
    }

    /// Moves a partition from initialising to initialised. False when it is in neither.
    pub(super) fn initialized_one(&mut self, partition: TopicPartition) -> bool {
        let TopicPartition {
            topic_id,
            partition,
        } = partition;
        let Some(topic) = self.initializing.get_mut(&topic_id) else {
            let initialized = self.initialized.get(&topic_id);
            return initialized.is_some_and(|topic| topic.partitions.contains(&partition));
        };
        if !topic.partitions.remove(&partition) {
            let initialized = self.initialized.get(&topic_id);
            return initialized.is_some_and(|topic| topic.partitions.contains(&partition));
        }
        add(&mut self.initialized, topic_id, &topic.name, partition);
        if topic.partitions.is_empty() {
            self.initializing.remove(&topic_id);
        }
        true
    }

    /// Takes a topic from the lists of partitions with state; its name, if it was there.
    pub(super) fn take(&mut self, topic_id: &Uuid) -> Option<String> {
        let initializing = self.initializing.remove(topic_id);
        let initialized = self.initialized.remove(topic_id);
        initialized.or(initializing).map(|topic| topic.name)
    }
}

pub(super) fn named(topics: &StateTopics) -> Vec<NamedTopicPartitions> {
    let topic = |(&topic_id, topic): (&Uuid, &StateTopic)| NamedTopicPartitions {
        topic_id,
        topic_name: topic.name.clone(),
        partitions: topic.partitions.iter().copied().collect(),
    };
    topics.iter().map(topic).collect()
}

pub(super) fn add(topics: &mut StateTopics, topic_id: Uuid, name: &str, partition: i32) {
    let topic = topics.entry(topic_id).or_insert_with(|| StateTopic {
        name: name.to_owned(),
        partitions: BTreeSet::new(),
    });
    topic.partitions.insert(partition);
}

/// Where a partition starts, whose topic the group already knew or not.
pub(super) fn start_offset(topic_is_known: bool) -> i64 {
    if topic_is_known { 0 } else { -1 }
}

/// What a crash may have kept from being done for a group.
pub(super) fn interrupted(group: &ShareGroup, image: &dyn TopicImage) -> Vec<GroupEffect> {
    let state = &group.state;
    let mut effects = Vec::new();
    let mut partitions = Vec::new();
    for (&topic_id, topic) in &state.initializing {
        let initialized = state.initialized.get(&topic_id);
        let start_offset = start_offset(initialized.is_some());
        // What has state already was about to be altered: the request was never answered.
        let fresh = topic.partitions.iter().filter(|partition| {
            initialized.is_none_or(|topic| !topic.partitions.contains(partition))
        });
        partitions.extend(fresh.map(|&partition| InitializePartition {
            partition: TopicPartition {
                topic_id,
                partition,
            },
            start_offset,
            replace: false,
        }));
    }
    if !partitions.is_empty() {
        let (group_id, state_epoch) = (group.id.clone(), group.value.epoch);
        effects.push(GroupEffect::InitializeState {
            group_id,
            state_epoch,
            partitions,
        });
    }
    let mut partitions = Vec::new();
    for &topic_id in state.deleting.keys() {
        let count = image.by_id(&topic_id).map_or(0, |(_, count)| count);
        partitions.extend((0..count).map(|partition| TopicPartition {
            topic_id,
            partition,
        }));
    }
    if !state.deleting.is_empty() {
        effects.push(GroupEffect::DeleteState {
            group_id: group.id.clone(),
            partitions,
            then: AfterDelete::ForgetTopics(state.deleting.keys().copied().collect()),
        });
    }
    effects
}
