//! Members of the classic protocol in consumer groups, and groups that go from one protocol to the
//! other while they live, as Kafka 4.4.0 does it.

use ottla_coordinator::group::GroupListing;
use ottla_coordinator::group::classic::{JoinAnswer, JoinRequest, JoinResponse};
use ottla_coordinator::group::consumer::request::MigrationPolicy;
use ottla_coordinator::group::plan::GroupErrorKind::{
    self, FencedInstanceId, GroupIdNotFound, IllegalGeneration, InconsistentGroupProtocol,
    MemberIdRequired, RebalanceInProgress, UnknownMemberId,
};

use crate::support::{Shard, beat, join, subscription};

fn generation(answer: &JoinAnswer) -> Result<i32, GroupErrorKind> {
    let generation = |joined: &JoinResponse| joined.generation;
    answer
        .as_ref()
        .map(generation)
        .map_err(|refusal| refusal.kind)
}

fn listed(shard: &Shard) -> Vec<(&'static str, &'static str)> {
    let all = shard.groups.list(&[], &[]);
    let of = |group: &GroupListing| (group.group_type.name(), group.state);
    all.iter().map(of).collect()
}

/// A stable classic group of the member "new", with all three partitions of `t`.
fn classic() -> Shard {
    let mut shard = Shard::at_once(&[("t", 3)]);
    let joined = shard.join_classic("", &[]);
    assert_eq!(generation(&joined), Ok(1));
    let synced = shard.sync_with("new", 1, &[("new", vec![0, 1, 2])]);
    assert_eq!(synced, Ok(vec![(1, vec![0, 1, 2])]));
    assert_eq!(listed(&shard), [("classic", "Stable")]);
    shard
}

/// That group with a member of the consumer protocol, all settled.
fn mixed() -> Shard {
    let mut shard = classic();
    shard.told(&join("B", &["t"]));
    shard.join_classic("new", &[(1, vec![0, 1, 2])]).unwrap();
    shard.sync_classic("new", 1).unwrap();
    shard.join_classic("new", &[(1, vec![0, 1])]).unwrap();
    shard.sync_classic("new", 2).unwrap();
    assert_eq!(
        shard.told(&beat("B", 2).owns(&[])),
        (2, Some(vec![(1, vec![2])]))
    );
    assert_eq!(shard.state(), ("Stable", 2, 2));
    shard
}

#[test]
fn a_consumer_member_upgrades_a_classic_group_that_lives_on() {
    let mut shard = classic();
    assert_eq!(shard.told(&join("B", &["t"])), (2, Some(vec![])));
    assert_eq!(listed(&shard), [("consumer", "Reconciling")]);
    assert_eq!(shard.heart("new", 1), Err(RebalanceInProgress));
    assert_eq!(shard.heart("new", 9), Err(IllegalGeneration));
    assert_eq!(shard.heart("B", 2), Err(UnknownMemberId));
    assert_eq!(shard.sync_classic("new", 1), Err(RebalanceInProgress));

    // It is told to give up one, gives it up, and has the next generation.
    let joined = shard.join_classic("new", &[(1, vec![0, 1, 2])]);
    assert_eq!(generation(&joined), Ok(1));
    assert_eq!(shard.sync_classic("new", 99), Err(IllegalGeneration));
    assert_eq!(shard.sync_classic("new", 1), Ok(vec![(1, vec![0, 1])]));
    assert_eq!(shard.heart("new", 1), Err(RebalanceInProgress));
    assert_eq!(
        shard.told(&beat("B", 2).owns(&[])),
        (2, None),
        "not given up yet"
    );
    let joined = shard.join_classic("new", &[(1, vec![0, 1])]);
    assert_eq!(generation(&joined), Ok(2));
    assert_eq!(shard.sync_classic("new", 2), Ok(vec![(1, vec![0, 1])]));
    assert_eq!(shard.heart("new", 2), Ok(()));
    assert_eq!(
        shard.told(&beat("B", 2).owns(&[])),
        (2, Some(vec![(1, vec![2])]))
    );
    assert_eq!(shard.state(), ("Stable", 2, 2));
}

