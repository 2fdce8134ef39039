//! What `DescribeConfigs` and `ListConfigResources` answer.

use ottla_protocol::ErrorCode;

use super::Configs;
use super::alter::{Refusal, ResourceType, World, check_name};
use super::configs::Own;
use super::table::{self, ConfigDef, Mode, Scope};

/// Where the value of a config comes from (KIP-226), as in a `DescribeConfigs` response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// Set on the topic.
    Topic,
    /// Set on the broker while it runs.
    DynamicBroker,
    /// Set for all brokers while they run.
    DynamicDefaultBroker,
    /// Given at start-up.
    StaticBroker,
    /// The default.
    Default,
    /// The level of a logger.
    BrokerLogger,
    /// Set on a client-metrics subscription.
    ClientMetrics,
    /// Set on the group.
    Group,
}

impl ConfigSource {
    /// The number in a response.
    pub fn wire(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefaultBroker => 3,
            Self::StaticBroker => 4,
            Self::Default => 5,
            Self::BrokerLogger => 6,
            Self::ClientMetrics => 7,
            Self::Group => 8,
        }
    }
}

/// One of the values that a config could have had, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The config it comes from.
    pub name: String,
    /// Its value; `None` is null, or hidden.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: ConfigSource,
}

/// One config of a `DescribeConfigs` response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The config.
    pub name: String,
    /// Its value; `None` is null, or hidden.
    pub value: Option<String>,
    /// Whether it cannot change while the broker runs.
    pub read_only: bool,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether the value is hidden.
    pub sensitive: bool,
    /// What it could have been; to be left out unless asked for.
    pub synonyms: Vec<Synonym>,
    /// The number of its type (0 unknown).
    pub kind: i8,
    /// What it means; to be left out unless asked for.
    pub documentation: Option<String>,
}

impl ConfigEntry {
    /// What version 0 calls the source.
    pub fn is_default(&self) -> bool {
        self.source == ConfigSource::Default
    }
}

impl Configs {
    /// The configs of one resource; `keys` picks some, `None` is all of them.
    pub fn describe(
        &self,
        world: &World<'_>,
        resource_type: i8,
        name: &str,
        keys: Option<&[String]>,
    ) -> Result<Vec<ConfigEntry>, Refusal> {
        let entries = match ResourceType::from_wire(resource_type) {
            Some(ResourceType::Topic) => {
                check_name(name)?;
                if !(world.topic_exists)(name) {
                    return Err(Refusal {
                        code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                        message: None,
                    });
                }
                self.describe_topic(world.broker, name)
            }
            Some(ResourceType::Broker) if name.is_empty() => self.describe_default(world.broker),
            Some(ResourceType::Broker) => {
                described_id(world, name, " or empty string")?;
                self.describe_broker(world.broker)
            }
            Some(ResourceType::BrokerLogger) => {
                described_id(world, name, "")?;
                loggers(world)
            }
            Some(ResourceType::ClientMetrics) if name.is_empty() => {
                return Err(Refusal::request(
                    "Client metrics subscription name must not be empty",
                ));
            }
            Some(ResourceType::ClientMetrics) => self.describe_metrics(name),
            Some(ResourceType::Group) if name.is_empty() => {
                return Err(Refusal::request("Group name must not be empty"));
            }
            Some(ResourceType::Group) => self.describe_group(world.broker, name),
            None => {
                return Err(Refusal {
                    code: ErrorCode::INVALID_REQUEST,
                    message: None,
                });
            }
        };
        Ok(match keys {
            Some(keys) => entries
                .into_iter()
                .filter(|entry| keys.contains(&entry.name))
                .collect(),
            None => entries,
        })
    }

    /// The configs of a topic that has just been created, for the answer to `CreateTopics`.
    pub fn describe_topic(&self, broker: i32, name: &str) -> Vec<ConfigEntry> {
        let own = self
            .stored(ResourceType::Topic, name)
            .cloned()
            .unwrap_or_default();
        let rows = shown(Scope::Topic, &own);
        rows.map(|def| self.inheriting(broker, def, &own, ConfigSource::Topic))
            .collect()
    }

    /// A group has all of its configs, whether anybody has heard of it or not.
    fn describe_group(&self, broker: i32, name: &str) -> Vec<ConfigEntry> {
        let own = self
            .stored(ResourceType::Group, name)
            .cloned()
            .unwrap_or_default();
        let rows = shown(Scope::Group, &own);
        rows.map(|def| self.inheriting(broker, def, &own, ConfigSource::Group))
            .collect()
    }

