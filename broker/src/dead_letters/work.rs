//! The units that are to be written: those whose turn comes, and those that wait for a time.
//!
//! Share partitions take turns, so that much work of one does not keep the others waiting. Units of one
//! share partition are in line in the order in which they came.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ottla_coordinator::share::letters::{LetterUnit, UnitId};
use ottla_coordinator::share::types::OffsetRange;
use ottla_coordinator::types::Ts;

use super::retry::Attempts;
use crate::shares::Slot;

/// So many bytes of letters are a turn.
const TURN_BYTES: usize = 1 << 20;

/// What an attempt takes of a turn at least.
const ATTEMPT_BYTES: usize = 4 << 10;

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
    /// Whether an attempt has begun that goes on with the unit's next turn.
    pub(super) under_way: bool,
}

/// A share partition: its slot's place in memory, which holds while one of its units is kept.
type SlotKey = usize;

/// Names a unit.
type Key = (SlotKey, UnitId);

fn slot_key(slot: &Slot) -> SlotKey {
    std::ptr::from_ref(slot).addr()
}

fn key(slot: &Slot, unit: UnitId) -> Key {
    (slot_key(slot), unit)
}

/// The names of all units of a share partition.
fn all_of(slot: &Slot) -> RangeInclusive<Key> {
    key(slot, UnitId(0))..=key(slot, UnitId(u64::MAX))
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
            under_way: false,
        }
    }

    fn key(&self) -> Key {
        key(&self.slot, self.unit.id)
    }
}

#[derive(Debug, Default)]
struct State {
    kept: BTreeMap<Key, Kept>,
    /// Whose turn it is, and what it has spent of it.
    turn: Option<(SlotKey, usize)>,
    /// Whose turn comes, in this order: each other share partition that has a line, once.
    turns: VecDeque<SlotKey>,
    /// Units in the order of their attempts. One that is not kept any more is passed over.
    lines: HashMap<SlotKey, VecDeque<UnitId>>,
    times: BTreeSet<(Ts, Key)>,
    current: Option<Current>,
    stopped: bool,
}

