//! What the configuration APIs share: the surroundings that the checks need.

use crate::config::{Configs, World};
use crate::context::Cx;

/// The names that BROKER_LOGGER knows.
const LOGGERS: &[(&str, &str)] = &[
    ("root", "INFO"),
    ("ottla", "INFO"),
    ("ottla_storage", "INFO"),
    ("ottla_coordinator", "INFO"),
];

/// Runs `ask` on the configurations and their surroundings.
pub(super) fn with_world<T>(cx: &Cx, ask: impl FnOnce(&Configs, &World<'_>) -> T) -> T {
    let image = cx.broker.cluster.image();
    let elr = image
        .features
        .get("eligible.leader.replicas.version")
        .is_some_and(|&l| l > 0);
    let topic_exists = |name: &str| image.topics.contains_key(name);
    let world = World {
        broker: cx.node.id,
        topic_exists: &topic_exists,
        elr,
        loggers: LOGGERS,
    };
    ask(&image.configs, &world)
}
