//! Listeners: names, addresses, what they advertise, which protocol they speak.

use std::collections::BTreeMap;
use std::fmt;

use super::value::list;
use super::{ConfigError, Reason};

/// A host name or address and a port; port 0 is any free one. Shown with brackets around an IPv6 host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// A name or an address, without brackets; empty means every interface.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Parses `HOST:PORT`, `[V6]:PORT` or `:PORT`.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.trim().rsplit_once(':')?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']')?,
            None if host.contains(':') => return None,
            None => host,
        };
        if host.contains(['/', ' ', ',']) {
            return None;
        }
        Some(Self {
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Neither encryption nor authentication.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL in the clear.
    SaslPlaintext,
    /// SASL within TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// The number in broker records: 0 to 3.
    pub fn id(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [
            Self::Plaintext,
            Self::Ssl,
            Self::SaslPlaintext,
            Self::SaslSsl,
        ]
        .into_iter()
        .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

/// One address that a broker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, upper case; unique within a broker.
    pub name: String,
    /// Where it binds. See [`Listener::bind_addresses`].
    pub bind: HostPort,
    /// What clients are told. `None`: the address at which the client reached the broker, so that
    /// `localhost`, `127.0.0.1`, `[::1]` and a container's name all work.
    pub advertised: Option<HostPort>,
    /// What it speaks.
    pub protocol: SecurityProtocol,
}

impl Listener {
    /// The hosts to bind at `bind.port`, each with whether a failure is an error.
    ///
    /// A loopback name or address binds both loopbacks, since `localhost` resolves to either; an empty
    /// host binds every interface.
    pub fn bind_addresses(&self) -> Vec<(&str, bool)> {
        match self.bind.host.as_str() {
            "127.0.0.1" | "localhost" => vec![("127.0.0.1", true), ("::1", false)],
            "" => vec![("0.0.0.0", true), ("::", false)],
            host => vec![(host, true)],
        }
    }
}

/// An entry of `listeners`: `NAME://HOST:PORT`; a bare `HOST:PORT` is `PLAINTEXT`.
fn parse_entry(key: &str, entry: &str) -> Result<(String, HostPort), ConfigError> {
    let (name, address) = entry.split_once("://").unwrap_or(("PLAINTEXT", entry));
    let valid_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    match HostPort::parse(address) {
        Some(address) if valid_name => Ok((name.to_ascii_uppercase(), address)),
        _ => Err(ConfigError::value(
            key,
            entry,
            "a listener is written NAME://HOST:PORT, for example PLAINTEXT://127.0.0.1:9092",
        )),
    }
}

fn parse_list(key: &str, text: &str) -> Result<Vec<(String, HostPort)>, ConfigError> {
    list(text)
        .iter()
        .map(|entry| parse_entry(key, entry))
        .collect()
}

/// `listener.security.protocol.map`: `NAME:PROTOCOL` pairs.
fn parse_map(text: &str) -> Result<BTreeMap<String, SecurityProtocol>, ConfigError> {
    const KEY: &str = "listener.security.protocol.map";
    list(text)
        .iter()
        .map(|entry| {
            let (name, protocol) = entry.split_once(':').ok_or_else(|| {
                ConfigError::value(KEY, entry, "an entry is written NAME:PROTOCOL")
            })?;
            let protocol = SecurityProtocol::parse(protocol.trim()).ok_or_else(|| {
                ConfigError::value(
                    KEY,
                    entry,
                    "the protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
                )
            })?;
            Ok((name.trim().to_ascii_uppercase(), protocol))
        })
        .collect()
}

/// The texts that decide one broker's listeners.
#[derive(Debug)]
pub(super) struct ListenerTexts<'a> {
    /// The key that `listeners` came from, for error texts.
    pub(super) key: &'a str,
    /// `listeners`, or the broker's `ottla.listeners.ID`.
    pub(super) listeners: &'a str,
    /// Whether these listeners are also the advertised ones, where a client can use them.
    pub(super) own: bool,
    /// `advertised.listeners`.
    pub(super) advertised: Option<&'a str>,
    /// `listener.security.protocol.map`.
    pub(super) protocols: &'a str,
    /// `controller.listener.names`: listeners that Ottla has no use for.
    pub(super) controllers: &'a str,
    /// `inter.broker.listener.name`.
    pub(super) inter_broker: Option<&'a str>,
}

/// One broker's listeners, checked: unique names, known and served protocols, no controller listeners.
pub(super) fn resolve(texts: &ListenerTexts<'_>) -> Result<Vec<Listener>, ConfigError> {
    let protocols = parse_map(texts.protocols)?;
    let controllers: Vec<_> = list(texts.controllers)
        .iter()
        .map(|name| name.to_ascii_uppercase())
        .collect();
    let advertised = match texts.advertised {
        Some(text) => parse_list("advertised.listeners", text)?,
        None => Vec::new(),
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for (name, bind) in parse_list(texts.key, texts.listeners)? {
        if controllers.contains(&name) {
            continue;
        }
        if listeners.iter().any(|other| other.name == name) {
            return Err(ConfigError::value(
                texts.key,
                texts.listeners,
                "each listener needs its own name",
            ));
        }
        let protocol = protocol_of(&name, &protocols)?;
        let told = advertised
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, told)| told.clone());
        let every_interface = |told: &HostPort| ["", "0.0.0.0", "::"].contains(&told.host.as_str());
        let told = told.filter(|told| !texts.own || (!every_interface(told) && told.port != 0));
        if told.as_ref().is_some_and(every_interface) {
            return Err(ConfigError::value(
                "advertised.listeners",
                texts.advertised.unwrap_or_default(),
                "clients cannot connect to every interface: name a host, or leave the listener out \
                 to advertise the address that the client used",
            ));
        }
        listeners.push(Listener {
            name,
            bind,
            advertised: told,
            protocol,
        });
    }
    let known =
        |name: &String| controllers.contains(name) || listeners.iter().any(|l| l.name == *name);
    if let Some((name, _)) = advertised.iter().find(|(name, _)| !known(name)) {
        return Err(ConfigError::value(
            "advertised.listeners",
            name,
            "no listener has this name",
        ));
    }
    check(texts, &listeners)?;
    Ok(listeners)
}

