//! Strict isolation of dead-letter topics, over the whole of a request.

use ottla_protocol::ErrorCode;

use super::*;

const TOPIC: &str = "errors.deadletterqueue.topic.name";
const STRICT: &str = "share.group.dlq.strict.isolation";

/// The group, and what is set (`None` deletes).
type Alter<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

/// Each group's refusal, or `None` where it was taken; what is taken is stored.
fn request(configs: &mut Configs, alters: &[Alter<'_>]) -> Vec<Option<String>> {
    let kind = ResourceType::Group.wire();
    let one = |(group, pairs): &Alter<'_>| {
        let ops: Vec<AlterOp> = pairs
            .iter()
            .map(|(key, value)| match value {
                Some(_) => op(key, OpKind::Set, *value),
                None => op(key, OpKind::Delete, None),
            })
            .collect();
        configs.incremental_alter(&world(), kind, group, &ops)
    };
    let results = alters.iter().map(one).collect();
    finish(configs, results)
}

/// The same with `AlterConfigs`, where what is not named goes back to its default.
fn replace(configs: &mut Configs, alters: &[(&str, &[(&str, &str)])]) -> Vec<Option<String>> {
    let kind = ResourceType::Group.wire();
    let one = |(group, pairs): &(&str, &[(&str, &str)])| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())))
            .collect();
        configs.replace(&world(), kind, group, &pairs)
    };
    let results = alters.iter().map(one).collect();
    finish(configs, results)
}

fn finish(
    configs: &mut Configs,
    mut results: Vec<Result<Vec<ConfigChange>, Refusal>>,
) -> Vec<Option<String>> {
    configs.isolate(1, &mut results);
    let take = |result: Result<Vec<ConfigChange>, Refusal>| match result {
        Ok(changes) => {
            apply_all(configs, &changes);
            None
        }
        Err(Refusal { code, message }) => {
            assert_eq!(code, ErrorCode::INVALID_CONFIG);
            message
        }
    };
    results.into_iter().map(take).collect()
}

const NAMED: (&str, Option<&str>) = (TOPIC, Some("dlq.x"));
const ALONE: (&str, Option<&str>) = (STRICT, Some("true"));

#[test]
fn groups_that_do_not_ask_for_isolation_share_a_topic() {
    let mut configs = measured();
    assert_eq!(
        request(&mut configs, &[("a", &[NAMED]), ("b", &[NAMED])]),
        [None, None]
    );
    assert_eq!(configs.isolation(1).refused("a"), None);
}

#[test]
fn a_topic_that_a_group_has_alone_is_refused_to_another_and_both_are_named() {
    let mut configs = measured();
    assert_eq!(request(&mut configs, &[("a", &[NAMED, ALONE])]), [None]);
    let expected = "Group 'a' has share.group.dlq.strict.isolation=true, but its dead-letter topic \
                    'dlq.x' is also that of group 'b'. Delete \
                    errors.deadletterqueue.topic.name=dlq.x of group 'b', or delete \
                    share.group.dlq.strict.isolation=true of group 'a'";
    let refused = request(&mut configs, &[("b", &[NAMED])]);
    assert_eq!(refused, [Some(expected.to_owned())]);
    // Another topic is free, and so is what has nothing to do with dead letters.
    let other = (TOPIC, Some("dlq.y"));
    assert_eq!(request(&mut configs, &[("b", &[other])]), [None]);
}

#[test]
fn a_topic_that_others_use_cannot_be_had_alone() {
    let mut configs = measured();
    request(&mut configs, &[("a", &[NAMED]), ("b", &[NAMED])]);
    let refused = request(&mut configs, &[("b", &[ALONE])]);
    let text = refused[0].as_deref().unwrap();
    assert!(text.starts_with("Group 'b' has"), "{text}");
    assert!(text.contains("dlq.x of group 'a'"), "{text}");
    // The line that the text names is gone: the same request holds.
    assert_eq!(request(&mut configs, &[("a", &[(TOPIC, None)])]), [None]);
    assert_eq!(request(&mut configs, &[("b", &[ALONE])]), [None]);
}

#[test]
fn what_counts_is_what_holds_after_the_whole_request() {
    let mut configs = measured();
    let y = (TOPIC, Some("dlq.y"));
    request(&mut configs, &[("a", &[NAMED, ALONE]), ("b", &[y, ALONE])]);
    // Two groups change topics, whichever is named first.
    assert_eq!(
        request(&mut configs, &[("a", &[y]), ("b", &[NAMED])]),
        [None, None]
    );
    assert_eq!(
        request(&mut configs, &[("b", &[y]), ("a", &[NAMED])]),
        [None, None]
    );
    let alone = (STRICT, "true");
    let both = replace(
        &mut configs,
        &[
            ("a", &[(TOPIC, "dlq.y"), alone]),
            ("b", &[(TOPIC, "dlq.x"), alone]),
        ],
    );
    assert_eq!(both, [None, None]);
    // One topic for both: neither gets it, and both keep what they have.
    let z = (TOPIC, Some("dlq.z"));
    let refused = request(&mut configs, &[("a", &[z]), ("b", &[z]), ("c", &[z])]);
    assert!(refused.iter().all(Option::is_some), "{refused:?}");
    assert_eq!(configs.group(1, "a").share.dlq_topic_name, "dlq.y");
    // AlterConfigs drops what it does not name: a is not isolated any more, b is.
    assert_eq!(replace(&mut configs, &[("a", &[(TOPIC, "dlq.z")])]), [None]);
    assert_eq!(request(&mut configs, &[("c", &[z])]), [None]);
}

