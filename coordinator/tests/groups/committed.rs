//! Committed offsets: who may commit, what is kept, what ends and when.

use std::sync::Arc;

use ottla_coordinator::group::consumer_protocol::{
    ConsumerProtocol, NamedPartitions, Subscription,
};
use ottla_coordinator::group::offsets::{
    CommitRequest, CommittedOffset, GroupOffsets, OffsetRules, OffsetToCommit, OffsetsToDelete,
};
use ottla_coordinator::group::plan::{GroupErrorKind, Plan};
use ottla_coordinator::group::records::{ClassicGroupValue, ClassicMemberValue, GroupRecord};
use ottla_coordinator::types::{Ts, Uuid};

use crate::support::{Shard, id};

const MINUTE: i64 = 60_000;
const RETENTION: i64 = 60 * MINUTE;
const RULES: OffsetRules = OffsetRules {
    retention_ms: RETENTION,
    check_interval_ms: MINUTE,
    consumers: &Plain,
};

/// Subscriptions are topic names with commas between them; `?` cannot be read.
#[derive(Debug)]
struct Plain;

impl ConsumerProtocol for Plain {
    fn subscription(&self, bytes: &[u8]) -> Option<Subscription> {
        let text = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| *text != "?")?;
        Some(Subscription {
            topics: text.split(',').map(str::to_owned).collect(),
            ..Subscription::default()
        })
    }

    fn assignment(&self, _: &[u8]) -> Option<NamedPartitions> {
        None
    }

    fn encode_subscription(&self, _: &Subscription) -> Vec<u8> {
        Vec::new()
    }

    fn encode_assignment(&self, _: i16, _: &NamedPartitions) -> Vec<u8> {
        Vec::new()
    }
}

/// A shard with topics `t` and `u` of two partitions, an hour's retention and a check a minute.
fn shard() -> Shard {
    let mut shard = Shard::at_once(&[("t", 2), ("u", 2)]);
    shard.groups.set_offset_rules(shard.now, RULES);
    shard
}

fn request<'a>(group: &str, member: &'a str, generation: i32) -> CommitRequest<'a> {
    CommitRequest {
        group_id: group.into(),
        member_id: member,
        instance_id: None,
        generation,
        knows_epochs: true,
        retention_ms: None,
        offsets: Vec::new(),
    }
}

fn offset(topic: &str, topic_id: Uuid, partition: i32, offset: i64) -> OffsetToCommit {
    OffsetToCommit {
        topic: topic.into(),
        topic_id,
        partition,
        offset,
        leader_epoch: 4,
        metadata: "m".into(),
    }
}

/// Commits from outside, offset 7 everywhere.
fn commit(shard: &mut Shard, group: &str, partitions: &[(&str, i32)]) {
    let mut request = request(group, "", -1);
    let with_ids = partitions.iter().map(|&(topic, partition)| {
        let topic_id = shard.topics.0[topic].0;
        offset(topic, topic_id, partition, 7)
    });
    request.offsets = with_ids.collect();
    let plan = shard.groups.commit_offsets(shard.now, request).unwrap();
    shard.commit(plan);
}

fn refusal(shard: &Shard, request: CommitRequest<'_>) -> Option<GroupErrorKind> {
    let planned = shard.groups.commit_offsets(shard.now, request);
    planned.err().map(|error| error.kind)
}

/// Loads the shard anew with a classic group whose members, by id, subscribe to what is given.
fn classic(shard: &mut Shard, protocol_type: &str, members: &[(&str, Option<&str>, &str)]) {
    let members = members
        .iter()
        .map(|(member, instance, topics)| ClassicMemberValue {
            member_id: (*member).to_owned(),
            instance_id: instance.map(str::to_owned),
            session_timeout_ms: i32::MAX,
            rebalance_timeout_ms: 10_000,
            subscription: topics.as_bytes().into(),
            ..ClassicMemberValue::default()
        });
    let value = ClassicGroupValue {
        protocol_type: protocol_type.to_owned(),
        generation: 3,
        protocol: Some("range".to_owned()),
        leader: None,
        state_timestamp: shard.now,
        members: members.collect(),
    };
    let record = GroupRecord::ClassicGroup {
        group_id: "g".to_owned(),
        value: Some(value),
    };
    shard.log.push(vec![record]);
    let mut groups = shard.replayed();
    let effects = groups.on_loaded(shard.now, &shard.config, &shard.topics);
    assert!(effects.is_empty());
    groups.set_offset_rules(shard.now, RULES);
    shard.groups = groups;
}

