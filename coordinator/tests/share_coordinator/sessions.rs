//! Each row of the share session table, and random lives against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use ottla_coordinator::share::session::{
    BeginAcknowledge, BeginFetch, SessionError, SessionView, ShareSessions,
};
use ottla_coordinator::types::{TopicPartition, Uuid};
use proptest::prelude::*;

fn p(partition: i32) -> TopicPartition {
    TopicPartition {
        topic_id: Uuid([1; 16]),
        partition,
    }
}

fn ps(partitions: &[i32]) -> Vec<TopicPartition> {
    partitions.iter().map(|&partition| p(partition)).collect()
}

struct Broker(ShareSessions<u32>);

impl Broker {
    fn new(limit: usize) -> Self {
        Self(ShareSessions::new(limit))
    }

    fn fetch_with(
        &mut self,
        (connection, member, epoch): (u64, &str, i32),
        added: &[i32],
        forgotten: &[i32],
        has_acks: bool,
    ) -> Result<SessionView<u32>, SessionError> {
        self.0.begin_fetch(&BeginFetch {
            group: Some("g"),
            member: Some(member),
            epoch,
            connection,
            added: &ps(added),
            forgotten: &ps(forgotten),
            has_acks,
        })
    }

    /// The partitions in the order in which the fetch serves them.
    fn fetch(&mut self, member: &str, epoch: i32, added: &[i32]) -> Result<Vec<i32>, SessionError> {
        self.fetch_with((1, member, epoch), added, &[], false)
            .map(|view| order(&view))
    }

    /// Whether the session is closed now, with which partitions.
    fn acknowledge(&mut self, member: &str, epoch: i32) -> Result<Option<Vec<i32>>, SessionError> {
        let request = BeginAcknowledge {
            group: Some("g"),
            member: Some(member),
            epoch,
        };
        let closed = self.0.begin_acknowledge(request)?;
        Ok(closed.map(|c| c.partitions.iter().map(|p| p.partition.partition).collect()))
    }
}

fn order(view: &SessionView<u32>) -> Vec<i32> {
    view.partitions()
        .map(|partition| partition.partition.partition)
        .collect()
}

#[test]
fn epochs_follow_one_another_over_fetches_and_acknowledgements() {
    let mut broker = Broker::new(10);
    assert_eq!(broker.fetch("m", 0, &[0]), Ok(vec![0]));
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![0]));
    assert_eq!(broker.acknowledge("m", 2), Ok(None));
    assert_eq!(broker.fetch("m", 3, &[]), Ok(vec![0]));
}

#[test]
fn a_wrong_epoch_is_refused_and_changes_nothing() {
    let mut broker = Broker::new(10);
    broker.fetch("m", 0, &[0]).unwrap();
    for epoch in [2, 7, -2, i32::MAX, i32::MIN] {
        assert_eq!(
            broker.fetch("m", epoch, &[5]),
            Err(SessionError::InvalidEpoch)
        );
        assert_eq!(
            broker.acknowledge("m", epoch),
            Err(SessionError::InvalidEpoch)
        );
    }
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![0]));
}

#[test]
fn without_a_session_there_is_nothing_to_continue_or_close() {
    let mut broker = Broker::new(10);
    for epoch in [1, -1, 9] {
        assert_eq!(broker.fetch("m", epoch, &[0]), Err(SessionError::NotFound));
        assert_eq!(broker.acknowledge("m", epoch), Err(SessionError::NotFound));
    }
    assert_eq!(broker.acknowledge("m", 0), Err(SessionError::InvalidEpoch));
}

#[test]
fn acknowledgements_cannot_open_a_session_nor_harm_the_open_one() {
    let mut broker = Broker::new(10);
    broker.fetch("m", 0, &[0]).unwrap();
    let refused = broker.fetch_with((1, "m", 0), &[0], &[], true).map(drop);
    assert_eq!(refused, Err(SessionError::InvalidRequest));
    assert_eq!(broker.acknowledge("m", 0), Err(SessionError::InvalidEpoch));
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![0]));
}

