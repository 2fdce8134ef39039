//! What operators ask of a [`GroupCoordinator`], and what metrics read.

use std::collections::BTreeMap;

use super::coordinator::{Group, GroupCoordinator};
use super::plan::GroupErrorKind::InvalidGroupId;
use super::plan::{GroupError, GroupType, Plan};
use super::records::NamedTopicPartitions;
use super::share_group::ShareGroup;
use super::share_offsets::{self, AlteredTopic, DeletedTopic, ShareGroupDescription};
use super::state_partitions::named;
use crate::types::TopicImage;

/// One line of `ListGroups`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// The group.
    pub group_id: String,
    /// Its type.
    pub group_type: GroupType,
    /// Its state's name.
    pub state: &'static str,
    /// `consumer` or `share`, or what the members of a classic group say; empty when they never did.
    pub protocol_type: String,
}

/// How many groups there are, by type and name of the state.
pub type GroupCounts = BTreeMap<(GroupType, &'static str), usize>;

impl Group {
    fn group_type(&self) -> GroupType {
        match self {
            Self::Share(_) => GroupType::Share,
            Self::Classic(_) => GroupType::Classic,
            Self::Consumer(_) => GroupType::Consumer,
        }
    }

    fn state_name(&self) -> &'static str {
        match self {
            Self::Share(group) => group.state().name(),
            Self::Classic(group) => group.state.name(),
            Self::Consumer(group) => group.state().name(),
        }
    }

    fn protocol_type(&self) -> &str {
        match self {
            Self::Classic(group) => group.protocol_type.as_deref().unwrap_or_default(),
            Self::Share(_) | Self::Consumer(_) => self.group_type().name(),
        }
    }
}

impl GroupCoordinator {
    /// `ShareGroupDescribe` of one group.
    pub fn share_describe(
        &self,
        group_id: &str,
        image: &dyn TopicImage,
    ) -> Result<ShareGroupDescription, GroupError> {
        if group_id.is_empty() {
            return Err(GroupError::bare(InvalidGroupId));
        }
        let group = self.existing_share_group(group_id)?;
        Ok(share_offsets::describe(group, image))
    }

    /// `ListGroups`: groups by id. Filters are compared without regard to case; an empty one lets
    /// everything through, an unknown one nothing.
    pub fn list(&self, states: &[&str], types: &[&str]) -> Vec<GroupListing> {
        let passes = |filter: &[&str], name: &str| {
            filter.is_empty()
                || filter
                    .iter()
                    .any(|wanted| wanted.eq_ignore_ascii_case(name))
        };
        let mut listed = Vec::new();
        for (group_id, group) in &self.groups {
            let (group_type, state) = (group.group_type(), group.state_name());
            if passes(types, group_type.name()) && passes(states, state) {
                listed.push(GroupListing {
                    group_id: group_id.clone(),
                    group_type,
                    state,
                    protocol_type: group.protocol_type().to_owned(),
                });
            }
        }
        listed
    }

    /// The type of the group, if it exists.
    pub fn group_type(&self, group_id: &str) -> Option<GroupType> {
        self.groups.get(group_id).map(Group::group_type)
    }

    /// The share partitions of a group that have state: what `DescribeShareGroupOffsets` lists
    /// when it names no topics. Empty for a group that is unknown or of another type.
    pub fn share_state_partitions(&self, group_id: &str) -> Vec<NamedTopicPartitions> {
        match self.groups.get(group_id) {
            Some(Group::Share(group)) => named(&group.state.initialized),
            _ => Vec::new(),
        }
    }

    /// `AlterShareGroupOffsets`: (topic name, (partition, start offset)). Creates the group when
    /// at least one partition exists. Offsets are stored unchecked; -1 = by the reset policy.
    pub fn alter_share_offsets(
        &self,
        group_id: &str,
        topics: &[(String, Vec<(i32, i64)>)],
        image: &dyn TopicImage,
    ) -> Result<Plan<Vec<AlteredTopic>>, GroupError> {
        share_offsets::check_group_id(group_id)?;
        match self.share_group(group_id)? {
            Some(group) => share_offsets::alter(group, topics, image),
            None => share_offsets::alter(&ShareGroup::new(group_id), topics, image),
        }
    }

    /// `DeleteShareGroupOffsets`.
    pub fn delete_share_offsets(
        &self,
        group_id: &str,
        topics: &[String],
        image: &dyn TopicImage,
    ) -> Result<Plan<Vec<DeletedTopic>>, GroupError> {
        share_offsets::check_group_id(group_id)?;
        share_offsets::delete(self.existing_share_group(group_id)?, topics, image)
    }

    /// Adds the groups to `counts`, for metrics.
    pub fn count(&self, counts: &mut GroupCounts) {
        for group in self.groups.values() {
            let key = (group.group_type(), group.state_name());
            *counts.entry(key).or_default() += 1;
        }
    }
}
