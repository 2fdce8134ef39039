//! The cluster: its image, and the control plane that changes it.

mod apply;
mod commands;
mod configs;
pub mod controller;
pub mod election;
pub mod image;
mod leaders;
pub mod leadership;
pub mod placement;
pub mod reassignment;

pub use configs::Altered;
pub use controller::{BrokerState, Cluster, NewTopic};
pub use image::{Image, Partition, Topic};
pub(crate) use leaders::Elected;
pub use leaders::Reassignment;
pub use leadership::{Leadership, LeadershipChange, NOBODY};
