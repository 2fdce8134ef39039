//! InitProducerId (key 22), versions 0-5. KIP-98, KIP-360.
//!
//! - Without a transactional id: a fresh producer id with epoch 0, unique for the life of the data.
//! - Transactions are not served: a transactional id is refused.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use crate::context::Cx;
use crate::error_code::ApiError;

pub(super) async fn handle(cx: &Cx, request: InitProducerIdRequest) -> InitProducerIdResponse {
    let response = InitProducerIdResponse::default();
    match next_id(cx, &request) {
        Ok(id) => response
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(0),
        Err(error) => response
            .with_error_code(error.number())
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1),
    }
}

fn next_id(cx: &Cx, request: &InitProducerIdRequest) -> Result<i64, ApiError> {
    match &request.transactional_id {
        None => cx.broker.next_producer_id(),
        Some(id) if id.is_empty() => Err(ErrorCode::INVALID_REQUEST.into()),
        Some(_) => Err(ErrorCode::UNSUPPORTED_VERSION.into()),
    }
}
