//! Share groups' records (KIP-932): which are available, who holds which, and what is persisted.

mod acknowledge;
mod acquire;
mod batches;
pub mod breaker;
pub mod cell;
pub mod delivery;
pub mod delivery_cell;
mod in_flight;
pub mod letters;
mod locks;
pub mod partition;
mod persist;
pub mod session;
mod spans;
pub mod state;
mod state_records;
pub mod types;
