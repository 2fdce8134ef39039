//! Brokers and controllers: what they say of themselves, and whether clients may come.

use uuid::Uuid;

use crate::internal::schema::schema;

schema! {
    /// An address of a broker or controller.
    EndPoint {
        /// Listener name.
        name: String,
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// Security protocol: 0 PLAINTEXT, 1 SSL, 2 `SASL_PLAINTEXT`, 3 `SASL_SSL`.
        security_protocol: i16,
    }
}

schema! {
    /// A feature that a broker or controller supports.
    SupportedFeature {
        /// Feature.
        name: String,
        /// Lowest level.
        min_supported_version: i16,
        /// Highest level.
        max_supported_version: i16,
    }
}

schema! {
    /// A broker registered.
    RegisterBrokerRecord {
        /// Broker.
        broker_id: i32,
        /// Left over from the `ZooKeeper` migration.
        @ 2..; is_migrating_zk_broker: bool,
        /// Of this run of the broker.
        incarnation_id: Uuid,
        /// Epoch: the record's offset.
        broker_epoch: i64,
        /// Its listeners.
        end_points: Vec<EndPoint>,
        /// Its features.
        features: Vec<SupportedFeature>,
        /// Its rack.
        rack: Option<String>,
        /// Whether clients are kept from it.
        fenced: bool = true,
        /// Whether it is about to stop.
        @ 1..; in_controlled_shutdown: bool,
    }
    tags {
        /// Its log directories.
        0 @ 3..; log_dirs: Vec<Uuid>,
        /// Those of them that take no new partitions.
        1 @ 4..; cordoned_log_dirs: Option<Vec<Uuid>>,
    }
}

schema! {
    /// A broker was taken out of the cluster.
    UnregisterBrokerRecord {
        /// Broker.
        broker_id: i32,
        /// Its epoch.
        broker_epoch: i64,
    }
}

schema! {
    /// A broker was fenced (before 3.3; now a registration change).
    FenceBrokerRecord {
        /// Broker.
        id: i32,
        /// Its epoch.
        epoch: i64,
    }
}

schema! {
    /// A broker was unfenced (before 3.3; now a registration change).
    UnfenceBrokerRecord {
        /// Broker.
        id: i32,
        /// Its epoch.
        epoch: i64,
    }
}

schema! {
    /// A broker's registration changed.
    BrokerRegistrationChangeRecord {
        /// Broker.
        broker_id: i32,
        /// Its epoch.
        broker_epoch: i64,
    }
    tags {
        /// -1 unfenced, 0 unchanged, 1 fenced.
        0 fenced: i8,
        /// 0 unchanged, 1 about to stop.
        1 @ 1..; in_controlled_shutdown: i8,
        /// Log directories, empty if unchanged.
        2 @ 2..; log_dirs: Vec<Uuid>,
        /// Those that take no new partitions, null if unchanged.
        3 @ 3..; cordoned_log_dirs: Option<Vec<Uuid>>,
    }
}

schema! {
    /// A controller registered (KIP-919).
    RegisterControllerRecord {
        /// Controller.
        controller_id: i32,
        /// Of this run of the controller.
        incarnation_id: Uuid,
        /// Left over from the `ZooKeeper` migration.
        zk_migration_ready: bool,
        /// Its listeners.
        end_points: Vec<EndPoint>,
        /// Its features.
        features: Vec<SupportedFeature>,
    }
}

schema! {
    /// A controller was taken out of the cluster.
    UnregisterControllerRecord {
        /// Controller.
        controller_id: i32,
    }
}
