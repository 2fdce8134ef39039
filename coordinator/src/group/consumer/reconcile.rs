//! How one member gets from what it has to what it shall have (KIP-848).
//!
//! A member first gives up what is no longer its own, in its old epoch; then it goes to the target's
//! epoch with what it keeps and what nobody else holds; what others still hold it gets once they
//! have released it. So no partition has two members at any time.

use super::owned;
use super::records::{CurrentValue, MemberState, Owned};
use crate::types::{TopicPartitions, Uuid};

/// What a member's next step depends on.
pub(super) struct Step<'a> {
    /// The epoch of the target assignment.
    pub(super) target_epoch: i32,
    /// The member's target; topics ascending, each once.
    pub(super) target: &'a [TopicPartitions],
    /// Whether the member subscribes to the topic.
    pub(super) subscribes: &'a dyn Fn(&Uuid) -> bool,
    /// The partitions that the member says it has; `None` when it says nothing.
    pub(super) owned: Option<&'a [TopicPartitions]>,
    /// Whether another member holds the partition.
    pub(super) is_taken: &'a dyn Fn(&Uuid, i32) -> bool,
}

impl Step<'_> {
    /// What the member has after this step; `None` when nothing changes.
    pub(super) fn next(&self, current: &CurrentValue) -> Option<CurrentValue> {
        match current.state {
            MemberState::Stable => {
                if current.member_epoch == self.target_epoch {
                    self.unsubscribe(current)
                } else {
                    Some(self.advance(current))
                }
            }
            MemberState::UnrevokedPartitions => {
                if self.has_released(&current.pending_revocation) {
                    Some(self.advance(current))
                } else {
                    self.unsubscribe(current)
                }
            }
            // What a later release wrote is taken up from what the member has.
            MemberState::UnreleasedPartitions | MemberState::Unknown => Some(self.advance(current)),
        }
        .filter(|next| next != current)
    }

    /// Whether the member said what it has, and none of it is to be given up.
    fn has_released(&self, pending: &Owned) -> bool {
        self.owned
            .is_some_and(|reported| !owned::has_any(pending, reported))
    }

    /// Within an epoch: what the member no longer subscribes to is to be given up, even though the
    /// next target assignment is still to come.
    fn unsubscribe(&self, current: &CurrentValue) -> Option<CurrentValue> {
        if current.assigned.keys().all(self.subscribes) {
            return None;
        }
        let mut next = current.clone();
        let (kept, dropped): (Owned, Owned) = std::mem::take(&mut next.assigned)
            .into_iter()
            .partition(|(topic_id, _)| (self.subscribes)(topic_id));
        next.assigned = kept;
        next.previous_member_epoch = current.member_epoch;
        if self.still_owns(&dropped) {
            next.state = MemberState::UnrevokedPartitions;
            for (topic_id, partitions) in dropped {
                let pending = next.pending_revocation.entry(topic_id).or_default();
                pending.extend(partitions);
            }
        }
        Some(next)
    }

    fn still_owns(&self, dropped: &Owned) -> bool {
        !dropped.is_empty()
            && self
                .owned
                .is_none_or(|reported| owned::has_any(dropped, reported))
    }

    fn advance(&self, current: &CurrentValue) -> CurrentValue {
        let mut kept = Owned::new();
        let mut added = Owned::new();
        let mut waits = false;
        for topic in self.target {
            let topic_id = topic.topic_id;
            if !(self.subscribes)(&topic_id) {
                continue;
            }
            let mine = current.assigned.get(&topic_id);
            for &partition in &topic.partitions {
                if let Some(&epoch) = mine.and_then(|mine| mine.get(&partition)) {
                    owned::add(&mut kept, topic_id, partition, epoch);
                } else if (self.is_taken)(&topic_id, partition) {
                    waits = true;
                } else {
                    owned::add(&mut added, topic_id, partition, self.target_epoch);
                }
            }
        }
        let mut pending = Owned::new();
        for (topic_id, partitions) in &current.assigned {
            let kept = kept.get(topic_id);
            for (&partition, &epoch) in partitions {
                if kept.is_none_or(|kept| !kept.contains_key(&partition)) {
                    owned::add(&mut pending, *topic_id, partition, epoch);
                }
            }
        }
        if self.still_owns(&pending) {
            return CurrentValue {
                member_epoch: current.member_epoch,
                previous_member_epoch: current.member_epoch,
                state: MemberState::UnrevokedPartitions,
                assigned: kept,
                pending_revocation: pending,
            };
        }
        for (topic_id, partitions) in added {
            kept.entry(topic_id).or_default().extend(partitions);
        }
        CurrentValue {
            member_epoch: self.target_epoch,
            previous_member_epoch: current.member_epoch,
            state: if waits {
                MemberState::UnreleasedPartitions
            } else {
                MemberState::Stable
            },
            assigned: kept,
            pending_revocation: Owned::new(),
        }
    }
}
