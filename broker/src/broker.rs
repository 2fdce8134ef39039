//! The broker: everything that the handlers of all logical brokers share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ottla_coordinator::types::Ts;
use ottla_protocol::ErrorCode;
use ottla_storage::{Store, StoreOptions};

use crate::cleaner::{self, LogCleaner};
use crate::clock::Clock;
use crate::cluster::image::{CONSUMER_OFFSETS, Image, SHARE_GROUP_STATE};
use crate::cluster::{Altered, Cluster, NewTopic, Partition, Topic};
use crate::config::{BrokerConfig, ConfigChange, GroupConfig, Refusal, StaticConfig};
use crate::context::Connection;
use crate::dead_letters::{DeadLetters, Retries};
use crate::deadlines::{Deadlines, Due, OwnerId};
use crate::deliveries::Deliveries;
use crate::error_code::ApiError;
use crate::groups::Groups;
use crate::leaders::Rebalancer;
use crate::metrics::Metrics;
use crate::node::Node;
use crate::share_state::{Pruner, ShareStates};
use crate::shares::{Configured, Shares};
use crate::start_error::StartError;

/// Producer ids that are taken from the metadata log at a time.
const PRODUCER_ID_BLOCK: i64 = 1000;

/// Where a client reaches a logical broker.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The broker's id.
    pub id: i32,
    /// Host, without brackets.
    pub host: String,
    /// Port.
    pub port: i32,
    /// The broker's rack.
    pub rack: Option<String>,
}

/// Everything of one process below its sockets.
#[derive(Debug)]
pub struct Broker {
    /// State time.
    pub clock: Clock,
    /// Who is due when.
    pub deadlines: Deadlines,
    /// Topics, leaders, configurations, features.
    pub cluster: Cluster,
    /// The group coordinators.
    pub groups: Groups,
    /// The share coordinators.
    pub share_states: ShareStates,
    /// The share partitions.
    pub shares: Shares,
    /// What share groups deliver.
    pub deliveries: Deliveries,
    /// What share partitions have given up.
    pub dead_letters: DeadLetters,
    /// Metrics.
    pub metrics: Metrics,
    store: Arc<Store>,
    nodes: BTreeMap<i32, Arc<Node>>,
    first: i32,
    cluster_id: String,
    connection_ids: AtomicU64,
    producer_ids: Mutex<Range<i64>>,
    /// Owners that live as long as the broker.
    owners: Mutex<Vec<Arc<dyn Due>>>,
}

impl std::fmt::Debug for dyn Due {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Due")
    }
}

impl Broker {
    /// Opens the data and replays it. No port is open yet.
    pub fn open(
        statics: Arc<StaticConfig>,
        options: StoreOptions,
        clock: Clock,
    ) -> Result<Arc<Self>, StartError> {
        let store = Store::open(options, clock.now())?;
        clock.start_at_least(newest_time(&store, clock.now()));
        let now = clock.now();
        let ids = statics.broker_ids();
        check_owner(&store, &ids)?;
        let cluster = Cluster::open(Arc::clone(&store), statics, now)?;
        let nodes = ids
            .iter()
            .map(|&id| {
                Node::from_config(&cluster.broker_config(id)).map(|node| (id, Arc::new(node)))
            })
            .collect::<Result<_, StartError>>()?;
        let broker = Arc::new(Self {
            clock,
            deadlines: Deadlines::default(),
            cluster,
            groups: Groups::default(),
            share_states: ShareStates::default(),
            shares: Shares::default(),
            deliveries: Deliveries::default(),
            dead_letters: DeadLetters::default(),
            metrics: Metrics::new(),
            cluster_id: store.cluster_id(),
            store,
            nodes,
            first: ids.first().copied().unwrap_or(0),
            connection_ids: AtomicU64::new(1),
            producer_ids: Mutex::new(0..0),
            owners: Mutex::default(),
        });
        let weak = Arc::downgrade(&broker);
        broker.own(Arc::new(Pruner(Weak::clone(&weak))), Some(now));
        let rebalancer = Rebalancer(weak);
        broker.own(Arc::new(rebalancer), Rebalancer::next(&broker, now));
        broker.keep_store(now)?;
        broker.deliveries.begin(&broker);
        broker.write_dead_letters()?;
        broker.groups.open(&broker)?;
        Ok(broker)
    }

