//! Committed offsets, as the wire shows them.

use ottla_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use ottla_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use ottla_protocol::messages::{
    GroupId, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest, TopicName,
};
use ottla_protocol::{ErrorCode, StrBytes, Uuid};

use crate::Client;

/// A topic by name or by id: which one goes out depends on the version.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// Its id.
    pub id: Uuid,
}

/// What was committed for a partition: offset, leader epoch, metadata, error.
pub type Held = (i64, i32, String, ErrorCode);

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl Client {
    /// The request that commits `(partition, offset, metadata)` from outside the group.
    pub fn commit_request(
        group: &str,
        topic: Named,
        offsets: &[(i32, i64, Option<&str>)],
    ) -> OffsetCommitRequest {
        let partitions =
            offsets.iter().map(
                |&(partition, offset, metadata)| OffsetCommitRequestPartition {
                    partition_index: partition,
                    committed_offset: offset,
                    committed_leader_epoch: 0,
                    committed_metadata: metadata.map(text),
                    ..Default::default()
                },
            );
        OffsetCommitRequest {
            group_id: GroupId(text(group)),
            topics: vec![OffsetCommitRequestTopic {
                name: TopicName(text(topic.name)),
                topic_id: topic.id,
                partitions: partitions.collect(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    /// Sends a commit of one topic and answers the partitions' errors.
    pub async fn commit_with(
        &mut self,
        version: i16,
        request: &OffsetCommitRequest,
    ) -> Vec<(i32, ErrorCode)> {
        let response = self.call(version, request).await;
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        let codes = partitions.map(|p| (p.partition_index, ErrorCode(p.error_code)));
        codes.collect()
    }

    /// Commits offsets from outside the group, which must go well.
    pub async fn commit(&mut self, group: &str, topic: &'static str, offsets: &[(i32, i64)]) {
        let offsets: Vec<_> = offsets
            .iter()
            .map(|&(p, offset)| (p, offset, None))
            .collect();
        let topic = Named {
            name: topic,
            id: Uuid::nil(),
        };
        let request = Self::commit_request(group, topic, &offsets);
        let codes = self.commit_with(9, &request).await;
        assert!(
            codes.iter().all(|(_, code)| *code == ErrorCode::NONE),
            "{codes:?}"
        );
    }

    /// What a group has of some partitions, in any version.
    pub async fn committed(
        &mut self,
        version: i16,
        group: &str,
        topic: Named,
        partitions: &[i32],
    ) -> Vec<Held> {
        if version >= 8 {
            let wanted = OffsetFetchRequestTopics {
                name: TopicName(text(topic.name)),
                topic_id: topic.id,
                partition_indexes: partitions.to_vec(),
                ..Default::default()
            };
            let groups = vec![Self::fetch_group(group, Some(vec![wanted]))];
            let request = OffsetFetchRequest {
                groups,
                ..Default::default()
            };
            let response = self.call(version, &request).await;
            let topics = response.groups.iter().flat_map(|group| &group.topics);
            return topics
                .flat_map(|topic| &topic.partitions)
                .map(|p| {
                    let metadata = p.metadata.as_deref().unwrap_or("(null)");
                    let (offset, epoch) = (p.committed_offset, p.committed_leader_epoch);
                    (offset, epoch, metadata.to_owned(), ErrorCode(p.error_code))
                })
                .collect();
        }
        let wanted = OffsetFetchRequestTopic {
            name: TopicName(text(topic.name)),
            partition_indexes: partitions.to_vec(),
            ..Default::default()
        };
        let request = OffsetFetchRequest {
            group_id: GroupId(text(group)),
            topics: Some(vec![wanted]),
            ..Default::default()
        };
        let response = self.call(version, &request).await;
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        partitions
            .map(|p| {
                let metadata = p.metadata.as_deref().unwrap_or("(null)");
                let (offset, epoch) = (p.committed_offset, p.committed_leader_epoch);
                (offset, epoch, metadata.to_owned(), ErrorCode(p.error_code))
            })
            .collect()
    }

    /// A group of an `OffsetFetch`; `None` asks for all topics.
    pub fn fetch_group(
        group: &str,
        topics: Option<Vec<OffsetFetchRequestTopics>>,
    ) -> OffsetFetchRequestGroup {
        OffsetFetchRequestGroup {
            group_id: GroupId(text(group)),
            topics,
            ..Default::default()
        }
    }

    /// Everything that groups have: (group, topic, partition, offset), and the groups' errors.
    pub async fn all_committed(
        &mut self,
        groups: &[&str],
    ) -> (Vec<(String, String, i32, i64)>, Vec<ErrorCode>) {
        let request = OffsetFetchRequest {
            groups: groups
                .iter()
                .map(|group| Self::fetch_group(group, None))
                .collect(),
            ..Default::default()
        };
        let response = self.call(9, &request).await;
        let mut held = Vec::new();
        for group in &response.groups {
            for topic in &group.topics {
                for partition in &topic.partitions {
                    held.push((
                        group.group_id.to_string(),
                        topic.name.to_string(),
                        partition.partition_index,
                        partition.committed_offset,
                    ));
                }
            }
        }
        let codes = response
            .groups
            .iter()
            .map(|group| ErrorCode(group.error_code));
        (held, codes.collect())
    }

    /// `OffsetDelete` of some partitions of a topic: the group's error, or one a partition.
    pub async fn delete_offsets(
        &mut self,
        group: &str,
        topic: &str,
        partitions: &[i32],
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        let wanted = partitions
            .iter()
            .map(|&index| OffsetDeleteRequestPartition::default().with_partition_index(index));
        let topic = OffsetDeleteRequestTopic::default()
            .with_name(TopicName(text(topic)))
            .with_partitions(wanted.collect());
        let request = OffsetDeleteRequest::default()
            .with_group_id(GroupId(text(group)))
            .with_topics(vec![topic]);
        let response = self.call(0, &request).await;
        if response.error_code != 0 {
            return Err(ErrorCode(response.error_code));
        }
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        Ok(partitions.map(|p| ErrorCode(p.error_code)).collect())
    }
}
