//! What is written about a share partition, and how writes settle.
//!
//! A change that must survive a restart is proposed: its records are marked pending and keep their
//! state, the proposal queues, and [`SharePartition::take_write`] hands out one at a time, in the
//! order of proposal. [`SharePartition::write_done`] settles it: written, the records take their new
//! state; not written, an acknowledgement's records are as they were before. A lock that ended is
//! different: its records leave the member whether or not the write succeeded, because what is on
//! disk then, an earlier delivery count, is also true after a restart.

use std::collections::VecDeque;

use super::in_flight::{Record, Window};
use super::letters::{Kind, LetterCause, Letters};
use super::locks::{Locks, NONE};
use super::partition::{Delivery, SharePartition};
use super::spans::Spans;
use super::types::{
    Limits, OffsetRange, PersistedState, RecordState, StateBatch, StateWrite, Token,
};
use crate::types::Ts;

/// The longest window that is loaded: far above the largest `share.partition.max.record.locks` and
/// the largest batch, and 32 MiB.
const MAX_LOADED: i64 = 4 << 20;

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) state: RecordState,
    /// Why it becomes a dead letter, where it does: with [`RecordState::Archiving`] only.
    pub(super) cause: Option<LetterCause>,
}

impl Next {
    pub(super) const fn to(state: RecordState) -> Self {
        Self { state, cause: None }
    }

    /// What becomes of a record that ends without being accepted.
    pub(super) fn ended(cause: LetterCause, limits: &Limits) -> Self {
        if limits.dead_letters {
            Self {
                state: RecordState::Archiving,
                cause: Some(cause),
            }
        } else {
            Self::to(RecordState::Archived)
        }
    }
}

/// What becomes of a record that is given back after `delivery_count` deliveries.
pub(super) fn given_back(delivery_count: i16, limits: &Limits) -> Next {
    if delivery_count >= limits.delivery_count_limit {
        Next::ended(LetterCause::DeliveryLimit, limits)
    } else {
        Next::to(RecordState::Available)
    }
}

/// Records of which the same becomes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    range: OffsetRange,
    next: Next,
}

/// The changes of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    list: Vec<Change>,
}

