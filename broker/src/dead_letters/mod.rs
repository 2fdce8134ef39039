//! Dead letters (KIP-1191): records that a share group has given up, written to the group's topic.
//!
//! A share partition hands over each *unit* of such records once, when their state is persisted. One
//! thread works units off, one attempt at a time, so an old attempt has always ended before a new one
//! starts. What cannot be written now waits for its next attempt, by state time. The outcome of each
//! record is decided by the share partition alone, which may have given up waiting (`attempt.rs`).

mod attempt;
mod copy;
mod counts;
mod ledger;
mod record;
mod retry;
mod work;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;

use ottla_coordinator::share::letters::{LetterCause, LetterUnit, Reports};
use ottla_coordinator::share::state::ShareKey;
use ottla_coordinator::share::types::{OffsetRange, StateWrite};
use ottla_coordinator::types::Ts;
use serde_json::{Value, json};

use crate::broker::Broker;
use crate::deadlines::{Due, OwnerId};
use crate::shares::{self, Slot};

pub(crate) use attempt::SHARE_VERSION;
pub(crate) use counts::LetterMetrics;
pub use counts::{GiveUp, GroupLetters};

use attempt::End;
use copy::Source;
use counts::Counts;
use ledger::Ledger;
use retry::{Next, Obstacle};
use work::{Pending, Work};

/// Records that go without a letter.
struct Lost<'a> {
    unit: &'a LetterUnit,
    ranges: &'a [OffsetRange],
    /// The dead letter topic, if an attempt was made.
    topic: Option<&'a str>,
    why: GiveUp,
    error: &'a str,
}

/// Everything about dead letters of the process.
#[derive(Debug, Default)]
pub struct DeadLetters {
    work: Arc<Work>,
    counts: Counts,
    ledger: Ledger,
    owner: OnceLock<OwnerId>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl DeadLetters {
    /// Starts the thread. `owner` is the deadline of [`Retries`].
    pub(crate) fn start(&self, broker: Weak<Broker>, owner: OwnerId) -> std::io::Result<()> {
        self.owner.get_or_init(|| owner);
        let work = Arc::clone(&self.work);
        let thread = std::thread::Builder::new()
            .name("ottla-dead-letters".into())
            .spawn(move || {
                let mut source = Source::default();
                while let Some(pending) = work.next(|| source.close()) {
                    let Some(broker) = broker.upgrade() else {
                        return;
                    };
                    broker.dead_letters.attempt(&broker, pending, &mut source);
                }
            })?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Ends the thread after what it is doing. What is not written stays on its way in the state of
    /// its share partition, and is driven again after the next start.
    pub(crate) fn stop(&self) {
        self.work.stop();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the dead letters had ended before");
        }
    }

    /// The numbers of a group.
    pub fn group(&self, group: &str) -> Arc<GroupLetters> {
        self.counts.group(group)
    }

    /// The numbers of a group that has had letters since the start of the process.
    pub fn find(&self, group: &str) -> Option<Arc<GroupLetters>> {
        self.counts.find(group)
    }

    /// Brings the metrics up to date.
    pub(crate) fn observe(&self, metrics: &LetterMetrics) {
        metrics.observe(&self.counts);
    }

    /// Takes what a share partition reports. `failed`: not all that follows from it was written.
    pub(crate) fn report(
        &self,
        broker: &Broker,
        slot: &Arc<Slot>,
        reports: &Reports,
        failed: bool,
    ) {
        for &unit in &reports.letters {
            self.work.add(Pending::new(Arc::clone(slot), unit));
        }
        let mut timed_out = reports.timed_out.as_slice();
        if timed_out.is_empty() {
            return;
        }
        let persisted = !failed && slot.cell.closed().is_none();
        while let Some((unit, _)) = timed_out.first() {
            let same = timed_out
                .iter()
                .take_while(|(other, _)| other.id == unit.id);
            let (of_unit, rest) = timed_out.split_at(same.count());
            let ranges: Vec<OffsetRange> = of_unit.iter().map(|(_, range)| *range).collect();
            self.timed_out(broker, slot, unit, ranges, persisted);
            timed_out = rest;
        }
    }

    fn timed_out(
        &self,
        broker: &Broker,
        slot: &Slot,
        unit: &LetterUnit,
        mut ranges: Vec<OffsetRange>,
        persisted: bool,
    ) {
        let known = self.work.timed_out(slot, unit.id);
        let untried = known
            .as_ref()
            .is_some_and(|pending| pending.topic.is_none());
        if untried && unit.generation.is_none() {
            // In an earlier life of the share partition they may have had an outcome.
            (_, ranges) = self.ledger.split(&slot.key, slot.state_epoch(), ranges);
        }
        if !persisted {
            for &range in &ranges {
                self.ledger.decide(&slot.key, slot.state_epoch(), range);
            }
        }
        let failure = known
            .as_ref()
            .and_then(|pending| pending.failure.as_deref());
        let topic = known.as_ref().and_then(|pending| pending.topic.as_deref());
        let lost = Lost {
            unit,
            ranges: &ranges,
            topic,
            why: GiveUp::TimedOut,
            error: failure.unwrap_or("not tried yet"),
        };
        self.given_up(broker, slot, &lost);
    }

    /// Records go without a letter: counted, and told in one line.
    fn given_up(&self, broker: &Broker, slot: &Slot, lost: &Lost<'_>) {
        let &Lost {
            unit,
            ranges,
            topic: dlq,
            why,
            error,
        } = lost;
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return;
        };
        let records: i64 = ranges.iter().map(|range| range.len()).sum();
        let group = &*slot.key.group_id;
        self.group(group).add_given_up(why, records);
        if why != GiveUp::SourceChanged {
            let (now, given_up) = (broker.clock.now(), records.unsigned_abs());
            slot.delivery
                .given_up(broker, now, unit.generation, given_up);
        }
        let (topic, partition) = (&*slot.partition.topic, slot.partition.index);
        let (first, last) = (first.first, last.last);
        let config = broker.group_config(group);
        let dlq = dlq.unwrap_or(&config.share.dlq_topic_name);
        let (reason, advice) = (why.name(), why.advice());
        macro_rules! tell {
            ($level:ident, $what:literal) => {
                tracing::$level!(
                    group,
                    topic,
                    partition,
                    first,
                    last,
                    records,
                    reason,
                    dlq,
                    error,
                    "dead letters were {}, the records are archived without: {advice}",
                    $what
                )
            };
        }
        if why == GiveUp::TimedOut {
            tell!(warn, "not written in time");
        } else {
            tell!(error, "given up");
        }
    }

