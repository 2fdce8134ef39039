//! `__consumer_offsets`: what the group coordinator persists of groups of every kind and of
//! committed offsets (KIP-848, KIP-932; record types 17 and up, streams groups, are not here yet).

use bytes::Bytes;
use uuid::Uuid;

use super::InternalError;
use super::schema::{key, keyed_records, schema};
use super::wire::{Decoder, Encoder, Wire};

key! {
    /// Key of a committed offset.
    OffsetKey {
        /// Group.
        group: String,
        /// Topic name.
        topic: String,
        /// Partition index.
        partition: i32,
    }
}

key! {
    /// Key of the records that a group has one of.
    GroupKey {
        /// Group.
        group_id: String,
    }
}

key! {
    /// Key of the records that each member of a group has one of.
    MemberKey {
        /// Group.
        group_id: String,
        /// Member.
        member_id: String,
    }
}

key! {
    /// Key of a regular expression that a consumer group subscribes to.
    RegexKey {
        /// Group.
        group_id: String,
        /// The expression.
        regular_expression: String,
    }
}

schema! {
    /// A committed offset as releases before 0.9 wrote it.
    LegacyOffsetCommitValue {
        /// Offset of the next record to consume.
        offset: i64,
        /// What the client wants to keep with it.
        metadata: String,
        /// When it was committed, milliseconds since the epoch.
        commit_timestamp: i64,
    }
}

schema! {
    /// A committed offset.
    OffsetCommitValue {
        /// Offset of the next record to consume.
        offset: i64,
        /// Leader epoch of the last consumed record, -1 for unknown.
        @ 3..; leader_epoch: i32 = -1,
        /// What the client wants to keep with it.
        metadata: String,
        /// When it was committed, milliseconds since the epoch.
        commit_timestamp: i64,
        /// When it expires, milliseconds since the epoch, -1 for the broker's retention.
        @ 1..=1; expire_timestamp: i64 = -1,
    }
    tags {
        /// Topic, nil for unknown.
        0 @ 4..; topic_id: Uuid,
    }
}

impl OffsetCommitValue {
    /// Whether the client chose how long it is kept: only version 1 can say so.
    fn expires(&self) -> bool {
        self.expire_timestamp != -1
    }
}

schema! {
    /// A member of a classic group.
    ClassicMember {
        /// Member.
        member_id: String,
        /// Static instance, null for a dynamic member.
        @ 3..; group_instance_id: Option<String>,
        /// What the client calls itself.
        client_id: String,
        /// Where it connects from.
        client_host: String,
        /// Rebalance timeout in milliseconds.
        @ 1..; rebalance_timeout: i32 = -1,
        /// Session timeout in milliseconds.
        session_timeout: i32,
        /// The member's subscription, in the group's protocol.
        subscription: Bytes,
        /// The member's assignment, in the group's protocol.
        assignment: Bytes,
    }
}

schema! {
    /// A classic group.
    GroupMetadataValue {
        /// Protocol type, `consumer` for consumers.
        protocol_type: String,
        /// Generation.
        generation: i32,
        /// Chosen protocol.
        protocol: Option<String>,
        /// Leader's member id.
        leader: Option<String>,
        /// Last change of state, milliseconds since the epoch, -1 for unknown.
        @ 2..; current_state_timestamp: i64 = -1,
        /// Members.
        members: Vec<ClassicMember>,
    }
}

schema! {
    /// A consumer group's epoch.
    ConsumerGroupMetadataValue {
        /// Group epoch.
        epoch: i32,
    }
    tags {
        /// Hash of the subscribed topics' metadata.
        0 metadata_hash: i64,
    }
}

schema! {
    /// Racks of a partition's replicas.
    PartitionMetadata {
        /// Partition index.
        partition: i32,
        /// Racks.
        racks: Vec<String>,
    }
}

schema! {
    /// Metadata of a subscribed topic.
    TopicMetadata {
        /// Topic.
        topic_id: Uuid,
        /// Topic name.
        topic_name: String,
        /// Number of partitions.
        num_partitions: i32,
        /// Racks, not used since 4.0.
        partition_metadata: Vec<PartitionMetadata>,
    }
}

schema! {
    /// A consumer group's view of topics, before 4.1 hashed it.
    ConsumerGroupPartitionMetadataValue {
        /// Topics.
        topics: Vec<TopicMetadata>,
    }
}

