//! Who must be called when: the one driver of everything that falls due.
//!
//! Machines keep their deadlines as data; here each owner has at most one entry, its earliest.
//! The driver task calls owners in the order of their deadlines, with `now` set by the [`Clock`].
//! [`Deadlines::advance`] walks the same entries one by one, so that moving the clock by N ms in one
//! step does what N steps of one millisecond do.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ottla_coordinator::types::Ts;
use tokio::sync::Notify;

use crate::clock::Clock;

/// Something with deadlines. Called without any lock of this module held.
pub trait Due: Send + Sync {
    /// Does all that is due at `now` and returns the next deadline in state time.
    fn on_deadline(&self, now: Ts) -> Option<Ts>;

    /// Waits for what [`Due::on_deadline`] left to another thread: who advances the clock waits, the
    /// driver does not.
    fn settle(&self) {}
}

/// Names one owner of deadlines for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(u64);

/// An owner's own hold on its deadlines, from the time at which it can be called until it ends them.
#[derive(Debug, Default)]
pub struct Registration(Mutex<Option<OwnerId>>);

impl Registration {
    fn lock(&self) -> MutexGuard<'_, Option<OwnerId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `owner`, whose registration this is, be called when it is due.
    pub fn begin<T: Due + 'static>(&self, deadlines: &Deadlines, owner: &Arc<T>) {
        let owner: Weak<dyn Due> = Arc::downgrade(&(Arc::clone(owner) as Arc<dyn Due>));
        *self.lock() = Some(deadlines.register(owner));
    }

    /// Sets the earliest deadline to what `next` answers, which is asked only while the registration
    /// lasts.
    pub fn set(&self, deadlines: &Deadlines, next: impl FnOnce() -> Option<Ts>) {
        // Asked and set under one lock: of two threads the later one must not set the older answer.
        let owner = self.lock();
        if let Some(owner) = *owner {
            deadlines.set(owner, next());
        }
    }

    /// Nothing falls due any more.
    pub fn end(&self, deadlines: &Deadlines) {
        let owner = self.lock().take();
        if let Some(owner) = owner {
            deadlines.remove(owner);
        }
    }
}

#[derive(Default)]
struct Table {
    next_id: u64,
    owners: HashMap<OwnerId, (Weak<dyn Due>, Option<Ts>)>,
    order: BTreeSet<(Ts, OwnerId)>,
}

/// The table of deadlines.
#[derive(Default)]
pub struct Deadlines {
    table: Mutex<Table>,
    /// Told when the earliest deadline may have moved forward.
    changed: Notify,
    /// Held while due owners run, so that the driver and `advance` never interleave.
    running: Mutex<()>,
    /// Owners whose other thread works for anybody, not only for their own deadlines.
    workers: Mutex<Vec<Weak<dyn Due>>>,
    stopped: AtomicBool,
}

impl std::fmt::Debug for Deadlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadlines")
            .field("pending", &self.lock().order.len())
            .finish()
    }
}

impl Deadlines {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an owner; it is forgotten once its last `Arc` is gone.
    pub fn register(&self, owner: Weak<dyn Due>) -> OwnerId {
        let mut table = self.lock();
        table.next_id += 1;
        let id = OwnerId(table.next_id);
        table.owners.insert(id, (owner, None));
        id
    }

    /// Sets the owner's earliest deadline.
    pub fn set(&self, id: OwnerId, at: Option<Ts>) {
        self.update(id, |_| at);
    }

    /// Brings the owner's earliest deadline forward to `at`, unless it is earlier.
    pub fn bring_forward(&self, id: OwnerId, at: Ts) {
        self.update(id, |held| Some(held.map_or(at, |held| held.min(at))));
    }

    /// Sets the owner's earliest deadline to what becomes of the one that it has.
    fn update(&self, id: OwnerId, next: impl FnOnce(Option<Ts>) -> Option<Ts>) {
        let mut table = self.lock();
        let Some((_, held)) = table.owners.get_mut(&id) else {
            return;
        };
        let old = *held;
        let at = next(old);
        if old == at {
            return;
        }
        *held = at;
        if let Some(old) = old {
            table.order.remove(&(old, id));
        }
        let mut earliest = false;
        if let Some(at) = at {
            earliest = table.order.first().is_none_or(|&(first, _)| at < first);
            table.order.insert((at, id));
        }
        drop(table);
        if earliest {
            self.changed.notify_one();
        }
    }

    /// Forgets an owner.
    pub fn remove(&self, id: OwnerId) {
        let mut table = self.lock();
        if let Some((_, Some(at))) = table.owners.remove(&id) {
            table.order.remove(&(at, id));
        }
    }

    /// `advance` waits for this owner ([`Due::settle`]) before it begins, and after each owner that
    /// it calls.
    pub fn add_worker(&self, owner: Weak<dyn Due>) {
        self.workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(owner);
    }

