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
        self.sow_groups(broker)
    }

    /// Sets the groups' configurations as one request, so that their order does not matter.
    fn sow_groups(&self, broker: &Broker) -> Result<(), StartError> {
        let results = broker.alter_configs(false, |image| {
            let world = World {
                broker: image.configs.statics().broker_ids()[0],
                topic_exists: &|_| true,
                elr: true,
                pause: image.can_pause(),
                loggers: &[],
            };
            let kind = ResourceType::Group.wire();
            let set = |group: &SeedGroup| {
                let ops: Vec<AlterOp> = group.configs.iter().map(set).collect();
                let configs = &image.configs;
                configs.incremental_alter(&world, kind, &group.name, &ops)
            };
            self.groups.iter().map(set).collect()
        });
        for (group, result) in self.groups.iter().zip(results) {
            result.map_err(|reason| StartError::Seed {
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

fn set((key, value): &(String, String)) -> AlterOp {
    AlterOp {
        key: key.clone(),
        kind: OpKind::Set,
        value: Some(value.clone()),
    }
}
