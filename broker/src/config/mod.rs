//! Configuration: one table, four layers of static texts, one store of dynamic ones, typed snapshots.
//!
//! - [`table`]: every Kafka 4.4.0 config and ours, with type, default, range and meaning.
//! - [`profile`]: where Ottla's defaults differ from Kafka's, each with its reason.
//! - [`file`] and [`environment`]: `server.properties` and `KAFKA_*`.
//! - [`StaticConfig`]: what the process was started with, checked.
//! - [`Configs`]: that and the dynamic configs; resolves [`BrokerConfig`], [`TopicConfig`] and
//!   [`GroupConfig`], and answers the config requests (`alter`, `describe`).
//!
//! Precedence: defaults < profile < file < environment < `--set` < flags < dynamic default < dynamic
//! broker; over them a topic's or a group's own.

pub mod alter;
mod bounds;
mod broker;
mod configs;
pub mod describe;
pub mod docs;
pub mod environment;
pub mod file;
mod group;
mod isolation;
mod listener;
pub mod profile;
mod snapshot;
mod statics;
pub mod table;
mod table_broker;
mod table_docs;
mod table_group;
mod table_ottla;
mod table_ottla_group;
mod table_topic;
mod topic;
pub mod value;

pub use alter::{
    AlterOp, ConfigChange, OpKind, Refusal, ResourceType, World, check_name as check_topic_name,
};
pub use broker::{
    BrokerConfig, ClassicGroupBounds, ConsumerGroupBounds, LogDefaults, NetworkConfig,
    OffsetsConfig, ReplicationConfig, ShareGroupBounds, ShareStateConfig, StreamsGroupBounds,
    TopicDefaults, TransactionConfig,
};
pub use configs::Configs;
pub use describe::{ConfigEntry, ConfigSource, Synonym};
pub use group::{
    ConsumerGroupConfig, GroupConfig, IsolationLevel, OffsetReset, ShareGroupConfig,
    StreamsGroupConfig,
};
pub use isolation::Isolation;
pub use listener::{HostPort, Listener, SecurityProtocol};
pub use profile::Profile;
pub use statics::{Origin, Setting, StaticConfig};
pub use topic::{CleanupPolicy, CompressionType, TimestampType, TopicConfig};

/// Why the broker does not start with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is wrong: exit status 1.
    Invalid,
    /// It asks for something that this version does not do: exit status 78.
    Unsupported,
}

/// Why the broker does not start; one line that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ConfigError {
    /// Wrong, or not supported.
    pub reason: Reason,
    /// The line.
    pub text: String,
}

impl ConfigError {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self {
            reason,
            text: text.into(),
        }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, text)
    }

    pub(crate) fn unsupported(text: impl Into<String>) -> Self {
        Self::new(Reason::Unsupported, text)
    }

    fn value(key: &str, value: &str, problem: &str) -> Self {
        Self::invalid(format!(
            "Invalid value {value} for configuration {key}: {problem}"
        ))
    }

    /// The exit status: 1, or 78 (`EX_CONFIG`) for what is not supported.
    pub fn exit_status(&self) -> u8 {
        match self.reason {
            Reason::Invalid => 1,
            Reason::Unsupported => 78,
        }
    }
}

#[cfg(test)]
mod tests;
