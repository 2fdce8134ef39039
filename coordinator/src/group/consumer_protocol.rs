//! What consumers tell each other inside the classic protocol: subscriptions and assignments.
//!
//! The bytes belong to the clients; the coordinator reads them to know which topics a group
//! subscribes to, and writes them where members of both protocols are in one group.

use std::fmt;
use std::sync::Arc;

/// Bytes that members exchange. Cloning shares them.
pub type Blob = Arc<[u8]>;

/// The protocol type of groups of consumers.
pub const CONSUMER: &str = "consumer";

/// Partitions by topic name.
pub type NamedPartitions = Vec<(String, Vec<i32>)>;

/// What a consumer says when it joins.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Subscription {
    /// The version that it is written in.
    pub version: i16,
    /// Topics by name, in the client's order.
    pub topics: Vec<String>,
    /// What it still has (version 1 on).
    pub owned: NamedPartitions,
    /// The generation of `owned` (version 2 on); -1 = unknown.
    pub generation_id: i32,
    /// Its rack (version 3 on).
    pub rack_id: Option<String>,
}

/// Reads and writes the bytes; what cannot be read is `None`.
pub trait ConsumerProtocol: fmt::Debug + Sync {
    /// A member's metadata in `JoinGroup`.
    fn subscription(&self, bytes: &[u8]) -> Option<Subscription>;
    /// A member's assignment in `SyncGroup`.
    fn assignment(&self, bytes: &[u8]) -> Option<NamedPartitions>;
    /// The bytes of a subscription, in its version.
    fn encode_subscription(&self, subscription: &Subscription) -> Vec<u8>;
    /// The bytes of an assignment, in `version`.
    fn encode_assignment(&self, version: i16, partitions: &NamedPartitions) -> Vec<u8>;
}
