//! The levels of a broker's loggers (KIP-412); they live as long as the process.

use super::{AlterOp, ConfigChange, OpKind, Refusal, ResourceType, World, own_id};

const LEVELS: &[&str] = &["DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"];

/// The checked levels of one request.
pub(super) fn alter(
    world: &World<'_>,
    name: &str,
    ops: &[AlterOp],
) -> Result<Vec<ConfigChange>, Refusal> {
    own_id(world, name)?;
    for AlterOp { key, kind, value } in ops {
        let known = || {
            let found = world.loggers.iter().find(|(name, _)| name == key);
            found.ok_or_else(|| Refusal::config(format!("Logger {key} does not exist!")))
        };
        match kind {
            OpKind::Set => {
                known()?;
                let level = value.as_deref().unwrap_or_default();
                if !LEVELS.contains(&level) {
                    return Err(Refusal::config(format!(
                        "Cannot set the log level of {key} to {level} as it is not a supported log \
                         level. Valid log levels are {}",
                        LEVELS.join(", ")
                    )));
                }
            }
            OpKind::Delete => {
                known()?;
                if key == "root" {
                    return Err(Refusal::request(
                        "Removing the log level of the root logger is not allowed",
                    ));
                }
            }
            OpKind::Append | OpKind::Subtract => {
                return Err(Refusal::request(format!(
                    "{} operation is not allowed for the BROKER_LOGGER resource",
                    kind.name()
                )));
            }
        }
    }
    let change = |op: &AlterOp| ConfigChange {
        resource: ResourceType::BrokerLogger,
        name: name.to_owned(),
        key: op.key.clone(),
        value: op.value.clone().filter(|_| op.kind == OpKind::Set),
    };
    Ok(ops.iter().map(change).collect())
}
