//! The locks and atomics of the loom'd kernels (`publish.rs`, `flush.rs`): std's, or loom's under
//! `--cfg ottla_loom`. Everything else of this crate uses std directly.

#[cfg(ottla_loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};
#[cfg(not(ottla_loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};
