//! The simple assignor's properties.

use std::collections::{BTreeMap, BTreeSet};

use ottla_coordinator::group::assignor::{AssignorMember, assign};
use ottla_coordinator::types::{TopicPartitions, Uuid};
use proptest::prelude::*;

use crate::support::id;

type Assignment = Vec<Vec<TopicPartitions>>;

#[derive(Clone, Debug)]
struct Case {
    members: Vec<String>,
    topics: Vec<Vec<Uuid>>,
    partitions: BTreeMap<Uuid, Vec<i32>>,
}

impl Case {
    fn one_topic(members: usize, partitions: i32) -> Self {
        Self {
            members: (0..members).map(|n| format!("m{n:03}")).collect(),
            topics: vec![vec![id(1)]; members],
            partitions: [(id(1), (0..partitions).collect())].into(),
        }
    }

    fn assign(&self, previous: &Assignment) -> Assignment {
        let members: Vec<AssignorMember<'_>> = self
            .members
            .iter()
            .enumerate()
            .map(|(index, member_id)| AssignorMember {
                member_id,
                topics: &self.topics[index],
                previous: previous.get(index).map_or(&[], Vec::as_slice),
            })
            .collect();
        assign(&members, &self.partitions)
    }
}

fn counts(assignment: &Assignment) -> Vec<usize> {
    let count = |topics: &Vec<TopicPartitions>| topics.iter().map(|t| t.partitions.len()).sum();
    assignment.iter().map(count).collect()
}

fn holders(assignment: &Assignment) -> BTreeMap<(Uuid, i32), usize> {
    let mut holders = BTreeMap::new();
    for topic in assignment.iter().flatten() {
        for &partition in &topic.partitions {
            *holders.entry((topic.topic_id, partition)).or_default() += 1;
        }
    }
    holders
}

fn kept(old: &[TopicPartitions], new: &[TopicPartitions]) -> usize {
    let set = |topics: &[TopicPartitions]| -> BTreeSet<(Uuid, i32)> {
        let partitions = |t: &TopicPartitions| -> Vec<_> {
            t.partitions.iter().map(|&p| (t.topic_id, p)).collect()
        };
        topics.iter().flat_map(partitions).collect()
    };
    set(old).intersection(&set(new)).count()
}

#[test]
fn counts_are_those_of_kafkas_table() {
    let sorted = |members, partitions| {
        let mut counts = counts(&Case::one_topic(members, partitions).assign(&vec![]));
        counts.sort_unstable();
        counts
    };
    assert_eq!(sorted(1, 6), [6]);
    assert_eq!(sorted(2, 1), [1, 1]);
    assert_eq!(sorted(3, 1), [1, 1, 1]);
    assert_eq!(sorted(2, 3), [1, 2]);
    assert_eq!(sorted(3, 2), [1, 1, 2]);
    assert_eq!(sorted(3, 4), [1, 1, 2]);
    assert_eq!(sorted(3, 5), [1, 2, 2]);
    assert_eq!(sorted(3, 6), [2, 2, 2]);
    assert_eq!(sorted(4, 2), [1, 1, 1, 1]);
    assert_eq!(sorted(7, 2), [1, 1, 1, 1, 1, 1, 2]);
}

#[test]
fn nothing_to_assign_is_an_empty_assignment() {
    assert_eq!(
        assign(&[], &BTreeMap::new()),
        Vec::<Vec<TopicPartitions>>::new()
    );
    let mut case = Case::one_topic(2, 3);
    case.partitions.clear();
    assert_eq!(case.assign(&vec![]), vec![vec![], vec![]]);
}

