//! What config requests change: IncrementalAlterConfigs (KIP-339), AlterConfigs, the configs of CreateTopics.
//!
//! Pure: a request becomes either the changes to log and apply, or a refusal with Kafka's code and text.

use std::collections::{BTreeMap, BTreeSet};

use ottla_protocol::ErrorCode;

use super::configs::Own;
use super::table::{self, ConfigDef, Mode, Scope, Type};
use super::{Configs, bounds, client_metrics, value};

/// What has configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceType {
    /// A topic.
    Topic,
    /// A broker by its id; `""` is the default of all.
    Broker,
    /// The loggers of a broker; never stored.
    BrokerLogger,
    /// A client-metrics subscription (KIP-714).
    ClientMetrics,
    /// A group.
    Group,
}

impl ResourceType {
    /// The number in requests and records.
    pub fn wire(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::BrokerLogger => 8,
            Self::ClientMetrics => 16,
            Self::Group => 32,
        }
    }

    /// The type with this number.
    pub fn from_wire(number: i8) -> Option<Self> {
        [
            Self::Topic,
            Self::Broker,
            Self::BrokerLogger,
            Self::ClientMetrics,
            Self::Group,
        ]
        .into_iter()
        .find(|kind| kind.wire() == number)
    }

    /// Which rows configure it.
    pub(super) fn scope(self) -> Option<Scope> {
        match self {
            Self::Topic => Some(Scope::Topic),
            Self::Broker => Some(Scope::Broker),
            Self::BrokerLogger => None,
            Self::ClientMetrics => Some(Scope::ClientMetrics),
            Self::Group => Some(Scope::Group),
        }
    }
}

/// One change of a stored config; one `ConfigRecord` of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// What has the config.
    pub resource: ResourceType,
    /// Its name.
    pub name: String,
    /// The config.
    pub key: String,
    /// Its new value; `None` removes it.
    pub value: Option<String>,
}

/// What an [`AlterOp`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Sets the value.
    Set,
    /// Goes back to the default.
    Delete,
    /// Adds elements to a list.
    Append,
    /// Takes elements from a list.
    Subtract,
}

impl OpKind {
    /// The operation with this number in a request.
    pub fn from_wire(number: i8) -> Option<Self> {
        Some(match number {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Delete => "DELETE",
            Self::Append => "APPEND",
            Self::Subtract => "SUBTRACT",
        }
    }
}

/// One operation of IncrementalAlterConfigs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterOp {
    /// The config.
    pub key: String,
    /// What to do.
    pub kind: OpKind,
    /// With what.
    pub value: Option<String>,
}

/// Why a config request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code of the resource's result.
    pub code: ErrorCode,
    /// The text of the resource's result.
    pub message: Option<String>,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }

    pub(super) fn request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    pub(super) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_CONFIG, message)
    }
}

/// What a config request needs to know of the rest of the cluster.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The broker that answers.
    pub broker: i32,
    /// Whether a topic of this name exists.
    pub topic_exists: &'a dyn Fn(&str) -> bool,
    /// Whether eligible leader replicas are on (feature `eligible.leader.replicas.version` at least 1).
    pub elr: bool,
    /// The loggers that BROKER_LOGGER knows; `root` always.
    pub loggers: &'a [&'a str],
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}
