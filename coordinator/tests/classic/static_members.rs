//! Static members (KIP-345, KIP-814).

use ottla_coordinator::group::classic::{
    ClassicGroupState, HeartbeatRequest, JoinRequest, SyncRequest,
};
use ottla_coordinator::group::plan::GroupErrorKind::{
    FencedInstanceId, RebalanceInProgress, UnknownMemberId,
};

use super::support::{
    GROUP, SESSION_MS, Shard, blob, leaving_instance, protocols, request, static_request, sync_of,
};

/// A stable group of the static members `a` (leader) and `b`; their ids.
fn pair(shard: &mut Shard) -> (String, String) {
    let joined = shard.stable(&[static_request("a"), static_request("b")]);
    assert!(joined[0].member_id.starts_with("a-"));
    (joined[0].member_id.clone(), joined[1].member_id.clone())
}

#[test]
fn a_follower_starts_anew_without_a_rebalance() {
    let mut shard = Shard::new();
    let (leader, old) = pair(&mut shard);
    let back = shard.join(&static_request("b")).unwrap().unwrap();
    assert_ne!(back.member_id, old);
    assert_eq!((back.generation, &back.leader), (2, &leader));
    assert_eq!((back.members.len(), back.skip_assignment), (0, false));
    assert_eq!(shard.state(), ClassicGroupState::Stable);
    let synced = shard.sync(&sync_of(&back, Vec::new())).unwrap().unwrap();
    assert_eq!(*synced.assignment, *blob(&format!("a-{old}")));
    assert_eq!(shard.beat(&leader, 2), Ok(()));
    assert_eq!(shard.beat(&back.member_id, 2), Ok(()));
    let record = shard.last_record().unwrap();
    let ids: Vec<_> = record.members.iter().map(|m| &m.member_id).collect();
    assert_eq!(ids, [&leader, &back.member_id]);
}

#[test]
fn the_id_of_the_one_before_is_fenced() {
    let mut shard = Shard::new();
    let (_, old) = pair(&mut shard);
    shard.join(&static_request("b")).unwrap().unwrap();
    let beat = HeartbeatRequest {
        group_id: GROUP.to_owned(),
        member_id: old.clone(),
        instance_id: Some("b".to_owned()),
        generation: 2,
    };
    let plan = shard.groups.classic_heartbeat(shard.now, &beat);
    assert_eq!(shard.commit(plan), Some(Err(FencedInstanceId)));
    let join = JoinRequest {
        member_id: old.clone(),
        ..static_request("b")
    };
    assert_eq!(shard.refused(&join), FencedInstanceId);
    let sync = SyncRequest {
        group_id: GROUP.to_owned(),
        member_id: old.clone(),
        instance_id: Some("b".to_owned()),
        generation: 2,
        ..SyncRequest::default()
    };
    assert_eq!(shard.sync(&sync), Some(Err(FencedInstanceId)));
    assert_eq!(shard.beat(&old, 2), Err(UnknownMemberId));
    let stranger = JoinRequest {
        member_id: old,
        ..static_request("z")
    };
    assert_eq!(shard.refused(&stranger), UnknownMemberId);
}

#[test]
fn a_leader_that_starts_anew_does_not_know_that_it_leads_before_version_9() {
    let mut shard = Shard::new();
    let (old, _) = pair(&mut shard);
    let back = shard.join(&static_request("a")).unwrap().unwrap();
    assert_eq!((&back.leader, back.members.len()), (&old, 0));
    let synced = shard.sync(&sync_of(&back, Vec::new())).unwrap().unwrap();
    assert_eq!(*synced.assignment, *blob(&format!("a-{old}")));
    // The group does know.
    assert_eq!(
        shard.last_record().unwrap().leader.as_ref(),
        Some(&back.member_id)
    );
}

#[test]
fn a_leader_that_starts_anew_leads_without_assigning_from_version_9_on() {
    let mut shard = Shard::new();
    let (_, follower) = pair(&mut shard);
    let modern = JoinRequest {
        can_skip_assignment: true,
        ..static_request("a")
    };
    let back = shard.join(&modern).unwrap().unwrap();
    assert!(back.skip_assignment);
    assert_eq!(back.leader, back.member_id);
    let members: Vec<_> = back.members.iter().map(|m| &m.member_id).collect();
    assert_eq!(members.len(), 2);
    assert!(members.contains(&&back.member_id) && members.contains(&&follower));
    assert_eq!(shard.state(), ClassicGroupState::Stable);
}

#[test]
fn a_restart_that_would_change_the_protocol_is_a_rebalance() {
    let mut shard = Shard::new();
    let speaks = |instance: &str, names: &[&str]| JoinRequest {
        protocols: protocols(names),
        ..static_request(instance)
    };
    shard.stable(&[speaks("a", &["x", "y"]), speaks("b", &["x", "y"])]);
    // Only more of the same: no rebalance.
    let same = shard.join(&speaks("b", &["x", "y", "z"]));
    assert_eq!(same.unwrap().unwrap().generation, 2);
    let other = shard.join(&speaks("b", &["y"]));
    assert_eq!(other, None);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
}

