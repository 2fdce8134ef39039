//! The assignors `uniform` and `range`: valid, even, sticky, and cheap.

use std::collections::{BTreeMap, BTreeSet};

use ottla_coordinator::group::consumer::assignor::{Assignor, AssignorMember};
use ottla_coordinator::types::{TopicPartitions, Uuid};
use proptest::prelude::*;

/// Topic numbers and partitions.
type Had = Vec<(usize, i32)>;

/// Members by id: subscribed topics and what they had.
#[derive(Clone, Debug)]
struct Case {
    counts: Vec<i32>,
    members: Vec<(Vec<usize>, Had)>,
}

fn topic(index: usize) -> Uuid {
    let mut id = [0; 16];
    id[15] = u8::try_from(index + 1).unwrap();
    Uuid(id)
}

fn topics(partitions: &[(usize, i32)]) -> Vec<TopicPartitions> {
    let mut all: BTreeMap<Uuid, BTreeSet<i32>> = BTreeMap::new();
    for &(index, partition) in partitions {
        all.entry(topic(index)).or_default().insert(partition);
    }
    all.into_iter()
        .map(|(topic_id, partitions)| TopicPartitions {
            topic_id,
            partitions: partitions.into_iter().collect(),
        })
        .collect()
}

fn flat(assigned: &[TopicPartitions]) -> Vec<(usize, i32)> {
    let of_topic = |topic: &TopicPartitions| {
        let index = usize::from(topic.topic_id.0[15]) - 1;
        topic
            .partitions
            .iter()
            .map(move |&p| (index, p))
            .collect::<Vec<_>>()
    };
    assigned.iter().flat_map(of_topic).collect()
}

fn assign(assignor: Assignor, case: &Case) -> Vec<Vec<(usize, i32)>> {
    let ids: Vec<String> = (0..case.members.len())
        .map(|i| format!("m{i:03}"))
        .collect();
    let subscribed: Vec<Vec<Uuid>> = case
        .members
        .iter()
        .map(|(topics, _)| topics.iter().copied().map(topic).collect())
        .collect();
    let previous: Vec<Vec<TopicPartitions>> =
        case.members.iter().map(|(_, had)| topics(had)).collect();
    let members: Vec<AssignorMember<'_>> = (0..ids.len())
        .map(|i| AssignorMember {
            member_id: &ids[i],
            instance_id: None,
            topics: &subscribed[i],
            previous: &previous[i],
        })
        .collect();
    let count = |id: &Uuid| {
        case.counts
            .get(usize::from(id.0[15]) - 1)
            .copied()
            .unwrap_or(0)
    };
    let assigned = assignor.assign(&members, &count);
    assigned.iter().map(|topics| flat(topics)).collect()
}

/// What a member subscribes to and what it had.
type Wants<'a> = (&'a [usize], &'a [(usize, i32)]);

