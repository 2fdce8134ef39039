//! DeleteShareGroupOffsets (key 92), version 0. KIP-932.
//!
//! - Only for an empty group; the next use of the topic starts by the reset policy.

use ottla_coordinator::group::share_offsets::DeletedTopic;
use ottla_protocol::StrBytes;
use ottla_protocol::messages::delete_share_group_offsets_response::{
    DeleteShareGroupOffsetsResponse, DeleteShareGroupOffsetsResponseTopic,
};
use ottla_protocol::messages::{DeleteShareGroupOffsetsRequest, TopicName};

use super::coordinator::{shard, share_groups_on};
use crate::broker::Topics;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(
    cx: &Cx,
    request: DeleteShareGroupOffsetsRequest,
) -> DeleteShareGroupOffsetsResponse {
    match delete(cx, &request) {
        Ok(topics) => DeleteShareGroupOffsetsResponse::default()
            .with_error_message(None)
            .with_responses(topics.into_iter().map(respond).collect()),
        Err(error) => DeleteShareGroupOffsetsResponse::default()
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string)),
    }
}

fn delete(
    cx: &Cx,
    request: &DeleteShareGroupOffsetsRequest,
) -> Result<Vec<DeletedTopic>, ApiError> {
    share_groups_on(cx)?;
    let topics: Vec<String> = request
        .topics
        .iter()
        .map(|t| t.topic_name.to_string())
        .collect();
    let image = Topics(&cx.broker.cluster);
    shard(cx, &request.group_id)?.change(&cx.broker, |machine, _| {
        Ok(machine.delete_share_offsets(&request.group_id, &topics, &image)?)
    })
}

fn respond(topic: DeletedTopic) -> DeleteShareGroupOffsetsResponseTopic {
    let (code, message) = ApiError::told(topic.result.map_err(ApiError::from));
    DeleteShareGroupOffsetsResponseTopic::default()
        .with_topic_name(TopicName(StrBytes::from_string(topic.topic_name)))
        .with_topic_id(ottla_protocol::Uuid::from_bytes(topic.topic_id.0))
        .with_error_code(code)
        .with_error_message(message)
}
