//! The circuit breaker of dead letters (KIP-1316, a draft).

mod lifetime;
mod resume;
mod scene;
mod trip;
