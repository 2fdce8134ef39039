//! Fetch (key 1), versions 4-18. KIP-74, KIP-98, KIP-227, KIP-320, KIP-392, KIP-516 (v13: topic ids).
//!
//! - Record bytes are slices of the mapped segment, sent from where they lie.
//! - The first batch of an answer is always whole, whatever the limits say; after it the limits hold.
//! - With less than MinBytes to read the request waits, up to MaxWaitMs, for a publish, a change of
//!   leader or the end of the partition. An error ends the wait; a partition that is not there does
//!   not, unless no other is asked for.
//! - Epoch 0 opens a fetch session, -1 does without; both carry all partitions and end the session
//!   that they name. An incremental request carries what changed, and its answer leaves out partitions
//!   without news ([`crate::fetch_sessions`]).
//! - A broker that is a replica serves consumers since v11, and the leader names a nearer replica to a
//!   consumer with a rack (`replica.selector.class`).
//! - zstd goes to every version, as measured on Kafka 4.4.0, although KIP-110 speaks of v10.
//! - `records` is never null; a null from an empty partition breaks clients.

use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use ottla_coordinator::wait::{Registration, Signal, Woken};
use ottla_protocol::messages::fetch_request::FetchTopic;
use ottla_protocol::messages::fetch_response::{FetchResponse, FetchableTopicResponse};
use ottla_protocol::messages::{FetchRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_storage::Bound;

use super::Answer;
use super::endpoints::node_endpoints;
use super::fetch_read::{Found, Reader, is_misdirected};
use crate::clock::WireDeadline;
use crate::cluster::{Partition, Topic};
use crate::context::Cx;
use crate::fetch_sessions::{News, Session, SharedSession, TopicKey, Turn, Wanted};

/// The session epoch of a full request that opens a session.
const OPENING_EPOCH: i32 = 0;
/// The session epoch of a full request without one.
const FINAL_EPOCH: i32 = -1;

pub(super) async fn handle(cx: &Cx, request: FetchRequest) -> Answer<FetchResponse> {
    let answered = match Fetch::begin(cx, &request) {
        Ok(fetch) => fetch.run().await,
        Err(code) => Err(code),
    };
    answered.unwrap_or_else(|code| FetchResponse::default().with_error_code(code.0).into())
}

/// Where the partitions of a request are listed.
enum Source {
    /// In the request.
    Request,
    /// In the session, whose next request has this epoch.
    Session(SharedSession, i32),
}

struct Fetch<'a> {
    cx: &'a Cx,
    request: &'a FetchRequest,
    reader: Reader<'a>,
    source: Source,
    /// The most bytes of the answer.
    most: usize,
    /// The fewest bytes that are worth an answer before the wait is over.
    fewest: usize,
}

impl<'a> Fetch<'a> {
    /// Continues the session of an incremental request; ends the one that a full request names.
    fn begin(cx: &'a Cx, request: &'a FetchRequest) -> Result<Self, ErrorCode> {
        let source = match request.session_epoch {
            OPENING_EPOCH | FINAL_EPOCH => {
                if request.session_id != 0 {
                    cx.node.fetch_sessions().close(request.session_id);
                }
                Source::Request
            }
            epoch => resume(cx, request, epoch)?,
        };
        let most = cx.config().network.fetch_max_bytes.min(request.max_bytes);
        let fewest = request.min_bytes.min(most);
        Ok(Self {
            cx,
            request,
            reader: Reader::new(cx, request),
            source,
            most: most.max(0) as usize,
            fewest: fewest.max(0) as usize,
        })
    }

    /// Looks, waits if there is not enough, and answers.
    async fn run(self) -> Result<Answer<FetchResponse>, ErrorCode> {
        let deadline = WireDeadline::after(i64::from(self.request.max_wait_ms));
        let mut pass = self.look()?;
        if !self.is_enough(&pass) {
            let signal = Signal::new();
            let _registrations = self.register(&signal)?;
            loop {
                pass = self.look()?;
                if self.is_enough(&pass) || deadline.passed() {
                    break;
                }
                if self.cx.connection.park(&signal, deadline).await != Woken::Fired {
                    pass = self.look()?;
                    break;
                }
                signal.rearm();
            }
        }
        let session_id = self.settle(&pass)?;
        Ok(pass.respond(self.cx, session_id))
    }

    fn is_enough(&self, pass: &Pass) -> bool {
        pass.urgent || !pass.known || self.request.max_wait_ms <= 0 || pass.bytes >= self.fewest
    }