schema! {
    /// A protocol that a classic member of a consumer group supports.
    ClassicProtocol {
        /// Assignor.
        name: String,
        /// Subscription.
        metadata: Bytes,
    }
}

schema! {
    /// What a member of a consumer group that speaks the classic protocol said when it joined.
    ClassicMemberMetadata {
        /// Session timeout in milliseconds.
        session_timeout_ms: i32,
        /// Protocols, in the order of preference.
        supported_protocols: Vec<ClassicProtocol>,
    }
}

/// Only ever in a tagged field, where a byte says whether it is there (1) or null (0); and written
/// even when it is null, as Kafka does.
impl Wire for Option<ClassicMemberMetadata> {
    fn put(&self, to: &mut Encoder) {
        match self {
            None => to.uvarint(0),
            Some(metadata) => {
                to.uvarint(1);
                metadata.put(to);
            }
        }
    }

    fn get(from: &mut Decoder<'_>) -> Result<Self, InternalError> {
        if from.uvarint()? == 0 {
            Ok(None)
        } else {
            ClassicMemberMetadata::get(from).map(Some)
        }
    }

    fn is_left_out(&self, _default: &Self) -> bool {
        false
    }
}

schema! {
    /// What a member of a consumer group said of itself.
    ConsumerGroupMemberMetadataValue {
        /// Static instance.
        instance_id: Option<String>,
        /// Rack.
        rack_id: Option<String>,
        /// What the client calls itself.
        client_id: String,
        /// Where it connects from.
        client_host: String,
        /// Topics that it subscribes to by name.
        subscribed_topic_names: Vec<String>,
        /// Topics that it subscribes to by expression; Kafka writes an empty one for none.
        subscribed_topic_regex: Option<String>,
        /// Rebalance timeout in milliseconds, -1 for unknown.
        rebalance_timeout_ms: i32 = -1,
        /// Assignor that it wants.
        server_assignor: Option<String>,
    }
    tags {
        /// Set for a member that speaks the classic protocol.
        0 classic_member_metadata: Option<ClassicMemberMetadata>,
    }
}

schema! {
    /// Epoch of a target assignment.
    TargetAssignmentMetadataValue {
        /// Group epoch that the assignment was made for.
        assignment_epoch: i32,
    }
    tags {
        /// When it was made, milliseconds since the epoch.
        0 assignment_timestamp: i64,
    }
}

schema! {
    /// Partitions of a topic.
    TopicPartitions {
        /// Topic.
        topic_id: Uuid,
        /// Partition indexes.
        partitions: Vec<i32>,
    }
}

schema! {
    /// What a member is to have.
    TargetAssignmentMemberValue {
        /// Partitions.
        topic_partitions: Vec<TopicPartitions>,
    }
}

schema! {
    /// Partitions of a topic that a member of a consumer group has.
    AssignedTopicPartitions {
        /// Topic.
        topic_id: Uuid,
        /// Partition indexes.
        partitions: Vec<i32>,
    }
    tags {
        /// Member epoch at which each partition was assigned, as many as there are partitions.
        0 assignment_epochs: Option<Vec<i32>>,
    }
}

schema! {
    /// What a member of a consumer group has.
    ConsumerGroupCurrentMemberAssignmentValue {
        /// Member epoch.
        member_epoch: i32,
        /// Epoch before, in case that the member missed the last one.
        previous_member_epoch: i32,
        /// 0 stable, 1 unrevoked partitions, 2 unreleased partitions, 127 unknown.
        state: i8,
        /// Partitions that it has.
        assigned_partitions: Vec<AssignedTopicPartitions>,
        /// Partitions that it must give up.
        partitions_pending_revocation: Vec<AssignedTopicPartitions>,
    }
}

schema! {
    /// Topics that a regular expression stands for.
    ConsumerGroupRegularExpressionValue {
        /// Topic names.
        topics: Vec<String>,
        /// Version of the cluster metadata that it was resolved with.
        version: i64,
        /// When, milliseconds since the epoch.
        timestamp: i64,
    }
}

schema! {
    /// What a member of a share group said of itself.
    ShareGroupMemberMetadataValue {
        /// Rack.
        rack_id: Option<String>,
        /// What the client calls itself.
        client_id: String,
        /// Where it connects from.
        client_host: String,
        /// Topics that it subscribes to.
        subscribed_topic_names: Vec<String>,
    }
}

schema! {
    /// A share group's epoch.
    ShareGroupMetadataValue {
        /// Group epoch.
        epoch: i32,
        /// Hash of the subscribed topics' metadata.
        metadata_hash: i64,
    }
}

