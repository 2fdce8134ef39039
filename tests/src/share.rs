//! A member of a share group, as the wire sees it: share sessions, acquired records, acknowledgements.

use ottla_protocol::messages::share_fetch_response::{AcquiredRecords, PartitionData};
use ottla_protocol::messages::share_group_heartbeat_response::ShareGroupHeartbeatResponse;
use ottla_protocol::messages::{
    GroupId, ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse,
    ShareGroupHeartbeatRequest,
};
use ottla_protocol::{ErrorCode, StrBytes};

use crate::records::topic_name;
use crate::share_ask::RENEW;
use crate::{Ask, At, Client, Fetched, Sent, decode_batches};

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
        let entry = |e: &AcquiredRecords| {
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

/// A text as messages carry it.
pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