    /// One look at all partitions.
    fn look(&self) -> Result<Pass, ErrorCode> {
        let mut pass = Pass::default();
        match &self.source {
            Source::Request => self.look_at_request(&mut pass),
            Source::Session(session, epoch) => {
                let session = still_ours(session, *epoch)?;
                self.look_at_session(&mut pass, &session);
            }
        }
        Ok(pass)
    }

    fn look_at_request(&self, pass: &mut Pass) {
        let opens = self.request.session_epoch == OPENING_EPOCH;
        pass.topics.reserve(self.request.topics.len());
        for wanted in &self.request.topics {
            let topic = find(
                self.cx,
                wanted.topic_id,
                &wanted.topic,
                self.cx.version >= 13,
            );
            let count = wanted.partitions.len();
            pass.begin_topic(wanted.topic.clone(), wanted.topic_id, count);
            for want in &wanted.partitions {
                let found = self.read(pass, &topic, &Wanted::from(want));
                if opens {
                    pass.news.push((0, found.news()));
                }
                pass.add(found, want.partition, self.reader.bound);
            }
        }
    }

    fn look_at_session(&self, pass: &mut Pass, session: &Session) {
        let mut topics = LastTopic::new(self.cx);
        for (turn, entry) in session.iter() {
            let found = self.read(pass, topics.find(&entry.topic), &entry.wanted);
            let news = found.news();
            if entry.is_told(&news) {
                pass.news.push((turn, news));
                pass.continue_topic(&entry.topic);
                pass.add(found, entry.wanted.partition, self.reader.bound);
            }
        }
    }

    fn read(&self, pass: &mut Pass, topic: &FoundTopic, want: &Wanted) -> Found {
        let partition = match topic {
            Ok(topic) => topic
                .partition(want.partition)
                .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            Err(code) => Err(*code),
        };
        let partition = match partition {
            Ok(partition) => partition,
            Err(code) => return Found::Failed(code, None),
        };
        let room = self.most.saturating_sub(pass.bytes);
        let found = self.reader.read(&partition, want, room, pass.bytes == 0);
        pass.known = true;
        pass.bytes += found.bytes();
        pass.urgent |= !matches!(found, Found::Slice(_));
        found
    }

    /// Has every partition of the fetch wake `signal`.
    fn register(&self, signal: &Arc<Signal>) -> Result<Vec<Registration>, ErrorCode> {
        let mut registrations = vec![];
        let mut add = |partition: Option<Arc<Partition>>| {
            registrations.extend(partition.map(|p| p.waiters.register(signal)));
        };
        match &self.source {
            Source::Request => {
                for wanted in &self.request.topics {
                    let by_ids = self.cx.version >= 13;
                    let topic = find(self.cx, wanted.topic_id, &wanted.topic, by_ids);
                    for want in &wanted.partitions {
                        add(topic
                            .as_ref()
                            .ok()
                            .and_then(|t| t.partition(want.partition)));
                    }
                }
            }
            Source::Session(session, epoch) => {
                let session = still_ours(session, *epoch)?;
                let mut topics = LastTopic::new(self.cx);
                for (_, entry) in session.iter() {
                    let topic = topics.find(&entry.topic).as_ref().ok();
                    add(topic.and_then(|t| t.partition(entry.wanted.partition)));
                }
            }
        }
        Ok(registrations)
    }

    /// Notes in the session what the answer says, or opens one; returns its id, 0 without one.
    fn settle(&self, pass: &Pass) -> Result<i32, ErrorCode> {
        if let Source::Session(session, epoch) = &self.source {
            let id = session.id;
            let mut session = still_ours(session, *epoch)?;
            for (turn, news) in &pass.news {
                session.settle(*turn, news);
            }
            return Ok(id);
        }
        if self.request.session_epoch != OPENING_EPOCH {
            return Ok(0);
        }
        let now = self.cx.now();
        let mut sessions = self.cx.node.fetch_sessions();
        if !sessions.make_room(now, pass.news.len()) {
            return Ok(0);
        }
        drop(sessions);
        let session = pass.session(&self.request.topics, self.cx.version >= 13);
        let mut sessions = self.cx.node.fetch_sessions();
        if !sessions.make_room(now, session.len()) {
            return Ok(0);
        }
        Ok(sessions.open(now, session, rand::random))
    }
}

