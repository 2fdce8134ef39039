//! What an operator does to a share group: list, describe, delete, and its offsets (KIP-932).

use super::plan::GroupErrorKind::{InvalidGroupId, NonEmptyGroup, UnknownTopicOrPartition};
use super::plan::{AfterDelete, GroupEffect, GroupError, InitializePartition, Plan};
use super::records::{GroupRecord, NamedTopicPartitions};
use super::share_group::{ShareGroup, ShareGroupState};
use super::state_partitions::{self, StatePartitions};
use crate::types::{TopicImage, TopicPartition, TopicPartitions, Uuid};

/// A share group, as `ShareGroupDescribe` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroupDescription {
    /// The group.
    pub group_id: String,
    /// Stable or Empty.
    pub state: ShareGroupState,
    /// The group epoch.
    pub group_epoch: i32,
    /// The epoch of the target assignment.
    pub assignment_epoch: i32,
    /// Always "simple".
    pub assignor_name: &'static str,
    /// Members, by id.
    pub members: Vec<ShareMemberDescription>,
}

/// A member, as `ShareGroupDescribe` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareMemberDescription {
    /// The member.
    pub member_id: String,
    /// Its rack, if it named one.
    pub rack_id: Option<String>,
    /// The epoch it was given.
    pub member_epoch: i32,
    /// Its client id.
    pub client_id: String,
    /// Its address: `/127.0.0.1`.
    pub client_host: String,
    /// What it subscribes to, by name.
    pub subscribed_topic_names: Vec<String>,
    /// What it was given, without topics that are gone.
    pub assignment: Vec<NamedTopicPartitions>,
}

/// What became of one topic of `AlterShareGroupOffsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredTopic {
    /// The topic, as the request named it.
    pub topic_name: String,
    /// Its id; zero when it is unknown.
    pub topic_id: Uuid,
    /// The partitions of the request, in its order. Those that are fine still fail when the share
    /// coordinator refuses them.
    pub partitions: Vec<(i32, Result<(), GroupError>)>,
}

/// What became of one topic of `DeleteShareGroupOffsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedTopic {
    /// The topic, as the request named it.
    pub topic_name: String,
    /// Its id; zero on an error.
    pub topic_id: Uuid,
    /// Whether its offsets go.
    pub result: Result<(), GroupError>,
}

pub(super) fn describe(group: &ShareGroup, image: &dyn TopicImage) -> ShareGroupDescription {
    let members = group.members.iter().map(|(member_id, value)| {
        let current = group.currents.get(member_id);
        let assigned = current.map_or(&[][..], |current| &current.assigned_partitions);
        ShareMemberDescription {
            member_id: member_id.clone(),
            rack_id: value.rack_id.clone(),
            member_epoch: current.map_or(0, |current| current.member_epoch),
            client_id: value.client_id.clone(),
            client_host: value.client_host.clone(),
            subscribed_topic_names: value.subscribed_topic_names.clone(),
            assignment: assigned
                .iter()
                .filter_map(|topic| named(topic, image))
                .collect(),
        }
    });
    ShareGroupDescription {
        group_id: group.id.clone(),
        state: group.state(),
        group_epoch: group.value.epoch,
        assignment_epoch: group.target.assignment_epoch,
        assignor_name: "simple",
        members: members.collect(),
    }
}

fn named(topic: &TopicPartitions, image: &dyn TopicImage) -> Option<NamedTopicPartitions> {
    let (topic_name, _) = image.by_id(&topic.topic_id)?;
    let partitions = topic.partitions.clone();
    Some(NamedTopicPartitions {
        topic_id: topic.topic_id,
        topic_name,
        partitions,
    })
}

/// Refuses the ids that no share group can have in the offset calls.
pub(super) fn check_group_id(group_id: &str) -> Result<(), GroupError> {
    if group_id.is_empty() {
        return Err(GroupError::new(InvalidGroupId, "The group id is invalid."));
    }
    Ok(())
}

pub(super) fn check_empty(group: &ShareGroup) -> Result<(), GroupError> {
    if group.members.is_empty() {
        return Ok(());
    }
    Err(GroupError::new(NonEmptyGroup, "The group is not empty."))
}

fn unknown_topic() -> GroupError {
    GroupError::new(
        UnknownTopicOrPartition,
        "This server does not host this topic-partition.",
    )
}

