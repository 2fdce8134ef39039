//! ShareFetch (key 78), versions 1-2. KIP-932, KIP-1206 (acquire modes), KIP-1222 (renew).
//!
//! - Epoch 0 opens the session, -1 closes it and releases what is left, else it goes on.
//! - Acknowledgements ride along and are proposed before the fetch; the answer waits for their commit.
//! - The partitions of a session take turns; MaxRecords and MaxBytes hold over all of them.
//! - With nothing to acquire the request waits up to MaxWaitMs for a publish, a release, an expired
//!   lock or a change of leader.
//! - Record bytes are whole batches, by reference; `AcquiredRecords` says which of their records count.
//! - v2: ShareAcquireMode (0 batch_optimized, 1 record_limit) and IsRenewAck, which fetches nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::share::session::{BeginFetch, SessionView};
use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::share::types::{AckBatch, AcquireMode};
use ottla_coordinator::types::TopicPartition;
use ottla_coordinator::wait::{Registration, Signal, Woken};
use ottla_protocol::messages::ShareFetchRequest;
use ottla_protocol::messages::share_fetch_response::{
    AcquiredRecords, LeaderIdAndEpoch, PartitionData, ShareFetchResponse,
    ShareFetchableTopicResponse,
};
use ottla_protocol::{ErrorCode, StrBytes};

use super::Answer;
use super::coordinator::share_groups_on;
use super::endpoints::node_endpoints;
use super::share_request::{self, Who, acknowledgements, at, text};
use crate::acquire::{self, Acquisition, Room};
use crate::clock::{Stopwatch, WireDeadline};
use crate::config::IsolationLevel;
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::metrics::share_requests::{Asked, TopicsAsked};
use crate::shares::{Handle, Slot, limits_of};

pub(super) async fn handle(cx: &Cx, request: ShareFetchRequest) -> Answer<ShareFetchResponse> {
    let mode = match check(cx, &request) {
        Ok(mode) => mode,
        Err(code) => return refuse(cx, code),
    };
    let session = match begin(cx, &request) {
        Ok(session) => session,
        Err(code) => return refuse(cx, code),
    };
    let group = text(request.group_id.as_deref());
    let config = cx.broker.group_config(group);
    let who = Who {
        group: group.into(),
        member: text(request.member_id.as_ref()),
        limits: limits_of(&cx.broker, &config.share),
        renews: request.is_renew_ack,
    };
    let mut outcome = Outcome::new(&request);
    let proposed = share_request::propose(cx, &who, acknowledgements!(request));
    if session.closed {
        release(cx, &who, &session);
    } else if !request.is_renew_ack {
        let fetch = Fetch {
            cx,
            who: &who,
            request: &request,
            session: &session,
            mode,
            committed: config.share.isolation_level == IsolationLevel::ReadCommitted,
        };
        let watch = Stopwatch::start();
        fetch.run(&mut outcome).await;
        fetch.measure(watch, &outcome);
    }
    let mut acknowledged = TopicsAsked::new();
    for (partition, pending) in proposed {
        let result = share_request::settled(pending).await;
        *acknowledged.entry(partition.topic_id).or_default() |= result.is_err();
        outcome.acknowledged(partition, result);
    }
    share_request::count_acknowledged(cx, &acknowledged);
    outcome.respond(cx, who.limits.lock_duration_ms)
}

/// What is refused before the session is looked at.
fn check(cx: &Cx, request: &ShareFetchRequest) -> Result<AcquireMode, ErrorCode> {
    share_groups_on(cx)?;
    if request.is_renew_ack {
        let asks = [
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.max_records,
        ];
        if asks.iter().any(|&ask| ask != 0) {
            return Err(ErrorCode::INVALID_REQUEST);
        }
    }
    match request.share_acquire_mode {
        0 => Ok(AcquireMode::BatchOptimized),
        1 => Ok(AcquireMode::RecordLimit),
        _ => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

fn refuse(cx: &Cx, code: ErrorCode) -> Answer<ShareFetchResponse> {
    cx.broker.metrics.share.requests.refused(Asked::Fetch);
    ShareFetchResponse {
        error_code: code.0,
        ..Default::default()
    }
    .into()
}

fn begin(cx: &Cx, request: &ShareFetchRequest) -> Result<SessionView<Handle>, ErrorCode> {
    let mut added = vec![];
    let mut has_acks = false;
    for topic in &request.topics {
        for partition in &topic.partitions {
            added.push(at(topic.topic_id, partition.partition_index));
            has_acks |= !partition.acknowledgement_batches.is_empty();
        }
    }
    let forgotten: Vec<_> = request
        .forgotten_topics_data
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|&p| at(topic.topic_id, p)))
        .collect();
    let begin = BeginFetch {
        group: request.group_id.as_ref().map(|id| &***id),
        member: request.member_id.as_deref(),
        epoch: request.share_session_epoch,
        connection: cx.connection.id,
        added: &added,
        forgotten: &forgotten,
        has_acks,
    };
    cx.node
        .sessions()
        .begin_fetch(&begin)
        .map_err(share_request::session_error)
}

