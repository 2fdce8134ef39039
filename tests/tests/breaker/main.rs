//! The circuit breaker of dead letters (KIP-1316, a draft).

mod failing;
mod lifetime;
mod resume;
mod scene;
mod trip;
