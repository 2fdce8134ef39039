//! What Fetch finds in one partition, and the rules by which a broker serves it.

use bytes::Bytes;
use ottla_protocol::ErrorCode;
use ottla_protocol::messages::fetch_response::{
    AbortedTransaction, LeaderIdAndEpoch, PartitionData,
};
use ottla_protocol::messages::{BrokerId, FetchRequest, ProducerId};
use ottla_storage::{Bound, ReadSlice};

use crate::cluster::{Leadership, Partition};
use crate::context::Cx;
use crate::error_code::ApiError;
use crate::fetch_sessions::{News, Told, Wanted};

/// The one replica selector that there is (KIP-392): a replica in the consumer's rack.
const RACK_AWARE: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

/// The epoch that a client believes in against the one in force (KIP-320).
fn check_epoch(asked: i32, leadership_epoch: i32) -> Result<(), ErrorCode> {
    match asked {
        -1 => Ok(()),
        asked if asked < leadership_epoch => Err(ErrorCode::FENCED_LEADER_EPOCH),
        asked if asked > leadership_epoch => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
        _ => Ok(()),
    }
}

/// Whether an answer with this error names the leader (KIP-951).
pub(super) fn is_misdirected(code: ErrorCode) -> bool {
    code == ErrorCode::NOT_LEADER_OR_FOLLOWER || code == ErrorCode::FENCED_LEADER_EPOCH
}

/// Whether broker `here` leads the partition in the epoch that a client believes in. A replica looks
/// at the epoch first, as in Kafka: who asks with an old one is fenced, not sent on.
pub(super) fn check_leader(
    here: i32,
    asked: i32,
    leadership: &Leadership,
) -> Result<(), ErrorCode> {
    if leadership.replicas.contains(&here) {
        check_epoch(asked, leadership.leader_epoch)?;
    }
    if leadership.leader == here {
        Ok(())
    } else {
        Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    }
}

/// What a read found.
pub(super) enum Found {
    /// Records, or none yet.
    Slice(ReadSlice),
    /// A replica that the consumer is to read from instead.
    Elsewhere { replica: i32, marks: ReadSlice },
    /// An error, and who leads if this broker does not serve the partition.
    Failed(ErrorCode, Option<LeaderIdAndEpoch>),
}

impl Found {
    /// Bytes of records.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Slice(slice) => slice.bytes.len(),
            Self::Elsewhere { .. } | Self::Failed(..) => 0,
        }
    }

    /// What of it matters to a fetch session.
    pub(super) fn news(&self) -> News {
        let told = |slice: &ReadSlice| Told {
            high_watermark: slice.high_watermark,
            log_start_offset: slice.log_start_offset,
        };
        match self {
            Self::Slice(slice) => News {
                told: told(slice),
                records: !slice.bytes.is_empty(),
                notable: false,
            },
            Self::Elsewhere { marks, .. } => News {
                told: told(marks),
                records: false,
                notable: true,
            },
            Self::Failed(..) => News {
                told: Told::NOTHING,
                records: false,
                notable: true,
            },
        }
    }

    /// The partition's part of the answer.
    pub(super) fn into_data(self, index: i32, bound: Bound) -> PartitionData {
        match self {
            Self::Slice(slice) => success(index, slice, bound),
            Self::Elsewhere { replica, marks } => {
                success(index, marks, bound).with_preferred_read_replica(BrokerId(replica))
            }
            Self::Failed(code, None) => failure(index, code),
            Self::Failed(code, Some(leader)) => failure(index, code).with_current_leader(leader),
        }
    }
}