#[test]
fn a_session_may_have_no_partitions() {
    let mut broker = Broker::new(10);
    assert_eq!(broker.fetch("m", 0, &[]), Ok(vec![]));
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![]));
    assert_eq!(broker.fetch("m", 2, &[3]), Ok(vec![3]));
}

#[test]
fn the_final_epoch_closes_by_fetch_or_by_acknowledgement() {
    let mut broker = Broker::new(10);
    broker.fetch("m", 0, &[4, 2]).unwrap();
    let view = broker.fetch_with((1, "m", -1), &[9], &[], true).unwrap();
    assert!(view.closed);
    assert_eq!(order(&view), [4, 2]);
    assert_eq!(broker.fetch("m", 1, &[]), Err(SessionError::NotFound));
    broker.fetch("m", 0, &[1]).unwrap();
    assert_eq!(broker.acknowledge("m", -1), Ok(Some(vec![1])));
    assert!(broker.0.is_empty());
    assert_eq!(broker.0.partition_count(), 0);
    assert!(broker.0.close_connection(1).is_empty());
}

#[test]
fn opening_again_replaces_the_partitions_and_restarts_the_epoch() {
    let mut broker = Broker::new(1);
    broker.fetch("m", 0, &[0, 1]).unwrap();
    broker.fetch("m", 1, &[]).unwrap();
    assert_eq!(broker.fetch("m", 0, &[2]), Ok(vec![2]));
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![2]));
    assert_eq!((broker.0.len(), broker.0.partition_count()), (1, 1));
}

#[test]
fn a_full_broker_refuses_new_sessions_only() {
    let mut broker = Broker::new(2);
    broker.fetch("a", 0, &[0]).unwrap();
    broker.fetch("b", 0, &[0]).unwrap();
    assert_eq!(broker.fetch("c", 0, &[0]), Err(SessionError::LimitReached));
    assert_eq!(broker.fetch("a", 0, &[0]), Ok(vec![0]));
    assert_eq!(broker.fetch("b", 1, &[]), Ok(vec![0]));
    broker.acknowledge("b", -1).unwrap();
    assert_eq!(broker.fetch("c", 0, &[0]), Ok(vec![0]));
}

#[test]
fn a_session_ends_with_the_connection_that_opened_it() {
    let mut broker = Broker::new(10);
    broker.fetch_with((1, "a", 0), &[0, 1], &[], false).unwrap();
    broker.fetch_with((1, "b", 0), &[2], &[], false).unwrap();
    broker.fetch_with((2, "a", 1), &[], &[], false).unwrap();
    assert!(broker.0.close_connection(2).is_empty(), "it opened nothing");
    let closed = broker.0.close_connection(1);
    let members: Vec<_> = closed
        .iter()
        .map(|c| (c.group.as_str(), c.member.as_str()))
        .collect();
    assert_eq!(members, [("g", "a"), ("g", "b")]);
    assert_eq!(closed[0].partitions.len(), 2);
    assert_eq!(broker.fetch("a", 2, &[]), Err(SessionError::NotFound));
    assert!(broker.0.close_connection(1).is_empty());
}

#[test]
fn a_session_that_another_connection_replaced_outlives_its_first_one() {
    let mut broker = Broker::new(10);
    broker.fetch_with((1, "m", 0), &[0], &[], false).unwrap();
    broker.fetch_with((2, "m", 0), &[0], &[], false).unwrap();
    assert!(broker.0.close_connection(1).is_empty());
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![0]));
    assert_eq!(broker.0.close_connection(2).len(), 1);
}

