//! Features and their levels (KIP-584, KIP-932): what is supported, what a fresh cluster finalizes,
//! and the rules of UpdateFeatures.

use std::collections::BTreeMap;

use ottla_protocol::ErrorCode;

use crate::error_code::ApiError;

/// A feature that this broker knows.
#[derive(Debug, Clone, Copy)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// The lowest level that is supported.
    pub min: i16,
    /// The highest.
    pub max: i16,
    /// What a fresh cluster starts with.
    pub default: i16,
}

const fn feature(name: &'static str, min: i16, max: i16, default: i16) -> Feature {
    Feature {
        name,
        min,
        max,
        default,
    }
}

/// Every feature, with the levels of Apache Kafka 4.4.0, and Ottla's own. A level says what clients may expect; an
/// API that is not advertised is not served whatever the level.
pub const SUPPORTED: &[Feature] = &[
    feature("eligible.leader.replicas.version", 0, 1, 1),
    feature("group.version", 0, 1, 1),
    feature("kraft.version", 0, 1, 1),
    feature(METADATA_VERSION, 7, 33, 33),
    feature(SHARE_PAUSE_VERSION, 0, 1, 1),
    feature("share.version", 0, 2, 2),
    feature("streams.version", 0, 1, 1),
    feature("transaction.version", 0, 2, 2),
];

/// The feature that no cluster is without.
pub const METADATA_VERSION: &str = "metadata.version";

/// The feature of pausing share groups and of the circuit breaker (KIP-1249 and KIP-1316, drafts).
pub const SHARE_PAUSE_VERSION: &str = "share.pause.version";

/// How UpdateFeatures may lower a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeType {
    /// Not at all.
    Upgrade,
    /// Where nothing is lost.
    SafeDowngrade,
    /// Even where something is.
    UnsafeDowngrade,
}

/// Finds a feature by name.
pub fn find(name: &str) -> Option<&'static Feature> {
    SUPPORTED.iter().find(|f| f.name == name)
}

/// The levels of a fresh cluster: the defaults, and what the properties ask for.
pub fn initial(asked: &BTreeMap<String, i16>) -> Result<BTreeMap<String, i16>, String> {
    let mut levels: BTreeMap<String, i16> = SUPPORTED
        .iter()
        .map(|f| (f.name.to_owned(), f.default))
        .collect();
    for (name, &level) in asked {
        let Some(known) = find(name) else {
            return Err(format!(
                "feature {name} is not known; known are {}",
                SUPPORTED
                    .iter()
                    .map(|f| f.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        };
        if level != 0 && !(known.min..=known.max).contains(&level) {
            return Err(format!(
                "feature {name} supports the levels {} to {}, not {level}",
                known.min, known.max
            ));
        }
        levels.insert(name.clone(), level);
    }
    Ok(levels)
}

/// Why a feature cannot have a level.
pub fn invalid(name: &str, wanted: i16, why: &str) -> ApiError {
    let message = format!("Invalid update version {wanted} for feature {name}. {why}");
    ApiError::new(ErrorCode::INVALID_UPDATE_VERSION, message)
}

/// Checks one update against the level in force, on the broker `controller`.
pub fn check(
    controller: i32,
    name: &str,
    now: i16,
    wanted: i16,
    how: UpgradeType,
) -> Result<(), ApiError> {
    let invalid = |why: String| Err(invalid(name, wanted, &why));
    let Some(known) = find(name) else {
        return invalid(format!(
            "Local controller {controller} does not support this feature."
        ));
    };
    if wanted < 0 {
        return invalid("A feature version cannot be less than 0.".to_owned());
    }
    let removed = wanted == 0 && name != METADATA_VERSION;
    if wanted > known.max || (wanted < known.min && !removed) {
        return invalid(format!(
            "Local controller {controller} only supports versions {}-{}",
            known.min, known.max
        ));
    }
    if wanted < now && how == UpgradeType::Upgrade {
        return invalid(
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.".to_owned(),
        );
    }
    if wanted > now && how != UpgradeType::Upgrade {
        return invalid("Can't downgrade to a newer version.".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_cluster_serves_share_groups_with_dead_letters() {
        assert_eq!(
            initial(&BTreeMap::new())
                .unwrap_or_default()
                .get("share.version"),
            Some(&2)
        );
    }

    #[test]
    fn an_unknown_feature_or_level_is_named() {
        let ask = |name: &str, level| initial(&BTreeMap::from([(name.to_owned(), level)]));
        let refusal = |name, level| ask(name, level).err().unwrap_or_default();
        assert!(refusal("share.version", 3).contains("0 to 2"));
        assert!(refusal("shares", 1).contains("share.version"));
    }

    #[test]
    fn a_level_goes_down_only_when_asked_to() {
        assert!(check(0, "share.version", 2, 1, UpgradeType::Upgrade).is_err());
        assert!(check(0, "share.version", 2, 0, UpgradeType::SafeDowngrade).is_ok());
        assert!(check(0, "share.version", 1, 2, UpgradeType::SafeDowngrade).is_err());
        assert!(check(0, METADATA_VERSION, 33, 0, UpgradeType::UnsafeDowngrade).is_err());
    }
}
