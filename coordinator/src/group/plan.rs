//! What a group coordinator answers: plans, effects, timers and errors.

use crate::types::{TopicPartition, TopicPartitions, Ts, Uuid};

use super::classic::{JoinAnswer, SyncAnswer, Ticket};
use super::consumer::request::ConsumerGroupConfig;
use super::records::GroupRecord;
use super::timers::TimerKey;

/// The outcome of one call, before anything has changed.
///
/// The broker appends `records` as one batch, calls `GroupCoordinator::apply` for each of them in
/// order, then `GroupCoordinator::set_timers(&plan.timers)`, then carries out `effects`, and sends
/// `response` last. When the append fails nothing has changed and the plan is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan changes nothing until its records are appended and applied"]
pub struct Plan<R> {
    /// What to answer.
    pub response: R,
    /// To be appended in one batch, in this order. May be empty.
    pub records: Vec<GroupRecord>,
    /// To be carried out after the records were applied, in this order.
    pub effects: Vec<GroupEffect>,
    /// Volatile deadlines that the call moved.
    pub timers: Vec<GroupTimer>,
}

impl<R> Plan<R> {
    /// The same plan with another answer.
    pub fn map<S>(self, answer: impl FnOnce(R) -> S) -> Plan<S> {
        Plan {
            response: answer(self.response),
            records: self.records,
            effects: self.effects,
            timers: self.timers,
        }
    }

    /// A plan that only answers.
    pub fn answer(response: R) -> Self {
        Self {
            response,
            records: Vec::new(),
            effects: Vec::new(),
            timers: Vec::new(),
        }
    }
}

/// Work for another machine, that follows from a committed plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEffect {
    /// Initialise share-partition state at the share coordinator, then report the partitions that
    /// it was done for through `GroupCoordinator::state_initialized`. Those for which it failed are
    /// asked for again by a later heartbeat; where offsets were to be altered they fail instead.
    InitializeState {
        /// The group.
        group_id: String,
        /// The state epoch to initialise with.
        state_epoch: i32,
        /// The share partitions.
        partitions: Vec<InitializePartition>,
    },
    /// Delete share-partition state at the share coordinator, then call
    /// `GroupCoordinator::state_deleted` with `then`.
    DeleteState {
        /// The group.
        group_id: String,
        /// The share partitions.
        partitions: Vec<TopicPartition>,
        /// What follows the deletion.
        then: AfterDelete,
    },
    /// Only members of the classic protocol are left in a consumer group: call
    /// `GroupCoordinator::consumer_downgrade`.
    Downgrade {
        /// The group.
        group_id: String,
    },
    /// Members of a classic group have to join again: call `GroupCoordinator::classic_rebalance`.
    Rebalance {
        /// The group.
        group_id: String,
    },
    /// Answer a `JoinGroup` that is parked. When the plan's records could not be appended, answer
    /// that instead.
    AnswerJoin {
        /// Which.
        ticket: Ticket,
        /// With what.
        answer: JoinAnswer,
    },
    /// Answer a `SyncGroup` that is parked, likewise.
    AnswerSync {
        /// Which.
        ticket: Ticket,
        /// With what.
        answer: SyncAnswer,
    },
}

/// One share partition to initialise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitializePartition {
    /// The topic and partition.
    pub partition: TopicPartition,
    /// Where it starts; -1 = by `share.auto.offset.reset` when it is first loaded.
    pub start_offset: i64,
    /// Whether state that is there is replaced (`ShareState::alter`) or left alone
    /// (`ShareState::ensure`).
    pub replace: bool,
}

/// What follows a [`GroupEffect::DeleteState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterDelete {
    /// Nothing: the topics no longer exist and the group has forgotten them.
    Nothing,
    /// The group forgets these topics.
    ForgetTopics(Vec<Uuid>),
    /// The group itself goes, if it is still empty.
    DeleteGroup,
}

/// A volatile deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupTimer {
    /// Falls due at `at`, the first instant that is too late.
    Set {
        /// What falls due.
        key: TimerKey,
        /// When.
        at: Ts,
    },
    /// Does not fall due any more.
    Cancel(TimerKey),
    /// A consumer group has looked at the topics in this version.
    TopicsSeen {
        /// The group.
        group_id: String,
        /// As `MatchedTopics::version` says.
        version: i64,
    },
    /// The search for expired offsets goes on with this group, or from the first one.
    ResumeExpiry(Option<String>),
    /// Initialising the group's share partitions may be asked for again from `at` on.
    InitializeRetry {
        /// The group.
        group_id: String,
        /// First instant of the next try.
        at: Ts,
    },
}

/// What the group configs say about one share group, already clamped to the broker's ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareGroupConfig {
    /// `share.session.timeout.ms`.
    pub session_timeout_ms: i32,
    /// `share.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: i32,
    /// `share.assignment.interval.ms`: least time between two assignments. 0 = assign in the very
    /// heartbeat that changes something, new partitions included.
    pub assignment_interval_ms: i32,
    /// `group.share.max.size`: most members of a group.
    pub max_size: i32,
    /// `group.share.initialize.retry.interval.ms`.
    pub initialize_retry_interval_ms: i32,
}