#[test]
fn nobody_fetches_without_a_group_and_a_member() {
    let mut broker = Broker::new(10);
    for (group, member) in [(None, Some("m")), (Some("g"), None), (None, None)] {
        let fetch = BeginFetch {
            group,
            member,
            epoch: 0,
            connection: 1,
            added: &[],
            forgotten: &[],
            has_acks: false,
        };
        assert_eq!(
            broker.0.begin_fetch(&fetch).map(drop),
            Err(SessionError::InvalidRequest)
        );
        let acknowledge = BeginAcknowledge {
            group,
            member,
            epoch: 1,
        };
        let refused = broker.0.begin_acknowledge(acknowledge).map(drop);
        assert_eq!(refused, Err(SessionError::InvalidRequest));
    }
}

#[test]
fn forgetting_takes_out_what_is_there_and_minds_nothing_else() {
    let mut broker = Broker::new(10);
    broker
        .fetch_with((1, "m", 0), &[0, 1], &[1], false)
        .map(|view| {
            assert_eq!(order(&view), [0, 1], "an opening request forgets nothing");
        })
        .unwrap();
    let view = broker
        .fetch_with((1, "m", 1), &[2, 3], &[0, 3, 77], false)
        .unwrap();
    assert_eq!(view.len(), 2);
    let view = broker.fetch_with((1, "m", 2), &[], &[0], false).unwrap();
    assert_eq!(view.len(), 2);
    let view = broker.fetch_with((1, "m", 3), &[0, 0], &[], false).unwrap();
    assert_eq!(view.len(), 3);
    assert_eq!(broker.0.partition_count(), 3);
}

#[test]
fn each_partition_is_first_in_its_turn_even_between_acknowledgements() {
    let mut broker = Broker::new(10);
    assert_eq!(broker.fetch("m", 0, &[0, 1, 2]), Ok(vec![0, 1, 2]));
    assert_eq!(broker.fetch("m", 1, &[]), Ok(vec![1, 2, 0]));
    broker.acknowledge("m", 2).unwrap();
    broker.acknowledge("m", 3).unwrap();
    assert_eq!(broker.fetch("m", 4, &[]), Ok(vec![2, 0, 1]));
    assert_eq!(broker.fetch("m", 5, &[]), Ok(vec![0, 1, 2]));
}

#[test]
fn a_lookup_is_remembered_for_as_long_as_the_partition_stays() {
    let mut broker = Broker::new(10);
    let view = broker.fetch_with((1, "m", 0), &[0], &[], false).unwrap();
    let partition = view.partitions().next().unwrap();
    assert_eq!(partition.handle(), None);
    partition.remember(Some(7));
    let view = broker.fetch_with((1, "m", 1), &[1], &[], false).unwrap();
    let handles: Vec<_> = view
        .partitions()
        .map(|p| (p.partition.partition, p.handle()))
        .collect();
    assert_eq!(handles, [(1, None), (0, Some(7))]);
    view.partitions()
        .for_each(|partition| partition.remember(None));
    let view = broker.fetch_with((1, "m", 2), &[], &[], false).unwrap();
    assert!(
        view.partitions()
            .all(|partition| partition.handle().is_none())
    );
}

#[derive(Clone, Debug)]
enum Call {
    Fetch {
        member: usize,
        epoch: Epoch,
        connection: u64,
        added: Vec<i32>,
        forgotten: Vec<i32>,
    },
    Acknowledge {
        member: usize,
        epoch: Epoch,
    },
    Close(u64),
}

#[derive(Clone, Copy, Debug)]
enum Epoch {
    Right,
    Fixed(i32),
}

fn call() -> impl Strategy<Value = Call> {
    let epoch = || prop_oneof![4 => Just(Epoch::Right), 3 => (-2..5).prop_map(Epoch::Fixed)];
    let some = || prop::collection::vec(0..6, 0..4);
    prop_oneof![
        6 => (0..4_usize, epoch(), 0..3_u64, some(), some()).prop_map(
            |(member, epoch, connection, added, forgotten)| {
                Call::Fetch { member, epoch, connection, added, forgotten }
            }
        ),
        3 => (0..4_usize, epoch()).prop_map(|(member, epoch)| Call::Acknowledge { member, epoch }),
        1 => (0..3_u64).prop_map(Call::Close),
    ]
}

