//! Share sessions of one broker (KIP-932): what each member fetches, and in which order its
//! requests must come.
//!
//! A session belongs to one member of one group and to the connection that opened it; when that
//! connection closes, the session goes and the caller releases what the member holds. Fetches and
//! acknowledgements share one epoch. Sessions are volatile, and nothing here expires them: a time
//! limit would drop the locks of a slow consumer (KAFKA-19159).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::types::TopicPartition;

/// Identifies one client connection within the life of the process.
pub type ConnectionId = u64;

/// The epoch that opens or replaces a session.
pub const INITIAL_EPOCH: i32 = 0;
/// The epoch that closes a session.
pub const FINAL_EPOCH: i32 = -1;

/// Why a share session refused a request; each is a top-level error code, without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// `SHARE_SESSION_NOT_FOUND` (122).
    #[error("the share session is not found")]
    NotFound,
    /// `INVALID_SHARE_SESSION_EPOCH` (123).
    #[error("the share session epoch is invalid")]
    InvalidEpoch,
    /// `SHARE_SESSION_LIMIT_REACHED` (133).
    #[error("the limit of share sessions has been reached")]
    LimitReached,
    /// `INVALID_REQUEST` (42): no group, no member, or acknowledgements in an opening request.
    #[error("the request is invalid")]
    InvalidRequest,
}

/// The part of a `ShareFetch` request that concerns the session.
#[derive(Clone, Copy, Debug)]
pub struct BeginFetch<'a> {
    /// `GroupId`; null is refused.
    pub group: Option<&'a str>,
    /// `MemberId`; null is refused.
    pub member: Option<&'a str>,
    /// `ShareSessionEpoch`.
    pub epoch: i32,
    /// The connection that the request came in on.
    pub connection: ConnectionId,
    /// The partitions that the request names, in its order.
    pub added: &'a [TopicPartition],
    /// The partitions to forget. Ignored by an opening request, as in Kafka.
    pub forgotten: &'a [TopicPartition],
    /// Whether the request carries any acknowledgement.
    pub has_acks: bool,
}

/// The part of a `ShareAcknowledge` request that concerns the session.
#[derive(Clone, Copy, Debug)]
pub struct BeginAcknowledge<'a> {
    /// `GroupId`; null is refused.
    pub group: Option<&'a str>,
    /// `MemberId`; null is refused.
    pub member: Option<&'a str>,
    /// `ShareSessionEpoch`.
    pub epoch: i32,
}

/// A partition of a session, with a place where the caller keeps what it looked up.
pub struct SessionPartition<H> {
    /// Which partition.
    pub partition: TopicPartition,
    handle: Mutex<Option<H>>,
}

impl<H: Clone> SessionPartition<H> {
    /// What was remembered last.
    pub fn handle(&self) -> Option<H> {
        self.handle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Remembers what a lookup found, or `None` to look it up again.
    pub fn remember(&self, handle: Option<H>) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }
}

impl<H> fmt::Debug for SessionPartition<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionPartition")
            .field(&self.partition)
            .finish()
    }
}

type Listed<H> = Arc<[Arc<SessionPartition<H>>]>;

/// What one accepted fetch works on.
#[derive(Debug)]
pub struct SessionView<H> {
    partitions: Listed<H>,
    first: usize,
    /// Whether the request closed the session: fetch nothing, apply the acknowledgements, then
    /// release what the member holds in [`SessionView::partitions`].
    pub closed: bool,
}

impl<H> SessionView<H> {
    /// The session's partitions in the order in which this fetch shall serve them: insertion
    /// order, begun one further each time, so that a small limit starves none.
    pub fn partitions(&self) -> impl Iterator<Item = &Arc<SessionPartition<H>>> {
        let (tail, head) = self.partitions.split_at(self.first);
        head.iter().chain(tail)
    }

    /// How many partitions the session has.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Whether the session has no partition.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }
}

