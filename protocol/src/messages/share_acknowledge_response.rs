//! `ShareAcknowledge` response, versions 1 and 2.

use super::BrokerId;
use super::codec::{messages, response};
use crate::{StrBytes, Uuid, api_key};

messages! {
    versions 1..=2, flexible 0;

    /// Results of acknowledgements.
    pub struct ShareAcknowledgeResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// Error code of the whole request, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
        /// How long renewed records stay locked, in ms.
        pub acquisition_lock_timeout_ms: i32 = 0, since 2;
        /// The topics.
        pub responses: Vec<ShareAcknowledgeTopicResponse> = Vec::new();
        /// Addresses of the leaders named in `current_leader`.
        pub node_endpoints: Vec<NodeEndpoint> = Vec::new();
    }

    /// One topic.
    pub struct ShareAcknowledgeTopicResponse {
        /// Its id.
        pub topic_id: Uuid = Uuid::nil();
        /// Its partitions.
        pub partitions: Vec<PartitionData> = Vec::new();
    }

    /// One partition.
    pub struct PartitionData {
        /// Its index.
        pub partition_index: i32 = 0;
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
        /// The leader, when it is another broker than the client thought.
        pub current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch::default();
    }

    /// A leader and its epoch.
    pub struct LeaderIdAndEpoch {
        /// The broker, or -1.
        pub leader_id: i32 = 0;
        /// Its epoch, or -1.
        pub leader_epoch: i32 = 0;
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

response!(ShareAcknowledgeResponse = api_key::SHARE_ACKNOWLEDGE);
