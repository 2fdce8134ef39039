//! Writes log segments of the internal topics, for Kafka's own tools to read:
//!
//! ```text
//! cargo run -p ottla-protocol --example internal_logs -- DIR
//! kafka-dump-log --files DIR/share_state.log --share-group-state-decoder
//! kafka-dump-log --files DIR/consumer_offsets.log --offsets-decoder
//! kafka-dump-log --files DIR/transaction_state.log --transaction-log-decoder
//! kafka-dump-log --files DIR/cluster_metadata.log --cluster-metadata-decoder
//! kafka-dump-log --files DIR/codecs.log --print-data-log
//! ```
//!
//! Every batch is one of `BatchBuilder`'s, stamped with its offset as an append does.

use std::path::Path;

use bytes::Bytes;
use ottla_protocol::Uuid;
use ottla_protocol::batch::{BatchBuilder, BatchError, BatchHeader, BatchOptions, stamp};
use ottla_protocol::compression::Compression;
use ottla_protocol::internal::{
    ClassicMember, ClassicMemberMetadata, ClassicProtocol, ClusterMetadataRecord, ConfigRecord,
    ConsumerGroupMemberMetadataValue, ConsumerOffsetsRecord, EndPoint, FeatureLevelRecord,
    GroupKey, GroupMetadataValue, MemberKey, NamedTopicPartitions, OffsetCommitValue, OffsetKey,
    PartitionChangeRecord, PartitionRecord, ProducerIdsRecord, RegisterBrokerRecord,
    RemoveTopicRecord, ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue, ShareGroupStatePartitionMetadataValue, ShareGroupStateRecord,
    SharePartitionKey, ShareSnapshotValue, ShareUpdateValue, StateBatch, SupportedFeature,
    TargetAssignmentMemberValue, TargetAssignmentMetadataValue, TopicPartitions, TopicRecord,
    TransactionLogKey, TransactionLogValue, TransactionPartitions, TransactionStateRecord,
};

const NOW: i64 = 1_800_000_000_000;
const TOPIC: Uuid = Uuid::from_u128(0x70e4_41da_775f_42e8_b35b_585b_75cd_04eb);

type Record = (Option<Bytes>, Option<Bytes>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args()
        .nth(1)
        .ok_or("the directory to write to is missing")?;
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("share_state.log"), segment(share_state())?)?;
    std::fs::write(
        dir.join("consumer_offsets.log"),
        segment(consumer_offsets())?,
    )?;
    std::fs::write(
        dir.join("transaction_state.log"),
        segment(transaction_state())?,
    )?;
    std::fs::write(
        dir.join("cluster_metadata.log"),
        segment(cluster_metadata())?,
    )?;
    std::fs::write(dir.join("codecs.log"), codecs()?)?;
    Ok(())
}

/// Two batches in each codec: one small, one of many blocks.
fn codecs() -> Result<Vec<u8>, BatchError> {
    let mut log = Vec::new();
    let mut offset = 0;
    for compression in Compression::ALL {
        for count in [1, 3000] {
            let mut builder = BatchBuilder::new(BatchOptions {
                compression,
                ..Default::default()
            });
            for i in 0..count {
                let value = format!("a value of {compression}, the {i}th of {count} of them");
                builder.push(NOW + i, Some(b"key"), Some(value.as_bytes()));
            }
            let mut batch = builder.build()?.to_vec();
            stamp(&mut batch, offset, 0);
            offset = BatchHeader::parse(&batch)?.next_offset();
            log.extend(batch);
        }
    }
    Ok(log)
}

/// Two records a batch, one batch after the other.
fn segment(records: Vec<Record>) -> Result<Vec<u8>, BatchError> {
    let mut log = Vec::new();
    let mut offset = 0;
    for pair in records.chunks(2) {
        let mut builder = BatchBuilder::coordinator();
        for (key, value) in pair {
            builder.push(NOW + offset, key.as_deref(), value.as_deref());
        }
        let mut batch = builder.build()?.to_vec();
        stamp(&mut batch, offset, 0);
        offset = BatchHeader::parse(&batch)?.next_offset();
        log.extend(batch);
    }
    Ok(log)
}