    /// Lets the store's own work be done when it is due, and compaction in its own rhythm.
    fn keep_store(self: &Arc<Self>, now: Ts) -> Result<(), StartError> {
        let weak = Arc::downgrade(self);
        let id = self.own(Arc::new(StoreKeeper(Weak::clone(&weak))), Some(now));
        let told = Weak::clone(&weak);
        self.store.on_deadline(Arc::new(move || {
            if let Some(broker) = told.upgrade()
                && let Some(at) = broker.store.next_deadline()
            {
                broker.deadlines.bring_forward(id, at);
            }
        }));
        let cleaner = LogCleaner::start(weak, Arc::clone(&self.store))
            .map_err(|error| StartError::Node(format!("no thread for compaction: {error}")))?;
        let first = cleaner::first_run(&self.config().log, now);
        self.own(Arc::new(cleaner), first);
        Ok(())
    }

    fn write_dead_letters(self: &Arc<Self>) -> Result<(), StartError> {
        let retries: Arc<dyn Due> = Arc::new(Retries(Arc::downgrade(self)));
        self.deadlines.add_worker(Arc::downgrade(&retries));
        let owner = self.own(retries, None);
        self.dead_letters
            .start(Arc::downgrade(self), owner)
            .map_err(|error| StartError::Node(format!("no thread for dead letters: {error}")))
    }

    /// Keeps an owner of deadlines for the life of the broker.
    fn own(&self, due: Arc<dyn Due>, first: Option<Ts>) -> OwnerId {
        let id = self.deadlines.register(Arc::downgrade(&due));
        self.deadlines.set(id, first);
        self.owners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(due);
        id
    }

    /// What the first logical broker runs with.
    pub fn config(&self) -> Arc<BrokerConfig> {
        self.cluster.broker_config(self.first)
    }

    /// What a group runs with.
    pub fn group_config(&self, group: &str) -> Arc<GroupConfig> {
        self.cluster.group_config(group)
    }

    /// Why a group's dead letters go nowhere whatever its configuration says: it wants a topic alone that
    /// another group names too.
    pub fn dlq_conflict(&self, group: &str) -> Option<String> {
        self.group_config(group).dlq_conflict.clone()
    }

    /// The data.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// A logical broker, stopped ones included.
    pub fn node(&self, id: i32) -> Option<Arc<Node>> {
        self.nodes.get(&id).cloned()
    }

    /// All logical brokers.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The brokers that are up, as a client on `conn` reaches them.
    pub fn endpoints(&self, conn: &Connection) -> Vec<Endpoint> {
        let alive = self.cluster.alive();
        let up = self.nodes.values().filter(|node| alive.contains(&node.id));
        up.filter_map(|node| {
            let (host, port) = node.endpoint(conn)?;
            Some(Endpoint {
                id: node.id,
                host,
                port,
                rack: node.rack.clone(),
            })
        })
        .collect()
    }

    /// A feature's finalized level.
    pub fn feature_level(&self, name: &str) -> i16 {
        self.cluster
            .image()
            .features
            .get(name)
            .copied()
            .unwrap_or(0)
    }

    /// An id for a connection that was accepted.
    pub fn next_connection_id(&self) -> u64 {
        self.connection_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// A producer id that nobody has.
    pub fn next_producer_id(&self) -> Result<i64, ApiError> {
        let mut ids = self
            .producer_ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = ids.next() {
            return Ok(id);
        }
        let first = self
            .cluster
            .allocate_producer_ids(PRODUCER_ID_BLOCK, self.clock.now())?;
        *ids = first + 1..first + PRODUCER_ID_BLOCK;
        Ok(first)
    }

    /// A topic by name; made if it is missing, `create` says so and the configuration allows it.
    pub fn topic_or_auto_create(&self, name: &str, create: bool) -> Result<Arc<Topic>, ApiError> {
        if let Some(topic) = self.cluster.topic(name) {
            return Ok(topic);
        }
        let create = create && self.config().topics.auto_create;
        let internal = matches!(name, CONSUMER_OFFSETS | SHARE_GROUP_STATE);
        if create && internal {
            return self.internal_topic(name);
        }
        crate::cluster::placement::check_name(name)?;
        if !create {
            return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.into());
        }
        let new = NewTopic {
            name: name.to_owned(),
            partitions: -1,
            replication_factor: -1,
            ..Default::default()
        };
        self.create_or_find(&new)
    }

