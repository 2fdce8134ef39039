//! What config requests change: `IncrementalAlterConfigs` (KIP-339), `AlterConfigs`, the configs of `CreateTopics`.
//!
//! Pure: a request becomes either the changes to log and apply, or a refusal with Kafka's code and text.

use std::collections::{BTreeMap, BTreeSet};

use ottla_protocol::ErrorCode;

use super::configs::Own;
use super::table::{self, Scope, Type};
use super::{Configs, value};

mod brokers;
mod groups;
mod loggers;
mod metrics;
mod topics;

pub(super) use brokers::own_id;
pub(super) use groups::check_assignor;
pub use topics::check_name;

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

/// One operation of `IncrementalAlterConfigs`.
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
    /// Whether delivery to share groups can be paused (feature `share.pause.version` at least 1).
    pub pause: bool,
    /// The loggers that `BROKER_LOGGER` knows, each with its level: `("root", "INFO")` and more.
    pub loggers: &'a [(&'a str, &'a str)],
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}

impl Configs {
    /// What `IncrementalAlterConfigs` does to one resource; with `validate_only`, drop the result.
    ///
    /// A `BROKER_LOGGER`'s changes carry its levels, for the logging system; they are not to be stored.
    pub fn incremental_alter(
        &self,
        world: &World<'_>,
        resource_type: i8,
        name: &str,
        ops: &[AlterOp],
    ) -> Result<Vec<ConfigChange>, Refusal> {
        let resource = known_type(resource_type)?;
        if duplicates(ops.iter().map(|op| op.key.as_str())) {
            return Err(Refusal::request("Error due to duplicate config keys"));
        }
        let nulls = ops
            .iter()
            .filter(|op| op.kind != OpKind::Delete && op.value.is_none());
        refuse_nulls(nulls.map(|op| op.key.as_str()))?;
        if resource == ResourceType::BrokerLogger {
            return loggers::alter(world, name, ops);
        }
        Self::check_resource(world, resource, name)?;
        let ops = self.without_lists(resource, name, ops)?;
        self.finish(world, resource, name, ops)
    }

    /// What `AlterConfigs` does to one resource: what is not named goes back to its default.
    pub fn replace(
        &self,
        world: &World<'_>,
        resource_type: i8,
        name: &str,
        configs: &[(String, Option<String>)],
    ) -> Result<Vec<ConfigChange>, Refusal> {
        let resource = known_type(resource_type)?;
        if resource == ResourceType::BrokerLogger {
            return Err(Refusal::request("Unknown resource type BROKER_LOGGER"));
        }
        if duplicates(configs.iter().map(|(key, _)| key.as_str())) {
            return Err(Refusal::request("Error due to duplicate config keys"));
        }
        let nulls = configs.iter().filter(|(_, value)| value.is_none());
        refuse_nulls(nulls.map(|(key, _)| key.as_str()))?;
        Self::check_resource(world, resource, name)?;
        let mut changes: Vec<(String, Option<String>)> = configs.to_vec();
        for key in self
            .stored(resource, name)
            .into_iter()
            .flat_map(BTreeMap::keys)
        {
            let kept = world.elr && brokers::pinned_by_elr(resource, key);
            if !kept && !configs.iter().any(|(given, _)| given == key) {
                changes.push((key.clone(), None));
            }
        }
        self.finish(world, resource, name, changes)
    }