#[test]
fn a_group_that_is_refused_keeps_its_topic_and_the_rest_is_looked_at_again() {
    let mut configs = measured();
    let y = (TOPIC, Some("dlq.y"));
    request(&mut configs, &[("a", &[NAMED, ALONE])]);
    let bad = ("share.delivery.count.limit", Some("1"));
    let refused = request(&mut configs, &[("a", &[y, bad]), ("b", &[NAMED])]);
    assert!(
        refused[0]
            .as_deref()
            .unwrap()
            .contains("share.delivery.count.limit")
    );
    assert!(
        refused[1].as_deref().unwrap().contains("'dlq.x'"),
        "a has it still"
    );
}

#[test]
fn without_a_topic_there_is_nothing_to_share() {
    let mut configs = measured();
    let all = request(&mut configs, &[("a", &[ALONE]), ("b", &[ALONE])]);
    assert_eq!(all, [None, None]);
    assert_eq!(configs.isolation(1).refused("a"), None);
}

#[test]
fn a_default_topic_for_all_groups_is_no_groups_alone() {
    let default = format!("ottla.group.default.{TOPIC}");
    let mut configs = configs(&[("node.id", "1"), (&default, "dlq.x")]);
    for changes in [&[ALONE][..], &[NAMED, ALONE]] {
        let refused = request(&mut configs, &[("a", changes)]);
        let text = refused[0].as_deref().unwrap();
        assert!(
            text.contains(&format!("{default}=dlq.x of the broker")),
            "{text}"
        );
        assert!(text.contains("every group without"), "{text}");
    }
    let y = (TOPIC, Some("dlq.y"));
    assert_eq!(request(&mut configs, &[("a", &[y, ALONE])]), [None]);
    // Back to the default with its isolation is the same conflict.
    assert!(request(&mut configs, &[("a", &[(TOPIC, None)])])[0].is_some());
    assert_eq!(
        request(&mut configs, &[("a", &[(TOPIC, None), (STRICT, None)])]),
        [None]
    );
}

#[test]
fn a_default_of_isolation_holds_for_groups_that_name_a_topic() {
    let default = format!("ottla.group.default.{STRICT}");
    let mut configs = configs(&[("node.id", "1"), (&default, "true")]);
    assert_eq!(request(&mut configs, &[("a", &[NAMED])]), [None]);
    let refused = request(&mut configs, &[("b", &[NAMED])]);
    let text = refused[0].as_deref().unwrap();
    assert!(
        text.contains(&format!("{default}=true of the broker")),
        "{text}"
    );
    // Both must agree to share.
    let shares = (STRICT, Some("false"));
    assert!(request(&mut configs, &[("b", &[NAMED, shares])])[0].is_some());
    let both = request(&mut configs, &[("a", &[shares]), ("b", &[NAMED, shares])]);
    assert_eq!(both, [None, None]);
}

#[test]
fn a_conflict_that_is_found_switches_off_the_group_that_wants_the_topic_alone() {
    let mut configs = measured();
    let store = |configs: &mut Configs, group: &str, key: &str, value: &str| {
        configs.apply(&change(ResourceType::Group, group, key, Some(value)));
    };
    store(&mut configs, "a", TOPIC, "dlq.x");
    store(&mut configs, "a", STRICT, "true");
    store(&mut configs, "b", TOPIC, "dlq.x");
    let isolation = configs.isolation(1);
    assert!(isolation.refused("a").unwrap().contains("group 'b'"));
    assert_eq!(isolation.refused("b"), None);
    assert_eq!(isolation.refused("unheard-of"), None);
    assert_eq!(isolation.all_refused().len(), 1);
    assert_eq!(isolation.rest_refused(), None);
    // Nothing else of the two groups is held up by it, and it can be undone from either side.
    let lock = ("share.record.lock.duration.ms", Some("20000"));
    assert_eq!(
        request(&mut configs, &[("a", &[lock, NAMED]), ("b", &[lock])]),
        [None, None]
    );
    assert_eq!(request(&mut configs, &[("b", &[(TOPIC, None)])]), [None]);
    assert_eq!(configs.isolation(1).refused("a"), None);
}

#[test]
fn a_default_that_contradicts_itself_switches_off_every_group_that_relies_on_it() {
    let topic = format!("ottla.group.default.{TOPIC}");
    let strict = format!("ottla.group.default.{STRICT}");
    let mut configs = configs(&[("node.id", "1"), (&topic, "dlq.x"), (&strict, "true")]);
    let isolation = configs.isolation(1);
    assert!(isolation.rest_refused().unwrap().contains(&topic));
    assert!(isolation.refused("any").is_some());
    // One that has a topic of its own is not concerned.
    assert_eq!(
        request(&mut configs, &[("a", &[(TOPIC, Some("dlq.a"))])]),
        [None]
    );
    assert_eq!(configs.isolation(1).refused("a"), None);
}

#[test]
fn an_empty_topic_is_no_dead_letter_topic_whatever_the_default() {
    let topic = format!("ottla.group.default.{TOPIC}");
    let strict = format!("ottla.group.default.{STRICT}");
    let mut configs = configs(&[("node.id", "1"), (&topic, "dlq.x"), (&strict, "true")]);
    configs.apply(&change(ResourceType::Group, "a", TOPIC, Some("")));
    configs.apply(&change(ResourceType::Group, "b", TOPIC, Some("")));
    assert_eq!(configs.isolation(1).refused("a"), None);
}