/// A session that is gone; the caller releases what the member holds in its partitions.
#[derive(Debug)]
pub struct ClosedSession<H> {
    /// The group.
    pub group: String,
    /// The member.
    pub member: String,
    /// The session's partitions, in the order in which they were added.
    pub partitions: Listed<H>,
}

struct Session<H> {
    connection: ConnectionId,
    next_epoch: i32,
    /// Fetches so far; epochs will not do, since acknowledgements use them up as well.
    turn: usize,
    members: BTreeSet<TopicPartition>,
    listed: Listed<H>,
}

impl<H> Session<H> {
    fn open(connection: ConnectionId, partitions: &[TopicPartition]) -> Self {
        let mut session = Self {
            connection,
            next_epoch: INITIAL_EPOCH + 1,
            turn: 0,
            members: BTreeSet::new(),
            listed: Arc::new([]),
        };
        session.add(partitions);
        session
    }

    fn add(&mut self, partitions: &[TopicPartition]) {
        let mut listed: Vec<_> = Vec::new();
        for &partition in partitions {
            if self.members.insert(partition) {
                listed.push(Arc::new(SessionPartition {
                    partition,
                    handle: Mutex::new(None),
                }));
            }
        }
        if !listed.is_empty() {
            self.listed = self.listed.iter().cloned().chain(listed).collect();
        }
    }

    fn forget(&mut self, partitions: &[TopicPartition]) {
        let before = self.members.len();
        for partition in partitions {
            self.members.remove(partition);
        }
        if self.members.len() != before {
            let kept = self
                .listed
                .iter()
                .filter(|p| self.members.contains(&p.partition));
            self.listed = kept.cloned().collect();
        }
    }

    fn advance(&mut self) {
        self.next_epoch = next_epoch(self.next_epoch);
    }

    fn view(&mut self) -> SessionView<H> {
        let first = self.turn.checked_rem(self.listed.len()).unwrap_or(0);
        self.turn = self.turn.wrapping_add(1);
        SessionView {
            partitions: Arc::clone(&self.listed),
            first,
            closed: false,
        }
    }
}

fn next_epoch(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(INITIAL_EPOCH + 1)
}

/// All share sessions of one broker. `H` is what the caller remembers for a partition.
pub struct ShareSessions<H> {
    limit: usize,
    groups: BTreeMap<String, BTreeMap<String, Session<H>>>,
    connections: BTreeMap<ConnectionId, BTreeSet<(String, String)>>,
    sessions: usize,
    partitions: usize,
}

impl<H> fmt::Debug for ShareSessions<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareSessions")
            .field("limit", &self.limit)
            .field("sessions", &self.sessions)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

