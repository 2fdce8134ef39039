//! Groups that go from the classic to the consumer protocol and back while they live (KIP-848), over
//! the wire.

use bytes::{Bytes, BytesMut};
use ottla_protocol::messages::consumer_protocol_assignment::ConsumerProtocolAssignment;
use ottla_protocol::messages::consumer_protocol_subscription::{
    ConsumerProtocolSubscription, TopicPartition,
};
use ottla_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use ottla_protocol::messages::leave_group_request::MemberIdentity;
use ottla_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use ottla_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    SyncGroupRequest, TopicName,
};
use ottla_protocol::{Encodable, ErrorCode, StrBytes, guard};
use ottla_tests::{Client, Consumer, Embedded, OK, Settings, heartbeat_error};

const TOPIC: &str = "orders";
const GROUP: &str = "billing";

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group() -> GroupId {
    GroupId(text(GROUP))
}

fn blob(message: &impl Encodable) -> Bytes {
    let mut bytes = BytesMut::from(&[0, 1][..]);
    message
        .encode(&mut bytes, 1)
        .unwrap_or_else(|error| panic!("{error}"));
    bytes.freeze()
}

/// A member that speaks the classic protocol.
struct Classic {
    client: Client,
    id: String,
    generation: i32,
    partitions: Vec<i32>,
}

impl Classic {
    fn new(client: Client) -> Self {
        Self {
            client,
            id: String::new(),
            generation: -1,
            partitions: Vec::new(),
        }
    }

    async fn join(&mut self) -> JoinGroupResponse {
        let owned = TopicPartition::default()
            .with_topic(TopicName(text(TOPIC)))
            .with_partitions(self.partitions.clone());
        let subscription = ConsumerProtocolSubscription::default()
            .with_topics(vec![text(TOPIC)])
            .with_user_data(None)
            .with_owned_partitions(vec![owned]);
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(blob(&subscription));
        let request = JoinGroupRequest::default()
            .with_group_id(group())
            .with_member_id(text(&self.id))
            .with_session_timeout_ms(10_000)
            .with_rebalance_timeout_ms(5_000)
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol])
            .with_group_instance_id(None)
            .with_reason(None);
        let answer = self.client.call(9, &request).await;
        self.id = answer.member_id.to_string();
        if answer.error_code == ErrorCode::MEMBER_ID_REQUIRED.0 {
            return Box::pin(self.join()).await;
        }
        assert_eq!(answer.error_code, 0, "{answer:?}");
        self.generation = answer.generation_id;
        answer
    }

    /// Fetches the assignment; as the leader, assigns `all` to itself.
    async fn sync(&mut self, all: &[i32]) {
        let mut assignments = vec![];
        if !all.is_empty() {
            let assigned =
                ottla_protocol::messages::consumer_protocol_assignment::TopicPartition::default()
                    .with_topic(TopicName(text(TOPIC)))
                    .with_partitions(all.to_vec());
            let assignment = ConsumerProtocolAssignment::default()
                .with_assigned_partitions(vec![assigned])
                .with_user_data(None);
            let own = SyncGroupRequestAssignment::default()
                .with_member_id(text(&self.id))
                .with_assignment(blob(&assignment));
            assignments.push(own);
        }
        let request = SyncGroupRequest::default()
            .with_group_id(group())
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(None)
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(assignments);
        let answer = self.client.call(5, &request).await;
        assert_eq!(answer.error_code, 0, "{answer:?}");
        let read = guard::decode_assignment(answer.assignment);
        let read = read.unwrap_or_else(|error| panic!("{error}"));
        let topics = read.assigned_partitions.into_iter();
        self.partitions = topics.flat_map(|topic| topic.partitions).collect();
    }

    async fn beat(&mut self) -> ErrorCode {
        let request = HeartbeatRequest::default()
            .with_group_id(group())
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(None);
        ErrorCode(self.client.call(4, &request).await.error_code)
    }

    /// What a client does: joins again and syncs whenever its heartbeat says so.
    async fn follow(&mut self) {
        while self.beat().await == ErrorCode::REBALANCE_IN_PROGRESS {
            self.join().await;
            self.sync(&[]).await;
        }
    }

    async fn leave(&mut self) {
        let member = MemberIdentity::default()
            .with_member_id(text(&self.id))
            .with_group_instance_id(None)
            .with_reason(None);
        let request = LeaveGroupRequest::default()
            .with_group_id(group())
            .with_members(vec![member]);
        let answer = self.client.call(5, &request).await;
        assert_eq!(answer.error_code, 0, "{answer:?}");
    }
}