/// Members with their topics, and partition counts; topic numbers from 1.
fn case() -> impl Strategy<Value = Case> {
    let counts = prop::collection::vec(0..12_i32, 1..5);
    (counts, 0..20_usize, any::<bool>(), any::<u64>()).prop_map(|(counts, members, same, seed)| {
        let ids: Vec<Uuid> = (1..).take(counts.len()).map(id).collect();
        let mut bits = seed;
        let subscription = |bits: u64| -> Vec<Uuid> {
            let picked = ids
                .iter()
                .enumerate()
                .filter(|(n, _)| same || bits >> n & 1 == 1);
            picked.map(|(_, &topic)| topic).collect()
        };
        let topics = (0..members).map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            subscription(bits >> 40)
        });
        Case {
            topics: topics.collect(),
            members: (0..members).map(|n| format!("m{n:03}")).collect(),
            partitions: ids
                .iter()
                .zip(counts)
                .map(|(&t, n)| (t, (0..n).collect()))
                .collect(),
        }
    })
}

/// What must hold for each set of topics with the same subscribers.
fn check(case: &Case, assignment: &Assignment) -> Result<(), TestCaseError> {
    prop_assert_eq!(assignment.len(), case.members.len());
    let holders = holders(assignment);
    let mut pools: BTreeMap<Vec<usize>, Vec<Uuid>> = BTreeMap::new();
    for &topic in case.partitions.keys() {
        let subscribers = (0..case.members.len())
            .filter(|&m| case.topics[m].contains(&topic))
            .collect();
        pools.entry(subscribers).or_default().push(topic);
    }
    for (members, topics) in pools {
        let all: Vec<(Uuid, i32)> = topics
            .iter()
            .flat_map(|t| case.partitions[t].iter().map(|&p| (*t, p)))
            .collect();
        if members.is_empty() {
            prop_assert!(all.iter().all(|partition| !holders.contains_key(partition)));
            continue;
        }
        let each = members.len().div_ceil(all.len().max(1));
        prop_assert!(
            all.iter()
                .all(|partition| holders.get(partition) == Some(&each))
        );
        let of_pool = |m: &usize| -> usize {
            let mine = assignment[*m]
                .iter()
                .filter(|t| topics.contains(&t.topic_id));
            mine.map(|t| t.partitions.len()).sum()
        };
        let least = members.iter().map(of_pool).min().unwrap_or(0);
        let most = members.iter().map(of_pool).max().unwrap_or(0);
        prop_assert!(most - least <= 1 && (all.is_empty() || least >= 1));
    }
    for (topics, assigned) in case.topics.iter().zip(assignment) {
        prop_assert!(assigned.iter().all(|t| topics.contains(&t.topic_id)));
        let mut sorted = assigned.clone();
        sorted.sort_unstable();
        for topic in &mut sorted {
            topic.partitions.sort_unstable();
            topic.partitions.dedup();
        }
        prop_assert_eq!(&sorted, assigned);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_partition_is_served_every_member_serves_and_loads_are_even(case in case()) {
        let assignment = case.assign(&vec![]);
        check(&case, &assignment)?;
        prop_assert_eq!(&case.assign(&vec![]), &assignment);
    }

    #[test]
    fn an_assignment_is_kept_while_nothing_changes(case in case()) {
        let first = case.assign(&vec![]);
        prop_assert_eq!(case.assign(&first), first);
    }

    #[test]
    fn any_previous_assignment_gives_a_sound_one(case in case(), other in case()) {
        let previous = other.assign(&vec![]);
        let next = case.assign(&previous);
        check(&case, &next)?;
        prop_assert_eq!(case.assign(&next), next);
    }

    #[test]
    fn a_member_gives_up_no_more_than_it_must(
        members in 1..12_usize,
        partitions in 1..40_i32,
        grown in 1..40_i32,
    ) {
        // Members and partitions come: everyone keeps as much as its new count allows.
        let before = Case::one_topic(members, partitions).assign(&vec![]);
        let case = Case::one_topic(members + 1, partitions.max(grown));
        let after = case.assign(&before);
        check(&case, &after)?;
        if partitions as usize > members {
            for (old, new) in before.iter().zip(&after) {
                let (had, has) = (counts(&vec![old.clone()])[0], counts(&vec![new.clone()])[0]);
                prop_assert_eq!(kept(old, new), had.min(has));
            }
        }
    }
}
