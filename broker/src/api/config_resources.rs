//! What the configuration APIs share: the surroundings that the checks need.

use std::collections::HashMap;

use ottla_protocol::{ErrorCode, StrBytes};

use crate::cluster::Image;
use crate::config::{ConfigChange, Configs, Refusal, World};
use crate::context::Cx;

/// The changes of one resource, or why there are none.
pub(super) type Planned = Result<Vec<ConfigChange>, Refusal>;

/// The names that BROKER_LOGGER knows.
const LOGGERS: &[(&str, &str)] = &[
    ("root", "INFO"),
    ("ottla", "INFO"),
    ("ottla_storage", "INFO"),
    ("ottla_coordinator", "INFO"),
];

/// Runs `ask` on the configurations and their surroundings in the image.
pub(super) fn with_world<T>(
    cx: &Cx,
    image: &Image,
    ask: impl FnOnce(&Configs, &World<'_>) -> T,
) -> T {
    let elr = image
        .features
        .get("eligible.leader.replicas.version")
        .is_some_and(|&l| l > 0);
    let topic_exists = |name: &str| image.topics.contains_key(name);
    let world = World {
        broker: cx.node.id,
        topic_exists: &topic_exists,
        elr,
        pause: image.can_pause(),
        loggers: LOGGERS,
    };
    ask(&image.configs, &world)
}

/// Runs `alter` on each resource that is named once, in their order; one that is named twice is refused
/// both times. `name` tells a resource's type and name.
pub(super) fn each_once<R>(
    resources: &[R],
    name: impl Fn(&R) -> (i8, &StrBytes),
    alter: impl Fn(&R) -> Planned,
) -> Vec<Planned> {
    let mut named: HashMap<(i8, &StrBytes), usize> = HashMap::new();
    for resource in resources {
        *named.entry(name(resource)).or_default() += 1;
    }
    let results = resources.iter().map(|resource| {
        if named[&name(resource)] > 1 {
            return Err(Refusal {
                code: ErrorCode::INVALID_REQUEST,
                message: Some("Each resource must appear at most once.".to_owned()),
            });
        }
        alter(resource)
    });
    results.collect()
}