/// Alters start offsets: the share partitions are initialised again, at the group's epoch.
pub(super) fn alter(
    group: &ShareGroup,
    topics: &[(String, Vec<(i32, i64)>)],
    image: &dyn TopicImage,
) -> Result<Plan<Vec<AlteredTopic>>, GroupError> {
    check_empty(group)?;
    let mut state = group.state.clone();
    let mut initialize = Vec::new();
    let mut response = Vec::with_capacity(topics.len());
    for (topic_name, offsets) in topics {
        let (topic_id, count) = image.by_name(topic_name).unwrap_or_default();
        let mut partitions = Vec::with_capacity(offsets.len());
        for &(partition, start_offset) in offsets {
            if !(0..count).contains(&partition) {
                partitions.push((partition, Err(unknown_topic())));
                continue;
            }
            partitions.push((partition, Ok(())));
            state_partitions::add(&mut state.initializing, topic_id, topic_name, partition);
            let partition = TopicPartition {
                topic_id,
                partition,
            };
            initialize.push(InitializePartition {
                partition,
                start_offset,
                replace: true,
            });
        }
        response.push(AlteredTopic {
            topic_name: topic_name.clone(),
            topic_id,
            partitions,
        });
    }
    let mut plan = Plan::answer(response);
    if !initialize.is_empty() {
        plan.records.push(state.record(&group.id));
        plan.effects.push(GroupEffect::InitializeState {
            group_id: group.id.clone(),
            state_epoch: group.value.epoch,
            partitions: initialize,
        });
    }
    Ok(plan)
}

/// Deletes the offsets of whole topics.
pub(super) fn delete(
    group: &ShareGroup,
    topics: &[String],
    image: &dyn TopicImage,
) -> Result<Plan<Vec<DeletedTopic>>, GroupError> {
    check_empty(group)?;
    let mut state = group.state.clone();
    let mut gone: Vec<Uuid> = Vec::new();
    let mut response = Vec::with_capacity(topics.len());
    for topic_name in topics {
        let (topic_id, result) = match image.by_name(topic_name) {
            None => (Uuid::ZERO, Err(unknown_topic())),
            Some((topic_id, _)) => match state.take(&topic_id) {
                Some(name) => {
                    state.deleting.insert(topic_id, name);
                    gone.push(topic_id);
                    (topic_id, Ok(()))
                }
                None => (Uuid::ZERO, Err(nothing_to_delete())),
            },
        };
        response.push(DeletedTopic {
            topic_name: topic_name.clone(),
            topic_id,
            result,
        });
    }
    let mut plan = Plan::answer(response);
    if !gone.is_empty() {
        plan.records.push(state.record(&group.id));
        plan.effects.push(GroupEffect::DeleteState {
            group_id: group.id.clone(),
            partitions: group.state.partitions(|topic_id| gone.contains(topic_id)),
            then: AfterDelete::ForgetTopics(gone),
        });
    }
    Ok(plan)
}

fn nothing_to_delete() -> GroupError {
    let text = "There is no offset information to delete.";
    GroupError::new(UnknownTopicOrPartition, text)
}

/// Deletes an empty group: at once when it has no state, else once that is deleted.
pub(super) fn delete_group(group: &ShareGroup) -> Plan<()> {
    let mut plan = Plan::answer(());
    if group.state.is_empty() {
        plan.records = tombstones(group);
        return plan;
    }
    let topics = group
        .state
        .initializing
        .iter()
        .chain(&group.state.initialized);
    let mut deleting = group.state.deleting.clone();
    deleting.extend(topics.map(|(&topic_id, topic)| (topic_id, topic.name.clone())));
    let state = StatePartitions {
        deleting,
        ..StatePartitions::default()
    };
    plan.records.push(state.record(&group.id));
    plan.effects.push(GroupEffect::DeleteState {
        group_id: group.id.clone(),
        partitions: group.state.partitions(|_| true),
        then: AfterDelete::DeleteGroup,
    });
    plan
}

/// The records that end a group without members.
pub(super) fn tombstones(group: &ShareGroup) -> Vec<GroupRecord> {
    let group_id = || group.id.clone();
    vec![
        GroupRecord::ShareTargetMetadata {
            group_id: group_id(),
            value: None,
        },
        GroupRecord::ShareStatePartitions {
            group_id: group_id(),
            value: None,
        },
        GroupRecord::ShareGroup {
            group_id: group_id(),
            value: None,
        },
    ]
}
