//! Topics, their configurations, offsets and features: what the admin requests answer over the wire.
#![allow(clippy::unwrap_used, reason = "tests")]

mod admin_port;
mod configs;
mod create;
mod features;
mod group_configs;
mod inside;
mod log_dirs;
mod replicas;
mod retention;
