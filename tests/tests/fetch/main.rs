//! Fetch beyond one partition at a time: sessions (KIP-227) and replicas that consumers read from
//! (KIP-392).
#![allow(clippy::unwrap_used, reason = "tests")]

mod followers;
mod sessions;
