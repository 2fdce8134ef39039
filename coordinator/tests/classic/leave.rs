//! Leaving, alone and together.

use ottla_coordinator::group::classic::ClassicGroupState;
use ottla_coordinator::group::plan::GroupErrorKind::{
    FencedInstanceId, RebalanceInProgress, UnknownMemberId,
};

use super::support::{Shard, leaving, leaving_instance, request, static_request};

#[test]
fn the_others_rebalance_at_once() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    assert_eq!(
        shard.leave(&[leaving(&joined[1].member_id)]),
        Ok(vec![Ok(())])
    );
    assert_eq!(
        shard.beat(&joined[0].member_id, 2),
        Err(RebalanceInProgress)
    );
    let again = shard.join(&request(&joined[0].member_id)).unwrap().unwrap();
    assert_eq!((again.generation, again.members.len()), (3, 1));
}

#[test]
fn the_last_one_leaves_an_empty_group() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request("")]).remove(0);
    assert_eq!(shard.leave(&[leaving(&joined.member_id)]), Ok(vec![Ok(())]));
    assert_eq!(shard.state(), ClassicGroupState::Empty);
    assert_eq!(shard.last_record().unwrap().members, []);
    assert_eq!(shard.groups.next_deadline(), None);
    assert_eq!(
        shard.leave(&[leaving(&joined.member_id)]),
        Ok(vec![Err(UnknownMemberId)])
    );
}

#[test]
fn nobody_leaves_a_group_that_does_not_exist() {
    let mut shard = Shard::new();
    assert_eq!(shard.leave(&[leaving("x")]), Ok(vec![Err(UnknownMemberId)]));
}

#[test]
fn several_leave_together_each_with_its_own_answer() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[
        static_request("i"),
        static_request("j"),
        static_request("k"),
        request(""),
    ]);
    let id = |prefix: &str| {
        let ids = joined.iter().map(|j| j.member_id.clone());
        ids.into_iter().find(|id| id.starts_with(prefix)).unwrap()
    };
    let answers = shard.leave(&[
        leaving_instance("", "i"),
        leaving_instance(&id("i-"), "j"),
        leaving_instance(&id("j-"), "j"),
        leaving_instance("", "unknown"),
        leaving("stranger"),
    ]);
    assert_eq!(
        answers,
        Ok(vec![
            Ok(()),
            Err(FencedInstanceId),
            Ok(()),
            Err(UnknownMemberId),
            Err(UnknownMemberId),
        ])
    );
    assert_eq!(shard.members(), [id("id-"), id("k-")]);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
}

#[test]
fn who_was_given_an_id_may_give_it_back() {
    let mut shard = Shard::new();
    shard.stable(&[request("")]);
    let invited = shard.invited();
    let leader = shard.send_join(&request("id-1"));
    assert!(!shard.joins.contains_key(&leader));
    assert_eq!(shard.leave(&[leaving(&invited)]), Ok(vec![Ok(())]));
    assert_eq!(shard.joined(leader).members.len(), 1);
    assert_eq!(shard.refused(&request(&invited)), UnknownMemberId);
}

#[test]
fn a_rebalance_does_not_wait_for_who_has_left() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let leader = shard.send_join(&request(&joined[0].member_id));
    assert!(!shard.joins.contains_key(&leader));
    assert_eq!(
        shard.leave(&[leaving(&joined[1].member_id)]),
        Ok(vec![Ok(())])
    );
    assert_eq!(shard.joined(leader).members.len(), 1);
}

#[test]
fn what_a_member_had_parked_is_answered_when_it_leaves() {
    let mut shard = Shard::new();
    let joined = shard.stable(&[request(""), request("")]);
    let parked = shard.send_join(&request(&joined[0].member_id));
    assert_eq!(
        shard.leave(&[leaving(&joined[0].member_id)]),
        Ok(vec![Ok(())])
    );
    assert_eq!(
        shard.joins[&parked].clone().unwrap_err().kind,
        UnknownMemberId
    );
}