    fn settle_workers(&self) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in workers.iter().filter_map(Weak::upgrade) {
            worker.settle();
        }
    }

    fn earliest(&self) -> Option<Ts> {
        self.lock().order.first().map(|&(at, _)| at)
    }

    /// Takes the first entry that is due at `now`.
    fn take_due(&self, now: Ts) -> Option<(OwnerId, Option<Arc<dyn Due>>)> {
        let mut table = self.lock();
        let &(at, id) = table.order.first()?;
        if at > now {
            return None;
        }
        table.order.remove(&(at, id));
        let owner = table.owners.get_mut(&id).and_then(|(owner, slot)| {
            *slot = None;
            owner.upgrade()
        });
        if owner.is_none() {
            table.owners.remove(&id);
        }
        Some((id, owner))
    }

    /// Calls all that is due at `now`; an owner that answers with a deadline that has passed too is
    /// called again.
    fn run_due(&self, now: Ts, settle: bool) {
        while let Some((id, owner)) = self.take_due(now) {
            if let Some(owner) = owner {
                let next = owner.on_deadline(now);
                if settle {
                    owner.settle();
                    self.settle_workers();
                }
                // Since the owner has answered another thread may have set an earlier deadline: that
                // one stays. INVARIANT: progress. An owner that is still due at `now` after having
                // been called at `now` is looked at again in a millisecond.
                self.update(id, |held| {
                    let earliest = next.into_iter().chain(held).min();
                    earliest.map(|at| at.max(now + 1))
                });
            }
        }
    }

    /// Nothing falls due any more: the driver ends, and no owner is being called once this returns.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopped.store(true, Ordering::Release);
        drop(running);
        self.changed.notify_one();
    }

    /// The driver task; runs until [`Deadlines::stop`].
    pub async fn drive(&self, clock: &Clock) {
        loop {
            {
                let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                if self.stopped.load(Ordering::Acquire) {
                    return;
                }
                self.run_due(clock.now(), false);
            }
            clock.wait(self.earliest(), &self.changed).await;
        }
    }

    /// Moves `clock` by `ms` milliseconds, stopping at each deadline on the way. Returns the new time.
    pub fn advance(&self, clock: &Clock, ms: i64, hold_sessions: bool) -> Ts {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stopped.load(Ordering::Acquire) {
            return clock.now();
        }
        self.settle_workers();
        let target = clock.now().saturating_add(ms.max(0));
        while let Some(at) = self.earliest().filter(|&at| at <= target) {
            clock.advance_to(at, hold_sessions);
            self.run_due(clock.now().min(target), true);
        }
        clock.advance_to(target, hold_sessions);
        self.run_due(target, true);
        clock.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Falls due every `every` ms and notes when it was called.
    struct Ticker {
        every: i64,
        calls: Mutex<Vec<Ts>>,
    }

    impl Due for Ticker {
        fn on_deadline(&self, now: Ts) -> Option<Ts> {
            self.calls
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(now);
            Some(now + self.every)
        }
    }

    fn calls_after(steps: &[i64]) -> Vec<Vec<Ts>> {
        let clock = Clock::frozen(0);
        let deadlines = Deadlines::default();
        let tickers: Vec<_> = [7, 10, 13]
            .map(|every| {
                Arc::new(Ticker {
                    every,
                    calls: Mutex::default(),
                })
            })
            .into_iter()
            .collect();
        for ticker in &tickers {
            let owner: Weak<dyn Due> = Arc::downgrade(&(Arc::clone(ticker) as Arc<dyn Due>));
            let id = deadlines.register(owner);
            deadlines.set(id, Some(ticker.every));
        }
        for &ms in steps {
            deadlines.advance(&clock, ms, false);
        }
        tickers
            .iter()
            .map(|t| {
                t.calls
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone()
            })
            .collect()
    }

    #[test]
    fn one_long_advance_equals_many_short_ones() {
        assert_eq!(calls_after(&[100]), calls_after(&[1; 100]));
        assert_eq!(calls_after(&[100]), calls_after(&[37, 50, 13]));
    }

    #[test]
    fn every_owner_is_called_at_its_own_millisecond() {
        assert_eq!(calls_after(&[25])[1], vec![10, 20]);
    }

    /// While it is called somebody else sets its deadline, and its own answer is older than that.
    struct Overtaken {
        deadlines: Arc<Deadlines>,
        id: Mutex<Option<OwnerId>>,
        calls: Mutex<Vec<Ts>>,
    }

    impl Due for Overtaken {
        fn on_deadline(&self, now: Ts) -> Option<Ts> {
            self.calls
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(now);
            let id = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(id) = id.filter(|_| now < 10) {
                self.deadlines.set(id, Some(now + 5));
            }
            None
        }
    }

    #[test]
    fn a_deadline_that_is_set_while_its_owner_is_called_is_kept() {
        let clock = Clock::frozen(0);
        let deadlines = Arc::new(Deadlines::default());
        let owner = Arc::new(Overtaken {
            deadlines: Arc::clone(&deadlines),
            id: Mutex::default(),
            calls: Mutex::default(),
        });
        let due: Arc<dyn Due> = Arc::clone(&owner) as Arc<dyn Due>;
        let id = deadlines.register(Arc::downgrade(&due));
        *owner.id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
        deadlines.set(id, Some(5));
        deadlines.advance(&clock, 100, false);
        let calls = owner.calls.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*calls, vec![5, 10]);
    }

    #[test]
    fn an_owner_that_is_gone_is_forgotten() {
        let clock = Clock::frozen(0);
        let deadlines = Deadlines::default();
        let ticker: Arc<dyn Due> = Arc::new(Ticker {
            every: 1,
            calls: Mutex::default(),
        });
        let id = deadlines.register(Arc::downgrade(&ticker));
        deadlines.set(id, Some(5));
        drop(ticker);
        deadlines.advance(&clock, 10, false);
        assert!(deadlines.lock().owners.is_empty());
    }

    #[tokio::test]
    async fn the_driver_ends_when_it_is_stopped_and_calls_nobody_afterwards() {
        let clock = Clock::frozen(0);
        let deadlines = Deadlines::default();
        let ticker = Arc::new(Ticker {
            every: 1,
            calls: Mutex::default(),
        });
        let owner: Weak<dyn Due> = Arc::downgrade(&(Arc::clone(&ticker) as Arc<dyn Due>));
        let id = deadlines.register(owner);
        deadlines.set(id, Some(5));
        let stop = async { deadlines.stop() };
        tokio::join!(deadlines.drive(&clock), stop);
        deadlines.advance(&clock, 10, false);
        assert!(
            ticker
                .calls
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_empty()
        );
    }
}
