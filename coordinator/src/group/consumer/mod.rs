//! Consumer groups (KIP-848): the coordinator assigns, members follow.

pub mod assignor;
pub(super) mod classic_members;
pub mod describe;
mod group;
pub(super) mod heartbeat;
pub(super) mod members;
pub(super) mod migrate;
mod owned;
mod range;
mod reconcile;
pub mod records;
pub mod request;
mod uniform;

pub(super) use group::ConsumerGroup;
pub use group::ConsumerGroupState;
