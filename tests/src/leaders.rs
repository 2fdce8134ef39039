//! Leaders, replicas and who is in sync, as clients see and change them.

use std::fmt::Write;

use ottla_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use ottla_protocol::messages::describe_topic_partitions_request::TopicRequest;
use ottla_protocol::messages::describe_topic_partitions_response::DescribeTopicPartitionsResponsePartition;
use ottla_protocol::messages::elect_leaders_request::TopicPartitions;
use ottla_protocol::messages::elect_leaders_response::ElectLeadersResponse;
use ottla_protocol::messages::{
    AlterPartitionReassignmentsRequest, BrokerId, DescribeTopicPartitionsRequest,
    ElectLeadersRequest, ListPartitionReassignmentsRequest,
};
use ottla_protocol::{ErrorCode, StrBytes};

use crate::Client;
use crate::records::topic_name;

/// An error and its message, empty without one.
pub type Told = (ErrorCode, String);

fn told(code: i16, message: Option<&StrBytes>) -> Told {
    let message = message.map(ToString::to_string);
    (ErrorCode(code), message.unwrap_or_default())
}

fn list(ids: &[BrokerId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| id.0.to_string()).collect();
    ids.join(",")
}

impl Client {
    /// One partition in a line, as DescribeTopicPartitions has it: `leader 1@2, replicas 0,1, isr 1`,
    /// the number behind the `@` being the leader epoch, and behind that what is not empty of
    /// `elr`, `last` (the last known ELR) and `offline`.
    pub async fn partition_line(&mut self, topic: &str, partition: i32) -> String {
        let request = DescribeTopicPartitionsRequest::default()
            .with_topics(vec![TopicRequest::default().with_name(topic_name(topic))])
            .with_response_partition_limit(2000);
        let response = self.call(0, &request).await;
        let all = &response.topics[0].partitions;
        match all.iter().find(|p| p.partition_index == partition) {
            Some(found) => line(found),
            None => panic!("{topic}-{partition}: {response:?}"),
        }
    }

    /// Elections; each result as `topic-partition`, its error and message.
    pub async fn elect(
        &mut self,
        election_type: i8,
        wanted: Option<&[(&str, i32)]>,
    ) -> Vec<(String, Told)> {
        let response = self.elect_at(2, election_type, wanted).await;
        assert_eq!(response.error_code, 0, "{response:?}");
        response
            .replica_election_results
            .iter()
            .flat_map(|topic| {
                topic.partition_result.iter().map(|p| {
                    let name = format!("{}-{}", *topic.topic, p.partition_id);
                    (name, told(p.error_code, p.error_message.as_ref()))
                })
            })
            .collect()
    }

    /// The whole answer to ElectLeaders in one of its versions.
    pub async fn elect_at(
        &mut self,
        version: i16,
        election_type: i8,
        wanted: Option<&[(&str, i32)]>,
    ) -> ElectLeadersResponse {
        let topics = wanted.map(|wanted| {
            let each = wanted.iter().map(|(topic, partition)| {
                TopicPartitions::default()
                    .with_topic(topic_name(topic))
                    .with_partitions(vec![*partition])
            });
            each.collect()
        });
        let mut request = ElectLeadersRequest::default()
            .with_topic_partitions(topics)
            .with_timeout_ms(10_000);
        request.election_type = election_type;
        self.call(version, &request).await
    }

    /// Gives a partition new replicas, or takes that back with `None`.
    pub async fn reassign(
        &mut self,
        topic: &str,
        partition: i32,
        replicas: Option<&[i32]>,
    ) -> Told {
        self.reassign_with(topic, partition, replicas, true).await
    }

    /// The same; `any_factor` allows another number of replicas.
    pub async fn reassign_with(
        &mut self,
        topic: &str,
        partition: i32,
        replicas: Option<&[i32]>,
        any_factor: bool,
    ) -> Told {
        let replicas = replicas.map(|ids| ids.iter().copied().map(BrokerId).collect());
        let partition = ReassignablePartition::default()
            .with_partition_index(partition)
            .with_replicas(replicas);
        let topic = ReassignableTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![partition]);
        let request = AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_allow_replication_factor_change(any_factor)
            .with_topics(vec![topic]);
        let response = self.call(1, &request).await;
        assert_eq!(response.error_code, 0, "{response:?}");
        let outcome = &response.responses[0].partitions[0];
        told(outcome.error_code, outcome.error_message.as_ref())
    }

    /// The reassignments in progress, a line each: `t-0: 0,3,1 adding 3 removing 1`.
    pub async fn reassignments(&mut self) -> Vec<String> {
        let request = ListPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(None);
        let response = self.call(0, &request).await;
        let topics = response.topics.iter();
        let each = topics.flat_map(|topic| {
            topic.partitions.iter().map(|p| {
                format!(
                    "{}-{}: {} adding {} removing {}",
                    *topic.name,
                    p.partition_index,
                    list(&p.replicas),
                    list(&p.adding_replicas),
                    list(&p.removing_replicas)
                )
            })
        });
        each.collect()
    }
}

fn line(partition: &DescribeTopicPartitionsResponsePartition) -> String {
    let mut line = format!(
        "leader {}@{}, replicas {}, isr {}",
        partition.leader_id.0,
        partition.leader_epoch,
        list(&partition.replica_nodes),
        list(&partition.isr_nodes)
    );
    let lists = [
        ("elr", partition.eligible_leader_replicas.as_deref()),
        ("last", partition.last_known_elr.as_deref()),
        ("offline", Some(partition.offline_replicas.as_slice())),
    ];
    for (name, ids) in lists {
        if let Some(ids) = ids.filter(|ids| !ids.is_empty()) {
            let _ = write!(line, ", {name} {}", list(ids));
        }
    }
    line
}