fn held(shard: &Shard, group: &str) -> Vec<(String, i32, i64)> {
    let offsets = shard.groups.offsets().group(group);
    let topics = offsets.into_iter().flat_map(GroupOffsets::topics);
    let each = topics.flat_map(|(topic, partitions)| {
        let of = partitions.iter();
        of.map(|(&partition, value)| (topic.to_string(), partition, value.offset))
    });
    each.collect()
}

fn exists(shard: &Shard, group: &str) -> bool {
    shard.groups.group_type(group).is_some()
}

#[test]
fn a_commit_from_outside_makes_a_simple_group_and_replaces_what_was_there() {
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0), ("t", 1)]);
    let listed = shard.groups.list(&[], &[]);
    assert_eq!(listed[0].group_id, "g");
    assert_eq!((listed[0].state, &*listed[0].protocol_type), ("Empty", ""));
    let mut again = request("g", "", -1);
    again.offsets = vec![offset("t", id(1), 1, -5)];
    let plan = shard.groups.commit_offsets(shard.now, again).unwrap();
    assert_eq!(plan.records.len(), 1);
    shard.commit(plan);
    assert_eq!(
        held(&shard, "g"),
        [("t".to_owned(), 0, 7), ("t".to_owned(), 1, -5)]
    );
    let offsets = shard.groups.fetch_offsets("g", None, -1).unwrap();
    let expected = CommittedOffset {
        offset: 7,
        leader_epoch: 4,
        metadata: "m".into(),
        commit_timestamp: shard.now,
        expire_timestamp: None,
        topic_id: id(1),
    };
    assert_eq!(offsets.unwrap().get("t", 0), Some(&expected));
    assert_eq!(shard.replayed().offsets().len(), 2);
}

#[test]
fn nothing_to_commit_makes_no_group() {
    let mut shard = shard();
    commit(&mut shard, "g", &[]);
    assert!(!exists(&shard, "g"));
    assert!(shard.log.is_empty());
}

#[test]
fn a_member_of_a_group_that_does_not_exist_is_told_so_in_the_words_of_its_version() {
    let shard = shard();
    assert_eq!(
        refusal(&shard, request("g", "m", 5)),
        Some(GroupErrorKind::GroupIdNotFound)
    );
    let old = CommitRequest {
        knows_epochs: false,
        ..request("g", "m", 5)
    };
    assert_eq!(
        refusal(&shard, old),
        Some(GroupErrorKind::IllegalGeneration)
    );
}

#[test]
fn a_group_with_members_takes_commits_of_its_generation_alone() {
    use GroupErrorKind::{FencedInstanceId, IllegalGeneration, UnknownMemberId};
    let mut shard = shard();
    classic(
        &mut shard,
        "consumer",
        &[("a", None, "t"), ("s", Some("i"), "t")],
    );
    for (member, instance, generation, refused) in [
        ("a", None, 3, None),
        ("s", Some("i"), 3, None),
        ("s", None, 3, None),
        ("a", None, 4, Some(IllegalGeneration)),
        ("a", None, 2, Some(IllegalGeneration)),
        ("a", None, -1, Some(IllegalGeneration)),
        ("b", None, 3, Some(UnknownMemberId)),
        ("", None, 3, Some(UnknownMemberId)),
        ("", None, -1, Some(UnknownMemberId)),
        ("a", Some("i"), 3, Some(FencedInstanceId)),
        ("", Some("i"), -1, Some(FencedInstanceId)),
        ("a", Some("j"), 3, Some(UnknownMemberId)),
    ] {
        let request = CommitRequest {
            instance_id: instance,
            ..request("g", member, generation)
        };
        assert_eq!(
            refusal(&shard, request),
            refused,
            "{member} {instance:?} {generation}"
        );
    }
    classic(&mut shard, "consumer", &[]);
    assert_eq!(refusal(&shard, request("g", "x", -1)), None);
    assert_eq!(refusal(&shard, request("g", "a", 3)), Some(UnknownMemberId));
}

#[test]
fn a_share_group_commits_nothing_and_has_no_offsets() {
    let mut shard = shard();
    shard.beat("m", 0, Some(&["t"])).unwrap();
    for generation in [-1, 2] {
        assert_eq!(
            refusal(&shard, request("g", "m", generation)),
            Some(GroupErrorKind::GroupIdNotFound)
        );
    }
    assert!(shard.groups.fetch_offsets("g", None, -1).unwrap().is_none());
    let refused = shard.groups.delete_offsets("g", &[]).unwrap_err();
    assert_eq!(refused.kind, GroupErrorKind::GroupIdNotFound);
}

