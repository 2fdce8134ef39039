//! Acknowledgement: every batch of a request is checked before any is applied.

use super::in_flight::Record;
use super::letters::LetterCause;
use super::locks::NONE;
use super::partition::SharePartition;
use super::persist::{Changes, Next, given_back};
use super::types::{AckBatch, AckError, Limits, OffsetRange, RecordState, Token};
use crate::types::Ts;

const GAP: i8 = 0;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const RENEW: i8 = 4;

const RENEW_DISABLED: &str = "Renewing acquisition locks is not enabled for the group.";
const OFFSET_NOT_ACQUIRED: &str = "The offset cannot be acknowledged. The offset is not acquired.";
const BATCH_NOT_ACQUIRED: &str =
    "The batch cannot be acknowledged. The batch is not in the acquired state.";
const NOT_OWNER: &str = "Member is not the owner of offset";
const NOTHING_CACHED: &str =
    "Batch record not found. The request batch offsets are not found in the cache.";
const FIRST_PAST: &str =
    "Batch record not found. The first offset in request is past acquired records.";
const LAST_PAST: &str =
    "Batch record not found. The last offset in request is past acquired records.";

impl SharePartition {
    /// Acknowledges `batches` for `member`, all or nothing.
    ///
    /// With a token the change takes effect when the write of that token is settled; without one it
    /// already has (renewals, offsets below the start). `is_renew_ack` is the request's field of that
    /// name, false in version 1. The errors carry Kafka's texts.
    pub fn acknowledge(
        &mut self,
        now: Ts,
        member: &str,
        batches: &[AckBatch<'_>],
        is_renew_ack: bool,
        limits: &Limits,
    ) -> Result<Option<Token>, AckError> {
        self.expire(now, limits);
        check_form(batches, is_renew_ack, limits)?;
        let member_slot = self.locks.member(member);
        let mut taken = None;
        for batch in batches {
            if taken == Some(batch.first) && batch.first >= self.window.start() {
                return Err(AckError::InvalidRecordState(Some(OFFSET_NOT_ACQUIRED)));
            }
            self.check_held(batch, member_slot)?;
            // The form allows the next batch to begin where this one ends. A renewed record would
            // still be acquired then, any other would not.
            taken = batch
                .types
                .last()
                .filter(|&&kind| kind != RENEW)
                .map(|_| batch.last);
        }
        let mut changes = Changes::default();
        for batch in batches {
            self.mark(now, member, batch, limits, &mut changes);
        }
        Ok(self.propose(changes, false))
    }

    /// Whether `member` holds every record of `batch` that is not below the start offset.
    fn check_held(&self, batch: &AckBatch<'_>, member: u32) -> Result<(), AckError> {
        if batch.last < self.window.start() {
            return Ok(());
        }
        if self.window.is_empty() {
            return Err(AckError::InvalidRecordState(Some(NOTHING_CACHED)));
        }
        if batch.first > self.window.end() {
            return Err(AckError::InvalidRequest(Some(FIRST_PAST)));
        }
        if batch.last > self.window.end() {
            return Err(AckError::InvalidRequest(Some(LAST_PAST)));
        }
        let range = self.window.clip(OffsetRange::new(batch.first, batch.last));
        for offset in range.first..=range.last {
            let record = self.window.get(offset);
            if !record.state.is_acquired() || record.pending.is_some() {
                return Err(AckError::InvalidRecordState(Some(
                    self.not_acquired(offset),
                )));
            }
            if self.locks.get(record.lock).member != member {
                return Err(AckError::InvalidRecordState(Some(NOT_OWNER)));
            }
        }
        Ok(())
    }

    /// Kafka speaks of the batch while the whole in-flight batch is in one state.
    fn not_acquired(&self, offset: i64) -> &'static str {
        let extents = self.window.extents();
        let extent = extents.get(self.window.extent_at_or_after(offset));
        if extent.is_some_and(|extent| extent.first <= offset && !extent.split) {
            BATCH_NOT_ACQUIRED
        } else {
            OFFSET_NOT_ACQUIRED
        }
    }

    /// Marks the records of a checked batch, and renews those that it renews.
    fn mark(
        &mut self,
        now: Ts,
        member: &str,
        batch: &AckBatch<'_>,
        limits: &Limits,
        changes: &mut Changes,
    ) {
        let range = self.window.clip(OffsetRange::new(batch.first, batch.last));
        if range.is_empty() {
            return;
        }
        self.window.split_around(range);
        let uniform = batch.types.windows(2).all(|pair| pair[0] == pair[1]);
        if !uniform {
            self.window.split_within(range);
        }
        let mut renewed = NONE;
        for offset in range.first..=range.last {
            let kind = if uniform {
                batch.types[0]
            } else {
                batch.types[(offset - batch.first) as usize]
            };
            let record = self.window.get(offset);
            if let Some(next) = next_state(kind, record.delivery_count, limits) {
                self.window.set(offset, record.becoming(next.state));
                changes.add(offset, next);
            } else {
                // The renewed lock is of the delivery that the old one was of.
                let generation = self.locks.get(record.lock).generation;
                if renewed == NONE || self.locks.get(renewed).generation != generation {
                    let deadline = now.saturating_add(limits.lock_duration_ms);
                    renewed = self.locks.open(member, deadline, generation, offset);
                }
                self.locks.hold(renewed, offset);
                self.locks.drop_one(record.lock);
                self.window.set(
                    offset,
                    Record {
                        lock: renewed,
                        ..record
                    },
                );
            }
        }
    }
}

/// What an acknowledgement of `kind` makes of a record; none for a renewal.
fn next_state(kind: i8, delivery_count: i16, limits: &Limits) -> Option<Next> {
    match kind {
        ACCEPT => Some(Next::to(RecordState::Acknowledged)),
        RELEASE => Some(given_back(delivery_count, limits)),
        REJECT => Some(Next::ended(LetterCause::Rejected, limits)),
        RENEW => None,
        // A gap: there is no record, so there is no letter.
        _ => Some(Next::to(RecordState::Archived)),
    }
}

/// What can be said of a request without looking at the records.
fn check_form(
    batches: &[AckBatch<'_>],
    is_renew_ack: bool,
    limits: &Limits,
) -> Result<(), AckError> {
    let mut last = -1;
    let mut renews = false;
    for batch in batches {
        let offsets = batch
            .last
            .checked_sub(batch.first)
            .and_then(|n| n.checked_add(1));
        let fits = batch.types.len() == 1
            || offsets.is_some_and(|offsets| offsets == batch.types.len() as i64);
        if batch.first > batch.last || batch.first < last || !fits {
            return Err(AckError::InvalidRequest(None));
        }
        last = batch.last;
        for &kind in batch.types {
            if !(GAP..=RENEW).contains(&kind) || (kind == RENEW && !is_renew_ack) {
                return Err(AckError::InvalidRequest(None));
            }
            renews |= kind == RENEW;
        }
    }
    if renews && !limits.renew_enabled {
        return Err(AckError::InvalidRecordState(Some(RENEW_DISABLED)));
    }
    Ok(())
}
