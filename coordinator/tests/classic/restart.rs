//! What a new coordinator knows of a group.

use ottla_coordinator::group::classic::{ClassicGroupState, JoinRequest};
use ottla_coordinator::group::plan::GroupErrorKind::{
    IllegalGeneration, RebalanceInProgress, UnknownMemberId,
};
use ottla_coordinator::group::records::GroupRecord;

use super::support::{GROUP, Shard, blob, request, static_request, sync_of};

#[test]
fn members_live_on_with_a_whole_session_and_their_assignments() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    shard.advance(9_000);
    shard.restart();
    assert_eq!(shard.state(), ClassicGroupState::Stable);
    shard.advance(9_999);
    for member in &joined {
        assert_eq!(shard.beat(&member.member_id, 2), Ok(()));
        let synced = shard.sync(&sync_of(member, Vec::new())).unwrap().unwrap();
        assert_eq!(
            *synced.assignment,
            *blob(&format!("a-{}", member.member_id))
        );
    }
    shard.advance(10_000);
    assert_eq!(shard.state(), ClassicGroupState::Empty);
}

#[test]
fn a_rebalance_that_was_cut_off_begins_anew() {
    let mut shard = Shard::new();
    let old = shard.stable(&[request("")]).remove(0);
    let new = shard.send_join(&request(""));
    shard.send_join(&request(&old.member_id));
    let new = shard.joined(new);
    assert_eq!(new.generation, 2);
    shard.restart();
    // The generation that was never logged is unknown, and so is its new member.
    assert_eq!(shard.beat(&old.member_id, 2), Err(IllegalGeneration));
    assert_eq!(shard.beat(&new.member_id, 2), Err(UnknownMemberId));
    let again = shard.join(&request(&old.member_id)).unwrap().unwrap();
    assert_eq!(again.generation, 2);
}

#[test]
fn static_members_are_known_by_their_names() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[static_request("a"), static_request("b")]);
    shard.restart();
    let back = shard.join(&static_request("b")).unwrap().unwrap();
    assert_eq!((back.generation, &back.leader), (2, &joined[0].member_id));
    shard.restart();
    assert_eq!(shard.beat(&back.member_id, 2), Ok(()));
}

#[test]
fn a_follower_that_speaks_more_than_was_logged_starts_one_rebalance() {
    let mut shard = Shard::new();
    let both = JoinRequest {
        protocols: super::support::protocols(&["range", "sticky"]),
        ..request("")
    };
    let joined = shard.stable(&[both.clone(), both.clone()]);
    shard.restart();
    let again = JoinRequest {
        member_id: joined[1].member_id.clone(),
        ..both
    };
    assert_eq!(shard.join(&again), None);
    assert_eq!(
        shard.beat(&joined[0].member_id, 2),
        Err(RebalanceInProgress)
    );
}

#[test]
fn a_deleted_group_is_gone_for_good() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request("")]).remove(0);
    shard
        .leave(&[super::support::leaving(&joined.member_id)])
        .unwrap();
    let tombstone = GroupRecord::ClassicGroup {
        group_id: GROUP.to_owned(),
        value: None,
    };
    shard.groups.apply(&tombstone);
    shard.log.push(tombstone);
    assert_eq!(shard.state(), ClassicGroupState::Dead);
    assert_eq!(shard.groups.next_deadline(), None);
    shard.restart();
    assert_eq!(shard.state(), ClassicGroupState::Dead);
}

#[test]
fn the_log_alone_gives_the_group_that_the_coordinator_has() {
    let mut shard = Shard::new();
    shard.stable(&[static_request("a"), request(""), static_request("b")]);
    shard.join(&static_request("b")).unwrap().unwrap();
    let described = shard.groups.classic_describe(GROUP);
    shard.restart();
    assert_eq!(shard.groups.classic_describe(GROUP), described);
}