/// A session, naively: the opener, the next epoch, the partitions as they came.
type Model = BTreeMap<usize, (u64, i32, Vec<i32>)>;

const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];
const LIMIT: usize = 2;

fn model_fetch(
    model: &mut Model,
    (member, epoch, connection): (usize, i32, u64),
    added: &[i32],
    forgotten: &[i32],
) -> Result<Vec<i32>, SessionError> {
    if epoch == 0 {
        if !model.contains_key(&member) && model.len() == LIMIT {
            return Err(SessionError::LimitReached);
        }
        model.insert(member, (connection, 0, Vec::new()));
    } else if model.get(&member).ok_or(SessionError::NotFound)?.1 != epoch && epoch != -1 {
        return Err(SessionError::InvalidEpoch);
    }
    if epoch == -1 {
        return Ok(model.remove(&member).unwrap().2);
    }
    let (_, next, partitions) = model.get_mut(&member).unwrap();
    for partition in added {
        if !partitions.contains(partition) {
            partitions.push(*partition);
        }
    }
    if epoch != 0 {
        partitions.retain(|partition| !forgotten.contains(partition));
    }
    *next += 1;
    Ok(partitions.clone())
}

proptest! {
    #[test]
    fn random_lives_agree_with_a_naive_model(calls in prop::collection::vec(call(), 0..60)) {
        let mut broker = Broker::new(LIMIT);
        let mut model = Model::new();
        for call in calls {
            let right = |model: &Model, member: usize, epoch| match epoch {
                Epoch::Right => model.get(&member).map_or(0, |session| session.1),
                Epoch::Fixed(epoch) => epoch,
            };
            match call {
                Call::Fetch { member, epoch, connection, added, forgotten } => {
                    let epoch = right(&model, member, epoch);
                    let key = (connection, MEMBERS[member], epoch);
                    let seen = broker.fetch_with(key, &added, &forgotten, false);
                    let key = (member, epoch, connection);
                    let expected = model_fetch(&mut model, key, &added, &forgotten);
                    let seen = seen.map(|view| {
                        let mut seen = order(&view);
                        seen.sort_unstable();
                        seen
                    });
                    let expected = expected.map(|mut expected| {
                        expected.sort_unstable();
                        expected
                    });
                    prop_assert_eq!(seen, expected);
                }
                Call::Acknowledge { member, epoch } => {
                    let epoch = right(&model, member, epoch);
                    let expected = match (epoch, model.get(&member).map(|session| session.1)) {
                        (0, _) => Err(SessionError::InvalidEpoch),
                        (_, None) => Err(SessionError::NotFound),
                        (-1, _) => Ok(Some(model.remove(&member).unwrap().2)),
                        (epoch, Some(next)) if epoch == next => {
                            model.get_mut(&member).unwrap().1 += 1;
                            Ok(None)
                        }
                        _ => Err(SessionError::InvalidEpoch),
                    };
                    prop_assert_eq!(broker.acknowledge(MEMBERS[member], epoch), expected);
                }
                Call::Close(connection) => {
                    let closed = broker.0.close_connection(connection);
                    let expected: Vec<usize> =
                        model.iter().filter(|(_, s)| s.0 == connection).map(|(m, _)| *m).collect();
                    model.retain(|_, session| session.0 != connection);
                    let closed: Vec<_> = closed.into_iter().map(|c| c.member).collect();
                    let expected: Vec<_> = expected.iter().map(|&m| MEMBERS[m]).collect();
                    prop_assert_eq!(closed, expected);
                }
            }
            prop_assert_eq!(broker.0.len(), model.len());
            let partitions: usize = model.values().map(|session| session.2.len()).sum();
            prop_assert_eq!(broker.0.partition_count(), partitions);
            let connections: BTreeSet<u64> = model.values().map(|session| session.0).collect();
            prop_assert_eq!(broker.0.connection_count(), connections.len());
        }
    }
}
