//! The `range` assignor: each topic's partitions in runs of neighbours, by the members' order.
//!
//! Static members come first, in the order of their instance ids, so that a static member that
//! returns under another member id has its place again; then the others by member id. With P
//! partitions and M members the first P mod M members have one partition more. Nothing depends on
//! what was assigned before.

use std::collections::BTreeMap;

use super::assignor::AssignorMember;
use crate::group::partitions::by_topic;
use crate::types::{TopicPartition, TopicPartitions, Uuid};

pub(super) fn assign(
    members: &[AssignorMember<'_>],
    count: &dyn Fn(&Uuid) -> i32,
) -> Vec<Vec<TopicPartitions>> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&index| {
        let member = &members[index];
        let instance = member.instance_id;
        (instance.is_none(), instance, member.member_id)
    });
    let mut subscribers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for &index in &order {
        for &topic_id in members[index].topics {
            subscribers.entry(topic_id).or_default().push(index);
        }
    }
    let mut assigned = vec![Vec::new(); members.len()];
    for (topic_id, subscribers) in subscribers {
        let partitions = count(&topic_id);
        let size = i32::try_from(subscribers.len()).unwrap_or(i32::MAX);
        let (least, longer) = (partitions / size, partitions % size);
        let mut next = 0;
        for (place, index) in (0..).zip(subscribers) {
            let end = next + least + i32::from(place < longer);
            assigned[index].extend((next..end).map(|partition| TopicPartition {
                topic_id,
                partition,
            }));
            next = end;
        }
    }
    assigned.into_iter().map(by_topic).collect()
}
