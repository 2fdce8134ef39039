//! Listing, describing and deleting share groups, and their offsets.

use ottla_coordinator::group::consumer::records::{ConsumerRecord, GroupValue};
use ottla_coordinator::group::plan::{
    AfterDelete, GroupEffect, GroupError, GroupErrorKind, GroupType,
};
use ottla_coordinator::group::records::GroupRecord;
use ottla_coordinator::group::{GroupCounts, ShareGroupState};

use crate::support::{Shard, alter as altered, classic_group, id, initialize};

const T: Option<&[&str]> = Some(&["t"]);

fn text(error: GroupError) -> (GroupErrorKind, String) {
    (
        error.kind,
        error.message.unwrap_or_else(|| "null".to_owned()),
    )
}

fn error(kind: GroupErrorKind, text: &str) -> (GroupErrorKind, String) {
    (kind, text.to_owned())
}

fn alter(shard: &mut Shard, topic: &str, offsets: &[(i32, i64)]) -> Vec<(i32, Option<String>)> {
    let topics = [(topic.to_owned(), offsets.to_vec())];
    let plan = shard
        .groups
        .alter_share_offsets("g", &topics, &shard.topics)
        .unwrap();
    let topic = shard.commit(plan).remove(0);
    let partitions = topic.partitions.into_iter();
    partitions
        .map(|(partition, result)| (partition, result.err().and_then(|e| e.message)))
        .collect()
}

#[test]
fn describe_shows_state_epochs_and_members() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    let described = shard.groups.share_describe("g", &shard.topics).unwrap();
    assert_eq!(described.state, ShareGroupState::Stable);
    assert_eq!((described.group_epoch, described.assignment_epoch), (2, 2));
    assert_eq!(described.assignor_name, "simple");
    let member = &described.members[0];
    assert_eq!((member.member_id.as_str(), member.member_epoch), ("m", 2));
    assert_eq!(
        (member.client_id.as_str(), member.client_host.as_str()),
        ("client", "/127.0.0.1")
    );
    assert_eq!(member.subscribed_topic_names, ["t"]);
    assert_eq!(member.assignment[0].topic_name, "t");
    assert_eq!(member.assignment[0].topic_id, id(1));
    assert_eq!(member.assignment[0].partitions, [0]);
    shard.beat("m", -1, None).unwrap();
    let described = shard.groups.share_describe("g", &shard.topics).unwrap();
    assert_eq!(described.state, ShareGroupState::Empty);
}

#[test]
fn describe_refuses_what_is_no_share_group() {
    let mut shard = Shard::at_once(&[]);
    shard.groups.apply(&GroupRecord::Consumer {
        group_id: "c".to_owned(),
        record: ConsumerRecord::Group(Some(GroupValue::default())),
    });
    let refused = |group: &str| {
        text(
            shard
                .groups
                .share_describe(group, &shard.topics)
                .unwrap_err(),
        )
    };
    assert_eq!(
        refused("g"),
        error(GroupErrorKind::GroupIdNotFound, "Group g not found.")
    );
    assert_eq!(
        refused("c"),
        error(
            GroupErrorKind::GroupIdNotFound,
            "Group c is not a share group."
        )
    );
    assert_eq!(refused(""), error(GroupErrorKind::InvalidGroupId, "null"));
}

#[test]
fn list_filters_without_regard_to_case() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    let other = Shard::request("h", "m", 0, T);
    shard.send(&other).unwrap();
    let leave = Shard::request("h", "m", -1, None);
    shard.send(&leave).unwrap();
    let list = |states: &[&str], types: &[&str]| -> Vec<(String, &'static str)> {
        let listed = shard.groups.list(states, types).into_iter();
        listed.map(|group| (group.group_id, group.state)).collect()
    };
    assert_eq!(
        list(&[], &[]),
        [("g".to_owned(), "Stable"), ("h".to_owned(), "Empty")]
    );
    assert_eq!(list(&["sTABLE"], &["SHARE"]), [("g".to_owned(), "Stable")]);
    assert_eq!(list(&["nonsense"], &[]), []);
    assert_eq!(list(&[], &["consumer"]), []);
    let mut counts = GroupCounts::new();
    shard.groups.count(&mut counts);
    let one_each = [
        ((GroupType::Share, "Empty"), 1),
        ((GroupType::Share, "Stable"), 1),
    ];
    assert_eq!(counts, GroupCounts::from(one_each));
    let members = |group: &str| {
        let described = shard.groups.share_describe(group, &shard.topics);
        described.unwrap().members.len()
    };
    assert_eq!((members("g"), members("h")), (1, 0));
}

