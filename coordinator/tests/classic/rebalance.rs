//! From generation to generation, and what time does.

use ottla_coordinator::group::classic::{ClassicGroupState, JoinRequest};
use ottla_coordinator::group::plan::GroupErrorKind::{
    IllegalGeneration, RebalanceInProgress, UnknownMemberId,
};

use super::support::{Shard, protocols, request, sync_of};

#[test]
fn heartbeats_say_when_to_join_again_and_the_generation_rises() {
    let mut shard = Shard::new();
    let old = shard.stable(&[request("")]).remove(0);
    assert_eq!(shard.beat(&old.member_id, 1), Ok(()));
    let new = shard.send_join(&request(""));
    assert_eq!(shard.beat(&old.member_id, 1), Err(RebalanceInProgress));
    let again = shard.send_join(&request(&old.member_id));
    assert_eq!(shard.joined(again).generation, 2);
    assert_eq!(shard.joined(again).members.len(), 2);
    assert_eq!(shard.joined(new).members.len(), 0);
    assert_eq!(shard.joined(new).leader, old.member_id);
    assert_eq!(shard.beat(&old.member_id, 1), Err(IllegalGeneration));
    assert_eq!(shard.beat(&old.member_id, 2), Ok(()));
    assert_eq!(shard.beat("nobody", 2), Err(UnknownMemberId));
}

#[test]
fn a_silent_member_is_removed_once_and_the_others_go_on() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let (stays, silent) = (&joined[0], &joined[1]);
    shard.advance(6_000);
    assert_eq!(shard.beat(&stays.member_id, 2), Ok(()));
    shard.advance(3_999);
    assert_eq!(shard.members().len(), 2);
    shard.advance(1);
    assert_eq!(shard.members(), std::slice::from_ref(&stays.member_id));
    assert_eq!(shard.beat(&silent.member_id, 2), Err(UnknownMemberId));
    assert_eq!(shard.beat(&stays.member_id, 2), Err(RebalanceInProgress));
    let again = shard.join(&request(&stays.member_id)).unwrap().unwrap();
    assert_eq!((again.generation, again.members.len()), (3, 1));
    // The slow one comes back as somebody new; one more rebalance, and there is peace.
    assert_eq!(shard.refused(&request(&silent.member_id)), UnknownMemberId);
    let new = shard.send_join(&request(""));
    shard.send_join(&request(&stays.member_id));
    assert_eq!(shard.joined(new).generation, 4);
}

#[test]
fn a_group_whose_last_member_expires_is_empty_and_logged_as_such() {
    let mut shard = Shard::new();
    shard.stable(&[request("")]);
    shard.advance(10_000);
    assert_eq!(shard.state(), ClassicGroupState::Empty);
    let record = shard.last_record().unwrap();
    assert_eq!((record.generation, record.members.len()), (2, 0));
    assert_eq!((record.protocol, record.leader), (None, None));
    assert_eq!(record.protocol_type, "consumer");
    assert_eq!(shard.groups.next_deadline(), None);
    // And goes on counting.
    assert_eq!(shard.join(&request("")).unwrap().unwrap().generation, 3);
}

#[test]
fn who_does_not_join_again_in_time_is_out() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let new = shard.send_join(&request(""));
    for _ in 0..10 {
        shard.advance(5_900);
        for member in &joined {
            assert_eq!(shard.beat(&member.member_id, 2), Err(RebalanceInProgress));
        }
    }
    assert!(!shard.joins.contains_key(&new));
    shard.advance(1_000);
    let won = shard.joined(new);
    assert_eq!((&won.leader, won.members.len()), (&won.member_id, 1));
    assert_eq!(shard.beat(&joined[0].member_id, 2), Err(UnknownMemberId));
}

#[test]
fn the_longest_rebalance_timeout_counts() {
    let mut shard = Shard::new();
    let patient = JoinRequest {
        rebalance_timeout_ms: 100_000,
        session_timeout_ms: 200_000,
        ..request("")
    };
    shard.stable(&[patient, request("")]);
    let new = shard.send_join(&request(""));
    shard.advance(99_999);
    assert!(!shard.joins.contains_key(&new));
    shard.advance(1);
    assert!(shard.joins.contains_key(&new));
}

#[test]
fn a_leader_that_is_gone_is_followed_by_one_that_has_joined() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request(""), request("")]);
    let third = shard.send_join(&JoinRequest {
        protocols: protocols(&["range", "other"]),
        ..request(&joined[2].member_id)
    });
    shard.advance(10_000);
    // Leader and second were silent.
    let won = shard.joined(third);
    assert_eq!(won.leader, won.member_id);
    assert_eq!(shard.members(), [won.member_id]);
}

#[test]
fn a_leader_that_dies_before_it_assigns_holds_nobody_up() {
    let mut shard = Shard::new();
    let first = shard.join(&request("")).unwrap().unwrap();
    let second = shard.send_join(&request(""));
    shard.send_join(&request(&first.member_id));
    let second = shard.joined(second);
    let parked = shard.send_sync(&sync_of(&second, Vec::new()));
    shard.advance(10_000);
    assert_eq!(shard.syncs[&parked], Err(RebalanceInProgress));
    let again = shard.join(&request(&second.member_id)).unwrap().unwrap();
    assert_eq!((&again.leader, again.generation), (&again.member_id, 3));
}

#[test]
fn a_cooperative_rebalance_ends_in_two_rounds() {
    // The members' metadata says what they own, so that it changes with every round.
    let mut shard = Shard::new();
    let speaks = |member_id: &str, owns: &str| JoinRequest {
        protocols: protocols(&[owns]),
        ..request(member_id)
    };
    let cooperative = |member_id: &str, owns: &str| {
        let mut request = speaks(member_id, "cooperative-sticky");
        request.protocols[0].1 = super::support::blob(owns);
        request
    };
    let old = shard.stable(&[cooperative("", "01")]).remove(0);
    // Round one: the new member gets nothing yet, the old one is told to give up 1.
    let new = shard.send_join(&cooperative("", ""));
    assert_eq!(shard.beat(&old.member_id, 1), Err(RebalanceInProgress));
    let leader = shard.send_join(&cooperative(&old.member_id, "01"));
    let (leader, new) = (shard.joined(leader), shard.joined(new));
    let parked = shard.send_sync(&sync_of(&new, Vec::new()));
    shard.send_sync(&sync_of(&leader, Vec::new()));
    assert!(shard.syncs[&parked].is_ok());
    assert_eq!(shard.beat(&new.member_id, 2), Ok(()));
    // Round two: what was given up is handed over, and nobody rebalances after that.
    let leader = shard.send_join(&cooperative(&old.member_id, "0"));
    assert_eq!(shard.beat(&new.member_id, 2), Err(RebalanceInProgress));
    let new = shard.send_join(&cooperative(&new.member_id, ""));
    let (leader, new) = (shard.joined(leader), shard.joined(new));
    shard.send_sync(&sync_of(&leader, Vec::new()));
    shard.send_sync(&sync_of(&new, Vec::new()));
    assert_eq!(shard.beat(&leader.member_id, 3), Ok(()));
    assert_eq!(shard.beat(&new.member_id, 3), Ok(()));
    assert_eq!(shard.state(), ClassicGroupState::Stable);
}

#[test]
fn held_sessions_end_later() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request("")]).remove(0);
    shard.groups.shift_sessions(100_000);
    shard.advance(100_000);
    assert_eq!(shard.beat(&joined.member_id, 1), Ok(()));
    shard.advance(10_000);
    assert_eq!(shard.state(), ClassicGroupState::Empty);
}
