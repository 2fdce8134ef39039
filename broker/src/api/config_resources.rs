//! What the configuration APIs share: the surroundings that the checks need.

use std::collections::HashMap;

use ottla_protocol::{ErrorCode, StrBytes};

use crate::config::{Configs, World};
use crate::context::Cx;
use crate::error_code::ApiError;

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

/// Runs `alter` on each resource that is named once, in their order; one that is named twice is refused
/// both times. `name` tells a resource's type and name.
pub(super) fn each_once<R>(
    resources: &[R],
    name: impl Fn(&R) -> (i8, &StrBytes),
    alter: impl Fn(&R) -> Result<(), ApiError>,
) -> Vec<Result<(), ApiError>> {
    let mut named: HashMap<(i8, &StrBytes), usize> = HashMap::new();
    for resource in resources {
        *named.entry(name(resource)).or_default() += 1;
    }
    let results = resources.iter().map(|resource| {
        if named[&name(resource)] > 1 {
            let message = "Each resource must appear at most once.";
            return Err(ApiError::new(ErrorCode::INVALID_REQUEST, message));
        }
        alter(resource)
    });
    results.collect()
}
