//! The `uniform` assignor: as even as the subscriptions allow, and as little moved as that allows.
//!
//! When all members subscribe to the same topics, each has P / M partitions or one more; who had
//! more than its share keeps the extra one, and what is left goes to the last members, in runs.
//!
//! When they do not, the start is what every member had and may still have; open partitions go to
//! the subscriber with the least; then partitions move along chains of members from one who has at
//! least two more than another, until no such chain is left. That is the evenest assignment that
//! the subscriptions allow (a semi-matching without cost-reducing paths is optimal), and a shortest
//! chain moves the fewest partitions. A search costs the subscriptions, once a move.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::assignor::AssignorMember;
use crate::group::partitions::by_topic;
use crate::types::{TopicPartition, TopicPartitions, Uuid};

pub(super) fn assign(
    members: &[AssignorMember<'_>],
    count: &dyn Fn(&Uuid) -> i32,
) -> Vec<Vec<TopicPartitions>> {
    let Some(first) = members.first() else {
        return Vec::new();
    };
    let assigned = if members.iter().all(|member| member.topics == first.topics) {
        homogeneous(members, first.topics, count)
    } else {
        let mut board = Board::new(members, count);
        board.hand_out();
        board.even_out();
        board.assigned()
    };
    assigned.into_iter().map(by_topic).collect()
}

/// What each member had and may keep: of a topic that it subscribes to, a partition that exists,
/// and that no member before it claimed.
fn kept(members: &[AssignorMember<'_>], count: &dyn Fn(&Uuid) -> i32) -> Vec<Vec<TopicPartition>> {
    let mut taken = BTreeSet::new();
    let mut all = Vec::with_capacity(members.len());
    for member in members {
        let mut kept = Vec::new();
        for topic in member.previous {
            let topic_id = topic.topic_id;
            if member.topics.binary_search(&topic_id).is_err() {
                continue;
            }
            // What classic members had before an upgrade is their leader's word, and may be anything.
            let exist = 0..count(&topic_id);
            for &partition in topic
                .partitions
                .iter()
                .filter(|&index| exist.contains(index))
            {
                let partition = TopicPartition {
                    topic_id,
                    partition,
                };
                if taken.insert(partition) {
                    kept.push(partition);
                }
            }
        }
        kept.sort_unstable();
        all.push(kept);
    }
    all
}

fn homogeneous(
    members: &[AssignorMember<'_>],
    topics: &[Uuid],
    count: &dyn Fn(&Uuid) -> i32,
) -> Vec<Vec<TopicPartition>> {
    let total: usize = topics
        .iter()
        .map(|topic_id| usize::try_from(count(topic_id)).unwrap_or(0))
        .sum();
    let (least, mut extras) = (total / members.len(), total % members.len());
    let mut assigned = kept(members, count);
    let mut quotas = vec![least; members.len()];
    for (quota, kept) in quotas.iter_mut().zip(&assigned) {
        if extras > 0 && kept.len() > least {
            *quota += 1;
            extras -= 1;
        }
    }
    for quota in quotas.iter_mut().rev().filter(|quota| **quota == least) {
        if extras == 0 {
            break;
        }
        *quota += 1;
        extras -= 1;
    }
    let mut held = BTreeSet::new();
    for (mine, &quota) in assigned.iter_mut().zip(&quotas) {
        mine.truncate(quota);
        held.extend(mine.iter().copied());
    }
    let mut open = topics
        .iter()
        .flat_map(|topic_id| partitions(*topic_id, count))
        .filter(|partition| !held.contains(partition));
    for (mine, &quota) in assigned.iter_mut().zip(&quotas) {
        let lacking = quota - mine.len();
        mine.extend(open.by_ref().take(lacking));
    }
    assigned
}

fn partitions(
    topic_id: Uuid,
    count: &dyn Fn(&Uuid) -> i32,
) -> impl Iterator<Item = TopicPartition> + use<> {
    (0..count(&topic_id)).map(move |partition| TopicPartition {
        topic_id,
        partition,
    })
}

/// One member's partitions of one topic: what it keeps, and what it was given just now, which is
/// given away first.
#[derive(Default)]
struct Held {
    kept: Vec<i32>,
    given: Vec<i32>,
}

impl Held {
    fn give_away(&mut self) -> Option<i32> {
        self.given.pop().or_else(|| self.kept.pop())
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.given.is_empty()
    }
}

struct Board<'a> {
    members: &'a [AssignorMember<'a>],
    topics: Vec<Uuid>,
    /// By topic: indexes of members.
    subscribers: Vec<Vec<usize>>,
    /// By member: indexes of topics and what it holds of each.
    held: Vec<BTreeMap<usize, Held>>,
    /// By member: how many partitions it holds.
    loads: Vec<usize>,
    /// Partitions without a member, by topic.
    open: Vec<Vec<i32>>,
}

impl<'a> Board<'a> {
    fn new(members: &'a [AssignorMember<'a>], count: &dyn Fn(&Uuid) -> i32) -> Self {
        let mut subscribers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            for &topic_id in member.topics {
                subscribers.entry(topic_id).or_default().push(index);
            }
        }
        let (topics, subscribers): (Vec<Uuid>, Vec<Vec<usize>>) = subscribers.into_iter().unzip();
        let mut held: Vec<BTreeMap<usize, Held>> = Vec::with_capacity(members.len());
        let mut loads = Vec::with_capacity(members.len());
        let mut is_open: Vec<Vec<bool>> = topics
            .iter()
            .map(|topic_id| vec![true; usize::try_from(count(topic_id)).unwrap_or(0)])
            .collect();
        for kept in kept(members, count) {
            let mut mine: BTreeMap<usize, Held> = BTreeMap::new();
            loads.push(kept.len());
            for partition in kept {
                let (Ok(topic), Ok(index)) = (
                    topics.binary_search(&partition.topic_id),
                    usize::try_from(partition.partition),
                ) else {
                    continue;
                };
                is_open[topic][index] = false;
                let held = mine.entry(topic).or_default();
                held.kept.push(partition.partition);
            }
            held.push(mine);
        }
        let open = is_open
            .iter()
            .map(|topic| {
                let indexes = (0..).zip(topic);
                indexes.filter(|(_, open)| **open).map(|(i, _)| i).collect()
            })
            .collect();
        Self {
            members,
            topics,
            subscribers,
            held,
            loads,
            open,
        }
    }

    /// Gives each open partition to its topic's subscriber with the least; topics with the fewest
    /// subscribers first, because they have the least choice.
    fn hand_out(&mut self) {
        let mut order: Vec<usize> = (0..self.topics.len()).collect();
        order.sort_by_key(|&topic| self.subscribers[topic].len());
        for topic in order {
            let open = std::mem::take(&mut self.open[topic]);
            if open.is_empty() {
                continue;
            }
            let mut least: BTreeSet<(usize, usize)> = self.subscribers[topic]
                .iter()
                .map(|&member| (self.loads[member], member))
                .collect();
            for partition in open {
                let Some((load, member)) = least.pop_first() else {
                    break;
                };
                self.held[member]
                    .entry(topic)
                    .or_default()
                    .given
                    .push(partition);
                self.loads[member] = load + 1;
                least.insert((load + 1, member));
            }
        }
    }

    /// Moves partitions until no chain leads from a member to one with at least two fewer.
    fn even_out(&mut self) {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        loop {
            let mut is_settled = true;
            order.sort_by_key(|&member| Reverse(self.loads[member]));
            for &member in &order {
                while let Some(chain) = self.chain_from(member) {
                    self.move_along(member, &chain);
                    is_settled = false;
                }
            }
            if is_settled {
                return;
            }
        }
    }

    /// The shortest chain to the nearest member with at least two fewer: each step a topic of which
    /// the last member holds a partition, and the member that takes it.
    fn chain_from(&self, start: usize) -> Option<Vec<(usize, usize)>> {
        if self.loads[start] < 2 {
            return None;
        }
        let wanted = self.loads[start] - 2;
        let mut came: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let mut seen_topics = vec![false; self.topics.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(member) = queue.pop_front() {
            for (&topic, held) in &self.held[member] {
                if held.is_empty() || std::mem::replace(&mut seen_topics[topic], true) {
                    continue;
                }
                let mut found = None;
                for &taker in &self.subscribers[topic] {
                    if taker == start || came.contains_key(&taker) {
                        continue;
                    }
                    came.insert(taker, (member, topic));
                    queue.push_back(taker);
                    let load = self.loads[taker];
                    if load <= wanted && found.is_none_or(|(least, _)| load < least) {
                        found = Some((load, taker));
                    }
                }
                if let Some((_, end)) = found {
                    return Some(trace(&came, start, end));
                }
            }
        }
        None
    }

    fn move_along(&mut self, start: usize, chain: &[(usize, usize)]) {
        let mut giver = start;
        for &(topic, taker) in chain {
            let partition = self.held[giver].get_mut(&topic).and_then(Held::give_away);
            let Some(partition) = partition else { return };
            self.loads[giver] -= 1;
            let held = self.held[taker].entry(topic).or_default();
            held.given.push(partition);
            self.loads[taker] += 1;
            giver = taker;
        }
    }

    fn assigned(self) -> Vec<Vec<TopicPartition>> {
        let topics = &self.topics;
        let of_member = |held: BTreeMap<usize, Held>| {
            let of_topic = |(topic, held): (usize, Held)| {
                let topic_id = topics[topic];
                let all = held.kept.into_iter().chain(held.given);
                all.map(move |partition| TopicPartition {
                    topic_id,
                    partition,
                })
            };
            held.into_iter().flat_map(of_topic).collect()
        };
        self.held.into_iter().map(of_member).collect()
    }
}

fn trace(came: &BTreeMap<usize, (usize, usize)>, start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut chain = Vec::new();
    let mut at = end;
    while at != start {
        let Some(&(giver, topic)) = came.get(&at) else {
            break;
        };
        chain.push((topic, at));
        at = giver;
    }
    chain.reverse();
    chain
}
