//! Groups: the broker's bounds, and rules over several configs of one group.

use super::{Refusal, ResourceType, World};
use crate::config::configs::Own;
use crate::config::table::{self, Scope};
use crate::config::{Configs, bounds, value};

/// What of a group's configs can hold only where delivery can be paused (draft KIP-1249).
const PAUSING: &[&str] = &[
    "ottla.share.delivery.paused",
    "ottla.share.dlq.timeout.pause.enable",
    "share.group.dlq.circuit.breaker.enable",
];

/// What is wrong with `key=true` where the feature is off.
fn needs_pause(key: &str) -> String {
    format!(
        "{key}=true needs the feature share.pause.version at level 1: upgrade it (kafka-features upgrade \
         --feature share.pause.version=1), or delete {key}"
    )
}

impl Configs {
    /// What of the group's configs has no effect while the feature `share.pause.version` is at 0.
    pub fn without_pause(&self, broker: i32, group: Option<&str>) -> Vec<String> {
        let own = group.and_then(|group| self.stored(ResourceType::Group, group));
        let is_on = |key: &&&str| {
            let def = table::find(Scope::Group, key);
            let text = def.and_then(|def| match (group, own) {
                (Some(_), own) => self.own_text(def, own?),
                (None, _) => self.inherited(broker, def),
            });
            text.is_some_and(|text| text == "true")
        };
        let keys = PAUSING.iter().filter(is_on);
        keys.map(|key| needs_pause(key)).collect()
    }
}

/// Rules over a group that would have the configs `own`, by `changes` among others.
pub(super) fn check_whole(
    configs: &Configs,
    world: &World<'_>,
    own: &Own,
    changes: &[(String, Option<String>)],
) -> Result<(), Refusal> {
    let broker = world.broker;
    let pausing = |(key, value): &&(String, Option<String>)| {
        PAUSING.contains(&key.as_str()) && value.as_deref() == Some("true")
    };
    if !world.pause
        && let Some((key, _)) = changes.iter().find(pausing)
    {
        return Err(Refusal::config(needs_pause(key)));
    }
    let number = |text: &String| text.parse::<i64>().ok();
    let stored = |key: &str| own.get(key).and_then(number);
    let effective = |key: &str| {
        let inherited = || {
            configs
                .inherited(broker, table::find(Scope::Group, key)?)?
                .parse()
                .ok()
        };
        stored(key).or_else(inherited)
    };
    let of_broker = |key: &str| configs.broker_number(broker, key);
    bounds::check_group(&stored, &effective, &of_broker).map_err(Refusal::config)?;
    let registered = configs.broker_text(broker, "group.streams.assignors");
    check_assignor(own.get("streams.assignor.name"), registered).map_err(Refusal::config)
}

/// Whether a streams group's assignor is one of those that the broker has, a list of names.
pub(in crate::config) fn check_assignor(
    assignor: Option<&String>,
    registered: Option<String>,
) -> Result<(), String> {
    let registered = value::list(&registered.unwrap_or_default());
    match assignor {
        Some(assignor) if !registered.contains(assignor) => Err(format!(
            "streams.assignor.name '{assignor}' is not a registered task assignor. Registered \
             assignors are: [{}].",
            registered.join(", ")
        )),
        _ => Ok(()),
    }
}
