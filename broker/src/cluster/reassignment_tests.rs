use super::*;
use crate::cluster::election::{Election, World, settle};

const BROKERS: [i32; 4] = [0, 1, 2, 3];

/// A partition after its reassignment to `target` was taken up while `alive` are up.
fn moved(from: &Leadership, target: &[i32], alive: &[i32]) -> Leadership {
    let begun = start(from, target, &BROKERS, false).unwrap_or_else(|error| panic!("{error}"));
    settled(from, begun, alive)
}

fn settled(from: &Leadership, next: Leadership, alive: &[i32]) -> Leadership {
    let world = World {
        alive,
        min_isr: 1,
        elr: true,
    };
    let steps = settle(from, next, &world, Election::Clean);
    steps
        .into_iter()
        .fold(from.clone(), |now, step| now.after(step))
}

fn on(replicas: &[i32]) -> Leadership {
    Leadership::new(replicas.to_vec(), replicas.to_vec())
}

fn code(result: Result<Leadership, ApiError>) -> (ErrorCode, String) {
    match result {
        Ok(next) => panic!("accepted: {next:?}"),
        Err(error) => (error.code, error.message.unwrap_or_default()),
    }
}

#[test]
fn a_move_to_brokers_that_are_up_is_over_at_once() {
    let now = moved(&on(&[0, 1]), &[2, 3], &BROKERS);
    assert_eq!(
        (now.replicas.as_slice(), now.isr.as_slice()),
        (&[2, 3][..], &[2, 3][..])
    );
    assert!(!now.is_reassigning());
    assert_eq!((now.leader, now.leader_epoch), (2, 1));
}

#[test]
fn the_leader_stays_where_the_new_replicas_hold_it() {
    let now = moved(&on(&[0, 1]), &[2, 0], &BROKERS);
    assert_eq!(
        (now.leader, now.leader_epoch),
        (0, 1),
        "a new epoch, since a replica is gone"
    );
    let now = moved(&on(&[0, 1]), &[1, 0], &BROKERS);
    assert_eq!(
        (now.leader, now.leader_epoch),
        (0, 0),
        "the order alone changes no leader"
    );
    assert_eq!(now.replicas, [1, 0]);
}

#[test]
fn more_and_fewer_replicas_are_moves_too() {
    let more = moved(&on(&[0]), &[0, 1, 2], &BROKERS);
    assert_eq!(
        (more.isr.as_slice(), more.leader_epoch),
        (&[0, 1, 2][..], 0)
    );
    let fewer = moved(&more, &[2], &BROKERS);
    assert_eq!((fewer.replicas.as_slice(), fewer.leader), (&[2][..], 2));
}

#[test]
fn a_move_to_a_stopped_broker_is_in_progress_until_it_is_back() {
    let from = on(&[0, 1]);
    let now = moved(&from, &[0, 3], &[0, 1, 2]);
    assert_eq!(now.replicas, [0, 3, 1]);
    assert_eq!(
        (now.adding.as_slice(), now.removing.as_slice()),
        (&[3][..], &[1][..])
    );
    assert_eq!((now.leader, now.leader_epoch), (0, 0));
    let done = settled(&now, now.clone(), &BROKERS);
    assert_eq!(
        (done.replicas.as_slice(), done.is_reassigning()),
        (&[0, 3][..], false)
    );
}

#[test]
fn a_replica_that_is_to_go_may_lead_until_then() {
    let waiting = moved(&on(&[0]), &[3], &[0]);
    let gone = settled(&waiting, waiting.clone(), &[]);
    let back = settled(&gone, gone.clone(), &[0]);
    assert_eq!((back.leader, back.replicas.as_slice()), (0, &[3, 0][..]));
}

#[test]
fn a_move_can_be_taken_back_and_changed_while_it_is_in_progress() {
    let from = on(&[0, 1]);
    let waiting = moved(&from, &[2, 3], &[0, 1, 2]);
    assert_eq!(waiting.adding, [2, 3]);
    let back = cancel(&waiting, "t:0", false).unwrap_or_else(|error| panic!("{error}"));
    let back = settled(&waiting, back, &[0, 1, 2]);
    assert_eq!(
        (back.replicas.as_slice(), back.isr.as_slice()),
        (&[0, 1][..], &[0, 1][..])
    );
    let other = moved(&waiting, &[0, 2], &[0, 1, 2]);
    assert_eq!(
        (other.replicas.as_slice(), other.is_reassigning()),
        (&[0, 2][..], false)
    );
    let same = moved(&waiting, &[0, 1], &[0, 1, 2]);
    assert_eq!(
        (same.replicas.as_slice(), same.is_reassigning()),
        (&[0, 1][..], false)
    );
}

#[test]
fn taking_a_move_back_may_need_an_unclean_election() {
    let from = on(&[0]);
    let both = moved(&from, &[2, 3], &[0, 2]);
    let only_new = settled(&both, both.clone(), &[2]);
    assert_eq!((only_new.leader, only_new.isr.as_slice()), (2, &[2][..]));
    let refused = code(cancel(&only_new, "t:0", false));
    assert_eq!(refused.0, ErrorCode::INVALID_REPLICA_ASSIGNMENT);
    assert!(cancel(&only_new, "t:0", true).is_ok());
}

#[test]
fn what_cannot_be_is_refused() {
    let now = on(&[0, 1]);
    let refused = |target: &[i32]| code(start(&now, target, &BROKERS, false));
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    for target in [&[][..], &[1, 1], &[0, 9], &[-1]] {
        assert_eq!(refused(target).0, invalid, "{target:?}");
    }
    let factor = code(start(&now, &[0], &BROKERS, true));
    assert_eq!(factor.0, ErrorCode::INVALID_REPLICATION_FACTOR);
    assert_eq!(factor.1, "The replication factor is changed from 2 to 1");
    let none = code(cancel(&now, "t:0", true));
    assert_eq!(none.0, ErrorCode::NO_REASSIGNMENT_IN_PROGRESS);
}
