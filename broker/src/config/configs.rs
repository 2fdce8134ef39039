//! Static and dynamic configs together, and the snapshots resolved from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::alter::{ConfigChange, ResourceType};
use super::describe::{ConfigSource, Synonym};
use super::statics::StaticConfig;
use super::table::{self, ConfigDef, Scope};
use super::{BrokerConfig, GroupConfig, TopicConfig, bounds, value};

/// The configs that a resource has of its own.
pub(super) type Own = BTreeMap<String, String>;

/// All configs of the process. Changes only by [`Configs::apply`], with what was logged; replay is `apply`.
#[derive(Clone, Debug)]
pub struct Configs {
    statics: Arc<StaticConfig>,
    dynamic: BTreeMap<ResourceType, BTreeMap<String, Own>>,
    /// By broker; made anew when a broker config changes, so that a topic or group resolves quickly.
    inherited: BTreeMap<i32, Inherited>,
}

/// What every topic and group of one broker inherits, by key.
#[derive(Clone, Debug, Default)]
struct Inherited {
    topic: BTreeMap<&'static str, Option<String>>,
    group: BTreeMap<&'static str, Option<String>>,
}

impl Configs {
    /// No dynamic configs yet.
    pub fn new(statics: Arc<StaticConfig>) -> Self {
        let mut configs = Self {
            statics,
            dynamic: BTreeMap::new(),
            inherited: BTreeMap::new(),
        };
        configs.inherit();
        configs
    }

    fn inherit(&mut self) {
        let of_broker = |id| {
            let texts = |scope| {
                table::all(scope)
                    .map(|def| (def.name, self.inherited_now(id, def)))
                    .collect()
            };
            let inherited = Inherited {
                topic: texts(Scope::Topic),
                group: texts(Scope::Group),
            };
            (id, inherited)
        };
        self.inherited = self
            .statics
            .broker_ids()
            .into_iter()
            .map(of_broker)
            .collect();
    }

    /// What the process was started with.
    pub fn statics(&self) -> &Arc<StaticConfig> {
        &self.statics
    }

    /// Applies one logged change. A value that its row refuses, such as one that another version
    /// stored, is kept, has no effect and is named in a warning; so is one that the broker's bounds change.
    pub fn apply(&mut self, change: &ConfigChange) {
        if let Some(value) = &change.value {
            self.warn_of(change.resource, &change.name, &change.key, value);
        }
        let of_type = self.dynamic.entry(change.resource).or_default();
        let own = of_type.entry(change.name.clone()).or_default();
        match &change.value {
            Some(value) => own.insert(change.key.clone(), value.clone()),
            None => own.remove(&change.key),
        };
        if own.is_empty() {
            of_type.remove(&change.name);
        }
        if change.resource == ResourceType::Broker {
            self.inherit();
        }
    }

    /// Forgets the configs of a deleted resource.
    pub fn remove_resource(&mut self, resource: ResourceType, name: &str) {
        if let Some(of_type) = self.dynamic.get_mut(&resource) {
            of_type.remove(name);
        }
    }

    fn warn_of(&self, resource: ResourceType, name: &str, key: &str, text: &str) {
        let scope = resource.scope();
        let Some(def) = scope.and_then(|scope| table::find(scope, key)) else {
            return;
        };
        match value::check(&self.statics.in_profile(def), text) {
            Err(error) => {
                tracing::warn!(?resource, name, "a stored config has no effect: {error}");
            }
            Ok(text) => {
                let first = self.statics.broker_ids()[0];
                let clamped = self.clamp(first, def, text.clone());
                if clamped != text {
                    tracing::warn!(
                        ?resource,
                        name,
                        "{key}={text} is outside the broker's bounds and runs as {clamped}"
                    );
                }
            }
        }
    }

    /// The configs that are stored for a resource.
    pub fn stored(&self, resource: ResourceType, name: &str) -> Option<&BTreeMap<String, String>> {
        self.dynamic.get(&resource)?.get(name)
    }

    /// The resources of a type that have stored configs, sorted; the broker default is `""`.
    pub fn stored_names(&self, resource: ResourceType) -> Vec<&str> {
        let of_type = self
            .dynamic
            .get(&resource)
            .into_iter()
            .flat_map(BTreeMap::keys);
        of_type.map(String::as_str).collect()
    }

