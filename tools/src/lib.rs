//! Command-line tools for Ottla, and for any other broker that speaks the Kafka protocol.
//!
//! A small client of its own ([`client`]) and what is built on it: `ottla share-groups`
//! ([`share_groups`]). Nothing here knows the broker's inside: only the wire.

pub mod client;
mod clock;
mod files;
pub mod share_groups;
