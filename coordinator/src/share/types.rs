//! The values that go into a share partition and come out of it.

use std::fmt;

use crate::types::Ts;

/// Offsets `first..=last`. Empty when `last < first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetRange {
    /// The first offset.
    pub first: i64,
    /// The last offset, inclusive.
    pub last: i64,
}

impl OffsetRange {
    /// `first..=last`.
    pub const fn new(first: i64, last: i64) -> Self {
        Self { first, last }
    }

    /// How many offsets there are.
    pub fn len(self) -> i64 {
        (self.last - self.first + 1).max(0)
    }

    /// Whether there is no offset.
    pub fn is_empty(self) -> bool {
        self.last < self.first
    }
}

/// The limits in force at a call. They are dynamic configuration, so each call is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `share.partition.max.record.locks`: how long the window from the start offset to the last
    /// acquired offset may grow.
    pub max_record_locks: i32,
    /// `share.delivery.count.limit`: a record delivered this often is not made available again.
    pub delivery_count_limit: i16,
    /// `share.record.lock.duration.ms` of the group: governs new and renewed locks only.
    pub lock_duration_ms: i64,
    /// `share.renew.acknowledge.enable` of the group.
    pub renew_enabled: bool,
    /// Whether records that are rejected, or delivered too often, become dead letters: the group names
    /// a topic for them and may use it.
    pub dead_letters: bool,
    /// `share.group.dlq.write.timeout.ms` of the group: how long a record stays `Archiving` at most.
    pub dlq_write_timeout_ms: Option<i64>,
}

/// How `MaxRecords` binds (KIP-1206).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireMode {
    /// Whole batches; the last one may overshoot `MaxRecords`.
    BatchOptimized,
    /// Never more than `MaxRecords`.
    RecordLimit,
}

/// What a share fetch has read and wants to acquire.
#[derive(Clone, Copy, Debug)]
pub struct AcquireRequest<'a> {
    /// `MaxRecords` of the fetch; nothing is acquired when it is below 1.
    pub max_records: i32,
    /// `BatchSize` of the fetch: an acquired range is cut at the next record-batch boundary once it
    /// has this many records. Values below 1 mean 1.
    pub batch_size: i32,
    /// How `max_records` binds.
    pub mode: AcquireMode,
    /// The offset at which the log was read: what
    /// [`next_fetch_offset`](crate::share::partition::SharePartition::next_fetch_offset) gave. Offsets
    /// from here to the last batch that no batch covers do not exist in the log, and are archived.
    pub fetch_offset: i64,
    /// The record batches read, ascending and disjoint: base offset to last offset of each header.
    pub batches: &'a [OffsetRange],
    /// Exclusive bound: the high watermark, or the last stable offset under `read_committed`.
    pub upper: i64,
    /// Data offsets of aborted transactions within `batches`, ascending and disjoint; they are
    /// archived and never delivered. Empty under `read_uncommitted`.
    pub aborted: &'a [OffsetRange],
    /// Offsets within `batches` that hold no data, ascending and disjoint: control batches, and records
    /// that compaction removed from a batch. They are delivered as others are, but do not count as
    /// delivered for the breaker.
    pub non_data: &'a [OffsetRange],
}

/// Records now locked for the member that asked: one `AcquiredRecords` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquiredRange {
    /// The first offset.
    pub first: i64,
    /// The last offset, inclusive.
    pub last: i64,
    /// How often the records have been delivered, this time included.
    pub delivery_count: i16,
}

/// One `AcknowledgementBatch` of a request, as it came.
#[derive(Clone, Copy, Debug)]
pub struct AckBatch<'a> {
    /// The first offset.
    pub first: i64,
    /// The last offset, inclusive.
    pub last: i64,
    /// One type for all offsets, or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
    pub types: &'a [i8],
}

/// The state of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordState {
    /// May be acquired. With a delivery count of 0 it was not acquired since the state was loaded.
    Available = 0,
    /// Locked by a member until a deadline. Never persisted.
    Acquired = 1,
    /// Done: accepted.
    Acknowledged = 2,
    /// Rejected or delivered too often, and on its way to the dead letter queue.
    Archiving = 3,
    /// Done: rejected, delivered too often, aborted, or not in the log.
    Archived = 4,
}

impl RecordState {
    /// The state with Kafka's persisted number, if it is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Available,
            1 => Self::Acquired,
            2 => Self::Acknowledged,
            3 => Self::Archiving,
            4 => Self::Archived,
            _ => return None,
        })
    }

    /// Kafka's number of the state.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Whether nothing can happen to the record any more.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }
}

