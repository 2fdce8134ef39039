//! The API keys of Apache Kafka 4.4.0 and Ottla's own: number, name, and the first version that is
//! "flexible" (compact lengths and tagged fields, KIP-482).

/// Stands for "no version of this API is flexible".
const NEVER: i16 = i16::MAX;

macro_rules! api_keys {
    ($($konst:ident = $key:literal $name:ident $flexible:tt)*) => {
        $(
            #[doc = concat!("The key of `", stringify!($name), "`.")]
            pub const $konst: i16 = $key;
        )*

        /// The name of an API as Kafka writes it; `None` for a key that neither 4.4.0 nor Ottla has.
        pub const fn name(key: i16) -> Option<&'static str> {
            match key {
                $($key => Some(stringify!($name)),)*
                _ => None,
            }
        }

        /// First flexible version of an API; `None` for an unknown key.
        pub(crate) const fn first_flexible(key: i16) -> Option<i16> {
            match key {
                $($key => Some($flexible),)*
                _ => None,
            }
        }
    };
}

/// The highest key of Kafka 4.4.0; its keys run from 0 to it without a hole.
pub const MAX: i16 = UNREGISTER_CONTROLLER;

/// The keys of Ottla's own APIs, in order.
pub const OWN: [i16; 2] = [ALTER_SHARE_GROUP_DELIVERY, DESCRIBE_SHARE_GROUP_DELIVERY];