/// Goes on with the session of an incremental request.
fn resume(cx: &Cx, request: &FetchRequest, epoch: i32) -> Result<Source, ErrorCode> {
    let session = cx.node.fetch_sessions().get(request.session_id)?;
    let (next, size) = {
        let mut session = session.lock();
        let by_ids = cx.version >= 13;
        let forgotten = &request.forgotten_topics_data;
        let next = session.resume(epoch, by_ids, &request.topics, forgotten)?;
        (next, session.len())
    };
    let mut sessions = cx.node.fetch_sessions();
    if size == 0 {
        sessions.close(session.id);
        return Ok(Source::Request);
    }
    sessions.touch(cx.now(), session.id, size);
    Ok(Source::Session(session, next))
}

/// The session, unless another request has used it since this one began.
fn still_ours(session: &SharedSession, epoch: i32) -> Result<MutexGuard<'_, Session>, ErrorCode> {
    let session = session.lock();
    if session.epoch() == epoch {
        Ok(session)
    } else {
        Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH)
    }
}

type FoundTopic = Result<Arc<Topic>, ErrorCode>;

fn find(cx: &Cx, id: Uuid, name: &str, by_id: bool) -> FoundTopic {
    let cluster = &cx.broker.cluster;
    if by_id {
        cluster.topic_by_id(id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
    } else {
        let topic = cluster.topic(name);
        topic.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    }
}

/// Finds the topics of a session's partitions. Neighbours are mostly of one topic, which is looked up
/// once.
struct LastTopic<'a> {
    cx: &'a Cx,
    last: Option<(&'a TopicKey, FoundTopic)>,
}

impl<'a> LastTopic<'a> {
    fn new(cx: &'a Cx) -> Self {
        Self { cx, last: None }
    }

    fn find(&mut self, key: &'a TopicKey) -> &FoundTopic {
        self.last.take_if(|(last, _)| *last != key);
        let find = || match key {
            TopicKey::Id(id) => find(self.cx, *id, "", true),
            TopicKey::Name(name) => find(self.cx, Uuid::nil(), name, false),
        };
        let (_, topic) = self.last.get_or_insert_with(|| (key, find()));
        topic
    }
}

/// What one look at all partitions found.
#[derive(Default)]
struct Pass {
    topics: Vec<FetchableTopicResponse>,
    /// The topic that the last of `topics` belongs to, in a session.
    last: Option<TopicKey>,
    /// What a session is to know of each partition in `topics`, in their order.
    news: Vec<(Turn, News)>,
    bytes: usize,
    /// Whether any partition is there.
    known: bool,
    /// Whether the client must hear of something at once.
    urgent: bool,
    wrong_leader: bool,
}

impl Pass {
    fn begin_topic(&mut self, name: TopicName, id: Uuid, partitions: usize) {
        let topic = FetchableTopicResponse::default()
            .with_topic(name)
            .with_topic_id(id)
            .with_partitions(Vec::with_capacity(partitions));
        self.topics.push(topic);
    }

    /// The same for a partition of a session, unless the one before was of the same topic.
    fn continue_topic(&mut self, key: &TopicKey) {
        if self.last.as_ref() == Some(key) {
            return;
        }
        self.last = Some(key.clone());
        match key {
            TopicKey::Id(id) => self.begin_topic(TopicName::default(), *id, 1),
            TopicKey::Name(name) => {
                let name = TopicName(StrBytes::from_string(name.to_string()));
                self.begin_topic(name, Uuid::nil(), 1);
            }
        }
    }

    fn add(&mut self, found: Found, index: i32, bound: Bound) {
        self.wrong_leader |= matches!(&found, Found::Failed(code, _) if is_misdirected(*code));
        if let Some(topic) = self.topics.last_mut() {
            topic.partitions.push(found.into_data(index, bound));
        }
    }

    /// The session that a full request opens with this answer.
    fn session(&self, wanted: &[FetchTopic], by_ids: bool) -> Session {
        let mut session = Session::new(wanted, by_ids);
        let mut news = self.news.iter();
        for (topic, wanted) in self.topics.iter().zip(wanted) {
            let key = TopicKey::of(wanted, by_ids);
            for (partition, (_, news)) in topic.partitions.iter().zip(news.by_ref()) {
                session.settle_named(&key, partition.partition_index, news);
            }
        }
        session
    }

    fn respond(self, cx: &Cx, session_id: i32) -> Answer<FetchResponse> {
        let partitions = self.topics.iter().flat_map(|t| &t.partitions);
        let records: Vec<Bytes> = partitions
            .filter_map(|p| p.records.clone())
            .filter(|r| !r.is_empty())
            .collect();
        cx.broker.metrics.fetched(self.bytes);
        let response = FetchResponse::default()
            .with_session_id(session_id)
            .with_responses(self.topics)
            .with_node_endpoints(node_endpoints(cx, self.wrong_leader));
        Answer::Records(response, records)
    }
}
