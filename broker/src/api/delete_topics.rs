//! DeleteTopics (key 20), versions 1-6. KIP-4, KIP-516 (v6: by id).
//!
//! - Refused with TOPIC_DELETION_DISABLED where `delete.topic.enable` is off.
//! - v6 names a topic by name or by id, not both; the files go after `file.delete.delay.ms`.

use std::sync::Arc;

use ottla_protocol::messages::delete_topics_request::DeleteTopicState;
use ottla_protocol::messages::delete_topics_response::{
    DeletableTopicResult, DeleteTopicsResponse,
};
use ottla_protocol::messages::{DeleteTopicsRequest, TopicName};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};

use crate::cluster::Topic;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let wanted: Vec<DeleteTopicState> = if cx.version >= 6 {
        request.topics
    } else {
        let named = request.topic_names.into_iter();
        named
            .map(|name| DeleteTopicState::default().with_name(Some(name)))
            .collect()
    };
    let responses = wanted.into_iter().map(|wanted| {
        let found = find(cx, &wanted);
        let name = match &found {
            Ok(topic) => Some(TopicName(StrBytes::from_string(topic.name.to_string()))),
            Err(_) => wanted.name.clone(),
        };
        let id = found.as_ref().map_or(wanted.topic_id, |topic| topic.id);
        let (code, message) = ApiError::told(found.and_then(|topic| delete(cx, &topic)));
        DeletableTopicResult::default()
            .with_name(name)
            .with_topic_id(id)
            .with_error_code(code)
            .with_error_message(message)
    });
    DeleteTopicsResponse::default().with_responses(responses.collect())
}

fn find(cx: &Cx, wanted: &DeleteTopicState) -> Result<Arc<Topic>, ApiError> {
    match (&wanted.name, wanted.topic_id) {
        (Some(name), id) if id == Uuid::nil() => cx.broker.cluster.topic(name).ok_or_else(|| {
            let message = "This server does not host this topic-partition.";
            ApiError::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message)
        }),
        (None, id) if id != Uuid::nil() => cx.broker.cluster.topic_by_id(id).ok_or_else(|| {
            let message = "This server does not host this topic ID.";
            ApiError::new(ErrorCode::UNKNOWN_TOPIC_ID, message)
        }),
        (Some(_), _) => Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "You may not specify both topic name and topic id.",
        )),
        (None, _) => Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "Neither topic name nor id were specified.",
        )),
    }
}

fn delete(cx: &Cx, topic: &Topic) -> Result<(), ApiError> {
    if !cx.config().topics.delete_enable {
        return Err(ApiError::new(
            ErrorCode::TOPIC_DELETION_DISABLED,
            "Topic deletion is disabled.",
        ));
    }
    cx.broker.delete_topic(topic.id)
}
