//! The questions about share groups, each in one call.

use std::collections::BTreeMap;

use ottla_protocol::messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use ottla_protocol::messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use ottla_protocol::messages::describe_share_group_delivery_response::DescribedShareGroupDelivery;
use ottla_protocol::messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
};
use ottla_protocol::messages::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponseTopic;
use ottla_protocol::messages::share_group_describe_response::DescribedGroup;
use ottla_protocol::messages::{
    AlterShareGroupDeliveryRequest, AlterShareGroupOffsetsRequest, DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest, DescribeShareGroupDeliveryRequest, GroupId, ListGroupsRequest,
    ShareGroupDescribeRequest, TopicName,
};
use ottla_protocol::{ErrorCode, StrBytes};

use super::{Cluster, Error};

/// A partition and what became of it.
pub type Outcomes = Vec<(String, i32, Result<(), Error>)>;

/// The group type of share groups in ListGroups.
const SHARE: &str = "share";

impl Cluster {
    /// All share groups with their states, by name; only those in some states, unless none is named.
    pub async fn share_groups(
        &mut self,
        states: &[String],
    ) -> Result<BTreeMap<String, String>, Error> {
        let request = ListGroupsRequest::default()
            .with_types_filter(vec![StrBytes::from_static_str(SHARE)])
            .with_states_filter(states.iter().map(|state| text(state)).collect());
        let mut found = BTreeMap::new();
        for id in self.nodes().await? {
            self.begin();
            let answer = loop {
                let answer = self.node(id, 5, &request).await?;
                let code = ErrorCode(answer.error_code);
                if !super::is_passing(code) || !self.again().await {
                    break answer;
                }
            };
            if answer.error_code != 0 {
                return Err(Error::refused(answer.error_code, None));
            }
            for group in answer.groups {
                found.insert(group.group_id.to_string(), group.group_state.to_string());
            }
        }
        Ok(found)
    }

    /// ShareGroupDescribe of one group.
    pub async fn describe_share_group(&mut self, group: &str) -> Result<DescribedGroup, Error> {
        let request = ShareGroupDescribeRequest::default().with_group_ids(vec![group_id(group)]);
        let answer = self.coordinator(group, &request, |answer| {
            ErrorCode(answer.groups.first().map_or(0, |group| group.error_code))
        });
        let described = only(answer.await?.groups)?;
        refused(described.error_code, described.error_message.as_ref())?;
        Ok(described)
    }

