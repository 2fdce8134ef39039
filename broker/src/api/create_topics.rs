//! CreateTopics (key 19), versions 2-7. KIP-4, KIP-464 (defaults with -1), KIP-525 (configs in the answer).
//!
//! - Names, partitions, replicas and configs are checked one topic at a time; each has its own error.
//! - A topic that is named twice in a request is refused, once.
//! - More than 10,000 partitions in one request are refused, all of them, with POLICY_VIOLATION.
//! - Served by every broker: all of them are the controller's neighbours in this process.

use ottla_protocol::messages::CreateTopicsRequest;
use ottla_protocol::messages::create_topics_request::CreatableTopic;
use ottla_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse,
};
use ottla_protocol::{StrBytes, Uuid};

use super::config_resources::with_world;
use super::new_partitions::each_once;
use crate::cluster::NewTopic;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let excess = "Excessively large number of partitions per request.";
    let count = |topic: &CreatableTopic| partition_count(cx, topic);
    let results = each_once(&request.topics, |topic| &*topic.name, count, excess);
    let results = results.map(|(wanted, allowed)| {
        let made = allowed.and_then(|()| create(cx, wanted, request.validate_only));
        respond(cx, wanted, made)
    });
    CreateTopicsResponse::default().with_topics(results.collect())
}

/// The partitions that a topic asks for.
fn partition_count(cx: &Cx, wanted: &CreatableTopic) -> i64 {
    match (wanted.assignments.len(), wanted.num_partitions) {
        (0, -1) => i64::from(cx.broker.config().topics.num_partitions),
        (0, count) => i64::from(count.max(0)),
        (assigned, _) => assigned as i64,
    }
}

/// What was made: its id, and the replicas of each partition.
type Made = (Uuid, Vec<Vec<i32>>);

fn create(cx: &Cx, wanted: &CreatableTopic, validate_only: bool) -> Result<Made, ApiError> {
    let given: Vec<(String, Option<String>)> = wanted
        .configs
        .iter()
        .map(|c| {
            (
                c.name.to_string(),
                c.value.as_ref().map(ToString::to_string),
            )
        })
        .collect();
    crate::cluster::placement::check_name(&wanted.name)?;
    let own = with_world(cx, &cx.broker.cluster.image(), |configs, world| {
        configs.check_new_topic(world, &given)
    })?;
    let assignments = wanted
        .assignments
        .iter()
        .map(|a| {
            (
                a.partition_index,
                a.broker_ids.iter().map(|id| id.0).collect(),
            )
        })
        .collect();
    let new = NewTopic {
        name: wanted.name.to_string(),
        partitions: wanted.num_partitions,
        replication_factor: wanted.replication_factor,
        assignments,
        configs: own,
    };
    cx.broker.create_topic(&new, validate_only)
}

fn respond(cx: &Cx, wanted: &CreatableTopic, made: Result<Made, ApiError>) -> CreatableTopicResult {
    let result = CreatableTopicResult::default().with_name(wanted.name.clone());
    match made {
        Ok((id, replicas)) => result
            .with_topic_id(id)
            .with_error_message(None)
            .with_num_partitions(replicas.len() as i32)
            .with_replication_factor(replicas.first().map_or(-1, |r| r.len() as i16))
            .with_configs(Some(configs(cx, &wanted.name))),
        Err(error) => result
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string))
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_configs(Some(vec![])),
    }
}

/// The configuration that the new topic has.
fn configs(cx: &Cx, name: &str) -> Vec<CreatableTopicConfigs> {
    with_world(cx, &cx.broker.cluster.image(), |configs, world| {
        configs.describe_topic(world.broker, name)
    })
    .into_iter()
    .map(|entry| {
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_string(entry.name))
            .with_value(entry.value.map(StrBytes::from_string))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source.wire())
            .with_is_sensitive(entry.sensitive)
    })
    .collect()
}