    fn attempt(&self, broker: &Broker, mut pending: Pending, source: &mut Source) {
        let run = AssertUnwindSafe(|| attempt::run(broker, &mut pending, source));
        match catch_unwind(run) {
            Ok(End::Done) => {}
            Ok(End::GoOn) => self.work.go_on(pending),
            Ok(End::Again(obstacle, error)) => self.retry(broker, pending, obstacle, error),
            // The letters of all other units go on.
            Err(_) => {
                let error = "a defect of the broker: see the panic in the log";
                attempt::give_up(broker, &pending, GiveUp::Refused, error);
            }
        }
    }

    fn retry(&self, broker: &Broker, mut pending: Pending, obstacle: Obstacle, error: String) {
        let (now, limits) = (
            broker.clock.now(),
            shares::limits(broker, &pending.slot.key.group_id),
        );
        let since = pending.unit.since;
        let deadline = limits
            .dlq_write_timeout_ms
            .map(|ms| since.saturating_add(ms));
        let next = pending
            .attempts
            .failed(now, obstacle, deadline, rand::random());
        let at = match next {
            Next::At(at) => Some(at),
            Next::Deadline => None,
            Next::Never => {
                let why = match obstacle {
                    Obstacle::NoLeader => GiveUp::RetriesExhausted,
                    Obstacle::Unavailable => GiveUp::Refused,
                };
                attempt::give_up(broker, &pending, why, &error);
                return;
            }
        };
        tracing::debug!(slot = ?pending.slot, range = ?pending.unit.range, error, at, "dead letters are tried again");
        pending.failure = Some(error.into());
        self.work.wait(pending, at, deadline.is_some());
        self.set_deadline(broker);
    }

    fn set_deadline(&self, broker: &Broker) {
        if let Some(owner) = self.owner.get() {
            self.work
                .with_next(|next| broker.deadlines.set(*owner, next));
        }
    }

    /// Something has changed that may let waiting letters through: those with a write timeout, and
    /// those that wait for nothing else, are tried at once.
    pub(crate) fn wake(&self, broker: &Broker) {
        self.work.wake(|pending, at| {
            let group = &pending.slot.key.group_id;
            at.is_none() || broker.group_config(group).share.dlq_write_timeout_ms > 0
        });
        self.set_deadline(broker);
    }

    /// A share partition ended: its letters that wait find out what becomes of them.
    pub(crate) fn source_closed(&self, slot: &Slot) {
        self.work.source_closed(slot);
    }

    /// The state of a share partition was written.
    pub(crate) fn persisted(&self, key: &ShareKey, state_epoch: i32, write: &StateWrite) {
        self.ledger.persisted(key, state_epoch, write);
    }

    /// The states of these share partitions are gone.
    pub(crate) fn forget(&self, gone: impl Fn(&ShareKey) -> bool) {
        self.ledger.forget(gone);
    }

    /// The letters of a share partition that are not written yet, for people who look.
    pub(crate) fn inspect(&self, slot: &Slot, now: Ts) -> Vec<Value> {
        self.work.of(slot, |pending, at| {
            let unit = &pending.unit;
            json!({
                "first": pending.left.front().map(|range| range.first),
                "last": unit.range.last,
                "cause": cause(unit.cause),
                "since_ms": unit.since,
                "attempts": pending.attempts.made(),
                "last_error": pending.failure.as_deref(),
                "next_attempt_in_ms": at.map(|at| at - now),
            })
        })
    }
}

impl Drop for DeadLetters {
    fn drop(&mut self) {
        self.work.stop();
    }
}

/// What a letter says of its cause.
fn cause(cause: LetterCause) -> &'static str {
    match cause {
        LetterCause::Rejected => "Offset rejected by client.",
        LetterCause::DeliveryLimit => "Offset delivery count exceeded the threshold.",
    }
}

/// The deadline of the letters that wait for another attempt.
#[derive(Debug)]
pub(crate) struct Retries(pub(crate) Weak<Broker>);

impl Due for Retries {
    fn on_deadline(&self, now: Ts) -> Option<Ts> {
        let broker = self.0.upgrade()?;
        broker.dead_letters.work.due(now)
    }

    fn settle(&self) {
        if let Some(broker) = self.0.upgrade() {
            broker.dead_letters.work.settle();
        }
    }
}
