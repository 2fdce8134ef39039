//! When something falls due in a coordinator: one queue for the members and groups of a shard.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::Ts;

/// What falls due. Each key has at most one instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// A member has been silent for its session timeout.
    Session {
        /// The group.
        group: String,
        /// The member.
        member: String,
    },
    /// A member that was given its id has not joined, or its first join has taken too long.
    NewMember {
        /// The group.
        group: String,
        /// The member.
        member: String,
    },
    /// A member has not given up partitions in its rebalance timeout.
    RebalanceTimeout {
        /// The group.
        group: String,
        /// The member.
        member: String,
    },
    /// Members have had the time to join a classic group.
    JoinPhase {
        /// The group.
        group: String,
    },
    /// Members have had the time to fetch their assignments in a classic group.
    SyncPhase {
        /// The group.
        group: String,
    },
    /// Offsets are to be looked through for expired ones.
    OffsetExpiry,
}

impl TimerKey {
    /// The key of a member's session.
    pub fn session(group: &str, member: &str) -> Self {
        Self::Session {
            group: group.to_owned(),
            member: member.to_owned(),
        }
    }

    /// The key of a member that is new.
    pub fn new_member(group: &str, member: &str) -> Self {
        Self::NewMember {
            group: group.to_owned(),
            member: member.to_owned(),
        }
    }

    /// The key of a member's rebalance timeout.
    pub fn rebalance_timeout(group: &str, member: &str) -> Self {
        Self::RebalanceTimeout {
            group: group.to_owned(),
            member: member.to_owned(),
        }
    }

    /// The key of a group's join phase.
    pub fn join_phase(group: &str) -> Self {
        Self::JoinPhase {
            group: group.to_owned(),
        }
    }

    /// The key of a group's sync phase.
    pub fn sync_phase(group: &str) -> Self {
        Self::SyncPhase {
            group: group.to_owned(),
        }
    }

    /// Whether a member ends when this falls due: such timers stand still while sessions are held.
    fn ends_members(&self) -> bool {
        !matches!(self, Self::OffsetExpiry)
    }
}

/// The timers of one shard. Setting, cancelling and taking cost the logarithm of their number.
#[derive(Clone, Debug, Default)]
pub(super) struct TimerQueue {
    instants: BTreeMap<TimerKey, Ts>,
    order: BTreeSet<(Ts, TimerKey)>,
}

impl TimerQueue {
    /// Sets the key's instant, in the place of the one that it had.
    pub(super) fn set(&mut self, key: TimerKey, at: Ts) {
        match self.instants.get_mut(&key) {
            Some(old) if *old == at => {}
            Some(old) => {
                let old = std::mem::replace(old, at);
                let mut entry = (old, key);
                self.order.remove(&entry);
                entry.0 = at;
                self.order.insert(entry);
            }
            None => {
                self.instants.insert(key.clone(), at);
                self.order.insert((at, key));
            }
        }
    }

    /// Forgets the key's instant.
    pub(super) fn cancel(&mut self, key: TimerKey) {
        if let Some(at) = self.instants.remove(&key) {
            self.order.remove(&(at, key));
        }
    }

    /// Whether the key has an instant.
    pub(super) fn contains(&self, key: &TimerKey) -> bool {
        self.instants.contains_key(key)
    }

    /// The next instant at which something falls due.
    pub(super) fn next(&self) -> Option<Ts> {
        self.order.first().map(|&(at, _)| at)
    }

    /// What has fallen due first, by `now`. It stays until it is cancelled or set anew.
    pub(super) fn first_due(&self, now: Ts) -> Option<&TimerKey> {
        let (at, key) = self.order.first()?;
        (*at <= now).then_some(key)
    }

    /// Moves all timers that end members by `by_ms`.
    pub(super) fn shift_sessions(&mut self, by_ms: i64) {
        self.order.clear();
        for (key, at) in &mut self.instants {
            if key.ends_members() {
                *at = at.saturating_add(by_ms);
            }
            self.order.insert((*at, key.clone()));
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.instants.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_due_comes_in_order_and_stays_until_it_is_cancelled() {
        let mut timers = TimerQueue::default();
        timers.set(TimerKey::session("g", "b"), 20);
        timers.set(TimerKey::join_phase("g"), 10);
        timers.set(TimerKey::session("g", "a"), 20);
        assert_eq!(timers.next(), Some(10));
        assert_eq!(timers.first_due(9), None);
        assert_eq!(timers.first_due(10), Some(&TimerKey::join_phase("g")));
        assert_eq!(timers.first_due(10), Some(&TimerKey::join_phase("g")));
        timers.cancel(TimerKey::join_phase("g"));
        assert_eq!(timers.first_due(20), Some(&TimerKey::session("g", "a")));
    }

    #[test]
    fn a_key_has_one_instant() {
        let mut timers = TimerQueue::default();
        timers.set(TimerKey::sync_phase("g"), 10);
        timers.set(TimerKey::sync_phase("g"), 30);
        assert_eq!(timers.first_due(29), None);
        timers.cancel(TimerKey::sync_phase("g"));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn holding_sessions_moves_what_ends_members_and_nothing_else() {
        let mut timers = TimerQueue::default();
        timers.set(TimerKey::session("g", "a"), 10);
        timers.set(TimerKey::OffsetExpiry, 15);
        timers.shift_sessions(100);
        assert_eq!(timers.next(), Some(15));
        timers.cancel(TimerKey::OffsetExpiry);
        assert_eq!(timers.next(), Some(110));
    }
}
