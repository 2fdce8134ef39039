//! `AlterShareGroupDelivery` response, version 0: an API of Ottla's own (KIP-1249, a draft).

use super::codec::{messages, response};
use crate::{StrBytes, api_key};

messages! {
    versions 0..=0, flexible 0;

    /// Whether the share group was paused or resumed.
    pub struct AlterShareGroupDeliveryResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
    }
}

response!(AlterShareGroupDeliveryResponse = api_key::ALTER_SHARE_GROUP_DELIVERY);
