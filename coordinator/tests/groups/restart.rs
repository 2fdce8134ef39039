//! A coordinator that has read the log is the coordinator that wrote it.

use ottla_coordinator::group::plan::{AfterDelete, GroupEffect};
use proptest::prelude::*;

use crate::support::{Shard, id, ids, initialize, record_type};

const T: Option<&[&str]> = Some(&["t"]);

#[test]
fn members_survive_and_get_a_whole_session() {
    let mut shard = Shard::at_once(&[("t", 2)]);
    shard.beat("a", 0, T).unwrap();
    shard.beat("b", 0, T).unwrap();
    shard.groups = shard.replayed();
    shard.now += 1_000_000;
    let effects = shard
        .groups
        .on_loaded(shard.now, &shard.config, &shard.topics);
    assert!(effects.is_empty());
    assert_eq!(shard.groups.next_deadline(), Some(shard.now + 45_000));
    assert_eq!(shard.beat("b", 3, None), Ok((3, None)));
    assert_eq!(shard.beat("a", 2, None), Ok((3, Some(vec![(1, vec![0])]))));
}

#[test]
fn what_a_crash_cut_off_is_carried_out_after_the_replay() {
    let mut shard = Shard::at_once(&[("t", 1), ("u", 2)]);
    shard.hold_effects = true;
    shard.beat("m", 0, T).unwrap();
    shard.groups = shard.replayed();
    let effects = shard
        .groups
        .on_loaded(shard.now, &shard.config, &shard.topics);
    let expected = GroupEffect::InitializeState {
        group_id: "g".to_owned(),
        state_epoch: 2,
        partitions: vec![initialize(1, 0, -1)],
    };
    assert_eq!(effects, [expected]);
    shard.carry_out(&effects[0]);
    shard.beat("m", -1, None).unwrap();
    let plan = shard
        .groups
        .delete_share_offsets("g", &["t".to_owned()], &shard.topics)
        .unwrap();
    shard.commit(plan);
    shard.groups = shard.replayed();
    let effects = shard
        .groups
        .on_loaded(shard.now, &shard.config, &shard.topics);
    let [
        GroupEffect::DeleteState {
            partitions, then, ..
        },
    ] = effects.as_slice()
    else {
        panic!("one deletion");
    };
    assert_eq!(partitions, &[initialize(1, 0, -1).partition]);
    assert_eq!(then, &AfterDelete::ForgetTopics(vec![id(1)]));
}

#[test]
fn an_alteration_that_was_cut_off_does_not_reset_the_partition() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    shard.beat("m", -1, None).unwrap();
    shard.hold_effects = true;
    let topics = [("t".to_owned(), vec![(0, 5)])];
    let plan = shard
        .groups
        .alter_share_offsets("g", &topics, &shard.topics)
        .unwrap();
    shard.commit(plan);
    shard.groups = shard.replayed();
    assert!(
        shard
            .groups
            .on_loaded(shard.now, &shard.config, &shard.topics)
            .is_empty()
    );
}

#[test]
fn topics_that_went_while_the_broker_was_down_are_found() {
    let mut shard = Shard::at_once(&[("t", 1), ("u", 1)]);
    shard.beat("m", 0, Some(&["t", "u"])).unwrap();
    shard.topics.0.remove("u");
    shard.groups = shard.replayed();
    shard
        .groups
        .on_loaded(shard.now, &shard.config, &shard.topics);
    assert_eq!(shard.groups.orphaned_topics(&shard.topics), ids(&[2]));
}

/// One step of a random life: which member, what it does, how long until then.
#[derive(Clone, Debug)]
enum Step {
    Beat(usize, Option<Vec<usize>>),
    Join(usize, Vec<usize>),
    Leave(usize),
    Wait(i64),
    Grow(usize),
    Recreate(usize),
    Remove(usize),
    Alter(usize),
    DeleteOffsets(usize),
    DeleteGroup,
}

fn step() -> impl Strategy<Value = Step> {
    let topics = || prop::collection::vec(0..3_usize, 1..3);
    prop_oneof![
        8 => (0..5_usize, prop::option::of(topics())).prop_map(|(m, t)| Step::Beat(m, t)),
        6 => (0..5_usize, topics()).prop_map(|(m, t)| Step::Join(m, t)),
        2 => (0..5_usize).prop_map(Step::Leave),
        3 => (0..60_000_i64).prop_map(Step::Wait),
        1 => (0..3_usize).prop_map(Step::Grow),
        1 => (0..3_usize).prop_map(Step::Recreate),
        1 => (0..3_usize).prop_map(Step::Remove),
        1 => (0..3_usize).prop_map(Step::Alter),
        1 => (0..3_usize).prop_map(Step::DeleteOffsets),
        1 => Just(Step::DeleteGroup),
    ]
}

const NAMES: [&str; 3] = ["t", "u", "v"];
const MEMBERS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn live(steps: &[Step], interval: i32) -> Shard {
    let mut shard = Shard::new(&[("t", 1), ("u", 2), ("v", 5)]);
    shard.config.assignment_interval_ms = interval;
    let mut next_id = 10;
    for step in steps {
        take(&mut shard, step, &mut next_id);
    }
    shard
}

