//! What a Kafka broker would do and this version of Ottla does not: refused with exit status 78, never
//! accepted in silence.

use crate::config::ConfigError;
use crate::config::value::list;

/// Keys that must stay unset, each with what it would need.
const UNSET: &[(&str, &str)] = &[
    (
        "authorizer.class.name",
        "ACLs are not served in this version; remove the line",
    ),
    (
        "alter.config.policy.class.name",
        "Java plug-ins cannot run here; remove the line",
    ),
    (
        "create.topic.policy.class.name",
        "Java plug-ins cannot run here; remove the line",
    ),
    (
        "client.quota.callback.class",
        "Java plug-ins cannot run here; remove the line",
    ),
    (
        "config.providers",
        "values of config providers cannot be looked up; write the values themselves",
    ),
    (
        "group.streams.topology.description.plugin.class",
        "Java plug-ins cannot run here; remove the line",
    ),
];

/// Keys that take only what is built in.
const BUILT_IN: &[(&str, &[&str])] = &[
    (
        "principal.builder.class",
        &["org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"],
    ),
    (
        "replica.selector.class",
        &[
            "",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        ],
    ),
    (
        "group.consumer.assignors",
        &[
            "uniform",
            "range",
            "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
            "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        ],
    ),
    (
        "group.share.assignors",
        &[
            "simple",
            "org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
        ],
    ),
    ("group.streams.assignors", &["sticky"]),
    (
        "group.share.persister.class.name",
        &["org.apache.kafka.server.share.persister.DefaultStatePersister"],
    ),
    (
        "group.share.dlq.manager.class.name",
        &["org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager"],
    ),
];

/// The first thing that one broker is asked for and that this version does not do.
pub(super) fn check(text: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
    for (key, problem) in UNSET {
        if let Some(value) = text(key).filter(|value| !value.is_empty()) {
            return Err(ConfigError::unsupported(format!(
                "{key}={value}: {problem}"
            )));
        }
    }
    for (key, built_in) in BUILT_IN {
        let value = text(key).unwrap_or_default();
        if let Some(stranger) = list(&value)
            .iter()
            .find(|name| !built_in.contains(&name.as_str()))
        {
            return Err(ConfigError::unsupported(format!(
                "{key}={stranger}: Java plug-ins cannot run here; use one of: {}",
                built_in
                    .iter()
                    .filter(|name| !name.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
    }
    if text("remote.log.storage.system.enable").is_some_and(|value| value == "true") {
        return Err(ConfigError::unsupported(
            "remote.log.storage.system.enable=true: tiered storage is not served; set it to false",
        ));
    }
    let roles = text("process.roles")
        .map(|roles| list(&roles))
        .unwrap_or_default();
    if !roles.is_empty() && !roles.iter().any(|role| role == "broker") {
        return Err(ConfigError::unsupported(
            "process.roles=controller: Ottla is its own controller and always a broker; set \
             process.roles=broker,controller",
        ));
    }
    Ok(())
}
