//! `OffsetCommit`, and who may commit and fetch.

use std::sync::Arc;

use super::super::consumer::ConsumerGroup;
use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::GroupErrorKind::{GroupIdNotFound, IllegalGeneration, UnsupportedVersion};
use super::super::plan::{GroupError, GroupTimer, Plan};
use super::super::records::GroupRecord;
use super::super::timers::TimerKey;
use super::table::{CommittedOffset, GroupOffsets};
use crate::types::{Ts, Uuid};

/// An `OffsetCommit` request.
#[derive(Clone, Debug)]
pub struct CommitRequest<'a> {
    /// The group; may be empty, as in Kafka.
    pub group_id: Arc<str>,
    /// The member; empty from outside the group.
    pub member_id: &'a str,
    /// The static member's instance, if it gave one.
    pub instance_id: Option<&'a str>,
    /// The generation of a classic member, or the member's epoch; negative from outside the group.
    pub generation: i32,
    /// Whether the request's version (9 on) has the errors of KIP-848.
    pub knows_epochs: bool,
    /// For how long the offsets are to be kept, where the client says so.
    pub retention_ms: Option<i64>,
    /// What to commit.
    pub offsets: Vec<OffsetToCommit>,
}

/// One partition of an `OffsetCommit`; that it exists is for the caller to know.
#[derive(Clone, Debug)]
pub struct OffsetToCommit {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's index.
    pub partition: i32,
    /// The offset of the next record to consume; not checked, as in Kafka.
    pub offset: i64,
    /// Leader epoch of the last record consumed; -1 = unknown.
    pub leader_epoch: i32,
    /// What the client wants to keep with it.
    pub metadata: Arc<str>,
}

/// Whether metadata is within `offset.metadata.max.bytes`, which counts UTF-16 units, as Kafka does.
pub fn metadata_fits(metadata: &str, max: i32) -> bool {
    let max = usize::try_from(max).unwrap_or(0);
    // No text has more units than bytes.
    metadata.len() <= max || metadata.encode_utf16().count() <= max
}

impl GroupCoordinator {
    /// `OffsetCommit`: one record a partition. A commit from outside to a group that does not exist
    /// makes it, if there is anything to commit.
    pub fn commit_offsets(
        &self,
        now: Ts,
        request: CommitRequest<'_>,
    ) -> Result<Plan<()>, GroupError> {
        self.check_commit(&request)?;
        let alive = self.commit_as_heartbeat(now, &request);
        let expire_timestamp = request.retention_ms.map(|ms| now.saturating_add(ms));
        let group_id = request.group_id;
        let records = request
            .offsets
            .into_iter()
            .map(|commit| GroupRecord::Offset {
                group_id: Arc::clone(&group_id),
                topic: commit.topic,
                partition: commit.partition,
                value: Some(CommittedOffset {
                    offset: commit.offset,
                    leader_epoch: commit.leader_epoch,
                    metadata: commit.metadata,
                    commit_timestamp: now,
                    expire_timestamp,
                    topic_id: commit.topic_id,
                }),
            });
        let mut plan = Plan::answer(());
        plan.records = records.collect();
        plan.timers.extend(alive);
        Ok(plan)
    }

    fn check_commit(&self, request: &CommitRequest<'_>) -> Result<(), GroupError> {
        match self.groups.get(&*request.group_id) {
            Some(Group::Classic(group)) => {
                group.check_commit(request.member_id, request.instance_id, request.generation)
            }
            Some(Group::Consumer(group)) => check_consumer_commit(group, request),
            Some(Group::Share(_)) => Err(GroupError::bare(GroupIdNotFound)),
            None if request.generation < 0 => Ok(()),
            None if request.knows_epochs => Err(GroupError::bare(GroupIdNotFound)),
            None => Err(GroupError::bare(IllegalGeneration)),
        }
    }

    /// A commit keeps a member of a classic group alive, as its heartbeat does.
    fn commit_as_heartbeat(&self, now: Ts, request: &CommitRequest<'_>) -> Option<GroupTimer> {
        let Some(Group::Classic(group)) = self.groups.get(&*request.group_id) else {
            return None;
        };
        let member = group.members.get(request.member_id)?;
        Some(GroupTimer::Set {
            key: TimerKey::session(&request.group_id, request.member_id),
            at: now.saturating_add(Ts::from(member.session_timeout_ms)),
        })
    }

    /// `OffsetFetch` of one group: its offsets, or `None` when it has none. A group that does not
    /// exist, or whose type commits no offsets, has none. `member_id` and `member_epoch` are those
    /// of a member of a consumer group (KIP-848); from outside: `None` and a negative epoch.
    ///
    /// No offset is ever unstable: there are no transactions that could hold one back.
    pub fn fetch_offsets(
        &self,
        group_id: &str,
        member_id: Option<&str>,
        member_epoch: i32,
    ) -> Result<Option<&GroupOffsets>, GroupError> {
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => group.check_fetch(member_id, member_epoch)?,
            Some(Group::Classic(_)) => {}
            Some(Group::Share(_)) | None => return Ok(None),
        }
        Ok(self.offsets.group(group_id))
    }
}

/// A stale epoch for one partition refuses the whole request. Requests that know no epochs are those
/// of members that speak the classic protocol.
fn check_consumer_commit(
    group: &ConsumerGroup,
    request: &CommitRequest<'_>,
) -> Result<(), GroupError> {
    if let Some(member) = group.members.get(request.member_id)
        && member.classic.is_none()
        && !request.knows_epochs
    {
        let text = "Members of the consumer protocol commit with OffsetCommit version 9 and later.";
        return Err(GroupError::new(UnsupportedVersion, text));
    }
    for offset in &request.offsets {
        group.check_commit(
            request.member_id,
            request.generation,
            &offset.topic_id,
            offset.partition,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::metadata_fits;

    #[test]
    fn metadata_is_measured_in_utf16_units() {
        assert!(metadata_fits("", 0) && !metadata_fits("a", 0) && !metadata_fits("a", -1));
        let three_bytes_each = "\u{20ac}".repeat(4096);
        assert!(metadata_fits(&three_bytes_each, 4096));
        assert!(!metadata_fits(&three_bytes_each, 4095));
        let two_units_each = "\u{1f600}".repeat(2048);
        assert!(metadata_fits(&two_units_each, 4096));
        assert!(!metadata_fits(&two_units_each, 4095));
    }
}
