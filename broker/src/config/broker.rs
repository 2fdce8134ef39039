//! What one logical broker runs with.

use std::collections::BTreeMap;

use super::listener::Listener;
use super::snapshot::snapshot;

snapshot! {
    /// Topics: what a new one gets, and what may be done.
    pub struct TopicDefaults {
        /// Partitions of a topic that names no number.
        pub num_partitions: i32 = "num.partitions",
        /// Replicas of a topic that names no number.
        pub replication_factor: i16 = "default.replication.factor",
        /// Whether Metadata and Produce make missing topics.
        pub auto_create: bool = "auto.create.topics.enable",
        /// Whether topics may be deleted.
        pub delete_enable: bool = "delete.topic.enable",
        /// Whether leadership returns to the preferred replica by itself.
        pub auto_leader_rebalance: bool = "auto.leader.rebalance.enable",
        /// How often that is looked at, in seconds.
        pub leader_imbalance_check_interval_s: i64 = "leader.imbalance.check.interval.seconds",
        /// Whether missing dead-letter topics are made (KIP-1191).
        pub dlq_auto_create: bool = "errors.deadletterqueue.auto.create.topics.enable",
        /// What the name of a dead-letter topic begins with; empty allows any name.
        pub dlq_name_prefix: String = "errors.deadletterqueue.topic.name.prefix",
    }
}

snapshot! {
    /// Connections and requests. Sizes are bytes, times milliseconds.
    pub struct NetworkConfig {
        /// The largest request.
        pub request_max_bytes: i32 = "socket.request.max.bytes",
        /// The largest answer to a fetch (a first batch may exceed it).
        pub fetch_max_bytes: i32 = "fetch.max.bytes",
        /// Silence after which a connection is closed; negative is never.
        pub connections_max_idle_ms: i64 = "connections.max.idle.ms",
        /// Connections of the broker.
        pub max_connections: i32 = "max.connections",
        /// Connections of one address.
        pub max_connections_per_ip: i32 = "max.connections.per.ip",
        /// Connections of certain addresses.
        pub max_connections_per_ip_overrides: BTreeMap<String, i32> = "max.connections.per.ip.overrides",
        /// New connections in a second.
        pub max_connection_creation_rate: i32 = "max.connection.creation.rate",
        /// Requests that are read and not yet answered, over all connections.
        pub queued_max_requests: i32 = "queued.max.requests",
        /// Their bytes; -1 is no limit.
        pub queued_max_request_bytes: i64 = "queued.max.request.bytes",
        /// `SO_SNDBUF`; -1 leaves the system's.
        pub send_buffer_bytes: i32 = "socket.send.buffer.bytes",
        /// `SO_RCVBUF`; -1 leaves the system's.
        pub receive_buffer_bytes: i32 = "socket.receive.buffer.bytes",
        /// The backlog of a listening socket.
        pub listen_backlog: i32 = "socket.listen.backlog.size",
        /// Partitions in one answer of `DescribeTopicPartitions` (KIP-966).
        pub max_request_partition_size_limit: i32 = "max.request.partition.size.limit",
        /// Fetch sessions (KIP-227).
        pub fetch_session_slots: i32 = "max.incremental.fetch.session.cache.slots",
        /// The largest `PushTelemetry` (KIP-714).
        pub telemetry_max_bytes: i32 = "telemetry.max.bytes",
    }
}

snapshot! {
    /// The log as a whole. Times are milliseconds.
    pub struct LogDefaults {
        /// How often retention looks.
        pub retention_check_interval_ms: i64 = "log.retention.check.interval.ms",
        /// Whether compaction runs.
        pub cleaner_enable: bool = "log.cleaner.enable",
        /// How long the cleaner rests when there is nothing to do.
        pub cleaner_backoff_ms: i64 = "log.cleaner.backoff.ms",
        /// The most memory for the keys of one pass of compaction.
        pub cleaner_dedupe_buffer_size: i64 = "log.cleaner.dedupe.buffer.size",
        /// How full that memory may get, 0 to 1.
        pub cleaner_load_factor: f64 = "log.cleaner.io.buffer.load.factor",
        /// How often recovery points are written.
        pub flush_offset_checkpoint_interval_ms: i32 = "log.flush.offset.checkpoint.interval.ms",
        /// How long an idle producer id is remembered.
        pub producer_id_expiration_ms: i32 = "producer.id.expiration.ms",
        /// How often idle producer ids are looked for.
        pub producer_id_expiration_check_interval_ms: i32 = "producer.id.expiration.check.interval.ms",
        /// How long the first background work waits after a start.
        pub initial_task_delay_ms: i64 = "log.initial.task.delay.ms",
    }
}

