//! Records of classic groups (type 2).

use std::sync::Arc;

use bytes::Bytes;
use ottla_coordinator::group::records::{ClassicGroupValue, ClassicMemberValue, GroupRecord};
use ottla_protocol::internal::{
    ClassicMember, ConsumerOffsetsRecord as Wire, GroupKey, GroupMetadataValue,
};

use super::group_key;

pub(super) fn encode(group_id: &str, value: Option<&ClassicGroupValue>) -> Wire {
    let value = value.map(|value| GroupMetadataValue {
        protocol_type: value.protocol_type.clone(),
        generation: value.generation,
        protocol: value.protocol.clone(),
        leader: value.leader.clone(),
        current_state_timestamp: value.state_timestamp,
        members: value.members.iter().map(from_member).collect(),
        ..Default::default()
    });
    Wire::GroupMetadata(group_key(group_id), value)
}

fn from_member(member: &ClassicMemberValue) -> ClassicMember {
    ClassicMember {
        member_id: member.member_id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout: member.rebalance_timeout_ms,
        session_timeout: member.session_timeout_ms,
        subscription: Bytes::from_owner(Arc::clone(&member.subscription)),
        assignment: Bytes::from_owner(Arc::clone(&member.assignment)),
        ..Default::default()
    }
}

pub(super) fn decode(key: GroupKey, value: Option<GroupMetadataValue>) -> GroupRecord {
    let value = value.map(|value| ClassicGroupValue {
        protocol_type: value.protocol_type,
        generation: value.generation,
        protocol: value.protocol,
        leader: value.leader,
        state_timestamp: value.current_state_timestamp,
        members: value.members.into_iter().map(to_member).collect(),
    });
    GroupRecord::ClassicGroup {
        group_id: key.group_id,
        value,
    }
}

fn to_member(member: ClassicMember) -> ClassicMemberValue {
    // A record of version 0 has no rebalance timeout: the session timeout was both.
    let rebalance_timeout_ms = match member.rebalance_timeout {
        -1 => member.session_timeout,
        timeout => timeout,
    };
    ClassicMemberValue {
        member_id: member.member_id,
        instance_id: member.group_instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout,
        subscription: Arc::from(&member.subscription[..]),
        assignment: Arc::from(&member.assignment[..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_classic_group_survives_the_log() {
        let member = ClassicMemberValue {
            member_id: "m".to_owned(),
            instance_id: Some("i".to_owned()),
            client_id: "c".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            rebalance_timeout_ms: 300_000,
            session_timeout_ms: 45_000,
            subscription: Arc::from(&b"s"[..]),
            assignment: Arc::from(&b"a"[..]),
        };
        let value = ClassicGroupValue {
            protocol_type: "consumer".to_owned(),
            generation: 3,
            protocol: Some("range".to_owned()),
            leader: Some("m".to_owned()),
            state_timestamp: 5,
            members: vec![member],
        };
        for value in [Some(value), Some(ClassicGroupValue::default()), None] {
            let (key, bytes) = encode("g", value.as_ref()).encode();
            let Ok(Wire::GroupMetadata(key, read)) = Wire::decode(&key, bytes.as_deref()) else {
                panic!("not a group's record");
            };
            let group_id = "g".to_owned();
            assert_eq!(
                decode(key, read),
                GroupRecord::ClassicGroup { group_id, value }
            );
        }
    }
}
