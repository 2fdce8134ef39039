//! Dead letters (KIP-1191): records that a share group gives up, as the wire shows them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod checks;
mod letters;
mod restart;
mod retries;
mod scene;