    /// A config of a topic or group: its own value, else what its broker has.
    fn inheriting(
        &self,
        broker: i32,
        def: &ConfigDef,
        own: &Own,
        source: ConfigSource,
    ) -> ConfigEntry {
        let own = own.get(def.name);
        let mut synonyms = Vec::new();
        if let Some(value) = own {
            synonyms.push(synonym(def.name, value, source));
        }
        if def.scope == Scope::Group
            && let Some(value) = self.statics().group_default(def.name)
        {
            let name = format!("ottla.group.default.{}", def.name);
            synonyms.push(synonym(&name, value, ConfigSource::StaticBroker));
        }
        synonyms.extend(self.inherited_synonyms(broker, def));
        let value = match own {
            Some(own) => Some(own.clone()),
            None => self.inherited(broker, def),
        };
        entry(def, value, false, synonyms)
    }

    /// By source and not by name, as Kafka has it; a broker config that is null hides those behind it.
    fn inherited_synonyms(&self, broker: i32, def: &ConfigDef) -> Vec<Synonym> {
        let Some((first, _)) = def.synonyms.first() else {
            let of_group = def.scope == Scope::Group;
            let default = def.default.filter(|_| of_group);
            return default
                .map(|d| synonym(def.name, d, ConfigSource::Default))
                .into_iter()
                .collect();
        };
        if self.broker_text(broker, first).is_none() {
            return Vec::new();
        }
        self.synonyms_of(broker, def.synonyms.iter().map(|(name, _)| *name))
    }

    fn synonyms_of<'a>(&self, broker: i32, names: impl Iterator<Item = &'a str>) -> Vec<Synonym> {
        let mut found: Vec<_> = names
            .flat_map(|name| self.broker_synonyms(broker, name))
            .collect();
        found.sort_by_key(|synonym| match synonym.source {
            ConfigSource::DynamicBroker => 0,
            ConfigSource::DynamicDefaultBroker => 1,
            ConfigSource::StaticBroker => 2,
            _ => 3,
        });
        found
    }

    fn describe_broker(&self, broker: i32) -> Vec<ConfigEntry> {
        let rows = table::all(Scope::Broker)
            .filter(|def| !def.internal && !def.name.contains(char::is_uppercase));
        let mut entries: Vec<_> = rows.map(|def| self.broker_entry(broker, def)).collect();
        for key in self.statics().given_keys(broker) {
            if table::find(Scope::Broker, key).is_none_or(|def| def.internal) {
                entries.push(self.unlisted(broker, key));
            }
        }
        entries
    }

    fn broker_entry(&self, broker: i32, def: &ConfigDef) -> ConfigEntry {
        let value = self.broker_text(broker, def.name);
        let mut names = vec![def.name];
        names.extend(siblings(def.name));
        let synonyms = match &value {
            Some(_) => self.synonyms_of(broker, names.into_iter()),
            None => Vec::new(),
        };
        entry(def, value, def.mode == Mode::ReadOnly, synonyms)
    }

    /// What was given at start-up and is not in the list: an internal config, or one that nobody knows, whose
    /// value might be a secret.
    fn unlisted(&self, broker: i32, key: &str) -> ConfigEntry {
        if let Some(def) = table::find(Scope::Broker, key) {
            return self.broker_entry(broker, def);
        }
        let hidden = Synonym {
            name: key.to_owned(),
            value: None,
            source: ConfigSource::StaticBroker,
        };
        ConfigEntry {
            name: key.to_owned(),
            value: None,
            read_only: true,
            source: ConfigSource::StaticBroker,
            sensitive: true,
            synonyms: vec![hidden],
            kind: 0,
            documentation: None,
        }
    }

    /// The default of all brokers: only what is stored for it and known.
    fn describe_default(&self, broker: i32) -> Vec<ConfigEntry> {
        let own = self
            .stored(ResourceType::Broker, "")
            .cloned()
            .unwrap_or_default();
        let known = own.iter().filter_map(|(key, value)| {
            let def = table::find(Scope::Broker, key)?;
            let synonyms = self.broker_synonyms(broker, key);
            let default = |synonym: &Synonym| synonym.source == ConfigSource::DynamicDefaultBroker;
            let synonyms = synonyms.into_iter().filter(default).collect();
            Some(entry(
                def,
                Some(value.clone()),
                def.mode == Mode::ReadOnly,
                synonyms,
            ))
        });
        known.collect()
    }

    fn describe_metrics(&self, name: &str) -> Vec<ConfigEntry> {
        let own = self
            .stored(ResourceType::ClientMetrics, name)
            .cloned()
            .unwrap_or_default();
        let one = |def: &ConfigDef| match own.get(def.name) {
            Some(value) => {
                let synonyms = vec![synonym(def.name, value, ConfigSource::ClientMetrics)];
                entry(def, Some(value.clone()), false, synonyms)
            }
            None => entry(def, def.default.map(str::to_owned), false, Vec::new()),
        };
        table::CLIENT_METRICS.iter().map(one).collect()
    }

    /// The resources that have configs, of the asked types; no types is every type. Topics and brokers exist
    /// whether they have configs or not, so that the caller names them; groups and subscriptions are those
    /// with stored configs (KIP-1142).
    pub fn list_resources(
        &self,
        types: &[i8],
        topics: &[String],
        brokers: &[i32],
    ) -> Result<Vec<(ResourceType, String)>, Refusal> {
        let all = [
            ResourceType::Topic,
            ResourceType::Broker,
            ResourceType::BrokerLogger,
            ResourceType::ClientMetrics,
            ResourceType::Group,
        ];
        if types
            .iter()
            .any(|number| ResourceType::from_wire(*number).is_none())
        {
            return Err(Refusal {
                code: ErrorCode::UNSUPPORTED_VERSION,
                message: None,
            });
        }
        let mut found = Vec::new();
        for kind in all {
            if !types.is_empty() && !types.contains(&kind.wire()) {
                continue;
            }
            let names: Vec<String> = match kind {
                ResourceType::Topic => topics.to_vec(),
                ResourceType::Broker | ResourceType::BrokerLogger => {
                    brokers.iter().map(ToString::to_string).collect()
                }
                ResourceType::ClientMetrics | ResourceType::Group => self
                    .stored_names(kind)
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            };
            found.extend(names.into_iter().map(|name| (kind, name)));
        }
        Ok(found)
    }
}

