//! The state of one classic group.
//!
//! What is logged (type 2) is the outcome of a rebalance: members, their metadata and assignments,
//! the generation. What happens between two of them is volatile, as in Kafka.

use std::collections::BTreeMap;

use super::super::consumer_protocol::Blob;
use super::super::records::{ClassicGroupValue, ClassicMemberValue};
use crate::types::Ts;

/// Where a classic group is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassicGroupState {
    /// It has no members.
    Empty,
    /// Members are joining.
    PreparingRebalance,
    /// Members wait for what the leader assigns.
    CompletingRebalance,
    /// Every member may have its assignment.
    Stable,
    /// It does not exist.
    Dead,
}

impl ClassicGroupState {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

#[derive(Clone, Debug)]
#[allow(dead_code, reason = "joins read the rest")]
pub(in crate::group) struct ClassicGroup {
    pub(in crate::group) id: String,
    pub(in crate::group) state: ClassicGroupState,
    /// When the state was entered last, as the log knows it.
    pub(in crate::group) state_since: Ts,
    /// `consumer` for consumers; none before the first member has joined.
    pub(in crate::group) protocol_type: Option<String>,
    /// Rises with every rebalance.
    pub(in crate::group) generation: i32,
    /// The protocol that the members of this generation have chosen.
    pub(in crate::group) protocol: Option<String>,
    /// The member that assigns.
    pub(in crate::group) leader: Option<String>,
    pub(in crate::group) members: BTreeMap<String, ClassicMember>,
}

/// A member of a classic group.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "joins read the rest")]
pub(in crate::group) struct ClassicMember {
    /// Its name over restarts (KIP-345).
    pub(in crate::group) instance_id: Option<String>,
    pub(in crate::group) client_id: String,
    /// As Kafka writes it: `/127.0.0.1`.
    pub(in crate::group) client_host: String,
    pub(in crate::group) rebalance_timeout_ms: i32,
    pub(in crate::group) session_timeout_ms: i32,
    /// Protocols that it can speak and its metadata for each, in the order of its preference.
    pub(in crate::group) protocols: Vec<(String, Blob)>,
    /// What the leader gave it; empty between two generations.
    pub(in crate::group) assignment: Blob,
}

impl ClassicMember {
    /// Its metadata for `protocol`; empty when it does not speak it.
    pub(in crate::group) fn metadata(&self, protocol: &str) -> Blob {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map_or_else(Blob::default, |(_, metadata)| metadata.clone())
    }
}

impl ClassicGroup {
    /// A group as a record leaves it.
    pub(in crate::group) fn load(id: &str, value: &ClassicGroupValue) -> Self {
        let protocol = value.protocol.as_deref().unwrap_or_default();
        let members = value.members.iter();
        let members = members.map(|member| (member.member_id.clone(), loaded(member, protocol)));
        Self {
            id: id.to_owned(),
            state: if value.members.is_empty() {
                ClassicGroupState::Empty
            } else {
                ClassicGroupState::Stable
            },
            state_since: value.state_timestamp,
            protocol_type: Some(value.protocol_type.clone()).filter(|name| !name.is_empty()),
            generation: value.generation,
            protocol: value.protocol.clone(),
            leader: value.leader.clone(),
            members: members.collect(),
        }
    }
}

fn loaded(member: &ClassicMemberValue, protocol: &str) -> ClassicMember {
    ClassicMember {
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        protocols: vec![(protocol.to_owned(), member.subscription.clone())],
        assignment: member.assignment.clone(),
    }
}
