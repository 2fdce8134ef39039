//! Consumer groups (KIP-848), through the public API of the coordinator.
#![cfg(not(ottla_loom))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod assignors;
mod heartbeat;
mod migration;
mod random;
mod scale;
mod support;
mod topics;