#[test]
fn what_a_member_says_when_it_comes_back_counts_at_the_next_rebalance() {
    let mut shard = Shard::new();
    let (leader, _) = pair(&mut shard);
    let mut changed = static_request("b");
    changed.protocols[0].1 = blob("other topics");
    let back = shard.join(&changed).unwrap().unwrap();
    let leader = shard.send_join(&request_of(&leader, "a"));
    let mut again = changed.clone();
    again.member_id = back.member_id;
    shard.send_join(&again);
    assert_eq!(&*shard.joined(leader).members[1].metadata, b"other topics");
}

fn request_of(member_id: &str, instance: &str) -> JoinRequest {
    JoinRequest {
        member_id: member_id.to_owned(),
        ..static_request(instance)
    }
}

#[test]
fn a_restart_during_a_rebalance_takes_part_in_it() {
    let mut shard = Shard::new();
    let (leader, _) = pair(&mut shard);
    let waits = shard.send_join(&request_of(&leader, "a"));
    let parked = shard.send_join(&static_request("b"));
    assert_eq!(shard.joined(waits).generation, 3);
    assert_eq!(shard.joined(parked).generation, 3);
    // And again, before the leader has assigned.
    let once_more = shard.send_join(&static_request("b"));
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
    shard.send_join(&request_of(&leader, "a"));
    assert_eq!(shard.joined(once_more).generation, 4);
}

#[test]
fn a_parked_join_of_the_one_before_is_fenced() {
    let mut shard = Shard::new();
    let (_, old) = pair(&mut shard);
    shard.send_join(&request(""));
    let parked = shard.send_join(&request_of(&old, "b"));
    shard.send_join(&static_request("b"));
    assert_eq!(
        shard.joins[&parked].clone().unwrap_err().kind,
        FencedInstanceId
    );
}

#[test]
fn a_static_member_that_does_not_join_in_time_stays_until_its_session_ends() {
    let mut shard = Shard::new();
    let patient = |instance: &str| JoinRequest {
        session_timeout_ms: 300_000,
        ..static_request(instance)
    };
    let joined = shard.stable(&[patient("a"), patient("b")]);
    let new = shard.send_join(&request(""));
    let a = JoinRequest {
        member_id: joined[0].member_id.clone(),
        ..patient("a")
    };
    shard.send_join(&a);
    shard.advance(60_000);
    assert_eq!(shard.joined(new).generation, 3);
    assert_eq!(shard.members().len(), 3);
}

#[test]
fn a_group_of_absent_static_members_waits_for_one_of_them() {
    let mut shard = Shard::new();
    let patient = JoinRequest {
        session_timeout_ms: 300_000,
        ..static_request("a")
    };
    let joined = shard.stable(&[patient.clone(), request("")]);
    let dynamic = joined.iter().find(|j| j.member_id.starts_with("id-"));
    shard
        .leave(&[super::support::leaving(&dynamic.unwrap().member_id)])
        .unwrap();
    shard.advance(60_000);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
    let back = shard.join(&patient).unwrap().unwrap();
    assert_eq!((back.generation, back.members.len()), (3, 1));
}

#[test]
fn a_restart_whose_record_is_not_written_changes_nothing() {
    let mut shard = Shard::new();
    let (_, old) = pair(&mut shard);
    shard.is_broken = true;
    assert_eq!(shard.join(&static_request("b")), None);
    shard.is_broken = false;
    assert_eq!(shard.beat(&old, 2), Ok(()));
    let back = shard.join(&static_request("b")).unwrap().unwrap();
    assert_eq!(shard.beat(&back.member_id, 2), Ok(()));
    assert_eq!(shard.beat(&old, 2), Err(UnknownMemberId));
    shard.send_join(&request(""));
    assert_eq!(shard.beat(&back.member_id, 2), Err(RebalanceInProgress));
}

#[test]
fn absent_members_without_a_rebalance_timeout_are_not_waited_for_all_the_time() {
    let mut shard = Shard::new();
    let requests = ["i-1", "i-2"].map(|instance| JoinRequest {
        rebalance_timeout_ms: 0,
        ..static_request(instance)
    });
    shard.stable(&requests);
    shard.leave(&[leaving_instance("", "i-1")]).unwrap();
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
    shard.advance(1);
    assert_eq!(shard.state(), ClassicGroupState::PreparingRebalance);
    let next = shard.groups.next_deadline();
    assert!(next.is_some_and(|at| at >= shard.now + 100), "{next:?}");
    shard.advance(i64::from(SESSION_MS));
    assert_eq!(shard.state(), ClassicGroupState::Empty);
}
