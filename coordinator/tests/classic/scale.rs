//! Many members, many groups: a cost that grows with the square of their number would take minutes.

use ottla_coordinator::group::classic::{ClassicGroupState, JoinRequest, JoinResponse};

use super::support::{Shard, blob, request, sync_of};

const MEMBERS: usize = 3_000;
const GROUPS: usize = 5_000;

#[test]
fn a_rebalance_of_many_members_settles() {
    let mut shard = Shard::delayed();
    let tickets: Vec<_> = (0..MEMBERS)
        .map(|_| shard.send_join(&request("")))
        .collect();
    shard.advance(6_000);
    let mut joined: Vec<JoinResponse> = tickets.iter().map(|&t| shard.joined(t)).collect();
    for round in 1..5 {
        for member in &joined {
            assert_eq!(member.generation, round);
            shard.send_sync(&sync_of(member, Vec::new()));
        }
        assert_eq!(shard.state(), ClassicGroupState::Stable);
        let mut tickets = Vec::new();
        for member in &joined {
            let mut again = request(&member.member_id);
            again.protocols[0].1 = blob(&format!("round {round}"));
            tickets.push(shard.send_join(&again));
        }
        joined = tickets.iter().map(|&t| shard.joined(t)).collect();
    }
}

#[test]
fn many_groups_live_and_expire() {
    let mut shard = Shard::new();
    for number in 0..GROUPS {
        let request = JoinRequest {
            group_id: format!("g{number}"),
            ..request("")
        };
        shard.send_join(&request);
    }
    let waiting = shard.groups.list(&["CompletingRebalance"], &[]);
    assert_eq!(waiting.len(), GROUPS);
    shard.advance(10_000);
    let empty = shard.groups.list(&["Empty"], &["classic"]);
    assert_eq!(empty.len(), GROUPS);
}
