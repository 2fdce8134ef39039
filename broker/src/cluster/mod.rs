//! The cluster: its image, and the control plane that changes it.

pub mod controller;
pub mod image;
pub mod placement;

pub use controller::{BrokerState, Cluster, NewTopic};
pub use image::{Image, Leadership, NOBODY, Partition, Topic};
