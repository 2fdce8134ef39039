//! The purgatory: parked requests, and lists of those that wait for the same thing.
//!
//! A request that finds nothing to do parks like this, and cannot miss a wake-up:
//!
//! ```text
//! let registration = list.register(&signal);
//! loop {
//!     signal.rearm();
//!     if let Some(answer) = look_again() { return answer; }
//!     match signal.wait().await { Fired => continue, Expired | Closed => return what_there_is() }
//! }
//! ```
//!
//! Whoever changes the thing waited for publishes first and calls [`WaitList::wake_all`] after it has
//! released its locks. Either the look after `rearm` sees what was published, or the wake-up comes
//! after the registration and fires the signal.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, Mutex, lock};

/// Why a parked request woke up. The greater value wins when several arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Woken {
    /// What it waited for may have happened: look again.
    Fired,
    /// Its waiting time is over. Kept over [`Signal::rearm`].
    Expired,
    /// Its client is gone, or the broker stops. Kept over [`Signal::rearm`].
    Closed,
}

#[derive(Debug, Default)]
struct SignalState {
    woken: Option<Woken>,
    waker: Option<Waker>,
}

/// The wake-up of one parked request. It fires at most once until it is armed again; one task waits
/// on it at a time.
#[derive(Debug)]
pub struct Signal {
    state: Mutex<SignalState>,
}

impl Signal {
    /// An armed signal.
    #[allow(
        clippy::new_ret_no_self,
        reason = "a signal is always shared with those who wake it"
    )]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(SignalState::default()),
        })
    }

    /// Wakes the waiting task, unless it was already woken since the last [`Signal::rearm`].
    ///
    /// The task's waker runs after the signal's own lock is released; the caller must hold no lock
    /// that the woken task needs.
    pub fn wake(&self, why: Woken) {
        let waker = {
            let mut state = lock(&self.state);
            state.woken = state.woken.max(Some(why));
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Forgets a [`Woken::Fired`], so that the next one wakes again. `Expired` and `Closed` stay:
    /// they are said once and stay true.
    pub fn rearm(&self) {
        let mut state = lock(&self.state);
        if state.woken == Some(Woken::Fired) {
            state.woken = None;
        }
    }

    /// What has woken the signal, if anything has.
    pub fn woken(&self) -> Option<Woken> {
        lock(&self.state).woken
    }

    /// Ready once woken, and until [`Signal::rearm`]; otherwise keeps the context's waker, in the
    /// place of any earlier one.
    pub fn poll_woken(&self, cx: &mut Context<'_>) -> Poll<Woken> {
        let mut state = lock(&self.state);
        if let Some(why) = state.woken {
            return Poll::Ready(why);
        }
        if !state
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// A future that ends when the signal is woken.
    pub fn wait(&self) -> Wait<'_> {
        Wait { signal: self }
    }
}

/// The future of [`Signal::wait`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Wait<'a> {
    signal: &'a Signal,
}

impl Future for Wait<'_> {
    type Output = Woken;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Woken> {
        self.signal.poll_woken(cx)
    }
}

#[derive(Debug, Default)]
struct Entries {
    next_id: u64,
    signals: BTreeMap<u64, Arc<Signal>>,
}

/// The parked requests that wait for one thing. Cloning gives another handle on the same list.
#[derive(Clone, Debug)]
pub struct WaitList {
    entries: Arc<Mutex<Entries>>,
}

impl Default for WaitList {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitList {
    /// An empty list.
    pub fn new() -> Self {
        Self {
            entries: Arc::new(Mutex::new(Entries::default())),
        }
    }

    /// Adds `signal` until the registration is dropped. Several registrations of one signal, here or
    /// on other lists, are fine.
    pub fn register(&self, signal: &Arc<Signal>) -> Registration {
        let mut entries = lock(&self.entries);
        let id = entries.next_id;
        entries.next_id += 1;
        entries.signals.insert(id, Arc::clone(signal));
        Registration {
            list: self.clone(),
            id,
        }
    }

    /// Fires every registered signal, in the order of registration, after the list's own lock is
    /// released. The registrations stay.
    pub fn wake_all(&self) {
        let signals: Vec<Arc<Signal>> = {
            let entries = lock(&self.entries);
            if entries.signals.is_empty() {
                return;
            }
            entries.signals.values().map(Arc::clone).collect()
        };
        for signal in signals {
            signal.wake(Woken::Fired);
        }
    }

    /// How many registrations there are.
    pub fn len(&self) -> usize {
        lock(&self.entries).signals.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A place on a [`WaitList`], given up when dropped.
#[derive(Debug)]
#[must_use = "dropping it leaves the list"]
pub struct Registration {
    list: WaitList,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The signal may be the last handle of its request; it is dropped outside the lock.
        let signal = lock(&self.list.entries).signals.remove(&self.id);
        drop(signal);
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use super::{Signal, WaitList, Woken};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_signal_fires_once_until_it_is_armed_again() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let signal = Signal::new();
        assert_eq!(signal.poll_woken(&mut cx), Poll::Pending);
        signal.wake(Woken::Fired);
        signal.wake(Woken::Fired);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(signal.poll_woken(&mut cx), Poll::Ready(Woken::Fired));
        signal.rearm();
        assert_eq!(signal.poll_woken(&mut cx), Poll::Pending);
        signal.wake(Woken::Fired);
        assert_eq!(count.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn the_end_of_the_wait_outlives_rearm_and_a_later_fire() {
        let signal = Signal::new();
        signal.wake(Woken::Expired);
        signal.wake(Woken::Fired);
        signal.rearm();
        assert_eq!(signal.woken(), Some(Woken::Expired));
        signal.wake(Woken::Closed);
        assert_eq!(signal.woken(), Some(Woken::Closed));
    }

    #[test]
    fn a_list_wakes_all_who_are_registered_and_forgets_those_who_left() {
        let list = WaitList::new();
        let (one, two) = (Signal::new(), Signal::new());
        let first = list.register(&one);
        let _second = list.register(&two);
        assert_eq!(list.len(), 2);
        drop(first);
        list.wake_all();
        assert_eq!(one.woken(), None);
        assert_eq!(two.woken(), Some(Woken::Fired));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn the_future_of_a_signal_ends_with_the_reason() {
        let waker = Waker::noop();
        let mut cx = Context::from_waker(waker);
        let signal = Signal::new();
        let mut wait = pin!(signal.wait());
        assert_eq!(wait.as_mut().poll(&mut cx), Poll::Pending);
        signal.wake(Woken::Closed);
        assert_eq!(wait.as_mut().poll(&mut cx), Poll::Ready(Woken::Closed));
    }

    use std::future::Future;
}
