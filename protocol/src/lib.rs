//! See the crate's description.

pub mod batch;
pub mod compression;
