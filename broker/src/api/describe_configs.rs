//! DescribeConfigs (key 32), versions 1-4. KIP-133, KIP-226, KIP-569.
//!
//! - Topics, brokers (`""` = what all share), groups, client-metrics subscriptions, loggers.
//! - Each resource has its own error; a group that was never seen has the defaults.
//! - An empty list of keys asks for all of them, as a null one does.
//! - Synonyms and documentation come only when asked for.

use ottla_protocol::StrBytes;
use ottla_protocol::messages::DescribeConfigsRequest;
use ottla_protocol::messages::describe_configs_request::DescribeConfigsResource;
use ottla_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
    DescribeConfigsSynonym,
};

use super::config_resources::with_world;
use super::named::once;
use crate::config::ConfigEntry;
use crate::context::Cx;

pub(super) async fn handle(cx: &Cx, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let resources = once(&request.resources, |resource| {
        let keys = &resource.configuration_keys;
        (resource.resource_type, &resource.resource_name, keys)
    });
    let results = resources.map(|resource| describe(cx, &request, resource));
    DescribeConfigsResponse::default().with_results(results.collect())
}

fn describe(
    cx: &Cx,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
) -> DescribeConfigsResult {
    let keys: Option<Vec<String>> = resource
        .configuration_keys
        .as_ref()
        // An empty list asks for everything, as no list does: what Kafka 4.4.0 does.
        .filter(|keys| !keys.is_empty())
        .map(|keys| keys.iter().map(ToString::to_string).collect());
    let image = cx.broker.cluster.image();
    let described = with_world(cx, &image, |configs, world| {
        configs.describe(
            world,
            resource.resource_type,
            &resource.resource_name,
            keys.as_deref(),
        )
    });
    let result = DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone());
    match described {
        Ok(entries) => result
            .with_error_message(None)
            .with_configs(entries.into_iter().map(|e| entry(request, e)).collect()),
        Err(refusal) => result
            .with_error_code(refusal.code.0)
            .with_error_message(refusal.message.map(StrBytes::from_string)),
    }
}

fn entry(request: &DescribeConfigsRequest, entry: ConfigEntry) -> DescribeConfigsResourceResult {
    let text = |value: Option<String>| value.map(StrBytes::from_string);
    let synonyms = if request.include_synonyms {
        entry.synonyms
    } else {
        vec![]
    };
    let synonyms = synonyms.into_iter().map(|s| {
        DescribeConfigsSynonym::default()
            .with_name(StrBytes::from_string(s.name))
            .with_value(text(s.value))
            .with_source(s.source.wire())
    });
    DescribeConfigsResourceResult::default()
        .with_name(StrBytes::from_string(entry.name))
        .with_value(text(entry.value))
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.wire())
        .with_is_sensitive(entry.sensitive)
        .with_synonyms(synonyms.collect())
        .with_config_type(entry.kind)
        .with_documentation(text(
            entry
                .documentation
                .filter(|_| request.include_documentation),
        ))
}
