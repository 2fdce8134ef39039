//! Pause, circuit breaker and dead letters of a share group, as an operator sees them (APIs 20000 and 20001).

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::describe_share_group_delivery_response::DescribedShareGroupDelivery;
use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_protocol::messages::{
    AlterShareGroupDeliveryRequest, DescribeShareGroupDeliveryRequest, UpdateFeaturesRequest,
};

use crate::Client;
use crate::share::{Code, group_id, text};

impl Client {
    /// Delivery state, breaker and letters of a group, whatever comes of the question.
    pub async fn try_delivery(&mut self, group: &str) -> DescribedShareGroupDelivery {
        let request = DescribeShareGroupDeliveryRequest {
            group_ids: vec![group_id(group)],
            ..Default::default()
        };
        self.call(0, &request).await.groups.swap_remove(0)
    }

    /// Delivery state, breaker and letters of a group; the client's broker coordinates it.
    pub async fn delivery(&mut self, group: &str) -> DescribedShareGroupDelivery {
        let told = self.try_delivery(group).await;
        assert_eq!(ErrorCode(told.error_code), ErrorCode::NONE, "{told:?}");
        told
    }

    /// Why a group is paused; `None` while it runs.
    pub async fn paused(&mut self, group: &str) -> Option<String> {
        let told = self.delivery(group).await;
        match &*told.delivery_state {
            "RUNNING" => None,
            "PAUSED" => Some(told.pause_reason.unwrap_or_default().to_string()),
            other => panic!("delivery state {other} of {told:?}"),
        }
    }

    /// Pauses a group.
    pub async fn pause(&mut self, group: &str, reason: Option<&str>) -> Code {
        self.alter_delivery(group, true, reason).await
    }

    /// Resumes a group.
    pub async fn resume(&mut self, group: &str, reason: Option<&str>) -> Code {
        self.alter_delivery(group, false, reason).await
    }

    async fn alter_delivery(&mut self, group: &str, pause: bool, reason: Option<&str>) -> Code {
        let request = AlterShareGroupDeliveryRequest {
            group_id: group_id(group),
            pause,
            reason: reason.map(text),
            ..Default::default()
        };
        let answer = self.call(0, &request).await;
        let message = answer.error_message.map(|message| message.to_string());
        (answer.error_code, message)
    }

    /// State, reason and since when: `PAUSED ADMIN 17`, `RUNNING - -1`.
    pub async fn delivery_line(&mut self, group: &str) -> String {
        let told = self.delivery(group).await;
        let reason = told.pause_reason.as_deref().unwrap_or("-");
        let (state, since) = (&told.delivery_state, told.paused_since_ms);
        format!("{} {reason} {since}", &**state)
    }

    /// Sets the level of a feature, down too; the error and its text.
    pub async fn set_feature(&mut self, name: &str, level: i16, down: bool) -> Code {
        let update = FeatureUpdateKey::default()
            .with_feature(text(name))
            .with_max_version_level(level)
            .with_upgrade_type(if down { 2 } else { 1 });
        let request = UpdateFeaturesRequest::default().with_feature_updates(vec![update]);
        let answer = self.call(2, &request).await;
        let message = answer.error_message.map(|text| text.to_string());
        (answer.error_code, message)
    }
}
