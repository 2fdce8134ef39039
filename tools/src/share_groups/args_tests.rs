#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn parsed(line: &str) -> Result<Command, Instead> {
    let words = std::iter::once("--bootstrap-server b:1").chain([line]);
    let words: Vec<OsString> = words
        .flat_map(str::split_whitespace)
        .map(OsString::from)
        .collect();
    parse(words)
}

fn action(line: &str) -> Action {
    parsed(line).unwrap().action
}

fn wrong(line: &str) -> String {
    match parsed(line) {
        Err(Instead::Wrong(problem)) => problem,
        other => panic!("{line}: {other:?}"),
    }
}

/// What Kafka 4.4.0's tool says to the same flags, word by word.
const REFUSED: &[(&str, &str)] = &[
    (
        "--describe",
        "Option [describe] takes one of these options: [all-groups], [group]",
    ),
    (
        "--delete",
        "Option [delete] takes the options [group] or [all-groups].",
    ),
    (
        "--delete-offsets --group g",
        "Option [delete-offsets] takes the following options: [group], [topic]",
    ),
    (
        "--delete-offsets --topic t",
        "Option [delete-offsets] takes the following options: [group], [topic]",
    ),
    (
        "--delete-offsets --group g --all-topics",
        "Option [delete-offsets] takes the following options: [group], [topic]",
    ),
    (
        "--reset-offsets",
        "Option [reset-offsets] takes the option: [execute] or [dry-run]",
    ),
    (
        "--reset-offsets --group g",
        "Option [reset-offsets] takes the option: [execute] or [dry-run]",
    ),
    (
        "--reset-offsets --group g --topic t --to-earliest --dry-run --execute",
        "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
    ),
    (
        "--reset-offsets --group g --all-topics --dry-run",
        "Option [reset-offsets] takes one of these options: [from-file], [to-current], [to-datetime], [to-earliest], [to-latest], [to-offset]",
    ),
    (
        "--reset-offsets --group g --to-earliest --dry-run",
        "Option [reset-offsets] takes one of these options: [all-topics], [from-file], [topic]",
    ),
    (
        "--reset-offsets --group g --topic t --all-topics --to-earliest --dry-run",
        "Option \"[topic]\" can't be used with option \"[all-topics]\"",
    ),
    (
        "--reset-offsets --group g --topic t --to-earliest --to-latest --dry-run",
        "Option \"[to-earliest]\" can't be used with option \"[to-latest]\"",
    ),
    (
        "--reset-offsets --group g --topic t --from-file f --dry-run",
        "Option \"[topic]\" can't be used with option \"[from-file]\"",
    ),
    (
        "--reset-offsets --all-groups --all-topics --to-earliest --dry-run",
        "Option [reset-offsets] takes the option: [group]",
    ),
    (
        "--reset-offsets --group g --all-groups --all-topics --to-earliest --dry-run",
        "Option \"[group]\" can't be used with option \"[all-groups]\"",
    ),
    (
        "--reset-offsets --group g --group h --topic t --to-earliest --dry-run",
        "Found multiple arguments for option group, but you asked for only one",
    ),
    (
        "--reset-offsets --group g --topic t --to-offset abc --dry-run",
        "Cannot parse argument 'abc' of option to-offset",
    ),
    (
        "--reset-offsets --group g --topic t:x --to-earliest --dry-run",
        "Invalid partition 'x' specified in topic arg 't:x'",
    ),
    (
        "--list --group g",
        "Option \"[group]\" can't be used with option \"[list]\"",
    ),
    (
        "--describe --group g --all-groups",
        "Option \"[group]\" can't be used with option \"[all-groups]\"",
    ),
    (
        "--describe --group g --topic t",
        "Option \"[topic]\" can't be used with option \"[describe]\"",
    ),
    (
        "--describe --group g --state Stable",
        "Option [describe] does not take a value for [state]",
    ),
    (
        "--delete --group g --topic t",
        "Option [delete] does not take the options [topic] or [all-topics].",
    ),
    (
        "--list --state bogus",
        "Invalid state list 'bogus'. Valid states are: Stable, Dead, Empty",
    ),
    (
        "--list --timeout abc",
        "Cannot parse argument 'abc' of option timeout",
    ),
];

#[test]
fn what_does_not_go_together_is_refused_in_kafkas_words() {
    for (line, says) in REFUSED {
        assert_eq!(wrong(line), *says, "{line}");
    }
    let nothing = parse(["--list".into()]);
    let says = "Missing required argument \"[bootstrap-server]\"".to_owned();
    assert_eq!(nothing, Err(Instead::Wrong(says)));
}

