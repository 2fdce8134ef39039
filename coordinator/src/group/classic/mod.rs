//! Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
//!
//! What members do between two generations is volatile, as in Kafka: these calls take `&mut self`
//! and have changed it when they answer. What is durable still changes by its record alone: a leader's
//! assignments, and the new id of a static member that comes back.

mod describe;
pub(super) mod group;
mod heartbeat;
mod join;
mod leave;
mod rebalance;
mod sync;
mod types;

pub use describe::{ClassicGroupDescription, ClassicMemberDescription};
pub use group::ClassicGroupState;
pub use types::*;