    /// The configs of a topic that is about to be created, checked and as they are to be stored.
    pub fn check_new_topic(
        &self,
        world: &World<'_>,
        configs: &[(String, Option<String>)],
    ) -> Result<BTreeMap<String, String>, Refusal> {
        let nulls: Vec<_> = configs
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(key, _)| key.as_str())
            .collect();
        if !nulls.is_empty() {
            let nulls = nulls.join(",");
            return Err(Refusal::config(format!(
                "Null value not supported for topic configs: {nulls}"
            )));
        }
        let changes = self.checked(ResourceType::Topic, configs.to_vec())?;
        let own = merged(Own::new(), &changes);
        topics::check_whole(self, world.broker, &own)?;
        Ok(own)
    }

    /// Whether the resource may have configs at all.
    fn check_resource(
        world: &World<'_>,
        resource: ResourceType,
        name: &str,
    ) -> Result<(), Refusal> {
        match resource {
            ResourceType::Topic if name.is_empty() => {
                Err(Refusal::request("Default topic resources are not allowed."))
            }
            ResourceType::Topic => {
                check_name(name)?;
                if (world.topic_exists)(name) {
                    return Ok(());
                }
                Err(Refusal::new(
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    format!("The topic '{name}' does not exist."),
                ))
            }
            ResourceType::Group if name.is_empty() => {
                Err(Refusal::request("Default group resources are not allowed."))
            }
            ResourceType::ClientMetrics if name.is_empty() => {
                Err(Refusal::request("Subscription name can't be empty"))
            }
            ResourceType::Broker if !name.is_empty() => own_id(world, name),
            _ => Ok(()),
        }
    }

    /// Turns APPEND and SUBTRACT into what they set. As in Kafka, a list that is not stored starts from the
    /// default of its row.
    fn without_lists(
        &self,
        resource: ResourceType,
        name: &str,
        ops: &[AlterOp],
    ) -> Result<Vec<(String, Option<String>)>, Refusal> {
        let stored = self.stored(resource, name);
        let mut changes = Vec::with_capacity(ops.len());
        for AlterOp { key, kind, value } in ops {
            let given = value.as_deref().unwrap_or_default();
            let value = match kind {
                OpKind::Set => Some(given.to_owned()),
                OpKind::Delete => None,
                OpKind::Append | OpKind::Subtract => {
                    let def = resource.scope().and_then(|scope| table::find(scope, key));
                    let Some(def) = def.filter(|def| is_list(resource, def.kind)) else {
                        return Err(not_a_list(resource, *kind, key, def.is_some()));
                    };
                    let now = stored.and_then(|own| own.get(key)).map(String::as_str);
                    let mut list = value::list(now.or(def.default).unwrap_or_default());
                    for element in value::list(given) {
                        match (kind, list.iter().position(|other| *other == element)) {
                            (OpKind::Append, None) => list.push(element),
                            (OpKind::Subtract, Some(at)) => drop(list.remove(at)),
                            _ => {}
                        }
                    }
                    Some(list.join(","))
                }
            };
            changes.push((key.clone(), value));
        }
        Ok(changes)
    }

    /// Checks what is set, alone and together with what stays, and drops what changes nothing.
    fn finish(
        &self,
        world: &World<'_>,
        resource: ResourceType,
        name: &str,
        changes: Vec<(String, Option<String>)>,
    ) -> Result<Vec<ConfigChange>, Refusal> {
        if resource == ResourceType::Broker {
            brokers::check_mode(self, world, name, &changes)?;
        }
        let changes = self.checked(resource, changes)?;
        let stored = self.stored(resource, name).cloned().unwrap_or_default();
        let own = merged(stored.clone(), &changes);
        match resource {
            ResourceType::Topic => topics::check_whole(self, world.broker, &own)?,
            ResourceType::Group => groups::check_whole(self, world, &own, &changes)?,
            ResourceType::Broker => brokers::check_whole(self, world.broker, name, &own)?,
            ResourceType::ClientMetrics => metrics::check_whole(&own)?,
            ResourceType::BrokerLogger => {}
        }
        let change = |(key, value): (String, Option<String>)| {
            (stored.get(&key) != value.as_ref()).then(|| ConfigChange {
                resource,
                name: name.to_owned(),
                key,
                value,
            })
        };
        Ok(changes.into_iter().filter_map(change).collect())
    }

    /// Each set value against its row: its name is known, its text fits; as it is to be stored.
    fn checked(
        &self,
        resource: ResourceType,
        changes: Vec<(String, Option<String>)>,
    ) -> Result<Vec<(String, Option<String>)>, Refusal> {
        let Some(scope) = resource.scope() else {
            return Ok(changes);
        };
        if let Some((key, _)) = changes
            .iter()
            .find(|(key, value)| value.is_some() && table::find(scope, key).is_none())
        {
            match resource {
                ResourceType::Topic => {
                    return Err(Refusal::config(format!("Unknown topic config name: {key}")));
                }
                ResourceType::Group => {
                    return Err(Refusal::config(format!("Unknown group config name: {key}")));
                }
                ResourceType::ClientMetrics => {
                    return Err(Refusal::request(format!(
                        "Unknown client metrics configuration: {key}"
                    )));
                }
                // Kafka stores what it does not know on a broker, for plug-ins.
                ResourceType::Broker | ResourceType::BrokerLogger => {}
            }
        }
        let check = |(key, text): (String, Option<String>)| {
            let Some((def, given)) = table::find(scope, &key).zip(text.as_deref()) else {
                return Ok((key, text));
            };
            match value::check(&self.statics().in_profile(def), given) {
                Ok(text) => Ok((key, Some(text))),
                // A broker's own configs are refused with another code than everything else.
                Err(error) if resource == ResourceType::Broker => {
                    Err(Refusal::request(error.to_string()))
                }
                Err(error) => Err(Refusal::config(error.to_string())),
            }
        };
        changes.into_iter().map(check).collect()
    }
}

fn known_type(number: i8) -> Result<ResourceType, Refusal> {
    ResourceType::from_wire(number)
        .ok_or_else(|| Refusal::request(format!("Unknown resource type {number}")))
}

fn duplicates<'a>(keys: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = BTreeSet::new();
    keys.into_iter().any(|key| !seen.insert(key))
}

fn refuse_nulls<'a>(keys: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() {
        return Ok(());
    }
    Err(Refusal::request(format!(
        "Null value not supported for : {}",
        keys.join(",")
    )))
}

/// Whether a config takes APPEND and SUBTRACT; Kafka counts none of client metrics as a list.
fn is_list(resource: ResourceType, kind: Type) -> bool {
    kind == Type::List && resource != ResourceType::ClientMetrics
}

fn not_a_list(resource: ResourceType, kind: OpKind, key: &str, known: bool) -> Refusal {
    let verb = kind.name();
    Refusal::config(match (resource, known) {
        (ResourceType::Broker, false) => format!("Unknown config name: {key}"),
        (ResourceType::Broker, true) => {
            let verb = verb.to_ascii_lowercase();
            format!("Config value {verb} is not allowed for config key: {key}")
        }
        _ => format!("Can't {verb} to key {key} because its type is not LIST."),
    })
}

fn merged(mut own: Own, changes: &[(String, Option<String>)]) -> Own {
    for (key, value) in changes {
        match value {
            Some(value) => own.insert(key.clone(), value.clone()),
            None => own.remove(key),
        };
    }
    own
}
