//! Topics and what is asked about them.

use ottla_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use ottla_protocol::messages::create_topics_response::CreatableTopicResult;
use ottla_protocol::messages::delete_topics_request::DeleteTopicState;
use ottla_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use ottla_protocol::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use ottla_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use ottla_protocol::messages::metadata_request::MetadataRequestTopic;
use ottla_protocol::messages::metadata_response::MetadataResponseTopic;
use ottla_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteTopicsRequest, IncrementalAlterConfigsRequest,
    MetadataRequest,
};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};

use crate::Client;
use crate::records::topic_name;

impl Client {
    /// A topic to be created, of one replica.
    pub fn new_topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreatableTopic {
        let configs = configs.iter().map(|(key, value)| {
            CreatableTopicConfig::default()
                .with_name(text(key))
                .with_value(Some(text(value)))
        });
        CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(configs.collect())
    }

    /// Asks for a topic and returns the topic's answer.
    pub async fn try_create_topic(&mut self, topic: CreatableTopic) -> CreatableTopicResult {
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(10_000);
        self.call(7, &request).await.topics.swap_remove(0)
    }

    /// Makes a topic and returns its id.
    pub async fn create_topic(&mut self, name: &str, partitions: i32) -> Uuid {
        self.create_topic_with(name, partitions, &[]).await
    }

    /// Makes a topic with configurations of its own.
    pub async fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Uuid {
        let made = self
            .try_create_topic(Self::new_topic(name, partitions, configs))
            .await;
        assert_eq!(ErrorCode(made.error_code), ErrorCode::NONE, "{made:?}");
        made.topic_id
    }

    /// Makes a topic whose partitions have the given replicas, the first one leading.
    pub async fn create_topic_on(&mut self, name: &str, replicas: &[&[i32]]) -> Uuid {
        use ottla_protocol::messages::create_topics_request::CreatableReplicaAssignment;
        let assignments = replicas.iter().zip(0..).map(|(ids, index)| {
            CreatableReplicaAssignment::default()
                .with_partition_index(index)
                .with_broker_ids(ids.iter().copied().map(BrokerId).collect())
        });
        let topic = Self::new_topic(name, -1, &[]).with_assignments(assignments.collect());
        let made = self.try_create_topic(topic).await;
        assert_eq!(ErrorCode(made.error_code), ErrorCode::NONE, "{made:?}");
        made.topic_id
    }

    /// Deletes a topic by name and returns its error code.
    pub async fn delete_topic(&mut self, name: &str) -> ErrorCode {
        let state = DeleteTopicState::default().with_name(Some(topic_name(name)));
        let request = DeleteTopicsRequest::default()
            .with_topics(vec![state])
            .with_timeout_ms(10_000);
        ErrorCode(self.call(6, &request).await.responses[0].error_code)
    }

    /// What Metadata says of a topic.
    pub async fn describe_topic(&mut self, name: &str, create: bool) -> MetadataResponseTopic {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![topic]))
            .with_allow_auto_topic_creation(create);
        self.call(12, &request).await.topics.swap_remove(0)
    }

    /// The names of all topics, sorted.
    pub async fn topic_names(&mut self) -> Vec<String> {
        let response = self
            .call(12, &MetadataRequest::default().with_topics(None))
            .await;
        let mut names: Vec<String> = response
            .topics
            .iter()
            .filter_map(|t| t.name.as_ref())
            .map(|n| n.to_string())
            .collect();
        names.sort();
        names
    }

    /// ListOffsets of one partition: `timestamp` is a time, or -1 latest, -2 earliest and so on.
    pub async fn list_offset(
        &mut self,
        topic: &str,
        partition: i32,
        timestamp: i64,
    ) -> ListOffsetsPartitionResponse {
        let request = Self::list_offsets_request(topic, partition, timestamp);
        self.call(11, &request)
            .await
            .topics
            .swap_remove(0)
            .partitions
            .swap_remove(0)
    }

    /// A request for one offset of one partition.
    pub fn list_offsets_request(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
        let want = ListOffsetsPartition {
            partition_index: partition,
            current_leader_epoch: -1,
            timestamp,
            ..Default::default()
        };
        let topic = ListOffsetsTopic {
            name: topic_name(topic),
            partitions: vec![want],
            ..Default::default()
        };
        ListOffsetsRequest {
            replica_id: BrokerId(-1),
            topics: vec![topic],
            timeout_ms: 10_000,
            ..Default::default()
        }
    }

    /// The end offset of a partition.
    pub async fn end_offset(&mut self, topic: &str, partition: i32) -> i64 {
        let found = self.list_offset(topic, partition, -1).await;
        assert_eq!(
            ErrorCode(found.error_code),
            ErrorCode::NONE,
            "{topic}-{partition}"
        );
        found.offset
    }

    /// Sets configurations of one resource (type 2 topic, 4 broker, 32 group) and returns its answer.
    pub async fn alter_configs(
        &mut self,
        resource_type: i8,
        name: &str,
        configs: &[(&str, &str)],
    ) -> AlterConfigsResourceResponse {
        let configs = configs.iter().map(|(key, value)| {
            AlterableConfig::default()
                .with_name(text(key))
                .with_value(Some(text(value)))
        });
        let resource = AlterConfigsResource::default()
            .with_resource_type(resource_type)
            .with_resource_name(text(name))
            .with_configs(configs.collect());
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        self.call(1, &request).await.responses.swap_remove(0)
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
