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

use super::config_resources::{each_once, with_world};
use crate::config::{AlterOp, OpKind, ResourceType};
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let results = each_once(
        &request.resources,
        |resource| (resource.resource_type, &resource.resource_name),
        |resource| alter(cx, resource, request.validate_only),
    );
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

fn alter(cx: &Cx, resource: &AlterConfigsResource, validate_only: bool) -> Result<(), ApiError> {
    let ops = resource
        .configs
        .iter()
        .map(|config| {
            let kind = OpKind::from_wire(config.config_operation).ok_or_else(|| {
                let message = format!("Unknown operation type {}.", config.config_operation);
                ApiError::new(ErrorCode::INVALID_REQUEST, message)
            })?;
            let value = config.value.as_ref().map(ToString::to_string);
            Ok(AlterOp {
                key: config.name.to_string(),
                kind,
                value,
            })
        })
        .collect::<Result<Vec<_>, ApiError>>()?;
    let mut changes = with_world(cx, |configs, world| {
        configs.incremental_alter(world, resource.resource_type, &resource.resource_name, &ops)
    })?;
    changes.retain(|change| change.resource != ResourceType::BrokerLogger);
    if validate_only {
        return Ok(());
    }
    cx.broker.store_configs(changes)
}
