//! The one map from this project's errors to Kafka's error codes.

use ottla_coordinator::group::plan::GroupError;
use ottla_coordinator::share::state::StateError;
use ottla_coordinator::share::types::{AckError, CloseReason, WriteError};
use ottla_protocol::batch::BatchError;
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_storage::{AppendError, ReadError, StorageError};

use crate::config::Refusal;
use crate::groups;

/// An error as the protocol says it: a code, and a message where the response has room for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", code.name(), message.as_deref().unwrap_or("-"))]
pub struct ApiError {
    /// Kafka's code.
    pub code: ErrorCode,
    /// What to tell the client, if there is more to say than the code.
    pub message: Option<String>,
}

impl ApiError {
    /// A code with a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }

    /// The code's number.
    pub fn number(&self) -> i16 {
        self.code.0
    }

    /// Code and message of one thing that a request asked for; 0 and null where it was done.
    pub fn told(outcome: Result<(), Self>) -> (i16, Option<StrBytes>) {
        match outcome {
            Ok(()) => (ErrorCode::NONE.0, None),
            Err(error) => (error.number(), error.message.map(StrBytes::from_string)),
        }
    }
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
        }
    }
}

impl From<(ErrorCode, String)> for ApiError {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self::new(code, message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code,
            message: refusal.message,
        }
    }
}

impl From<GroupError> for ApiError {
    fn from(error: GroupError) -> Self {
        Self {
            code: groups::error_code(error.kind),
            message: error.message,
        }
    }
}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        let code = match error {
            StateError::InvalidRequest(_) => ErrorCode::INVALID_REQUEST,
            StateError::FencedLeaderEpoch => ErrorCode::FENCED_LEADER_EPOCH,
            StateError::FencedStateEpoch => ErrorCode::FENCED_STATE_EPOCH,
        };
        Self::new(code, error.to_string())
    }
}

impl From<AckError> for ApiError {
    fn from(error: AckError) -> Self {
        let code = match error {
            AckError::InvalidRequest(_) => ErrorCode::INVALID_REQUEST,
            AckError::InvalidRecordState(_) => ErrorCode::INVALID_RECORD_STATE,
            AckError::Closed(reason) => return reason.into(),
        };
        Self {
            code,
            message: error.message().map(str::to_owned),
        }
    }
}

impl From<CloseReason> for ApiError {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Fenced | CloseReason::GroupDeleted => {
                Self::new(ErrorCode::NOT_LEADER_OR_FOLLOWER, FENCED)
            }
            CloseReason::NotLeader | CloseReason::Shutdown => {
                ErrorCode::NOT_LEADER_OR_FOLLOWER.into()
            }
            CloseReason::TopicDeleted => ErrorCode::UNKNOWN_TOPIC_ID.into(),
        }
    }
}

/// What Kafka says when a share partition's offsets were altered under its leader.
const FENCED: &str = "Error in write state RPC. The coordinator rejected the request because the state epoch did not match.";

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Unavailable => Self::new(
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
                "The share coordinator could not write the state; the records keep their locks.",
            ),
            WriteError::Fenced | WriteError::Unknown => {
                Self::new(ErrorCode::NOT_LEADER_OR_FOLLOWER, FENCED)
            }
            WriteError::Closed(reason) => reason.into(),
        }
    }
}

impl From<&BatchError> for ApiError {
    fn from(error: &BatchError) -> Self {
        Self::new(error_of_batch(error), error.to_string())
    }
}

fn error_of_batch(error: &BatchError) -> ErrorCode {
    match error {
        BatchError::Empty
        | BatchError::Truncated { .. }
        | BatchError::MoreThanOne
        | BatchError::BaseOffset(_)
        | BatchError::Count { .. }
        | BatchError::Control
        | BatchError::Sequence { .. }
        | BatchError::TransactionalWithoutProducer
        | BatchError::Compression(_)
        | BatchError::Record { .. }
        | BatchError::Trailing => ErrorCode::INVALID_RECORD,
        BatchError::BadLength(_) | BatchError::Checksum { .. } => ErrorCode::CORRUPT_MESSAGE,
        BatchError::UnsupportedMagic(0 | 1) => ErrorCode::INVALID_RECORD,
        BatchError::UnsupportedMagic(_) => ErrorCode::CORRUPT_MESSAGE,
        BatchError::TooLarge { .. } | BatchError::TooLong(_) => ErrorCode::MESSAGE_TOO_LARGE,
        BatchError::ProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
        BatchError::UnknownCodec(_) | BatchError::ZstdTooEarly(_) => {
            ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
        }
        BatchError::Rejected(rejected) if rejected.is_timestamp() => ErrorCode::INVALID_TIMESTAMP,
        _ => ErrorCode::INVALID_RECORD,
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        let code = match &error {
            StorageError::BeyondEnd { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
            _ => {
                tracing::error!("{error}");
                ErrorCode::KAFKA_STORAGE_ERROR
            }
        };
        Self::new(code, error.to_string())
    }
}

impl From<AppendError> for ApiError {
    fn from(error: AppendError) -> Self {
        let code = match &error {
            AppendError::Storage(_) | AppendError::Sync(_) => {
                tracing::error!("an append failed: {error}");
                ErrorCode::KAFKA_STORAGE_ERROR
            }
            AppendError::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            AppendError::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
            AppendError::InvalidTxnState { .. } => ErrorCode::INVALID_TXN_STATE,
            AppendError::CoordinatorFenced { .. } => ErrorCode::TRANSACTION_COORDINATOR_FENCED,
            AppendError::BadBatch(_) => ErrorCode::CORRUPT_MESSAGE,
            AppendError::TooLarge { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        let code = match &error {
            ReadError::OffsetOutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
            ReadError::Io { .. } | ReadError::Damaged { .. } => {
                tracing::error!("{error}");
                ErrorCode::KAFKA_STORAGE_ERROR
            }
        };
        Self::new(code, error.to_string())
    }
}