snapshot! {
    /// `__consumer_offsets` and committed offsets.
    pub struct OffsetsConfig {
        /// Partitions of the topic.
        pub partitions: i32 = "offsets.topic.num.partitions",
        /// Replicas of the topic.
        pub replication_factor: i16 = "offsets.topic.replication.factor",
        /// Bytes of a segment of the topic.
        pub segment_bytes: i32 = "offsets.topic.segment.bytes",
        /// The longest metadata of a commit, in bytes.
        pub metadata_max_bytes: i32 = "offset.metadata.max.bytes",
        /// Minutes for which the offsets of an empty group stay.
        pub retention_minutes: i32 = "offsets.retention.minutes",
        /// How often old offsets are looked for, in milliseconds.
        pub retention_check_interval_ms: i64 = "offsets.retention.check.interval.ms",
        /// How long a commit may take, in milliseconds.
        pub commit_timeout_ms: i32 = "offsets.commit.timeout.ms",
    }
}

snapshot! {
    /// `__share_group_state` and the share coordinator. Times are milliseconds.
    pub struct ShareStateConfig {
        /// Partitions of the topic.
        pub partitions: i32 = "share.coordinator.state.topic.num.partitions",
        /// Replicas of the topic.
        pub replication_factor: i16 = "share.coordinator.state.topic.replication.factor",
        /// In-sync replicas that a write needs.
        pub min_isr: i16 = "share.coordinator.state.topic.min.isr",
        /// Bytes of a segment of the topic.
        pub segment_bytes: i32 = "share.coordinator.state.topic.segment.bytes",
        /// How often the topic is pruned below the oldest needed record.
        pub prune_interval_ms: i32 = "share.coordinator.state.topic.prune.interval.ms",
        /// Update records between two snapshots of a share partition.
        pub snapshot_update_records: i32 = "share.coordinator.snapshot.update.records.per.snapshot",
        /// How often a share partition without traffic is written as a snapshot.
        pub cold_snapshot_interval_ms: i32 = "share.coordinator.cold.partition.snapshot.interval.ms",
        /// How long a write of share state may take.
        pub write_timeout_ms: i32 = "share.coordinator.write.timeout.ms",
    }
}

snapshot! {
    /// `__transaction_state` and transactions. Times are milliseconds.
    pub struct TransactionConfig {
        /// Partitions of the topic.
        pub partitions: i32 = "transaction.state.log.num.partitions",
        /// Replicas of the topic.
        pub replication_factor: i16 = "transaction.state.log.replication.factor",
        /// In-sync replicas that a write needs.
        pub min_isr: i32 = "transaction.state.log.min.isr",
        /// Bytes of a segment of the topic.
        pub segment_bytes: i32 = "transaction.state.log.segment.bytes",
        /// The longest timeout that a producer may ask for.
        pub max_timeout_ms: i32 = "transaction.max.timeout.ms",
        /// How long an idle transactional id stays.
        pub id_expiration_ms: i32 = "transactional.id.expiration.ms",
        /// How often transactions that timed out are aborted.
        pub abort_timed_out_interval_ms: i32 =
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        /// How often expired transactional ids are removed.
        pub remove_expired_interval_ms: i32 =
            "transaction.remove.expired.transaction.cleanup.interval.ms",
        /// Whether a producer must have begun a transaction on a partition that it writes to.
        pub partition_verification: bool = "transaction.partition.verification.enable",
        /// Whether external two-phase commit is allowed (KIP-939).
        pub two_phase_commit: bool = "transaction.two.phase.commit.enable",
    }
}

snapshot! {
    /// Groups of the classic protocol. Times are milliseconds.
    pub struct ClassicGroupBounds {
        /// The shortest session timeout of a member.
        pub min_session_timeout_ms: i32 = "group.min.session.timeout.ms",
        /// The longest session timeout of a member.
        pub max_session_timeout_ms: i32 = "group.max.session.timeout.ms",
        /// Members of a group.
        pub max_size: i32 = "group.max.size",
        /// How long the first rebalance of an empty group waits for more members.
        pub initial_rebalance_delay_ms: i32 = "group.initial.rebalance.delay.ms",
    }
}

snapshot! {
    /// Groups of the consumer protocol: what a group's own configs may not say.
    pub struct ConsumerGroupBounds {
        /// Members of a group.
        pub max_size: i32 = "group.consumer.max.size",
        /// Server-side assignors, the first being the default.
        pub assignors: Vec<String> = "group.consumer.assignors",
        /// Which changes between the classic and the consumer protocol are allowed; any case.
        pub migration_policy: String = "group.consumer.migration.policy",
        /// How often regular expressions are matched again, in milliseconds.
        pub regex_refresh_interval_ms: i32 = "group.consumer.regex.refresh.interval.ms",
    }
}

