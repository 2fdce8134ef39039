//! UpdateFeatures (key 57), versions 0-2. KIP-584, KIP-778 (v1: upgrade types, dry runs).
//!
//! - All updates of a request hold, or none; v0-1 then answer with one result a feature.
//! - `share.pause.version`, of Ottla's own, goes down only while no share group is paused or has a breaker.
//! - Level 0 removes a feature's finalized level: `share.version` 0 refuses share groups.

use ottla_protocol::StrBytes;
use ottla_protocol::messages::UpdateFeaturesRequest;
use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_protocol::messages::update_features_response::{
    UpdatableFeatureResult, UpdateFeaturesResponse,
};

use crate::context::Cx;
use crate::error_code::ApiError;
use crate::features::{self, SHARE_PAUSE_VERSION, UpgradeType};

pub(super) async fn handle(cx: &Cx, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
    let mut updates = request.feature_updates.iter();
    let mut failed = updates.find_map(|update| check(cx, update).err());
    if failed.is_none() && !request.validate_only {
        let wanted = request.feature_updates.iter();
        let levels = wanted.map(|u| (u.feature.to_string(), u.max_version_level));
        failed = cx
            .broker
            .cluster
            .set_features(levels.collect(), cx.now())
            .err();
        cx.broker.deliveries.configs_changed(&cx.broker);
    }
    let response = UpdateFeaturesResponse::default().with_error_message(None);
    if let Some(error) = failed {
        let message = error.message.map(|text| {
            format!("The update failed for all features since the following feature had an error: {text}")
        });
        return response
            .with_error_code(error.code.0)
            .with_error_message(message.map(StrBytes::from_string));
    }
    if cx.version > 1 {
        return response;
    }
    let results = request.feature_updates.iter().map(|update| {
        UpdatableFeatureResult::default()
            .with_feature(update.feature.clone())
            .with_error_message(None)
    });
    response.with_results(results.collect())
}

fn check(cx: &Cx, update: &FeatureUpdateKey) -> Result<(), ApiError> {
    let how = match (cx.version, update.allow_downgrade, update.upgrade_type) {
        (0, true, _) => UpgradeType::SafeDowngrade,
        (0, false, _) | (_, _, 1) => UpgradeType::Upgrade,
        (_, _, 2) => UpgradeType::SafeDowngrade,
        (_, _, 3) => UpgradeType::UnsafeDowngrade,
        _ => {
            return Err(features::invalid(
                &update.feature,
                update.max_version_level,
                "The controller does not support the given upgrade type.",
            ));
        }
    };
    let now = cx.broker.feature_level(&update.feature);
    let controller = cx.broker.cluster.controller_id();
    let wanted = update.max_version_level;
    features::check(controller, &update.feature, now, wanted, how)?;
    if *update.feature == *SHARE_PAUSE_VERSION
        && wanted == 0
        && let Some(group) = cx.broker.deliveries.in_use(&cx.broker)
    {
        let why = format!("It is in use: {group}.");
        return Err(features::invalid(&update.feature, wanted, &why));
    }
    Ok(())
}
