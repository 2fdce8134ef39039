//! What consumer groups run with, and their way back to the classic protocol.

use ottla_coordinator::group::GroupCoordinator;
use ottla_coordinator::group::consumer::assignor::Assignor;
use ottla_coordinator::group::consumer::request::{ConsumerGroupConfig, MigrationPolicy};
use ottla_coordinator::group::plan::Plan;

use crate::broker::{Broker, Topics};
use crate::consumer_protocol::KafkaConsumers;

/// What a consumer group's coordinator runs with.
pub fn consumer_group_config(broker: &Broker, group: &str) -> ConsumerGroupConfig {
    let own = broker.group_config(group);
    let config = broker.config();
    let bounds = &config.consumer_groups;
    let assignors = bounds.assignors.iter();
    ConsumerGroupConfig {
        session_timeout_ms: own.consumer.session_timeout_ms,
        heartbeat_interval_ms: own.consumer.heartbeat_interval_ms,
        assignment_interval_ms: own.consumer.assignment_interval_ms,
        max_size: bounds.max_size,
        assignors: assignors
            .filter_map(|name| Assignor::by_name(name))
            .collect(),
        migration: MigrationPolicy::by_name(&bounds.migration_policy),
    }
}

/// Only members of the classic protocol are left in a group.
pub(super) fn downgrade(broker: &Broker, machine: &GroupCoordinator, group: &str) -> Plan<()> {
    let config = consumer_group_config(broker, group);
    let (now, image) = (broker.clock.now(), Topics(&broker.cluster));
    machine.consumer_downgrade(now, group, &config, &image, &KafkaConsumers)
}
