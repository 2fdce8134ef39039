//! What the process was started with: checked texts, by layer and broker.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::alter::check_assignor;
use super::profile::Profile;
use super::table::{self, ConfigDef, Scope};
use super::{BrokerConfig, ConfigError, bounds, value};

mod addresses;
mod refusals;
mod unknown;

/// Where a static value comes from, weakest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A properties file.
    File {
        /// As the user named it.
        path: String,
        /// From 1.
        line: usize,
    },
    /// An environment variable of this name.
    Environment(String),
    /// `--set`, or the embedding program.
    Set,
    /// A flag of its own.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{path} line {line}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Set => write!(f, "--set"),
            Self::Flag => write!(f, "command line"),
        }
    }
}

/// One value as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The text, as Kafka shows it where the key is known.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

type Settings = BTreeMap<String, Setting>;

/// What the process was started with; checked, and the same for the life of the process.
#[derive(Clone, Debug)]
pub struct StaticConfig {
    profile: Profile,
    brokers: i32,
    first_id: i32,
    settings: Settings,
    overrides: BTreeMap<i32, Settings>,
    listeners: BTreeMap<i32, Setting>,
    group_defaults: Settings,
    features: BTreeMap<String, i16>,
    warnings: Vec<String>,
}

impl StaticConfig {
    /// Checks `settings`, given weakest first: a later value of the same key wins.
    ///
    /// Unknown keys are kept and named in [`StaticConfig::warnings`]. What is known and has no meaning here
    /// is kept in silence.
    pub fn new(
        settings: impl IntoIterator<Item = (String, String, Origin)>,
    ) -> Result<Self, ConfigError> {
        let mut given = Settings::new();
        for (key, value, origin) in settings {
            given.insert(key.trim().to_owned(), Setting { value, origin });
        }
        let mut config = Self {
            profile: profile_of(&given)?,
            brokers: 1,
            first_id: 0,
            settings: Settings::new(),
            overrides: BTreeMap::new(),
            listeners: BTreeMap::new(),
            group_defaults: Settings::new(),
            features: BTreeMap::new(),
            warnings: Vec::new(),
        };
        for (key, setting) in given {
            config.take(key, setting)?;
        }
        config.number_brokers()?;
        config.check()?;
        Ok(config)
    }

    /// The defaults of `profile`, nothing else.
    pub fn defaults(profile: Profile) -> Result<Self, ConfigError> {
        Self::new([(
            "ottla.profile".to_owned(),
            profile.name().to_owned(),
            Origin::Set,
        )])
    }

    /// Sorts one given key to its place.
    fn take(&mut self, key: String, setting: Setting) -> Result<(), ConfigError> {
        if let Some(rest) = key.strip_prefix("ottla.override.") {
            let (id, inner) = rest.split_once('.').unwrap_or((rest, ""));
            let id = broker_id(&key, id, &setting)?;
            let def = table::find(Scope::Broker, inner).ok_or_else(|| {
                ConfigError::invalid(format!(
                    "{}: {key}: {inner} is no broker config{}",
                    setting.origin,
                    unknown::suggestion(Scope::Broker, inner)
                ))
            })?;
            let setting = self.checked(def, &key, setting)?;
            self.overrides
                .entry(id)
                .or_default()
                .insert(inner.to_owned(), setting);
        } else if let Some(id) = key.strip_prefix("ottla.listeners.") {
            self.listeners
                .insert(broker_id(&key, id, &setting)?, setting);
        } else if let Some(inner) = key.strip_prefix("ottla.group.default.") {
            let def = table::find(Scope::Group, inner).ok_or_else(|| {
                ConfigError::invalid(format!(
                    "{}: {key}: Unknown group config name: {inner}{}",
                    setting.origin,
                    unknown::suggestion(Scope::Group, inner)
                ))
            })?;
            let setting = self.checked(def, &key, setting)?;
            self.group_defaults.insert(inner.to_owned(), setting);
        } else if let Some(feature) = feature_of(&key) {
            let level = setting
                .value
                .trim()
                .parse::<i16>()
                .ok()
                .filter(|level| *level >= 0);
            let level = level.ok_or_else(|| {
                ConfigError::invalid(format!(
                    "{}: {key}={}: a feature level is a number from 0 to 32767",
                    setting.origin, setting.value
                ))
            })?;
            self.features.insert(feature.to_owned(), level);
        } else if let Some(def) = table::find(Scope::Broker, &key) {
            let setting = self.checked(def, &key, setting)?;
            self.settings.insert(key, setting);
        } else {
            if let Some(warning) = unknown::warning(&key, &setting.origin) {
                self.warnings.push(warning);
            }
            self.settings.insert(key, setting);
        }
        Ok(())
    }

