//! What a client may do where no authorizer is set, as the bit fields of Kafka 4.4.0 (KIP-430).

/// With a topic.
pub(super) const TOPIC: i32 = 3576;
/// With the cluster.
pub(super) const CLUSTER: i32 = 3968;
/// With a group.
pub(super) const GROUP: i32 = 3400;
/// The field's value when it was not asked for.
pub(super) const NOT_ASKED: i32 = i32::MIN;

/// `operations`, if they were asked for.
pub(super) fn told(asked: bool, operations: i32) -> i32 {
    if asked { operations } else { NOT_ASKED }
}
