//! Features (KIP-584, KIP-1022): told by ApiVersions, changed by UpdateFeatures, with effect.

use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_protocol::messages::{
    ApiVersionsRequest, GroupId, ShareGroupHeartbeatRequest, TopicName, UpdateFeaturesRequest,
    UpdateFeaturesResponse,
};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, Settings};

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;

async fn update(
    client: &mut Client,
    version: i16,
    name: &'static str,
    level: i16,
    how: i8,
    dry: bool,
) -> UpdateFeaturesResponse {
    let key = FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str(name))
        .with_max_version_level(level)
        .with_upgrade_type(how);
    let request = UpdateFeaturesRequest::default()
        .with_feature_updates(vec![key])
        .with_validate_only(dry);
    client.call(version, &request).await
}

async fn level(client: &mut Client, name: &str) -> Option<i16> {
    let mut request = ApiVersionsRequest {
        node_id: -1,
        ..Default::default()
    };
    request.client_software_name = StrBytes::from_static_str("tests");
    request.client_software_version = StrBytes::from_static_str("1");
    let response = client.call(4, &request).await;
    let found = response
        .finalized_features
        .iter()
        .find(|f| &*f.name == name);
    found.map(|f| f.max_version_level)
}

async fn heartbeat(client: &mut Client) -> ErrorCode {
    let request = ShareGroupHeartbeatRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str("g")))
        .with_member_id(StrBytes::from_static_str("m"))
        .with_rack_id(None)
        .with_subscribed_topic_names(Some(vec![TopicName(StrBytes::from_static_str("t"))]));
    ErrorCode(client.call(1, &request).await.error_code)
}

#[tokio::test]
async fn share_version_0_refuses_share_groups_and_higher_levels_serve_them() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    assert_eq!(level(&mut client, "share.version").await, Some(2));
    assert_eq!(heartbeat(&mut client).await, ErrorCode::NONE);
    let response = update(&mut client, 2, "share.version", 0, SAFE_DOWNGRADE, false).await;
    assert_eq!(response.error_code, 0, "{response:?}");
    assert_eq!(level(&mut client, "share.version").await, None);
    assert_eq!(heartbeat(&mut client).await, ErrorCode::UNSUPPORTED_VERSION);
    for on in [1, 2] {
        let response = update(&mut client, 1, "share.version", on, UPGRADE, false).await;
        assert_eq!(response.error_code, 0, "{response:?}");
        assert_eq!(level(&mut client, "share.version").await, Some(on));
        assert_eq!(heartbeat(&mut client).await, ErrorCode::NONE);
    }
}

#[tokio::test]
async fn a_feature_may_be_set_in_the_properties() {
    let broker = Settings::new()
        .set("feature.share.version", "0")
        .start()
        .await;
    let mut client = broker.client().await;
    assert_eq!(level(&mut client, "share.version").await, None);
    assert_eq!(heartbeat(&mut client).await, ErrorCode::UNSUPPORTED_VERSION);
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_a_dry_run_changes_nothing() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let refused = ErrorCode::INVALID_UPDATE_VERSION;
    let lower = "Can't downgrade the version of this feature without setting the upgrade type to either \
                 safe or unsafe downgrade.";
    for (name, to, how, why) in [
        (
            "share.version",
            3,
            UPGRADE,
            "Local controller 0 only supports versions 0-2",
        ),
        (
            "share.version",
            -1,
            UPGRADE,
            "A feature version cannot be less than 0.",
        ),
        ("share.version", 1, UPGRADE, lower),
        (
            "share.version",
            2,
            9,
            "The controller does not support the given upgrade type.",
        ),
        (
            "no.such",
            1,
            UPGRADE,
            "Local controller 0 does not support this feature.",
        ),
        (
            "metadata.version",
            0,
            SAFE_DOWNGRADE,
            "Local controller 0 only supports versions 7-33",
        ),
    ] {
        let response = update(&mut client, 1, name, to, how, false).await;
        assert_eq!(
            ErrorCode(response.error_code),
            refused,
            "{name} {to} {response:?}"
        );
        let message = format!(
            "The update failed for all features since the following feature had an error: \
             Invalid update version {to} for feature {name}. {why}"
        );
        assert_eq!(response.error_message.as_deref(), Some(&*message));
        assert!(response.results.is_empty());
    }
    let response = update(&mut client, 2, "share.version", 1, SAFE_DOWNGRADE, true).await;
    assert_eq!(response.error_code, 0);
    assert_eq!(level(&mut client, "share.version").await, Some(2));
}
