//! `AlterShareGroupDelivery` request, version 0: an API of Ottla's own (KIP-1249, a draft).

use super::codec::{messages, request};
use super::{AlterShareGroupDeliveryResponse, GroupId};
use crate::{StrBytes, api_key};

messages! {
    versions 0..=0, flexible 0;

    /// Pauses or resumes the delivery of a share group. For the group's coordinator only.
    pub struct AlterShareGroupDeliveryRequest {
        /// The share group.
        pub group_id: GroupId = GroupId::default();
        /// True to pause, false to resume.
        pub pause: bool = false;
        /// Why, for people: at most 256 characters, or null.
        pub reason: Option<StrBytes> = None;
    }
}

request!(AlterShareGroupDeliveryRequest = api_key::ALTER_SHARE_GROUP_DELIVERY => AlterShareGroupDeliveryResponse);
