//! Who leads a partition, who follows, who is in sync; and what a change of that is. Pure.

/// No leader, or no broker.
pub const NOBODY: i32 = -1;

/// Who leads and who follows a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// The leading broker, or [`NOBODY`].
    pub leader: i32,
    /// Grows with each change of leader.
    pub leader_epoch: i32,
    /// Grows with each change of this struct.
    pub partition_epoch: i32,
    /// All replicas, the preferred leader first; those that a reassignment adds or removes among them.
    pub replicas: Vec<i32>,
    /// The replicas in sync.
    pub isr: Vec<i32>,
    /// Replicas that a reassignment adds (KIP-455).
    pub adding: Vec<i32>,
    /// Replicas that a reassignment removes.
    pub removing: Vec<i32>,
    /// Replicas that left the ISR while it was under `min.insync.replicas`: as good as in sync (KIP-966).
    pub elr: Vec<i32>,
    /// Replicas that were in the ISR or the ELR before it ran empty.
    pub last_known_elr: Vec<i32>,
    /// Whether the leader came from an unclean election and has not recovered yet.
    pub recovering: bool,
}

impl Leadership {
    /// The first leadership of a partition with these replicas, of which `isr` are up; without any,
    /// nobody leads.
    pub fn new(replicas: Vec<i32>, isr: Vec<i32>) -> Self {
        Self {
            leader: isr.first().copied().unwrap_or(NOBODY),
            leader_epoch: 0,
            partition_epoch: 0,
            replicas,
            isr,
            adding: vec![],
            removing: vec![],
            elr: vec![],
            last_known_elr: vec![],
            recovering: false,
        }
    }

    /// The replica that leads if it can.
    pub fn preferred(&self) -> i32 {
        self.replicas.first().copied().unwrap_or(NOBODY)
    }

    /// Whether replicas are being added or removed.
    pub fn is_reassigning(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// The replicas that a reassignment leads to; without one, all of them.
    pub fn target(&self) -> Vec<i32> {
        without(&self.replicas, &self.removing)
    }

    /// The replicas before the reassignment began; without one, all of them.
    pub fn original(&self) -> Vec<i32> {
        without(&self.replicas, &self.adding)
    }

    /// How many replicas must be in sync where `configured` are asked for: never more than there are.
    pub fn min_isr(&self, configured: i32) -> usize {
        let configured = usize::try_from(configured).unwrap_or(0);
        configured.max(1).min(self.replicas.len())
    }

    /// What must be recorded to come from here to `next`; nothing if they are the same.
    pub fn change_to(&self, next: &Self) -> Option<LeadershipChange> {
        fn changed<T: Clone + PartialEq>(before: &T, after: &T) -> Option<T> {
            (before != after).then(|| after.clone())
        }
        let epoch = next.leader_epoch != self.leader_epoch;
        let change = LeadershipChange {
            leader: (epoch || next.leader != self.leader).then_some(next.leader),
            replicas: changed(&self.replicas, &next.replicas),
            isr: changed(&self.isr, &next.isr),
            adding: changed(&self.adding, &next.adding),
            removing: changed(&self.removing, &next.removing),
            elr: changed(&self.elr, &next.elr),
            last_known_elr: changed(&self.last_known_elr, &next.last_known_elr),
            recovering: changed(&self.recovering, &next.recovering),
        };
        (change != LeadershipChange::default()).then_some(change)
    }

    /// The leadership after a recorded change.
    #[must_use]
    pub fn after(&self, change: LeadershipChange) -> Self {
        let now = self.clone();
        Self {
            leader: change.leader.unwrap_or(now.leader),
            leader_epoch: now.leader_epoch + i32::from(change.leader.is_some()),
            partition_epoch: now.partition_epoch + 1,
            replicas: change.replicas.unwrap_or(now.replicas),
            isr: change.isr.unwrap_or(now.isr),
            adding: change.adding.unwrap_or(now.adding),
            removing: change.removing.unwrap_or(now.removing),
            elr: change.elr.unwrap_or(now.elr),
            last_known_elr: change.last_known_elr.unwrap_or(now.last_known_elr),
            recovering: change.recovering.unwrap_or(now.recovering),
        }
    }
}

/// A change of a [`Leadership`]: what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeadershipChange {
    /// The leader, also the same one in a new epoch.
    pub leader: Option<i32>,
    /// All replicas.
    pub replicas: Option<Vec<i32>>,
    /// The replicas in sync.
    pub isr: Option<Vec<i32>>,
    /// Replicas that a reassignment adds.
    pub adding: Option<Vec<i32>>,
    /// Replicas that a reassignment removes.
    pub removing: Option<Vec<i32>>,
    /// Eligible leader replicas.
    pub elr: Option<Vec<i32>>,
    /// Last known eligible leader replicas.
    pub last_known_elr: Option<Vec<i32>>,
    /// Whether the leader has yet to recover.
    pub recovering: Option<bool>,
}

/// `from` without what is in `gone`, in its order.
pub(super) fn without(from: &[i32], gone: &[i32]) -> Vec<i32> {
    let left = from.iter().copied();
    left.filter(|id| !gone.contains(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leads_from_one_leadership_to_the_other() {
        let from = Leadership::new(vec![0, 1, 2], vec![0, 1]);
        let to = Leadership {
            leader: 1,
            leader_epoch: 1,
            partition_epoch: 1,
            isr: vec![1],
            elr: vec![0],
            adding: vec![2],
            recovering: true,
            ..from.clone()
        };
        let change = from.change_to(&to);
        assert_eq!(change.map(|change| from.after(change)), Some(to));
    }

    #[test]
    fn the_same_leader_in_a_new_epoch_is_a_change() {
        let from = Leadership::new(vec![0], vec![0]);
        let to = Leadership {
            leader_epoch: 1,
            ..from.clone()
        };
        assert_eq!(from.change_to(&from.clone()), None);
        let change = from.change_to(&to);
        assert_eq!(change.and_then(|change| change.leader), Some(0));
    }
}
