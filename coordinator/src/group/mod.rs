//! Groups: membership, assignment and what they own, one [`GroupCoordinator`] per partition of
//! `__consumer_offsets`.

pub mod assignor;
pub mod classic;
pub mod consumer;
mod consumer_calls;
pub mod consumer_protocol;
mod coordinator;
mod coordinator_admin;
pub mod offsets;
mod partitions;
pub mod plan;
pub mod records;
mod share_calls;
mod share_delivery;
mod share_group;
mod share_heartbeat;
pub mod share_offsets;
mod state_partitions;
mod subscribed;
pub mod timers;

pub use coordinator::GroupCoordinator;
pub use coordinator_admin::{GroupCounts, GroupListing};
pub use share_delivery::{MAX_NOTE, ResumeOf};
pub use share_group::ShareGroupState;
