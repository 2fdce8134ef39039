//! FindCoordinator (key 10), versions 0-6. KIP-699 (batches), KIP-932 (key type 2).
//!
//! - Key types 0 (group) and 2 (share partition: `group:topic-id:partition`). Transactions (1) are
//!   not served and are refused as such.
//! - Internal topics are made on demand, and the first answer already names a coordinator.
//! - v0-3 ask for one key at the top level, v4+ for several.

use ottla_protocol::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};
use ottla_protocol::messages::{BrokerId, FindCoordinatorRequest};
use ottla_protocol::{ErrorCode, StrBytes};

use super::coordinator::topic_of;
use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    if cx.version < 4 {
        let found = answer(cx, &request, &request.key);
        return FindCoordinatorResponse::default()
            .with_error_code(found.error_code)
            .with_error_message(found.error_message)
            .with_node_id(found.node_id)
            .with_host(found.host)
            .with_port(found.port);
    }
    let all = request
        .coordinator_keys
        .iter()
        .map(|key| answer(cx, &request, key))
        .collect();
    FindCoordinatorResponse::default().with_coordinators(all)
}

fn answer(cx: &Cx, request: &FindCoordinatorRequest, key: &StrBytes) -> Coordinator {
    match find(cx, request.key_type, key) {
        Ok((id, host, port)) => Coordinator::default()
            .with_key(key.clone())
            .with_node_id(BrokerId(id))
            .with_host(StrBytes::from_string(host))
            .with_port(port)
            .with_error_message(None),
        Err(error) => Coordinator::default()
            .with_key(key.clone())
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(error.number())
            .with_error_message(error.message.map(StrBytes::from_string)),
    }
}

fn find(cx: &Cx, key_type: i8, key: &str) -> Result<(i32, String, i32), ApiError> {
    let topic = match topic_of(key_type) {
        Some(topic) => topic,
        None if key_type == 1 => {
            return Err(ApiError::new(
                ErrorCode::UNSUPPORTED_VERSION,
                "Transactions are not served by this version.",
            ));
        }
        None => return Err(ErrorCode::INVALID_REQUEST.into()),
    };
    if key_type == 2 && !is_share_key(key) {
        return Err(ErrorCode::INVALID_REQUEST.into());
    }
    let leader = cx.broker.internal_partition(topic, key)?.leader();
    cx.broker
        .node(leader)
        .and_then(|node| node.endpoint(&cx.connection))
        .map(|(host, port)| (leader, host, port))
        .ok_or_else(|| ErrorCode::COORDINATOR_NOT_AVAILABLE.into())
}

/// `group:topic-id:partition`; the group may hold colons itself.
fn is_share_key(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let partition = parts.next().and_then(|p| p.parse::<i32>().ok());
    let topic = parts
        .next()
        .is_some_and(|t| crate::records::parse_uuid(t).is_some());
    partition.is_some_and(|p| p >= 0) && topic && parts.next().is_some_and(|g| !g.is_empty())
}