    fn checked(
        &self,
        def: &ConfigDef,
        key: &str,
        setting: Setting,
    ) -> Result<Setting, ConfigError> {
        let def = self.in_profile(def);
        let Setting { value, origin } = setting;
        match value::check(&def, &value) {
            Ok(value) => Ok(Setting { value, origin }),
            Err(error) if key == def.name => {
                Err(ConfigError::invalid(format!("{origin}: {error}")))
            }
            Err(error) => Err(ConfigError::invalid(format!("{origin}: {key}: {error}"))),
        }
    }

    /// Reads how many brokers there are and what their ids are.
    fn number_brokers(&mut self) -> Result<(), ConfigError> {
        let number = |key: &str| self.settings.get(key)?.value.parse::<i32>().ok();
        let brokers = number("ottla.brokers").unwrap_or(1);
        let node = number("node.id")
            .or(number("broker.id").filter(|id| *id >= 0))
            .unwrap_or(0);
        if brokers > 1 && node != 0 {
            return Err(ConfigError::invalid(format!(
                "{brokers} brokers in one process have the ids 0 to {}: set node.id=0, not {node}",
                brokers - 1
            )));
        }
        if brokers > 1_000 {
            return Err(ConfigError::invalid(
                "one process serves at most 1000 logical brokers",
            ));
        }
        (self.brokers, self.first_id) = (brokers, node);
        let ids = self.broker_ids();
        let shown: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let shown = shown.join(", ");
        if let Some(id) = self.listeners.keys().find(|id| !ids.contains(id)) {
            return Err(ConfigError::invalid(format!(
                "there is a listener for broker {id}, but the ids are {shown}: set ottla.brokers"
            )));
        }
        let strays = self.overrides.keys().filter(|id| !ids.contains(id));
        let strays = strays.map(|id| {
            format!(
                "there are settings for broker {id}, but the ids are {shown}: they have no effect"
            )
        });
        self.warnings.extend(strays);
        Ok(())
    }

    /// What needs the whole: values that this version cannot serve, bounds, listeners.
    fn check(&self) -> Result<(), ConfigError> {
        self.admin_listener()?;
        for id in self.broker_ids() {
            let text = |key: &str| self.text(id, key);
            refusals::check(&text)?;
            let number = |key: &str| self.text(id, key).and_then(|text| text.parse().ok());
            bounds::check_broker(&number).map_err(ConfigError::invalid)?;
            let listeners = self.listeners(id)?;
            BrokerConfig::resolve(id, listeners, &text).map_err(unreadable)?;
        }
        self.check_group_defaults()?;
        self.check_ports()
    }

    fn check_group_defaults(&self) -> Result<(), ConfigError> {
        let id = self.first_id;
        let broker = |key: &str| self.text(id, key).and_then(|text| text.parse().ok());
        let own = |key: &str| {
            self.group_defaults
                .get(key)
                .and_then(|s| s.value.parse().ok())
        };
        let row = |key: &str| table::find(Scope::Group, key)?.default?.parse().ok();
        let inherited = |key: &str| broker(&format!("group.{key}")).or_else(|| row(key));
        let effective = |key: &str| own(key).or_else(|| inherited(key));
        let assignor = self.group_defaults.get("streams.assignor.name");
        let assignor = assignor.map(|setting| &setting.value);
        let registered = self.text(id, "group.streams.assignors");
        bounds::check_group(&own, &effective, &broker)
            .and_then(|()| check_assignor(assignor, registered))
            .map_err(|problem| ConfigError::invalid(format!("ottla.group.default: {problem}")))
    }

    /// The profile whose defaults hold.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The ids of the logical brokers, in order; never empty.
    pub fn broker_ids(&self) -> Vec<i32> {
        (self.first_id..self.first_id + self.brokers).collect()
    }

    /// One readable line for each thing that was understood and is probably not meant.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Levels that `feature.NAME` and `metadata.version` ask for.
    pub fn features(&self) -> &BTreeMap<String, i16> {
        &self.features
    }

    /// `log.dirs`, else `log.dir`; empty, when neither is given: records are kept in memory.
    pub fn data_dirs(&self) -> Vec<PathBuf> {
        let given = self
            .settings
            .get("log.dirs")
            .or_else(|| self.settings.get("log.dir"));
        given.map_or_else(Vec::new, |given| {
            value::list(&given.value)
                .into_iter()
                .map(PathBuf::from)
                .collect()
        })
    }

    /// Bytes of records kept in memory mode; `None`: a quarter of the memory that the process may use.
    pub fn memory_max_bytes(&self) -> Option<u64> {
        self.settings
            .get("ottla.memory.max.bytes")?
            .value
            .parse()
            .ok()
    }

