//! ListConfigResources (key 74), versions 0-1. KIP-1142.
//!
//! - v0 lists client-metrics subscriptions; v1 the types that are asked for, or all.
//! - Groups are those that have stored configs.

use ottla_protocol::StrBytes;
use ottla_protocol::messages::ListConfigResourcesRequest;
use ottla_protocol::messages::list_config_resources_response::{
    ConfigResource, ListConfigResourcesResponse,
};

use crate::config::ResourceType;
use crate::context::Cx;

pub(super) async fn handle(
    cx: &Cx,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let response = ListConfigResourcesResponse::default();
    let types = if cx.version == 0 {
        vec![ResourceType::ClientMetrics.wire()]
    } else {
        request.resource_types
    };
    let image = cx.broker.cluster.image();
    let topics: Vec<String> = image.topics.keys().map(ToString::to_string).collect();
    let brokers: Vec<i32> = cx.broker.nodes().map(|node| node.id).collect();
    match image.configs.list_resources(&types, &topics, &brokers) {
        Ok(resources) => response.with_config_resources(
            resources
                .into_iter()
                .map(|(kind, name)| {
                    ConfigResource::default()
                        .with_resource_name(StrBytes::from_string(name))
                        .with_resource_type(kind.wire())
                })
                .collect(),
        ),
        Err(refusal) => response.with_error_code(refusal.code.0),
    }
}
