//! Subscriptions and topics change.

use ottla_coordinator::group::plan::GroupErrorKind::InvalidRegularExpression;

use crate::support::{Shard, beat, join};

#[test]
fn a_topic_that_comes_grows_and_goes_raises_the_epoch_with_the_next_heartbeat() {
    let mut shard = Shard::at_once(&[]);
    assert_eq!(shard.told(&join("A", &["t"])), (2, Some(vec![])));
    shard.topics.set("t", 1, 1);
    assert_eq!(
        shard.told(&beat("A", 2).owns(&[])),
        (3, Some(vec![(1, vec![0])]))
    );
    shard.topics.set("t", 1, 2);
    let told = shard.told(&beat("A", 3).owns(&[(1, vec![0])]));
    assert_eq!(told, (4, Some(vec![(1, vec![0, 1])])));
    shard.topics.remove("t");
    let told = shard.told(&beat("A", 4).owns(&[(1, vec![0, 1])]));
    assert_eq!(told, (4, Some(vec![])), "to be given up first");
    assert_eq!(shard.told(&beat("A", 4).owns(&[])), (5, None));
    shard.topics.set("t", 2, 1);
    assert_eq!(
        shard.told(&beat("A", 5).owns(&[])),
        (6, Some(vec![(2, vec![0])]))
    );
}

#[test]
fn topics_that_nobody_subscribes_to_change_nothing() {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.told(&join("A", &["t"]));
    shard.topics.set("other", 9, 1);
    assert_eq!(shard.told(&beat("A", 2)), (2, None));
    assert_eq!(shard.log.len(), 1);
}

#[test]
fn a_changed_subscription_takes_and_gives() {
    let mut shard = Shard::at_once(&[("t", 3), ("u", 2)]);
    shard.told(&join("A", &["t"]));
    let told = shard.told(&beat("A", 2).names(&["u"]).owns(&[(1, vec![0, 1, 2])]));
    assert_eq!(told, (2, Some(vec![])));
    let told = shard.told(&beat("A", 2).owns(&[]));
    assert_eq!(told, (3, Some(vec![(2, vec![0, 1])])));
}

#[test]
fn what_is_no_longer_subscribed_to_is_given_up_before_the_next_assignment() {
    let mut shard = Shard::new(&[("t", 3), ("u", 2)]);
    shard.told(&join("A", &["t", "u"]));
    let all = [(1, vec![0, 1, 2]), (2, vec![0, 1])];
    let told = shard.told(&beat("A", 2).names(&["t"]).owns(&all));
    assert_eq!(told, (2, Some(vec![(1, vec![0, 1, 2])])));
    assert_eq!(shard.state(), ("Assigning", 3, 2));
    let rest = [(1, vec![0, 1, 2])];
    assert_eq!(shard.told(&beat("A", 2).owns(&rest)), (2, None));
    shard.wait(1_000);
    assert_eq!(shard.told(&beat("A", 2).owns(&rest)), (3, None));
    assert_eq!(shard.state(), ("Stable", 3, 3));
}

#[test]
fn an_expression_stands_for_the_topics_it_matches_now_and_later() {
    let mut shard = Shard::at_once(&[("a1", 1), ("b", 1)]);
    let mut joins = join("A", &[]).regex("a.*");
    joins.0.subscribed_topic_names = None;
    assert_eq!(shard.told(&joins), (2, Some(vec![(1, vec![0])])));
    shard.topics.set("a2", 3, 1);
    let told = shard.told(&beat("A", 2).owns(&[(1, vec![0])]));
    assert_eq!(told, (3, Some(vec![(1, vec![0]), (3, vec![0])])));
    let told = shard.told(
        &beat("A", 3)
            .regex("b.*")
            .owns(&[(1, vec![0]), (3, vec![0])]),
    );
    assert_eq!(told, (3, Some(vec![])));
    assert_eq!(
        shard.told(&beat("A", 3).owns(&[])),
        (4, Some(vec![(2, vec![0])]))
    );
    let told = shard.told(&beat("A", 4).regex("").names(&["a1"]).owns(&[(2, vec![0])]));
    assert_eq!(told, (4, Some(vec![])));
}

#[test]
fn an_expression_that_cannot_be_read_is_refused() {
    let mut shard = Shard::at_once(&[("a1", 1)]);
    let refused = shard.refused(&join("A", &[]).regex("["));
    assert_eq!(refused.kind, InvalidRegularExpression);
    let text = "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ].";
    assert_eq!(refused.message.as_deref(), Some(text));
    assert!(shard.log.is_empty());
}

#[test]
fn an_expression_is_forgotten_with_its_last_member() {
    let mut shard = Shard::at_once(&[("a1", 1)]);
    shard.told(&join("A", &[]).regex("a.*"));
    shard.told(&join("B", &[]).regex("a.*"));
    shard.told(&beat("A", -1));
    shard.restart();
    shard.topics.set("a2", 3, 1);
    let told = shard.told(&beat("B", 3).owns(&[]));
    assert_eq!(told, (5, Some(vec![(1, vec![0]), (3, vec![0])])));
    shard.told(&beat("B", -1));
    let last = shard.log.last().unwrap();
    assert!(
        last.iter()
            .any(|record| { format!("{record:?}").contains("Regex(\"a.*\", None)") })
    );
}
