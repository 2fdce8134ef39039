//! `__cluster_metadata`: topics, partitions, configs, features and the rest of what a controller
//! persists (KIP-500, KIP-631), all the record types of Kafka 4.4.

mod registrations;
mod security;

pub use registrations::*;
pub use security::*;

use bytes::Bytes;
use uuid::Uuid;

use crate::internal::InternalError;
use crate::internal::schema::schema;
use crate::internal::wire::{Decoder, Encoder, Wire};

schema! {
    /// A topic was created.
    TopicRecord {
        /// Topic name.
        name: String,
        /// Topic.
        topic_id: Uuid,
    }
}

schema! {
    /// A partition was created.
    PartitionRecord {
        /// Partition index.
        partition_id: i32 = -1,
        /// Topic.
        topic_id: Uuid,
        /// Replicas, the preferred leader first.
        replicas: Vec<i32>,
        /// Those of them that are in sync.
        isr: Vec<i32>,
        /// Replicas that a reassignment takes away.
        removing_replicas: Vec<i32>,
        /// Replicas that a reassignment adds.
        adding_replicas: Vec<i32>,
        /// Leader, -1 for none.
        leader: i32 = -1,
        /// Leader epoch.
        leader_epoch: i32 = -1,
        /// Partition epoch, one more with each change.
        partition_epoch: i32 = -1,
        /// Log directory of each replica.
        @ 1..; directories: Vec<Uuid>,
    }
    tags {
        /// 0 recovered, 1 recovering after an unclean election.
        0 leader_recovery_state: i8,
        /// Eligible leader replicas (KIP-966).
        1 @ 2..; eligible_leader_replicas: Option<Vec<i32>>,
        /// Last known eligible leader replicas.
        2 @ 2..; last_known_elr: Option<Vec<i32>>,
    }
}

schema! {
    /// A config was set, or with a null value removed.
    ConfigRecord {
        /// 2 topic, 4 broker, 16 client metrics, 32 group.
        resource_type: i8,
        /// Topic or group name, or broker id; empty for the default of all brokers.
        resource_name: String,
        /// Config key.
        name: String,
        /// Config value.
        value: Option<String>,
    }
}

schema! {
    /// A partition changed; what is null, or -2 for the leader, did not.
    PartitionChangeRecord {
        /// Partition index.
        partition_id: i32 = -1,
        /// Topic.
        topic_id: Uuid,
    }
    tags {
        /// Replicas in sync.
        0 isr: Option<Vec<i32>>,
        /// Leader, -1 for none. A change of it raises the leader epoch.
        1 leader: i32 = -2,
        /// Replicas.
        2 replicas: Option<Vec<i32>>,
        /// Replicas that a reassignment takes away.
        3 removing_replicas: Option<Vec<i32>>,
        /// Replicas that a reassignment adds.
        4 adding_replicas: Option<Vec<i32>>,
        /// 0 recovered, 1 recovering, -1 unchanged.
        5 leader_recovery_state: i8 = -1,
        /// Eligible leader replicas.
        6 @ 2..; eligible_leader_replicas: Option<Vec<i32>>,
        /// Last known eligible leader replicas.
        7 @ 2..; last_known_elr: Option<Vec<i32>>,
        /// Log directory of each replica.
        8 @ 1..; directories: Option<Vec<Uuid>>,
    }
}

schema! {
    /// A topic was deleted, with its partitions and configs.
    RemoveTopicRecord {
        /// Topic.
        topic_id: Uuid,
    }
}

schema! {
    /// A feature was set to a level; 0 takes it away.
    FeatureLevelRecord {
        /// Feature, such as `share.version`.
        name: String,
        /// Level.
        feature_level: i16,
    }
}

schema! {
    /// A block of producer ids was given to a broker.
    ProducerIdsRecord {
        /// Broker.
        broker_id: i32,
        /// Its epoch.
        broker_epoch: i64 = -1,
        /// First producer id behind the block.
        next_producer_id: i64,
    }
}

schema! {
    /// Nothing; moves the high watermark on.
    NoOpRecord {}
}

schema! {
    /// State of the `ZooKeeper` migration.
    ZkMigrationStateRecord {
        /// 0 none, 4 post-migration.
        zk_migration_state: i8,
    }
}

schema! {
    /// A metadata transaction begins (KIP-868).
    BeginTransactionRecord {}
    tags {
        /// What it is for.
        0 name: Option<String>,
    }
}

schema! {
    /// The metadata transaction is committed.
    EndTransactionRecord {}
}

schema! {
    /// The metadata transaction is undone.
    AbortTransactionRecord {}
    tags {
        /// Why.
        0 reason: Option<String>,
    }
}

schema! {
    /// The eligible leader replicas of a topic were forgotten.
    ClearElrRecord {
        /// Topic name, empty for every topic.
        topic_name: String,
    }
}

