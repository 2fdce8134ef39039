//! Each row of the heartbeat table, with Kafka 4.4.0's codes and texts.

use ottla_coordinator::group::plan::{GroupErrorKind, GroupType, ShareHeartbeatRequest};

use crate::support::{Shard, classic_group};

const T: Option<&[&str]> = Some(&["t"]);

type Edit = fn(&mut ShareHeartbeatRequest);

fn shard() -> Shard {
    Shard::at_once(&[("t", 2)])
}

#[test]
fn malformed_requests_are_refused_with_kafkas_texts() {
    let mut shard = shard();
    let refused = |shard: &mut Shard, edit: Edit| {
        let mut request = Shard::request("g", "m", 0, T);
        edit(&mut request);
        let error = shard.send(&request).unwrap_err();
        assert_eq!(error.kind, GroupErrorKind::InvalidRequest);
        error.message
    };
    let cases: [(Edit, Option<&str>); 9] = [
        (|r| r.member_id = String::new(), None),
        (|r| r.member_id = "x".repeat(37), None),
        (
            |r| (r.group_id, r.member_id) = (String::new(), String::new()),
            None,
        ),
        (
            |r| r.group_id = String::new(),
            Some("GroupId can't be empty."),
        ),
        (
            |r| r.rack_id = Some(String::new()),
            Some("RackId can't be empty."),
        ),
        (|r| r.member_epoch = -2, Some("MemberEpoch is invalid.")),
        (
            |r| r.subscribed_topic_names = None,
            Some("SubscribedTopicNames must be set in first request."),
        ),
        (
            |r| r.subscribed_topic_names = Some(Vec::new()),
            Some("SubscribedTopicNames must be set in first request."),
        ),
        (
            |r| (r.rack_id, r.subscribed_topic_names) = (Some(String::new()), None),
            Some("RackId can't be empty."),
        ),
    ];
    for (edit, text) in cases {
        assert_eq!(refused(&mut shard, edit).as_deref(), text);
    }
    assert!(shard.log.is_empty());
}

#[test]
fn any_short_text_is_a_member_id() {
    let mut shard = shard();
    for member in ["abc", "ß", &"x".repeat(36), &"ß".repeat(36)] {
        assert!(shard.beat(member, 0, T).is_ok());
    }
}

#[test]
fn an_unchanged_heartbeat_writes_nothing_and_repeats_nothing() {
    let mut shard = shard();
    shard.beat("m", 0, T).unwrap();
    let written = shard.log.len();
    assert_eq!(shard.beat("m", 2, None), Ok((2, None)));
    assert_eq!(shard.log.len(), written);
}

#[test]
fn a_full_request_gets_the_assignment_again() {
    let mut shard = shard();
    shard.beat("m", 0, T).unwrap();
    assert_eq!(shard.beat("m", 2, T), Ok((2, Some(vec![(1, vec![0, 1])]))));
}

#[test]
fn the_previous_epoch_is_accepted_once_more() {
    let mut shard = shard();
    shard.beat("a", 0, T).unwrap();
    shard.beat("b", 0, T).unwrap();
    assert_eq!(shard.beat("a", 2, None), Ok((3, Some(vec![(1, vec![0])]))));
    assert_eq!(shard.beat("a", 2, None), Ok((3, None)));
}

#[test]
fn a_lower_epoch_is_fenced() {
    let mut shard = shard();
    shard.beat("a", 0, T).unwrap();
    shard.beat("b", 0, T).unwrap();
    shard.beat("c", 0, T).unwrap();
    shard.beat("a", 2, None).unwrap();
    assert_eq!(
        shard.beat("a", 1, None),
        Err((
            GroupErrorKind::FencedMemberEpoch,
            Some(
                "The share group member has a smaller member epoch (1) than the one known by the \
                 group coordinator (4), and it does not match the previous member epoch (2). The \
                 member must abandon all its partitions and rejoin."
                    .to_owned()
            )
        ))
    );
}

#[test]
fn a_greater_epoch_is_fenced() {
    let mut shard = shard();
    shard.beat("a", 0, T).unwrap();
    assert_eq!(
        shard.beat("a", 3, None),
        Err((
            GroupErrorKind::FencedMemberEpoch,
            Some(
                "The share group member has a greater member epoch (3) than the one known by the \
                 group coordinator (2). The member must abandon all its partitions and rejoin."
                    .to_owned()
            )
        ))
    );
}

#[test]
fn joining_again_with_the_same_subscription_changes_nothing() {
    let mut shard = shard();
    shard.beat("m", 0, T).unwrap();
    let written = shard.log.len();
    assert_eq!(shard.beat("m", 0, T), Ok((2, Some(vec![(1, vec![0, 1])]))));
    assert_eq!(shard.log.len(), written);
}

#[test]
fn unknown_members_and_groups_have_their_own_errors() {
    let mut shard = shard();
    let unknown_group = |text: &str| Err((GroupErrorKind::GroupIdNotFound, Some(text.to_owned())));
    assert_eq!(
        shard.beat("m", 1, None),
        unknown_group("Share group g not found.")
    );
    assert_eq!(
        shard.beat("m", -1, None),
        unknown_group("Group g not found.")
    );
    shard.beat("a", 0, T).unwrap();
    let unknown_member = Err((
        GroupErrorKind::UnknownMemberId,
        Some("Member m is not a member of group g.".to_owned()),
    ));
    assert_eq!(shard.beat("m", 1, None), unknown_member);
    assert_eq!(shard.beat("m", -1, None), unknown_member);
}

