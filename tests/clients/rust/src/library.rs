//! krafka, as the scenario calls it.

use anyhow::{Context, Result, bail};
use krafka::admin::{AdminClient, ConfigResource, NewTopic, TopicPartition};
use krafka::consumer::{AutoOffsetReset, Consumer};
use krafka::producer::Record;
use krafka::{Compression, Kafka};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

use crate::records::Content;

const LIMIT: Duration = Duration::from_secs(20);
const MAX_MESSAGE: i32 = 6_000_000;

/// Where reading starts.
#[derive(Clone, Copy)]
pub enum Start {
    Beginning,
    Offset(i64),
    /// Milliseconds.
    Timestamp(i64),
}

pub struct Library {
    bootstrap: String,
    kafka: Kafka,
    pub admin: AdminClient,
}

impl Library {
    pub async fn open(bootstrap: &str) -> Result<Self> {
        let kafka = Kafka::builder(bootstrap).connect().await?;
        let admin = kafka.admin();
        Ok(Self {
            bootstrap: bootstrap.to_owned(),
            kafka,
            admin,
        })
    }

    pub async fn produce(
        &self,
        topic: &str,
        codec: &str,
        records: Vec<Content>,
        idempotent: bool,
        partition: i32,
    ) -> Result<()> {
        let compression = match codec {
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => Compression::None,
        };
        let producer = self
            .kafka
            .producer()
            .compression(compression)
            .idempotent(idempotent)
            .max_request_size(MAX_MESSAGE as usize)
            .linger(Duration::from_millis(20))
            .build()
            .await?;
        let mut sent = Vec::new();
        for (key, value, headers) in records {
            let mut record = Record::new(topic, "").partition(partition);
            record.key = key;
            record.value = value;
            record.headers = headers;
            sent.push(producer.enqueue(record).await?);
        }
        for delivery in sent {
            let _metadata = delivery.await?;
        }
        Ok(producer.close().await?)
    }

    /// Reads partition 0 without a group: offsets and contents.
    pub async fn read(
        &self,
        topic: &str,
        count: usize,
        start: Start,
    ) -> Result<Vec<(i64, Content)>> {
        let consumer = self
            .kafka
            .consumer_without_group()
            .auto_offset_reset(AutoOffsetReset::Earliest)
            .max_partition_fetch_bytes(MAX_MESSAGE)
            .fetch_max_wait(Duration::from_millis(100))
            .build()
            .await?;
        consumer.assign(topic, vec![0]).await?;
        match start {
            Start::Beginning => consumer.seek_to_beginning(topic, 0).await?,
            Start::Offset(offset) => consumer.seek(topic, 0, offset).await?,
            Start::Timestamp(timestamp) => {
                consumer.seek_to_timestamp(topic, 0, timestamp).await?;
            }
        }
        let mut found = Vec::new();
        let deadline = Instant::now() + LIMIT;
        while found.len() < count {
            if Instant::now() > deadline {
                bail!("read {} of {count} records", found.len());
            }
            for r in consumer.poll(Duration::from_millis(200)).await? {
                found.push((r.offset, (r.key, r.value, r.headers)));
            }
        }
        consumer.close().await?;
        Ok(found)
    }

    /// Each has connections of its own: a broker answers the requests of one connection in their order, and one member's
    /// JoinGroup waits for the other's.
    pub async fn member(&self, group: &str, topic: &str) -> Result<Member> {
        let consumer = Kafka::builder(&self.bootstrap)
            .connect()
            .await?
            .consumer(group)
            .auto_offset_reset(AutoOffsetReset::Earliest)
            .enable_auto_commit(false)
            .session_timeout(Duration::from_secs(6))
            .heartbeat_interval(Duration::from_millis(300))
            .fetch_max_wait(Duration::from_millis(100))
            .build()
            .await?;
        consumer.subscribe([topic]).await?;
        Ok(Member::start(consumer, topic))
    }