/// The records of the metadata log: API key, record, and the record's newest version, which is the
/// one that is written.
macro_rules! metadata_records {
    ($( $(#[$attr:meta])* $key:literal $variant:ident($record:ident) newest $newest:literal, )*) => {
        /// A record of `__cluster_metadata`.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ClusterMetadataRecord {
            $( $(#[$attr])* $variant($record), )*
        }

        impl ClusterMetadataRecord {
            /// The API key that says what the record is.
            pub fn api_key(&self) -> u32 {
                match self { $( Self::$variant(_) => $key, )* }
            }

            /// The name that Kafka's schemas have for the record.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => stringify!($record), )* }
            }

            /// The record's value; metadata records have no key.
            pub fn encode(&self) -> Bytes {
                match self { $( Self::$variant(record) => frame($key, $newest, record), )* }
            }

            /// Reads a record's value, in any version up to Kafka 4.4's.
            pub fn decode(value: &[u8]) -> Result<Self, InternalError> {
                let (key, version, decoder) = unframe(value)?;
                match key {
                    $( $key => Ok(Self::$variant(read(stringify!($record), version, $newest, decoder)?)), )*
                    unknown => Err(InternalError::UnknownType(unknown as i32)),
                }
            }

            /// One record of each type.
            #[cfg(test)]
            pub(super) fn samples(from: &mut crate::internal::tests::Choices) -> Vec<Self> {
                use crate::internal::tests::Sample;
                vec![$( Self::$variant(Sample::sample(from)), )*]
            }

            /// The record in every version that can be read.
            #[cfg(test)]
            pub(super) fn in_every_version(&self) -> Vec<Bytes> {
                match self { $(
                    Self::$variant(record) => {
                        (0..=$newest).map(|version| frame($key, version, record)).collect()
                    }
                )* }
            }
        }

        $( impl From<$record> for ClusterMetadataRecord {
            fn from(record: $record) -> Self {
                Self::$variant(record)
            }
        } )*
    };
}

fn frame(key: u32, version: i16, record: &impl Wire) -> Bytes {
    let mut encoder = Encoder::new();
    encoder.uvarint(1);
    encoder.uvarint(key);
    encoder.uvarint(version as u32);
    encoder.version = version;
    encoder.flexible = true;
    record.put(&mut encoder);
    encoder.finish()
}

fn unframe(value: &[u8]) -> Result<(u32, u32, Decoder<'_>), InternalError> {
    let mut decoder = Decoder::new(value);
    match decoder.uvarint()? {
        1 => Ok((decoder.uvarint()?, decoder.uvarint()?, decoder)),
        other => Err(InternalError::FrameVersion(other)),
    }
}

fn read<T: Wire>(
    record: &'static str,
    version: u32,
    newest: i16,
    mut decoder: Decoder<'_>,
) -> Result<T, InternalError> {
    match i16::try_from(version) {
        Ok(version) if version <= newest => {
            decoder.version = version;
            decoder.flexible = true;
            decoder.whole()
        }
        _ => Err(InternalError::UnknownVersion {
            record,
            version: version as i32,
            newest,
        }),
    }
}

metadata_records! {
    /// A broker registered.
    0 RegisterBroker(RegisterBrokerRecord) newest 4,
    /// A broker was taken out of the cluster.
    1 UnregisterBroker(UnregisterBrokerRecord) newest 0,
    /// A topic was created.
    2 Topic(TopicRecord) newest 0,
    /// A partition was created.
    3 Partition(PartitionRecord) newest 2,
    /// A config was set or removed.
    4 Config(ConfigRecord) newest 0,
    /// A partition changed.
    5 PartitionChange(PartitionChangeRecord) newest 2,
    /// A broker was fenced.
    7 FenceBroker(FenceBrokerRecord) newest 0,
    /// A broker was unfenced.
    8 UnfenceBroker(UnfenceBrokerRecord) newest 0,
    /// A topic was deleted.
    9 RemoveTopic(RemoveTopicRecord) newest 0,
    /// A delegation token was created or renewed.
    10 DelegationToken(DelegationTokenRecord) newest 0,
    /// A SCRAM credential was set.
    11 UserScramCredential(UserScramCredentialRecord) newest 0,
    /// A feature was set to a level.
    12 FeatureLevel(FeatureLevelRecord) newest 0,
    /// A client quota was set or removed.
    14 ClientQuota(ClientQuotaRecord) newest 0,
    /// A block of producer ids was given out.
    15 ProducerIds(ProducerIdsRecord) newest 0,
    /// A broker's registration changed.
    17 BrokerRegistrationChange(BrokerRegistrationChangeRecord) newest 3,
    /// An ACL was created.
    18 AccessControlEntry(AccessControlEntryRecord) newest 0,
    /// An ACL was deleted.
    19 RemoveAccessControlEntry(RemoveAccessControlEntryRecord) newest 0,
    /// Nothing.
    20 NoOp(NoOpRecord) newest 0,
    /// State of the `ZooKeeper` migration.
    21 ZkMigrationState(ZkMigrationStateRecord) newest 0,
    /// A SCRAM credential was deleted.
    22 RemoveUserScramCredential(RemoveUserScramCredentialRecord) newest 0,
    /// A metadata transaction begins.
    23 BeginTransaction(BeginTransactionRecord) newest 0,
    /// The metadata transaction is committed.
    24 EndTransaction(EndTransactionRecord) newest 0,
    /// The metadata transaction is undone.
    25 AbortTransaction(AbortTransactionRecord) newest 0,
    /// A delegation token was deleted.
    26 RemoveDelegationToken(RemoveDelegationTokenRecord) newest 0,
    /// A controller registered.
    27 RegisterController(RegisterControllerRecord) newest 0,
    /// Eligible leader replicas were forgotten.
    28 ClearElr(ClearElrRecord) newest 0,
    /// A controller was taken out of the cluster.
    29 UnregisterController(UnregisterControllerRecord) newest 0,
}