#[test]
fn only_an_empty_group_is_deleted_and_its_state_goes_first() {
    let mut shard = Shard::at_once(&[("t", 2)]);
    let delete = |shard: &Shard| shard.groups.delete_group("g").map_err(text);
    assert_eq!(
        delete(&shard),
        Err(error(GroupErrorKind::GroupIdNotFound, "null"))
    );
    shard.beat("m", 0, T).unwrap();
    assert_eq!(
        delete(&shard),
        Err(error(GroupErrorKind::NonEmptyGroup, "null"))
    );
    shard.beat("m", -1, None).unwrap();
    let plan = delete(&shard).unwrap();
    shard.commit(plan);
    assert!(matches!(
        shard.effects.last(),
        Some(GroupEffect::DeleteState { partitions, then: AfterDelete::DeleteGroup, .. })
            if partitions.len() == 2
    ));
    assert_eq!(shard.last_types(), [12, 15, 11]);
    assert_eq!(shard.groups.group_type("g"), None);
    assert!(shard.groups.list(&[], &[]).is_empty());
}

#[test]
fn a_group_without_state_is_deleted_at_once() {
    let mut shard = Shard::at_once(&[]);
    shard.beat("m", 0, T).unwrap();
    shard.beat("m", -1, None).unwrap();
    let plan = shard.groups.delete_group("g").unwrap();
    assert!(plan.effects.is_empty());
    shard.commit(plan);
    assert_eq!(shard.groups.group_type("g"), None);
}

#[test]
fn a_member_that_joins_while_the_group_is_being_deleted_keeps_it() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    shard.beat("m", -1, None).unwrap();
    shard.hold_effects = true;
    let plan = shard.groups.delete_group("g").unwrap();
    shard.commit(plan);
    let delete = shard.effects.pop().unwrap();
    assert_eq!(
        shard.beat("m", 0, T).unwrap().1,
        Some(vec![]),
        "no state, not yet again"
    );
    shard.hold_effects = false;
    shard.carry_out(&delete);
    assert_eq!(shard.groups.group_type("g"), Some(GroupType::Share));
    shard.beat("m", 4, None).unwrap();
    assert_eq!(shard.groups.share_state_partitions("g")[0].partitions, [0]);
    let (epoch, told) = shard.beat("m", 4, None).unwrap();
    assert_eq!((epoch, told), (5, Some(vec![(1, vec![0])])));
}

#[test]
fn altering_offsets_creates_the_group() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    assert_eq!(alter(&mut shard, "t", &[(1, 7)]), [(1, None)]);
    assert_eq!(shard.epochs(), (1, 1));
    assert_eq!(
        shard.effects,
        [GroupEffect::InitializeState {
            group_id: "g".to_owned(),
            state_epoch: 1,
            partitions: vec![altered(1, 1, 7)],
        }]
    );
    assert_eq!(shard.groups.share_state_partitions("g")[0].partitions, [1]);
    // The topic is known now: its other partitions start at 0, not by the reset policy.
    assert_eq!(shard.beat("m", 0, T).unwrap().0, 2);
    let last = shard.effects.last().unwrap();
    let GroupEffect::InitializeState { partitions, .. } = last else {
        panic!("initialise")
    };
    assert_eq!(partitions, &[initialize(1, 0, 0), initialize(1, 2, 0)]);
}

