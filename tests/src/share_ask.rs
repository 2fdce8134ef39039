//! What one ShareFetch or ShareAcknowledge asks.

use ottla_protocol::Uuid;
use ottla_protocol::messages::share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch as AckBatch,
};
use ottla_protocol::messages::share_fetch_request::{
    AcknowledgementBatch, FetchPartition, FetchTopic, ForgottenTopic,
};
use ottla_protocol::messages::{ShareAcknowledgeRequest, ShareFetchRequest};

use crate::share::{group_id, text};

/// GAP on the wire: there is no such record.
pub const GAP: i8 = 0;
/// ACCEPT on the wire.
pub const ACCEPT: i8 = 1;
/// RELEASE on the wire.
pub const RELEASE: i8 = 2;
/// REJECT on the wire.
pub const REJECT: i8 = 3;
/// RENEW on the wire (version 2).
pub const RENEW: i8 = 4;

/// A partition, by its topic's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The topic.
    pub topic: Uuid,
    /// The partition.
    pub partition: i32,
}

impl At {
    /// Another partition of the same topic.
    #[must_use]
    pub fn p(self, partition: i32) -> Self {
        Self { partition, ..self }
    }
}

/// What one ShareFetch or ShareAcknowledge asks. A fetch without waiting, of up to 500 records in
/// whole batches, unless it says otherwise.
#[derive(Debug, Clone)]
pub struct Ask {
    request: ShareFetchRequest,
    version: i16,
}

impl Default for Ask {
    fn default() -> Self {
        Self::new()
    }
}

impl Ask {
    /// Names no partition.
    pub fn new() -> Self {
        let request = ShareFetchRequest {
            min_bytes: 1,
            max_bytes: i32::MAX,
            max_records: 500,
            batch_size: 500,
            ..Default::default()
        };
        Self {
            request,
            version: 2,
        }
    }

    /// Names one partition.
    pub fn of(at: At) -> Self {
        Self::new().and(at)
    }

    /// Names one more partition, which the session fetches from now on.
    #[must_use]
    pub fn and(mut self, at: At) -> Self {
        self.partition(at);
        self
    }

    fn partition(&mut self, at: At) -> &mut FetchPartition {
        let topics = &mut self.request.topics;
        let topic = topics
            .iter()
            .position(|t| t.topic_id == at.topic)
            .unwrap_or_else(|| {
                topics.push(FetchTopic {
                    topic_id: at.topic,
                    ..Default::default()
                });
                topics.len() - 1
            });
        let partitions = &mut topics[topic].partitions;
        let index = partitions
            .iter()
            .position(|p| p.partition_index == at.partition)
            .unwrap_or_else(|| {
                partitions.push(FetchPartition {
                    partition_index: at.partition,
                    ..Default::default()
                });
                partitions.len() - 1
            });
        &mut partitions[index]
    }

    /// Acknowledges a range of offsets, all in the same way.
    #[must_use]
    pub fn ack(self, at: At, first: i64, last: i64, kind: i8) -> Self {
        self.acks(at, first, last, &[kind])
    }

    /// Acknowledges a range of offsets with these types.
    #[must_use]
    pub fn acks(mut self, at: At, first: i64, last: i64, kinds: &[i8]) -> Self {
        self.partition(at)
            .acknowledgement_batches
            .push(AcknowledgementBatch {
                first_offset: first,
                last_offset: last,
                acknowledge_types: kinds.to_vec(),
                ..Default::default()
            });
        self
    }

    /// Takes a partition out of the session.
    #[must_use]
    pub fn forget(mut self, at: At) -> Self {
        self.request.forgotten_topics_data.push(ForgottenTopic {
            topic_id: at.topic,
            partitions: vec![at.partition],
            ..Default::default()
        });
        self
    }

    /// MaxRecords.
    #[must_use]
    pub fn max_records(mut self, records: i32) -> Self {
        self.request.max_records = records;
        self
    }

    /// BatchSize, in records.
    #[must_use]
    pub fn batch_size(mut self, records: i32) -> Self {
        self.request.batch_size = records;
        self
    }

    /// MaxBytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: i32) -> Self {
        self.request.max_bytes = bytes;
        self
    }

    /// MinBytes.
    #[must_use]
    pub fn min_bytes(mut self, bytes: i32) -> Self {
        self.request.min_bytes = bytes;
        self
    }

    /// MaxWaitMs.
    #[must_use]
    pub fn max_wait(mut self, ms: i32) -> Self {
        self.request.max_wait_ms = ms;
        self
    }

    /// Waits much longer than a test may take: only an event answers it.
    #[must_use]
    pub fn patient(self) -> Self {
        self.max_wait(3_600_000)
    }

    /// ShareAcquireMode: 0 whole batches, 1 exactly up to MaxRecords.
    #[must_use]
    pub fn mode(mut self, mode: i8) -> Self {
        self.request.share_acquire_mode = mode;
        self
    }

    /// Exactly up to so many records.
    #[must_use]
    pub fn exactly(self, records: i32) -> Self {
        self.mode(1).max_records(records)
    }

    /// IsRenewAck, with nothing to fetch.
    #[must_use]
    pub fn renew(mut self) -> Self {
        self.request.is_renew_ack = true;
        self.max_wait(0)
            .min_bytes(0)
            .max_bytes(0)
            .max_records(0)
            .batch_size(0)
    }

    /// IsRenewAck, and a fetch with it, which is refused.
    #[must_use]
    pub fn renew_and_fetch(mut self) -> Self {
        self.request.is_renew_ack = true;
        self
    }

    /// In version 1 of the request.
    #[must_use]
    pub fn v1(mut self) -> Self {
        self.version = 1;
        self
    }

    /// The version it is sent in.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// The ShareFetch of a member at an epoch of its session.
    pub fn fetch_request(&self, group: &str, member: &str, epoch: i32) -> ShareFetchRequest {
        ShareFetchRequest {
            group_id: Some(group_id(group)),
            member_id: Some(text(member)),
            share_session_epoch: epoch,
            ..self.request.clone()
        }
    }

    /// The ShareAcknowledge of a member at an epoch of its session.
    pub fn acknowledge_request(
        &self,
        group: &str,
        member: &str,
        epoch: i32,
    ) -> ShareAcknowledgeRequest {
        let batch = |b: &AcknowledgementBatch| AckBatch {
            first_offset: b.first_offset,
            last_offset: b.last_offset,
            acknowledge_types: b.acknowledge_types.clone(),
            ..Default::default()
        };
        let partition = |p: &FetchPartition| AcknowledgePartition {
            partition_index: p.partition_index,
            acknowledgement_batches: p.acknowledgement_batches.iter().map(batch).collect(),
            ..Default::default()
        };
        let topic = |t: &FetchTopic| AcknowledgeTopic {
            topic_id: t.topic_id,
            partitions: t.partitions.iter().map(partition).collect(),
            ..Default::default()
        };
        ShareAcknowledgeRequest {
            group_id: Some(group_id(group)),
            member_id: Some(text(member)),
            share_session_epoch: epoch,
            is_renew_ack: self.request.is_renew_ack,
            topics: self.request.topics.iter().map(topic).collect(),
            ..Default::default()
        }
    }
}
