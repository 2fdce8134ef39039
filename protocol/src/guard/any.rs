//! Every request that has a type: decoding by key, for fuzzers and tools.

use bytes::Bytes;

use super::{DecodeError, check, decode};
use crate::frame::{self, FrameError, RequestHeader};
use crate::{Request, messages};

/// Calls a macro with the names of all request types.
macro_rules! every_request {
    ($then:ident) => {
        $then! {
            AddOffsetsToTxnRequest
            AddPartitionsToTxnRequest
            AddRaftVoterRequest
            AllocateProducerIdsRequest
            AlterClientQuotasRequest
            AlterConfigsRequest
            AlterPartitionReassignmentsRequest
            AlterPartitionRequest
            AlterReplicaLogDirsRequest
            AlterShareGroupDeliveryRequest
            AlterShareGroupOffsetsRequest
            AlterUserScramCredentialsRequest
            ApiVersionsRequest
            AssignReplicasToDirsRequest
            BeginQuorumEpochRequest
            BrokerHeartbeatRequest
            BrokerRegistrationRequest
            ConsumerGroupDescribeRequest
            ConsumerGroupHeartbeatRequest
            ControllerRegistrationRequest
            CreateAclsRequest
            CreateDelegationTokenRequest
            CreatePartitionsRequest
            CreateTopicsRequest
            DeleteAclsRequest
            DeleteGroupsRequest
            DeleteRecordsRequest
            DeleteShareGroupOffsetsRequest
            DeleteShareGroupStateRequest
            DeleteTopicsRequest
            DescribeAclsRequest
            DescribeClientQuotasRequest
            DescribeClusterRequest
            DescribeConfigsRequest
            DescribeDelegationTokenRequest
            DescribeGroupsRequest
            DescribeLogDirsRequest
            DescribeProducersRequest
            DescribeQuorumRequest
            DescribeShareGroupDeliveryRequest
            DescribeShareGroupOffsetsRequest
            DescribeTopicPartitionsRequest
            DescribeTransactionsRequest
            DescribeUserScramCredentialsRequest
            ElectLeadersRequest
            EndQuorumEpochRequest
            EndTxnRequest
            EnvelopeRequest
            ExpireDelegationTokenRequest
            FetchRequest
            FetchSnapshotRequest
            FindCoordinatorRequest
            GetTelemetrySubscriptionsRequest
            HeartbeatRequest
            IncrementalAlterConfigsRequest
            InitProducerIdRequest
            InitializeShareGroupStateRequest
            JoinGroupRequest
            LeaveGroupRequest
            ListConfigResourcesRequest
            ListGroupsRequest
            ListOffsetsRequest
            ListPartitionReassignmentsRequest
            ListTransactionsRequest
            MetadataRequest
            OffsetCommitRequest
            OffsetDeleteRequest
            OffsetFetchRequest
            OffsetForLeaderEpochRequest
            ProduceRequest
            PushTelemetryRequest
            ReadShareGroupStateRequest
            ReadShareGroupStateSummaryRequest
            RemoveRaftVoterRequest
            RenewDelegationTokenRequest
            SaslAuthenticateRequest
            SaslHandshakeRequest
            ShareAcknowledgeRequest
            ShareFetchRequest
            ShareGroupDescribeRequest
            ShareGroupHeartbeatRequest
            SyncGroupRequest
            TxnOffsetCommitRequest
            UnregisterBrokerRequest
            UpdateFeaturesRequest
            UpdateRaftVoterRequest
            VoteRequest
            WriteShareGroupStateRequest
            WriteTxnMarkersRequest
        }
    };
}
#[cfg(test)]
pub(crate) use every_request;

/// A frame that is not a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The header.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The body.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Takes a frame (without its length prefix) through all that a connection does before it dispatches,
/// and drops the message: one call for a fuzzer.
pub fn parse_frame(mut frame: Bytes) -> Result<RequestHeader, ParseError> {
    let header = frame::request_header(&mut frame)?;
    decode_any(header.api_key, header.api_version, frame)?;
    Ok(header)
}

/// Decodes the body of any request by its key and drops the message.
///
/// A request that has a shape but no type, or a version that its type lacks, is only walked.
pub fn decode_any(key: i16, version: i16, body: Bytes) -> Result<(), DecodeError> {
    macro_rules! by_key {
        ($($request:ident)*) => {
            match key {
                $(<messages::$request as Request>::KEY if has::<messages::$request>(version) => {
                    decode::<messages::$request>(body, version).map(drop)
                })*
                _ => check(key, version, &body),
            }
        };
    }
    every_request!(by_key)
}

fn has<R: Request>(version: i16) -> bool {
    (R::VERSIONS.min..=R::VERSIONS.max).contains(&version)
}
