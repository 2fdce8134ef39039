//! The usual scene of a share group test: one broker, one topic, one group.

use ottla_coordinator::types::{TopicPartition, Uuid};

use crate::{At, Client, Embedded, Member, Settings, soon};

/// A broker in this process with the topic [`Queue::TOPIC`] and the share group [`Queue::GROUP`], which
/// reads from the earliest record on.
#[derive(Debug)]
pub struct Queue {
    /// The broker.
    pub broker: Embedded,
    /// A connection for what no member does.
    pub admin: Client,
    /// Partition 0 of the topic.
    pub at: At,
}

impl Queue {
    /// The topic.
    pub const TOPIC: &'static str = "t";
    /// The group.
    pub const GROUP: &'static str = "g";

    /// One partition without records.
    pub async fn start() -> Self {
        Self::of(1, Settings::new(), &[]).await
    }

    /// One partition without records, and configurations of the group.
    pub async fn with(group: &[(&str, &str)]) -> Self {
        Self::of(1, Settings::new(), group).await
    }

    /// One partition with 25 records in the batches 0-9, 10-19 and 20-24.
    pub async fn filled(group: &[(&str, &str)]) -> Self {
        let mut queue = Self::with(group).await;
        queue.fill().await;
        queue
    }

    /// So many partitions without records.
    pub async fn of(partitions: i32, settings: Settings, group: &[(&str, &str)]) -> Self {
        let broker = settings.start().await;
        let mut admin = broker.client().await;
        let topic = admin.create_topic(Self::TOPIC, partitions).await;
        let mut configs = vec![("share.auto.offset.reset", "earliest")];
        configs.retain(|(key, _)| group.iter().all(|(own, _)| own != key));
        configs.extend(group);
        admin.configure_group(Self::GROUP, &configs).await;
        let at = At {
            topic,
            partition: 0,
        };
        Self { broker, admin, at }
    }

    /// Changes configurations of the group.
    pub async fn configure(&mut self, configs: &[(&str, &str)]) {
        self.admin.configure_group(Self::GROUP, configs).await;
    }

    /// Produces one batch of so many records to partition 0; the first offset.
    pub async fn produce(&mut self, records: usize) -> i64 {
        self.produce_to(0, records).await
    }

    /// Produces one batch of so many records; the first offset.
    pub async fn produce_to(&mut self, partition: i32, records: usize) -> i64 {
        let values: Vec<String> = (0..records).map(|n| format!("value {n}")).collect();
        self.admin
            .produce_values(Self::TOPIC, partition, &values)
            .await
    }

    /// The batches 0-9, 10-19 and 20-24.
    pub async fn fill(&mut self) {
        for records in [10, 10, 5] {
            self.produce(records).await;
        }
    }

    /// Somebody with a connection of its own who has not joined.
    pub async fn stranger(&self, id: &str) -> Member {
        Member::new(self.broker.client().await, Self::GROUP, id)
    }

    /// A member with a connection of its own.
    pub async fn member(&self, id: &str) -> Member {
        let mut member = self.stranger(id).await;
        member.join(&[Self::TOPIC]).await;
        member
    }

    /// Start offset and lag of partition 0, as an operator sees them.
    pub async fn start_and_lag(&mut self) -> (i64, i64) {
        self.admin.start_and_lag(Self::GROUP, Self::TOPIC, 0).await
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        let nodes = self.broker.process.broker.nodes();
        nodes.map(|node| node.connection_count()).sum()
    }

    /// Waits until so many connections are open.
    pub async fn until_connections(&self, count: usize) {
        self.until("connections to close", || self.connections() == count)
            .await;
    }

    async fn until(&self, what: &str, reached: impl Fn() -> bool) {
        soon(what, async {
            while !reached() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    fn slot(&self, at: At) -> Option<std::sync::Arc<ottla::shares::Slot>> {
        let broker = &self.broker.process.broker;
        let partition = TopicPartition {
            topic_id: Uuid(*at.topic.as_bytes()),
            partition: at.partition,
        };
        let key = ottla::groups::key(Self::GROUP, partition);
        broker.shares.loaded(broker, &key)
    }

    /// How many records of partition 0 are between the start offset and the last one delivered.
    pub fn in_flight(&self) -> i64 {
        let slot = self.slot(self.at);
        let records = slot.map(|slot| slot.cell.in_flight()).unwrap_or_default();
        match (records.first(), records.last()) {
            (Some(first), Some(last)) => last.last - first.first + 1,
            _ => 0,
        }
    }

    /// Waits until so many fetches of the group are parked on a partition.
    pub async fn parked(&self, at: At, fetches: usize) {
        let waiting = || {
            self.slot(at)
                .is_some_and(|slot| slot.cell.waiters().len() == fetches)
        };
        self.until("a parked fetch", waiting).await;
    }
}