#[test]
fn altering_takes_any_offset_and_names_what_does_not_exist() {
    let mut shard = Shard::at_once(&[("t", 2)]);
    let unknown = Some("This server does not host this topic-partition.".to_owned());
    assert_eq!(alter(&mut shard, "nope", &[(0, 1)]), [(0, unknown.clone())]);
    assert!(shard.log.is_empty(), "no group comes of it");
    assert_eq!(
        alter(&mut shard, "t", &[(0, -5), (1, 1_000), (2, 1), (-1, 1)]),
        [(0, None), (1, None), (2, unknown.clone()), (-1, unknown)]
    );
}

#[test]
fn altering_again_uses_the_groups_epoch() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    shard.beat("m", -1, None).unwrap();
    alter(&mut shard, "t", &[(0, 5)]);
    assert_eq!(
        shard.effects.last(),
        Some(&GroupEffect::InitializeState {
            group_id: "g".to_owned(),
            state_epoch: 3,
            partitions: vec![altered(1, 0, 5)],
        })
    );
    assert_eq!(shard.epochs(), (3, 3));
}

#[test]
fn offsets_of_a_group_in_use_stay() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("m", 0, T).unwrap();
    let refused = error(GroupErrorKind::NonEmptyGroup, "The group is not empty.");
    let topics = [("t".to_owned(), vec![(0, 1)])];
    let altered = shard
        .groups
        .alter_share_offsets("g", &topics, &shard.topics);
    assert_eq!(text(altered.unwrap_err()), refused);
    let deleted = shard
        .groups
        .delete_share_offsets("g", &["t".to_owned()], &shard.topics);
    assert_eq!(text(deleted.unwrap_err()), refused);
}

#[test]
fn deleting_offsets_forgets_whole_topics() {
    let mut shard = Shard::at_once(&[("t", 2), ("u", 1)]);
    shard.beat("m", 0, Some(&["t", "u"])).unwrap();
    shard.beat("m", -1, None).unwrap();
    let names = ["t", "nope", "u"].map(str::to_owned);
    let delete = |shard: &mut Shard, names: &[String]| -> Vec<(u8, Option<String>)> {
        let plan = shard
            .groups
            .delete_share_offsets("g", names, &shard.topics)
            .unwrap();
        let topics = shard.commit(plan).into_iter();
        topics
            .map(|t| (t.topic_id.0[0], t.result.err().and_then(|e| e.message)))
            .collect()
    };
    let unknown = Some("This server does not host this topic-partition.".to_owned());
    assert_eq!(
        delete(&mut shard, &names),
        [(1, None), (0, unknown), (2, None)]
    );
    assert!(shard.groups.share_state_partitions("g").is_empty());
    let nothing = Some("There is no offset information to delete.".to_owned());
    assert_eq!(delete(&mut shard, &names[..1]), [(0, nothing)]);
    // A new life of the topic in the group: the reset policy applies.
    shard.beat("m", 0, T).unwrap();
    let last = shard.effects.last().unwrap();
    let GroupEffect::InitializeState { partitions, .. } = last else {
        panic!("initialise")
    };
    assert_eq!(partitions, &[initialize(1, 0, -1), initialize(1, 1, -1)]);
}

#[test]
fn offset_calls_refuse_what_is_no_share_group() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.groups.apply(&classic_group("c", true));
    let topics = [("t".to_owned(), vec![(0, 1)])];
    let alter = |group: &str| {
        shard
            .groups
            .alter_share_offsets(group, &topics, &shard.topics)
            .map(drop)
            .map_err(text)
    };
    let delete = |group: &str| {
        let topics = ["t".to_owned()];
        shard
            .groups
            .delete_share_offsets(group, &topics, &shard.topics)
            .map(drop)
            .map_err(text)
    };
    let invalid = error(GroupErrorKind::InvalidGroupId, "The group id is invalid.");
    let other = error(
        GroupErrorKind::GroupIdNotFound,
        "Group c is not a share group.",
    );
    assert_eq!(alter(""), Err(invalid.clone()));
    assert_eq!(delete(""), Err(invalid));
    assert_eq!(alter("c"), Err(other.clone()));
    assert_eq!(delete("c"), Err(other));
    assert_eq!(
        delete("zz"),
        Err(error(
            GroupErrorKind::GroupIdNotFound,
            "Group zz not found."
        ))
    );
    assert!(shard.groups.share_state_partitions("c").is_empty());
}