/// The session is over: what its member still holds is released.
fn release(cx: &Cx, who: &Who<'_>, session: &SessionView<Handle>) {
    for listed in session.partitions() {
        let key = ShareKey {
            group_id: Arc::clone(&who.group),
            partition: listed.partition,
        };
        cx.broker
            .shares
            .release_member(&cx.broker, cx.node.id, &key, who.member);
    }
}

/// The fetching half of one request.
struct Fetch<'a> {
    cx: &'a Cx,
    who: &'a Who<'a>,
    request: &'a ShareFetchRequest,
    session: &'a SessionView<Handle>,
    mode: AcquireMode,
    committed: bool,
}

impl Fetch<'_> {
    /// Acquires what there is; with nothing there, waits.
    async fn run(&self, outcome: &mut Outcome) {
        let deadline = WireDeadline::after(i64::from(self.request.max_wait_ms));
        let wait = self.request.max_wait_ms > 0;
        if self.pass(outcome, !wait) || !wait {
            return;
        }
        let signal = Signal::new();
        loop {
            // Anew in each turn: a share partition may have been loaded anew meanwhile.
            let registrations = self.register(&signal);
            let requests = &self.cx.broker.metrics.share.requests;
            let _waiting = requests.wait(registrations.len());
            signal.rearm();
            if self.pass(outcome, false) {
                return;
            }
            match self.cx.connection.park(&signal, deadline).await {
                Woken::Fired => {}
                Woken::Expired => {
                    requests.expired();
                    self.pass(outcome, true);
                    return;
                }
                Woken::Closed => return,
            }
        }
    }

    /// Counts the request, how long it took to get records, and from how many share partitions.
    fn measure(&self, watch: Stopwatch, outcome: &Outcome) {
        let mut topics = TopicsAsked::new();
        for listed in self.session.partitions() {
            topics.insert(listed.partition.topic_id, false);
        }
        let mut got = 0;
        for (partition, data) in &outcome.partitions {
            got += usize::from(!data.acquired_records.is_empty());
            if data.error_code != 0 {
                topics.insert(partition.topic_id, true);
            }
        }
        let broker = &self.cx.broker;
        let requests = &broker.metrics.share.requests;
        requests.answered(&broker.cluster, Asked::Fetch, &topics);
        let slot = self.session.partitions().find_map(|listed| listed.handle());
        if let Some(slot) = slot {
            slot.metrics.group.fetched(watch, self.session.len(), got);
        }
    }

    fn register(&self, signal: &Arc<Signal>) -> Vec<Registration> {
        let mut registrations = vec![];
        for listed in self.session.partitions() {
            if let Ok(slot) = share_request::slot(self.cx, &self.who.group, listed) {
                registrations.push(slot.cell.waiters().register(signal));
                registrations.push(slot.partition.waiters.register(signal));
            }
        }
        registrations
    }

    /// One turn over the session's partitions; whether there is something to answer with. The `last`
    /// one takes what there is, however few bytes.
    fn pass(&self, outcome: &mut Outcome, last: bool) -> bool {
        if !last && self.request.min_bytes > 1 && !self.enough_bytes() {
            return false;
        }
        let max_bytes = self.cx.config().network.fetch_max_bytes;
        let mut room = Room {
            records: self.request.max_records,
            bytes: self.request.max_bytes.min(max_bytes).max(0) as usize,
            first: true,
        };
        let mut found = false;
        for listed in self.session.partitions() {
            match share_request::slot(self.cx, &self.who.group, listed) {
                Err(error) => {
                    outcome.failed(listed.partition, error);
                    found = true;
                }
                Ok(slot) if room.records > 0 => match self.acquire(&slot, &mut room) {
                    Ok(Some(acquisition)) => {
                        outcome.acquired(listed.partition, acquisition);
                        found = true;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        outcome.failed(listed.partition, error);
                        found = true;
                    }
                },
                Ok(_) => {}
            }
        }
        found
    }

    fn acquire(&self, slot: &Slot, room: &mut Room) -> Result<Option<Acquisition>, ApiError> {
        let ask = acquire::Ask {
            member: self.who.member,
            batch_size: self.request.batch_size.max(1),
            mode: self.mode,
            committed: self.committed,
            limits: &self.who.limits,
        };
        let watch = Stopwatch::start();
        let acquired = acquire::acquire(&self.cx.broker, slot, &ask, room);
        let ranges = acquired.as_ref().ok().and_then(Option::as_ref);
        let ranges = ranges.map_or(&[][..], |acquisition| &acquisition.ranges);
        slot.metrics.turn(watch, ranges);
        acquired
    }

    /// Whether there is as much to read as the request wants to wait for; an error is answered at once.
    fn enough_bytes(&self) -> bool {
        let want = self.request.min_bytes.max(0) as usize;
        let mut seen = 0;
        for listed in self.session.partitions() {
            let Ok(slot) = share_request::slot(self.cx, &self.who.group, listed) else {
                return true;
            };
            let readable =
                acquire::readable_bytes(&slot, &self.who.limits, self.committed, want - seen);
            seen = readable.saturating_add(seen);
            if seen >= want {
                return true;
            }
        }
        false
    }
}