#[test]
fn flags_that_the_action_does_not_know_are_refused() {
    for line in [
        "--delete --all-groups --dry-run",
        "--list --execute",
        "--list --all-topics",
        "--list --members",
        "--list --reason x",
        "--list --verbose",
        "--describe --group g --circuit-breaker --verbose",
        "--pause --group g --state",
        "--delete-offsets --group g --topic t --dry-run",
    ] {
        assert!(wrong(line).contains("can't be used with option"), "{line}");
    }
    for line in [
        "--list extra",
        "--nonsense",
        "--list --list",
        "--describe --group",
    ] {
        assert!(!wrong(line).is_empty(), "{line}");
    }
}

#[test]
fn one_action_is_wanted() {
    for line in [
        "",
        "--list --describe --group g",
        "--pause --resume --group g",
    ] {
        assert_eq!(wrong(line), ACTIONS, "{line}");
    }
}

#[test]
fn list_takes_states_in_any_case() {
    let states =
        |names: &[&str]| Action::List(Some(names.iter().map(|n| (*n).to_owned()).collect()));
    assert_eq!(action("--list"), Action::List(None));
    assert_eq!(action("--list --state"), states(&[]));
    assert_eq!(
        action("--list --state stable,EMPTY"),
        states(&["Stable", "Empty"])
    );
}

#[test]
fn describe_shows_offsets_unless_told_otherwise() {
    let named = |names: &[&str]| Groups::Named(names.iter().map(|n| (*n).to_owned()).collect());
    let view = |line: &str| match action(line) {
        Action::Describe(view, _) => view,
        other => panic!("{line}: {other:?}"),
    };
    let offsets = View::Offsets { verbose: false };
    assert_eq!(
        action("--describe --group h --group g --group h"),
        Action::Describe(offsets, named(&["g", "h"]))
    );
    assert_eq!(
        action("--describe --all-groups --offsets"),
        Action::Describe(offsets, Groups::All)
    );
    let verbose = true;
    assert_eq!(
        view("--describe --group g --members --verbose"),
        View::Members { verbose }
    );
    assert_eq!(
        view("--describe --state --group g --verbose"),
        View::State { verbose }
    );
    assert_eq!(
        view("--describe --group g --circuit-breaker"),
        View::CircuitBreaker
    );
    assert_eq!(
        action("--describe --dlq-topology"),
        Action::Describe(View::DlqTopology, Groups::All)
    );
    assert!(
        wrong("--describe --group g --members --offsets").starts_with(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    );
}

#[test]
fn reset_knows_every_target_and_scope() {
    let reset = |line: &str| match action(&format!("--reset-offsets --group g {line}")) {
        Action::Reset(reset) => reset,
        other => panic!("{line}: {other:?}"),
    };
    for (flags, target) in [
        ("--to-earliest", Target::Earliest),
        ("--to-latest", Target::Latest),
        ("--to-current", Target::Current),
        ("--to-offset 5", Target::Offset(5)),
        ("--to-offset -5", Target::Offset(-5)),
        ("--to-datetime 1970-01-01T00:00:01.000", Target::Time(1000)),
    ] {
        let found = reset(&format!("--all-topics --dry-run {flags}"));
        assert_eq!(
            (found.scope, found.target),
            (Scope::AllTopics, target),
            "{flags}"
        );
        assert!(!found.execute);
    }
    let found = reset("--topic a --topic b:0,2 --to-latest --execute --export");
    let topics = vec![("a".to_owned(), vec![]), ("b".to_owned(), vec![0, 2])];
    assert_eq!(found.scope, Scope::Topics(topics));
    assert!(found.execute && found.export);
    let found = reset("--from-file f.csv --execute");
    let file = Target::File("f.csv".to_owned());
    assert_eq!((found.scope, found.target), (Scope::File, file));
    assert!(
        wrong("--reset-offsets --group g --all-topics --dry-run --to-datetime 2000-01-01")
            .contains("YYYY-MM-DDThh:mm:ss.sss")
    );
}

#[test]
fn pause_and_resume_take_groups_and_a_reason_of_256_characters() {
    let long = "ä".repeat(256);
    let expected = Action::Deliver {
        groups: vec!["g".to_owned()],
        pause: true,
        reason: Some(long.clone()),
    };
    assert_eq!(
        action(&format!("--pause --group g --reason {long}")),
        expected
    );
    let says = "Option [reason] takes at most 256 characters; this one has 257";
    assert_eq!(wrong(&format!("--resume --group g --reason {long}x")), says);
    for line in ["--pause", "--pause --all-groups"] {
        assert_eq!(wrong(line), "Option [pause] takes the option: [group]");
    }
}

#[test]
fn help_and_version_need_nothing_else() {
    let print = |flag: &str| match parse([OsString::from(flag)]) {
        Err(Instead::Print(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(print("--help").contains("--dlq-topology"));
    assert_eq!(
        print("--version"),
        concat!("ottla ", env!("CARGO_PKG_VERSION"), "\n")
    );
}
