//! Joining, staying, being fenced and leaving, as Kafka 4.4.0 answers.

use ottla_coordinator::group::plan::GroupErrorKind::{
    FencedInstanceId, FencedMemberEpoch, GroupIdNotFound, GroupMaxSizeReached, InvalidRequest,
    UnknownMemberId, UnreleasedInstanceId, UnsupportedAssignor,
};

use crate::support::{Shard, beat, join};

#[test]
fn the_first_heartbeat_of_a_group_brings_its_partitions() {
    let mut shard = Shard::new(&[("t", 3)]);
    let told = shard.told(&join("A", &["t"]));
    assert_eq!(told, (2, Some(vec![(1, vec![0, 1, 2])])));
    assert_eq!(shard.state(), ("Stable", 2, 2));
    assert_eq!(shard.told(&beat("A", 2)), (2, None));
    assert_eq!(
        shard.log.len(),
        1,
        "a heartbeat without news writes nothing"
    );
}

#[test]
fn partitions_go_over_once_they_were_given_up() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    assert_eq!(shard.told(&join("B", &["t"])), (3, Some(vec![])));
    assert_eq!(shard.state(), ("Reconciling", 3, 3));
    let had = (1, vec![0, 1, 2]);
    let told = shard.told(&beat("A", 2).owns(std::slice::from_ref(&had)));
    assert_eq!(told, (2, Some(vec![(1, vec![0, 1])])));
    // Neither a heartbeat that says nothing nor another's releases anything.
    assert_eq!(shard.told(&beat("A", 2)), (2, None));
    assert_eq!(shard.told(&beat("B", 3).owns(&[])), (3, None));
    let released = beat("A", 2).owns(&[(1, vec![0, 1])]);
    assert_eq!(shard.told(&released), (3, None));
    let told = shard.told(&beat("B", 3).owns(&[]));
    assert_eq!(told, (3, Some(vec![(1, vec![2])])));
    assert_eq!(shard.state(), ("Stable", 3, 3));
}

#[test]
fn the_assignment_waits_for_its_interval() {
    let mut shard = Shard::new(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    shard.wait(999);
    assert_eq!(shard.told(&join("B", &["t"])), (2, Some(vec![])));
    assert_eq!(shard.state(), ("Assigning", 3, 2));
    shard.wait(1);
    assert_eq!(shard.told(&beat("B", 2).owns(&[])), (3, None));
    assert_eq!(shard.state(), ("Reconciling", 3, 3));
}

#[test]
fn a_member_that_does_not_give_up_in_time_is_removed() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    shard.told(&join("B", &["t"]));
    let keeps = beat("A", 2).owns(&[(1, vec![0, 1, 2])]);
    shard.told(&keeps);
    shard.wait(9_999);
    assert_eq!(shard.told(&keeps), (2, None));
    shard.wait(1);
    assert_eq!(shard.refused(&keeps).kind, UnknownMemberId);
    let told = shard.told(&beat("B", 3).owns(&[]));
    assert_eq!(told, (4, Some(vec![(1, vec![0, 1, 2])])));
}

#[test]
fn a_member_that_gave_up_in_time_stays() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    shard.told(&join("B", &["t"]));
    shard.told(&beat("A", 2).owns(&[(1, vec![0, 1, 2])]));
    shard.told(&beat("A", 2).owns(&[(1, vec![0, 1])]));
    shard.wait(20_000);
    assert_eq!(shard.told(&beat("A", 3)), (3, None));
}

