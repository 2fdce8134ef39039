//! Bad input over the wire: whatever arrives, at most one connection ends, nothing wrong is stored,
//! and memory stays within a small multiple of what was sent.
#![allow(clippy::unwrap_used, reason = "tests")]

mod again;
mod batches;
mod disk;
mod frames;
mod memory;
mod requests;
mod startup;
mod support;
mod unknown;
mod values;