api_keys! {
    PRODUCE = 0 Produce 9
    FETCH = 1 Fetch 12
    LIST_OFFSETS = 2 ListOffsets 6
    METADATA = 3 Metadata 9
    LEADER_AND_ISR = 4 LeaderAndIsr NEVER
    STOP_REPLICA = 5 StopReplica NEVER
    UPDATE_METADATA = 6 UpdateMetadata NEVER
    CONTROLLED_SHUTDOWN = 7 ControlledShutdown NEVER
    OFFSET_COMMIT = 8 OffsetCommit 8
    OFFSET_FETCH = 9 OffsetFetch 6
    FIND_COORDINATOR = 10 FindCoordinator 3
    JOIN_GROUP = 11 JoinGroup 6
    HEARTBEAT = 12 Heartbeat 4
    LEAVE_GROUP = 13 LeaveGroup 4
    SYNC_GROUP = 14 SyncGroup 4
    DESCRIBE_GROUPS = 15 DescribeGroups 5
    LIST_GROUPS = 16 ListGroups 3
    SASL_HANDSHAKE = 17 SaslHandshake NEVER
    API_VERSIONS = 18 ApiVersions 3
    CREATE_TOPICS = 19 CreateTopics 5
    DELETE_TOPICS = 20 DeleteTopics 4
    DELETE_RECORDS = 21 DeleteRecords 2
    INIT_PRODUCER_ID = 22 InitProducerId 2
    OFFSET_FOR_LEADER_EPOCH = 23 OffsetForLeaderEpoch 4
    ADD_PARTITIONS_TO_TXN = 24 AddPartitionsToTxn 3
    ADD_OFFSETS_TO_TXN = 25 AddOffsetsToTxn 3
    END_TXN = 26 EndTxn 3
    WRITE_TXN_MARKERS = 27 WriteTxnMarkers 1
    TXN_OFFSET_COMMIT = 28 TxnOffsetCommit 3
    DESCRIBE_ACLS = 29 DescribeAcls 2
    CREATE_ACLS = 30 CreateAcls 2
    DELETE_ACLS = 31 DeleteAcls 2
    DESCRIBE_CONFIGS = 32 DescribeConfigs 4
    ALTER_CONFIGS = 33 AlterConfigs 2
    ALTER_REPLICA_LOG_DIRS = 34 AlterReplicaLogDirs 2
    DESCRIBE_LOG_DIRS = 35 DescribeLogDirs 2
    SASL_AUTHENTICATE = 36 SaslAuthenticate 2
    CREATE_PARTITIONS = 37 CreatePartitions 2
    CREATE_DELEGATION_TOKEN = 38 CreateDelegationToken 2
    RENEW_DELEGATION_TOKEN = 39 RenewDelegationToken 2
    EXPIRE_DELEGATION_TOKEN = 40 ExpireDelegationToken 2
    DESCRIBE_DELEGATION_TOKEN = 41 DescribeDelegationToken 2
    DELETE_GROUPS = 42 DeleteGroups 2
    ELECT_LEADERS = 43 ElectLeaders 2
    INCREMENTAL_ALTER_CONFIGS = 44 IncrementalAlterConfigs 1
    ALTER_PARTITION_REASSIGNMENTS = 45 AlterPartitionReassignments 0
    LIST_PARTITION_REASSIGNMENTS = 46 ListPartitionReassignments 0
    OFFSET_DELETE = 47 OffsetDelete NEVER
    DESCRIBE_CLIENT_QUOTAS = 48 DescribeClientQuotas 1
    ALTER_CLIENT_QUOTAS = 49 AlterClientQuotas 1
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50 DescribeUserScramCredentials 0
    ALTER_USER_SCRAM_CREDENTIALS = 51 AlterUserScramCredentials 0
    VOTE = 52 Vote 0
    BEGIN_QUORUM_EPOCH = 53 BeginQuorumEpoch 1
    END_QUORUM_EPOCH = 54 EndQuorumEpoch 1
    DESCRIBE_QUORUM = 55 DescribeQuorum 0
    ALTER_PARTITION = 56 AlterPartition 0
    UPDATE_FEATURES = 57 UpdateFeatures 0
    ENVELOPE = 58 Envelope 0
    FETCH_SNAPSHOT = 59 FetchSnapshot 0
    DESCRIBE_CLUSTER = 60 DescribeCluster 0
    DESCRIBE_PRODUCERS = 61 DescribeProducers 0
    BROKER_REGISTRATION = 62 BrokerRegistration 0
    BROKER_HEARTBEAT = 63 BrokerHeartbeat 0
    UNREGISTER_BROKER = 64 UnregisterBroker 0
    DESCRIBE_TRANSACTIONS = 65 DescribeTransactions 0
    LIST_TRANSACTIONS = 66 ListTransactions 0
    ALLOCATE_PRODUCER_IDS = 67 AllocateProducerIds 0
    CONSUMER_GROUP_HEARTBEAT = 68 ConsumerGroupHeartbeat 0
    CONSUMER_GROUP_DESCRIBE = 69 ConsumerGroupDescribe 0
    CONTROLLER_REGISTRATION = 70 ControllerRegistration 0
    GET_TELEMETRY_SUBSCRIPTIONS = 71 GetTelemetrySubscriptions 0
    PUSH_TELEMETRY = 72 PushTelemetry 0
    ASSIGN_REPLICAS_TO_DIRS = 73 AssignReplicasToDirs 0
    LIST_CONFIG_RESOURCES = 74 ListConfigResources 0
    DESCRIBE_TOPIC_PARTITIONS = 75 DescribeTopicPartitions 0
    SHARE_GROUP_HEARTBEAT = 76 ShareGroupHeartbeat 0
    SHARE_GROUP_DESCRIBE = 77 ShareGroupDescribe 0
    SHARE_FETCH = 78 ShareFetch 0
    SHARE_ACKNOWLEDGE = 79 ShareAcknowledge 0
    ADD_RAFT_VOTER = 80 AddRaftVoter 0
    REMOVE_RAFT_VOTER = 81 RemoveRaftVoter 0
    UPDATE_RAFT_VOTER = 82 UpdateRaftVoter 0
    INITIALIZE_SHARE_GROUP_STATE = 83 InitializeShareGroupState 0
    READ_SHARE_GROUP_STATE = 84 ReadShareGroupState 0
    WRITE_SHARE_GROUP_STATE = 85 WriteShareGroupState 0
    DELETE_SHARE_GROUP_STATE = 86 DeleteShareGroupState 0
    READ_SHARE_GROUP_STATE_SUMMARY = 87 ReadShareGroupStateSummary 0
    STREAMS_GROUP_HEARTBEAT = 88 StreamsGroupHeartbeat 0
    STREAMS_GROUP_DESCRIBE = 89 StreamsGroupDescribe 0
    DESCRIBE_SHARE_GROUP_OFFSETS = 90 DescribeShareGroupOffsets 0
    ALTER_SHARE_GROUP_OFFSETS = 91 AlterShareGroupOffsets 0
    DELETE_SHARE_GROUP_OFFSETS = 92 DeleteShareGroupOffsets 0
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93 StreamsGroupTopologyDescriptionUpdate 0
    UNREGISTER_CONTROLLER = 94 UnregisterController 0
    // Ottla's own, far beyond what Kafka hands out.
    ALTER_SHARE_GROUP_DELIVERY = 20000 AlterShareGroupDelivery 0
    DESCRIBE_SHARE_GROUP_DELIVERY = 20001 DescribeShareGroupDelivery 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_up_to_the_last_has_a_name() {
        for key in (0..=MAX).chain(OWN) {
            assert!(name(key).is_some(), "{key}");
        }
        assert_eq!(name(-1), None);
        assert_eq!(name(MAX + 1), None);
        assert_eq!(name(SHARE_FETCH), Some("ShareFetch"));
        assert_eq!(
            name(ALTER_SHARE_GROUP_DELIVERY),
            Some("AlterShareGroupDelivery")
        );
    }
}