    /// Makes a topic, unless somebody else is quicker.
    pub(crate) fn create_or_find(&self, new: &NewTopic) -> Result<Arc<Topic>, ApiError> {
        match self.create_topic(new, false) {
            Ok(_) => {}
            Err(error) if error.code == ErrorCode::TOPIC_ALREADY_EXISTS => {}
            Err(error) => return Err(error),
        }
        self.cluster
            .topic(&new.name)
            .ok_or_else(|| ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.into())
    }

    /// Makes a topic; groups that subscribe to it see it with their members' next heartbeats.
    pub fn create_topic(
        &self,
        new: &NewTopic,
        validate_only: bool,
    ) -> Result<(ottla_protocol::Uuid, Vec<Vec<i32>>), ApiError> {
        let made = self
            .cluster
            .create_topic(new, validate_only, self.clock.now());
        if made.is_ok() && !validate_only {
            self.dead_letters.wake(self);
        }
        made
    }

    /// One of the broker's own topics, made on demand.
    fn internal_topic(&self, name: &str) -> Result<Arc<Topic>, ApiError> {
        if let Some(topic) = self.cluster.topic(name) {
            return Ok(topic);
        }
        let config = self.config();
        let (partitions, factor, segment_bytes) = match name {
            CONSUMER_OFFSETS => {
                let c = &config.offsets;
                (c.partitions, c.replication_factor, c.segment_bytes)
            }
            _ => {
                let c = &config.share_state;
                (c.partitions, c.replication_factor, c.segment_bytes)
            }
        };
        let policy = if name == CONSUMER_OFFSETS {
            "compact"
        } else {
            "delete"
        };
        let mut configs = BTreeMap::from([
            ("cleanup.policy".to_owned(), policy.to_owned()),
            ("compression.type".to_owned(), "producer".to_owned()),
            ("segment.bytes".to_owned(), segment_bytes.to_string()),
        ]);
        if name == SHARE_GROUP_STATE {
            configs.insert("retention.ms".to_owned(), "-1".to_owned());
        }
        self.create_or_find(&NewTopic {
            name: name.to_owned(),
            partitions,
            replication_factor: factor,
            configs,
            ..Default::default()
        })
    }

