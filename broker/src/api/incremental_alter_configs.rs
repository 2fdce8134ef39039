//! IncrementalAlterConfigs (key 44), versions 0-1. KIP-339, KIP-412.
//!
//! - SET, DELETE, APPEND, SUBTRACT; a resource changes as a whole or not at all.
//! - A resource that is named twice is refused both times, as in Kafka.
//! - Loggers are checked and then left to the log filter of the command line: nothing is stored.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::IncrementalAlterConfigsRequest;
use ottla_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use ottla_protocol::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};

use super::config_resources::{Planned, each_once, with_world};
use crate::cluster::Image;
use crate::config::{AlterOp, OpKind, Refusal, ResourceType};
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let results = cx.broker.alter_configs(request.validate_only, |image| {
        each_once(
            &request.resources,
            |resource| (resource.resource_type, &resource.resource_name),
            |resource| alter(cx, image, resource),
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
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

fn alter(cx: &Cx, image: &Image, resource: &AlterConfigsResource) -> Planned {
    let ops = resource
        .configs
        .iter()
        .map(|config| {
            let kind = OpKind::from_wire(config.config_operation).ok_or_else(|| {
                let message = format!("Unknown operation type {}.", config.config_operation);
                Refusal {
                    code: ErrorCode::INVALID_REQUEST,
                    message: Some(message),
                }
            })?;
            let value = config.value.as_ref().map(ToString::to_string);
            Ok(AlterOp {
                key: config.name.to_string(),
                kind,
                value,
            })
        })
        .collect::<Result<Vec<_>, Refusal>>()?;
    let mut changes = with_world(cx, image, |configs, world| {
        configs.incremental_alter(world, resource.resource_type, &resource.resource_name, &ops)
    })?;
    changes.retain(|change| change.resource != ResourceType::BrokerLogger);
    Ok(changes)
}