fn delete(
    shard: &mut Shard,
    topics: &[(&str, &[i32])],
) -> Result<Vec<Option<GroupErrorKind>>, GroupErrorKind> {
    let topics: Vec<_> = topics
        .iter()
        .map(|(topic, partitions)| OffsetsToDelete {
            topic: (*topic).into(),
            partitions: partitions.to_vec(),
        })
        .collect();
    let plan = shard.groups.delete_offsets("g", &topics);
    let results = shard.commit(plan.map_err(|error| error.kind)?);
    Ok(results
        .into_iter()
        .map(|r| r.err().map(|e| e.kind))
        .collect())
}

#[test]
fn offsets_of_subscribed_topics_are_not_deleted_while_the_group_lives() {
    let subscribed = Some(GroupErrorKind::GroupSubscribedToTopic);
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0), ("u", 0), ("u", 1)]);
    classic(
        &mut shard,
        "consumer",
        &[("a", None, "t"), ("b", None, "t,v")],
    );
    let done = delete(&mut shard, &[("t", &[0]), ("u", &[0, 7]), ("v", &[])]);
    assert_eq!(done, Ok(vec![subscribed, None, subscribed]));
    assert_eq!(held(&shard, "g").len(), 2);
    // What cannot be read could be a subscription to anything.
    classic(
        &mut shard,
        "consumer",
        &[("a", None, "t"), ("b", None, "?")],
    );
    assert_eq!(delete(&mut shard, &[("u", &[1])]), Ok(vec![subscribed]));
    // Nobody knows what other members need.
    classic(&mut shard, "connect", &[("a", None, "t")]);
    assert_eq!(
        delete(&mut shard, &[("u", &[1])]),
        Err(GroupErrorKind::NonEmptyGroup)
    );
    classic(&mut shard, "consumer", &[]);
    assert_eq!(
        delete(&mut shard, &[("t", &[0]), ("u", &[1])]),
        Ok(vec![None, None])
    );
    assert_eq!(held(&shard, "g"), []);
    // The group goes when it is looked at the next time.
    assert!(exists(&shard, "g"));
    shard.advance(MINUTE);
    assert!(!exists(&shard, "g"));
    assert!(shard.replayed().list(&[], &[]).is_empty());
}

#[test]
fn a_group_is_deleted_with_its_offsets_if_it_is_empty() {
    let mut shard = shard();
    let kind = |result: Result<Plan<()>, ottla_coordinator::group::plan::GroupError>| {
        result.err().map(|error| (error.kind, error.message))
    };
    assert_eq!(
        kind(shard.groups.delete_group("g")),
        Some((GroupErrorKind::GroupIdNotFound, None))
    );
    commit(&mut shard, "g", &[("t", 0), ("u", 1)]);
    classic(&mut shard, "consumer", &[("a", None, "t")]);
    assert_eq!(
        kind(shard.groups.delete_group("g")),
        Some((GroupErrorKind::NonEmptyGroup, None))
    );
    classic(&mut shard, "consumer", &[]);
    let plan = shard.groups.delete_group("g").unwrap();
    shard.commit(plan);
    assert_eq!(shard.last_types(), [1, 1, 2]);
    assert!(!exists(&shard, "g") && shard.groups.offsets().is_empty());
    assert!(shard.replayed().offsets().is_empty());
}

#[test]
fn offsets_of_a_simple_group_expire_by_their_commit() {
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0)]);
    shard.advance(RETENTION / 2);
    commit(&mut shard, "g", &[("t", 1)]);
    shard.advance(RETENTION / 2 - 1);
    assert_eq!(held(&shard, "g").len(), 2);
    shard.advance(MINUTE);
    assert_eq!(held(&shard, "g"), [("t".to_owned(), 1, 7)]);
    shard.advance(RETENTION / 2);
    assert!(!exists(&shard, "g"));
    assert!(shard.replayed().list(&[], &[]).is_empty());
}

#[test]
fn offsets_of_a_group_of_members_expire_when_it_has_been_empty_for_long() {
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0), ("u", 0)]);
    classic(&mut shard, "consumer", &[("a", None, "t")]);
    shard.advance(2 * RETENTION);
    // A topic that nobody subscribes to any more is forgotten, one in use never.
    assert_eq!(held(&shard, "g"), [("t".to_owned(), 0, 7)]);
    classic(&mut shard, "consumer", &[]);
    shard.advance(RETENTION - MINUTE);
    assert_eq!(held(&shard, "g").len(), 1);
    shard.advance(2 * MINUTE);
    assert!(!exists(&shard, "g") && held(&shard, "g").is_empty());
}

#[test]
fn offsets_of_members_that_are_no_consumers_stay_while_they_live() {
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0)]);
    classic(&mut shard, "connect", &[("a", None, "?")]);
    shard.advance(3 * RETENTION);
    assert_eq!(held(&shard, "g").len(), 1);
}

