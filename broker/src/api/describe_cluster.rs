//! DescribeCluster (key 60), versions 0-2. KIP-700, KIP-919.
//!
//! - Endpoint type 1 (brokers) is served; 2 (controllers) is not, and unknown types are refused, as
//!   on Kafka's broker listener.
//! - v2 may ask for fenced brokers: the logical brokers that are stopped.

use ottla_protocol::messages::describe_cluster_response::{
    DescribeClusterBroker, DescribeClusterResponse,
};
use ottla_protocol::messages::{BrokerId, DescribeClusterRequest};
use ottla_protocol::{ErrorCode, StrBytes};

use super::operations;
use crate::context::Cx;

pub(super) async fn handle(cx: &Cx, request: DescribeClusterRequest) -> DescribeClusterResponse {
    let response = DescribeClusterResponse::default().with_endpoint_type(1);
    if cx.version >= 1 && request.endpoint_type != 1 {
        let (code, message) = if request.endpoint_type == 2 {
            (
                ErrorCode::MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
            )
        } else {
            (
                ErrorCode::UNSUPPORTED_ENDPOINT_TYPE,
                "Unsupported endpoint type",
            )
        };
        return response
            .with_error_code(code.0)
            .with_error_message(Some(StrBytes::from_static_str(message)));
    }
    let mut brokers: Vec<_> = cx
        .broker
        .endpoints(&cx.connection)
        .into_iter()
        .map(|e| {
            DescribeClusterBroker::default()
                .with_broker_id(BrokerId(e.id))
                .with_host(StrBytes::from_string(e.host))
                .with_port(e.port)
                .with_rack(e.rack.map(StrBytes::from_string))
        })
        .collect();
    if request.include_fenced_brokers {
        let stopped = cx
            .broker
            .cluster
            .brokers()
            .into_iter()
            .filter(|(_, b)| !b.alive);
        brokers.extend(stopped.map(|(id, b)| {
            DescribeClusterBroker::default()
                .with_broker_id(BrokerId(id))
                .with_port(-1)
                .with_rack(b.rack.map(StrBytes::from_string))
                .with_is_fenced(true)
        }));
    }
    response
        .with_error_message(None)
        .with_cluster_id(StrBytes::from_string(cx.broker.cluster_id().to_owned()))
        .with_controller_id(BrokerId(cx.broker.cluster.controller_id()))
        .with_brokers(brokers)
        .with_cluster_authorized_operations(operations::told(
            request.include_cluster_authorized_operations,
            operations::CLUSTER,
        ))
}
