//! A member of a consumer group (KIP-848), as the wire sees it.

use ottla_protocol::messages::consumer_group_describe_response::DescribedGroup;
use ottla_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use ottla_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    GroupId, TopicName,
};
use ottla_protocol::{StrBytes, Uuid};

use crate::{Client, Code};

/// Partitions by topic id.
type Owned = Vec<(Uuid, Vec<i32>)>;

/// A member that does what it is told: it takes over each answer's epoch and assignment.
#[derive(Debug)]
pub struct Consumer {
    /// Its connection.
    pub client: Client,
    group: String,
    /// Its id.
    pub id: String,
    /// Its instance id.
    pub instance: Option<String>,
    /// The epoch that it was given last.
    pub epoch: i32,
    /// The partitions that it has, by topic id, ascending.
    pub owned: Owned,
    subscription: Subscription,
    /// How long it may take to give up partitions, in milliseconds.
    pub rebalance_timeout_ms: i32,
}

/// What a member subscribes to.
#[derive(Debug, Clone, Default)]
struct Subscription {
    names: Vec<String>,
    regex: Option<String>,
}

impl Consumer {
    /// A member that has not joined yet.
    pub fn new(client: Client, group: &str, id: &str) -> Self {
        Self {
            client,
            group: group.to_owned(),
            id: id.to_owned(),
            instance: None,
            epoch: 0,
            owned: Vec::new(),
            subscription: Subscription::default(),
            rebalance_timeout_ms: 10_000,
        }
    }

    /// A static member.
    #[must_use]
    pub fn instance(mut self, instance: &str) -> Self {
        self.instance = Some(instance.to_owned());
        self
    }

    fn request(&self, epoch: i32) -> ConsumerGroupHeartbeatRequest {
        let text = |text: &str| StrBytes::from_string(text.to_owned());
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_member_id(text(&self.id))
            .with_member_epoch(epoch)
            .with_instance_id(self.instance.as_deref().map(text))
            .with_rack_id(None)
            .with_rebalance_timeout_ms(-1)
            .with_subscribed_topic_names(None)
            .with_subscribed_topic_regex(None)
            .with_server_assignor(None)
            .with_topic_partitions(None)
    }

    /// Says everything, as a member does that joins or lost an answer.
    fn full(&self, epoch: i32) -> ConsumerGroupHeartbeatRequest {
        let names = self.subscription.names.iter();
        let names = names.map(|name| TopicName(StrBytes::from_string(name.clone())));
        let regex = self.subscription.regex.clone();
        self.request(epoch)
            .with_rebalance_timeout_ms(self.rebalance_timeout_ms)
            .with_subscribed_topic_names(Some(names.collect()))
            .with_subscribed_topic_regex(regex.map(StrBytes::from_string))
            .with_topic_partitions(Some(self.said()))
    }

    fn said(&self) -> Vec<TopicPartitions> {
        let said = |(topic, partitions): &(Uuid, Vec<i32>)| {
            TopicPartitions::default()
                .with_topic_id(*topic)
                .with_partitions(partitions.clone())
        };
        self.owned.iter().map(said).collect()
    }

    /// Sends a heartbeat and does what the answer says.
    pub async fn send(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        let answer = self.client.call(1, request).await;
        if answer.error_code == 0 {
            self.epoch = answer.member_epoch;
        }
        if let Some(assignment) = &answer.assignment {
            let topics = assignment.topic_partitions.iter();
            self.owned = topics.map(|t| (t.topic_id, t.partitions.clone())).collect();
            self.owned.sort();
        }
        answer
    }

    /// Joins, or joins again, with epoch 0 and nothing.
    pub async fn join(&mut self, names: &[&str]) -> ConsumerGroupHeartbeatResponse {
        self.subscription = Subscription {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            regex: None,
        };
        self.owned.clear();
        self.send(&self.full(0)).await
    }

    /// Joins with a regular expression.
    pub async fn join_matching(&mut self, regex: &str) -> ConsumerGroupHeartbeatResponse {
        self.subscription = Subscription {
            names: Vec::new(),
            regex: Some(regex.to_owned()),
        };
        self.owned.clear();
        self.send(&self.full(0)).await
    }

    /// A heartbeat that says what the member has: it gave up what it was told to give up.
    pub async fn beat(&mut self) -> ConsumerGroupHeartbeatResponse {
        let request = self.request(self.epoch);
        self.send(&request.with_topic_partitions(Some(self.said())))
            .await
    }

    /// A heartbeat that says nothing.
    pub async fn quiet(&mut self) -> ConsumerGroupHeartbeatResponse {
        self.send(&self.request(self.epoch)).await
    }

    /// A heartbeat in another epoch than the member's own.
    pub async fn beat_in(&mut self, epoch: i32) -> ConsumerGroupHeartbeatResponse {
        self.client.call(1, &self.request(epoch)).await
    }

    /// Leaves: -1 for good, -2 for a while.
    pub async fn leave(&mut self, epoch: i32) -> ConsumerGroupHeartbeatResponse {
        self.client.call(1, &self.request(epoch)).await
    }

    /// The partitions that it has of its first topic.
    pub fn partitions(&self) -> Vec<i32> {
        self.owned
            .first()
            .map(|(_, p)| p.clone())
            .unwrap_or_default()
    }
}

/// The error of a heartbeat.
pub fn heartbeat_error(answer: &ConsumerGroupHeartbeatResponse) -> Code {
    let text = answer.error_message.as_ref().map(ToString::to_string);
    (answer.error_code, text)
}

impl Client {
    /// What ConsumerGroupDescribe says of a group.
    pub async fn describe_consumer_group(&mut self, group: &str) -> DescribedGroup {
        let id = GroupId(StrBytes::from_string(group.to_owned()));
        let request = ConsumerGroupDescribeRequest::default().with_group_ids(vec![id]);
        let mut answer = self.call(1, &request).await;
        answer
            .groups
            .pop()
            .unwrap_or_else(|| panic!("no group in the answer"))
    }

    /// The state of a consumer group, its epoch and that of its assignment.
    pub async fn consumer_group_state(&mut self, group: &str) -> (String, i32, i32) {
        let group = self.describe_consumer_group(group).await;
        let state = group.group_state.to_string();
        (state, group.group_epoch, group.assignment_epoch)
    }
}
