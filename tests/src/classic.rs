//! Members of classic groups.

use bytes::Bytes;
use ottla_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use ottla_protocol::messages::leave_group_request::MemberIdentity;
use ottla_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use ottla_protocol::messages::{
    DescribeGroupsRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
    describe_groups_response::DescribedGroup,
};
use ottla_protocol::{ErrorCode, StrBytes};

use crate::{Client, Sent};

/// A member of a classic group, on a connection of its own.
#[derive(Debug)]
pub struct ClassicMember {
    /// Its connection.
    pub client: Client,
    /// Its group.
    pub group: String,
    /// Its id; empty before it has one.
    pub id: String,
    /// Its name over restarts.
    pub instance: Option<String>,
    /// The generation that it is in.
    pub generation: i32,
    /// The member that leads, as it was told.
    pub leader: String,
    /// The version of its `JoinGroup`s.
    pub version: i16,
    /// What it is.
    pub protocol_type: String,
    /// Its protocols and the metadata for each.
    pub protocols: Vec<(String, Bytes)>,
    /// Its session timeout in milliseconds.
    pub session_timeout_ms: i32,
    /// Its rebalance timeout in milliseconds.
    pub rebalance_timeout_ms: i32,
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl ClassicMember {
    /// A member without an id that speaks `range`, and has not joined.
    pub fn new(client: Client, group: &str) -> Self {
        Self {
            client,
            group: group.to_owned(),
            id: String::new(),
            instance: None,
            generation: -1,
            leader: String::new(),
            version: 9,
            protocol_type: "consumer".to_owned(),
            protocols: vec![("range".to_owned(), Bytes::from_static(b"metadata"))],
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 60_000,
        }
    }

    /// A static member.
    pub fn named(client: Client, group: &str, instance: &str) -> Self {
        Self {
            instance: Some(instance.to_owned()),
            ..Self::new(client, group)
        }
    }

    /// Whether it leads its generation.
    pub fn leads(&self) -> bool {
        self.leader == self.id
    }

    /// Asks to join; the answer may come much later.
    pub async fn send_join(&mut self) -> Sent<JoinGroupRequest> {
        let protocols = self.protocols.iter().map(|(name, metadata)| {
            JoinGroupRequestProtocol::default()
                .with_name(text(name))
                .with_metadata(metadata.clone())
        });
        let request = JoinGroupRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_session_timeout_ms(self.session_timeout_ms)
            .with_rebalance_timeout_ms(self.rebalance_timeout_ms)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(text(&self.protocol_type))
            .with_protocols(protocols.collect());
        self.client.send(self.version, &request).await
    }

    /// Waits for the answer to a join, and takes it in.
    pub async fn joined(&mut self, sent: Sent<JoinGroupRequest>) -> JoinGroupResponse {
        let answer = self.client.receive(sent).await;
        let code = ErrorCode(answer.error_code);
        if code == ErrorCode::NONE || code == ErrorCode::MEMBER_ID_REQUIRED {
            self.id = answer.member_id.to_string();
            self.generation = answer.generation_id;
            self.leader = answer.leader.to_string();
        }
        answer
    }

    /// Asks to join and waits for the answer; joins again when it was only given an id.
    pub async fn join(&mut self) -> JoinGroupResponse {
        let sent = self.send_join().await;
        let answer = self.joined(sent).await;
        if ErrorCode(answer.error_code) != ErrorCode::MEMBER_ID_REQUIRED {
            return answer;
        }
        let sent = self.send_join().await;
        self.joined(sent).await
    }

    /// Has itself given an id, and asks to join with it.
    pub async fn send_first_join(&mut self) -> Sent<JoinGroupRequest> {
        let sent = self.send_join().await;
        let answer = self.joined(sent).await;
        assert_eq!(
            ErrorCode(answer.error_code),
            ErrorCode::MEMBER_ID_REQUIRED,
            "{answer:?}"
        );
        self.send_join().await
    }

    /// Asks for its assignment; a leader brings `assignments` by member id.
    pub async fn send_sync(&mut self, assignments: &[(&str, &str)]) -> Sent<SyncGroupRequest> {
        let request = self.sync_request(assignments);
        self.client.send(5, &request).await
    }

    /// What [`ClassicMember::send_sync`] sends.
    pub fn sync_request(&self, assignments: &[(&str, &str)]) -> SyncGroupRequest {
        let assignments = assignments.iter().map(|(member, assignment)| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(member))
                .with_assignment(Bytes::copy_from_slice(assignment.as_bytes()))
        });
        SyncGroupRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(Some(text(&self.protocol_type)))
            .with_protocol_name(Some(text(&self.protocols[0].0)))
            .with_assignments(assignments.collect())
    }

    /// Asks for its assignment and waits for it.
    pub async fn sync(&mut self, assignments: &[(&str, &str)]) -> SyncGroupResponse {
        let sent = self.send_sync(assignments).await;
        self.client.receive(sent).await
    }

    /// A heartbeat; its error code.
    pub async fn beat(&mut self) -> ErrorCode {
        let request = HeartbeatRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text));
        ErrorCode(self.client.call(4, &request).await.error_code)
    }

    /// Leaves.
    pub async fn leave(&mut self) -> LeaveGroupResponse {
        let member = MemberIdentity::default()
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_reason(Some(text("the test is over")));
        let request = LeaveGroupRequest::default()
            .with_group_id(GroupId(text(&self.group)))
            .with_members(vec![member]);
        self.client.call(5, &request).await
    }
}

impl Client {
    /// `DescribeGroups` of one group.
    pub async fn describe_group(&mut self, version: i16, group: &str) -> DescribedGroup {
        let request = DescribeGroupsRequest::default().with_groups(vec![GroupId(text(group))]);
        let mut answer = self.call(version, &request).await;
        match answer.groups.pop() {
            Some(described) => described,
            None => panic!("{group} is not described: {self:?}"),
        }
    }

    /// The state of a classic group, and how many members it has.
    pub async fn classic_group(&mut self, group: &str) -> (String, usize) {
        let described = self.describe_group(5, group).await;
        (described.group_state.to_string(), described.members.len())
    }
}
