//! A small Kafka client for tools: one question at a time, to the broker that can answer it.
//!
//! Versions are negotiated on each connection (KIP-511); what a broker does not serve is said, with
//! the broker's address, instead of being tried. Answers are trusted to be of a Kafka broker once
//! their correlation id is right.

mod cluster;
mod connection;
mod groups;
mod settings;
mod topics;

pub use cluster::{Cluster, Node};
pub use groups::Outcomes;
pub use settings::{Settings, SettingsError};
pub use topics::{EARLIEST, LATEST, Resource};

use ottla_protocol::ErrorCode;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The command or its files ask for something that cannot be.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// None of the addresses leads to a broker.
    #[error("no broker could be reached: {0}")]
    Unreachable(String),
    /// The connection ended, or what came over it is not Kafka.
    #[error("{address}: {reason}")]
    Connection {
        /// Where it led.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The time for the question is over.
    #[error("{what}: no answer within {ms} ms{}", after(.last.as_ref()))]
    TimedOut {
        /// What was asked.
        what: String,
        /// The time that it had.
        ms: u64,
        /// What the last attempt ended with.
        last: Option<String>,
    },
    /// The broker does not know the question.
    #[error("the broker at {address} does not serve {api} (API key {key}){}", .note.as_deref().unwrap_or_default())]
    Unsupported {
        /// Which broker.
        address: String,
        /// What the API is called.
        api: &'static str,
        /// Its key.
        key: i16,
        /// What that means, beginning with `: `.
        note: Option<String>,
    },
    /// The broker refused.
    #[error("{}", refusal(*.code, .message.as_deref()))]
    Refused {
        /// With this code.
        code: ErrorCode,
        /// And these words.
        message: Option<String>,
    },
}

fn after(last: Option<&String>) -> String {
    last.map_or_else(String::new, |last| format!("; last: {last}"))
}

fn refusal(code: ErrorCode, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{}: {message}", code.name()),
        _ => code.name().to_owned(),
    }
}

impl Error {
    /// A refusal with a code and the broker's words.
    pub fn refused(code: i16, message: Option<&str>) -> Self {
        Self::Refused {
            code: ErrorCode(code),
            message: message.map(str::to_owned),
        }
    }

    /// The broker's code, if the broker refused.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { code, .. } => *code,
            _ => ErrorCode::NONE,
        }
    }
}

/// Errors of a moment: the same question may be answered a little later, perhaps by another broker.
pub fn is_passing(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::NETWORK_EXCEPTION
    )
}
