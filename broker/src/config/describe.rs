//! What DescribeConfigs and ListConfigResources answer.

/// Where the value of a config comes from (KIP-226), as in a DescribeConfigs response.
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

/// One config of a DescribeConfigs response.
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
