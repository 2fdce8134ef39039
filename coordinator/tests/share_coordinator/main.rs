//! Share sessions and the share coordinator's durable state.
#![cfg(not(ottla_loom))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod merging;
mod sessions;
mod state;
