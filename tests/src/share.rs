//! A member of a share group, as the wire sees it: share sessions, acquired records, acknowledgements.

use ottla_protocol::messages::share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch as AckBatch,
};
use ottla_protocol::messages::share_fetch_request::{
    AcknowledgementBatch, FetchPartition, FetchTopic, ForgottenTopic,
};
use ottla_protocol::messages::share_fetch_response::PartitionData;
use ottla_protocol::messages::share_group_heartbeat_response::ShareGroupHeartbeatResponse;
use ottla_protocol::messages::{
    GroupId, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest,
    ShareFetchResponse, ShareGroupHeartbeatRequest,
};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};

use crate::records::topic_name;
use crate::{Client, Fetched, Sent, decode_batches};

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
<<<<<<< Updated upstream
    #[allow(
        clippy::should_implement_trait,
        reason = "a step of building a request, not arithmetic"
    )]
    pub fn add(mut self, at: At) -> Self {
=======
    pub fn and(mut self, at: At) -> Self {
>>>>>>> Stashed changes
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

/// An error code and its text, as tests compare them.
pub type Code = (i16, Option<String>);

/// No error.
pub const OK: Code = (0, None);

/// An error code without a text.
pub fn bare(code: ErrorCode) -> Code {
    (code.0, None)
}

/// An error code with its text.
pub fn says(code: ErrorCode, message: &str) -> Code {
    (code.0, Some(message.to_owned()))
}

fn code(code: i16, message: Option<&StrBytes>) -> Code {
    (code, message.map(ToString::to_string))
}

/// The answer to a ShareFetch.
#[derive(Debug, Clone)]
pub struct ShareFetched(pub ShareFetchResponse);

impl ShareFetched {
    /// The top-level error.
    pub fn error(&self) -> ErrorCode {
        ErrorCode(self.0.error_code)
    }

    /// What is said of a partition, if anything.
    pub fn partition(&self, at: At) -> Option<&PartitionData> {
        let topic = self.0.responses.iter().find(|t| t.topic_id == at.topic)?;
        topic
            .partitions
            .iter()
            .find(|p| p.partition_index == at.partition)
    }

    /// The partitions that are listed.
    pub fn listed(&self) -> Vec<At> {
        let all = self.0.responses.iter().flat_map(|topic| {
            let at = move |p: &PartitionData| At {
                topic: topic.topic_id,
                partition: p.partition_index,
            };
            topic.partitions.iter().map(at)
        });
        all.collect()
    }

    /// The fetch error of a partition; none for one that is not listed.
    pub fn fetch_error(&self, at: At) -> Code {
        self.partition(at)
            .map_or(OK, |p| code(p.error_code, p.error_message.as_ref()))
    }

    /// The acknowledge error of a partition, which must be listed.
    pub fn acknowledge_error(&self, at: At) -> Code {
        let p = self
            .partition(at)
            .unwrap_or_else(|| panic!("{at:?} is not listed in {self:?}"));
        code(
            p.acknowledge_error_code,
            p.acknowledge_error_message.as_ref(),
        )
    }

    /// The entries of AcquiredRecords: `0-9#1 10-19#2` (offsets, delivery count).
    pub fn acquired(&self, at: At) -> String {
        let entries = self.partition(at).map_or(&[][..], |p| &p.acquired_records);
        let entry = |e: &ottla_protocol::messages::share_fetch_response::AcquiredRecords| {
            format!("{}-{}#{}", e.first_offset, e.last_offset, e.delivery_count)
        };
        entries.iter().map(entry).collect::<Vec<_>>().join(" ")
    }

    /// The acquired offsets.
    pub fn offsets(&self, at: At) -> Vec<i64> {
        let entries = self.partition(at).map_or(&[][..], |p| &p.acquired_records);
        entries
            .iter()
            .flat_map(|e| e.first_offset..=e.last_offset)
            .collect()
    }

    /// The record batches that came along: `0-9 10-19`.
    pub fn batches(&self, at: At) -> String {
        let data = self.partition(at).and_then(|p| p.records.as_deref());
        decode_batches(data.unwrap_or_default())
            .iter()
            .map(|(header, _)| format!("{}-{}", header.base_offset, header.last_offset()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The records that were acquired and came along.
    pub fn records(&self, at: At) -> Vec<Fetched> {
        let mine = self.offsets(at);
        let data = self.partition(at).and_then(|p| p.records.as_deref());
        decode_batches(data.unwrap_or_default())
            .into_iter()
            .flat_map(|(_, records)| records)
            .filter(|record| mine.binary_search(&record.offset).is_ok())
            .collect()
    }
}

/// The answer to a ShareAcknowledge.
#[derive(Debug, Clone)]
pub struct Acknowledged(pub ShareAcknowledgeResponse);

impl Acknowledged {
    /// The top-level error.
    pub fn error(&self) -> ErrorCode {
        ErrorCode(self.0.error_code)
    }

    /// What is said of a partition; `None` when it is not listed.
    pub fn of(&self, at: At) -> Option<Code> {
        let topic = self.0.responses.iter().find(|t| t.topic_id == at.topic)?;
        let partition = topic
            .partitions
            .iter()
            .find(|p| p.partition_index == at.partition)?;
        Some(code(partition.error_code, partition.error_message.as_ref()))
    }
}

/// A member of a share group and its share session with one broker.
#[derive(Debug)]
pub struct Member {
    /// Its connection.
    pub client: Client,
    /// Its group.
    pub group: String,
    /// Its id.
    pub id: String,
    /// The epoch of the next request of its share session; 0 opens one.
    pub epoch: i32,
    /// The member epoch that the last heartbeat gave.
    pub member_epoch: i32,
}

impl Member {
    /// Somebody who has not said anything yet.
    pub fn new(client: Client, group: &str, id: &str) -> Self {
        Self {
            client,
            group: group.to_owned(),
            id: id.to_owned(),
            epoch: 0,
            member_epoch: 0,
        }
    }

    /// Joins the group.
    pub async fn join(&mut self, topics: &[&str]) -> ShareGroupHeartbeatResponse {
        let answer = self.heartbeat(0, Some(topics)).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        self.member_epoch = answer.member_epoch;
        answer
    }

    /// A heartbeat with a member epoch of choice; no topics: unchanged.
    pub async fn heartbeat(
        &mut self,
        member_epoch: i32,
        topics: Option<&[&str]>,
    ) -> ShareGroupHeartbeatResponse {
        let names = topics.map(|names| names.iter().map(|name| topic_name(name)).collect());
        let request = ShareGroupHeartbeatRequest::default()
            .with_group_id(group_id(&self.group))
            .with_member_id(text(&self.id))
            .with_member_epoch(member_epoch)
            .with_rack_id(None)
            .with_subscribed_topic_names(names);
        self.client.call(1, &request).await
    }

    /// A heartbeat that changes nothing; what is said about the assignment.
    pub async fn beat(&mut self) -> ShareGroupHeartbeatResponse {
        let answer = self.heartbeat(self.member_epoch, None).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        self.member_epoch = answer.member_epoch;
        answer
    }

    /// Leaves the group; share session and locks stay.
    pub async fn leave(&mut self) {
        let answer = self.heartbeat(-1, Some(&[])).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        assert_eq!(answer.member_epoch, -1);
    }

    /// Sends a ShareFetch at the session's epoch.
    pub async fn send_fetch(&mut self, ask: &Ask) -> Sent<ShareFetchRequest> {
        let request = ask.fetch_request(&self.group, &self.id, self.epoch);
        self.client.send(ask.version(), &request).await
    }

    /// Waits for the answer to a ShareFetch; without a top-level error the session moves on.
    pub async fn receive_fetch(&mut self, sent: Sent<ShareFetchRequest>) -> ShareFetched {
        let response = self.client.receive(sent).await;
        self.moved_on(response.error_code);
        ShareFetched(response)
    }

    /// A ShareFetch at the session's epoch, whatever comes of it.
    pub async fn try_fetch(&mut self, ask: &Ask) -> ShareFetched {
        let sent = self.send_fetch(ask).await;
        self.receive_fetch(sent).await
    }

    /// A ShareFetch that is not refused as a whole.
    pub async fn fetch(&mut self, ask: &Ask) -> ShareFetched {
        let fetched = self.try_fetch(ask).await;
        assert_eq!(fetched.error(), ErrorCode::NONE, "{fetched:?}");
        fetched
    }

    /// A ShareFetch at an epoch of choice; the session's own epoch is left as it is.
    pub async fn fetch_at(&mut self, epoch: i32, ask: &Ask) -> ShareFetched {
        let request = ask.fetch_request(&self.group, &self.id, epoch);
        ShareFetched(self.client.call(ask.version(), &request).await)
    }

    /// A ShareAcknowledge at the session's epoch, whatever comes of it.
    pub async fn try_acknowledge(&mut self, ask: &Ask) -> Acknowledged {
        let answer = self.acknowledge_at(self.epoch, ask).await;
        self.moved_on(answer.0.error_code);
        answer
    }

    /// A ShareAcknowledge that is not refused as a whole.
    pub async fn acknowledge(&mut self, ask: &Ask) -> Acknowledged {
        let answer = self.try_acknowledge(ask).await;
        assert_eq!(answer.error(), ErrorCode::NONE, "{answer:?}");
        answer
    }

    /// A ShareAcknowledge at an epoch of choice; the session's own epoch is left as it is.
    pub async fn acknowledge_at(&mut self, epoch: i32, ask: &Ask) -> Acknowledged {
        let request = ask.acknowledge_request(&self.group, &self.id, epoch);
        Acknowledged(self.client.call(ask.version(), &request).await)
    }

    /// Acknowledges one range; what is said of the partition.
    pub async fn ack(&mut self, at: At, first: i64, last: i64, kind: i8) -> Code {
        self.acks(at, first, last, &[kind]).await
    }

    /// Acknowledges one range with these types; what is said of the partition.
    pub async fn acks(&mut self, at: At, first: i64, last: i64, kinds: &[i8]) -> Code {
        let answer = self
            .acknowledge(&Ask::new().acks(at, first, last, kinds))
            .await;
        match answer.of(at) {
            Some(code) => code,
            None => panic!("{at:?} is not listed in {answer:?}"),
        }
    }

    /// Renews one range; what is said of the partition.
    pub async fn renew(&mut self, at: At, first: i64, last: i64) -> Code {
        let ask = Ask::new().ack(at, first, last, RENEW).renew();
        let answer = self.acknowledge(&ask).await;
        answer
            .of(at)
            .unwrap_or_else(|| panic!("{at:?} is not listed in {answer:?}"))
    }

    /// Closes the share session.
    pub async fn close_session(&mut self) {
        let answer = self.acknowledge_at(-1, &Ask::new()).await;
        assert_eq!(answer.error(), ErrorCode::NONE, "{answer:?}");
        self.epoch = 0;
    }

    fn moved_on(&mut self, error_code: i16) {
        if ErrorCode(error_code).is_none() {
            self.epoch = if self.epoch == -1 { 0 } else { self.epoch + 1 };
        }
    }
}

/// A group's id as messages carry it.
pub(crate) fn group_id(group: &str) -> GroupId {
    GroupId(text(group))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
