//! Groups: one coordinator per partition of `__consumer_offsets`.

pub mod plan;
pub mod records;
