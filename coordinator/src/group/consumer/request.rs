//! What the consumer group protocol asks and answers, and what it runs with.

use super::assignor::Assignor;
use crate::types::{TopicImage, TopicPartitions};

/// A `ConsumerGroupHeartbeat` request (KIP-848).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConsumerHeartbeatRequest {
    /// The group.
    pub group_id: String,
    /// Chosen by the member; by the broker for version 0.
    pub member_id: String,
    /// 0 joins, -1 leaves, -2 leaves as a static member that will be back, else the member's epoch.
    pub member_epoch: i32,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// `None` = unchanged.
    pub rack_id: Option<String>,
    /// -1 = unchanged.
    pub rebalance_timeout_ms: i32,
    /// `None` = unchanged.
    pub subscribed_topic_names: Option<Vec<String>>,
    /// `None` = unchanged; empty = no expression.
    pub subscribed_topic_regex: Option<String>,
    /// `None` = unchanged.
    pub server_assignor: Option<String>,
    /// The partitions that the member has; `None` = as it said before.
    pub topic_partitions: Option<Vec<TopicPartitions>>,
    /// Of the request's header; empty when the client sent none.
    pub client_id: String,
    /// Of the connection, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
}

/// A successful `ConsumerGroupHeartbeat` response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHeartbeatResponse {
    /// The member.
    pub member_id: String,
    /// The member's epoch from now on; that of the request when it left.
    pub member_epoch: i32,
    /// 0 when it left.
    pub heartbeat_interval_ms: i32,
    /// `None` = unchanged.
    pub assignment: Option<Vec<TopicPartitions>>,
}

/// Which changes of a group's protocol are allowed (`group.consumer.migration.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationPolicy {
    /// A consumer member may join a classic group that has members.
    pub upgrade: bool,
    /// When only classic members are left the group becomes a classic one.
    pub downgrade: bool,
}

impl MigrationPolicy {
    /// From the config's value, in any case.
    pub fn by_name(name: &str) -> Self {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        Self {
            upgrade: is("bidirectional") || is("upgrade"),
            downgrade: is("bidirectional") || is("downgrade"),
        }
    }
}

/// What the configs say about one consumer group, already clamped to the broker's ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupConfig {
    /// `consumer.session.timeout.ms`.
    pub session_timeout_ms: i32,
    /// `consumer.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: i32,
    /// `consumer.assignment.interval.ms`: least time between two assignments.
    pub assignment_interval_ms: i32,
    /// `group.consumer.max.size`: most members of a group.
    pub max_size: i32,
    /// `group.consumer.assignors`, the first being the default.
    pub assignors: Vec<Assignor>,
    /// `group.consumer.migration.policy`.
    pub migration: MigrationPolicy,
}

impl Default for ConsumerGroupConfig {
    /// Kafka 4.4.0's defaults.
    fn default() -> Self {
        Self {
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 5_000,
            assignment_interval_ms: 1_000,
            max_size: i32::MAX,
            assignors: vec![Assignor::Uniform, Assignor::Range],
            migration: MigrationPolicy::by_name("bidirectional"),
        }
    }
}

/// What a consumer group needs to know of the cluster's topics.
pub trait MatchedTopics: TopicImage {
    /// Changes whenever a topic comes, goes or grows.
    fn version(&self) -> i64;

    /// The topics whose whole name the RE2 expression matches, ascending; or what is wrong with it.
    fn matching(&self, regex: &str) -> Result<Vec<String>, String>;
}
