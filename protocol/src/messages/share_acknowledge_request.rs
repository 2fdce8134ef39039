//! `ShareAcknowledge` request, versions 1 and 2 (KIP-932; KIP-1222 for 2).

use super::codec::{messages, request};
use super::{GroupId, ShareAcknowledgeResponse};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 1..=2, flexible 0;

    /// Acknowledges records of a share session.
    pub struct ShareAcknowledgeRequest {
        /// The share group.
        pub group_id: Option<GroupId> = None;
        /// The member.
        pub member_id: Option<StrBytes> = Some(StrBytes::new());
        /// -1 closes the session, else the next epoch.
        pub share_session_epoch: i32 = 0;
        /// Whether the acknowledgements may renew locks.
        pub is_renew_ack: bool = false, since 2;
        /// The topics.
        pub topics: Vec<AcknowledgeTopic> = Vec::new();
    }

    /// One topic.
    pub struct AcknowledgeTopic {
        /// Its id.
        pub topic_id: Uuid = Uuid::nil();
        /// Its partitions.
        pub partitions: Vec<AcknowledgePartition> = Vec::new();
    }

    /// One partition.
    pub struct AcknowledgePartition {
        /// Its index.
        pub partition_index: i32 = 0;
        /// What is acknowledged.
        pub acknowledgement_batches: Vec<AcknowledgementBatch> = Vec::new();
    }

    /// A range of acknowledged records.
    pub struct AcknowledgementBatch {
        /// First offset.
        pub first_offset: i64 = 0;
        /// Last offset, inclusive.
        pub last_offset: i64 = 0;
        /// One type for all, or one per record: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
        pub acknowledge_types: Vec<i8> = Vec::new();
    }
}

request!(ShareAcknowledgeRequest = api_key::SHARE_ACKNOWLEDGE => ShareAcknowledgeResponse);
