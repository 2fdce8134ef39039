//! When assignments come, with which epochs and which records: as measured on Kafka 4.4.0 with its
//! interval of one second, and at once when the interval is 0.

use ottla_coordinator::group::plan::GroupEffect;
use ottla_coordinator::group::records::GroupRecord;

use crate::support::{Shard, id, ids, initialize};

const T: Option<&[&str]> = Some(&["t"]);

#[test]
fn without_an_interval_the_first_answer_carries_the_assignment() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    assert_eq!(
        shard.beat("m", 0, T),
        Ok((2, Some(vec![(1, vec![0, 1, 2])])))
    );
    assert_eq!(shard.log[0].len(), 6);
    assert_eq!(
        shard.effects,
        [GroupEffect::InitializeState {
            group_id: "g".to_owned(),
            state_epoch: 2,
            partitions: (0..3)
                .map(|partition| initialize(1, partition, -1))
                .collect(),
        }]
    );
    assert_eq!(shard.beat("m", 2, None), Ok((2, None)));
    assert_eq!(shard.epochs(), (2, 2));
}

#[test]
fn the_first_heartbeat_writes_types_10_11_13_12_14_15_in_one_batch() {
    let mut shard = Shard::new(&[("t", 1)]);
    shard.hold_effects = true;
    shard.beat("m", 0, T).unwrap();
    assert_eq!(shard.log.len(), 1);
    assert_eq!(shard.last_types(), [10, 11, 13, 12, 14, 15]);
    let effect = shard.effects[0].clone();
    shard.carry_out(&effect);
    assert_eq!(shard.last_types(), [15]);
    let Some(GroupRecord::ShareStatePartitions {
        value: Some(value), ..
    }) = shard.log[1].last()
    else {
        panic!("a state record");
    };
    assert!(value.initializing_topics.is_empty());
    assert_eq!(value.initialized_topics[0].partitions, [0]);
}

#[test]
fn with_an_interval_the_assignment_follows_a_second_later_with_the_next_epoch() {
    let mut shard = Shard::new(&[("t", 3)]);
    assert_eq!(shard.beat("m", 0, T), Ok((2, Some(vec![]))));
    shard.advance(300);
    assert_eq!(shard.beat("m", 2, None), Ok((2, None)));
    assert_eq!(shard.epochs(), (3, 2));
    shard.advance(699);
    assert_eq!(shard.beat("m", 2, None), Ok((2, None)));
    assert_eq!(shard.epochs(), (3, 2));
    shard.advance(1);
    assert_eq!(
        shard.beat("m", 2, None),
        Ok((3, Some(vec![(1, vec![0, 1, 2])])))
    );
    assert_eq!(shard.last_types(), [13, 12, 14]);
    assert_eq!(shard.beat("m", 3, None), Ok((3, None)));
}

#[test]
fn a_second_member_takes_its_share_and_the_first_learns_of_it_later() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.beat("a", 0, T).unwrap();
    assert_eq!(shard.beat("b", 0, T), Ok((3, Some(vec![(1, vec![2])]))));
    assert_eq!(shard.last_types(), [10, 11, 13, 13, 12, 14]);
    assert_eq!(
        shard.beat("a", 2, None),
        Ok((3, Some(vec![(1, vec![0, 1])])))
    );
    assert_eq!(shard.last_types(), [14]);
}

#[test]
fn a_member_that_joins_within_the_interval_waits_with_the_assignments_epoch() {
    let mut shard = Shard::new(&[("t", 4)]);
    shard.beat("a", 0, T).unwrap();
    shard.advance(1_000);
    assert_eq!(
        shard.beat("a", 2, None),
        Ok((3, Some(vec![(1, vec![0, 1, 2, 3])])))
    );
    assert_eq!(shard.beat("b", 0, T), Ok((3, Some(vec![]))));
    assert_eq!(shard.last_types(), [10, 11, 14]);
    assert_eq!(shard.beat("c", 0, T), Ok((3, Some(vec![]))));
    assert_eq!(shard.epochs(), (5, 3));
    shard.advance(1_000);
    assert_eq!(shard.beat("a", 3, None).unwrap().0, 5);
    assert_eq!(shard.beat("b", 3, None).unwrap().0, 5);
    assert_eq!(shard.beat("c", 3, None).unwrap().0, 5);
    assert_eq!(shard.epochs(), (5, 5));
    assert!(shard.assigned().values().all(|topics| !topics.is_empty()));
}

