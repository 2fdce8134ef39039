//! Joining: ids, sizes, protocols, the first rebalance.

use ottla_coordinator::group::classic::{ClassicGroupState, JoinRequest};
use ottla_coordinator::group::plan::GroupErrorKind::{
    GroupMaxSizeReached, InconsistentGroupProtocol, InvalidGroupId, InvalidSessionTimeout,
    MemberIdRequired, RebalanceInProgress, UnknownMemberId,
};

use super::support::{Shard, protocols, request, sync_of};

#[test]
fn the_first_member_of_a_group_leads_at_once() {
    let mut shard = Shard::new();
    let joined = shard.join(&request("")).unwrap().unwrap();
    assert_eq!((joined.generation, &*joined.leader), (1, "id-1"));
    assert_eq!(joined.protocol.as_deref(), Some("range"));
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    let members: Vec<_> = joined.members.iter().map(|m| &*m.member_id).collect();
    assert_eq!(members, ["id-1"]);
    assert_eq!(&*joined.members[0].metadata, b"m-range");
    assert_eq!(shard.state(), ClassicGroupState::CompletingRebalance);
}

#[test]
fn a_new_group_is_logged_before_anybody_is_in_it() {
    let mut shard = Shard::new();
    shard.send_join(&request(""));
    let record = shard.last_record().unwrap();
    assert_eq!((record.generation, record.members.len()), (0, 0));
}

#[test]
fn a_member_without_an_id_is_given_one_and_joins_with_it() {
    let mut shard = Shard::new();
    let first = JoinRequest {
        needs_known_id: true,
        ..request("")
    };
    let refused = shard.join(&first).unwrap().unwrap_err();
    assert_eq!(refused.kind, MemberIdRequired);
    assert_eq!(shard.members(), [""; 0]);
    let again = JoinRequest {
        member_id: refused.member_id.clone(),
        ..first
    };
    let joined = shard.join(&again).unwrap().unwrap();
    assert_eq!(joined.member_id, refused.member_id);
}

#[test]
fn an_id_that_is_not_used_in_a_session_is_void() {
    let mut shard = Shard::new();
    let member_id = shard.invited();
    shard.advance(10_000);
    assert_eq!(shard.refused(&request(&member_id)), UnknownMemberId);
    assert_eq!(shard.groups.next_deadline(), None);
}

#[test]
fn a_rebalance_waits_for_those_who_were_given_an_id() {
    let mut shard = Shard::new();
    shard.stable(&[request("")]);
    let invited = shard.invited();
    let leader = shard.send_join(&request("id-1"));
    assert!(!shard.joins.contains_key(&leader));
    shard.send_join(&request(&invited));
    assert_eq!(shard.joined(leader).members.len(), 2);
}

#[test]
fn ids_and_groups_that_nobody_knows_are_refused() {
    let mut shard = Shard::new();
    assert_eq!(shard.refused(&request("nobody")), UnknownMemberId);
    assert_eq!(shard.state(), ClassicGroupState::Dead);
    shard.stable(&[request("")]);
    assert_eq!(shard.refused(&request("nobody")), UnknownMemberId);
    let nameless = JoinRequest {
        group_id: String::new(),
        ..request("")
    };
    assert_eq!(shard.refused(&nameless), InvalidGroupId);
}

#[test]
fn session_timeouts_are_bounded() {
    let mut shard = Shard::new();
    for ms in [5_999, 1_800_001] {
        let odd = JoinRequest {
            session_timeout_ms: ms,
            ..request("")
        };
        assert_eq!(shard.refused(&odd), InvalidSessionTimeout);
    }
    assert_eq!(shard.state(), ClassicGroupState::Dead);
}

#[test]
fn members_share_a_type_and_a_protocol() {
    let mut shard = Shard::new();
    let silent = JoinRequest {
        protocols: Vec::new(),
        ..request("")
    };
    assert_eq!(shard.refused(&silent), InconsistentGroupProtocol);
    assert!(shard.log.is_empty());
    shard.stable(&[request("")]);
    let worker = JoinRequest {
        protocol_type: "connect".to_owned(),
        ..request("")
    };
    assert_eq!(shard.refused(&worker), InconsistentGroupProtocol);
    let stranger = JoinRequest {
        protocols: protocols(&["sticky"]),
        ..request("")
    };
    assert_eq!(shard.refused(&stranger), InconsistentGroupProtocol);
    assert_eq!(shard.state(), ClassicGroupState::Stable);
}

#[test]
fn the_protocol_that_most_prefer_is_chosen_among_those_that_all_speak() {
    let mut shard = Shard::new();
    let speaks = |names: &[&str]| JoinRequest {
        protocols: protocols(names),
        ..request("")
    };
    let joined = shard.stable(&[
        speaks(&["a", "b", "c"]),
        speaks(&["d", "c", "b"]),
        speaks(&["c", "b"]),
    ]);
    assert_eq!(joined[0].protocol.as_deref(), Some("c"));
    assert_eq!(&*joined[0].members[1].metadata, b"m-c");
}

