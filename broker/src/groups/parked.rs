//! Requests of classic groups that are parked until their group answers them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ottla_coordinator::group::classic::{JoinAnswer, SyncAnswer, Ticket};
use ottla_coordinator::wait::{Signal, Woken};
use ottla_protocol::ErrorCode;

use crate::clock::WireDeadline;
use crate::context::Connection;
use crate::error_code::ApiError;

/// Where the answer to one parked request arrives.
#[derive(Debug)]
struct Slot<A> {
    answer: Mutex<Option<Result<A, ApiError>>>,
    signal: Arc<Signal>,
}

impl<A> Slot<A> {
    fn fill(&self, answer: Result<A, ApiError>) {
        *lock(&self.answer) = Some(answer);
        self.signal.wake(Woken::Fired);
    }
}

type Slots<A> = Mutex<HashMap<Ticket, Arc<Slot<A>>>>;

/// The parked requests of one kind.
#[derive(Debug)]
pub(super) struct Desk<A>(Slots<A>);

impl<A> Default for Desk<A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A> Desk<A> {
    /// Answers a parked request, if its handler still waits. The caller holds no lock.
    pub(super) fn answer(&self, ticket: Ticket, answer: Result<A, ApiError>) {
        let slot = lock(&self.0).remove(&ticket);
        if let Some(slot) = slot {
            slot.fill(answer);
        }
    }
}

/// The parked requests of one shard.
#[derive(Debug, Default)]
pub(super) struct Parked {
    last_ticket: AtomicU64,
    pub(super) joins: Desk<JoinAnswer>,
    pub(super) syncs: Desk<SyncAnswer>,
}

impl Parked {
    fn open<'a, A>(&self, desk: &'a Desk<A>) -> Waiting<'a, A> {
        let ticket = self.last_ticket.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot {
            answer: Mutex::new(None),
            signal: Signal::new(),
        });
        lock(&desk.0).insert(ticket, Arc::clone(&slot));
        Waiting { ticket, slot, desk }
    }

    /// A ticket for a `JoinGroup`. Take it under the lock of the machine that gets it: with the
    /// machine it goes.
    pub(super) fn join(&self) -> Waiting<'_, JoinAnswer> {
        self.open(&self.joins)
    }

    /// The same, for a `SyncGroup`.
    pub(super) fn sync(&self) -> Waiting<'_, SyncAnswer> {
        self.open(&self.syncs)
    }

    /// Takes all that is parked: the machine that knew of it is gone.
    pub(super) fn take_all(&self) -> Orphans {
        Orphans {
            joins: lock(&self.joins.0).drain().map(|(_, slot)| slot).collect(),
            syncs: lock(&self.syncs.0).drain().map(|(_, slot)| slot).collect(),
        }
    }
}

/// Parked requests that no machine knows of any more.
#[derive(Debug)]
#[must_use = "their clients wait"]
pub(super) struct Orphans {
    joins: Vec<Arc<Slot<JoinAnswer>>>,
    syncs: Vec<Arc<Slot<SyncAnswer>>>,
}

impl Orphans {
    /// Sends the clients to look for the coordinator again. The caller holds no lock.
    pub(super) fn send_away(self) {
        for slot in self.joins {
            slot.fill(Err(ErrorCode::NOT_COORDINATOR.into()));
        }
        for slot in self.syncs {
            slot.fill(Err(ErrorCode::NOT_COORDINATOR.into()));
        }
    }
}

/// One request that may be parked.
#[derive(Debug)]
pub(super) struct Waiting<'a, A> {
    pub(super) ticket: Ticket,
    slot: Arc<Slot<A>>,
    desk: &'a Desk<A>,
}

impl<A> Waiting<'_, A> {
    /// Waits for the answer. No client waits for state time alone: after `deadline` on the wire's
    /// time it is sent to join again.
    pub(super) async fn answer(
        self,
        connection: &Connection,
        deadline: WireDeadline,
    ) -> Result<A, ApiError> {
        connection.park(&self.slot.signal, deadline).await;
        let answered = lock(&self.slot.answer).take();
        answered.unwrap_or_else(|| Err(ErrorCode::REBALANCE_IN_PROGRESS.into()))
    }
}

impl<A> Drop for Waiting<'_, A> {
    fn drop(&mut self) {
        lock(&self.desk.0).remove(&self.ticket);
    }
}
