//! `DescribeShareGroupDelivery` request, version 0: an API of Ottla's own (KIP-1316, a draft).

use super::codec::{messages, request};
use super::{DescribeShareGroupDeliveryResponse, GroupId};
use crate::api_key;

messages! {
    versions 0..=0, flexible 0;

    /// Asks for delivery state and circuit breaker of share groups. For their coordinator only.
    pub struct DescribeShareGroupDeliveryRequest {
        /// The share groups.
        pub group_ids: Vec<GroupId> = Vec::new();
    }
}

request!(DescribeShareGroupDeliveryRequest = api_key::DESCRIBE_SHARE_GROUP_DELIVERY => DescribeShareGroupDeliveryResponse);