schema! {
    /// What a member of a share group has.
    ShareGroupCurrentMemberAssignmentValue {
        /// Member epoch.
        member_epoch: i32,
        /// Epoch before.
        previous_member_epoch: i32,
        /// 0 stable.
        state: i8,
        /// Partitions that it has.
        assigned_partitions: Vec<TopicPartitions>,
    }
}

schema! {
    /// Partitions of a topic, with its name.
    NamedTopicPartitions {
        /// Topic.
        topic_id: Uuid,
        /// Topic name.
        topic_name: String,
        /// Partition indexes.
        partitions: Vec<i32>,
    }
}

schema! {
    /// A topic and its name.
    NamedTopic {
        /// Topic.
        topic_id: Uuid,
        /// Topic name.
        topic_name: String,
    }
}

schema! {
    /// How far the share partitions of a share group have state.
    ShareGroupStatePartitionMetadataValue {
        /// Partitions whose state is being initialised.
        initializing_topics: Vec<NamedTopicPartitions>,
        /// Partitions that have state.
        initialized_topics: Vec<NamedTopicPartitions>,
        /// Topics whose state is being deleted.
        deleting_topics: Vec<NamedTopic>,
    }
}

keyed_records! {
    /// A record of `__consumer_offsets`.
    ConsumerOffsetsRecord {
        /// A committed offset of old.
        0 LegacyOffsetCommit(OffsetKey, LegacyOffsetCommitValue) newest 0 flexible 1 writes 0,
        /// A committed offset.
        1 OffsetCommit(OffsetKey, OffsetCommitValue)
            newest 4 flexible 4 writes 4 or 1 if OffsetCommitValue::expires,
        /// A classic group. (Kafka 4.4 writes version 3, which has no room for tags.)
        2 GroupMetadata(GroupKey, GroupMetadataValue) newest 4 flexible 4 writes 3,
        /// A consumer group's epoch.
        3 ConsumerGroupMetadata(GroupKey, ConsumerGroupMetadataValue)
            newest 0 flexible 0 writes 0,
        /// A consumer group's view of topics, no longer written.
        4 ConsumerGroupPartitionMetadata(GroupKey, ConsumerGroupPartitionMetadataValue)
            newest 0 flexible 0 writes 0,
        /// A member of a consumer group.
        5 ConsumerGroupMemberMetadata(MemberKey, ConsumerGroupMemberMetadataValue)
            newest 0 flexible 0 writes 0,
        /// Epoch of a consumer group's target assignment.
        6 ConsumerGroupTargetAssignmentMetadata(GroupKey, TargetAssignmentMetadataValue)
            newest 0 flexible 0 writes 0,
        /// Target assignment of a member of a consumer group.
        7 ConsumerGroupTargetAssignmentMember(MemberKey, TargetAssignmentMemberValue)
            newest 0 flexible 0 writes 0,
        /// Current assignment of a member of a consumer group.
        8 ConsumerGroupCurrentMemberAssignment(MemberKey, ConsumerGroupCurrentMemberAssignmentValue)
            newest 0 flexible 0 writes 0,
        /// A member of a share group.
        10 ShareGroupMemberMetadata(MemberKey, ShareGroupMemberMetadataValue)
            newest 0 flexible 0 writes 0,
        /// A share group's epoch.
        11 ShareGroupMetadata(GroupKey, ShareGroupMetadataValue) newest 0 flexible 0 writes 0,
        /// Epoch of a share group's target assignment.
        12 ShareGroupTargetAssignmentMetadata(GroupKey, TargetAssignmentMetadataValue)
            newest 0 flexible 0 writes 0,
        /// Target assignment of a member of a share group.
        13 ShareGroupTargetAssignmentMember(MemberKey, TargetAssignmentMemberValue)
            newest 0 flexible 0 writes 0,
        /// Current assignment of a member of a share group.
        14 ShareGroupCurrentMemberAssignment(MemberKey, ShareGroupCurrentMemberAssignmentValue)
            newest 0 flexible 0 writes 0,
        /// Which share partitions of a share group have state.
        15 ShareGroupStatePartitionMetadata(GroupKey, ShareGroupStatePartitionMetadataValue)
            newest 0 flexible 0 writes 0,
        /// A resolved regular expression of a consumer group.
        16 ConsumerGroupRegularExpression(RegexKey, ConsumerGroupRegularExpressionValue)
            newest 0 flexible 0 writes 0,
    }
}