/// A run of records in one persisted state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateBatch {
    /// The first offset.
    pub first: i64,
    /// The last offset, inclusive.
    pub last: i64,
    /// [`RecordState::code`]: 0, 2, 3 or 4.
    pub state: u8,
    /// How often the records have been delivered.
    pub delivery_count: i16,
}

/// A share partition's state as the share coordinator knows it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PersistedState {
    /// Raised each time the state is initialised or altered.
    pub state_epoch: i32,
    /// The leader epoch of the last write.
    pub leader_epoch: i32,
    /// The share-partition start offset; -1 when it was never decided.
    pub start_offset: i64,
    /// Records done at or after the start offset; -1 when nothing was ever written.
    pub delivery_complete_count: i32,
    /// Disjoint, ascending.
    pub batches: Vec<StateBatch>,
}

/// What one write to the share coordinator carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWrite {
    /// The start offset before this write takes effect.
    pub start_offset: i64,
    /// Records done at or after `start_offset` once this write has taken effect.
    pub delivery_complete_count: i32,
    /// The changed records only, in their new states; disjoint, ascending.
    pub batches: Vec<StateBatch>,
}

/// Names a proposed change until it is settled. Ascending in the order of proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A run of records in the same situation, for people who look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The first offset.
    pub first: i64,
    /// The last offset, inclusive.
    pub last: i64,
    /// The state.
    pub state: RecordState,
    /// The state that a write under way will give them.
    pub pending: Option<RecordState>,
    /// How often they have been delivered.
    pub delivery_count: i16,
    /// Who holds the lock.
    pub member: Option<String>,
    /// When the lock ends, in state time.
    pub deadline: Option<Ts>,
}

/// Why an acknowledgement was refused. Nothing of the partition's batches was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// `INVALID_REQUEST`.
    #[error("invalid request{}", Text(*.0))]
    InvalidRequest(Option<&'static str>),
    /// `INVALID_RECORD_STATE`.
    #[error("invalid record state{}", Text(*.0))]
    InvalidRecordState(Option<&'static str>),
    /// The share partition does not live here any more.
    #[error(transparent)]
    Closed(#[from] CloseReason),
}

impl AckError {
    /// The text for the client, where Kafka sends one.
    pub fn message(self) -> Option<&'static str> {
        match self {
            Self::InvalidRequest(text) | Self::InvalidRecordState(text) => text,
            Self::Closed(_) => None,
        }
    }
}

struct Text(Option<&'static str>);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |text| write!(f, ": {text}"))
    }
}

/// Why a share partition on this broker refuses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CloseReason {
    /// A write was refused because the state or leader epoch is not ours any more; load it anew.
    #[error("the state was changed or taken over by someone else")]
    Fenced,
    /// Another broker leads the partition now.
    #[error("this broker does not lead the partition any more")]
    NotLeader,
    /// The topic was deleted.
    #[error("the topic was deleted")]
    TopicDeleted,
    /// The group was deleted, or its offsets of this topic.
    #[error("the group or its offsets were deleted")]
    GroupDeleted,
    /// The broker stops.
    #[error("the broker stops")]
    Shutdown,
}

/// Why a state write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WriteError {
    /// The log or the share coordinator cannot take it now; the records are as they were.
    #[error("the share coordinator cannot write now")]
    Unavailable,
    /// The share coordinator refused the state epoch or leader epoch: the cell closes itself.
    #[error("the share coordinator refused the epoch")]
    Fenced,
    /// The share coordinator has no such state any more: the cell closes itself.
    #[error("the share coordinator does not know the share partition")]
    Unknown,
    /// The cell was closed before the write was made.
    #[error(transparent)]
    Closed(#[from] CloseReason),
}

#[cfg(test)]
mod tests {
    use super::{AckError, RecordState};

    #[test]
    fn states_keep_their_numbers() {
        for code in 0..=4 {
            assert_eq!(
                RecordState::from_code(code).map(RecordState::code),
                Some(code)
            );
        }
        assert_eq!(RecordState::from_code(5), None);
    }

    #[test]
    fn an_error_shows_its_text() {
        assert_eq!(
            AckError::InvalidRequest(None).to_string(),
            "invalid request"
        );
        assert_eq!(
            AckError::InvalidRecordState(Some("x")).to_string(),
            "invalid record state: x"
        );
    }
}