#[test]
fn a_changed_subscription_raises_the_epoch_at_once() {
    let mut shard = Shard::at_once(&[("t", 2), ("u", 2)]);
    shard.beat("a", 0, T).unwrap();
    let both = vec![(1, vec![0, 1]), (2, vec![0, 1])];
    assert_eq!(shard.beat("a", 2, Some(&["t", "u"])), Ok((3, Some(both))));
    assert_eq!(shard.beat("a", 3, Some(&[])), Ok((4, Some(vec![]))));
}

#[test]
fn what_is_no_longer_subscribed_goes_at_once_even_within_the_interval() {
    let mut shard = Shard::new(&[("t", 2), ("u", 2)]);
    shard.config.assignment_interval_ms = 4_000;
    shard.beat("m", 0, Some(&["t", "u"])).unwrap();
    shard.advance(4_000);
    let both = vec![(1, vec![0, 1]), (2, vec![0, 1])];
    assert_eq!(shard.beat("m", 2, None), Ok((3, Some(both.clone()))));
    assert_eq!(shard.beat("m", 3, T), Ok((3, Some(vec![(1, vec![0, 1])]))));
    assert_eq!(shard.beat("m", 3, None), Ok((3, None)));
    assert_eq!(shard.epochs(), (4, 3));
    assert_eq!(shard.beat("m", 3, Some(&["t", "u"])), Ok((3, Some(both))));
    assert_eq!(
        shard.beat("m", 0, Some(&["u"])),
        Ok((3, Some(vec![(2, vec![0, 1])])))
    );
    assert_eq!(shard.epochs(), (6, 3));
    shard.advance(4_000);
    assert_eq!(shard.beat("m", 3, None), Ok((6, None)));
}

#[test]
fn added_partitions_start_at_zero_and_are_assigned() {
    let mut shard = Shard::at_once(&[("t", 2)]);
    shard.beat("m", 0, T).unwrap();
    shard.topics.0.insert("t".to_owned(), (id(1), 4));
    assert_eq!(
        shard.beat("m", 2, None),
        Ok((3, Some(vec![(1, vec![0, 1, 2, 3])])))
    );
    assert_eq!(
        shard.effects.last(),
        Some(&GroupEffect::InitializeState {
            group_id: "g".to_owned(),
            state_epoch: 3,
            partitions: vec![initialize(1, 2, 0), initialize(1, 3, 0)],
        })
    );
}

#[test]
fn added_partitions_with_an_interval_cost_two_epochs_as_in_kafka() {
    let mut shard = Shard::new(&[("t", 2)]);
    shard.beat("m", 0, T).unwrap();
    shard.advance(1_000);
    shard.beat("m", 2, None).unwrap();
    shard.advance(1_000);
    shard.topics.0.insert("t".to_owned(), (id(1), 3));
    assert_eq!(shard.beat("m", 3, None), Ok((4, None)));
    assert_eq!(shard.log[shard.log.len() - 2].len(), 4);
    shard.advance(300);
    assert_eq!(shard.beat("m", 4, None), Ok((4, None)));
    shard.advance(700);
    assert_eq!(
        shard.beat("m", 4, None),
        Ok((5, Some(vec![(1, vec![0, 1, 2])])))
    );
}

#[test]
fn a_topic_that_comes_to_be_is_assigned() {
    let mut shard = Shard::at_once(&[]);
    assert_eq!(shard.beat("m", 0, T), Ok((2, Some(vec![]))));
    shard.topics.0.insert("t".to_owned(), (id(7), 1));
    assert_eq!(shard.beat("m", 2, None), Ok((3, Some(vec![(7, vec![0])]))));
    let last = shard.effects.last().unwrap();
    let GroupEffect::InitializeState { partitions, .. } = last else {
        panic!("initialise")
    };
    assert_eq!(partitions, &[initialize(7, 0, -1)]);
}

