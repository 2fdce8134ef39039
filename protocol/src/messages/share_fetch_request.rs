//! `ShareFetch` request, versions 1 and 2 (KIP-932; KIP-1206 and KIP-1222 for 2).

use super::codec::{messages, request};
use super::{GroupId, ShareFetchResponse};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 1..=2, flexible 0;

    /// Asks for records of a share session, acknowledging others on the way.
    pub struct ShareFetchRequest {
        /// The share group.
        pub group_id: Option<GroupId> = None;
        /// The member.
        pub member_id: Option<StrBytes> = Some(StrBytes::new());
        /// 0 opens a session, -1 closes it, else the next epoch.
        pub share_session_epoch: i32 = 0;
        /// How long to wait for `min_bytes`, in ms.
        pub max_wait_ms: i32 = 0;
        /// How much is worth an answer, in bytes.
        pub min_bytes: i32 = 0;
        /// The most to answer with, in bytes.
        pub max_bytes: i32 = i32::MAX;
        /// The most records to acquire, unless one batch holds more.
        pub max_records: i32 = 0;
        /// The best number of records in a batch of acquired ones.
        pub batch_size: i32 = 0;
        /// 0 = whole batches may exceed `max_records`, 1 = `max_records` is a strict limit.
        pub share_acquire_mode: i8 = 0, since 2;
        /// Whether the acknowledgements may renew locks.
        pub is_renew_ack: bool = false, since 2;
        /// Partitions to add to the session, or to acknowledge.
        pub topics: Vec<FetchTopic> = Vec::new();
        /// Partitions to drop from the session.
        pub forgotten_topics_data: Vec<ForgottenTopic> = Vec::new();
    }

    /// One topic.
    pub struct FetchTopic {
        /// Its id.
        pub topic_id: Uuid = Uuid::nil();
        /// Its partitions.
        pub partitions: Vec<FetchPartition> = Vec::new();
    }

    /// One partition.
    pub struct FetchPartition {
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

    /// A topic with partitions to drop.
    pub struct ForgottenTopic {
        /// Its id.
        pub topic_id: Uuid = Uuid::nil();
        /// The partitions.
        pub partitions: Vec<i32> = Vec::new();
    }
}

request!(ShareFetchRequest = api_key::SHARE_FETCH => ShareFetchResponse);
