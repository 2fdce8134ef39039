//! What is made at the start, before the ports open: `--topic` and `--group`.

use ottla_protocol::ErrorCode;

use crate::broker::Broker;
use crate::cli::{SeedGroup, SeedTopic};
use crate::cluster::NewTopic;
use crate::config::{AlterOp, OpKind, ResourceType, World};
use crate::error_code::ApiError;
use crate::start_error::StartError;

/// Topics and group configurations to start with.
#[derive(Debug, Clone, Default)]
pub struct Seeds {
    /// Topics that are made if they are not there.
    pub topics: Vec<SeedTopic>,
    /// Group configurations that are set.
    pub groups: Vec<SeedGroup>,
}

impl Seeds {
    /// Makes what is not there.
    pub fn sow(&self, broker: &Broker) -> Result<(), StartError> {
        for topic in &self.topics {
            sow_topic(broker, topic).map_err(|reason| StartError::Seed {
                option: "--topic",
                name: topic.name.clone(),
                reason,
            })?;
        }
        for group in &self.groups {
            sow_group(broker, group).map_err(|reason| StartError::Seed {
                option: "--group",
                name: group.name.clone(),
                reason,
            })?;
        }
        Ok(())
    }
}

fn sow_topic(broker: &Broker, topic: &SeedTopic) -> Result<(), ApiError> {
    let new = NewTopic {
        name: topic.name.clone(),
        partitions: topic.partitions.unwrap_or(-1),
        replication_factor: -1,
        ..Default::default()
    };
    match broker.create_topic(&new, false) {
        Err(error) if error.code != ErrorCode::TOPIC_ALREADY_EXISTS => Err(error),
        _ => Ok(()),
    }
}

fn sow_group(broker: &Broker, group: &SeedGroup) -> Result<(), ApiError> {
    let set = |(key, value): &(String, String)| AlterOp {
        key: key.clone(),
        kind: OpKind::Set,
        value: Some(value.clone()),
    };
    let ops: Vec<AlterOp> = group.configs.iter().map(set).collect();
    let changes = {
        let image = broker.cluster.image();
        let world = World {
            broker: broker.config().node_id,
            topic_exists: &|_| true,
            elr: true,
            loggers: &[],
        };
        let kind = ResourceType::Group.wire();
        image
            .configs
            .incremental_alter(&world, kind, &group.name, &ops)?
    };
    broker.store_configs(changes)
}