/// The rows that `DescribeConfigs` lists: an internal one only where it is set.
fn shown(scope: Scope, own: &Own) -> impl Iterator<Item = &'static ConfigDef> {
    table::all(scope).filter(move |def| !def.internal || own.contains_key(def.name))
}

/// The coarser units of a duration that has a key in milliseconds.
fn siblings(key: &str) -> &'static [&'static str] {
    match key {
        "log.retention.ms" => &["log.retention.minutes", "log.retention.hours"],
        "log.retention.minutes" => &["log.retention.hours"],
        "log.roll.ms" => &["log.roll.hours"],
        "log.roll.jitter.ms" => &["log.roll.jitter.hours"],
        "log.flush.interval.ms" => &["log.flush.scheduler.interval.ms"],
        _ => &[],
    }
}

fn synonym(name: &str, value: &str, source: ConfigSource) -> Synonym {
    Synonym {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        source,
    }
}

/// The source is that of the strongest synonym; secrets lose their values.
fn entry(
    def: &ConfigDef,
    value: Option<String>,
    read_only: bool,
    mut synonyms: Vec<Synonym>,
) -> ConfigEntry {
    let source = synonyms
        .first()
        .map_or(ConfigSource::Default, |synonym| synonym.source);
    let sensitive = def.sensitive();
    if sensitive {
        for synonym in &mut synonyms {
            synonym.value = None;
        }
    }
    let documentation = def.documentation();
    ConfigEntry {
        name: def.name.to_owned(),
        value: value.filter(|_| !sensitive),
        read_only,
        source,
        sensitive,
        synonyms,
        kind: def.kind.wire(),
        documentation: (!documentation.is_empty()).then(|| documentation.to_owned()),
    }
}

fn described_id(world: &World<'_>, name: &str, or: &str) -> Result<(), Refusal> {
    let Ok(id) = name.parse::<i32>() else {
        return Err(Refusal::request(format!(
            "Broker id must be an integer, but it is: {name}"
        )));
    };
    if id == world.broker {
        return Ok(());
    }
    Err(Refusal::request(format!(
        "Unexpected broker id, expected {}{or}, but received {name}",
        world.broker
    )))
}

fn loggers(world: &World<'_>) -> Vec<ConfigEntry> {
    let one = |(name, level): &(&str, &str)| ConfigEntry {
        name: (*name).to_owned(),
        value: Some((*level).to_owned()),
        read_only: false,
        source: ConfigSource::BrokerLogger,
        sensitive: false,
        synonyms: Vec::new(),
        kind: 0,
        documentation: None,
    };
    world.loggers.iter().map(one).collect()
}
