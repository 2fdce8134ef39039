//! The one place that names synchronisation primitives: the standard library's, or loom's when the
//! models run (`--cfg ottla_loom`). `wait.rs` and `share/cell.rs` import nothing else.

#[cfg(not(ottla_loom))]
pub use std::sync::{Arc, Mutex, MutexGuard, atomic};

#[cfg(ottla_loom)]
pub use loom::sync::{Arc, Mutex, MutexGuard, atomic};

/// Locks `mutex`, also when a thread panicked while it held the lock: every critical section of
/// this crate leaves its data whole at each point where it can unwind.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
