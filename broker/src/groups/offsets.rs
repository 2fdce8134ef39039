//! Committed offsets in the shards: their rules, their end with a topic, their numbers.

use ottla_coordinator::group::GroupCoordinator;
use ottla_coordinator::group::offsets::OffsetRules;
use ottla_coordinator::group::plan::Plan;
use ottla_coordinator::group::records::GroupRecord;
use ottla_coordinator::types::{Ts, Uuid};

use super::Shard;
use crate::broker::{Broker, Topics};
use crate::consumer_protocol::KafkaConsumers;
use crate::error_code::ApiError;

/// Offsets that are forgotten with one append.
const TOMBSTONES_A_BATCH: usize = 5_000;

/// Lets the offsets of a shard that was loaded end by time.
pub(super) fn begin(machine: &mut GroupCoordinator, broker: &Broker, now: Ts) {
    let config = &broker.config().offsets;
    let rules = OffsetRules {
        retention_ms: i64::from(config.retention_minutes) * 60_000,
        check_interval_ms: config.retention_check_interval_ms,
        consumers: &KafkaConsumers,
    };
    machine.set_offset_rules(now, rules);
}

/// How many of the records remove an offset.
pub(super) fn removed(records: &[GroupRecord]) -> usize {
    let is_removal =
        |record: &&GroupRecord| matches!(record, GroupRecord::Offset { value: None, .. });
    records.iter().filter(is_removal).count()
}

impl Shard {
    /// Forgets what groups have committed of a topic that was deleted.
    pub(super) fn forget_topic(
        &self,
        broker: &Broker,
        name: &str,
        id: Uuid,
    ) -> Result<(), ApiError> {
        self.repeat(broker, |machine| {
            machine.offsets_of_deleted_topic(name, id, TOMBSTONES_A_BATCH)
        })
    }

    /// Forgets what groups have committed of topics that do not exist: a crash cut their deletion off.
    pub(super) fn forget_orphans(&self, broker: &Broker) -> Result<(), ApiError> {
        let image = Topics(&broker.cluster);
        self.repeat(broker, |machine| {
            machine.orphaned_offsets(&image, TOMBSTONES_A_BATCH)
        })
    }

    /// Commits plans until there is nothing left to do, without a batch that is too large.
    fn repeat(
        &self,
        broker: &Broker,
        plan: impl Fn(&GroupCoordinator) -> Plan<()>,
    ) -> Result<(), ApiError> {
        loop {
            let mut done = 0;
            self.change(broker, |machine, _| {
                let plan = plan(machine);
                done = plan.records.len();
                Ok(plan)
            })?;
            if done < TOMBSTONES_A_BATCH {
                return Ok(());
            }
        }
    }
}
