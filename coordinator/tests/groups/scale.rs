//! Work grows with what changes, not with its square. Counted in records, which stand for work.

use ottla_coordinator::group::GroupCounts;
use ottla_coordinator::group::plan::GroupType;

use crate::support::{Shard, id};

#[test]
fn a_heartbeat_without_news_writes_nothing_however_large_the_group() {
    let mut shard = Shard::at_once(&[("t", 1_000)]);
    shard.config.max_size = 1_000;
    let members: Vec<String> = (0..100).map(|n| format!("member-{n:03}")).collect();
    for member in &members {
        shard.beat(member, 0, Some(&["t"])).unwrap();
    }
    for member in &members {
        let epoch = shard.epochs().1;
        let described = shard.groups.share_describe("g", &shard.topics).unwrap();
        let current = described
            .members
            .iter()
            .find(|m| m.member_id == *member)
            .unwrap();
        assert_eq!(
            shard.beat(member, current.member_epoch, None).unwrap().0,
            epoch
        );
    }
    let epoch = shard.epochs().1;
    let written = shard.log.len();
    for member in &members {
        assert_eq!(shard.beat(member, epoch, None), Ok((epoch, None)));
    }
    assert_eq!(shard.log.len(), written);
    assert!(
        shard
            .assigned()
            .values()
            .all(|topics| topics[0].1.len() == 10)
    );
}

#[test]
fn a_thousand_groups_live_and_expire() {
    let mut shard = Shard::at_once(&[("t", 2)]);
    for group in 0..1_000 {
        let request = Shard::request(&format!("g{group}"), "m", 0, Some(&["t"]));
        shard.send(&request).unwrap();
    }
    shard.topics.0.insert("t".to_owned(), (id(1), 3));
    for group in 0..1_000 {
        let request = Shard::request(&format!("g{group}"), "m", 2, None);
        assert_eq!(shard.send(&request).unwrap().member_epoch, 3);
    }
    shard.advance(45_000);
    let mut counts = GroupCounts::new();
    shard.groups.count(&mut counts);
    let all_empty = GroupCounts::from([((GroupType::Share, "Empty"), 1_000)]);
    assert_eq!(counts, all_empty);
}
