//! Every request and response that we can read and write, as plain structs.
//!
//! Most are `kafka-protocol`'s (Kafka 4.1) under its own names. Where Kafka 4.4 has versions that it
//! lacks, a module of ours with the same name takes the place of its module. Two APIs are Ottla's own.

mod codec;

pub mod alter_share_group_delivery_request;
pub mod alter_share_group_delivery_response;
pub mod api_versions_request;
pub mod api_versions_response;
pub mod delete_groups_request;
pub mod delete_groups_response;
pub mod describe_log_dirs_request;
pub mod describe_log_dirs_response;
pub mod describe_share_group_delivery_request;
pub mod describe_share_group_delivery_response;
pub mod describe_share_group_offsets_request;
pub mod describe_share_group_offsets_response;
pub mod list_offsets_request;
pub mod list_offsets_response;
pub mod offset_commit_request;
pub mod offset_fetch_request;
pub mod share_acknowledge_request;
pub mod share_acknowledge_response;
pub mod share_fetch_request;
pub mod share_fetch_response;

pub use kafka_protocol::messages::*;

pub use self::alter_share_group_delivery_request::AlterShareGroupDeliveryRequest;
pub use self::alter_share_group_delivery_response::AlterShareGroupDeliveryResponse;
pub use self::api_versions_request::ApiVersionsRequest;
pub use self::api_versions_response::ApiVersionsResponse;
pub use self::delete_groups_request::DeleteGroupsRequest;
pub use self::delete_groups_response::DeleteGroupsResponse;
pub use self::describe_log_dirs_request::DescribeLogDirsRequest;
pub use self::describe_log_dirs_response::DescribeLogDirsResponse;
pub use self::describe_share_group_delivery_request::DescribeShareGroupDeliveryRequest;
pub use self::describe_share_group_delivery_response::DescribeShareGroupDeliveryResponse;
pub use self::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequest;
pub use self::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponse;
pub use self::list_offsets_request::ListOffsetsRequest;
pub use self::list_offsets_response::ListOffsetsResponse;
pub use self::offset_commit_request::OffsetCommitRequest;
pub use self::offset_fetch_request::OffsetFetchRequest;
pub use self::share_acknowledge_request::ShareAcknowledgeRequest;
pub use self::share_acknowledge_response::ShareAcknowledgeResponse;
pub use self::share_fetch_request::ShareFetchRequest;
pub use self::share_fetch_response::ShareFetchResponse;