#[test]
fn a_mixed_group_survives_a_restart() {
    let mut shard = mixed();
    shard.restart();
    assert_eq!(shard.state(), ("Stable", 2, 2));
    assert_eq!(shard.heart("new", 2), Ok(()));
    assert_eq!(shard.told(&beat("B", 2)), (2, None));
    let described = shard.describe();
    assert!(
        described.members[1].member.classic.is_some(),
        "{described:?}"
    );
}

#[test]
fn members_of_the_classic_protocol_join_and_leave_a_consumer_group() {
    let mut shard = Shard::at_once(&[("t", 4)]);
    shard.told(&join("B", &["t"]));
    let request = JoinRequest {
        group_id: "g".to_owned(),
        new_member_id: "C".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 5_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), subscription(&["t"], &[]))],
        needs_known_id: true,
        ..JoinRequest::default()
    };
    let refused = shard.send_join(&request).unwrap_err();
    assert_eq!(
        (refused.kind, refused.member_id.as_str()),
        (MemberIdRequired, "C")
    );
    let joined = shard.join_classic("C", &[]).unwrap();
    assert_eq!((joined.generation, joined.leader.as_str()), (3, ""));
    assert_eq!(shard.sync_classic("C", 3), Ok(vec![]));
    shard.told(&beat("B", 2).owns(&[(1, vec![0, 1, 2, 3])]));
    assert_eq!(
        shard.heart("C", 3),
        Ok(()),
        "what it lacks is still with the other"
    );
    shard.told(&beat("B", 2).owns(&[(1, vec![0, 1])]));
    assert_eq!(
        shard.heart("C", 3),
        Err(RebalanceInProgress),
        "now it is not"
    );
    shard.join_classic("C", &[]).unwrap();
    assert_eq!(shard.sync_classic("C", 3), Ok(vec![(1, vec![2, 3])]));

    let mut other = request.clone();
    other.member_id = "D".to_owned();
    other.protocols[0].0 = "other".to_owned();
    assert_eq!(
        generation(&shard.send_join(&other)),
        Err(InconsistentGroupProtocol)
    );
    other.protocols = request.protocols.clone();
    other.protocol_type = "connect".to_owned();
    assert_eq!(
        generation(&shard.send_join(&other)),
        Err(InconsistentGroupProtocol)
    );

    let left = shard.leave_classic(&["C", "nobody", "C", "B"]);
    let gone = Err(UnknownMemberId);
    assert_eq!(left, [Ok(()), gone, gone, gone]);
    assert_eq!(shard.describe().members.len(), 1);
}

#[test]
fn a_classic_member_that_does_not_join_again_in_time_is_removed() {
    let mut shard = classic();
    shard.told(&join("B", &["t"]));
    for _ in 0..5 {
        assert_eq!(shard.heart("new", 1), Err(RebalanceInProgress));
        shard.wait(1_000);
    }
    assert_eq!(shard.heart("new", 1), Err(UnknownMemberId));
    assert_eq!(
        shard.told(&beat("B", 2).owns(&[])).1,
        Some(vec![(1, vec![0, 1, 2])])
    );
}

#[test]
fn a_silent_classic_member_is_removed_after_its_own_session() {
    let mut shard = mixed();
    shard.wait(10_000);
    assert_eq!(shard.heart("new", 2), Err(UnknownMemberId));
    assert_eq!(shard.describe().members.len(), 1);
}

#[test]
fn with_its_last_consumer_member_a_group_goes_back_to_the_classic_protocol() {
    let mut shard = mixed();
    shard.told(&beat("B", -1));
    assert_eq!(listed(&shard), [("classic", "PreparingRebalance")]);
    assert_eq!(shard.heart("new", 2), Err(IllegalGeneration));
    assert_eq!(shard.refused(&beat("B", -1)).kind, GroupIdNotFound);
    let joined = shard.join_classic("new", &[]).unwrap();
    assert_eq!(joined.leader, "new");
    let generation = joined.generation;
    let synced = shard.sync_with("new", generation, &[("new", vec![0, 1, 2])]);
    assert_eq!(synced, Ok(vec![(1, vec![0, 1, 2])]));
    assert_eq!(listed(&shard), [("classic", "Stable")]);
    shard.restart();
    assert_eq!(listed(&shard), [("classic", "Stable")]);
    assert_eq!(shard.heart("new", generation), Ok(()));
}

