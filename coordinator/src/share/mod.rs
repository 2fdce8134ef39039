//! Share groups' records (KIP-932): which are available, who holds which, and what is persisted.

mod batches;
pub mod session;
pub mod state;
pub mod types;
