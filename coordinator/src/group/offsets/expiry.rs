//! The end of offsets by time (KIP-211), and of groups that have lost their last one.

use std::ops::Bound;
use std::sync::Arc;

use super::super::consumer_protocol::ConsumerProtocol;
use super::super::coordinator::{Group, GroupCoordinator};
use super::super::plan::{GroupTimer, Plan};
use super::super::records::GroupRecord;
use super::super::timers::TimerKey;
use super::delete::tombstone;
use super::rules::{group_tombstones, is_empty_group};
use super::table::{CommittedOffset, GroupOffsets};
use crate::types::Ts;

/// How offsets end by time.
#[derive(Clone, Copy, Debug)]
pub struct OffsetRules {
    /// For how long an offset is kept that no member needs (`offsets.retention.minutes`).
    pub retention_ms: i64,
    /// How often expired ones are looked for (`offsets.retention.check.interval.ms`).
    pub check_interval_ms: i64,
    /// Reads what the members of classic groups subscribe to.
    pub consumers: &'static dyn ConsumerProtocol,
}

/// From when on a group's offsets are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::group) enum Unused {
    /// They are in use.
    Never,
    /// From their commit on, unless the group subscribes to the topic.
    SinceCommit,
    /// All of them since this instant.
    Since(Ts),
}

/// Records after which a pass over the groups is cut, to be gone on with at once.
const RECORDS_A_STEP: usize = 5_000;

impl GroupCoordinator {
    /// Says, once the log is replayed, how offsets end by time; from then on they do.
    pub fn set_offset_rules(&mut self, now: Ts, rules: OffsetRules) {
        let at = now.saturating_add(rules.check_interval_ms);
        self.timers.set(TimerKey::OffsetExpiry, at);
        self.offset_rules = Some(rules);
    }

    /// One step of the search for expired offsets, and for empty groups without any.
    pub(in crate::group) fn expire(&self, now: Ts) -> Option<Plan<()>> {
        let rules = self.offset_rules?;
        let mut plan = Plan::answer(());
        let start = match &self.expiry_resume {
            Some(group_id) => Bound::Included(&**group_id),
            None => Bound::Unbounded,
        };
        for (group_id, group) in self.groups.range::<str, _>((start, Bound::Unbounded)) {
            if plan.records.len() >= RECORDS_A_STEP {
                plan.timers
                    .push(GroupTimer::ResumeExpiry(Some(group_id.clone())));
                return Some(plan);
            }
            self.expire_group(now, rules, group_id, group, &mut plan.records);
        }
        plan.timers.push(GroupTimer::ResumeExpiry(None));
        plan.timers.push(GroupTimer::Set {
            key: TimerKey::OffsetExpiry,
            at: now.saturating_add(rules.check_interval_ms),
        });
        Some(plan)
    }

    /// Adds the tombstones of what has expired in a group, and of the group if nothing is left.
    fn expire_group(
        &self,
        now: Ts,
        rules: OffsetRules,
        group_id: &str,
        group: &Group,
        to: &mut Vec<GroupRecord>,
    ) {
        match group {
            Group::Share(_) => return,
            // Somebody is about to join.
            Group::Classic(group) if !group.invited.is_empty() => return,
            Group::Classic(_) | Group::Consumer(_) => {}
        }
        let mut kept = 0;
        if let Some(offsets) = self.offsets.group(group_id) {
            let unused = Unused::of(group);
            if !may_expire(now, rules, offsets, unused) {
                return;
            }
            let needed = self.needed_topics(group);
            let id: Arc<str> = group_id.into();
            for (topic, partitions) in offsets.topics() {
                if needed.include(topic) {
                    kept += partitions.len();
                    continue;
                }
                for (&partition, offset) in partitions {
                    if is_expired(now, rules, offset, unused) {
                        to.push(tombstone(&id, topic, partition));
                    } else {
                        kept += 1;
                    }
                }
            }
        }
        if kept == 0 && is_empty_group(group) {
            to.extend(group_tombstones(group_id, group));
        }
    }
}

/// Whether it is worth looking at each offset: spares most groups the walk.
fn may_expire(now: Ts, rules: OffsetRules, offsets: &GroupOffsets, unused: Unused) -> bool {
    let since = match unused {
        Unused::Never => return false,
        Unused::SinceCommit => offsets.oldest(),
        Unused::Since(at) => at,
    };
    offsets.has_own_expiry() || is_over(now, rules, since)
}

fn is_expired(now: Ts, rules: OffsetRules, offset: &CommittedOffset, unused: Unused) -> bool {
    match (offset.expire_timestamp, unused) {
        (_, Unused::Never) => false,
        (Some(at), _) => now >= at,
        (None, Unused::SinceCommit) => is_over(now, rules, offset.commit_timestamp),
        (None, Unused::Since(at)) => is_over(now, rules, at),
    }
}

fn is_over(now: Ts, rules: OffsetRules, since: Ts) -> bool {
    now.saturating_sub(since) >= rules.retention_ms
}
