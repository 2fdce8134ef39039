//! What the log promises, seen through its public API.
#![cfg(not(ottla_loom))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bed;
mod compaction;
mod faults;
mod idempotence;
mod layout;
mod model;
mod reading;
mod recovery;
mod retention;
mod store;
mod transactions;
