//! The one configuration table: every Kafka 4.4.0 broker, topic, group and client-metrics config, and ours.
//!
//! Parsing, `AlterConfigs` checks, `DescribeConfigs` and `docs/configuration.md` all come from these rows.
//! Kafka's rows are in `table_broker.rs`, `table_topic.rs` and `table_group.rs`, ours in `table_ottla.rs` and
//! `table_ottla_group.rs`; what the more important Kafka keys mean is in `table_docs.rs`.

use super::{table_broker, table_docs, table_group, table_ottla, table_ottla_group, table_topic};

/// The type of a config, as `DescribeConfigs` reports it (KIP-569).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Boolean,
    /// Any text.
    String,
    /// 32-bit signed.
    Int,
    /// 16-bit signed.
    Short,
    /// 64-bit signed.
    Long,
    /// 64-bit floating point.
    Double,
    /// Comma-separated texts.
    List,
    /// The name of a Java class.
    Class,
    /// A text that is never shown.
    Password,
}

impl Type {
    /// The name in Kafka's error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }

    /// The number in a `DescribeConfigs` response.
    pub fn wire(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }
}

/// Which values a config takes beyond its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Valid {
    /// Every value of the type.
    Any,
    /// A whole number of at least this.
    Min(i64),
    /// A whole number within these bounds, both included.
    Between(i64, i64),
    /// A fraction within these bounds, both included.
    Ratio(f64, f64),
    /// A fraction above 0 and at most 1.
    Share,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, whatever the case.
    OneOfIgnoringCase(&'static [&'static str]),
    /// A list of these texts.
    EachOf(&'static [&'static str]),
    /// Not null.
    NonNull,
    /// Neither null nor empty.
    NonEmpty,
    /// A list that, where it is set, has an element.
    NonEmptyList,
    /// -1 (the codec's default) or 1 to 9.
    GzipLevel,
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
    /// `earliest`, `latest` or `by_duration:` with an ISO-8601 duration (KIP-932).
    OffsetReset,
    /// A topic name that is no internal one (KIP-1191).
    DlqTopic,
    /// A list of `HOST:NUMBER`.
    HostLimits,
    /// -1, or at least this.
    MinusOneOrMin(i64),
}

/// How a broker config may change while the broker runs (KIP-226).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only by a restart.
    ReadOnly,
    /// For one broker.
    PerBroker,
    /// For one broker or as the default of all.
    ClusterWide,
}

impl Mode {
    /// The text in the reference page.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::PerBroker => "per-broker",
            Self::ClusterWide => "cluster-wide",
        }
    }
}

/// What kind of resource a row configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A broker; also what `server.properties` may hold.
    Broker,
    /// A topic.
    Topic,
    /// A group.
    Group,
    /// A client-metrics subscription (KIP-714).
    ClientMetrics,
}

/// Milliseconds of a minute, as the factor of a broker synonym.
pub(super) const MINUTE: i64 = 60_000;
/// Milliseconds of an hour, as the factor of a broker synonym.
pub(super) const HOUR: i64 = 3_600_000;

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct ConfigDef {
    /// The key, or a pattern with capitals in it such as `ottla.listeners.ID`.
    pub name: &'static str,
    /// What it configures.
    pub scope: Scope,
    /// Its type.
    pub kind: Type,
    /// Its default as text; `None` is Kafka's null.
    pub default: Option<&'static str>,
    /// Its range.
    pub valid: Valid,
    /// How it may change (broker configs; all others may always change).
    pub mode: Mode,
    /// The broker configs that it inherits from, strongest first, each with the factor to this config's unit.
    pub synonyms: &'static [(&'static str, i64)],
    /// Not shown by `DescribeConfigs`.
    pub internal: bool,
    /// Kafka does not start without it. Ottla does.
    pub required: bool,
    doc: &'static str,
}

impl ConfigDef {
    const fn new(
        name: &'static str,
        scope: Scope,
        kind: Type,
        default: Option<&'static str>,
        valid: Valid,
    ) -> Self {
        Self {
            name,
            scope,
            kind,
            default,
            valid,
            mode: Mode::ClusterWide,
            synonyms: &[],
            internal: false,
            required: false,
            doc: "",
        }
    }