fn take(shard: &mut Shard, step: &Step, next_id: &mut u8) {
    let names = |topics: &[usize]| -> Vec<&str> { topics.iter().map(|&t| NAMES[t]).collect() };
    let epoch = |shard: &Shard, member: usize| {
        let described = shard.groups.share_describe("g", &shard.topics).ok();
        let members = described
            .map(|described| described.members)
            .unwrap_or_default();
        let found = members.iter().find(|m| m.member_id == MEMBERS[member]);
        found.map_or(1, |member| member.member_epoch)
    };
    match step {
        Step::Beat(member, topics) => {
            let topics = topics.as_deref().map(names);
            let epoch = epoch(shard, *member);
            let _ = shard.beat(MEMBERS[*member], epoch, topics.as_deref());
        }
        Step::Join(member, topics) => {
            let _ = shard.beat(MEMBERS[*member], 0, Some(&names(topics)));
        }
        Step::Leave(member) => {
            let _ = shard.beat(MEMBERS[*member], -1, None);
        }
        Step::Wait(ms) => shard.advance(*ms),
        Step::Grow(topic) => {
            if let Some((_, count)) = shard.topics.0.get_mut(NAMES[*topic]) {
                *count += 1;
            }
        }
        Step::Recreate(topic) => {
            *next_id = next_id.wrapping_add(1);
            let old = shard
                .topics
                .0
                .insert(NAMES[*topic].to_owned(), (id(*next_id), 3));
            forget(shard, old);
        }
        Step::Remove(topic) => {
            let old = shard.topics.0.remove(NAMES[*topic]);
            forget(shard, old);
        }
        Step::Alter(topic) => {
            let topics = [(NAMES[*topic].to_owned(), vec![(0, 3)])];
            if let Ok(plan) = shard
                .groups
                .alter_share_offsets("g", &topics, &shard.topics)
            {
                shard.commit(plan);
            }
        }
        Step::DeleteOffsets(topic) => {
            let topics = [NAMES[*topic].to_owned()];
            if let Ok(plan) = shard
                .groups
                .delete_share_offsets("g", &topics, &shard.topics)
            {
                shard.commit(plan);
            }
        }
        Step::DeleteGroup => {
            if let Ok(plan) = shard.groups.delete_group("g") {
                shard.commit(plan);
            }
        }
    }
}

fn forget(shard: &mut Shard, old: Option<(ottla_coordinator::types::Uuid, i32)>) {
    if let Some((topic_id, _)) = old {
        let plan = shard.groups.topics_deleted(&[topic_id].into());
        shard.commit(plan);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replay_gives_the_same_coordinator(
        steps in prop::collection::vec(step(), 0..60),
        interval in prop::sample::select(vec![0, 1_000]),
    ) {
        let mut shard = live(&steps, interval);
        let mut replayed = shard.replayed();
        // Compaction keeps the last record of each key, in the order of the log.
        let mut compacted = ottla_coordinator::group::GroupCoordinator::new();
        let records: Vec<_> = shard.log.iter().flatten().collect();
        let mut last = std::collections::BTreeMap::new();
        for (position, record) in records.iter().enumerate() {
            last.insert((record_type(record), format!("{:?}", key(record))), position);
        }
        let mut kept: Vec<usize> = last.into_values().collect();
        kept.sort_unstable();
        for position in kept {
            compacted.apply(records[position]);
        }
        for groups in [&mut shard.groups, &mut replayed, &mut compacted] {
            groups.on_loaded(shard.now, &shard.config, &shard.topics);
        }
        prop_assert_eq!(format!("{:?}", shard.groups), format!("{replayed:?}"));
        prop_assert_eq!(format!("{:?}", shard.groups), format!("{compacted:?}"));
    }

    #[test]
    fn the_same_calls_write_the_same_log(
        steps in prop::collection::vec(step(), 0..40),
        interval in prop::sample::select(vec![0, 1_000]),
    ) {
        let (first, second) = (live(&steps, interval), live(&steps, interval));
        prop_assert_eq!(first.log, second.log);
        prop_assert_eq!(first.effects, second.effects);
    }

    #[test]
    fn after_any_life_a_quiet_group_serves_every_partition(
        steps in prop::collection::vec(step(), 0..40),
        interval in prop::sample::select(vec![0, 1_000]),
    ) {
        let mut shard = live(&steps, interval);
        let members = || MEMBERS.iter().enumerate().map(|(member, _)| member);
        for member in members() {
            take(&mut shard, &Step::Join(member, vec![0, 1, 2]), &mut 0);
        }
        for _ in 0..4 {
            shard.advance(1_000);
            for member in members() {
                take(&mut shard, &Step::Beat(member, None), &mut 0);
            }
        }
        let mut served = std::collections::BTreeSet::new();
        for (topic, partitions) in shard.assigned().into_values().flatten() {
            served.extend(partitions.into_iter().map(|partition| (topic.clone(), partition)));
        }
        let all = shard.topics.0.iter();
        let all = all.flat_map(|(name, (_, count))| (0..*count).map(|p| (name.clone(), p)));
        prop_assert_eq!(served, all.collect());
        let (epoch, assigned) = shard.epochs();
        prop_assert_eq!(epoch, assigned);
    }
}

fn key(record: &ottla_coordinator::group::records::GroupRecord) -> (String, Option<String>) {
    use ottla_coordinator::group::records::GroupRecord as R;
    let member = match record {
        R::ShareMember { member_id, .. }
        | R::ShareTargetMember { member_id, .. }
        | R::ShareCurrentMember { member_id, .. } => Some(member_id.clone()),
        _ => None,
    };
    (record.group_id().to_owned(), member)
}
