//! The shell around one share partition: a lock, the fetches that wait, and the writes that go out.
//!
//! Who changes the partition calls [`ShareCell::drain`] afterwards. At most one thread drains: it
//! takes a write, gives the lock back, has it written, and settles it, until there is none left; as
//! long as a write is taken nobody else gets one. So writes reach the log in the order in which they
//! were proposed, and the lock is never held across an append. Tickets resolve and waiters wake after the lock is released.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll, Waker};

use super::letters::{Reports, UnitId, Written};
use super::partition::SharePartition;
use super::types::{
    AckBatch, AckError, AcquireRequest, AcquiredRange, CloseReason, InFlight, Limits, OffsetRange,
    StateWrite, Token, WriteError,
};
use crate::sync::{Arc, Mutex, lock};
use crate::types::Ts;
use crate::wait::WaitList;

type Outcome = Result<(), WriteError>;

#[derive(Debug, Default)]
struct Pledge {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// The promise that an accepted acknowledgement is written, or that it was not.
#[derive(Debug)]
pub struct Ticket {
    pledge: Arc<Mutex<Pledge>>,
}

impl Ticket {
    fn new(outcome: Option<Outcome>) -> (Self, Arc<Mutex<Pledge>>) {
        let pledge = Arc::new(Mutex::new(Pledge {
            outcome,
            waker: None,
        }));
        (
            Self {
                pledge: Arc::clone(&pledge),
            },
            pledge,
        )
    }

    /// What became of it, once that is known.
    pub fn outcome(&self) -> Option<Outcome> {
        lock(&self.pledge).outcome
    }