impl Changes {
    /// Adds one record; consecutive ones of which the same becomes are one run.
    pub(super) fn add(&mut self, offset: i64, next: Next) {
        if let Some(run) = self.list.last_mut()
            && run.range.last + 1 == offset
            && run.next == next
        {
            run.range.last = offset;
        } else {
            self.list.push(Change {
                range: OffsetRange::new(offset, offset),
                next,
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Proposal {
    token: Token,
    changes: Vec<Change>,
    /// Whether the changes take effect also when the write fails.
    forced: bool,
}

/// Proposals in the order of their making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outbox {
    last_token: u64,
    waiting: VecDeque<Proposal>,
    taken: Option<Proposal>,
}

impl SharePartition {
    /// The share partition as it was persisted.
    ///
    /// `start_offset` is where it begins: `state.start_offset`, or what the group's reset policy says
    /// when that is negative. Records that were acquired come back available, with the delivery count
    /// of their last write. Batches below the start, of unknown state or out of order are passed over,
    /// and so is everything that lies further than any window reaches from the start: such a state was
    /// not written by a broker, and its records count as never delivered.
    /// Records on their way to the dead letter queue are letters again, as of `now`. Why they are is not
    /// stored: those that were delivered as often as the limit allows count as delivered too often.
    pub fn load(state: &PersistedState, start_offset: i64, now: Ts, limits: &Limits) -> Self {
        let mut window = Window::new(start_offset.clamp(0, i64::MAX - 2 * MAX_LOADED));
        let mut letters = Letters::default();
        for batch in &state.batches {
            let first = batch.first.max(window.end() + 1);
            let Some(loaded) = RecordState::from_code(batch.state) else {
                continue;
            };
            if batch.last < first || batch.last - window.start() >= MAX_LOADED {
                continue;
            }
            while window.end() + 1 < first {
                window.push(Record::UNSEEN);
            }
            let delivery_count = batch.delivery_count;
            let kind =
                (loaded == RecordState::Archiving).then(|| Kind::loaded(delivery_count, limits));
            let state = match loaded {
                RecordState::Acquired => RecordState::Available,
                other => other,
            };
            for offset in first..=batch.last {
                window.push(Record {
                    state,
                    pending: None,
                    delivery_count,
                    lock: NONE,
                });
                if let Some(kind) = kind {
                    letters.arise(0, offset, kind, now);
                }
            }
            window.add_extent(OffsetRange::new(first, batch.last));
        }
        window.pop_done();
        letters.enlist(0);
        Self {
            window,
            locks: Locks::new(),
            outbox: Outbox::default(),
            letters,
            delivery: Delivery::default(),
            non_data: Spans::default(),
            wake: false,
        }
    }

    /// Queues `changes`, whose records are already marked.
    pub(super) fn propose(&mut self, mut changes: Changes, forced: bool) -> Option<Token> {
        if changes.is_empty() {
            return None;
        }
        changes
            .list
            .sort_unstable_by_key(|change| change.range.first);
        self.outbox.last_token += 1;
        let token = Token(self.outbox.last_token);
        self.outbox.waiting.push_back(Proposal {
            token,
            changes: changes.list,
            forced,
        });
        Some(token)
    }

    /// Whether a proposal waits to be written.
    pub fn has_writes(&self) -> bool {
        !self.outbox.waiting.is_empty()
    }

    /// The write that was taken and is not settled.
    pub fn taken_token(&self) -> Option<Token> {
        self.outbox.taken.as_ref().map(|taken| taken.token)
    }

    /// The next write, in the order of proposal; none while one is taken and not settled.
    ///
    /// Its batches are empty when the log start has passed all its records: then there is nothing to
    /// write, and the caller settles it as written.
    pub fn take_write(&mut self) -> Option<(Token, StateWrite)> {
        if self.outbox.taken.is_some() {
            return None;
        }
        let proposal = self.outbox.waiting.pop_front()?;
        let mut batches: Vec<StateBatch> = Vec::with_capacity(proposal.changes.len());
        let mut done = self.window.done() as i64;
        for change in &proposal.changes {
            let range = self.window.clip(change.range);
            if change.next.state.is_done() {
                done += range.len();
            }
            let state = change.next.state.code();
            for offset in range.first..=range.last {
                let delivery_count = self.window.get(offset).delivery_count;
                match batches.last_mut() {
                    Some(run)
                        if run.last + 1 == offset
                            && run.state == state
                            && run.delivery_count == delivery_count =>
                    {
                        run.last = offset;
                    }
                    _ => batches.push(StateBatch {
                        first: offset,
                        last: offset,
                        state,
                        delivery_count,
                    }),
                }
            }
        }
        let write = StateWrite {
            start_offset: self.window.start(),
            delivery_complete_count: done as i32,
            batches,
        };
        let token = proposal.token;
        self.outbox.taken = Some(proposal);
        Some((token, write))
    }

    /// Settles the taken write `token`; any other token is ignored.
    ///
    /// When an acknowledgement was not written and the lock has ended meanwhile, its records are
    /// released as if it had never come, which proposes again.
    pub fn write_done(&mut self, token: Token, ok: bool, now: Ts, limits: &Limits) {
        let Some(proposal) = self.outbox.taken.take_if(|taken| taken.token == token) else {
            return;
        };
        if ok || proposal.forced {
            self.apply(&proposal.changes, now);
        } else {
            let released = self.withdraw(&proposal.changes, limits);
            self.propose(released, true);
        }
        self.advance();
        self.expire(now, limits);
    }

    fn apply(&mut self, changes: &[Change], now: Ts) {
        let units = self.letters.reports.letters.len();
        for &Change { range, next } in changes {
            let range = self.window.clip(range);
            if let Some(cause) = next.cause {
                self.make_letters(units, range, cause, now);
            } else if next.state == RecordState::Acknowledged {
                self.count_delivered(range);
            }
            for offset in range.first..=range.last {
                let record = self.window.get(offset);
                let settled = Record {
                    state: next.state,
                    pending: None,
                    lock: NONE,
                    ..record
                };
                self.window.set(offset, settled);
                if record.lock != NONE {
                    self.locks.drop_one(record.lock);
                }
                self.wake |= settled.is_free();
            }
        }
        self.letters.enlist(units);
    }

    fn withdraw(&mut self, changes: &[Change], limits: &Limits) -> Changes {
        let mut released = Changes::default();
        for change in changes {
            let range = self.window.clip(change.range);
            for offset in range.first..=range.last {
                let record = self.window.get(offset);
                let running = record.lock != NONE && self.locks.get(record.lock).running;
                let next = (!running).then(|| given_back(record.delivery_count, limits));
                let pending = next.map(|next| next.state);
                self.window.set(offset, Record { pending, ..record });
                if let Some(next) = next {
                    released.add(offset, next);
                }
            }
        }
        released
    }
}