impl<H> ShareSessions<H> {
    /// No sessions, and room for `limit` of them (`group.share.max.share.sessions`).
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            groups: BTreeMap::new(),
            connections: BTreeMap::new(),
            sessions: 0,
            partitions: 0,
        }
    }

    /// Sessions now open.
    pub fn len(&self) -> usize {
        self.sessions
    }

    /// Whether no session is open.
    pub fn is_empty(&self) -> bool {
        self.sessions == 0
    }

    /// Connections that have opened a session that is still there.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Partitions in all sessions together.
    pub fn partition_count(&self) -> usize {
        self.partitions
    }

    /// Checks the session part of a `ShareFetch` and moves the session on.
    ///
    /// Check everything that is refused at the top level (a bad renew request) before: an accepted
    /// call uses up the epoch, whatever becomes of the partitions.
    pub fn begin_fetch(
        &mut self,
        request: &BeginFetch<'_>,
    ) -> Result<SessionView<H>, SessionError> {
        let (group, member) = named(request.group, request.member)?;
        match request.epoch {
            INITIAL_EPOCH => self.open(group, member, request),
            FINAL_EPOCH => {
                let session = self.remove(group, member).ok_or(SessionError::NotFound)?;
                Ok(SessionView {
                    partitions: session.listed,
                    first: 0,
                    closed: true,
                })
            }
            epoch => {
                let session = self.expect(group, member, epoch)?;
                let before = session.members.len();
                session.add(request.added);
                session.forget(request.forgotten);
                session.advance();
                let view = session.view();
                self.partitions = self.partitions - before + view.len();
                Ok(view)
            }
        }
    }

    /// Checks the session part of a `ShareAcknowledge` and moves the session on.
    ///
    /// `Some` means that the request closed the session: apply its acknowledgements, then release
    /// the rest.
    pub fn begin_acknowledge(
        &mut self,
        request: BeginAcknowledge<'_>,
    ) -> Result<Option<ClosedSession<H>>, SessionError> {
        let (group, member) = named(request.group, request.member)?;
        match request.epoch {
            INITIAL_EPOCH => Err(SessionError::InvalidEpoch),
            FINAL_EPOCH => {
                let session = self.remove(group, member).ok_or(SessionError::NotFound)?;
                Ok(Some(ClosedSession {
                    group: group.to_owned(),
                    member: member.to_owned(),
                    partitions: session.listed,
                }))
            }
            epoch => {
                self.expect(group, member, epoch)?.advance();
                Ok(None)
            }
        }
    }

    /// Ends every session that `connection` opened.
    pub fn close_connection(&mut self, connection: ConnectionId) -> Vec<ClosedSession<H>> {
        let Some(keys) = self.connections.remove(&connection) else {
            return Vec::new();
        };
        let mut closed = Vec::with_capacity(keys.len());
        for (group, member) in keys {
            if let Some(session) = self.remove(&group, &member) {
                closed.push(ClosedSession {
                    group,
                    member,
                    partitions: session.listed,
                });
            }
        }
        closed
    }

    fn open(
        &mut self,
        group: &str,
        member: &str,
        request: &BeginFetch<'_>,
    ) -> Result<SessionView<H>, SessionError> {
        if request.has_acks {
            return Err(SessionError::InvalidRequest);
        }
        // The session that is replaced keeps its locks: nothing is released here.
        if self.remove(group, member).is_none() && self.sessions >= self.limit {
            return Err(SessionError::LimitReached);
        }
        let mut session = Session::open(request.connection, request.added);
        let view = session.view();
        self.sessions += 1;
        self.partitions += view.len();
        let key = (group.to_owned(), member.to_owned());
        self.connections
            .entry(request.connection)
            .or_default()
            .insert(key);
        self.groups
            .entry(group.to_owned())
            .or_default()
            .insert(member.to_owned(), session);
        Ok(view)
    }

    fn expect(
        &mut self,
        group: &str,
        member: &str,
        epoch: i32,
    ) -> Result<&mut Session<H>, SessionError> {
        let session = self
            .groups
            .get_mut(group)
            .and_then(|members| members.get_mut(member));
        let session = session.ok_or(SessionError::NotFound)?;
        if session.next_epoch == epoch {
            Ok(session)
        } else {
            Err(SessionError::InvalidEpoch)
        }
    }

    fn remove(&mut self, group: &str, member: &str) -> Option<Session<H>> {
        let members = self.groups.get_mut(group)?;
        let session = members.remove(member)?;
        if members.is_empty() {
            self.groups.remove(group);
        }
        self.sessions -= 1;
        self.partitions -= session.members.len();
        if let Some(keys) = self.connections.get_mut(&session.connection) {
            keys.remove(&(group.to_owned(), member.to_owned()));
            if keys.is_empty() {
                self.connections.remove(&session.connection);
            }
        }
        Some(session)
    }
}

fn named<'a>(
    group: Option<&'a str>,
    member: Option<&'a str>,
) -> Result<(&'a str, &'a str), SessionError> {
    match (group, member) {
        (Some(group), Some(member)) => Ok((group, member)),
        _ => Err(SessionError::InvalidRequest),
    }
}
