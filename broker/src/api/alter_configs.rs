//! AlterConfigs (key 33), versions 0-2. KIP-133.
//!
//! - What a resource's entry does not name goes back to its default; IncrementalAlterConfigs changes
//!   only what it names.
//! - A resource that is named twice is refused both times; Kafka 4.4.0 never answers such a request.

use ottla_protocol::messages::AlterConfigsRequest;
use ottla_protocol::messages::alter_configs_request::AlterConfigsResource;
use ottla_protocol::messages::alter_configs_response::{
    AlterConfigsResourceResponse, AlterConfigsResponse,
};

use super::config_resources::{Planned, each_once, with_world};
use crate::cluster::Image;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let results = cx.broker.alter_configs(request.validate_only, |image| {
        each_once(
            &request.resources,
            |resource| (resource.resource_type, &resource.resource_name),
            |resource| replace(cx, image, resource),
        )
    });
    let responses = request.resources.iter().zip(results);
    let responses = responses.map(|(resource, result)| {
        let (code, message) = ApiError::told(result);
        AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone())
    });
    AlterConfigsResponse::default().with_responses(responses.collect())
}

fn replace(cx: &Cx, image: &Image, resource: &AlterConfigsResource) -> Planned {
    let configs: Vec<_> = resource
        .configs
        .iter()
        .map(|config| {
            let value = config.value.as_ref().map(ToString::to_string);
            (config.name.to_string(), value)
        })
        .collect();
    with_world(cx, image, |known, world| {
        known.replace(
            world,
            resource.resource_type,
            &resource.resource_name,
            &configs,
        )
    })
}