fn share_state() -> Vec<Record> {
    let key = SharePartitionKey {
        group_id: "workers".into(),
        topic_id: TOPIC,
        partition: 3,
    };
    let state = |first_offset, last_offset, delivery_state| StateBatch {
        first_offset,
        last_offset,
        delivery_state,
        delivery_count: 2,
        ..StateBatch::default()
    };
    let mut snapshot = ShareSnapshotValue {
        state_epoch: 2,
        start_offset: 10,
        delivery_complete_count: 1,
        create_timestamp: NOW,
        write_timestamp: NOW,
        state_batches: vec![state(10, 11, 0), state(12, 12, 4)],
        ..ShareSnapshotValue::default()
    };
    snapshot
        .tags
        .set(9000, Bytes::from_static(b"a tag of Ottla's own"));
    let update = ShareUpdateValue {
        start_offset: 12,
        state_batches: vec![state(12, 20, 2)],
        ..ShareUpdateValue::default()
    };
    let records = [
        ShareGroupStateRecord::ShareSnapshot(key.clone(), Some(snapshot)),
        ShareGroupStateRecord::ShareUpdate(key.clone(), Some(update)),
        ShareGroupStateRecord::ShareSnapshot(key, None),
    ];
    records
        .iter()
        .map(|record| keyed(record.encode()))
        .collect()
}

fn group() -> GroupKey {
    GroupKey {
        group_id: "workers".into(),
    }
}

fn member() -> MemberKey {
    MemberKey {
        group_id: "workers".into(),
        member_id: "m1".into(),
    }
}

fn share_group() -> Vec<ConsumerOffsetsRecord> {
    use ConsumerOffsetsRecord as R;

    let partitions = || {
        vec![TopicPartitions {
            topic_id: TOPIC,
            partitions: vec![0, 1],
            ..Default::default()
        }]
    };
    let share_member = ShareGroupMemberMetadataValue {
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        subscribed_topic_names: vec!["orders".into()],
        ..Default::default()
    };
    let current = ShareGroupCurrentMemberAssignmentValue {
        member_epoch: 2,
        previous_member_epoch: 1,
        assigned_partitions: partitions(),
        ..Default::default()
    };
    let named = NamedTopicPartitions {
        topic_id: TOPIC,
        topic_name: "orders".into(),
        partitions: vec![0, 1],
        ..Default::default()
    };
    let initialized = ShareGroupStatePartitionMetadataValue {
        initialized_topics: vec![named],
        ..Default::default()
    };
    let epoch = TargetAssignmentMetadataValue {
        assignment_epoch: 2,
        assignment_timestamp: NOW,
        ..Default::default()
    };
    let target = TargetAssignmentMemberValue {
        topic_partitions: partitions(),
        ..Default::default()
    };
    let hash = ShareGroupMetadataValue {
        epoch: 2,
        metadata_hash: 77,
        ..Default::default()
    };
    vec![
        R::ShareGroupMemberMetadata(member(), Some(share_member)),
        R::ShareGroupMetadata(group(), Some(hash)),
        R::ShareGroupTargetAssignmentMember(member(), Some(target)),
        R::ShareGroupTargetAssignmentMetadata(group(), Some(epoch)),
        R::ShareGroupCurrentMemberAssignment(member(), Some(current)),
        R::ShareGroupStatePartitionMetadata(group(), Some(initialized)),
    ]
}

fn consumer_offsets() -> Vec<Record> {
    use ConsumerOffsetsRecord as R;

    let offset_key = OffsetKey {
        group: "g".into(),
        topic: "orders".into(),
        partition: 1,
    };
    let mut records = share_group();
    records.extend([
        R::OffsetCommit(offset_key.clone(), Some(offset_commit())),
        R::OffsetCommit(offset_key, None),
        R::GroupMetadata(group(), Some(classic_group())),
        R::ConsumerGroupMemberMetadata(member(), Some(consumer_member())),
        R::ShareGroupMemberMetadata(member(), None),
    ]);
    records
        .iter()
        .map(|record| keyed(record.encode()))
        .collect()
}