    /// The offsets of one group, for all topics that it has any for.
    pub async fn share_group_offsets(
        &mut self,
        group: &str,
    ) -> Result<Vec<DescribeShareGroupOffsetsResponseTopic>, Error> {
        let request = DescribeShareGroupOffsetsRequest {
            groups: vec![DescribeShareGroupOffsetsRequestGroup {
                group_id: group_id(group),
                topics: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.coordinator(group, &request, |answer| {
            ErrorCode(answer.groups.first().map_or(0, |group| group.error_code))
        });
        let described = only(answer.await?.groups)?;
        refused(described.error_code, described.error_message.as_ref())?;
        let mut topics = described.topics;
        topics.sort_by(|a, b| a.topic_name.cmp(&b.topic_name));
        for topic in &mut topics {
            topic.partitions.sort_by_key(|found| found.partition_index);
        }
        Ok(topics)
    }

    /// AlterShareGroupOffsets of one group: what became of each partition.
    pub async fn alter_share_group_offsets(
        &mut self,
        group: &str,
        offsets: &BTreeMap<(String, i32), i64>,
    ) -> Result<Outcomes, Error> {
        let mut topics: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for ((topic, partition), offset) in offsets {
            let partition = AlterShareGroupOffsetsRequestPartition::default()
                .with_partition_index(*partition)
                .with_start_offset(*offset);
            topics.entry(topic).or_default().push(partition);
        }
        let topic = |(name, partitions): (&str, Vec<_>)| {
            AlterShareGroupOffsetsRequestTopic::default()
                .with_topic_name(topic_name(name))
                .with_partitions(partitions)
        };
        let request = AlterShareGroupOffsetsRequest::default()
            .with_group_id(group_id(group))
            .with_topics(topics.into_iter().map(topic).collect());
        let answer = self.coordinator(group, &request, |answer| ErrorCode(answer.error_code));
        let answer = answer.await?;
        refused(answer.error_code, answer.error_message.as_ref())?;
        let mut outcomes = Vec::new();
        for topic in answer.responses {
            for partition in topic.partitions {
                let outcome = refused(partition.error_code, partition.error_message.as_ref());
                let name = topic.topic_name.to_string();
                outcomes.push((name, partition.partition_index, outcome));
            }
        }
        Ok(outcomes)
    }

    /// DeleteShareGroupOffsets of one group: what became of each topic.
    pub async fn delete_share_group_offsets(
        &mut self,
        group: &str,
        topics: &[String],
    ) -> Result<BTreeMap<String, Result<(), Error>>, Error> {
        let topic = |name: &String| {
            DeleteShareGroupOffsetsRequestTopic::default().with_topic_name(topic_name(name))
        };
        let request = DeleteShareGroupOffsetsRequest::default()
            .with_group_id(group_id(group))
            .with_topics(topics.iter().map(topic).collect());
        let answer = self.coordinator(group, &request, |answer| ErrorCode(answer.error_code));
        let answer = answer.await?;
        refused(answer.error_code, answer.error_message.as_ref())?;
        let outcome = |topic: &ottla_protocol::messages::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponseTopic| {
            let outcome = refused(topic.error_code, topic.error_message.as_ref());
            (topic.topic_name.to_string(), outcome)
        };
        Ok(answer.responses.iter().map(outcome).collect())
    }

    /// DeleteGroups of one group.
    pub async fn delete_share_group(&mut self, group: &str) -> Result<(), Error> {
        let request = DeleteGroupsRequest {
            groups_names: vec![group_id(group)],
            ..Default::default()
        };
        let answer = self.coordinator(group, &request, |answer| {
            ErrorCode(answer.results.first().map_or(0, |result| result.error_code))
        });
        let result = only(answer.await?.results)?;
        refused(result.error_code, result.error_message.as_ref())
    }

    /// AlterShareGroupDelivery: pauses or resumes one group.
    pub async fn alter_share_group_delivery(
        &mut self,
        group: &str,
        pause: bool,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let request = AlterShareGroupDeliveryRequest {
            group_id: group_id(group),
            pause,
            reason: reason.map(text),
            ..Default::default()
        };
        let answer = self.coordinator(group, &request, |answer| ErrorCode(answer.error_code));
        let answer = answer.await?;
        refused(answer.error_code, answer.error_message.as_ref())
    }

    /// DescribeShareGroupDelivery of one group.
    pub async fn describe_share_group_delivery(
        &mut self,
        group: &str,
    ) -> Result<DescribedShareGroupDelivery, Error> {
        let request = DescribeShareGroupDeliveryRequest {
            group_ids: vec![group_id(group)],
            ..Default::default()
        };
        let answer = self.coordinator(group, &request, |answer| {
            ErrorCode(answer.groups.first().map_or(0, |group| group.error_code))
        });
        let described = only(answer.await?.groups)?;
        refused(described.error_code, described.error_message.as_ref())?;
        Ok(described)
    }
}

pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(super) fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

fn group_id(group: &str) -> GroupId {
    GroupId(text(group))
}

pub(super) fn refused(code: i16, message: Option<&StrBytes>) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        _ => Err(Error::refused(code, message.map(|message| &message[..]))),
    }
}

/// The answer to a question that named one thing.
pub(super) fn only<T>(mut answers: Vec<T>) -> Result<T, Error> {
    answers.pop().ok_or_else(|| {
        let text = "the answer does not say anything about what was asked";
        Error::refused(ErrorCode::UNKNOWN_SERVER_ERROR.0, Some(text))
    })
}
