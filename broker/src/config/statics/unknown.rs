//! Keys that no table knows: which are fine, and what was probably meant by the others.

use super::Origin;
use crate::config::table::{self, Scope};

/// Keys and prefixes outside Kafka's table that Kafka's own parts read.
const ACCEPTED: &[&str] = &["super.users", "allow.everyone.if.no.acl.found"];
const ACCEPTED_PREFIXES: &[&str] = &[
    "listener.name.",
    "rlmm.config.",
    "rsm.config.",
    "config.providers.",
    "sasl.",
    "ssl.",
];

/// The warning about an unknown key, if it deserves one.
pub(super) fn warning(key: &str, origin: &Origin) -> Option<String> {
    if ACCEPTED.contains(&key)
        || ACCEPTED_PREFIXES
            .iter()
            .any(|prefix| key.starts_with(prefix))
    {
        return None;
    }
    Some(format!(
        "{origin}: unknown config {key} is ignored{}",
        suggestion(Scope::Broker, key)
    ))
}

/// `; did you mean X?` with the nearest known key, or nothing if none is near.
pub(super) fn suggestion(scope: Scope, key: &str) -> String {
    nearest(scope, key).map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

/// The known key with the fewest edits, at most a third of the key's length.
fn nearest(scope: Scope, key: &str) -> Option<&'static str> {
    let limit = (key.chars().count() / 3).min(8);
    table::all(scope)
        .map(|row| (distance(key, row.name), row.name))
        .min()
        .filter(|(distance, _)| *distance <= limit)
        .map(|(_, name)| name)
}

/// The Levenshtein distance, by characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_suggested_and_only_a_near_one() {
        assert_eq!(
            suggestion(Scope::Broker, "log.retention.mss"),
            "; did you mean log.retention.ms?"
        );
        assert_eq!(
            suggestion(Scope::Broker, "num.partition"),
            "; did you mean num.partitions?"
        );
        assert_eq!(
            suggestion(Scope::Broker, "entirely.different.thing.altogether"),
            ""
        );
    }

    #[test]
    fn a_listeners_own_configs_are_no_unknown_keys() {
        assert_eq!(
            warning("listener.name.ext.ssl.keystore.type", &Origin::Set),
            None
        );
        assert!(warning("bogus", &Origin::Set).is_some());
    }
}
