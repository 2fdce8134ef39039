//! Single values against rows: Kafka's texts, measured on 4.4.0.

use crate::config::table::{self, Scope};
use crate::config::value::{check, iso_duration_ms};

fn topic(key: &str, value: &str) -> Result<String, String> {
    check(table::find(Scope::Topic, key).unwrap(), value).map_err(|error| error.to_string())
}

fn refused(key: &str, value: &str) -> String {
    topic(key, value).unwrap_err()
}

#[test]
fn whole_numbers_are_trimmed_and_must_fit_their_type() {
    assert_eq!(topic("max.message.bytes", " 12 "), Ok("12".to_owned()));
    for (key, value, kind) in [
        ("retention.ms", "x", "LONG"),
        ("retention.ms", "99999999999999999999", "LONG"),
        ("segment.bytes", "3000000000", "INT"),
        ("segment.bytes", "1.5", "INT"),
        ("segment.bytes", "", "INT"),
    ] {
        let expected =
            format!("Invalid value {value} for configuration {key}: Not a number of type {kind}");
        assert_eq!(refused(key, value), expected);
    }
}

#[test]
fn booleans_take_any_case_and_nothing_else() {
    assert_eq!(topic("preallocate", " TRUE "), Ok("true".to_owned()));
    assert_eq!(
        refused("preallocate", "1"),
        "Invalid value 1 for configuration preallocate: Expected value to be either true or false"
    );
}

#[test]
fn fractions_are_read_as_java_does() {
    for good in ["0.5", "1", "0", "5e-1", "0.5d", "0.5f", ".5", "NaN"] {
        assert!(topic("min.cleanable.dirty.ratio", good).is_ok(), "{good}");
    }
    for bad in ["abc", "", "nan", "inf", "0,5", "d"] {
        assert_eq!(
            refused("min.cleanable.dirty.ratio", bad),
            format!(
                "Invalid value {bad} for configuration min.cleanable.dirty.ratio: Not a number of type \
                 DOUBLE"
            )
        );
    }
    assert_eq!(
        refused("min.cleanable.dirty.ratio", "1.5"),
        "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
    );
    assert_eq!(
        refused("min.cleanable.dirty.ratio", "-0.5"),
        "Invalid value -0.5 for configuration min.cleanable.dirty.ratio: Value must be at least 0"
    );
}

#[test]
fn lists_are_trimmed_and_their_elements_checked() {
    assert_eq!(
        topic("cleanup.policy", " compact , delete "),
        Ok("compact,delete".to_owned())
    );
    assert_eq!(topic("cleanup.policy", ""), Ok(String::new()));
    assert_eq!(
        refused("cleanup.policy", "compact,,delete"),
        "Configuration 'cleanup.policy' values must not be empty."
    );
    assert_eq!(
        refused("cleanup.policy", "compact,foo"),
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"
    );
}

#[test]
fn compression_levels_have_the_ranges_of_their_codecs() {
    for (key, value, problem) in [
        (
            "compression.gzip.level",
            "0",
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.gzip.level",
            "10",
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.lz4.level",
            "18",
            "Value must be no more than 17",
        ),
        (
            "compression.zstd.level",
            "23",
            "Value must be no more than 22",
        ),
        (
            "compression.zstd.level",
            "-131073",
            "Value must be at least -131072",
        ),
    ] {
        assert_eq!(
            refused(key, value),
            format!("Invalid value {value} for configuration {key}: {problem}")
        );
    }
    assert!(topic("compression.gzip.level", "-1").is_ok());
}

#[test]
fn throttled_replicas_are_a_star_or_pairs() {
    let key = "follower.replication.throttled.replicas";
    for good in ["*", "", "0:1", "0:1,1:2"] {
        assert!(topic(key, good).is_ok(), "{good}");
    }
    assert_eq!(
        refused(key, "0:1,1:x"),
        "Invalid value [0:1, 1:x] for configuration follower.replication.throttled.replicas: \
         follower.replication.throttled.replicas must be the literal '*' or a list of replicas in the \
         following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    );
}

#[test]
fn an_offset_reset_is_earliest_latest_or_a_duration_back() {
    let def = table::find(Scope::Group, "share.auto.offset.reset").unwrap();
    for good in [
        "earliest",
        "latest",
        "by_duration:PT0S",
        "by_duration:P1D",
        "by_duration:P1DT2H3M4.5S",
        "by_duration:pt1h",
        "by_duration:P999999999999D",
    ] {
        assert!(check(def, good).is_ok(), "{good}");
    }
    for bad in [
        "none",
        "EARLIEST",
        "by_duration:-PT1H",
        "by_duration:xx",
        "by_duration",
        "by_duration:",
        "BY_DURATION:PT1H",
        "by_duration:P1W",
        "by_duration:PT-1H2M",
        "",
    ] {
        assert_eq!(
            check(def, bad).unwrap_err().to_string(),
            format!(
                "Invalid value {bad} for configuration share.auto.offset.reset: Invalid value `{bad}` \
                 for configuration share.auto.offset.reset. The value must be either 'earliest', \
                 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
            )
        );
    }
}

#[test]
fn iso_durations_become_milliseconds() {
    for (text, ms) in [
        ("PT1S", 1_000),
        ("PT0.5S", 500),
        ("PT-0.5S", -500),
        ("-PT0.5S", -500),
        ("PT1H30M", 5_400_000),
        ("P2DT3H4M", 183_840_000),
        ("+P1D", 86_400_000),
        (
            "P999999999999D",
            86_399_999_999_913_600_000_i128.min(i128::from(i64::MAX)) as i64,
        ),
    ] {
        assert_eq!(iso_duration_ms(text), Some(ms), "{text}");
    }
    for bad in [
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "P1H",
        "PT1D",
        "PT1M1H",
        "PT1.5M",
        "PT1.1234567890S",
        "PTS",
    ] {
        assert_eq!(iso_duration_ms(bad), None, "{bad}");
    }
}