    /// Ready with the outcome; otherwise keeps the context's waker, in the place of an earlier one.
    pub fn poll_outcome(&self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut pledge = lock(&self.pledge);
        if let Some(outcome) = pledge.outcome {
            return Poll::Ready(outcome);
        }
        if !pledge
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            pledge.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// A future of the outcome.
    pub fn wait(&self) -> impl Future<Output = Outcome> + '_ {
        poll_fn(|cx| self.poll_outcome(cx))
    }
}

fn resolve(pledge: &Mutex<Pledge>, outcome: Outcome) {
    let waker = {
        let mut pledge = lock(pledge);
        pledge.outcome = Some(outcome);
        pledge.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[derive(Debug)]
struct Inner {
    partition: SharePartition,
    /// Unresolved tickets, ascending by token.
    pledges: VecDeque<(Token, Arc<Mutex<Pledge>>)>,
    closed: Option<CloseReason>,
}

/// What to do once the lock is released.
#[derive(Default)]
struct After {
    wake: bool,
    resolved: Vec<(Arc<Mutex<Pledge>>, Outcome)>,
}

impl After {
    fn run(self, waiters: &WaitList) {
        for (pledge, outcome) in self.resolved {
            resolve(&pledge, outcome);
        }
        if self.wake {
            waiters.wake_all();
        }
    }
}

/// A share partition shared by the threads of a broker.
#[derive(Debug)]
pub struct ShareCell {
    inner: Mutex<Inner>,
    waiters: WaitList,
}

impl ShareCell {
    /// An open cell around `partition`.
    pub fn new(partition: SharePartition) -> Self {
        let pledges = VecDeque::new();
        let inner = Inner {
            partition,
            pledges,
            closed: None,
        };
        Self {
            inner: Mutex::new(inner),
            waiters: WaitList::new(),
        }
    }

    /// The fetches parked on this partition: woken when records may have become available, the
    /// window moved, or the cell closed.
    pub fn waiters(&self) -> &WaitList {
        &self.waiters
    }

    /// See [`SharePartition::acquire`].
    pub fn acquire(
        &self,
        now: Ts,
        member: &str,
        limits: &Limits,
        request: &AcquireRequest<'_>,
    ) -> Result<Vec<AcquiredRange>, CloseReason> {
        self.with(|partition| partition.acquire(now, member, limits, request))
    }

    /// See [`SharePartition::acknowledge`]. The ticket resolves when the change is written, at once
    /// when there is nothing to write.
    pub fn acknowledge(
        &self,
        now: Ts,
        member: &str,
        batches: &[AckBatch<'_>],
        is_renew_ack: bool,
        limits: &Limits,
    ) -> Result<Ticket, AckError> {
        let mut inner = lock(&self.inner);
        if let Some(reason) = inner.closed {
            return Err(reason.into());
        }
        let token = inner
            .partition
            .acknowledge(now, member, batches, is_renew_ack, limits)?;
        let Some(token) = token else {
            return Ok(Ticket::new(Some(Ok(()))).0);
        };
        let (ticket, pledge) = Ticket::new(None);
        inner.pledges.push_back((token, pledge));
        Ok(ticket)
    }

    /// See [`SharePartition::release_member`]. Nothing on a closed cell.
    pub fn release_member(&self, now: Ts, member: &str, limits: &Limits) {
        let _ = self.with(|partition| partition.release_member(now, member, limits));
    }

    /// See [`SharePartition::on_deadline`]. Nothing on a closed cell.
    pub fn on_deadline(&self, now: Ts, limits: &Limits) {
        let _ = self.with(|partition| partition.on_deadline(now, limits));
    }

    /// See [`SharePartition::next_deadline`]. None on a closed cell.
    pub fn next_deadline(&self, limits: &Limits) -> Option<Ts> {
        self.with(|partition| partition.next_deadline(limits))
            .ok()
            .flatten()
    }

    /// See [`SharePartition::set_delivery`]. Once this has returned with `paused`, nothing is acquired.
    pub fn set_delivery(&self, paused: bool, generation: u64) {
        let _ = self.with(|partition| partition.set_delivery(paused, generation));
    }

    /// See [`SharePartition::claim_letters`].
    pub fn claim_letters(&self, unit: UnitId, range: OffsetRange) -> Result<bool, CloseReason> {
        self.with(|partition| partition.claim_letters(unit, range))
    }

    /// See [`SharePartition::letters_written`].
    pub fn letters_written(
        &self,
        unit: UnitId,
        range: OffsetRange,
        now: Ts,
        limits: &Limits,
    ) -> Result<Written, CloseReason> {
        self.with(|partition| partition.letters_written(unit, range, now, limits))
    }

    /// See [`SharePartition::letters_given_up`].
    pub fn letters_given_up(
        &self,
        unit: UnitId,
        range: OffsetRange,
        now: Ts,
        limits: &Limits,
    ) -> Result<bool, CloseReason> {
        self.with(|partition| partition.letters_given_up(unit, range, now, limits))
    }

    /// See [`SharePartition::log_start_moved`]. Nothing on a closed cell.
    pub fn log_start_moved(&self, log_start: i64) {
        let _ = self.with(|partition| partition.log_start_moved(log_start));
    }

    /// See [`SharePartition::next_fetch_offset`].
    pub fn next_fetch_offset(&self, limits: &Limits) -> Result<Option<i64>, CloseReason> {
        self.with(|partition| partition.next_fetch_offset(limits))
    }

    /// See [`SharePartition::start_offset`]; also on a closed cell.
    pub fn start_offset(&self) -> i64 {
        lock(&self.inner).partition.start_offset()
    }

    /// See [`SharePartition::in_flight`]; also on a closed cell.
    pub fn in_flight(&self) -> Vec<InFlight> {
        lock(&self.inner).partition.in_flight()
    }

    /// See [`SharePartition::lock_count`]; also on a closed cell.
    pub fn lock_count(&self) -> usize {
        lock(&self.inner).partition.lock_count()
    }

    /// Why the cell refuses everything, if it does.
    pub fn closed(&self) -> Option<CloseReason> {
        lock(&self.inner).closed
    }

    /// Refuses everything from now on. Acknowledgements whose write has not begun fail; one that is
    /// being written resolves with what the write says. Letters without an outcome are forgotten: who
    /// loads the share partition next finds them. Waiting fetches wake. The first reason stays.
    pub fn close(&self, reason: CloseReason) {
        let after = {
            let mut inner = lock(&self.inner);
            let mut after = After::default();
            // The front pledge may belong to the write under way: its drainer resolves it.
            let keep = usize::from(inner.front_is_taken());
            inner.shut(reason, keep, &mut after);
            after
        };
        after.run(&self.waiters);
    }

    /// Writes what was proposed, in order, through `write`, and settles it. Returns at once when
    /// another thread drains: that one writes this caller's proposals too.
    ///
    /// `write` runs without the cell's lock. [`WriteError::Fenced`] and [`WriteError::Unknown`] close
    /// the cell. `now` and `limits` serve to settle: locks that are due by `now` end. When `write`
    /// panics, the write counts as failed and the cell stays usable.
    ///
    /// Returns what happened since the last drain, whoever brought it about. Who finds another thread
    /// draining gets nothing: that one gets it all.
    pub fn drain(
        &self,
        now: Ts,
        limits: &Limits,
        write: &mut dyn FnMut(&StateWrite) -> Result<(), WriteError>,
    ) -> Reports {
        let (token, state) = match self.take_turn() {
            Ok(turn) => turn,
            Err(reports) => return reports,
        };
        let mut turn = Turn {
            cell: self,
            token,
            outcome: Err(WriteError::Unavailable),
            now,
            limits,
            reports: Reports::default(),
        };
        let mut next = Some(state);
        while let Some(state) = next {
            turn.outcome = Err(WriteError::Unavailable);
            turn.outcome = if state.batches.is_empty() {
                Ok(())
            } else {
                write(&state)
            };
            next = turn.settle(true);
        }
        let reports = std::mem::take(&mut turn.reports);
        std::mem::forget(turn);
        reports
    }

    /// The turn to write, or, where there is nothing to write, what is to be reported.
    fn take_turn(&self) -> Result<(Token, StateWrite), Reports> {
        let mut inner = lock(&self.inner);
        if inner.closed.is_some() || inner.partition.taken_token().is_some() {
            return Err(Reports::default());
        }
        let taken = inner.partition.take_write();
        taken.ok_or_else(|| inner.partition.take_reports())
    }

    fn with<T>(&self, op: impl FnOnce(&mut SharePartition) -> T) -> Result<T, CloseReason> {
        let (answer, wake) = {
            let mut inner = lock(&self.inner);
            if let Some(reason) = inner.closed {
                return Err(reason);
            }
            let answer = op(&mut inner.partition);
            (answer, inner.partition.take_wake())
        };
        if wake {
            self.waiters.wake_all();
        }
        Ok(answer)
    }
}

impl Inner {
    fn front_is_taken(&self) -> bool {
        let front = self.pledges.front().map(|(token, _)| *token);
        front.is_some() && front == self.partition.taken_token()
    }

    /// Closes, and fails all pledges but the first `keep`.
    fn shut(&mut self, reason: CloseReason, keep: usize, after: &mut After) {
        let reason = *self.closed.get_or_insert(reason);
        self.partition.drop_letters();
        let failed = self.pledges.drain(keep..);
        after
            .resolved
            .extend(failed.map(|(_, pledge)| (pledge, Err(reason.into()))));
        after.wake = true;
    }
}

/// The turn of the one drainer with the write that it has taken.
struct Turn<'a> {
    cell: &'a ShareCell,
    token: Token,
    outcome: Outcome,
    now: Ts,
    limits: &'a Limits,
    /// Filled when the turn ends.
    reports: Reports,
}

impl Turn<'_> {
    /// Settles the write and takes the next one, or ends the turn.
    fn settle(&mut self, go_on: bool) -> Option<StateWrite> {
        let (next, after) = {
            let mut inner = lock(&self.cell.inner);
            let mut after = After::default();
            let ok = self.outcome.is_ok();
            inner
                .partition
                .write_done(self.token, ok, self.now, self.limits);
            if inner
                .pledges
                .front()
                .is_some_and(|(token, _)| *token == self.token)
                && let Some((_, pledge)) = inner.pledges.pop_front()
            {
                after.resolved.push((pledge, self.outcome));
            }
            match self.outcome {
                Err(WriteError::Fenced) => inner.shut(CloseReason::Fenced, 0, &mut after),
                Err(WriteError::Unknown) => inner.shut(CloseReason::GroupDeleted, 0, &mut after),
                Err(WriteError::Closed(reason)) => inner.shut(reason, 0, &mut after),
                Err(WriteError::Unavailable) | Ok(()) => {}
            }
            if inner.closed.is_some() {
                // The write that was under way may have made letters since.
                inner.partition.drop_letters();
            }
            let open = inner.closed.is_none() && go_on;
            let taken = if open {
                inner.partition.take_write()
            } else {
                None
            };
            if taken.is_none() && go_on {
                self.reports = inner.partition.take_reports();
            }
            after.wake |= inner.partition.take_wake();
            (taken, after)
        };
        after.run(&self.cell.waiters);
        let (token, state) = next?;
        self.token = token;
        Some(state)
    }
}

impl Drop for Turn<'_> {
    /// Runs only when the write panicked.
    fn drop(&mut self) {
        self.settle(false);
    }
}
