//! Runs a loom model and says how many executions it took.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// Explores `model` to its end: without a limit on time or permutations loom returns only when every
/// execution within `LOOM_MAX_PREEMPTIONS` was tried, and panics when one of them fails.
#[allow(
    clippy::print_stdout,
    reason = "the number of executions is part of the result"
)]
pub(crate) fn explore(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.max_duration = None;
    builder.max_permutations = None;
    let bound = builder.preemption_bound;
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("loom: {name}: {executions} executions, preemption bound {bound:?}");
}

/// A waker that counts. The count is not part of what loom explores.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