#[test]
fn a_deleted_topic_leaves_the_assignment_and_its_state_goes() {
    let mut shard = Shard::at_once(&[("t", 2), ("u", 1)]);
    shard.beat("m", 0, Some(&["t", "u"])).unwrap();
    shard.topics.0.remove("u");
    let plan = shard.groups.topics_deleted(&ids(&[2]));
    shard.commit(plan);
    assert_eq!(shard.last_types(), [15]);
    assert!(matches!(
        shard.effects.last(),
        Some(GroupEffect::DeleteState { partitions, .. }) if partitions.len() == 1
    ));
    assert_eq!(
        shard.beat("m", 2, None),
        Ok((3, Some(vec![(1, vec![0, 1])])))
    );
    let again = shard.groups.topics_deleted(&ids(&[2]));
    assert!(again.records.is_empty() && again.effects.is_empty());
}

#[test]
fn a_topic_created_anew_is_another_topic() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    shard.topics.0.insert("t".to_owned(), (id(9), 1));
    let plan = shard.groups.topics_deleted(&ids(&[1]));
    shard.commit(plan);
    assert_eq!(shard.beat("m", 2, None), Ok((3, Some(vec![(9, vec![0])]))));
    let last = shard.effects.last().unwrap();
    let GroupEffect::InitializeState { partitions, .. } = last else {
        panic!("initialise")
    };
    assert_eq!(partitions, &[initialize(9, 0, -1)]);
}

#[test]
fn initialising_that_got_stuck_is_asked_for_again_after_the_retry_interval() {
    let mut shard = Shard::new(&[("t", 1)]);
    shard.config.initialize_retry_interval_ms = 5_000;
    shard.hold_effects = true;
    shard.beat("m", 0, T).unwrap();
    shard.advance(4_999);
    shard.beat("m", 2, None).unwrap();
    assert_eq!(shard.effects.len(), 1);
    let written = shard.log.len();
    shard.advance(1);
    shard.beat("m", 2, None).unwrap();
    assert_eq!(shard.effects.len(), 2);
    assert_eq!(
        shard.log.len(),
        written,
        "the record of the first try stands"
    );
}

#[test]
fn initialising_that_failed_is_asked_for_again_by_the_next_heartbeat() {
    let mut shard = Shard::at_once(&[("t", 2)]);
    shard.hold_effects = true;
    shard.beat("m", 0, T).unwrap();
    let done = [initialize(1, 0, -1).partition];
    let plan = shard.groups.state_initialized("g", &done);
    shard.commit(plan);
    shard.beat("m", 2, None).unwrap();
    let last = shard.effects.last().unwrap();
    let GroupEffect::InitializeState { partitions, .. } = last else {
        panic!("initialise")
    };
    assert_eq!(partitions, &[initialize(1, 1, 0)]);
}

#[test]
fn state_that_nobody_wants_any_more_is_deleted_again() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.hold_effects = true;
    shard.beat("m", 0, T).unwrap();
    shard.topics.0.remove("t");
    let plan = shard.groups.topics_deleted(&ids(&[1]));
    shard.commit(plan);
    let first = shard.effects[0].clone();
    shard.carry_out(&first);
    assert!(matches!(
        shard.effects.last(),
        Some(GroupEffect::DeleteState { .. })
    ));
    assert!(shard.groups.share_state_partitions("g").is_empty());
}

#[test]
fn unknown_tags_of_the_group_record_survive_every_rewrite() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("a", 0, T).unwrap();
    let mut record = shard.log[0][1].clone();
    if let GroupRecord::ShareGroup {
        value: Some(value), ..
    } = &mut record
    {
        value.unknown_tags.insert(9_000, vec![1, 2]);
    }
    shard.groups.apply(&record);
    shard.beat("b", 0, T).unwrap();
    shard.beat("a", -1, None).unwrap();
    let kept = shard.log.last().unwrap().iter().any(|record| {
        matches!(record, GroupRecord::ShareGroup { value: Some(value), .. }
            if value.unknown_tags.get(&9_000) == Some(&vec![1, 2]))
    });
    assert!(kept);
}
