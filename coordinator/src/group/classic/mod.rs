//! Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

mod describe;
pub(super) mod group;

pub use describe::{ClassicGroupDescription, ClassicMemberDescription};
pub use group::ClassicGroupState;
