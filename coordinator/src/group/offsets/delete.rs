//! The deletion of offsets: by `OffsetDelete`, with their group, with their topic.

use std::sync::Arc;

use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupErrorKind::{
    GroupIdNotFound, GroupSubscribedToTopic, InvalidGroupId, NonEmptyGroup,
};
use super::super::plan::{GroupError, Plan};
use super::super::records::GroupRecord;
use super::super::share_offsets;
use super::rules::{group_tombstones, is_empty_group};
use crate::types::{TopicImage, Uuid};

/// Some partitions of a topic, for `OffsetDelete`.
#[derive(Clone, Debug)]
pub struct OffsetsToDelete {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partitions' indexes.
    pub partitions: Vec<i32>,
}

/// The tombstone of an offset.
pub(super) fn tombstone(group_id: &Arc<str>, topic: &Arc<str>, partition: i32) -> GroupRecord {
    GroupRecord::Offset {
        group_id: Arc::clone(group_id),
        topic: Arc::clone(topic),
        partition,
        value: None,
    }
}

impl GroupCoordinator {
    /// `OffsetDelete` (KIP-496): one result a topic. What a living group subscribes to stays; a
    /// partition without offset is no error.
    #[allow(
        clippy::type_complexity,
        reason = "a result for each of the request's topics"
    )]
    pub fn delete_offsets(
        &self,
        group_id: &str,
        topics: &[OffsetsToDelete],
    ) -> Result<Plan<Vec<Result<(), GroupError>>>, GroupError> {
        if group_id.is_empty() {
            return Err(GroupError::bare(InvalidGroupId));
        }
        let group = match self.groups.get(group_id) {
            None | Some(Group::Share(_)) => {
                return Err(GroupError::bare(GroupIdNotFound));
            }
            Some(group) => group,
        };
        if let Group::Classic(group) = group {
            group.check_delete_offsets()?;
        }
        let needed = self.needed_topics(group);
        let id: Arc<str> = group_id.into();
        let offsets = self.offsets.group(group_id);
        let mut plan = Plan::answer(Vec::with_capacity(topics.len()));
        for wanted in topics {
            if needed.include(&wanted.topic) {
                let refused = GroupError::bare(GroupSubscribedToTopic);
                plan.response.push(Err(refused));
                continue;
            }
            plan.response.push(Ok(()));
            let has = |&&partition: &&i32| {
                offsets.is_some_and(|o| o.get(&wanted.topic, partition).is_some())
            };
            let there = wanted.partitions.iter().filter(has);
            plan.records
                .extend(there.map(|&partition| tombstone(&id, &wanted.topic, partition)));
        }
        Ok(plan)
    }

    /// `DeleteGroups` of one group, with all that it owns. Errors have no message, as in Kafka.
    pub fn delete_group(&self, group_id: &str) -> Result<Plan<()>, GroupError> {
        let group = self.groups.get(group_id);
        let group = group.ok_or_else(|| GroupError::bare(GroupIdNotFound))?;
        if !is_empty_group(group) {
            return Err(GroupError::bare(NonEmptyGroup));
        }
        if let Group::Share(group) = group {
            return Ok(share_offsets::delete_group(group));
        }
        let mut plan = Plan::answer(());
        let id: Arc<str> = group_id.into();
        if let Some(offsets) = self.offsets.group(group_id) {
            for (topic, partitions) in offsets.topics() {
                let gone = partitions.keys().map(|&p| tombstone(&id, topic, p));
                plan.records.extend(gone);
            }
        }
        plan.records.extend(group_tombstones(group_id, group));
        Ok(plan)
    }

    /// Forgets offsets of a topic that was deleted, in every group, at most `limit` of them: call it
    /// until its plan has no records.
    pub fn offsets_of_deleted_topic(&self, topic: &str, topic_id: Uuid, limit: usize) -> Plan<()> {
        let mut plan = Plan::answer(());
        self.forget_offsets(topic, limit, &mut plan.records, |id| {
            id.is_zero() || topic_id.is_zero() || id == topic_id
        });
        plan
    }

    /// As [`GroupCoordinator::offsets_of_deleted_topic`], for all topics that `image` does not know,
    /// or knows under another id: after a crash in the middle of a topic's deletion.
    pub fn orphaned_offsets(&self, image: &dyn TopicImage, limit: usize) -> Plan<()> {
        let mut plan = Plan::answer(());
        for topic in self.offsets.topic_names() {
            match image.by_name(topic) {
                None => self.forget_offsets(topic, limit, &mut plan.records, |_| true),
                Some((now, _)) => {
                    let is_gone = |id: Uuid| !id.is_zero() && id != now;
                    self.forget_offsets(topic, limit, &mut plan.records, is_gone);
                }
            }
        }
        plan
    }

    /// Adds tombstones of offsets of topics called `topic` whose id is gone, up to `limit` in all.
    fn forget_offsets(
        &self,
        topic: &str,
        limit: usize,
        records: &mut Vec<GroupRecord>,
        is_gone: impl Fn(Uuid) -> bool,
    ) {
        let name: Arc<str> = topic.into();
        for group_id in self.offsets.groups_of(topic) {
            let offsets = self.offsets.group(group_id);
            let partitions = offsets.and_then(|offsets| offsets.topic(topic));
            for (&partition, offset) in partitions.into_iter().flatten() {
                if records.len() >= limit {
                    return;
                }
                if is_gone(offset.topic_id) {
                    records.push(tombstone(group_id, &name, partition));
                }
            }
        }
    }
}
