//! Groups: the broker's bounds, and rules over several configs of one group.

use super::Refusal;
use crate::config::configs::Own;
use crate::config::table::{self, Scope};
use crate::config::{Configs, bounds, value};

/// Rules over a group that would have the configs `own`.
pub(super) fn check_whole(configs: &Configs, broker: i32, own: &Own) -> Result<(), Refusal> {
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
    let Some(assignor) = own.get("streams.assignor.name") else {
        return Ok(());
    };
    let registered = configs
        .broker_text(broker, "group.streams.assignors")
        .unwrap_or_default();
    let registered = value::list(&registered);
    if registered.contains(assignor) {
        return Ok(());
    }
    Err(Refusal::config(format!(
        "streams.assignor.name '{assignor}' is not a registered task assignor. Registered assignors \
         are: [{}].",
        registered.join(", ")
    )))
}
