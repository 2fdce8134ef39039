//! The units that are to be written: those whose turn comes, and those that wait for a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ottla_coordinator::share::letters::{LetterUnit, UnitId};
use ottla_coordinator::share::types::OffsetRange;
use ottla_coordinator::types::Ts;

use super::retry::Attempts;
use crate::shares::Slot;

/// A unit, and how far it has come.
#[derive(Debug)]
pub(super) struct Pending {
    /// The share partition.
    pub(super) slot: Arc<Slot>,
    /// The unit, as it was handed over.
    pub(super) unit: LetterUnit,
    /// What has no outcome yet, as far as the writer knows.
    pub(super) left: VecDeque<OffsetRange>,
    /// The topic, from the first attempt on.
    pub(super) topic: Option<Arc<str>>,
    /// The attempts that failed.
    pub(super) attempts: Attempts,
    /// Why the last one did.
    pub(super) failure: Option<Arc<str>>,
}

/// Names a unit: its share partition's place in memory, which holds while the unit is kept.
type Key = (usize, UnitId);

fn key(slot: &Slot, unit: UnitId) -> Key {
    (std::ptr::from_ref(slot).addr(), unit)
}

impl Pending {
    /// A unit that was handed over just now.
    pub(super) fn new(slot: Arc<Slot>, unit: LetterUnit) -> Self {
        Self {
            slot,
            unit,
            left: VecDeque::from([unit.range]),
            topic: None,
            attempts: Attempts::default(),
            failure: None,
        }
    }

    fn key(&self) -> Key {
        key(&self.slot, self.unit.id)
    }
}

#[derive(Debug, Default)]
struct State {
    kept: BTreeMap<Key, Kept>,
    /// Whose turn comes, in this order. One that is not kept any more is passed over.
    queue: VecDeque<Key>,
    times: BTreeSet<(Ts, Key)>,
    /// What is being attempted, and whether its time ran out meanwhile.
    current: Option<(Key, bool)>,
    stopped: bool,
}

#[derive(Debug)]
struct Kept {
    pending: Pending,
    queued: bool,
    /// When it is tried again, unless something wakes it.
    at: Option<Ts>,
}

impl State {
    fn enqueue(&mut self, key: Key) {
        let Some(kept) = self.kept.get_mut(&key).filter(|kept| !kept.queued) else {
            return;
        };
        kept.queued = true;
        if let Some(at) = kept.at.take() {
            self.times.remove(&(at, key));
        }
        self.queue.push_back(key);
    }

    fn remove(&mut self, key: Key) -> Option<Pending> {
        let kept = self.kept.remove(&key)?;
        if let Some(at) = kept.at {
            self.times.remove(&(at, key));
        }
        Some(kept.pending)
    }

    fn keep(&mut self, pending: Pending, at: Option<Ts>) -> Key {
        let key = pending.key();
        if let Some(at) = at {
            self.times.insert((at, key));
        }
        let queued = false;
        let kept = Kept {
            pending,
            queued,
            at,
        };
        self.kept.insert(key, kept);
        key
    }
}

/// The units of all share partitions.
#[derive(Debug, Default)]
pub(super) struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A unit that is to be written.
    pub(super) fn add(&self, pending: Pending) {
        let mut state = self.lock();
        if !state.stopped {
            let key = state.keep(pending, None);
            state.enqueue(key);
            self.changed.notify_all();
        }
    }

    /// A unit that was attempted is to be tried again at `at`, or when it is woken; unless its time ran
    /// out meanwhile.
    pub(super) fn wait(&self, pending: Pending, at: Option<Ts>) {
        let mut state = self.lock();
        let over = state.current == Some((pending.key(), true));
        if !over && !state.stopped {
            state.keep(pending, at);
        }
    }

    /// The next unit to attempt, once there is one; `None` at the end. The one before is done with.
    pub(super) fn next(&self) -> Option<Pending> {
        let mut state = self.lock();
        state.current = None;
        self.changed.notify_all();
        loop {
            if state.stopped {
                return None;
            }
            while let Some(key) = state.queue.pop_front() {
                if let Some(pending) = state.remove(key) {
                    state.current = Some((key, false));
                    return Some(pending);
                }
            }
            self.changed.notify_all();
            state = self.pause(state);
        }
    }

    /// Whether the time of the unit that is being attempted has run out.
    pub(super) fn current_is_over(&self) -> bool {
        self.lock().current.is_some_and(|(_, over)| over)
    }

    /// The time of a unit ran out: it is not tried again. What was kept of it, unless it is being
    /// attempted.
    pub(super) fn timed_out(&self, slot: &Slot, unit: UnitId) -> Option<Pending> {
        let mut state = self.lock();
        let key = key(slot, unit);
        if let Some((current, over)) = &mut state.current
            && *current == key
        {
            *over = true;
        }
        state.remove(key)
    }

    /// Whether a unit waits.
    pub(super) fn has_waiting(&self) -> bool {
        !self.lock().kept.is_empty()
    }

    /// Units that `which` names are tried now.
    pub(super) fn wake(&self, which: impl Fn(&Pending, Option<Ts>) -> bool) {
        let mut state = self.lock();
        let each = state.kept.iter();
        let woken: Vec<Key> = each
            .filter(|(_, kept)| !kept.queued && which(&kept.pending, kept.at))
            .map(|(key, _)| *key)
            .collect();
        for key in woken {
            state.enqueue(key);
        }
        self.changed.notify_all();
    }

    /// Units whose time has come are tried now; the next time.
    pub(super) fn due(&self, now: Ts) -> Option<Ts> {
        let mut state = self.lock();
        while let Some(&(at, key)) = state.times.first()
            && at <= now
        {
            state.enqueue(key);
        }
        self.changed.notify_all();
        state.times.first().map(|&(at, _)| at)
    }

    /// Tells the next time, which stands until `f` has returned.
    pub(super) fn with_next(&self, f: impl FnOnce(Option<Ts>)) {
        let state = self.lock();
        f(state.times.first().map(|&(at, _)| at));
    }

    /// Waits until nothing can be attempted now.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        while !state.stopped && (state.current.is_some() || !state.queue.is_empty()) {
            state = self.pause(state);
        }
    }

    /// Nothing is attempted any more.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.queue.clear();
        state.kept.clear();
        state.times.clear();
        self.changed.notify_all();
    }

    /// Looks at the units of a share partition.
    pub(super) fn of<T>(&self, slot: &Slot, look: impl Fn(&Pending, Option<Ts>) -> T) -> Vec<T> {
        let state = self.lock();
        let (from, to) = (key(slot, UnitId(0)), key(slot, UnitId(u64::MAX)));
        let of_slot = state.kept.range(from..=to);
        of_slot
            .map(|(_, kept)| look(&kept.pending, kept.at))
            .collect()
    }
}