#[test]
fn a_silent_member_is_removed_when_its_session_ends() {
    let mut shard = Shard::new(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    shard.wait(44_999);
    assert_eq!(shard.told(&beat("A", 2)), (2, None));
    shard.wait(45_000);
    assert_eq!(shard.state(), ("Empty", 3, 3));
    let refused = shard.refused(&beat("A", 2));
    assert_eq!(refused.kind, UnknownMemberId);
    assert_eq!(
        refused.message.as_deref(),
        Some("Member A is not a member of group g.")
    );
}

#[test]
fn a_fenced_member_joins_again_with_epoch_0() {
    let mut shard = Shard::new(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    let text = |word: &str, received: i32| {
        format!(
            "The consumer group member has a {word} member epoch ({received}) than the one known \
             by the group coordinator (2). The member must abandon all its partitions and rejoin."
        )
    };
    for (epoch, word) in [(1, "smaller"), (3, "greater")] {
        let refused = shard.refused(&beat("A", epoch));
        assert_eq!(refused.kind, FencedMemberEpoch);
        assert_eq!(refused.message, Some(text(word, epoch)));
    }
    let told = shard.told(&join("A", &["t"]));
    assert_eq!(told, (2, Some(vec![(1, vec![0, 1, 2])])));
}

#[test]
fn the_epoch_before_is_taken_from_a_member_that_claims_nothing_else() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    shard.told(&join("B", &["t"]));
    shard.told(&beat("A", 2).owns(&[(1, vec![0, 1, 2])]));
    shard.told(&beat("A", 2).owns(&[(1, vec![0, 1])]));
    assert_eq!(shard.told(&beat("A", 2).owns(&[(1, vec![0])])), (3, None));
    for claim in [beat("A", 2), beat("A", 2).owns(&[(1, vec![0, 1, 2])])] {
        assert_eq!(shard.refused(&claim).kind, FencedMemberEpoch);
    }
}

#[test]
fn a_heartbeat_that_says_everything_is_told_everything() {
    let mut shard = Shard::new(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    let mut full = beat("A", 2).names(&["t"]).owns(&[(1, vec![0, 1, 2])]);
    full.0.rebalance_timeout_ms = 10_000;
    assert_eq!(shard.told(&full), (2, Some(vec![(1, vec![0, 1, 2])])));
}

#[test]
fn the_last_member_leaves_an_empty_group() {
    let mut shard = Shard::new(&[("t", 3)]);
    shard.told(&join("A", &["t"]));
    assert_eq!(shard.told(&beat("A", -1)), (-1, None));
    assert_eq!(shard.state(), ("Empty", 3, 3));
    assert_eq!(shard.refused(&beat("A", -1)).kind, UnknownMemberId);
    // The interval does not hold up the first assignment after that.
    assert_eq!(
        shard.told(&join("B", &["t"])),
        (4, Some(vec![(1, vec![0, 1, 2])]))
    );
}

#[test]
fn a_group_that_is_not_there_is_not_found() {
    let mut shard = Shard::new(&[]);
    for (epoch, text) in [
        (1, "Consumer group g not found."),
        (-1, "Group g not found."),
    ] {
        let refused = shard.refused(&beat("A", epoch));
        assert_eq!(
            (refused.kind, refused.message.as_deref()),
            (GroupIdNotFound, Some(text))
        );
    }
}

#[test]
fn a_full_group_takes_nobody_in() {
    let mut shard = Shard::new(&[("t", 3)]);
    shard.config.max_size = 1;
    shard.told(&join("A", &["t"]));
    shard.told(&join("A", &["t"]));
    let refused = shard.refused(&join("B", &["t"]));
    assert_eq!(refused.kind, GroupMaxSizeReached);
    let text = "The consumer group has reached its maximum capacity of 1 members.";
    assert_eq!(refused.message.as_deref(), Some(text));
}

#[test]
fn requests_that_cannot_be_meant_are_refused_in_kafkas_words() {
    let mut shard = Shard::new(&[("t", 3)]);
    let mut no_group = join("A", &["t"]);
    no_group.0.group_id.clear();
    let mut no_timeout = join("A", &["t"]);
    no_timeout.0.rebalance_timeout_ms = -1;
    let mut no_partitions = join("A", &["t"]);
    no_partitions.0.topic_partitions = None;
    let mut no_topics = join("A", &[]);
    no_topics.0.subscribed_topic_names = None;
    let mut no_rack = join("A", &["t"]);
    no_rack.0.rack_id = Some(String::new());
    for (request, text) in [
        (join("", &["t"]), "MemberId can't be empty."),
        (no_group, "GroupId can't be empty."),
        (join("A", &["t"]).instance(""), "InstanceId can't be empty."),
        (no_rack, "RackId can't be empty."),
        (
            no_timeout,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            no_partitions,
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            no_topics,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (beat("A", -2), "InstanceId can't be null."),
        (beat("A", -3), "MemberEpoch is invalid."),
    ] {
        let refused = shard.refused(&request);
        assert_eq!(
            (refused.kind, refused.message.as_deref()),
            (InvalidRequest, Some(text))
        );
    }
    let refused = shard.refused(&join("A", &["t"]).votes("foo"));
    assert_eq!(refused.kind, UnsupportedAssignor);
    let text = "ServerAssignor foo is not supported. Supported assignors: uniform, range.";
    assert_eq!(refused.message.as_deref(), Some(text));
}

#[test]
fn the_assignor_with_the_most_votes_assigns() {
    let mut shard = Shard::at_once(&[("t", 3), ("u", 3)]);
    shard.told(&join("A", &["t", "u"]).votes("range"));
    assert_eq!(shard.describe().assignor_name, "range");
    shard.told(&join("B", &["t", "u"]).votes("uniform"));
    assert_eq!(shard.describe().assignor_name, "uniform");
    shard.told(&join("C", &["t", "u"]).votes("range"));
    assert_eq!(shard.describe().assignor_name, "range");
    shard.told(&beat("A", -1));
    assert_eq!(shard.describe().assignor_name, "uniform");
}

#[test]
fn a_static_member_returns_to_its_partitions_under_another_id() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("S1", &["t"]).instance("i"));
    shard.told(&join("B", &["t"]));
    shard.told(&beat("S1", 2).owns(&[(1, vec![0, 1])]).instance("i"));
    shard.told(&beat("B", 3).owns(&[]));
    let refused = shard.refused(&join("S2", &["t"]).instance("i"));
    assert_eq!(refused.kind, UnreleasedInstanceId);
    let text = "Static member S2 with instance id i cannot join the group because the instance \
                id is owned by S1 member.";
    assert_eq!(refused.message.as_deref(), Some(text));

    assert_eq!(shard.told(&beat("S1", -2).instance("i")), (-2, None));
    assert_eq!(
        shard.refused(&beat("S1", 3).instance("i")).kind,
        FencedMemberEpoch
    );
    let told = shard.told(&join("S2", &["t"]).instance("i"));
    assert_eq!(told, (3, Some(vec![(1, vec![0, 1])])));
    assert_eq!(shard.told(&beat("B", 3)), (3, None), "nobody else notices");
    assert_eq!(shard.state(), ("Stable", 3, 3));

    let refused = shard.refused(&beat("S1", 3).instance("i"));
    assert_eq!(refused.kind, FencedInstanceId);
    let text = "Static member S1 with instance id i was fenced by member S2.";
    assert_eq!(refused.message.as_deref(), Some(text));
    assert_eq!(
        shard.refused(&beat("X", 3).instance("j")).kind,
        UnknownMemberId
    );
}

#[test]
fn a_static_member_that_does_not_return_is_removed_when_its_session_ends() {
    let mut shard = Shard::at_once(&[("t", 3)]);
    shard.told(&join("S1", &["t"]).instance("i"));
    shard.told(&beat("S1", -2).instance("i"));
    shard.wait(45_000);
    assert_eq!(shard.state(), ("Empty", 3, 3));
}

#[test]
fn a_static_member_returns_with_another_subscription() {
    let mut shard = Shard::at_once(&[("t", 3), ("u", 2)]);
    shard.told(&join("S1", &["t"]).instance("i"));
    shard.told(&beat("S1", -2).instance("i"));
    let told = shard.told(&join("S2", &["t", "u"]).instance("i"));
    assert_eq!(told, (3, Some(vec![(1, vec![0, 1, 2]), (2, vec![0, 1])])));
    assert_eq!(shard.describe().members.len(), 1);
}
