//! `DescribeGroups`: what a person sees of a classic group.

use super::super::consumer_protocol::Blob;
use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupError;
use super::super::plan::GroupErrorKind::GroupIdNotFound;
use super::ClassicGroupState;
use super::group::{ClassicGroup, ClassicMember};

/// A classic group, as `DescribeGroups` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicGroupDescription {
    /// The group.
    pub group_id: String,
    /// Its state.
    pub state: ClassicGroupState,
    /// What its members are: `consumer` for consumers; empty when no member has ever joined.
    pub protocol_type: String,
    /// The protocol of a stable group; else empty.
    pub protocol: String,
    /// Its members by id.
    pub members: Vec<ClassicMemberDescription>,
}

/// A member of a classic group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicMemberDescription {
    /// Its id.
    pub member_id: String,
    /// Its name over restarts (KIP-345).
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Its address: `/127.0.0.1`.
    pub client_host: String,
    /// Its metadata for the protocol of a stable group; else empty.
    pub metadata: Blob,
    /// Its assignment in a stable group; else empty.
    pub assignment: Blob,
}

impl GroupCoordinator {
    /// `DescribeGroups` of one group.
    pub fn classic_describe(&self, group_id: &str) -> Result<ClassicGroupDescription, GroupError> {
        let text = match self.groups.get(group_id) {
            Some(Group::Classic(group)) => return Ok(describe(group)),
            Some(_) => format!("Group {group_id} is not a classic group."),
            None => format!("Group {group_id} not found."),
        };
        Err(GroupError::new(GroupIdNotFound, text))
    }
}

fn describe(group: &ClassicGroup) -> ClassicGroupDescription {
    let is_stable = group.state == ClassicGroupState::Stable;
    let protocol = group.protocol.as_deref().filter(|_| is_stable);
    let member = |(member_id, member): (&String, &ClassicMember)| ClassicMemberDescription {
        member_id: member_id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: protocol.map_or_else(Blob::default, |protocol| member.metadata(protocol)),
        assignment: protocol.map_or_else(Blob::default, |_| member.assignment.clone()),
    };
    ClassicGroupDescription {
        group_id: group.id.clone(),
        state: group.state,
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        protocol: protocol.unwrap_or_default().to_owned(),
        members: group.members.iter().map(member).collect(),
    }
}