#[test]
fn a_group_has_a_most_of_members() {
    let mut shard = Shard::new();
    shard.config.max_size = 2;
    let joined = shard.stable(&[request(""), request("")]);
    let refused = shard.join(&request("")).unwrap().unwrap_err();
    assert_eq!(
        (refused.kind, &*refused.member_id),
        (GroupMaxSizeReached, "")
    );
    // In a rebalance the places go to those who come first.
    let again = shard.send_join(&request(&joined[0].member_id));
    let new = shard.send_join(&request(""));
    assert!(!shard.joins.contains_key(&new));
    assert_eq!(
        shard.refused(&request(&joined[1].member_id)),
        GroupMaxSizeReached
    );
    assert_eq!(shard.joined(again).members.len(), 2);
    assert_eq!(shard.joined(new).generation, 3);
}

#[test]
fn the_first_rebalance_waits_and_is_extended_by_whoever_comes() {
    let mut shard = Shard::delayed();
    let first = shard.send_join(&request(""));
    shard.advance(2_900);
    let second = shard.send_join(&request(""));
    shard.advance(100);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
    shard.advance(2_999);
    assert!(shard.joins.is_empty());
    shard.advance(1);
    assert_eq!(shard.joined(first).generation, 1);
    assert_eq!(shard.joined(second).generation, 1);
}

#[test]
fn the_first_rebalance_is_extended_up_to_the_rebalance_timeout() {
    let mut shard = Shard::delayed();
    let hasty = JoinRequest {
        rebalance_timeout_ms: 7_000,
        ..request("")
    };
    let first = shard.send_join(&hasty);
    for _ in 0..6 {
        shard.advance(1_000);
        shard.send_join(&hasty);
    }
    shard.advance(999);
    assert!(!shard.joins.contains_key(&first));
    shard.advance(1);
    assert_eq!(shard.joined(first).members.len(), 7);
}

#[test]
fn a_member_that_missed_the_answer_gets_it_again() {
    let mut shard = Shard::new();
    let first = shard.join(&request("")).unwrap().unwrap();
    // Nobody has assigned yet.
    let again = shard.join(&request("id-1")).unwrap().unwrap();
    assert_eq!(again, first);
}

#[test]
fn a_follower_that_missed_the_answer_of_a_stable_group_gets_it_again() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let again = shard.join(&request(&joined[1].member_id)).unwrap().unwrap();
    assert_eq!(again, joined[1]);
    assert_eq!(shard.state(), ClassicGroupState::Stable);
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    assert_eq!(shard.join(&request(&joined[0].member_id)), None);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
    assert_eq!(
        shard.beat(&joined[1].member_id, 2),
        Err(RebalanceInProgress)
    );
}

#[test]
fn changed_metadata_starts_a_rebalance() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let changed = JoinRequest {
        protocols: protocols(&["range", "sticky"]),
        ..request(&joined[1].member_id)
    };
    assert_eq!(shard.join(&changed), None);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
}

#[test]
fn a_join_that_is_sent_again_takes_the_place_of_the_parked_one() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let parked = shard.send_join(&request(&joined[0].member_id));
    let again = shard.send_join(&request(&joined[0].member_id));
    assert_eq!(
        shard.joins[&parked].clone().unwrap_err().kind,
        RebalanceInProgress
    );
    shard.send_join(&request(&joined[1].member_id));
    assert_eq!(shard.joined(again).generation, 3);
}

#[test]
fn a_new_member_is_not_answered_for_ever() {
    let mut shard = Shard::new();
    let patient = JoinRequest {
        rebalance_timeout_ms: 1_000_000,
        session_timeout_ms: 1_800_000,
        ..request("")
    };
    shard.stable(std::slice::from_ref(&patient));
    let new = shard.send_join(&patient);
    shard.advance(299_999);
    assert!(!shard.joins.contains_key(&new));
    shard.advance(1);
    assert_eq!(shard.joins[&new].clone().unwrap_err().kind, UnknownMemberId);
    assert_eq!(shard.members(), ["id-1"]);
}

#[test]
fn a_broken_log_lets_nobody_begin_a_group() {
    let mut shard = Shard::new();
    shard.is_broken = true;
    shard.send_join(&request(""));
    assert_eq!(shard.state(), ClassicGroupState::Dead);
    shard.is_broken = false;
    let joined = shard.join(&request("")).unwrap().unwrap();
    shard.is_broken = true;
    let sync = sync_of(&joined, Vec::new());
    assert_eq!(shard.sync(&sync), None);
    assert_eq!(shard.state(), ClassicGroupState::CompletingRebalance);
    shard.is_broken = false;
    shard.sync(&sync).unwrap().unwrap();
    assert_eq!(shard.state(), ClassicGroupState::Stable);
}
