//! Groups, as one coordinator shard sees them: through plans, records and deadlines.
#![cfg(not(ottla_loom))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod assignment;
mod assignor;
mod committed;
mod delivery;
mod heartbeat;
mod offsets;
mod restart;
mod scale;
mod support;
