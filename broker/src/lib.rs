//! Ottla, Kafka's little sister: a small, fast broker for development and tests.
//!
//! The binary is a thin shell around [`process::Process`]. A test may embed the same:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! let ottla = ottla::Builder::new().set("listeners", "PLAINTEXT://127.0.0.1:0").start().await?;
//! println!("bootstrap.servers={}", ottla.bootstrap());
//! ottla.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! ARCHITECTURE.md shows how the parts fit.

pub mod acquire;
pub mod admin;
pub mod api;
mod append;
pub mod broker;
pub mod builder;
mod cleaner;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod connection;
pub mod consumer_protocol;
pub mod context;
pub mod dead_letters;
pub mod deadlines;
pub mod deliveries;
#[cfg(test)]
mod docs_tests;
pub mod error_code;
pub mod features;
pub mod fetch_sessions;
pub mod groups;
mod leaders;
mod log_config;
pub mod metrics;
pub mod node;
pub mod process;
mod records;
pub mod seed;
pub mod server;
pub mod share_state;
pub mod shares;
pub mod start_error;
mod topic_pattern;

pub use builder::Builder;
