//! ApiVersions (key 18), versions 0-5. KIP-35, KIP-482, KIP-511, KIP-584.
//!
//! - Answers with the table of `api/mod.rs`: what is not served is not advertised.
//! - A version newer than ours gets error 35 in the v0 layout, with key 18's own range (KIP-511).
//! - v3+ carries the features; a feature whose minimum is 0 may be told from v4 on only.
//! - v5: cluster id and node id come together or not at all; wrong ones make the client bootstrap anew.

use ottla_protocol::messages::ApiVersionsRequest;
use ottla_protocol::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use ottla_protocol::{ErrorCode, StrBytes};

use super::TABLE;
use crate::context::Cx;
use crate::features::SUPPORTED;

pub(super) async fn handle(cx: &Cx, request: ApiVersionsRequest) -> ApiVersionsResponse {
    if cx.version >= 3 {
        let software = [
            &request.client_software_name,
            &request.client_software_version,
        ];
        if !software.into_iter().all(|s| is_software_name(s)) {
            return error(ErrorCode::INVALID_REQUEST);
        }
    }
    match (&request.cluster_id, request.node_id) {
        (None, -1) => {}
        (None, _) | (Some(_), -1) => return error(ErrorCode::INVALID_REQUEST),
        (Some(cluster), node) => {
            if **cluster != *cx.broker.cluster_id() || node != cx.node.id {
                return error(ErrorCode::REBOOTSTRAP_REQUIRED);
            }
        }
    }
    let image = cx.broker.cluster.image();
    let supported = SUPPORTED
        .iter()
        .filter(|f| f.min > 0 || cx.version >= 4)
        .map(|f| SupportedFeatureKey {
            name: StrBytes::from_static_str(f.name),
            min_version: f.min,
            max_version: f.max,
            ..Default::default()
        })
        .collect();
    let finalized = image
        .features
        .iter()
        .filter(|&(_, &level)| level > 0)
        .map(|(name, &level)| FinalizedFeatureKey {
            name: StrBytes::from_string(name.clone()),
            max_version_level: level,
            min_version_level: level,
            ..Default::default()
        })
        .collect();
    ApiVersionsResponse {
        api_keys: TABLE
            .iter()
            .map(|api| row(api.key, api.min, api.max))
            .collect(),
        supported_features: supported,
        finalized_features_epoch: image.features_epoch,
        finalized_features: finalized,
        ..Default::default()
    }
}

/// Letters and digits, with `-` and `.` inside.
fn is_software_name(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}

fn row(key: i16, min: i16, max: i16) -> ApiVersion {
    ApiVersion {
        api_key: key,
        min_version: min,
        max_version: max,
        ..Default::default()
    }
}

fn error(code: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: code.0,
        ..Default::default()
    }
}

/// The answer to a version that is not served: the error, and the range that is.
pub fn refusal(code: ErrorCode) -> ApiVersionsResponse {
    let own = TABLE
        .iter()
        .filter(|api| api.key == 18)
        .map(|api| row(18, api.min, api.max));
    ApiVersionsResponse {
        api_keys: own.collect(),
        ..error(code)
    }
}
