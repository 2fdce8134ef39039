//! Producing and fetching.

use bytes::Bytes;
use ottla_protocol::batch::{self, BatchBuilder, BatchHeader, Batches};
use ottla_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use ottla_protocol::messages::fetch_response::PartitionData;
use ottla_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_protocol::messages::produce_response::PartitionProduceResponse;
use ottla_protocol::messages::{FetchRequest, ProduceRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes};

use crate::Client;

/// A record as a consumer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its offset.
    pub offset: i64,
    /// Its time, in milliseconds since the epoch.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value.
    pub value: Option<Bytes>,
    /// Its headers.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

/// The values of records as text.
pub fn values(records: &[Fetched]) -> Vec<String> {
    let text =
        |r: &Fetched| String::from_utf8_lossy(r.value.as_deref().unwrap_or_default()).into_owned();
    records.iter().map(text).collect()
}

/// A batch of records without keys, all of one time.
pub fn batch_of<V: AsRef<[u8]>>(timestamp: i64, values: &[V]) -> Bytes {
    let mut builder = BatchBuilder::default();
    for value in values {
        builder.push(timestamp, None, Some(value.as_ref()));
    }
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

/// The batches of what was fetched, with their records. The last batch may be cut, as in Kafka.
pub fn decode_batches(bytes: &[u8]) -> Vec<(BatchHeader, Vec<Fetched>)> {
    let batches = Batches::new(bytes).map_while(|found| match found {
        Ok(found) => Some(found),
        Err(error) if error.is_truncated() => None,
        Err(error) => panic!(
            "a fetched batch is broken: {error}\n{}",
            crate::hexdump(bytes)
        ),
    });
    batches
        .map(|(header, bytes)| (header, decode_records(bytes)))
        .collect()
}

fn decode_records(bytes: &[u8]) -> Vec<Fetched> {
    let set = batch::records(bytes).unwrap_or_else(|error| panic!("{error}"));
    let own = |part: Option<&[u8]>| part.map(Bytes::copy_from_slice);
    let mut found = vec![];
    for record in &set {
        let record = record.unwrap_or_else(|error| panic!("{error}"));
        let headers = record
            .headers
            .iter()
            .map(|(key, value)| (Bytes::copy_from_slice(key), own(value)));
        found.push(Fetched {
            offset: record.offset,
            timestamp: record.timestamp,
            key: own(record.key),
            value: own(record.value),
            headers: headers.collect(),
        });
    }
    found
}

impl Client {
    /// A produce request for one partition.
    pub fn produce_request(
        topic: &str,
        partition: i32,
        acks: i16,
        records: Bytes,
    ) -> ProduceRequest {
        let data = PartitionProduceData::default()
            .with_index(partition)
            .with_records(Some(records));
        let topic = TopicProduceData::default()
            .with_name(topic_name(topic))
            .with_partition_data(vec![data]);
        ProduceRequest::default()
            .with_acks(acks)
            .with_timeout_ms(10_000)
            .with_topic_data(vec![topic])
    }

    /// Produces bytes to one partition with acks=all and returns the partition's answer.
    pub async fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        records: Bytes,
    ) -> PartitionProduceResponse {
        let request = Self::produce_request(topic, partition, -1, records);
        let mut response = self.call(12, &request).await;
        response
            .responses
            .swap_remove(0)
            .partition_responses
            .swap_remove(0)
    }

    /// Produces one batch and returns the offset of its first record.
    pub async fn produce_values<V: AsRef<[u8]>>(
        &mut self,
        topic: &str,
        partition: i32,
        values: &[V],
    ) -> i64 {
        let batch = batch_of(self.timestamp, values);
        let answer = self.produce(topic, partition, batch).await;
        let code = ErrorCode(answer.error_code);
        assert!(
            code.is_none(),
            "produce to {topic}-{partition}: {} {answer:?}",
            code.name()
        );
        answer.base_offset
    }

    /// A fetch request for one partition that does not wait.
    pub fn fetch_request(topic: &str, partition: i32, offset: i64) -> FetchRequest {
        let want = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(i32::MAX);
        let topic = FetchTopic::default()
            .with_topic(topic_name(topic))
            .with_partitions(vec![want]);
        FetchRequest::default()
            .with_max_wait_ms(0)
            .with_min_bytes(0)
            .with_max_bytes(i32::MAX)
            .with_session_epoch(-1)
            .with_topics(vec![topic])
    }

    /// Fetches from one partition, without waiting, and returns the partition's answer.
    pub async fn fetch(&mut self, topic: &str, partition: i32, offset: i64) -> PartitionData {
        let mut response = self
            .call(12, &Self::fetch_request(topic, partition, offset))
            .await;
        assert_eq!(ErrorCode(response.error_code), ErrorCode::NONE);
        response.responses.swap_remove(0).partitions.swap_remove(0)
    }

    /// All records of a partition from `offset` on.
    pub async fn fetch_all(
        &mut self,
        topic: &str,
        partition: i32,
        mut offset: i64,
    ) -> Vec<Fetched> {
        let mut all = vec![];
        loop {
            let data = self.fetch(topic, partition, offset).await;
            let code = ErrorCode(data.error_code);
            assert!(
                code.is_none(),
                "fetch {topic}-{partition} at {offset}: {}",
                code.name()
            );
            let batches = decode_batches(data.records.as_deref().unwrap_or_default());
            let Some((last, _)) = batches.last() else {
                return all;
            };
            let next = last.last_offset() + 1;
            all.extend(
                batches
                    .into_iter()
                    .flat_map(|(_, records)| records)
                    .filter(|r| r.offset >= offset),
            );
            offset = next;
        }
    }
}

/// A topic's name as messages carry it.
pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