    /// Not shown by `DescribeConfigs`.
    pub(super) const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }

    /// Kafka does not start without it.
    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What it means.
    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// The same row with another range.
    pub(super) const fn with_range(mut self, valid: Valid) -> Self {
        self.valid = valid;
        self
    }

    /// Whether its value is never shown.
    pub fn sensitive(&self) -> bool {
        self.kind == Type::Password
    }

    /// What it means, in a sentence or two; empty for what a developer rarely touches.
    pub fn documentation(&self) -> &'static str {
        if self.doc.is_empty() {
            table_docs::of(self.name)
        } else {
            self.doc
        }
    }
}

/// A broker row.
pub(super) const fn broker(
    name: &'static str,
    kind: Type,
    default: Option<&'static str>,
    valid: Valid,
    mode: Mode,
) -> ConfigDef {
    let mut row = ConfigDef::new(name, Scope::Broker, kind, default, valid);
    row.mode = mode;
    row
}

/// A topic row.
pub(super) const fn topic(
    name: &'static str,
    kind: Type,
    default: Option<&'static str>,
    valid: Valid,
    synonyms: &'static [(&'static str, i64)],
) -> ConfigDef {
    let mut row = ConfigDef::new(name, Scope::Topic, kind, default, valid);
    row.synonyms = synonyms;
    row
}

/// A group row.
pub(super) const fn group(
    name: &'static str,
    kind: Type,
    default: Option<&'static str>,
    valid: Valid,
    synonyms: &'static [(&'static str, i64)],
) -> ConfigDef {
    let mut row = ConfigDef::new(name, Scope::Group, kind, default, valid);
    row.synonyms = synonyms;
    row
}

/// The configs of a client-metrics subscription (KIP-714), sorted by name.
pub const CLIENT_METRICS: &[ConfigDef] = &[
    ConfigDef::new(
        "interval.ms",
        Scope::ClientMetrics,
        Type::Int,
        Some("300000"),
        Valid::Any,
    )
    .doc("How often a client pushes its metrics, from 100 ms to an hour."),
    ConfigDef::new(
        "match",
        Scope::ClientMetrics,
        Type::List,
        Some(""),
        Valid::Any,
    )
    .doc("Which clients push: a list of `selector=regular expression`."),
    ConfigDef::new(
        "metrics",
        Scope::ClientMetrics,
        Type::List,
        Some(""),
        Valid::Any,
    )
    .doc("Prefixes of the names of the metrics to push; empty pushes none, `*` all."),
];

/// Every row of one scope that is Kafka's, sorted by name.
pub fn rows(scope: Scope) -> &'static [ConfigDef] {
    match scope {
        Scope::Broker => table_broker::ROWS,
        Scope::Topic => table_topic::ROWS,
        Scope::Group => table_group::ROWS,
        Scope::ClientMetrics => CLIENT_METRICS,
    }
}

/// Every row of one scope that is Ottla's own, sorted by name; capitals in a broker key stand for a part
/// that varies.
pub fn ours(scope: Scope) -> &'static [ConfigDef] {
    match scope {
        Scope::Broker => table_ottla::ROWS,
        Scope::Group => table_ottla_group::ROWS,
        Scope::Topic | Scope::ClientMetrics => &[],
    }
}

/// Every row of one scope: Kafka's, then ours.
pub fn all(scope: Scope) -> impl Iterator<Item = &'static ConfigDef> {
    rows(scope).iter().chain(ours(scope))
}

/// The row of `name`, Kafka's or ours.
pub fn find(scope: Scope, name: &str) -> Option<&'static ConfigDef> {
    let search = |rows: &'static [ConfigDef]| {
        rows.binary_search_by(|row| row.name.cmp(name))
            .ok()
            .map(|at| &rows[at])
    };
    search(rows(scope)).or_else(|| search(ours(scope)))
}
