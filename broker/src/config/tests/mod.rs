//! Tests of the configuration as a whole.

#![allow(clippy::unwrap_used, reason = "tests")]

mod alter;
mod dead_letters;
mod describe;
mod group_defaults;
mod isolation;
mod resolve;
mod statics;
mod table;
mod values;

use std::sync::Arc;

use super::{
    AlterOp, ConfigChange, Configs, OpKind, Origin, Refusal, ResourceType, StaticConfig, World,
};

/// What was started with these settings; the last of a key wins.
fn statics(pairs: &[(&str, &str)]) -> Arc<StaticConfig> {
    Arc::new(try_statics(pairs).unwrap())
}

fn try_statics(pairs: &[(&str, &str)]) -> Result<StaticConfig, super::ConfigError> {
    StaticConfig::new(
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned(), Origin::Set)),
    )
}

fn configs(pairs: &[(&str, &str)]) -> Configs {
    Configs::new(statics(pairs))
}

/// Kafka's defaults, broker 1, and the lower bounds that the measured broker had.
fn measured() -> Configs {
    configs(&[
        ("ottla.profile", "kafka"),
        ("node.id", "1"),
        ("group.share.min.record.lock.duration.ms", "1000"),
        ("group.share.min.session.timeout.ms", "3000"),
        ("group.share.min.heartbeat.interval.ms", "1000"),
    ])
}

/// Broker 1 of a cluster with one topic, `cfgt`.
fn world() -> World<'static> {
    World {
        broker: 1,
        topic_exists: &|name| name == "cfgt",
        elr: true,
        pause: true,
        loggers: &[("root", "WARN"), ("ottla::config", "DEBUG")],
    }
}

fn op(key: &str, kind: OpKind, value: Option<&str>) -> AlterOp {
    AlterOp {
        key: key.to_owned(),
        kind,
        value: value.map(str::to_owned),
    }
}

fn set(key: &str, value: &str) -> AlterOp {
    op(key, OpKind::Set, Some(value))
}

fn change(resource: ResourceType, name: &str, key: &str, value: Option<&str>) -> ConfigChange {
    ConfigChange {
        resource,
        name: name.to_owned(),
        key: key.to_owned(),
        value: value.map(str::to_owned),
    }
}

fn apply_all(configs: &mut Configs, changes: &[ConfigChange]) {
    for change in changes {
        configs.apply(change);
    }
}

fn text(refusal: &Refusal) -> &str {
    refusal.message.as_deref().unwrap_or_default()
}