#[test]
fn the_session_of_the_last_consumer_member_takes_the_group_back_too() {
    let mut shard = mixed();
    for _ in 0..9 {
        shard.wait(5_000);
        let _ = shard.heart("new", 2);
    }
    assert_eq!(listed(&shard), [("classic", "PreparingRebalance")]);
}

#[test]
fn the_policy_holds_groups_where_they_are() {
    let mut shard = classic();
    shard.config.migration = MigrationPolicy::by_name("Downgrade");
    let refused = shard.refused(&join("B", &["t"]));
    assert_eq!(refused.kind, GroupIdNotFound);
    assert_eq!(listed(&shard), [("classic", "Stable")]);
    let mut shard = mixed();
    shard.config.migration = MigrationPolicy::by_name("UPGRADE");
    shard.told(&beat("B", -1));
    assert_eq!(listed(&shard), [("consumer", "Assigning")]);
}

#[test]
fn groups_without_members_change_their_protocol_freely() {
    let mut shard = classic();
    assert_eq!(shard.leave_classic(&["new"]), [Ok(())]);
    assert_eq!(listed(&shard), [("classic", "Empty")]);
    shard.config.migration = MigrationPolicy::by_name("disabled");
    assert_eq!(
        shard.told(&join("B", &["t"])),
        (2, Some(vec![(1, vec![0, 1, 2])]))
    );
    assert_eq!(listed(&shard), [("consumer", "Stable")]);
    shard.told(&beat("B", -1));
    assert_eq!(generation(&shard.join_classic("", &[])), Ok(1));
    assert_eq!(listed(&shard), [("classic", "CompletingRebalance")]);
    shard.restart();
    assert_eq!(listed(&shard), [("classic", "Empty")]);
}

#[test]
fn a_group_of_something_else_than_consumers_is_not_upgraded() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    let request = JoinRequest {
        group_id: "g".to_owned(),
        new_member_id: "w".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 5_000,
        protocol_type: "connect".to_owned(),
        protocols: vec![("range".to_owned(), subscription(&["t"], &[]))],
        ..JoinRequest::default()
    };
    shard.send_join(&request).unwrap();
    let refused = shard.refused(&join("B", &["t"]));
    let text = "Cannot upgrade classic group g to consumer group because the group does not use \
                the consumer embedded protocol.";
    assert_eq!(
        (refused.kind, refused.message.as_deref()),
        (GroupIdNotFound, Some(text))
    );
}

#[test]
fn a_static_member_keeps_its_place_from_protocol_to_protocol() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("A", &["t"]).instance("one"));
    let mut request = JoinRequest {
        group_id: "g".to_owned(),
        new_member_id: "S".to_owned(),
        instance_id: Some("two".to_owned()),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 5_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), subscription(&["t"], &[]))],
        ..JoinRequest::default()
    };
    assert_eq!(generation(&shard.send_join(&request)), Ok(3));
    request.new_member_id = "S2".to_owned();
    assert_eq!(
        generation(&shard.send_join(&request)),
        Ok(3),
        "takes over at once"
    );
    assert_eq!(shard.heart("S", 3), Err(UnknownMemberId));
    request.member_id = "S".to_owned();
    assert_eq!(
        generation(&shard.send_join(&request)),
        Err(FencedInstanceId)
    );
    // A consumer member takes the place of the classic one.
    let (epoch, _) = shard.told(&join("C", &["t"]).instance("two"));
    assert_eq!(epoch, 3);
    assert_eq!(shard.describe().members.len(), 2);
    assert_eq!(listed(&shard), [("consumer", "Reconciling")]);
}
