//! What clients say to a classic group, and what it answers.

use super::super::consumer_protocol::Blob;
use super::super::plan::{GroupErrorKind, Plan};
use crate::types::Ts;

/// Names a request that may be parked; chosen by the caller, each once in the life of a coordinator.
pub type Ticket = u64;

/// A [`Plan`] whose request is parked when the response is `None`: an effect of this plan or of a
/// later one answers it, by its ticket.
pub type Step<R> = Plan<Option<R>>;

/// How long a new member may take to get its first answer, in milliseconds. It has none to send
/// heartbeats with until then.
pub const NEW_MEMBER_TIMEOUT_MS: Ts = 300_000;

/// What the broker's configs say about classic groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassicConfig {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.max.size`.
    pub max_size: i32,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay_ms: i32,
}

impl Default for ClassicConfig {
    /// Kafka 4.4.0's defaults.
    fn default() -> Self {
        Self {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            max_size: i32::MAX,
            initial_rebalance_delay_ms: 3_000,
        }
    }
}

/// A `JoinGroup` request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct JoinRequest {
    /// The group.
    pub group_id: String,
    /// The member; empty when it has no id yet.
    pub member_id: String,
    /// The id that it gets when it has none; new, and never used otherwise.
    pub new_member_id: String,
    /// Its name over restarts (KIP-345).
    pub instance_id: Option<String>,
    /// Of the request's header; empty when the client sent none.
    pub client_id: String,
    /// Of the connection, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
    /// Silence after which the member is removed, in milliseconds.
    pub session_timeout_ms: i32,
    /// How long the member may take to join again, in milliseconds.
    pub rebalance_timeout_ms: i32,
    /// What the member is: `consumer` for consumers.
    pub protocol_type: String,
    /// Protocols and the member's metadata for each, in the order of its preference.
    pub protocols: Vec<(String, Blob)>,
    /// Whether a member without an id is given one first and must join again with it (version 4 on).
    pub needs_known_id: bool,
    /// Whether the member understands that it leads but shall not assign (version 9 on, KIP-814).
    pub can_skip_assignment: bool,
}

/// What a `JoinGroup` that succeeded says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinResponse {
    /// The member's id.
    pub member_id: String,
    /// The group's generation.
    pub generation: i32,
    /// What the members are.
    pub protocol_type: Option<String>,
    /// The protocol of the generation.
    pub protocol: Option<String>,
    /// The member that assigns.
    pub leader: String,
    /// Whether the leader need not assign.
    pub skip_assignment: bool,
    /// For the leader: all members, by id.
    pub members: Vec<JoinedMember>,
}

/// A member, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member_id: String,
    /// Its name over restarts.
    pub instance_id: Option<String>,
    /// Its metadata for the protocol of the generation.
    pub metadata: Blob,
}

/// Why a `JoinGroup` was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefusal {
    /// Which error.
    pub kind: GroupErrorKind,
    /// The member id to answer: the request's, or the one to join with next.
    pub member_id: String,
}

/// What is answered to a `JoinGroup`.
pub type JoinAnswer = Result<JoinResponse, JoinRefusal>;

/// A `SyncGroup` request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SyncRequest {
    /// The group.
    pub group_id: String,
    /// The member.
    pub member_id: String,
    /// Its name over restarts.
    pub instance_id: Option<String>,
    /// The generation that it has joined.
    pub generation: i32,
    /// What it takes the group's members to be; `None` = not said (before version 5).
    pub protocol_type: Option<String>,
    /// What it takes the generation's protocol to be; `None` = not said (before version 5).
    pub protocol: Option<String>,
    /// Of the leader: assignments by member id.
    pub assignments: Vec<(String, Blob)>,
}

/// What a `SyncGroup` that succeeded says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncResponse {
    /// What the members are.
    pub protocol_type: Option<String>,
    /// The protocol of the generation.
    pub protocol: Option<String>,
    /// What the member shall have.
    pub assignment: Blob,
}

/// What is answered to a `SyncGroup`.
pub type SyncAnswer = Result<SyncResponse, GroupErrorKind>;

/// A `Heartbeat` request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HeartbeatRequest {
    /// The group.
    pub group_id: String,
    /// The member.
    pub member_id: String,
    /// Its name over restarts.
    pub instance_id: Option<String>,
    /// The generation that it is in.
    pub generation: i32,
}

/// One member of a `LeaveGroup` request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Leaving {
    /// The member; empty when an operator removes a static member by its name.
    pub member_id: String,
    /// Its name over restarts.
    pub instance_id: Option<String>,
}

/// What is answered to a `LeaveGroup`: for the group, or for each member in the request's order.
pub type LeaveAnswer = Result<Vec<Result<(), GroupErrorKind>>, GroupErrorKind>;