fn protocol_of(
    name: &str,
    protocols: &BTreeMap<String, SecurityProtocol>,
) -> Result<SecurityProtocol, ConfigError> {
    let Some(protocol) = protocols.get(name).copied() else {
        return Err(ConfigError::new(
            Reason::Invalid,
            format!(
                "No security protocol defined for listener {name}: add {name}:PLAINTEXT to listener.security.protocol.map"
            ),
        ));
    };
    if protocol == SecurityProtocol::Plaintext {
        return Ok(protocol);
    }
    Err(ConfigError::new(
        Reason::Unsupported,
        format!(
            "listener {name} asks for {}, but this version of Ottla serves PLAINTEXT only: map it with \
             listener.security.protocol.map={name}:PLAINTEXT",
            protocol.name()
        ),
    ))
}

fn check(texts: &ListenerTexts<'_>, listeners: &[Listener]) -> Result<(), ConfigError> {
    if listeners.is_empty() {
        return Err(ConfigError::value(
            texts.key,
            texts.listeners,
            "at least one listener that is not a controller's is needed",
        ));
    }
    for (at, listener) in listeners.iter().enumerate() {
        let port = listener.bind.port;
        if port != 0 && listeners[..at].iter().any(|other| other.bind.port == port) {
            return Err(ConfigError::value(
                texts.key,
                texts.listeners,
                "each listener needs its own port",
            ));
        }
    }
    match texts.inter_broker {
        Some(name) if !listeners.iter().any(|l| l.name.eq_ignore_ascii_case(name)) => {
            Err(ConfigError::value(
                "inter.broker.listener.name",
                name,
                "no listener has this name",
            ))
        }
        _ => Ok(()),
    }
}
