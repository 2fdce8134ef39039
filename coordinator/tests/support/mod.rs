//! A share partition with short words for the tests: a log of batches, members by name, writes that
//! succeed or fail.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod naive;
mod naive_acquire;
mod naive_letters;

use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AckError, AcquireMode, AcquireRequest, AcquiredRange, Limits, OffsetRange,
    PersistedState, StateBatch, StateWrite, Token,
};

pub(crate) const GAP: i8 = 0;
pub(crate) const ACCEPT: i8 = 1;
pub(crate) const RELEASE: i8 = 2;
pub(crate) const REJECT: i8 = 3;
pub(crate) const RENEW: i8 = 4;

/// A share partition over a log that the test describes.
pub(crate) struct Bench {
    pub(crate) part: SharePartition,
    pub(crate) limits: Limits,
    pub(crate) log: Vec<OffsetRange>,
    pub(crate) aborted: Vec<OffsetRange>,
    pub(crate) non_data: Vec<OffsetRange>,
    pub(crate) upper: i64,
    pub(crate) batch_size: i32,
    pub(crate) now: i64,
    pub(crate) writes: Vec<StateWrite>,
    last_token: Token,
}

/// Kafka's defaults, but for a lock of 1 s.
pub(crate) fn limits() -> Limits {
    Limits {
        max_record_locks: 2000,
        delivery_count_limit: 5,
        lock_duration_ms: 1000,
        renew_enabled: true,
        dead_letters: false,
        dlq_write_timeout_ms: None,
    }
}

/// Consecutive batches of these sizes, from offset 0.
pub(crate) fn batches(sizes: &[i64]) -> Vec<OffsetRange> {
    let mut next = 0;
    let batch = |size: &i64| {
        next += size;
        OffsetRange::new(next - size, next - 1)
    };
    sizes.iter().map(batch).collect()
}

/// A run of records as it is persisted.
pub(crate) fn batch(first: i64, last: i64, state: u8, delivery_count: i16) -> StateBatch {
    StateBatch {
        first,
        last,
        state,
        delivery_count,
    }
}

impl Bench {
    pub(crate) fn new(sizes: &[i64]) -> Self {
        Self::over(batches(sizes), &PersistedState::default())
    }

    pub(crate) fn over(log: Vec<OffsetRange>, state: &PersistedState) -> Self {
        let upper = log.last().map_or(0, |batch| batch.last + 1);
        Self {
            part: SharePartition::load(state, state.start_offset, 0, &limits()),
            limits: limits(),
            log,
            aborted: Vec::new(),
            non_data: Vec::new(),
            upper,
            batch_size: 500,
            now: 0,
            writes: Vec::new(),
            last_token: Token(0),
        }
    }

    /// A fetch that reads everything from the next fetch offset on.
    pub(crate) fn fetch(
        &mut self,
        member: &str,
        mode: AcquireMode,
        max: i32,
    ) -> Vec<AcquiredRange> {
        let Some(from) = self.part.next_fetch_offset(&self.limits) else {
            return Vec::new();
        };
        let read: Vec<OffsetRange> = self
            .log
            .iter()
            .copied()
            .filter(|b| b.last >= from && b.first < self.upper)
            .collect();
        let request = AcquireRequest {
            max_records: max,
            batch_size: self.batch_size,
            mode,
            fetch_offset: from,
            batches: &read,
            upper: self.upper,
            aborted: &self.aborted,
            non_data: &self.non_data,
        };
        let acquired = self.part.acquire(self.now, member, &self.limits, &request);
        self.settle_all(true);
        acquired
    }

    /// [`Self::fetch`] by whole batches, as text: `0-9#1 10-19#2`.
    pub(crate) fn whole(&mut self, member: &str, max: i32) -> String {
        text(&self.fetch(member, AcquireMode::BatchOptimized, max))
    }

    /// [`Self::fetch`] by records.
    pub(crate) fn exact(&mut self, member: &str, max: i32) -> String {
        text(&self.fetch(member, AcquireMode::RecordLimit, max))
    }

    /// Acknowledges without settling the write.
    pub(crate) fn propose(
        &mut self,
        member: &str,
        batches: &[(i64, i64, &[i8])],
    ) -> Result<Option<Token>, AckError> {
        let batches: Vec<AckBatch<'_>> = batches
            .iter()
            .map(|&(first, last, types)| AckBatch { first, last, types })
            .collect();
        let renews = batches.iter().any(|batch| batch.types.contains(&RENEW));
        self.part
            .acknowledge(self.now, member, &batches, renews, &self.limits)
    }

    /// Acknowledges one range with one type, written at once.
    pub(crate) fn ack(
        &mut self,
        member: &str,
        first: i64,
        last: i64,
        kind: i8,
    ) -> Result<(), AckError> {
        let done = self.propose(member, &[(first, last, &[kind])]).map(|_| ());
        self.settle_all(true);
        done
    }

    /// Acknowledges and demands that it is accepted.
    pub(crate) fn acked(&mut self, member: &str, first: i64, last: i64, kind: i8) {
        assert_eq!(self.ack(member, first, last, kind), Ok(()));
    }

    pub(crate) fn release_member(&mut self, member: &str) {
        self.part.release_member(self.now, member, &self.limits);
        self.settle_all(true);
    }

    /// Moves the time and ends what is due.
    pub(crate) fn advance(&mut self, ms: i64) {
        self.now += ms;
        self.part.on_deadline(self.now, &self.limits);
        self.settle_all(true);
    }

    /// Takes the next write and keeps it, for [`Self::settle`].
    pub(crate) fn take(&mut self) -> StateWrite {
        let (token, write) = self.part.take_write().expect("a write");
        self.last_token = token;
        self.writes.push(write.clone());
        write
    }

    /// Settles the write taken last.
    pub(crate) fn settle(&mut self, ok: bool) {
        self.part
            .write_done(self.last_token, ok, self.now, &self.limits);
    }

    /// Takes and settles every write.
    pub(crate) fn settle_all(&mut self, ok: bool) {
        while self.part.has_writes() {
            self.take();
            self.settle(ok);
        }
    }

    /// The window as text: a run is `first-last` and `a`vailable, ac`q`uired, a`c`cepted,
    /// archivin`g` or archi`v`ed, `*` while a write is pending, and the delivery count.
    pub(crate) fn window(&self) -> String {
        let runs = self.part.in_flight();
        let run = |run: &ottla_coordinator::share::types::InFlight| {
            let state = ['a', 'q', 'c', 'g', 'v'][usize::from(run.state.code())];
            let pending = if run.pending.is_some() { "*" } else { "" };
            format!(
                "{}-{}{state}{pending}{}",
                run.first, run.last, run.delivery_count
            )
        };
        runs.iter().map(run).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn text(ranges: &[AcquiredRange]) -> String {
    let range = |r: &AcquiredRange| format!("{}-{}#{}", r.first, r.last, r.delivery_count);
    ranges.iter().map(range).collect::<Vec<_>>().join(" ")
}