    /// Every stored config as the change that would make it, for a snapshot of the metadata log.
    pub fn all_stored(&self) -> Vec<ConfigChange> {
        let mut changes = Vec::new();
        let of_type = |(resource, named)| std::iter::repeat(resource).zip(named);
        for (resource, (name, own)) in self.dynamic.iter().flat_map(of_type) {
            for (key, value) in own {
                changes.push(ConfigChange {
                    resource: *resource,
                    name: name.clone(),
                    key: key.clone(),
                    value: Some(value.clone()),
                });
            }
        }
        changes
    }

    /// The cluster default that Kafka stores when eligible leader replicas are switched on (KIP-966):
    /// `min.insync.replicas` as it was given statically. Empty, if it is stored already.
    pub fn initial_changes(&self) -> Vec<ConfigChange> {
        const KEY: &str = "min.insync.replicas";
        let stored = self.stored(ResourceType::Broker, "");
        if stored.is_some_and(|own| own.contains_key(KEY)) {
            return Vec::new();
        }
        vec![ConfigChange {
            resource: ResourceType::Broker,
            name: String::new(),
            key: KEY.to_owned(),
            value: self.statics.text(self.statics.broker_ids()[0], KEY),
        }]
    }

    /// What broker `id` runs with. An id that is not served gets what a broker without overrides has.
    #[expect(
        clippy::expect_used,
        reason = "start-up read the same texts; later ones were checked"
    )]
    pub fn broker(&self, id: i32) -> BrokerConfig {
        let listeners = self.statics.listeners(id).unwrap_or_default();
        let text = |key: &'static str| {
            let controllers = self.statics.controllers_default(id, key);
            controllers.or_else(|| self.broker_text(id, key))
        };
        BrokerConfig::resolve(id, listeners, &text)
            .expect("every broker config that holds was checked against its row")
    }

    /// What a topic runs with on broker `id`.
    pub fn topic(&self, id: i32, name: &str) -> TopicConfig {
        self.topic_with(
            id,
            self.stored(ResourceType::Topic, name)
                .unwrap_or(&Own::new()),
        )
    }

    /// What a topic with the configs `own` would run with on broker `id`.
    #[expect(clippy::expect_used, reason = "every text is checked before it holds")]
    pub fn topic_with(&self, id: i32, own: &BTreeMap<String, String>) -> TopicConfig {
        TopicConfig::resolve(&|key| {
            let def = table::find(Scope::Topic, key)?;
            self.own_text(def, own).or_else(|| self.inherited(id, def))
        })
        .expect("every topic config that holds was checked against its row")
    }

    /// What a group runs with on broker `id`.
    pub fn group(&self, id: i32, name: &str) -> GroupConfig {
        self.group_with(
            id,
            self.stored(ResourceType::Group, name)
                .unwrap_or(&Own::new()),
        )
    }

    #[expect(clippy::expect_used, reason = "every text is checked before it holds")]
    fn group_with(&self, id: i32, own: &Own) -> GroupConfig {
        let mut group =
            GroupConfig::resolve(&|key| self.group_text(id, table::find(Scope::Group, key)?, own))
                .expect("every group config that holds was checked against its row");
        // A default that changed with a restart may no longer fit what the group has stored.
        let buckets = i64::from(group.share.dlq_breaker_window_buckets.max(1));
        let window = &mut group.share.dlq_breaker_window_ms;
        *window = (*window - *window % buckets).max(buckets);
        // Clamping may leave a session no longer than the heartbeats that keep it alive.
        let below =
            |heartbeat: &mut i32, session: i32| *heartbeat = (*heartbeat).min((session - 1).max(1));
        below(
            &mut group.consumer.heartbeat_interval_ms,
            group.consumer.session_timeout_ms,
        );
        below(
            &mut group.share.heartbeat_interval_ms,
            group.share.session_timeout_ms,
        );
        below(
            &mut group.streams.heartbeat_interval_ms,
            group.streams.session_timeout_ms,
        );
        group
    }

    /// The text of a group config, within the broker's bounds.
    fn group_text(&self, id: i32, def: &ConfigDef, own: &Own) -> Option<String> {
        let text = self.own_text(def, own);
        let text = text.or_else(|| self.inherited(id, def))?;
        Some(self.clamp(id, def, text))
    }

    fn clamp(&self, id: i32, def: &ConfigDef, text: String) -> String {
        if def.scope != Scope::Group || bounds::of(def.name).is_none() {
            return text;
        }
        match text.parse() {
            Ok(number) => {
                bounds::clamp(def.name, number, &|key| self.broker_number(id, key)).to_string()
            }
            Err(_) => text,
        }
    }

    /// A resource's own text of `def`, if its row takes it.
    pub(super) fn own_text(&self, def: &ConfigDef, own: &Own) -> Option<String> {
        value::check(&self.statics.in_profile(def), own.get(def.name)?).ok()
    }

    /// What a topic or group inherits from broker `id`.
    pub(super) fn inherited(&self, id: i32, def: &ConfigDef) -> Option<String> {
        let known = self
            .inherited
            .get(&id)
            .and_then(|inherited| match def.scope {
                Scope::Topic => inherited.topic.get(def.name),
                Scope::Group => inherited.group.get(def.name),
                Scope::Broker | Scope::ClientMetrics => None,
            });
        match known {
            Some(text) => text.clone(),
            None => self.inherited_now(id, def),
        }
    }

    /// Our group default, else the first broker synonym that is not null, else the row's default.
    fn inherited_now(&self, id: i32, def: &ConfigDef) -> Option<String> {
        if def.scope == Scope::Group
            && let Some(text) = self.statics.group_default(def.name)
        {
            return Some(text.to_owned());
        }
        for (synonym, factor) in def.synonyms {
            let Some(text) = self.broker_text(id, synonym) else {
                continue;
            };
            return Some(convert(def, &text, *factor));
        }
        def.default.map(str::to_owned)
    }

    /// What broker `id` runs with for `key`; `None` is null.
    pub(super) fn broker_text(&self, id: i32, key: &str) -> Option<String> {
        if let Some(def) = table::find(Scope::Broker, key) {
            for name in [id.to_string().as_str(), ""] {
                let stored = self.stored(ResourceType::Broker, name);
                if let Some(text) = stored.and_then(|own| self.own_text(def, own)) {
                    return Some(text);
                }
            }
        }
        self.statics.text(id, key)
    }

    pub(super) fn broker_number(&self, id: i32, key: &str) -> Option<i64> {
        self.broker_text(id, key)?.parse().ok()
    }

    /// The values of a broker config on broker `id`, strongest first: what `DescribeConfigs` calls its synonyms.
    pub(super) fn broker_synonyms(&self, id: i32, key: &str) -> Vec<Synonym> {
        let mut found = Vec::new();
        let mut push = |value: Option<&str>, source| {
            if let Some(value) = value {
                let value = Some(value.to_owned());
                found.push(Synonym {
                    name: key.to_owned(),
                    value,
                    source,
                });
            }
        };
        let broker = self.stored(ResourceType::Broker, &id.to_string());
        push(
            broker.and_then(|own| own.get(key)).map(String::as_str),
            ConfigSource::DynamicBroker,
        );
        let default = self.stored(ResourceType::Broker, "");
        push(
            default.and_then(|own| own.get(key)).map(String::as_str),
            ConfigSource::DynamicDefaultBroker,
        );
        push(
            self.statics.given(id, key).map(|s| s.value.as_str()),
            ConfigSource::StaticBroker,
        );
        push(
            self.statics.default_of(id, key).as_deref(),
            ConfigSource::Default,
        );
        found
    }
}

/// A broker's text in the unit and type of the topic or group config that inherits it.
fn convert(def: &ConfigDef, text: &str, factor: i64) -> String {
    if factor != 1 {
        return scaled(text, factor);
    }
    if def.name == "streams.assignor.name" {
        return value::list(text).into_iter().next().unwrap_or_default();
    }
    if def.name == "retention.ms" && text.starts_with('-') {
        return "-1".to_owned();
    }
    text.to_owned()
}

/// A duration in milliseconds; a negative one is no limit, and stays -1.
fn scaled(text: &str, factor: i64) -> String {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => "-1".to_owned(),
        Ok(number) => number.saturating_mul(factor).to_string(),
        Err(_) => text.to_owned(),
    }
}