#[test]
fn leaving_writes_tombstones_and_raises_the_epoch() {
    let mut shard = shard();
    shard.beat("a", 0, T).unwrap();
    shard.beat("b", 0, T).unwrap();
    assert_eq!(shard.beat("a", -1, Some(&[])), Ok((-1, None)));
    assert_eq!(shard.last_types(), [14, 13, 10, 11]);
    assert_eq!(shard.epochs(), (4, 3));
    assert_eq!(
        shard.beat("b", 3, None),
        Ok((4, Some(vec![(1, vec![0, 1])])))
    );
    shard.beat("b", -1, None).unwrap();
    assert_eq!(shard.last_types(), [14, 13, 10, 11, 12]);
    assert_eq!(shard.epochs(), (5, 5));
}

#[test]
fn a_member_that_left_may_join_again_at_once() {
    let mut shard = shard();
    shard.beat("m", 0, T).unwrap();
    shard.beat("m", -1, None).unwrap();
    assert!(shard.beat("m", -1, None).is_err());
    assert_eq!(shard.beat("m", 0, T), Ok((4, Some(vec![(1, vec![0, 1])]))));
}

#[test]
fn a_full_group_refuses_new_members_only() {
    let mut shard = shard();
    shard.config.max_size = 2;
    shard.beat("a", 0, T).unwrap();
    shard.beat("b", 0, T).unwrap();
    let text = "The share group has reached its maximum capacity of 2 members.".to_owned();
    assert_eq!(
        shard.beat("c", 0, T),
        Err((GroupErrorKind::GroupMaxSizeReached, Some(text)))
    );
    assert!(shard.beat("a", 0, T).is_ok());
    shard.beat("b", -1, None).unwrap();
    assert!(shard.beat("c", 0, T).is_ok());
}

#[test]
fn a_silent_member_is_removed_when_its_session_ends() {
    let mut shard = shard();
    shard.config.session_timeout_ms = 3_000;
    shard.beat("a", 0, T).unwrap();
    shard.beat("b", 0, T).unwrap();
    shard.advance(2_000);
    shard.beat("b", 3, None).unwrap();
    assert_eq!(shard.groups.next_deadline(), Some(shard.now + 1_000));
    shard.advance(999);
    assert!(shard.beat("x", 1, None).is_err());
    assert_eq!(shard.assigned().len(), 2);
    shard.advance(1);
    assert_eq!(shard.assigned().into_keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(shard.epochs(), (4, 3));
    assert_eq!(
        shard.beat("a", 2, None),
        Err((
            GroupErrorKind::UnknownMemberId,
            Some("Member a is not a member of group g.".to_owned())
        ))
    );
    shard.advance(3_000);
    assert_eq!(shard.epochs(), (5, 5));
    assert_eq!(shard.groups.next_deadline(), None);
}

#[test]
fn a_refused_heartbeat_does_not_prolong_the_session() {
    let mut shard = shard();
    shard.beat("a", 0, T).unwrap();
    let deadline = shard.groups.next_deadline();
    shard.advance(1_000);
    assert!(shard.beat("a", 9, None).is_err());
    assert_eq!(shard.groups.next_deadline(), deadline);
}

#[test]
fn held_sessions_move_with_the_clock() {
    let mut shard = shard();
    shard.beat("a", 0, T).unwrap();
    let deadline = shard.groups.next_deadline().unwrap();
    shard.groups.shift_sessions(100_000);
    assert_eq!(shard.groups.next_deadline(), Some(deadline + 100_000));
    shard.advance(100_000);
    assert_eq!(shard.assigned().len(), 1);
}

#[test]
fn a_group_of_another_type_is_not_a_share_group() {
    let mut shard = shard();
    shard.groups.apply(&classic_group("g", true));
    let refused = Err((
        GroupErrorKind::GroupIdNotFound,
        Some("Group g is not a share group.".to_owned()),
    ));
    assert_eq!(shard.beat("m", 0, T), refused);
    assert_eq!(shard.beat("m", 1, None), refused);
    assert_eq!(shard.beat("m", -1, None), refused);
    assert_eq!(shard.groups.group_type("g"), Some(GroupType::Classic));
    shard.groups.apply(&classic_group("g", false));
    assert!(shard.beat("m", 0, T).is_ok());
    shard.groups.apply(&classic_group("g", false));
    assert_eq!(shard.groups.group_type("g"), Some(GroupType::Share));
}

#[test]
fn an_unknown_topic_gives_an_empty_assignment() {
    let mut shard = shard();
    assert_eq!(
        shard.beat("m", 0, Some(&["missing"])),
        Ok((2, Some(vec![])))
    );
    assert_eq!(shard.last_types(), [10, 11, 13, 12, 14]);
}

#[test]
fn a_rack_or_client_alone_raises_no_epoch() {
    let mut shard = shard();
    shard.beat("m", 0, T).unwrap();
    let mut request = Shard::request("g", "m", 2, None);
    request.rack_id = Some("r".to_owned());
    request.client_id = "other".to_owned();
    assert_eq!(shard.send(&request).unwrap().member_epoch, 2);
    assert_eq!(shard.last_types(), [10]);
    let described = shard.groups.share_describe("g", &shard.topics).unwrap();
    assert_eq!(described.members[0].rack_id.as_deref(), Some("r"));
    assert_eq!(described.members[0].client_id, "other");
}

#[test]
fn the_order_and_the_repetition_of_topic_names_do_not_matter() {
    let mut shard = Shard::at_once(&[("a", 1), ("b", 1)]);
    shard.beat("m", 0, Some(&["a", "b"])).unwrap();
    let written = shard.log.len();
    let both = vec![(1, vec![0]), (2, vec![0])];
    assert_eq!(
        shard.beat("m", 2, Some(&["b", "a", "b", "a"])),
        Ok((2, Some(both)))
    );
    assert_eq!(shard.log.len(), written);
}