#[test]
fn a_retention_of_the_clients_own_counts_alone() {
    let mut shard = shard();
    for (partition, retention_ms) in [(0, 5 * MINUTE), (1, 3 * RETENTION)] {
        let mut request = request("g", "", -1);
        request.retention_ms = Some(retention_ms);
        request.offsets = vec![offset("t", id(1), partition, 7)];
        let plan = shard.groups.commit_offsets(shard.now, request).unwrap();
        shard.commit(plan);
    }
    shard.advance(5 * MINUTE);
    assert_eq!(held(&shard, "g"), [("t".to_owned(), 1, 7)]);
    shard.advance(2 * RETENTION);
    assert!(exists(&shard, "g"));
    shard.advance(RETENTION);
    assert!(!exists(&shard, "g"));
}

#[test]
fn one_long_step_of_time_does_what_many_short_ones_do() {
    let run = |step: Ts| {
        let mut shard = shard();
        for minute in 0..10 {
            commit(&mut shard, &format!("g{minute}"), &[("t", 0), ("u", 1)]);
            shard.advance(MINUTE);
        }
        let end = shard.now + RETENTION - 5 * MINUTE;
        while shard.now < end {
            shard.advance(step.min(end - shard.now));
        }
        let groups = shard.groups.list(&[], &[]);
        groups
            .into_iter()
            .map(|group| group.group_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(MINUTE), ["g6", "g7", "g8", "g9"]);
    assert_eq!(run(Ts::MAX), run(MINUTE));
}

#[test]
fn many_expired_offsets_leave_in_several_batches_of_bounded_size() {
    let mut shard = shard();
    for group in 0..30 {
        let mut request = request(&format!("g{group:02}"), "", -1);
        let partitions = (0..400).map(|partition| offset("t", id(1), partition, 7));
        request.offsets = partitions.collect();
        let plan = shard.groups.commit_offsets(shard.now, request).unwrap();
        shard.commit(plan);
    }
    shard.log.clear();
    shard.advance(RETENTION + MINUTE);
    assert!(shard.groups.offsets().is_empty());
    assert!(shard.groups.list(&[], &[]).is_empty());
    let sizes: Vec<usize> = shard.log.iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 30 * 401);
    assert!(
        sizes.len() >= 3 && sizes.iter().all(|&size| size < 5_500),
        "{sizes:?}"
    );
}

#[test]
fn offsets_end_with_their_topic_in_every_group_and_its_name_begins_anew() {
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0), ("t", 1), ("u", 0)]);
    commit(&mut shard, "h", &[("t", 1)]);
    let mut steps = 0;
    loop {
        let plan = shard.groups.offsets_of_deleted_topic("t", id(1), 2);
        if plan.records.is_empty() {
            break;
        }
        assert!(plan.records.len() <= 2);
        shard.commit(plan);
        steps += 1;
    }
    assert_eq!(steps, 2);
    assert_eq!(held(&shard, "g"), [("u".to_owned(), 0, 7)]);
    assert_eq!(held(&shard, "h"), []);
    assert!(exists(&shard, "h"));
    shard.advance(MINUTE);
    assert!(!exists(&shard, "h") && exists(&shard, "g"));
}

#[test]
fn offsets_of_topics_that_are_gone_or_were_made_anew_are_orphans() {
    let mut shard = shard();
    commit(&mut shard, "g", &[("t", 0), ("u", 0)]);
    assert!(
        shard
            .groups
            .orphaned_offsets(&shard.topics, 10)
            .records
            .is_empty()
    );
    shard.topics.0.insert("t".to_owned(), (id(9), 2));
    let plan = shard.groups.orphaned_offsets(&shard.topics, 10);
    shard.commit(plan);
    assert_eq!(held(&shard, "g"), [("u".to_owned(), 0, 7)]);
    shard.topics.0.remove("u");
    let plan = shard.groups.orphaned_offsets(&shard.topics, 10);
    shard.commit(plan);
    assert_eq!(held(&shard, "g"), []);
}

#[test]
fn a_commit_shares_the_names_that_it_was_given() {
    let shard = shard();
    let topic: Arc<str> = "t".into();
    let mut request = request("g", "", -1);
    let each = (0..3).map(|partition| OffsetToCommit {
        topic: Arc::clone(&topic),
        ..offset("t", id(1), partition, 7)
    });
    request.offsets = each.collect();
    let group = Arc::clone(&request.group_id);
    let plan = shard.groups.commit_offsets(shard.now, request).unwrap();
    for record in &plan.records {
        let GroupRecord::Offset {
            group_id,
            topic: of,
            ..
        } = record
        else {
            panic!("{record:?}");
        };
        assert!(Arc::ptr_eq(group_id, &group) && Arc::ptr_eq(of, &topic));
    }
}