    /// The partition of an internal topic that holds `key`.
    pub fn internal_partition(&self, topic: &str, key: &str) -> Result<Arc<Partition>, ApiError> {
        let not_available = |_| ApiError::from(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        let topic = self.internal_topic(topic).map_err(not_available)?;
        let count = topic.partitions().len().max(1) as i32;
        topic
            .partition((java_hash(key) & i32::MAX) % count)
            .ok_or_else(|| ErrorCode::COORDINATOR_NOT_AVAILABLE.into())
    }

    /// Adds partitions to a topic.
    pub fn create_partitions(
        &self,
        name: &str,
        total: i32,
        assignments: Option<Vec<Vec<i32>>>,
        validate_only: bool,
    ) -> Result<(), ApiError> {
        let now = self.clock.now();
        let made = self
            .cluster
            .create_partitions(name, total, assignments, validate_only, now);
        if made.is_ok() && !validate_only {
            self.dead_letters.wake(self);
        }
        made
    }

    /// Stores the configurations that a request asks for, as `plan` finds them in the image, each
    /// resource's changes or why it is refused; lets who waits look again.
    pub fn alter_configs(
        &self,
        validate_only: bool,
        plan: impl FnOnce(&Image) -> Vec<Result<Vec<ConfigChange>, Refusal>>,
    ) -> Altered {
        let now = self.clock.now();
        let mut groups = Configured::default();
        let plan = |image: &Image| {
            let planned = plan(image);
            groups = Configured::by(planned.iter().flatten().flatten());
            planned
        };
        let (altered, moved) = self.cluster.alter_configs(validate_only, now, plan);
        if moved {
            self.leaders_moved();
        }
        if !validate_only {
            self.deliveries.configs_changed(self);
            self.shares.configs_changed(self, &groups);
            self.dead_letters.wake(self);
        }
        altered
    }

    /// Deletes a topic, and what groups hold of it. Dead letters that wait for it are not woken: it may
    /// be made anew before their next attempt.
    pub fn delete_topic(&self, id: ottla_protocol::Uuid) -> Result<(), ApiError> {
        let topic = self.cluster.topic_by_id(id);
        self.cluster.delete_topic(id, self.clock.now())?;
        let id = ottla_coordinator::types::Uuid(*id.as_bytes());
        self.shares.topic_deleted(self, id);
        self.dead_letters.forget(|key| key.partition.topic_id == id);
        if let Some(topic) = topic {
            self.groups.topic_deleted(self, &topic.name, id);
        }
        if let Err(error) = self.share_states.topics_deleted(self, &[id]) {
            tracing::warn!(%error, "the share state of a deleted topic could not be removed yet");
        }
        Ok(())
    }

    /// Closes the data cleanly.
    pub fn close(&self) -> Result<(), StartError> {
        self.dead_letters.stop();
        Ok(self.store.close()?)
    }
}

/// Whether one of the brokers `ids` is the one that the data directory names: as another broker it
/// would find none of the partitions its own.
fn check_owner(store: &Store, ids: &[i32]) -> Result<(), StartError> {
    let owner = store.node_id();
    if ids.contains(&owner) {
        return Ok(());
    }
    let here = match ids {
        [id] => format!("this is broker {id}"),
        _ => format!("these are brokers {ids:?}"),
    };
    Err(StartError::Node(format!(
        "the data directory is that of broker {owner}, and {here}: start with --set node.id={owner}"
    )))
}

/// The newest time in the data, so that state time does not go back over a restart.
fn newest_time(store: &Store, now: Ts) -> Ts {
    let newest = store
        .logs()
        .into_iter()
        .filter_map(|(_, log)| log.max_timestamp());
    newest
        .map(|(_, at)| at)
        .filter(|&at| at <= now + MAX_AHEAD_MS)
        .max()
        .unwrap_or(now)
}

/// How far ahead of the wall clock the newest record may put state time at a start: records may
/// carry any future time, so more than this is taken for a mistake.
const MAX_AHEAD_MS: i64 = 30 * 24 * 3600 * 1000;

/// Java's `String.hashCode`, by which Kafka spreads groups over partitions.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// Runs the store's own deadlines: retention, rolls, syncs, delayed deletions.
#[derive(Debug)]
struct StoreKeeper(Weak<Broker>);

impl Due for StoreKeeper {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.0.upgrade()?;
        broker.store.tick(now);
        broker.store.next_deadline()
    }
}

/// The groups' view of topics.
#[derive(Debug)]
pub struct Topics<'a>(pub &'a Cluster);

impl ottla_coordinator::types::TopicImage for Topics<'_> {
    fn by_name(&self, name: &str) -> Option<(ottla_coordinator::types::Uuid, i32)> {
        let topic = self.0.topic(name)?;
        Some((
            ottla_coordinator::types::Uuid(*topic.id.as_bytes()),
            topic.partitions().len() as i32,
        ))
    }

    fn by_id(&self, id: &ottla_coordinator::types::Uuid) -> Option<(String, i32)> {
        let topic = self.0.topic_by_id(ottla_protocol::Uuid::from_bytes(id.0))?;
        Some((topic.name.to_string(), topic.partitions().len() as i32))
    }
}

impl ottla_coordinator::group::consumer::request::MatchedTopics for Topics<'_> {
    fn version(&self) -> i64 {
        self.0.image().topics_version
    }

    fn matching(&self, regex: &str) -> Result<Vec<String>, String> {
        let pattern = crate::topic_pattern::TopicPattern::new(regex)?;
        let image = self.0.image();
        let names = image.topics.keys().filter(|name| pattern.matches(name));
        Ok(names.map(ToString::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::java_hash;

    #[test]
    fn groups_hash_as_in_java() {
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("group"), 98_629_247);
        assert_eq!(
            java_hash("my-very-long-group-name"),
            "my-very-long-group-name"
                .bytes()
                .fold(0i32, |h, b| h.wrapping_mul(31).wrapping_add(i32::from(b)))
        );
    }
}
