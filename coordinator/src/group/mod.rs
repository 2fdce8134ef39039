//! Groups: membership, assignment and what they own, one [`coordinator::GroupCoordinator`] per
//! partition of `__consumer_offsets`.

pub mod assignor;
pub mod coordinator;
pub mod plan;
pub mod records;
mod share_group;
mod share_heartbeat;
pub mod share_offsets;

pub use coordinator::{GroupCoordinator, GroupListing, ShareGroupCounts};
pub use share_group::ShareGroupState;