impl Default for ShareGroupConfig {
    /// Kafka 4.4.0's defaults.
    fn default() -> Self {
        Self {
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 5_000,
            assignment_interval_ms: 1_000,
            max_size: 200,
            initialize_retry_interval_ms: 30_000,
        }
    }
}

/// Where a coordinator looks up group configs.
pub trait ShareGroupConfigs {
    /// The config in force for `group_id`.
    fn share(&self, group_id: &str) -> ShareGroupConfig;
    /// The config in force for the consumer group `group_id`.
    fn consumer(&self, group_id: &str) -> ConsumerGroupConfig;
}

impl ShareGroupConfigs for ShareGroupConfig {
    fn share(&self, _group_id: &str) -> ShareGroupConfig {
        *self
    }

    fn consumer(&self, _group_id: &str) -> ConsumerGroupConfig {
        ConsumerGroupConfig::default()
    }
}

/// A `ShareGroupHeartbeat` request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareHeartbeatRequest {
    /// The group.
    pub group_id: String,
    /// Chosen by the member, at most 36 characters.
    pub member_id: String,
    /// 0 joins, -1 leaves, else the member's epoch.
    pub member_epoch: i32,
    /// `None` = unchanged.
    pub rack_id: Option<String>,
    /// `None` = unchanged.
    pub subscribed_topic_names: Option<Vec<String>>,
    /// Of the request's header; empty when the client sent none.
    pub client_id: String,
    /// Of the connection, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
}

/// A successful `ShareGroupHeartbeat` response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHeartbeatResponse {
    /// The member.
    pub member_id: String,
    /// The member's epoch from now on; -1 when it left.
    pub member_epoch: i32,
    /// 0 when it left.
    pub heartbeat_interval_ms: i32,
    /// `None` = unchanged.
    pub assignment: Option<Vec<TopicPartitions>>,
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}: {}", message.as_deref().unwrap_or("(no message)"))]
pub struct GroupError {
    /// Which of Kafka's error codes.
    pub kind: GroupErrorKind,
    /// The text that goes to the client; `None` = null.
    pub message: Option<String>,
}

/// Kafka's error codes that a group coordinator answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupErrorKind {
    /// `UNKNOWN_TOPIC_OR_PARTITION` (3).
    UnknownTopicOrPartition,
    /// `COORDINATOR_NOT_AVAILABLE` (15).
    CoordinatorNotAvailable,
    /// `ILLEGAL_GENERATION` (22).
    IllegalGeneration,
    /// `INCONSISTENT_GROUP_PROTOCOL` (23).
    InconsistentGroupProtocol,
    /// `INVALID_GROUP_ID` (24).
    InvalidGroupId,
    /// `UNKNOWN_MEMBER_ID` (25).
    UnknownMemberId,
    /// `INVALID_SESSION_TIMEOUT` (26).
    InvalidSessionTimeout,
    /// `REBALANCE_IN_PROGRESS` (27).
    RebalanceInProgress,
    /// `UNSUPPORTED_VERSION` (35).
    UnsupportedVersion,
    /// `INVALID_REQUEST` (42).
    InvalidRequest,
    /// `NON_EMPTY_GROUP` (68).
    NonEmptyGroup,
    /// `GROUP_ID_NOT_FOUND` (69).
    GroupIdNotFound,
    /// `MEMBER_ID_REQUIRED` (79).
    MemberIdRequired,
    /// `GROUP_MAX_SIZE_REACHED` (81).
    GroupMaxSizeReached,
    /// `FENCED_INSTANCE_ID` (82).
    FencedInstanceId,
    /// `GROUP_SUBSCRIBED_TO_TOPIC` (86).
    GroupSubscribedToTopic,
    /// `FENCED_MEMBER_EPOCH` (110).
    FencedMemberEpoch,
    /// `UNRELEASED_INSTANCE_ID` (111).
    UnreleasedInstanceId,
    /// `UNSUPPORTED_ASSIGNOR` (112).
    UnsupportedAssignor,
    /// `STALE_MEMBER_EPOCH` (113).
    StaleMemberEpoch,
    /// `INVALID_REGULAR_EXPRESSION` (128).
    InvalidRegularExpression,
}

impl GroupError {
    /// An error with a text.
    pub fn new(kind: GroupErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: Some(message.into()),
        }
    }

    /// An error whose text is null.
    pub fn bare(kind: GroupErrorKind) -> Self {
        Self {
            kind,
            message: None,
        }
    }
}

/// The protocol that a group belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupType {
    /// `JoinGroup` and `SyncGroup`.
    Classic,
    /// KIP-848.
    Consumer,
    /// KIP-932.
    Share,
    /// KIP-1071.
    Streams,
}

impl GroupType {
    /// Kafka's name in `ListGroups`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }
}