/// A classic group of one member that has all four partitions.
async fn classic_group() -> (Embedded, Classic) {
    let broker = Settings::new().start().await;
    broker.client().await.create_topic(TOPIC, 4).await;
    let mut member = Classic::new(broker.client().await);
    let joined = member.join().await;
    assert_eq!(joined.leader.as_str(), member.id);
    member.sync(&[0, 1, 2, 3]).await;
    assert_eq!(member.partitions, [0, 1, 2, 3]);
    (broker, member)
}

async fn groups(broker: &Embedded) -> (Vec<String>, Vec<String>) {
    let mut client = broker.client().await;
    let classic = client.list_groups(&[], &["classic"]).await;
    (classic, client.list_groups(&[], &["consumer"]).await)
}

#[tokio::test]
async fn a_group_moves_to_the_consumer_protocol_member_by_member_and_back() {
    let (broker, mut old) = classic_group().await;
    let mut new = Consumer::new(broker.client().await, GROUP, "new");
    assert_eq!(heartbeat_error(&new.join(&[TOPIC]).await), OK);
    assert_eq!(groups(&broker).await.0, Vec::<String>::new());

    // The classic member comes down to its half by its own protocol; only then the new one gets it.
    assert_eq!(old.beat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    old.join().await;
    old.sync(&[]).await;
    assert_eq!(old.partitions, [0, 1]);
    new.beat().await;
    assert_eq!(new.partitions(), Vec::<i32>::new());
    old.follow().await;
    new.beat().await;
    assert_eq!(
        (old.partitions.clone(), new.partitions()),
        (vec![0, 1], vec![2, 3])
    );
    let described = broker.client().await.describe_consumer_group(GROUP).await;
    let types: Vec<i8> = described.members.iter().map(|m| m.member_type).collect();
    assert_eq!(types.iter().sum::<i8>(), 1, "one of each: {types:?}");

    // And back: the last member of the consumer protocol leaves.
    assert_eq!(new.leave(-1).await.error_code, 0);
    assert_eq!(groups(&broker).await.1, Vec::<String>::new());
    old.join().await;
    old.sync(&[0, 1, 2, 3]).await;
    assert_eq!(old.beat().await, ErrorCode::NONE);
}

#[tokio::test]
async fn the_last_classic_member_that_leaves_leaves_a_consumer_group() {
    let (broker, mut old) = classic_group().await;
    let mut new = Consumer::new(broker.client().await, GROUP, "new");
    new.join(&[TOPIC]).await;
    old.leave().await;
    new.beat().await;
    assert_eq!(new.partitions(), [0, 1, 2, 3]);
    let state = broker.client().await.consumer_group_state(GROUP).await;
    assert_eq!(state.0, "Stable");
}

#[tokio::test]
async fn a_classic_member_that_stays_away_is_removed_by_the_clock() {
    let (broker, mut old) = classic_group().await;
    let mut new = Consumer::new(broker.client().await, GROUP, "new");
    new.join(&[TOPIC]).await;
    assert_eq!(old.beat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    broker.advance(5_000).await;
    assert_eq!(old.beat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    new.beat().await;
    assert_eq!(new.partitions(), [0, 1, 2, 3]);
}

#[tokio::test]
async fn the_policy_keeps_a_classic_group_classic() {
    let settings = Settings::new().set("group.consumer.migration.policy", "disabled");
    let broker = settings.start().await;
    broker.client().await.create_topic(TOPIC, 1).await;
    let mut old = Classic::new(broker.client().await);
    old.join().await;
    old.sync(&[0]).await;
    let mut new = Consumer::new(broker.client().await, GROUP, "new");
    let answer = new.join(&[TOPIC]).await;
    assert_eq!(answer.error_code, ErrorCode::GROUP_ID_NOT_FOUND.0);
    assert_eq!(old.beat().await, ErrorCode::NONE);
    // Without members it goes over whatever the policy.
    old.leave().await;
    assert_eq!(heartbeat_error(&new.join(&[TOPIC]).await), OK);
    assert_eq!(new.partitions(), [0]);
}
