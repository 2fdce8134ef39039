//! The group configs of dead letters, breaker and pause: ranges, and rules over several of them.

use ottla_protocol::ErrorCode;

use super::*;
use crate::config::table::{self, Scope};
use crate::config::value::check;

fn alter(configs: &Configs, group: &str, ops: &[AlterOp]) -> Result<Vec<ConfigChange>, Refusal> {
    configs.incremental_alter(&world(), ResourceType::Group.wire(), group, ops)
}

/// The text of the refusal, which is `INVALID_CONFIG`.
fn refused(configs: &Configs, group: &str, ops: &[AlterOp]) -> String {
    let refusal = alter(configs, group, ops).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::INVALID_CONFIG);
    refusal.message.unwrap()
}

#[test]
fn each_config_takes_the_values_of_its_range_and_no_others() {
    let breaker = |rest: &str| format!("share.group.dlq.circuit.breaker.{rest}");
    let cases: &[(String, &[&str], &[&str])] = &[
        (
            "share.group.dlq.write.timeout.ms".to_owned(),
            &["-1", "1", "9223372036854775807"],
            &["0", "-2", "x", "9223372036854775808"],
        ),
        (
            breaker("threshold"),
            &["1", "0.25", "5e-1", "4.9e-324"],
            &[
                "0", "-0.5", "1.0001", "NaN", "Infinity", "1e999", "1e-999", "",
            ],
        ),
        (breaker("window.ms"), &["60000"], &["0", "-1", "1.5"]),
        (
            breaker("window.buckets"),
            &["1", "1000"],
            &["0", "-1", "1001"],
        ),
        (
            breaker("min.messages"),
            &["1", "9223372036854775807"],
            &["0", "-1"],
        ),
        (breaker("auto.resume.ms"), &["1"], &["0", "-1"]),
        (breaker("enable"), &["true", "FALSE"], &["yes", ""]),
        (breaker("auto.resume.enable"), &["true"], &["1"]),
        (
            "share.group.dlq.strict.isolation".to_owned(),
            &["true"],
            &["2"],
        ),
        (
            "ottla.share.delivery.paused".to_owned(),
            &["true"],
            &["paused"],
        ),
        ("ottla.share.dlq.allow.loop".to_owned(), &["true"], &[""]),
        (
            "ottla.share.dlq.timeout.pause.enable".to_owned(),
            &["true"],
            &[""],
        ),
    ];
    for (key, good, bad) in cases {
        let row = table::find(Scope::Group, key).unwrap();
        for value in *good {
            assert!(check(row, value).is_ok(), "{key}={value}");
        }
        for value in *bad {
            let text = check(row, value).unwrap_err().to_string();
            assert!(text.contains(key.as_str()), "{text}");
        }
    }
    assert_eq!(cases.len(), table::ours(Scope::Group).len());
}

#[test]
fn a_group_that_sets_none_of_them_has_dead_letters_as_kafka_has_them() {
    let share = configs(&[]).group(0, "g").share;
    assert_eq!(share.dlq_write_timeout_ms, -1);
    assert!(!share.dlq_breaker_enable && !share.dlq_breaker_auto_resume_enable);
    assert!(!share.dlq_strict_isolation && !share.delivery_paused);
    assert!(!share.dlq_allow_loop && !share.dlq_timeout_pause_enable);
    assert_eq!(share.dlq_breaker_threshold.to_bits(), 0.5_f64.to_bits());
    assert_eq!(
        (
            share.dlq_breaker_window_ms,
            share.dlq_breaker_window_buckets
        ),
        (60_000, 6)
    );
    assert_eq!(share.dlq_breaker_min_messages, 100);
    assert_eq!(share.dlq_breaker_auto_resume_ms, 300_000);
}

const WINDOW: &str = "share.group.dlq.circuit.breaker.window.ms";
const BUCKETS: &str = "share.group.dlq.circuit.breaker.window.buckets";

