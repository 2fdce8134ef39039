//! `ottla share-groups` against a broker: what it prints for each flag, and what it does.
//!
//! Texts that are said to be Kafka's are what `kafka-share-groups.sh` of 4.4.0 printed about the same
//! groups on a broker of its own.
#![allow(clippy::unwrap_used, reason = "tests")]

mod delivery;
mod describe;
mod offsets;
mod refusals;
mod scene;
