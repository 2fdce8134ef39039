//! UpdateFeatures (key 57), versions 0-2. KIP-584, KIP-778 (v1: upgrade types, dry runs).
//!
//! - All updates of a request hold, or none (v2 answers without results; v0-1 with one a feature).
//! - Level 0 removes a feature's finalized level: `share.version` 0 refuses share groups.

use ottla_protocol::messages::UpdateFeaturesRequest;
use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_protocol::messages::update_features_response::{
    UpdatableFeatureResult, UpdateFeaturesResponse,
};
use ottla_protocol::{ErrorCode, StrBytes};

use crate::context::Cx;
use crate::error_code::ApiError;
use crate::features::{self, UpgradeType};

pub(super) async fn handle(cx: &Cx, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
    let checked: Vec<Result<(), ApiError>> = request
        .feature_updates
        .iter()
        .map(|update| check(cx, update))
        .collect();
    let mut failed = checked.iter().find_map(|result| result.clone().err());
    if failed.is_none() && !request.validate_only {
        for update in &request.feature_updates {
            let set =
                cx.broker
                    .cluster
                    .set_feature(&update.feature, update.max_version_level, cx.now());
            failed = failed.or(set.err());
        }
    }
    let response = UpdateFeaturesResponse::default().with_error_message(None);
    let results = request
        .feature_updates
        .iter()
        .zip(&checked)
        .map(|(update, result)| {
            let error = result.as_ref().err();
            UpdatableFeatureResult::default()
                .with_feature(update.feature.clone())
                .with_error_code(error.map_or(0, ApiError::number))
                .with_error_message(
                    error
                        .and_then(|e| e.message.clone())
                        .map(StrBytes::from_string),
                )
        });
    let response = if cx.version <= 1 {
        response.with_results(results.collect())
    } else {
        response
    };
    match failed {
        None => response,
        Some(error) => {
            let message = error.message.map(|text| {
                format!("The update failed for all features since the following feature had an error: {text}")
            });
            response
                .with_error_code(error.code.0)
                .with_error_message(message.map(StrBytes::from_string))
        }
    }
}

fn check(cx: &Cx, update: &FeatureUpdateKey) -> Result<(), ApiError> {
    let how = match (cx.version, update.allow_downgrade, update.upgrade_type) {
        (0, true, _) => UpgradeType::SafeDowngrade,
        (0, false, _) | (_, _, 1) => UpgradeType::Upgrade,
        (_, _, 2) => UpgradeType::SafeDowngrade,
        (_, _, 3) => UpgradeType::UnsafeDowngrade,
        _ => {
            return Err(ApiError::new(
                ErrorCode::INVALID_UPDATE_VERSION,
                format!(
                    "Invalid upgrade type {} for feature {}.",
                    update.upgrade_type, &*update.feature
                ),
            ));
        }
    };
    let now = cx.broker.feature_level(&update.feature);
    features::check(&update.feature, now, update.max_version_level, how)
}
