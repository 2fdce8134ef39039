//! The "simple" share assignor (KIP-932): which member fetches which partitions.
//!
//! Every partition has a member and every member a partition, as long as the member's topics have
//! any. Topics with the same subscribers form a pool. A pool of P partitions and M members gives
//! each partition ceil(M / P) members, and each member as many partitions as any other, or one
//! more. Whatever fits in that is kept from the previous assignment. The same input gives the same
//! output.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::partitions::by_topic;
use crate::types::{TopicPartition, TopicPartitions, Uuid};

/// One member, as the assignor sees it.
#[derive(Clone, Copy, Debug)]
pub struct AssignorMember<'a> {
    /// The member's id.
    pub member_id: &'a str,
    /// The topics that it subscribes to, ascending, each once. Unknown ones are left out.
    pub topics: &'a [Uuid],
    /// What it had before; may name partitions that are gone.
    pub previous: &'a [TopicPartitions],
}

/// Assigns the `partitions` of each topic to the `members`, which come in ascending order of their
/// ids. The result has one entry a member, in the same order; topics ascending, none empty.
pub fn assign(
    members: &[AssignorMember<'_>],
    partitions: &BTreeMap<Uuid, Vec<i32>>,
) -> Vec<Vec<TopicPartitions>> {
    let mut assigned = vec![Vec::new(); members.len()];
    for (subscribers, topics) in pools(members) {
        let mut pool = Pool::new(&topics, partitions, &subscribers);
        if pool.partitions.is_empty() {
            continue;
        }
        pool.keep_previous(members, &assigned);
        pool.fill();
        for (slot, &member) in pool.held.iter().zip(&subscribers) {
            assigned[member].extend(slot.iter().map(|&index| pool.partitions[index]));
        }
    }
    assigned.into_iter().map(by_topic).collect()
}

/// Topics by their subscribers (indexes of members, ascending).
fn pools(members: &[AssignorMember<'_>]) -> BTreeMap<Vec<usize>, Vec<Uuid>> {
    let mut pools: BTreeMap<Vec<usize>, Vec<Uuid>> = BTreeMap::new();
    let Some(first) = members.first() else {
        return pools;
    };
    if members.iter().all(|member| member.topics == first.topics) {
        pools.insert((0..members.len()).collect(), first.topics.to_vec());
        return pools;
    }
    let mut subscribers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        for &topic in member.topics {
            subscribers.entry(topic).or_default().push(index);
        }
    }
    for (topic, subscribers) in subscribers {
        pools.entry(subscribers).or_default().push(topic);
    }
    pools
}

struct Pool<'a> {
    subscribers: &'a [usize],
    /// Ascending.
    partitions: Vec<TopicPartition>,
    /// How many members each partition still lacks.
    lacking: Vec<usize>,
    /// What each subscriber holds, as indexes of `partitions`.
    held: Vec<BTreeSet<usize>>,
    /// How many partitions each subscriber shall hold; together as many as were lacking at first.
    quota: Vec<usize>,
}

impl<'a> Pool<'a> {
    fn new(
        topics: &[Uuid],
        assignable: &BTreeMap<Uuid, Vec<i32>>,
        subscribers: &'a [usize],
    ) -> Self {
        let of_topic = |&topic_id: &Uuid| {
            let indexes = assignable.get(&topic_id).map_or(&[][..], Vec::as_slice);
            indexes.iter().map(move |&partition| TopicPartition {
                topic_id,
                partition,
            })
        };
        let mut partitions: Vec<_> = topics.iter().flat_map(of_topic).collect();
        partitions.sort_unstable();
        let members_each = subscribers.len().div_ceil(partitions.len().max(1));
        Self {
            subscribers,
            lacking: vec![members_each; partitions.len()],
            held: vec![BTreeSet::new(); subscribers.len()],
            quota: Vec::new(),
            partitions,
        }
    }

    /// Sets the quotas, the greater ones to those who can keep more (then to those who have less
    /// from other pools), and keeps what fits of the previous assignment.
    fn keep_previous(&mut self, members: &[AssignorMember<'_>], assigned: &[Vec<TopicPartition>]) {
        let slots: usize = self.lacking.iter().sum();
        let (least, greater) = (
            slots / self.subscribers.len(),
            slots % self.subscribers.len(),
        );
        let previous: Vec<Vec<usize>> = self
            .subscribers
            .iter()
            .map(|&m| self.known(members[m].previous))
            .collect();
        let mut order: Vec<usize> = (0..self.subscribers.len()).collect();
        order.sort_by_key(|&slot| {
            let keeps = previous[slot].len().min(least + 1);
            (Reverse(keeps), assigned[self.subscribers[slot]].len(), slot)
        });
        self.quota = vec![least; self.subscribers.len()];
        for &slot in order.iter().take(greater) {
            self.quota[slot] += 1;
        }
        for (slot, previous) in previous.iter().enumerate() {
            for &index in previous {
                if self.held[slot].len() < self.quota[slot] {
                    self.give(slot, index);
                }
            }
        }
    }

    fn known(&self, previous: &[TopicPartitions]) -> Vec<usize> {
        let mut known = Vec::new();
        for topic in previous {
            for &partition in &topic.partitions {
                let wanted = TopicPartition {
                    topic_id: topic.topic_id,
                    partition,
                };
                known.extend(self.partitions.binary_search(&wanted));
            }
        }
        known
    }

    fn give(&mut self, slot: usize, index: usize) {
        if self.lacking[index] > 0 && self.held[slot].insert(index) {
            self.lacking[index] -= 1;
        }
    }

    /// Hands out what is still lacking: to each member up to its quota, each time of the partition
    /// that lacks the most members. Quotas and lacks have the same sum, so that nobody is left out.
    fn fill(&mut self) {
        let lacks = self
            .lacking
            .iter()
            .enumerate()
            .filter(|(_, lacking)| **lacking > 0);
        let mut open: BTreeSet<(Reverse<usize>, usize)> = lacks
            .map(|(index, &lacking)| (Reverse(lacking), index))
            .collect();
        for slot in 0..self.held.len() {
            while self.held[slot].len() < self.quota[slot] {
                let free = open
                    .iter()
                    .find(|(_, index)| !self.held[slot].contains(index));
                let Some(&entry) = free else { break };
                open.remove(&entry);
                self.give(slot, entry.1);
                if self.lacking[entry.1] > 0 {
                    open.insert((Reverse(self.lacking[entry.1]), entry.1));
                }
            }
        }
        // What is left is lacking at partitions that those below their quota have already: another
        // member takes it over its quota. Only where members outnumber partitions.
        for (_, index) in open {
            while self.lacking[index] > 0 {
                let others = (0..self.held.len()).filter(|&slot| !self.held[slot].contains(&index));
                let Some(slot) = others.min_by_key(|&slot| (self.held[slot].len(), slot)) else {
                    break;
                };
                self.give(slot, index);
            }
        }
    }
}
