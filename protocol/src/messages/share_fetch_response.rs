//! `ShareFetch` response, versions 1 and 2.

use bytes::Bytes;

use super::BrokerId;
use super::codec::{messages, response};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 1..=2, flexible 0;

    /// Records acquired, and results of acknowledgements.
    pub struct ShareFetchResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// Error code of the whole request, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
        /// How long acquired records stay locked, in ms.
        pub acquisition_lock_timeout_ms: i32 = 0;
        /// The topics.
        pub responses: Vec<ShareFetchableTopicResponse> = Vec::new();
        /// Addresses of the leaders named in `current_leader`.
        pub node_endpoints: Vec<NodeEndpoint> = Vec::new();
    }

    /// One topic.
    pub struct ShareFetchableTopicResponse {
        /// Its id.
        pub topic_id: Uuid = Uuid::nil();
        /// Its partitions.
        pub partitions: Vec<PartitionData> = Vec::new();
    }

    /// One partition.
    pub struct PartitionData {
        /// Its index.
        pub partition_index: i32 = 0;
        /// Error code of the fetch, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
        /// Error code of the acknowledgements, or 0.
        pub acknowledge_error_code: i16 = 0;
        /// A text for people, or null.
        pub acknowledge_error_message: Option<StrBytes> = None;
        /// The leader, when it is another broker than the client thought.
        pub current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch::default();
        /// Record batches; never null on the wire of these versions.
        pub records: Option<Bytes> = Some(Bytes::new());
        /// Which of the records are acquired.
        pub acquired_records: Vec<AcquiredRecords> = Vec::new();
    }

    /// A leader and its epoch.
    pub struct LeaderIdAndEpoch {
        /// The broker, or -1.
        pub leader_id: i32 = 0;
        /// Its epoch, or -1.
        pub leader_epoch: i32 = 0;
    }

    /// A range of acquired records.
    pub struct AcquiredRecords {
        /// First offset.
        pub first_offset: i64 = 0;
        /// Last offset, inclusive.
        pub last_offset: i64 = 0;
        /// How often these records have been delivered, this time included.
        pub delivery_count: i16 = 0;
    }

    /// The address of a broker.
    pub struct NodeEndpoint {
        /// The broker.
        pub node_id: BrokerId = BrokerId(0);
        /// Its host name.
        pub host: StrBytes = StrBytes::new();
        /// Its port.
        pub port: i32 = 0;
        /// Its rack, or null.
        pub rack: Option<StrBytes> = None;
    }
}

response!(ShareFetchResponse = api_key::SHARE_FETCH);
