//! The committed offsets of a shard, by group, topic and partition.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::types::{Ts, Uuid};

/// What a group committed for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The offset of the next record to consume; any number that the client chose.
    pub offset: i64,
    /// Leader epoch of the last record consumed; -1 = unknown.
    pub leader_epoch: i32,
    /// What the client wants to keep with it.
    pub metadata: Arc<str>,
    /// When it was committed.
    pub commit_timestamp: Ts,
    /// When it expires, where the client said so (`OffsetCommit` 2 to 4).
    pub expire_timestamp: Option<Ts>,
    /// The topic that it is of; zero in records of releases that did not note it.
    pub topic_id: Uuid,
}

impl CommittedOffset {
    /// Whether it is of the topic with this id, as far as both are known.
    pub fn is_of(&self, topic_id: Uuid) -> bool {
        self.topic_id.is_zero() || topic_id.is_zero() || self.topic_id == topic_id
    }
}

/// The committed offsets of one group.
#[derive(Clone, Debug, Default)]
pub struct GroupOffsets {
    topics: BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>>,
    /// None was committed earlier than this.
    oldest: Ts,
    /// How many have an expiry of their own.
    with_expiry: usize,
}

impl GroupOffsets {
    /// What was committed for a partition.
    pub fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.topics.get(topic)?.get(&partition)
    }

    /// What was committed for a topic's partitions.
    pub fn topic(&self, topic: &str) -> Option<&BTreeMap<i32, CommittedOffset>> {
        self.topics.get(topic)
    }

    /// Every topic with its offsets, by name; each has at least one.
    pub fn topics(&self) -> impl Iterator<Item = (&Arc<str>, &BTreeMap<i32, CommittedOffset>)> {
        self.topics.iter()
    }

    /// An instant before which no offset of the group has been committed.
    pub(super) fn oldest(&self) -> Ts {
        self.oldest
    }

    /// Whether any offset has an expiry of its own.
    pub(super) fn has_own_expiry(&self) -> bool {
        self.with_expiry > 0
    }
}

/// All committed offsets of a shard.
#[derive(Clone, Debug, Default)]
pub struct OffsetTable {
    groups: BTreeMap<Arc<str>, GroupOffsets>,
    /// The groups that have offsets of a topic.
    by_topic: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    len: usize,
}

impl OffsetTable {
    /// How many partitions have an offset, over all groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The offsets of a group; `None` when it has none.
    pub fn group(&self, group_id: &str) -> Option<&GroupOffsets> {
        self.groups.get(group_id)
    }

    /// The groups that have offsets of a topic.
    pub(super) fn groups_of(&self, topic: &str) -> impl Iterator<Item = &Arc<str>> {
        self.by_topic.get(topic).into_iter().flatten()
    }

    /// The topics that groups have offsets of.
    pub(super) fn topic_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_topic.keys()
    }

    /// Takes in a record: an offset in the place of the one before, or that there is none.
    pub(in crate::group) fn apply(
        &mut self,
        group_id: &Arc<str>,
        topic: &Arc<str>,
        partition: i32,
        value: Option<&CommittedOffset>,
    ) {
        match value {
            Some(value) => self.put(group_id, topic, partition, value.clone()),
            None => self.remove(group_id, topic, partition),
        }
    }

    fn put(
        &mut self,
        group_id: &Arc<str>,
        topic: &Arc<str>,
        partition: i32,
        value: CommittedOffset,
    ) {
        if !self.groups.contains_key(group_id) {
            let group = GroupOffsets {
                oldest: Ts::MAX,
                ..GroupOffsets::default()
            };
            self.groups.insert(Arc::clone(group_id), group);
        }
        let Some(group) = self.groups.get_mut(group_id) else {
            return;
        };
        if !group.topics.contains_key(topic) {
            group.topics.insert(Arc::clone(topic), BTreeMap::new());
            let groups = self.by_topic.entry(Arc::clone(topic)).or_default();
            groups.insert(Arc::clone(group_id));
        }
        let Some(partitions) = group.topics.get_mut(topic) else {
            return;
        };
        group.oldest = group.oldest.min(value.commit_timestamp);
        group.with_expiry += usize::from(value.expire_timestamp.is_some());
        match partitions.entry(partition) {
            Entry::Vacant(entry) => {
                self.len += 1;
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => {
                let old = entry.insert(value);
                group.with_expiry -= usize::from(old.expire_timestamp.is_some());
            }
        }
    }

    fn remove(&mut self, group_id: &str, topic: &str, partition: i32) {
        let Some(group) = self.groups.get_mut(group_id) else {
            return;
        };
        let Some(partitions) = group.topics.get_mut(topic) else {
            return;
        };
        let Some(old) = partitions.remove(&partition) else {
            return;
        };
        self.len -= 1;
        group.with_expiry -= usize::from(old.expire_timestamp.is_some());
        if !partitions.is_empty() {
            return;
        }
        group.topics.remove(topic);
        if group.topics.is_empty() {
            self.groups.remove(group_id);
        }
        if let Some(groups) = self.by_topic.get_mut(topic) {
            groups.remove(group_id);
            if groups.is_empty() {
                self.by_topic.remove(topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(commit_timestamp: Ts) -> CommittedOffset {
        CommittedOffset {
            offset: 1,
            leader_epoch: -1,
            metadata: "".into(),
            commit_timestamp,
            expire_timestamp: None,
            topic_id: Uuid::ZERO,
        }
    }

    #[test]
    fn a_table_that_has_lost_its_last_offset_holds_nothing() {
        let (group, topic): (Arc<str>, Arc<str>) = ("g".into(), "t".into());
        let mut table = OffsetTable::default();
        let mut expiring = at(5);
        expiring.expire_timestamp = Some(9);
        table.apply(&group, &topic, 0, Some(&expiring));
        table.apply(&group, &topic, 0, Some(&at(7)));
        table.apply(&group, &topic, 3, Some(&expiring));
        assert_eq!(table.len(), 2);
        let held = table.group("g").map(|g| (g.oldest(), g.has_own_expiry()));
        assert_eq!(held, Some((5, true)));
        assert_eq!(table.groups_of("t").count(), 1);
        table.apply(&group, &topic, 3, None);
        table.apply(&group, &topic, 3, None);
        assert_eq!(
            table.group("g").map(GroupOffsets::has_own_expiry),
            Some(false)
        );
        table.apply(&group, &topic, 0, None);
        assert!(table.is_empty() && table.group("g").is_none());
        assert_eq!(table.topic_names().count(), 0);
        assert!(table.groups.is_empty());
    }

    #[test]
    fn an_offset_without_topic_id_is_of_every_topic_of_its_name() {
        let mut offset = at(1);
        assert!(offset.is_of(Uuid([1; 16])));
        offset.topic_id = Uuid([2; 16]);
        assert!(!offset.is_of(Uuid([1; 16])));
        assert!(offset.is_of(Uuid([2; 16])) && offset.is_of(Uuid::ZERO));
    }
}
