//! Groups, share partitions and their rules, as pure state machines: inputs and `now` in, answers
//! and effects out. No clock, no randomness, no I/O; the same inputs give the same outputs.

pub mod group;
pub mod share;
pub mod sync;
pub mod types;
pub mod wait;