/// What is being attempted, and what happened meanwhile.
#[derive(Debug)]
struct Current {
    key: Key,
    /// Its time ran out.
    over: bool,
    /// Something changed that may let it through.
    changed: bool,
    /// Its share partition ended.
    closed: bool,
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
        self.line_up(key, VecDeque::push_back);
    }

    fn line_up(&mut self, (slot, unit): Key, place: fn(&mut VecDeque<UnitId>, UnitId)) {
        let line = self.lines.entry(slot).or_default();
        if line.is_empty() && self.turn.is_none_or(|(current, _)| current != slot) {
            self.turns.push_back(slot);
        }
        place(line, unit);
    }

    /// The next unit of the share partition whose turn it is.
    fn take_next(&mut self) -> Option<(Key, Pending)> {
        loop {
            let slot = self.whose_turn()?;
            let line = self.lines.get_mut(&slot);
            let Some(unit) = line.and_then(VecDeque::pop_front) else {
                self.end_turn();
                continue;
            };
            if let Some(pending) = self.remove((slot, unit)) {
                return Some(((slot, unit), pending));
            }
        }
    }

    fn whose_turn(&mut self) -> Option<SlotKey> {
        if self.turn.is_some_and(|(_, spent)| spent >= TURN_BYTES) {
            self.end_turn();
        }
        if self.turn.is_none() {
            self.turn = self.turns.pop_front().map(|slot| (slot, 0));
        }
        self.turn.map(|(slot, _)| slot)
    }

    fn end_turn(&mut self) {
        let Some((slot, _)) = self.turn.take() else {
            return;
        };
        if self.lines.get(&slot).is_some_and(|line| !line.is_empty()) {
            self.turns.push_back(slot);
        } else {
            self.lines.remove(&slot);
        }
    }

    fn spend(&mut self, bytes: usize) {
        if let Some((_, spent)) = &mut self.turn {
            *spent = spent.saturating_add(bytes);
        }
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

    /// The unit that was attempted is to be tried again at `at`, or when it is woken; unless its time
    /// ran out meanwhile. At once where a change came while it was attempted that would have woken it:
    /// its share partition's end, or, if it is `impatient`, any.
    pub(super) fn wait(&self, pending: Pending, at: Option<Ts>, impatient: bool) {
        let mut state = self.lock();
        let at_once = match &state.current {
            Some(current) if current.over => return,
            Some(current) => current.closed || (impatient && current.changed),
            None => false,
        };
        if !state.stopped {
            let key = state.keep(pending, at);
            if at_once {
                state.enqueue(key);
            }
        }
    }

    /// The unit that was attempted goes on when the others have had their turn.
    pub(super) fn go_on(&self, pending: Pending) {
        let mut state = self.lock();
        let over = state.current.as_ref().is_some_and(|current| current.over);
        if !over && !state.stopped {
            let key = state.keep(pending, None);
            if let Some(kept) = state.kept.get_mut(&key) {
                kept.queued = true;
            }
            state.line_up(key, VecDeque::push_front);
        }
    }

    /// The unit that is being attempted took so many bytes of the turn. Whether others wait for theirs.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        state.spend(bytes);
        let over = state.turn.is_some_and(|(_, spent)| spent >= TURN_BYTES);
        state.stopped || (over && !state.turns.is_empty())
    }

    /// The next unit to attempt, once there is one; `None` at the end. The one before is done with. Where
    /// there is none yet, `idle` is called first.
    pub(super) fn next(&self, mut idle: impl FnMut()) -> Option<Pending> {
        let mut state = self.lock();
        state.current = None;
        self.changed.notify_all();
        loop {
            if state.stopped {
                return None;
            }
            if let Some((key, pending)) = state.take_next() {
                state.spend(ATTEMPT_BYTES);
                state.current = Some(Current {
                    key,
                    over: false,
                    changed: false,
                    closed: false,
                });
                return Some(pending);
            }
            idle();
            self.changed.notify_all();
            state = self.pause(state);
        }
    }

    /// Whether the time of the unit that is being attempted has run out.
    pub(super) fn current_is_over(&self) -> bool {
        let state = self.lock();
        state.current.as_ref().is_some_and(|current| current.over)
    }

    /// The time of a unit ran out: it is not tried again. What was kept of it, unless it is being
    /// attempted.
    pub(super) fn timed_out(&self, slot: &Slot, unit: UnitId) -> Option<Pending> {
        let mut state = self.lock();
        let key = key(slot, unit);
        if let Some(current) = &mut state.current
            && current.key == key
        {
            current.over = true;
        }
        state.remove(key)
    }

    /// Something has changed: units that `which` names are tried now.
    pub(super) fn wake(&self, which: impl Fn(&Pending, Option<Ts>) -> bool) {
        let mut state = self.lock();
        if let Some(current) = &mut state.current {
            current.changed = true;
        }
        let each = state.kept.iter();
        let woken: Vec<Key> = each
            .filter(|(_, kept)| !kept.queued && which(&kept.pending, kept.at))
            .map(|(key, _)| *key)
            .collect();
        self.enqueue_all(state, woken);
    }

    /// A share partition has ended: its units are looked at now.
    pub(super) fn source_closed(&self, slot: &Slot) {
        let mut state = self.lock();
        if let Some(current) = &mut state.current {
            current.closed |= current.key.0 == slot_key(slot);
        }
        let of_slot = state.kept.range(all_of(slot));
        let waiting: Vec<Key> = of_slot.map(|(key, _)| *key).collect();
        self.enqueue_all(state, waiting);
    }

    fn enqueue_all(&self, mut state: MutexGuard<'_, State>, keys: Vec<Key>) {
        for key in keys {
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
        while !state.stopped && (state.current.is_some() || !state.lines.is_empty()) {
            state = self.pause(state);
        }
    }

    /// Nothing is attempted any more.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        (state.turn, state.turns) = (None, VecDeque::new());
        state.lines.clear();
        state.kept.clear();
        state.times.clear();
        self.changed.notify_all();
    }

    /// Looks at the units of a share partition.
    pub(super) fn of<T>(&self, slot: &Slot, look: impl Fn(&Pending, Option<Ts>) -> T) -> Vec<T> {
        let state = self.lock();
        let of_slot = state.kept.range(all_of(slot));
        of_slot
            .map(|(_, kept)| look(&kept.pending, kept.at))
            .collect()
    }
}
