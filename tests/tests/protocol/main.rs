//! What went wrong elsewhere, row by row of the scenarios about clients and the protocol. Each test
//! names its rows; docs/scenarios.md lists them all.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bootstrap;
mod idempotence;
mod limits;
mod ordering;
mod records;
mod timestamps;
mod topics;
