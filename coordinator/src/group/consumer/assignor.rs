//! The server side assignors of consumer groups (KIP-848): which member consumes which partitions.
//!
//! Both give each partition of a subscribed topic to exactly one of the topic's subscribers, and
//! the same output for the same input.

use crate::types::{TopicPartitions, Uuid};

use super::{range, uniform};

/// One member, as an assignor sees it.
#[derive(Clone, Copy, Debug)]
pub struct AssignorMember<'a> {
    /// The member's id.
    pub member_id: &'a str,
    /// Its instance id, when it is a static member.
    pub instance_id: Option<&'a str>,
    /// The existing topics that it subscribes to, ascending, each once.
    pub topics: &'a [Uuid],
    /// What it was to have before; may name topics and partitions that are gone.
    pub previous: &'a [TopicPartitions],
}

/// A server side assignor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Spreads all partitions evenly and keeps what it can.
    Uniform,
    /// Gives neighbouring partitions of each topic in the members' order, so that partitions with
    /// one index of topics with the same subscribers and counts go to the same member.
    Range,
}

impl Assignor {
    /// The assignor of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "uniform" => Some(Self::Uniform),
            "range" => Some(Self::Range),
            _ => None,
        }
    }

    /// Its name, as members and operators write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// Assigns all partitions of the topics that the `members` subscribe to; `count` answers how
    /// many a topic has. Members come in ascending order of their ids. The result has one entry a
    /// member, in the same order; topics and partitions ascending, none empty.
    pub fn assign(
        self,
        members: &[AssignorMember<'_>],
        count: &dyn Fn(&Uuid) -> i32,
    ) -> Vec<Vec<TopicPartitions>> {
        match self {
            Self::Uniform => uniform::assign(members, count),
            Self::Range => range::assign(members, count),
        }
    }
}
