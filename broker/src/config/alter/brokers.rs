//! Brokers: which configs may change while they run (KIP-226), and to what.

use super::{Refusal, ResourceType, World};
use crate::config::configs::Own;
use crate::config::table::{self, Mode, Scope, Type};
use crate::config::{Configs, bounds, value};

/// Thread pools: Kafka lets them grow to the double and shrink to the half in one step.
const POOLS: &[&str] = &[
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
];
const CLEANERS: &str = "log.cleaner.threads";

/// Kafka can rebind and re-key a running broker; Ottla's listeners are those that it was started with.
const BOUND_AT_START: &[&str] = &["listeners", "listener.security.protocol.map"];

/// TLS stores, which Kafka changes for one listener at a time.
const PER_LISTENER: &[&str] = &["ssl.keystore.", "ssl.truststore.", "ssl.key.password"];

/// Whether a request names the broker that answers it.
pub(in crate::config) fn own_id(world: &World<'_>, name: &str) -> Result<(), Refusal> {
    let Ok(id) = name.parse::<i32>() else {
        return Err(Refusal::request(format!(
            "Node id must be an integer, but it is: {name}"
        )));
    };
    if id == world.broker {
        return Ok(());
    }
    Err(Refusal::request(format!(
        "Unexpected broker id, expected {}, but received {name}",
        world.broker
    )))
}

/// Whether eligible leader replicas keep this config where it is.
pub(super) fn pinned_by_elr(resource: ResourceType, key: &str) -> bool {
    resource == ResourceType::Broker && key == "min.insync.replicas"
}

/// Whether these configs may change while the broker runs, for one broker or, with an empty `name`, all.
pub(super) fn check_mode(
    configs: &Configs,
    world: &World<'_>,
    name: &str,
    changes: &[(String, Option<String>)],
) -> Result<(), Refusal> {
    let set: Vec<&str> = changes
        .iter()
        .filter(|(_, value)| value.is_some())
        .map(|(key, _)| key.as_str())
        .collect();
    let base = |key: &str| listener_config(key).unwrap_or(key).to_owned();
    let mode = |key: &str| table::find(Scope::Broker, &base(key)).map(|def| def.mode);
    refuse("Cannot update these configs dynamically", &set, |key| {
        mode(key) == Some(Mode::ReadOnly)
            || BOUND_AT_START.contains(&key)
            || (listener_config(key).is_some()
                && mode(key) == Some(Mode::PerBroker)
                && !name.is_empty())
    })?;
    refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        &set,
        |key| PER_LISTENER.iter().any(|prefix| key.starts_with(prefix)),
    )?;
    for (key, value) in changes {
        check_class(
            configs,
            world.broker,
            key,
            value.as_deref().unwrap_or_default(),
        )?;
    }
    if name.is_empty() {
        refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            &set,
            |key| mode(key) == Some(Mode::PerBroker),
        )?;
    }
    for (key, value) in changes {
        if !world.elr || !pinned_by_elr(ResourceType::Broker, key) {
            continue;
        }
        if !name.is_empty() {
            return Err(Refusal::config(format!(
                "Broker-level {key} cannot be altered while ELR is enabled."
            )));
        }
        if value.is_none() {
            return Err(Refusal::config(format!(
                "Cluster-level {key} cannot be removed while ELR is enabled."
            )));
        }
    }
    Ok(())
}

/// The config behind `listener.name.NAME.`, if `key` has this prefix.
fn listener_config(key: &str) -> Option<&str> {
    key.strip_prefix("listener.name.")?
        .split_once('.')
        .map(|(_, config)| config)
}

fn refuse(what: &str, keys: &[&str], bad: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    let bad: Vec<_> = keys.iter().filter(|key| bad(key)).copied().collect();
    if bad.is_empty() {
        return Ok(());
    }
    Err(Refusal::request(format!("{what}: [{}]", bad.join(", "))))
}

/// Rules over a broker (or, with an empty `name`, the default of all) that would have the configs `own`,
/// as the answering broker would run.
pub(super) fn check_whole(
    configs: &Configs,
    broker: i32,
    name: &str,
    own: &Own,
) -> Result<(), Refusal> {
    let after = |key: &str| {
        let readable = |own: &Own| {
            let def = table::find(Scope::Broker, key)?;
            value::check(&configs.statics().in_profile(def), own.get(key)?).ok()
        };
        let stored = |name: &str| readable(configs.stored(ResourceType::Broker, name)?);
        let found = if name.is_empty() {
            stored(&broker.to_string()).or_else(|| readable(own))
        } else {
            readable(own).or_else(|| stored(""))
        };
        found.or_else(|| configs.statics().text(broker, key))
    };
    let number = |key: &str| after(key).and_then(|text| text.parse::<i64>().ok());
    for key in POOLS {
        if let Some((now, then)) = configs.broker_number(broker, key).zip(number(key)) {
            check_pool(key, now, then)?;
        }
    }
    if let Some((now, then)) = configs
        .broker_number(broker, CLEANERS)
        .zip(number(CLEANERS))
    {
        check_cleaners(now, then)?;
    }
    match bounds::check_broker(&number) {
        Err(problem) if problem.starts_with("Invalid value") => Err(wrapped(&problem)),
        Err(problem) => Err(Refusal::request(problem)),
        Ok(()) => Ok(()),
    }
}

/// Kafka reports some problems inside another: the text is odd, and clients see it so.
fn wrapped(problem: &str) -> Refusal {
    Refusal::request(format!(
        "Invalid value org.apache.kafka.common.config.ConfigException: {problem} for configuration \
         Invalid dynamic configuration"
    ))
}

fn check_pool(key: &str, now: i64, then: i64) -> Result<(), Refusal> {
    let limit = if then > now * 2 {
        "not be greater than double"
    } else if then < now / 2 {
        "be at least half"
    } else {
        return Ok(());
    };
    Err(wrapped(&format!(
        "Dynamic thread count update validation failed for {key}={then}, value should {limit} the \
         current value {now}"
    )))
}

fn check_cleaners(now: i64, then: i64) -> Result<(), Refusal> {
    let problem = if then < 1 {
        format!("{CLEANERS} should be at least 1")
    } else if then > now * 2 {
        format!(
            "Log cleaner threads cannot be increased to more than double the current value {now}"
        )
    } else if then < now / 2 {
        format!("Log cleaner threads cannot be reduced to less than half the current value {now}")
    } else {
        return Ok(());
    };
    Err(wrapped(&problem))
}

/// Java classes cannot be loaded here; the one that runs already may be named again.
fn check_class(configs: &Configs, broker: i32, key: &str, text: &str) -> Result<(), Refusal> {
    let def = table::find(Scope::Broker, key);
    let same = || {
        configs
            .broker_text(broker, key)
            .is_some_and(|now| now == text)
    };
    if text.is_empty() || same() {
        return Ok(());
    }
    if def.is_some_and(|def| def.kind == Type::Class) {
        return Err(Refusal::request(format!(
            "Invalid value {text} for configuration {key}: Class {text} could not be found."
        )));
    }
    if key == "metric.reporters" {
        return Err(wrapped(
            "Validation of dynamic config update of Set(metric.reporters) failed with class class \
             kafka.server.DynamicMetricsReporters",
        ));
    }
    Ok(())
}