fn offset_commit() -> OffsetCommitValue {
    OffsetCommitValue {
        offset: 42,
        metadata: "kept".into(),
        commit_timestamp: NOW,
        topic_id: TOPIC,
        ..Default::default()
    }
}

fn classic_group() -> GroupMetadataValue {
    let member = ClassicMember {
        member_id: "m1".into(),
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout: 300_000,
        session_timeout: 45_000,
        subscription: Bytes::from_static(
            b"\0\x03\0\0\0\0\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff",
        ),
        assignment: Bytes::from_static(b"\0\x03\0\0\0\0\xff\xff\xff\xff"),
        ..Default::default()
    };
    GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 1,
        protocol: Some("range".into()),
        leader: Some("m1".into()),
        members: vec![member],
        ..Default::default()
    }
}

fn consumer_member() -> ConsumerGroupMemberMetadataValue {
    let classic = ClassicMemberMetadata {
        session_timeout_ms: 45_000,
        supported_protocols: vec![ClassicProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"\0\0"),
            ..Default::default()
        }],
        ..Default::default()
    };
    ConsumerGroupMemberMetadataValue {
        instance_id: Some("static".into()),
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        subscribed_topic_names: vec!["orders".into()],
        classic_member_metadata: Some(classic),
        ..Default::default()
    }
}

fn transaction_state() -> Vec<Record> {
    let ongoing = TransactionLogValue {
        producer_id: 1000,
        transaction_timeout_ms: 60_000,
        transaction_status: 1,
        transaction_partitions: Some(vec![TransactionPartitions {
            topic: "orders".into(),
            partition_ids: vec![0, 1],
            ..Default::default()
        }]),
        transaction_last_update_timestamp_ms: NOW,
        transaction_start_timestamp_ms: NOW,
        client_transaction_version: 2,
        previous_producer_id: 999,
        ..Default::default()
    };
    let key = TransactionLogKey {
        transactional_id: "tx".into(),
    };
    vec![keyed(
        TransactionStateRecord::TransactionLog(key, Some(ongoing)).encode(),
    )]
}

fn cluster_metadata() -> Vec<Record> {
    let partition = PartitionRecord {
        partition_id: 0,
        topic_id: TOPIC,
        replicas: vec![0, 1, 2],
        isr: vec![0, 1, 2],
        leader: 0,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: vec![TOPIC; 3],
        ..Default::default()
    };
    let change = PartitionChangeRecord {
        partition_id: 0,
        topic_id: TOPIC,
        isr: Some(vec![0, 1]),
        leader: 1,
        ..Default::default()
    };
    let config = ConfigRecord {
        resource_type: 2,
        resource_name: "orders".into(),
        name: "retention.ms".into(),
        value: Some("1000".into()),
        ..Default::default()
    };
    let ids = ProducerIdsRecord {
        broker_id: 0,
        broker_epoch: 5,
        next_producer_id: 1000,
        ..Default::default()
    };
    let records: Vec<ClusterMetadataRecord> = vec![
        FeatureLevelRecord {
            name: "share.version".into(),
            feature_level: 2,
            ..Default::default()
        }
        .into(),
        register_broker().into(),
        TopicRecord {
            name: "orders".into(),
            topic_id: TOPIC,
            ..Default::default()
        }
        .into(),
        partition.into(),
        config.clone().into(),
        ConfigRecord {
            value: None,
            ..config
        }
        .into(),
        change.into(),
        ids.into(),
        RemoveTopicRecord {
            topic_id: TOPIC,
            ..Default::default()
        }
        .into(),
    ];
    records
        .iter()
        .map(|record| (None, Some(record.encode())))
        .collect()
}

fn register_broker() -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        incarnation_id: TOPIC,
        broker_epoch: 5,
        end_points: vec![EndPoint {
            name: "PLAINTEXT".into(),
            host: "127.0.0.1".into(),
            port: 9092,
            ..Default::default()
        }],
        features: vec![SupportedFeature {
            name: "share.version".into(),
            max_supported_version: 2,
            ..Default::default()
        }],
        log_dirs: vec![TOPIC],
        ..Default::default()
    }
}

fn keyed((key, value): (Bytes, Option<Bytes>)) -> Record {
    (Some(key), value)
}