fn case(counts: &[i32], members: &[Wants<'_>]) -> Case {
    Case {
        counts: counts.to_vec(),
        members: members
            .iter()
            .map(|(t, p)| (t.to_vec(), p.to_vec()))
            .collect(),
    }
}

fn loads(assigned: &[Vec<(usize, i32)>]) -> Vec<usize> {
    assigned.iter().map(Vec::len).collect()
}

#[test]
fn uniform_gives_runs_and_the_rest_to_the_last_members() {
    let seven = case(&[7], &[(&[0], &[]), (&[0], &[]), (&[0], &[])]);
    let expected: [&[(usize, i32)]; 3] = [
        &[(0, 0), (0, 1)],
        &[(0, 2), (0, 3)],
        &[(0, 4), (0, 5), (0, 6)],
    ];
    assert_eq!(assign(Assignor::Uniform, &seven), expected);
}

#[test]
fn uniform_leaves_the_extra_partition_with_who_had_it() {
    let had: Vec<_> = (0..7).map(|p| (0, p)).collect();
    let case = case(&[7], &[(&[0], &had), (&[0], &[]), (&[0], &[])]);
    let expected: [&[(usize, i32)]; 3] = [
        &[(0, 0), (0, 1), (0, 2)],
        &[(0, 3), (0, 4)],
        &[(0, 5), (0, 6)],
    ];
    assert_eq!(assign(Assignor::Uniform, &case), expected);
}

#[test]
fn uniform_moves_along_chains_when_subscriptions_differ() {
    // The third member can only be given topic 1, of which the second has all.
    let second: Vec<_> = (0..6).map(|p| (1, p)).collect();
    let first: Vec<_> = (0..6).map(|p| (0, p)).collect();
    let case = case(&[6, 6], &[(&[0], &first), (&[0, 1], &second), (&[1], &[])]);
    assert_eq!(loads(&assign(Assignor::Uniform, &case)), [4, 4, 4]);
}

#[test]
fn range_gives_neighbours_and_the_rest_to_the_first_members() {
    let case = case(&[3, 4], &[(&[0, 1], &[]), (&[0, 1], &[])]);
    let expected: [&[(usize, i32)]; 2] =
        [&[(0, 0), (0, 1), (1, 0), (1, 1)], &[(0, 2), (1, 2), (1, 3)]];
    assert_eq!(assign(Assignor::Range, &case), expected);
}

#[test]
fn range_puts_static_members_first_by_their_instance_ids() {
    let topics = [topic(0)];
    let member = |member_id, instance_id| AssignorMember {
        member_id,
        instance_id,
        topics: &topics,
        previous: &[],
    };
    let members = [
        member("A", Some("i2")),
        member("B", Some("i1")),
        member("C", None),
    ];
    let assigned = Assignor::Range.assign(&members, &|_| 4);
    let partitions: Vec<_> = assigned.iter().map(|t| t[0].partitions.clone()).collect();
    assert_eq!(partitions, [vec![2], vec![0, 1], vec![3]]);
}

#[test]
fn a_hundred_members_and_a_thousand_partitions_are_cheap() {
    for assignor in [Assignor::Uniform, Assignor::Range] {
        for is_mixed in [false, true] {
            let members = (0..100)
                .map(|m| {
                    (
                        (0..10).filter(|t| !is_mixed || (t + m) % 3 != 0).collect(),
                        vec![],
                    )
                })
                .collect();
            let mut case = Case {
                counts: vec![100; 10],
                members,
            };
            for _ in 0..20 {
                let assigned = assign(assignor, &case);
                assert_eq!(loads(&assigned).iter().sum::<usize>(), 1000);
                for (member, had) in case.members.iter_mut().zip(assigned) {
                    member.1 = had;
                }
                case.members.rotate_left(1);
            }
        }
    }
}

fn is_valid(case: &Case, assigned: &[Vec<(usize, i32)>]) {
    let mut given = BTreeSet::new();
    for ((subscribed, _), mine) in case.members.iter().zip(assigned) {
        for &(index, partition) in mine {
            assert!(subscribed.contains(&index), "not subscribed");
            assert!(partition < case.counts[index], "does not exist");
            assert!(given.insert((index, partition)), "given twice");
        }
    }
    let is_wanted = |index: usize| {
        case.members
            .iter()
            .any(|(topics, _)| topics.contains(&index))
    };
    let wanted = case
        .counts
        .iter()
        .enumerate()
        .filter(|(i, _)| is_wanted(*i));
    let wanted: i32 = wanted.map(|(_, count)| count).sum();
    assert_eq!(
        given.len(),
        usize::try_from(wanted).unwrap(),
        "all are given"
    );
}

/// The evenest loads, sorted, that any assignment has.
fn evenest(case: &Case) -> Vec<usize> {
    fn go(
        case: &Case,
        rest: &[(usize, i32)],
        loads: &mut Vec<usize>,
        best: &mut Option<Vec<usize>>,
    ) {
        let Some((&(index, _), rest)) = rest.split_first() else {
            let mut sorted = loads.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            if best.as_ref().is_none_or(|best| sorted < *best) {
                *best = Some(sorted);
            }
            return;
        };
        for member in 0..loads.len() {
            if case.members[member].0.contains(&index) {
                loads[member] += 1;
                go(case, rest, loads, best);
                loads[member] -= 1;
            }
        }
    }
    let is_wanted = |index: usize| {
        case.members
            .iter()
            .any(|(topics, _)| topics.contains(&index))
    };
    let all: Vec<_> = (0..case.counts.len())
        .filter(|&index| is_wanted(index))
        .flat_map(|index| (0..case.counts[index]).map(move |p| (index, p)))
        .collect();
    let mut best = None;
    go(case, &all, &mut vec![0; case.members.len()], &mut best);
    best.unwrap_or_default()
}

fn small_case() -> impl Strategy<Value = Case> {
    let counts = prop::collection::vec(0..=3_i32, 1..=3);
    counts.prop_flat_map(|counts| {
        let topics = counts.len();
        let subscribed = prop::sample::subsequence((0..topics).collect::<Vec<_>>(), 0..=topics);
        let had = prop::collection::vec((0..topics, 0..5_i32), 0..5);
        let members = prop::collection::vec((subscribed, had), 1..=4);
        members.prop_map(move |members| Case {
            counts: counts.clone(),
            members,
        })
    })
}

proptest! {
    #[test]
    fn every_partition_has_one_subscriber(case in small_case()) {
        is_valid(&case, &assign(Assignor::Uniform, &case));
        is_valid(&case, &assign(Assignor::Range, &case));
    }

    #[test]
    fn uniform_is_as_even_as_any_assignment(case in small_case()) {
        let mut mine = loads(&assign(Assignor::Uniform, &case));
        mine.sort_unstable_by(|a, b| b.cmp(a));
        prop_assert_eq!(mine, evenest(&case));
    }

    #[test]
    fn uniform_leaves_an_even_assignment_alone(case in small_case()) {
        let first = assign(Assignor::Uniform, &case);
        let mut again = case;
        for (member, had) in again.members.iter_mut().zip(&first) {
            member.1.clone_from(had);
        }
        prop_assert_eq!(assign(Assignor::Uniform, &again), first);
    }

    #[test]
    fn uniform_takes_from_equal_members_only_what_is_over_their_share(
        partitions in 0..40_i32, members in 1..8_usize, joins in 0..3_usize,
    ) {
        let mut case = Case {
            counts: vec![partitions],
            members: vec![(vec![0], vec![]); members],
        };
        let first = assign(Assignor::Uniform, &case);
        for (member, had) in case.members.iter_mut().zip(&first) {
            member.1.clone_from(had);
        }
        case.members.extend(vec![(vec![0], vec![]); joins]);
        let then = assign(Assignor::Uniform, &case);
        let total = usize::try_from(partitions).unwrap();
        let (least, extras) = (total / case.members.len(), total % case.members.len());
        let mut may_keep: usize = first.iter().map(|had| had.len().min(least)).sum();
        may_keep += first.iter().filter(|had| had.len() > least).count().min(extras);
        let kept: usize = first
            .iter()
            .zip(&then)
            .map(|(had, has)| had.iter().filter(|p| has.contains(p)).count())
            .sum();
        prop_assert_eq!(kept, may_keep);
    }
}

#[test]
fn partitions_that_cannot_be_take_no_place() {
    for second in [vec![0], vec![0, 1]] {
        let members = vec![
            (vec![0], vec![(0, -1), (0, i32::MIN), (0, i32::MAX), (0, 2)]),
            (second, vec![(0, -5), (0, 3)]),
        ];
        let case = Case {
            counts: vec![4, 2],
            members,
        };
        for assignor in [Assignor::Uniform, Assignor::Range] {
            let assigned = assign(assignor, &case);
            let mut all: Vec<_> = assigned.concat();
            all.sort_unstable();
            let mut there: Vec<_> = (0..4).map(|index| (0, index)).collect();
            if case.members[1].0.len() > 1 {
                there.extend([(1, 0), (1, 1)]);
            }
            assert_eq!(all, there, "{assignor:?}");
        }
    }
}
