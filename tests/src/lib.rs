//! What the integration tests share: a broker in this process or in one of its own, and a client
//! that says on the wire exactly what a test wants said.
//!
//! ```no_run
//! # async fn example() {
//! use ottla_tests::{Embedded, values};
//!
//! let broker = Embedded::start().await;
//! let mut client = broker.client().await;
//! client.create_topic("orders", 1).await;
//! client.produce_values("orders", 0, &["one", "two"]).await;
//! assert_eq!(values(&client.fetch_all("orders", 0, 0).await), ["one", "two"]);
//! # }
//! ```
//!
//! A test that fails prints the last bytes of its connection as a hexdump. Nothing here sleeps: a
//! wait is for an event, and bounded by [`PATIENCE_MS`] on the wire's time.

mod child;
mod classic;
mod client;
mod consumer;
mod delivery;
mod embedded;
mod flow;
mod hex;
mod http;
mod leaders;
mod offsets;
mod queue;
mod records;
mod share;
mod share_admin;
mod share_ask;
mod topics;

pub use child::{Child, Exited, Launch};
pub use classic::ClassicMember;
pub use client::{Client, Sent};
pub use consumer::{Consumer, heartbeat_error};
pub use embedded::{Embedded, Settings};
pub use flow::{Account, Delivered, Flow, Offsets, Rule};
pub use hex::hexdump;
pub use http::{HttpAnswer, http};
pub use leaders::Told;
pub use offsets::{Held, Named};
pub use queue::Queue;
pub use records::{Fetched, batch_of, decode_batches, values};
pub use share::{Acknowledged, Code, Member, OK, ShareFetched, bare, says};
pub use share_ask::{ACCEPT, Ask, At, GAP, REJECT, RELEASE, RENEW};

/// How long anything on the wire may take before a test gives up, in milliseconds.
pub const PATIENCE_MS: u64 = 30_000;

/// Where the clock of an embedded broker stands at first: 2026-01-01 in milliseconds since the epoch.
pub const START_MS: i64 = 1_767_225_600_000;

/// The wall clock, in milliseconds since the epoch: for brokers in a process of their own.
pub fn wall_ms() -> i64 {
    ottla::clock::Clock::real().now()
}

/// Waits for `future`, at most [`PATIENCE_MS`].
pub async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match ottla::clock::wire_timeout(PATIENCE_MS, future).await {
        Some(output) => output,
        None => panic!("{what}: nothing happened for {PATIENCE_MS} ms"),
    }
}