/// What is answered, by partition.
struct Outcome {
    partitions: BTreeMap<TopicPartition, PartitionData>,
    records: Vec<Bytes>,
    acquired: u64,
    bytes: usize,
}

impl Outcome {
    /// Lists what the request named: it is answered even with nothing to say.
    fn new(request: &ShareFetchRequest) -> Self {
        let mut outcome = Self {
            partitions: BTreeMap::new(),
            records: vec![],
            acquired: 0,
            bytes: 0,
        };
        for topic in &request.topics {
            for partition in &topic.partitions {
                outcome.entry(at(topic.topic_id, partition.partition_index));
            }
        }
        outcome
    }

    fn entry(&mut self, partition: TopicPartition) -> &mut PartitionData {
        self.partitions
            .entry(partition)
            .or_insert_with(|| PartitionData {
                partition_index: partition.partition,
                records: Some(Bytes::new()),
                ..Default::default()
            })
    }

    fn failed(&mut self, partition: TopicPartition, error: ApiError) {
        let data = self.entry(partition);
        data.error_code = error.number();
        data.error_message = error.message.map(StrBytes::from_string);
    }

    fn acquired(&mut self, partition: TopicPartition, acquisition: Acquisition) {
        self.bytes += acquisition.bytes.len();
        self.records.push(acquisition.bytes.clone());
        let ranges = acquisition.ranges.iter().map(|range| AcquiredRecords {
            first_offset: range.first,
            last_offset: range.last,
            delivery_count: range.delivery_count,
            ..Default::default()
        });
        let ranges: Vec<_> = ranges.collect();
        self.acquired += ranges
            .iter()
            .map(|r| (r.last_offset - r.first_offset + 1).unsigned_abs())
            .sum::<u64>();
        let data = self.entry(partition);
        data.records = Some(acquisition.bytes);
        data.acquired_records = ranges;
    }

    fn acknowledged(&mut self, partition: TopicPartition, result: Result<(), ApiError>) {
        let data = self.entry(partition);
        if let Err(error) = result {
            data.acknowledge_error_code = error.number();
            data.acknowledge_error_message = error.message.map(StrBytes::from_string);
        }
    }

    fn respond(self, cx: &Cx, lock_duration_ms: i64) -> Answer<ShareFetchResponse> {
        cx.broker.metrics.acquired(self.acquired);
        cx.broker.metrics.fetched(self.bytes);
        let not_leader = ErrorCode::NOT_LEADER_OR_FOLLOWER.0;
        let mut misdirected = false;
        let mut responses: Vec<ShareFetchableTopicResponse> = vec![];
        for (partition, mut data) in self.partitions {
            if data.error_code == not_leader || data.acknowledge_error_code == not_leader {
                misdirected = true;
                data.current_leader = leader(cx, partition);
            }
            let topic_id = ottla_protocol::Uuid::from_bytes(partition.topic_id.0);
            match responses.last_mut() {
                Some(last) if last.topic_id == topic_id => last.partitions.push(data),
                _ => responses.push(ShareFetchableTopicResponse {
                    topic_id,
                    partitions: vec![data],
                    ..Default::default()
                }),
            }
        }
        let response = ShareFetchResponse {
            acquisition_lock_timeout_ms: lock_duration_ms.min(i64::from(i32::MAX)) as i32,
            responses,
            node_endpoints: node_endpoints(cx, misdirected),
            ..Default::default()
        };
        Answer::Records(response, self.records)
    }
}

fn leader(cx: &Cx, wanted: TopicPartition) -> LeaderIdAndEpoch {
    share_request::partition(cx, wanted).map_or_else(
        |_| LeaderIdAndEpoch::default(),
        |partition| {
            let leadership = partition.leadership();
            LeaderIdAndEpoch {
                leader_id: leadership.leader,
                leader_epoch: leadership.leader_epoch,
                ..Default::default()
            }
        },
    )
}