    pub async fn create_topic(&self, topic: &str, partitions: i32) -> Result<()> {
        let new = NewTopic::new(topic, partitions, 1)?;
        let mut results = self.admin.create_topics([new], Default::default()).await?;
        Ok(results.remove(topic).context("no answer")??)
    }

    pub async fn topics(&self) -> Result<Vec<String>> {
        Ok(self.admin.list_topics(Default::default()).await?)
    }

    pub async fn partitions(&self, topic: &str) -> Result<usize> {
        let mut results = self
            .admin
            .describe_topics([topic], Default::default())
            .await?;
        Ok(results
            .remove(topic)
            .context("no answer")??
            .partitions
            .len())
    }

    pub async fn delete_topic(&self, topic: &str) -> Result<()> {
        let mut results = self
            .admin
            .delete_topics([topic], Default::default())
            .await?;
        Ok(results.remove(topic).context("no answer")??)
    }

    pub async fn config(&self, topic: &str, key: &str) -> Result<Option<String>> {
        let resource = ConfigResource::topic(topic);
        let mut results = self
            .admin
            .describe_configs([resource.clone()], Default::default())
            .await?;
        let entries = results.remove(&resource).context("no answer")??;
        Ok(entries
            .into_iter()
            .find(|e| e.name == key)
            .and_then(|e| e.value))
    }

    pub async fn groups(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for listing in self
            .admin
            .list_consumer_groups(Default::default())
            .await?
            .into_values()
        {
            found.extend(listing?.into_iter().map(|g| g.group_id));
        }
        Ok(found)
    }

    pub async fn group_state(&self, group: &str) -> Result<String> {
        let mut results = self
            .admin
            .describe_consumer_groups([group], Default::default())
            .await?;
        Ok(results.remove(group).context("no answer")??.state)
    }

    pub async fn delete_group(&self, group: &str) -> Result<()> {
        let mut results = self
            .admin
            .delete_consumer_groups([group], Default::default())
            .await?;
        Ok(results.remove(group).context("no answer")??)
    }

    /// Returns the new first offset.
    pub async fn delete_records(&self, topic: &str, offset: i64) -> Result<i64> {
        let partition = TopicPartition::new(topic, 0);
        let mut results = self
            .admin
            .delete_records([(partition.clone(), offset)], Default::default())
            .await?;
        Ok(results.remove(&partition).context("no answer")??)
    }
}

/// A member of a group, polled by a task of its own.
pub struct Member {
    consumer: Arc<Consumer>,
    topic: String,
    seen: Arc<Mutex<BTreeSet<(i32, i64)>>>,
    polling: JoinHandle<()>,
}

impl Member {
    fn start(consumer: Consumer, topic: &str) -> Self {
        let consumer = Arc::new(consumer);
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let (polled, noted) = (Arc::clone(&consumer), Arc::clone(&seen));
        let polling = tokio::spawn(async move {
            while !polled.is_closed() {
                match polled.poll(Duration::from_millis(50)).await {
                    Ok(records) => {
                        let mut seen = noted.lock().expect("the lock is never poisoned");
                        seen.extend(records.iter().map(|r| (r.partition, r.offset)));
                    }
                    Err(error) => eprintln!("poll: {error}"),
                }
            }
        });
        Self {
            consumer,
            topic: topic.to_owned(),
            seen,
            polling,
        }
    }

    pub async fn assigned(&self) -> Vec<i32> {
        self.consumer
            .assignment()
            .await
            .remove(&self.topic)
            .unwrap_or_default()
    }

    /// Partition and offset of each record read.
    pub fn seen(&self) -> BTreeSet<(i32, i64)> {
        self.seen
            .lock()
            .expect("the lock is never poisoned")
            .clone()
    }

    pub async fn commit(&self) -> Result<()> {
        Ok(self.consumer.commit().await?)
    }

    pub async fn close(&self) -> Result<()> {
        self.consumer.close().await?;
        self.polling.abort();
        Ok(())
    }
}
