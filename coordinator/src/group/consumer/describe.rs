//! `ConsumerGroupDescribe` (KIP-848), and what commits of a consumer group may say.

use super::group::{ConsumerGroup, ConsumerGroupState};
use super::owned;
use super::records::{CurrentValue, MemberValue};
use super::request::ConsumerGroupConfig;
use crate::group::plan::GroupError;
use crate::group::plan::GroupErrorKind::{IllegalGeneration, StaleMemberEpoch, UnknownMemberId};
use crate::group::records::NamedTopicPartitions;
use crate::types::{TopicImage, TopicPartitions, Uuid};

/// A consumer group as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupDescription {
    /// The group.
    pub group_id: String,
    /// Its state.
    pub state: ConsumerGroupState,
    /// Its epoch.
    pub group_epoch: i32,
    /// The epoch that its target assignment was made for.
    pub assignment_epoch: i32,
    /// The assignor that its members want.
    pub assignor_name: &'static str,
    /// Its members, by id.
    pub members: Vec<ConsumerMemberDescription>,
}

/// One member of a [`ConsumerGroupDescription`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerMemberDescription {
    /// The member.
    pub member_id: String,
    /// What it said of itself.
    pub member: MemberValue,
    /// Its epoch.
    pub member_epoch: i32,
    /// What it has, and what it must still give up.
    pub assignment: Vec<NamedTopicPartitions>,
    /// What it is to have.
    pub target: Vec<NamedTopicPartitions>,
}

pub(in crate::group) fn describe(
    group: &ConsumerGroup,
    config: &ConsumerGroupConfig,
    image: &dyn TopicImage,
) -> ConsumerGroupDescription {
    let member = |(member_id, member): (&String, &MemberValue)| {
        let current = group.current(member_id);
        let target = group.targets.get(member_id).map_or(&[][..], Vec::as_slice);
        ConsumerMemberDescription {
            member_id: member_id.clone(),
            member: member.clone(),
            member_epoch: current.member_epoch,
            assignment: named(&held(&current), image),
            target: named(target, image),
        }
    };
    ConsumerGroupDescription {
        group_id: group.id.clone(),
        state: group.state(),
        group_epoch: group.value.epoch,
        assignment_epoch: group.target.assignment_epoch,
        assignor_name: group.assignor(&config.assignors, None).name(),
        members: group.members.iter().map(member).collect(),
    }
}

fn held(current: &CurrentValue) -> Vec<TopicPartitions> {
    let mut all = current.assigned.clone();
    for (topic_id, partitions) in &current.pending_revocation {
        all.entry(*topic_id).or_default().extend(partitions);
    }
    owned::topics(&all)
}

/// Topics that are gone have no name, and are left out.
fn named(topics: &[TopicPartitions], image: &dyn TopicImage) -> Vec<NamedTopicPartitions> {
    let named = |topic: &TopicPartitions| {
        let (topic_name, _) = image.by_id(&topic.topic_id)?;
        Some(NamedTopicPartitions {
            topic_id: topic.topic_id,
            topic_name,
            partitions: topic.partitions.clone(),
        })
    };
    topics.iter().filter_map(named).collect()
}

impl ConsumerGroup {
    /// Whether a member may commit the offset of a partition in `member_epoch`: in its own epoch,
    /// or in one that is not older than the partition's assignment to it (KIP-1251). A negative
    /// epoch is that of no member, and may commit while the group has none. A member of the classic
    /// protocol has its error for that.
    pub(in crate::group) fn check_commit(
        &self,
        member_id: &str,
        member_epoch: i32,
        topic_id: &Uuid,
        partition: i32,
    ) -> Result<(), GroupError> {
        if member_epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let none = CurrentValue::default();
        self.check_member(member_id)?;
        let current = self.currents.get(member_id).unwrap_or(&none);
        if member_epoch == current.member_epoch {
            return Ok(());
        }
        let held = [&current.assigned, &current.pending_revocation];
        let assigned_in = held
            .iter()
            .find_map(|owned| owned.get(topic_id)?.get(&partition))
            .copied();
        let is_newer = member_epoch > current.member_epoch;
        if !is_newer && assigned_in.is_some_and(|epoch| member_epoch >= epoch) {
            return Ok(());
        }
        let member = self.members.get(member_id);
        if member.is_some_and(|member| member.classic.is_some()) {
            return Err(GroupError::bare(IllegalGeneration));
        }
        Err(stale(member_epoch, current.member_epoch))
    }

    /// Whether a member may fetch offsets in `member_epoch`. No member at all may always.
    pub(in crate::group) fn check_fetch(
        &self,
        member_id: Option<&str>,
        member_epoch: i32,
    ) -> Result<(), GroupError> {
        if member_id.is_none() && member_epoch < 0 {
            return Ok(());
        }
        let member_id = member_id.unwrap_or_default();
        self.check_member(member_id)?;
        let current = self.currents.get(member_id);
        let known = current.map_or(0, |current| current.member_epoch);
        if member_epoch == known {
            Ok(())
        } else {
            Err(stale(member_epoch, known))
        }
    }

    fn check_member(&self, member_id: &str) -> Result<(), GroupError> {
        if self.members.contains_key(member_id) {
            return Ok(());
        }
        Err(GroupError::bare(UnknownMemberId))
    }
}

fn stale(received: i32, known: i32) -> GroupError {
    let text = format!(
        "The received member epoch {received} does not match the expected member epoch {known}."
    );
    GroupError::new(StaleMemberEpoch, text)
}
