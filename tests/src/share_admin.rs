//! What an operator asks of share groups.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use ottla_protocol::messages::alter_share_group_offsets_response::AlterShareGroupOffsetsResponse;
use ottla_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use ottla_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use ottla_protocol::messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use ottla_protocol::messages::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponse;
use ottla_protocol::messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
};
use ottla_protocol::messages::describe_share_group_offsets_response::{
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
};
use ottla_protocol::messages::find_coordinator_response::Coordinator;
use ottla_protocol::messages::share_group_describe_response::DescribedGroup;
use ottla_protocol::messages::{
    AlterShareGroupOffsetsRequest, CreatePartitionsRequest, DeleteGroupsRequest,
    DeleteRecordsRequest, DeleteShareGroupOffsetsRequest, FindCoordinatorRequest,
    ListGroupsRequest, ShareGroupDescribeRequest,
};

use crate::Client;
use crate::records::topic_name;
use crate::share::{Code, group_id, text};

impl Client {
    /// DescribeShareGroupOffsets of one group; no topics: all of them.
    pub async fn describe_share_offsets(
        &mut self,
        group: &str,
        topics: Option<&[(&str, &[i32])]>,
    ) -> DescribeShareGroupOffsetsResponseGroup {
        let topic = |(name, partitions): &(&str, &[i32])| DescribeShareGroupOffsetsRequestTopic {
            topic_name: topic_name(name),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let group = DescribeShareGroupOffsetsRequestGroup {
            group_id: group_id(group),
            topics: topics.map(|topics| topics.iter().map(topic).collect()),
            ..Default::default()
        };
        let request = DescribeShareGroupOffsetsRequest {
            groups: vec![group],
            ..Default::default()
        };
        self.call(1, &request).await.groups.swap_remove(0)
    }

    /// What DescribeShareGroupOffsets says of one partition.
    pub async fn share_offset(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> DescribeShareGroupOffsetsResponsePartition {
        let mut answer = self
            .describe_share_offsets(group, Some(&[(topic, &[partition])]))
            .await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        let found = answer.topics.swap_remove(0).partitions.swap_remove(0);
        assert_eq!(ErrorCode(found.error_code), ErrorCode::NONE, "{found:?}");
        found
    }

    /// Start offset and lag of one partition.
    pub async fn start_and_lag(&mut self, group: &str, topic: &str, partition: i32) -> (i64, i64) {
        let found = self.share_offset(group, topic, partition).await;
        (found.start_offset, found.lag)
    }

    /// AlterShareGroupOffsets of one partition, whatever comes of it.
    pub async fn try_alter_share_offset(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> AlterShareGroupOffsetsResponse {
        let partition = AlterShareGroupOffsetsRequestPartition::default()
            .with_partition_index(partition)
            .with_start_offset(offset);
        let topic = AlterShareGroupOffsetsRequestTopic::default()
            .with_topic_name(topic_name(topic))
            .with_partitions(vec![partition]);
        let request = AlterShareGroupOffsetsRequest::default()
            .with_group_id(group_id(group))
            .with_topics(vec![topic]);
        self.call(0, &request).await
    }

    /// AlterShareGroupOffsets of one partition, which must work.
    pub async fn alter_share_offset(&mut self, group: &str, topic: &str, partition: i32, to: i64) {
        let answer = self
            .try_alter_share_offset(group, topic, partition, to)
            .await;
        assert_eq!(answer.error_code, 0, "{answer:?}");
        assert_eq!(
            answer.responses[0].partitions[0].error_code, 0,
            "{answer:?}"
        );
    }

    /// DeleteShareGroupOffsets of one topic.
    pub async fn delete_share_offsets(
        &mut self,
        group: &str,
        topic: &str,
    ) -> DeleteShareGroupOffsetsResponse {
        let topic =
            DeleteShareGroupOffsetsRequestTopic::default().with_topic_name(topic_name(topic));
        let request = DeleteShareGroupOffsetsRequest::default()
            .with_group_id(group_id(group))
            .with_topics(vec![topic]);
        self.call(0, &request).await
    }

    /// ShareGroupDescribe of one group.
    pub async fn describe_share_group(&mut self, group: &str) -> DescribedGroup {
        let request = ShareGroupDescribeRequest::default()
            .with_group_ids(vec![group_id(group)])
            .with_include_authorized_operations(true);
        self.call(1, &request).await.groups.swap_remove(0)
    }

    /// DeleteGroups of one group.
    pub async fn delete_group(&mut self, group: &str) -> Code {
        let request = DeleteGroupsRequest {
            groups_names: vec![group_id(group)],
            ..Default::default()
        };
        let result = self.call(3, &request).await.results.swap_remove(0);
        let message = result.error_message.map(|message| message.to_string());
        (result.error_code, message)
    }

    /// ListGroups: `group type state protocol`, sorted.
    pub async fn list_groups(&mut self, states: &[&str], types: &[&str]) -> Vec<String> {
        let request = ListGroupsRequest::default()
            .with_states_filter(states.iter().map(|s| text(s)).collect())
            .with_types_filter(types.iter().map(|t| text(t)).collect());
        let answer = self.call(5, &request).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        let line = |g: ottla_protocol::messages::list_groups_response::ListedGroup| {
            format!(
                "{} {} {} {}",
                *g.group_id, g.group_type, g.group_state, g.protocol_type
            )
        };
        let mut lines: Vec<String> = answer.groups.into_iter().map(line).collect();
        lines.sort();
        lines
    }

    /// FindCoordinator of one key (type 0 group, 2 share partition).
    pub async fn find_coordinator(&mut self, key_type: i8, key: &str) -> Coordinator {
        let request = FindCoordinatorRequest::default()
            .with_key_type(key_type)
            .with_coordinator_keys(vec![text(key)]);
        self.call(6, &request).await.coordinators.swap_remove(0)
    }

    /// DeleteRecords of one partition below an offset (-1: all); the new start.
    pub async fn delete_records(&mut self, topic: &str, partition: i32, below: i64) -> i64 {
        let partition = DeleteRecordsPartition::default()
            .with_partition_index(partition)
            .with_offset(below);
        let topic = DeleteRecordsTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(10_000);
        let answer = self.call(2, &request).await;
        let result = &answer.topics[0].partitions[0];
        assert_eq!(ErrorCode(result.error_code), ErrorCode::NONE, "{answer:?}");
        result.low_watermark
    }

    /// Gives a topic more partitions.
    pub async fn grow_topic(&mut self, name: &str, partitions: i32) {
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name(name))
            .with_count(partitions)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(10_000);
        let answer = self.call(3, &request).await;
        assert_eq!(
            ErrorCode(answer.results[0].error_code),
            ErrorCode::NONE,
            "{answer:?}"
        );
    }

    /// Sets configurations of a group.
    pub async fn configure_group(&mut self, group: &str, configs: &[(&str, &str)]) {
        let answer = self.alter_configs(32, group, configs).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
    }
}
