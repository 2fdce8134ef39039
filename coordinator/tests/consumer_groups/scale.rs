//! Work grows with what changes. Counted in records, which stand for work.

use crate::support::{Shard, beat, join};

#[test]
fn a_hundred_members_settle_over_a_thousand_partitions() {
    let mut shard = Shard::at_once(&[("t", 1_000)]);
    let members: Vec<String> = (0..100).map(|n| format!("member-{n:03}")).collect();
    let mut has = vec![Vec::new(); members.len()];
    let mut epochs = vec![0; members.len()];
    for (at, member) in members.iter().enumerate() {
        let (epoch, told) = shard.told(&join(member, &["t"]));
        (epochs[at], has[at]) = (epoch, told.unwrap());
    }
    let joined = shard.log.len();
    for _ in 0..4 {
        for (at, member) in members.iter().enumerate() {
            let (epoch, told) = shard.told(&beat(member, epochs[at]).owns(&has[at]));
            epochs[at] = epoch;
            has[at] = told.unwrap_or_else(|| has[at].clone());
        }
    }
    assert_eq!(shard.state(), ("Stable", 101, 101));
    assert!(has.iter().all(|topics| topics[0].1.len() == 10));
    // To give up, to have given up, to get: at most so many records a member after the last join.
    let written: usize = shard.log[joined..].iter().map(Vec::len).sum();
    assert!(written <= 4 * members.len(), "{written} records");
    let settled = shard.log.len();
    for (at, member) in members.iter().enumerate() {
        assert_eq!(shard.told(&beat(member, epochs[at])), (101, None));
    }
    assert_eq!(
        shard.log.len(),
        settled,
        "heartbeats without news write nothing"
    );
}