#[test]
fn the_breakers_buckets_divide_its_window() {
    let mut configs = measured();
    let odd = refused(&configs, "g", &[set(BUCKETS, "7")]);
    assert_eq!(
        odd,
        format!("{BUCKETS} (7) must divide {WINDOW} (60000) without a rest")
    );
    assert!(alter(&configs, "g", &[set(BUCKETS, "7"), set(WINDOW, "70000")]).is_ok());
    refused(&configs, "g", &[set(WINDOW, "100")]);
    // More buckets than milliseconds do not divide either.
    refused(&configs, "g", &[set(WINDOW, "5")]);

    let both = alter(&configs, "g", &[set(BUCKETS, "7"), set(WINDOW, "70000")]).unwrap();
    apply_all(&mut configs, &both);
    // Going back to the default of one of them is looked at with the other.
    refused(&configs, "g", &[op(WINDOW, OpKind::Delete, None)]);
    let replaced = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())))
            .collect();
        configs.replace(&world(), ResourceType::Group.wire(), "g", &pairs)
    };
    assert!(replaced(&[(BUCKETS, "7")]).is_err());
    assert!(replaced(&[]).is_ok());
}

#[test]
fn a_window_that_a_new_default_no_longer_fits_is_rounded_down() {
    let default = format!("ottla.group.default.{WINDOW}");
    let mut configs = configs(&[(&default, "1200"), ("node.id", "1")]);
    configs.apply(&change(ResourceType::Group, "g", BUCKETS, Some("7")));
    assert_eq!(configs.group(1, "g").share.dlq_breaker_window_ms, 1197);
    configs.apply(&change(ResourceType::Group, "g", WINDOW, Some("3")));
    assert_eq!(configs.group(1, "g").share.dlq_breaker_window_ms, 7);
}

#[test]
fn a_default_for_all_groups_is_checked_at_the_start() {
    let refusal = |pairs: &[(&str, &str)]| try_statics(pairs).unwrap_err().to_string();
    let threshold = "ottla.group.default.share.group.dlq.circuit.breaker.threshold";
    assert!(refusal(&[(threshold, "NaN")]).contains(threshold));
    let buckets = format!("ottla.group.default.{BUCKETS}");
    assert!(refusal(&[(&buckets, "7")]).contains("must divide"));
    assert!(try_statics(&[(&buckets, "5")]).is_ok());
}

#[test]
fn what_needs_the_pause_is_refused_where_the_feature_is_off() {
    let configs = measured();
    let off = World {
        pause: false,
        ..world()
    };
    let kind = ResourceType::Group.wire();
    for key in [
        "ottla.share.delivery.paused",
        "ottla.share.dlq.timeout.pause.enable",
        "share.group.dlq.circuit.breaker.enable",
    ] {
        let on = configs.incremental_alter(&off, kind, "g", &[set(key, "TRUE")]);
        let refusal = on.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::INVALID_CONFIG);
        let text = refusal.message.unwrap();
        assert!(
            text.starts_with(&format!("{key}=true needs the feature share.pause.version")),
            "{text}"
        );
        let pair = [(key.to_owned(), Some("true".to_owned()))];
        assert!(configs.replace(&off, kind, "g", &pair).is_err());
        assert!(
            configs
                .incremental_alter(&off, kind, "g", &[set(key, "false")])
                .is_ok()
        );
        assert!(alter(&configs, "g", &[set(key, "true")]).is_ok());
    }
}

#[test]
fn what_is_stored_and_needs_the_pause_is_found_at_the_start() {
    const ENABLE: &str = "share.group.dlq.circuit.breaker.enable";
    let default = format!("ottla.group.default.{ENABLE}");
    let mut configs = configs(&[("node.id", "1"), (&default, "true")]);
    configs.apply(&change(ResourceType::Group, "g", ENABLE, Some("true")));
    configs.apply(&change(ResourceType::Group, "h", ENABLE, Some("false")));
    let problems = |group| configs.without_pause(1, group).len();
    assert_eq!((problems(None), problems(Some("g"))), (1, 1));
    assert_eq!(problems(Some("h")), 0);
}
