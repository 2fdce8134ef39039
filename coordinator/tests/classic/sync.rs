//! Fetching assignments.

use ottla_coordinator::group::classic::{ClassicGroupState, SyncRequest};
use ottla_coordinator::group::plan::GroupErrorKind::{
    IllegalGeneration, InconsistentGroupProtocol, InvalidGroupId, RebalanceInProgress,
    UnknownMemberId,
};

use super::support::{GROUP, Shard, blob, request, sync_of};

#[test]
fn all_get_what_the_leader_assigns() {
    let mut shard = Shard::new();
    let first = shard.join(&request("")).unwrap().unwrap();
    let second = shard.send_join(&request(""));
    let leader = shard.send_join(&request(&first.member_id));
    let (leader, second) = (shard.joined(leader), shard.joined(second));
    let parked = shard.send_sync(&sync_of(&second, Vec::new()));
    assert!(shard.syncs.is_empty());
    let assignments = vec![
        (second.member_id.clone(), blob("two")),
        ("stranger".to_owned(), blob("three")),
    ];
    let own = shard.sync(&sync_of(&leader, assignments)).unwrap().unwrap();
    // Who is not named gets nothing.
    assert_eq!(&*own.assignment, b"");
    assert_eq!(&*shard.syncs[&parked].clone().unwrap().assignment, b"two");
    assert_eq!(shard.state(), ClassicGroupState::Stable);
    let record = shard.last_record().unwrap();
    assert_eq!((record.generation, record.members.len()), (2, 2));
    assert_eq!(record.leader.as_deref(), Some("id-1"));
    assert_eq!(&*record.members[1].assignment, b"two");
    assert_eq!(&*record.members[1].subscription, b"m-range");
}

#[test]
fn who_comes_late_gets_the_assignment_at_once() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let again = shard.sync(&sync_of(&joined[1], Vec::new())).unwrap();
    assert_eq!(*again.unwrap().assignment, *blob("a-id-2"));
}

#[test]
fn a_sync_says_who_and_when_and_what_it_is() {
    let mut shard = Shard::new();
    let nobody = SyncRequest {
        group_id: GROUP.to_owned(),
        member_id: "x".to_owned(),
        ..SyncRequest::default()
    };
    assert_eq!(shard.sync(&nobody), Some(Err(UnknownMemberId)));
    let joined = shard.stable(&[request("")]).remove(0);
    assert_eq!(shard.sync(&nobody), Some(Err(UnknownMemberId)));
    let fine = sync_of(&joined, Vec::new());
    let nameless = SyncRequest {
        group_id: String::new(),
        ..fine.clone()
    };
    assert_eq!(shard.sync(&nameless), Some(Err(InvalidGroupId)));
    let old = SyncRequest {
        generation: 0,
        ..fine.clone()
    };
    assert_eq!(shard.sync(&old), Some(Err(IllegalGeneration)));
    let other = SyncRequest {
        protocol: Some("sticky".to_owned()),
        ..fine.clone()
    };
    assert_eq!(shard.sync(&other), Some(Err(InconsistentGroupProtocol)));
    let other = SyncRequest {
        protocol_type: Some("connect".to_owned()),
        ..fine
    };
    assert_eq!(shard.sync(&other), Some(Err(InconsistentGroupProtocol)));
}

#[test]
fn a_sync_of_a_group_that_joins_again_is_sent_back() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    shard.send_join(&request(""));
    let late = shard.sync(&sync_of(&joined[1], Vec::new()));
    assert_eq!(late, Some(Err(RebalanceInProgress)));
}

#[test]
fn a_parked_sync_is_sent_back_when_somebody_joins() {
    let mut shard = Shard::new();
    let first = shard.join(&request("")).unwrap().unwrap();
    let second = shard.send_join(&request(""));
    shard.send_join(&request(&first.member_id));
    let parked = shard.send_sync(&sync_of(&shard.joined(second), Vec::new()));
    shard.send_join(&request(""));
    assert_eq!(shard.syncs[&parked], Err(RebalanceInProgress));
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
}

#[test]
fn a_member_that_waits_for_its_assignment_needs_no_heartbeats() {
    let mut shard = Shard::new();
    let first = shard.join(&request("")).unwrap().unwrap();
    let second = shard.send_join(&request(""));
    let leader = shard.send_join(&request(&first.member_id));
    let second = shard.joined(second);
    let leader = shard.joined(leader);
    shard.send_sync(&sync_of(&second, Vec::new()));
    for _ in 0..4 {
        shard.advance(9_000);
        assert_eq!(shard.beat(&leader.member_id, leader.generation), Ok(()));
    }
    assert_eq!(shard.members().len(), 2);
    // Its session begins with the answer.
    shard.send_sync(&sync_of(&leader, Vec::new()));
    shard.advance(9_999);
    assert_eq!(shard.beat(&second.member_id, second.generation), Ok(()));
}

#[test]
fn who_joins_and_does_not_fetch_its_assignment_is_out() {
    let mut shard = Shard::new();
    let first = shard.join(&request("")).unwrap().unwrap();
    let second = shard.send_join(&request(""));
    let leader = shard.send_join(&request(&first.member_id));
    let leader = shard.joined(leader);
    let second = shard.joined(second);
    shard.send_sync(&sync_of(&leader, Vec::new()));
    assert_eq!(shard.state(), ClassicGroupState::Stable);
    for _ in 0..10 {
        shard.advance(5_999);
        assert_eq!(shard.beat(&leader.member_id, 2), Ok(()));
        assert_eq!(shard.beat(&second.member_id, 2), Ok(()));
    }
    shard.advance(10);
    assert_eq!(shard.beat(&second.member_id, 2), Err(UnknownMemberId));
    assert_eq!(shard.beat(&leader.member_id, 2), Err(RebalanceInProgress));
    assert_eq!(shard.members(), [leader.member_id]);
}
