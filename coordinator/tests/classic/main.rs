//! Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
#![allow(clippy::unwrap_used, reason = "tests")]

mod join;
mod leave;
mod property;
mod rebalance;
mod restart;
mod scale;
mod static_members;
mod support;
mod sync;