    /// Whether to use the portable code paths of storage.
    pub fn portable(&self) -> bool {
        self.text(self.first_id, "ottla.portable")
            .is_some_and(|text| text == "true")
    }

    /// The row with the range of this profile.
    pub(super) fn in_profile(&self, def: &ConfigDef) -> ConfigDef {
        def.with_range(self.profile.valid_of(def.scope, def.name, def.valid))
    }

    /// What broker `id` was told about `key`.
    pub(super) fn given(&self, id: i32, key: &str) -> Option<&Setting> {
        let own = self.overrides.get(&id).and_then(|own| own.get(key));
        own.or_else(|| self.settings.get(key))
    }

    /// What a controller says of a new topic where broker `id` was told nothing: the settings of an id
    /// that no broker has.
    pub(super) fn controllers_default(&self, id: i32, key: &str) -> Option<String> {
        if !CONTROLLERS.contains(&key) || self.given(id, key).is_some() {
            return None;
        }
        let ids = self.broker_ids();
        let strays = self.overrides.iter().filter(|(id, _)| !ids.contains(id));
        let mut values = strays.filter_map(|(_, own)| own.get(key));
        values.next().map(|setting| setting.value.clone())
    }

    /// The keys that broker `id` was given, the unknown among them.
    pub(super) fn given_keys(&self, id: i32) -> impl Iterator<Item = &str> {
        let own = self.overrides.get(&id).into_iter().flat_map(BTreeMap::keys);
        let fresh = own.filter(|key| !self.settings.contains_key(*key));
        self.settings.keys().chain(fresh).map(String::as_str)
    }

    /// `ottla.group.default.KEY`.
    pub(super) fn group_default(&self, key: &str) -> Option<&str> {
        self.group_defaults
            .get(key)
            .map(|setting| setting.value.as_str())
    }

    /// The default of a broker config; `None` is null.
    pub(super) fn default_of(&self, id: i32, key: &str) -> Option<String> {
        let def = table::find(Scope::Broker, key)?;
        let text = self.profile.default_of(key, def.default, self.brokers)?;
        if self.profile == Profile::Desk && bounds::of(key).is_some() {
            // A bound that the user moved moves our default, not the user's start-up.
            let bound = |key: &str| {
                self.text_unbounded(id, key)
                    .and_then(|text| text.parse().ok())
            };
            if let Ok(number) = text.parse() {
                return Some(bounds::clamp(key, number, &bound).to_string());
            }
        }
        Some(text)
    }

    fn text_unbounded(&self, id: i32, key: &str) -> Option<String> {
        let def = table::find(Scope::Broker, key)?;
        let given = self.given(id, key).map(|setting| setting.value.clone());
        given.or_else(|| self.profile.default_of(key, def.default, self.brokers))
    }

    /// What broker `id` starts with for `key`; `None` is null.
    pub(super) fn text(&self, id: i32, key: &str) -> Option<String> {
        if key == "node.id" || key == "broker.id" {
            return Some(id.to_string());
        }
        match self.given(id, key) {
            Some(setting) => Some(setting.value.clone()),
            None => self.default_of(id, key),
        }
    }
}

/// What of a controller's own settings counts here: the defaults of new topics, which are its business.
const CONTROLLERS: [&str; 2] = ["num.partitions", "default.replication.factor"];

/// Whether something reads this key.
pub(super) fn is_known(key: &str) -> bool {
    let patterns = [
        "ottla.override.",
        "ottla.listeners.",
        "ottla.group.default.",
    ];
    table::find(Scope::Broker, key).is_some()
        || feature_of(key).is_some()
        || patterns.iter().any(|prefix| key.starts_with(prefix))
        || unknown::warning(key, &Origin::Set).is_none()
}

fn profile_of(given: &Settings) -> Result<Profile, ConfigError> {
    let Some(setting) = given.get("ottla.profile") else {
        return Ok(Profile::default());
    };
    Profile::parse(setting.value.trim()).ok_or_else(|| {
        ConfigError::invalid(format!(
            "{}: there is no profile {:?}: it is desk or kafka",
            setting.origin, setting.value
        ))
    })
}

fn feature_of(key: &str) -> Option<&str> {
    match key {
        "metadata.version" => Some(key),
        _ => key.strip_prefix("feature."),
    }
}

fn broker_id(key: &str, id: &str, setting: &Setting) -> Result<i32, ConfigError> {
    id.parse::<i32>().ok().filter(|id| *id >= 0).ok_or_else(|| {
        ConfigError::invalid(format!("{}: {key}: {id:?} is no broker id", setting.origin))
    })
}

fn unreadable(key: &'static str) -> ConfigError {
    ConfigError::invalid(format!("the value of {key} cannot be read"))
}