snapshot! {
    /// Share groups: what a group's own configs may not say.
    pub struct ShareGroupBounds {
        /// Members of a group.
        pub max_size: i32 = "group.share.max.size",
        /// Share sessions of the broker.
        pub max_share_sessions: i32 = "group.share.max.share.sessions",
        /// Assignors, the first being the default.
        pub assignors: Vec<String> = "group.share.assignors",
        /// How often the initialisation of share partitions is tried again, in milliseconds.
        pub initialize_retry_interval_ms: i32 = "group.share.initialize.retry.interval.ms",
    }
}

snapshot! {
    /// Streams groups: what a group's own configs may not say.
    pub struct StreamsGroupBounds {
        /// Members of a group.
        pub max_size: i32 = "group.streams.max.size",
        /// Assignors, the first being the default.
        pub assignors: Vec<String> = "group.streams.assignors",
    }
}

snapshot! {
    /// Replication as clients see it. Times are milliseconds.
    pub struct ReplicationConfig {
        /// Silence after which a replica leaves the ISR.
        pub replica_lag_time_max_ms: i64 = "replica.lag.time.max.ms",
        /// The class that picks a replica for a consumer (KIP-392); null: the leader.
        pub replica_selector_class: Option<String> = "replica.selector.class",
        /// Silence after which a broker counts as gone.
        pub broker_session_timeout_ms: i32 = "broker.session.timeout.ms",
        /// Whether API versions that are not stable are offered.
        pub unstable_api_versions: bool = "unstable.api.versions.enable",
        /// Whether feature levels that are not stable may be set.
        pub unstable_feature_versions: bool = "unstable.feature.versions.enable",
    }
}

/// Everything that one logical broker runs with; a snapshot, made anew by
/// [`Configs::broker`](super::Configs::broker) when a config changes.
///
/// The defaults of topics are in [`TopicConfig`](super::TopicConfig), those of groups in
/// [`GroupConfig`](super::GroupConfig): both are resolved over this broker.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    /// Its id.
    pub node_id: i32,
    /// Its rack.
    pub rack: Option<String>,
    /// What it serves; never empty, the inter-broker listener among them.
    pub listeners: Vec<Listener>,
    /// The name of the listener that other brokers would use: `inter.broker.listener.name`, else the first.
    pub inter_broker_listener: String,
    /// `group.coordinator.rebalance.protocols`: of `classic`, `consumer`, `share`, `streams`. `classic` always.
    /// Share groups are gated by the feature `share.version`, as in Kafka.
    pub rebalance_protocols: Vec<String>,
    /// Topics.
    pub topics: TopicDefaults,
    /// Connections and requests.
    pub network: NetworkConfig,
    /// The log as a whole.
    pub log: LogDefaults,
    /// Committed offsets.
    pub offsets: OffsetsConfig,
    /// Share state.
    pub share_state: ShareStateConfig,
    /// Transactions.
    pub transactions: TransactionConfig,
    /// Groups of the classic protocol.
    pub classic_groups: ClassicGroupBounds,
    /// Groups of the consumer protocol.
    pub consumer_groups: ConsumerGroupBounds,
    /// Share groups.
    pub share_groups: ShareGroupBounds,
    /// Streams groups.
    pub streams_groups: StreamsGroupBounds,
    /// Replication as clients see it.
    pub replication: ReplicationConfig,
}

impl BrokerConfig {
    pub(super) fn resolve(
        node_id: i32,
        listeners: Vec<Listener>,
        text: &dyn Fn(&'static str) -> Option<String>,
    ) -> Result<Self, &'static str> {
        let first = listeners
            .first()
            .map(|listener| listener.name.clone())
            .unwrap_or_default();
        let protocols = text("group.coordinator.rebalance.protocols").unwrap_or_default();
        Ok(Self {
            node_id,
            rack: text("broker.rack"),
            inter_broker_listener: text("inter.broker.listener.name")
                .map_or(first, |name| name.to_ascii_uppercase()),
            listeners,
            rebalance_protocols: super::value::list(&protocols),
            topics: TopicDefaults::resolve(text)?,
            network: NetworkConfig::resolve(text)?,
            log: LogDefaults::resolve(text)?,
            offsets: OffsetsConfig::resolve(text)?,
            share_state: ShareStateConfig::resolve(text)?,
            transactions: TransactionConfig::resolve(text)?,
            classic_groups: ClassicGroupBounds::resolve(text)?,
            consumer_groups: ConsumerGroupBounds::resolve(text)?,
            share_groups: ShareGroupBounds::resolve(text)?,
            streams_groups: StreamsGroupBounds::resolve(text)?,
            replication: ReplicationConfig::resolve(text)?,
        })
    }
}
