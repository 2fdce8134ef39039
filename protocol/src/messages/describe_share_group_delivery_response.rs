//! `DescribeShareGroupDelivery` response, version 0: an API of Ottla's own (KIP-1316, a draft).

use super::GroupId;
use super::codec::{messages, response};
use crate::{StrBytes, api_key};

messages! {
    versions 0..=0, flexible 0;

    /// Delivery state and circuit breaker of share groups.
    pub struct DescribeShareGroupDeliveryResponse {
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0;
        /// One result per group asked for, in that order.
        pub groups: Vec<DescribedShareGroupDelivery> = Vec::new();
    }

    /// One share group. After an error, the fields behind the id are at their defaults.
    pub struct DescribedShareGroupDelivery {
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// A text for people, or null.
        pub error_message: Option<StrBytes> = None;
        /// The group.
        pub group_id: GroupId = GroupId::default();
        /// `RUNNING` or `PAUSED`.
        pub delivery_state: StrBytes = StrBytes::new();
        /// Why it is paused: `ADMIN`, `DLQ_CIRCUIT_BREAKER_TRIPPED` or `DLQ_WRITE_TIMEOUTS`; or null.
        pub pause_reason: Option<StrBytes> = None;
        /// Since when, in ms since the epoch; -1 while running, or when a config alone pauses it.
        pub paused_since_ms: i64 = -1;
        /// What was said when it was paused, or null.
        pub note: Option<StrBytes> = None;
        /// What was said when it was last resumed, or null; forgotten with the coordinator.
        pub last_resume_reason: Option<StrBytes> = None;
        /// When it will resume by itself, in ms since the epoch; -1 when it will not.
        pub auto_resume_at_ms: i64 = -1;
        /// Whether the circuit breaker is on.
        pub breaker_enabled: bool = false;
        /// Whether the breaker's trip is what the group's record holds.
        pub tripped: bool = false;
        /// The rate of letters at which it trips, in (0, 1].
        pub threshold: f64 = 0.0;
        /// The length of the window, in ms.
        pub window_ms: i64 = 0;
        /// The buckets of a window.
        pub buckets: i32 = 0;
        /// The fewest records in a window at which it trips.
        pub min_messages: i64 = 0;
        /// Whether letters given up pause the group, too.
        pub timeout_pause_enabled: bool = false;
        /// Letters written to letters and records delivered, over the counts below; 0 without any.
        pub rate: f64 = 0.0;
        /// The buckets of the window, oldest first; the last one is still being filled.
        pub counts: Vec<DeliveryCounts> = Vec::new();
        /// Letters written in this life of the broker.
        pub letters_written: i64 = 0;
        /// Records whose letter was not written in time, in this life of the broker.
        pub write_timeouts: i64 = 0;
        /// Letters of such records that were written all the same.
        pub late_writes: i64 = 0;
        /// Records whose letter was given up in this life of the broker, by reason.
        pub given_up: Vec<LettersGivenUp> = Vec::new();
        /// Records whose letter was given up, over the counts above.
        pub given_up_in_window: i64 = 0;
        /// The topic of dead letters, or an empty string.
        pub dlq_topic: StrBytes = StrBytes::new();
        /// Why no letters are written although there is a topic, or null.
        pub dlq_disabled_reason: Option<StrBytes> = None;
    }

    /// What happened to records in one bucket of the window.
    pub struct DeliveryCounts {
        /// When the bucket began, in ms since the epoch.
        pub bucket_start_ms: i64 = 0;
        /// Records acknowledged.
        pub delivered: i64 = 0;
        /// Letters written.
        pub dlq_written: i64 = 0;
        /// Records whose letter was given up.
        pub given_up: i64 = 0;
    }

    /// Letters given up for one reason.
    pub struct LettersGivenUp {
        /// The reason's name.
        pub reason: StrBytes = StrBytes::new();
        /// So many records.
        pub records: i64 = 0;
    }
}

response!(DescribeShareGroupDeliveryResponse = api_key::DESCRIBE_SHARE_GROUP_DELIVERY);