/// How one request reads.
pub(super) struct Reader<'a> {
    cx: &'a Cx,
    pub(super) bound: Bound,
    /// A broker that is a replica serves consumers too since v11.
    follower_serves: bool,
    /// Claims to be a broker that replicates; none does.
    replicates: bool,
    /// The consumer's rack, if the broker looks for replicas in it.
    rack: Option<&'a str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(cx: &'a Cx, request: &'a FetchRequest) -> Self {
        let replica = request.replica_id.0.max(request.replica_state.replica_id.0);
        let rack = Some(&*request.rack_id).filter(|rack| {
            !rack.is_empty() && {
                let config = cx.config();
                config.replication.replica_selector_class.as_deref() == Some(RACK_AWARE)
            }
        });
        Self {
            cx,
            bound: match request.isolation_level {
                1 => Bound::LastStable,
                _ => Bound::LogEnd,
            },
            follower_serves: cx.version >= 11,
            replicates: replica >= 0,
            rack,
        }
    }

    /// Reads up to `room` bytes of a partition; the first batch whole if it is the `first` of the
    /// answer.
    pub(super) fn read(
        &self,
        partition: &Partition,
        wanted: &Wanted,
        room: usize,
        first: bool,
    ) -> Found {
        let leadership = partition.leadership();
        let here = self.cx.node.id;
        let leads = leadership.leader == here;
        let serves = leads || self.follower_serves && leadership.replicas.contains(&here);
        let allowed = if self.replicates {
            Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)
        } else if serves {
            check_epoch(wanted.leader_epoch, leadership.leader_epoch)
        } else {
            check_leader(here, wanted.leader_epoch, &leadership)
        };
        if let Err(code) = allowed {
            let hint = LeaderIdAndEpoch::default()
                .with_leader_id(BrokerId(leadership.leader))
                .with_leader_epoch(leadership.leader_epoch);
            return Found::Failed(code, is_misdirected(code).then_some(hint));
        }
        let nearer = self.rack.filter(|_| leads);
        if let Some(replica) = nearer.and_then(|rack| self.replica_in(rack, &leadership)) {
            // Nothing is read here, but the offset must be one that the replica has.
            return match partition
                .log
                .read(wanted.fetch_offset, 0, false, self.bound)
            {
                Ok(marks) => Found::Elsewhere { replica, marks },
                Err(error) => Found::Failed(ApiError::from(error).code, None),
            };
        }
        let max = room.min(wanted.max_bytes.max(0) as usize);
        match partition
            .log
            .read(wanted.fetch_offset, max, first, self.bound)
        {
            Ok(slice) => Found::Slice(slice),
            Err(error) => Found::Failed(ApiError::from(error).code, None),
        }
    }

    /// The in-sync replica in `rack` that a consumer there reads from; `None` if that is the leader,
    /// or if there is none. Of several the one with the greatest id, as in Kafka.
    fn replica_in(&self, rack: &str, leadership: &Leadership) -> Option<i32> {
        let in_rack = |id: i32| {
            let node = self.cx.broker.node(id);
            node.is_some_and(|node| node.rack.as_deref() == Some(rack))
        };
        if in_rack(leadership.leader) {
            return None;
        }
        let in_sync = leadership.isr.iter().copied();
        in_sync.filter(|&id| in_rack(id)).max()
    }
}

fn success(index: i32, slice: ReadSlice, bound: Bound) -> PartitionData {
    let aborted = (bound == Bound::LastStable).then(|| {
        let aborted = slice.aborted.iter().map(|txn| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(txn.producer_id))
                .with_first_offset(txn.first_offset)
        });
        aborted.collect()
    });
    PartitionData::default()
        .with_partition_index(index)
        .with_high_watermark(slice.high_watermark)
        .with_last_stable_offset(slice.last_stable_offset)
        .with_log_start_offset(slice.log_start_offset)
        .with_aborted_transactions(aborted)
        .with_preferred_read_replica(BrokerId(-1))
        .with_records(Some(slice.bytes))
}

fn failure(index: i32, code: ErrorCode) -> PartitionData {
    let absent = [
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::UNKNOWN_TOPIC_ID,
    ];
    PartitionData::default()
        .with_partition_index(index)
        .with_error_code(code.0)
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_aborted_transactions(absent.contains(&code).then(Vec::new))
        .with_preferred_read_replica(BrokerId(-1))
        .with_records(Some(Bytes::new()))
}
