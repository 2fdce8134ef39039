//! The naive model's acquisition.

use ottla_coordinator::share::types::{
    AcquireMode, AcquireRequest, AcquiredRange, Limits, OffsetRange, RecordState,
};

use super::naive::{Lock, Pair, Record};

fn contains(ranges: &[OffsetRange], offset: i64) -> bool {
    ranges
        .iter()
        .any(|range| range.first <= offset && offset <= range.last)
}

impl Pair {
    pub(crate) fn acquire(
        &mut self,
        member: &str,
        limits: &Limits,
        request: &AcquireRequest<'_>,
    ) -> Vec<AcquiredRange> {
        let got = self.part.acquire(self.now, member, limits, request);
        self.expire(limits);
        if self.post.paused || request.max_records < 1 || request.batches.is_empty() {
            assert!(got.is_empty());
            self.compare(limits);
            return got;
        }
        let last = request.batches.last().map_or(-1, |batch| batch.last);
        let in_log =
            |offset: i64| contains(request.batches, offset) && !contains(request.aborted, offset);
        for (&offset, record) in &mut self.records {
            let read = offset >= request.fetch_offset && offset <= last;
            let absent =
                contains(request.aborted, offset) || (read && !contains(request.batches, offset));
            if absent && record.is_free() {
                record.state = RecordState::Archived;
            }
        }
        self.advance_start();
        let throttles = limits.delivery_count_limit > 2 && limits.delivery_count_limit < 1000;
        if request.mode == AcquireMode::RecordLimit {
            let expected = self.expect_exact(limits, request);
            let offsets: Vec<i64> = got.iter().flat_map(|r| r.first..=r.last).collect();
            if throttles {
                assert!(offsets.len() as i32 <= request.max_records);
                assert_eq!(offsets.is_empty(), expected.is_empty());
            } else {
                assert_eq!(offsets, expected);
            }
        }
        self.follow(member, limits, request, &got, &in_log);
        for (&offset, record) in &mut self.records {
            record.data &= !contains(request.non_data, offset);
        }
        self.advance_start();
        self.compare(limits);
        got
    }

    /// The offsets of an exact acquisition without throttling.
    fn expect_exact(&self, limits: &Limits, request: &AcquireRequest<'_>) -> Vec<i64> {
        let (first, last) = (
            request.batches[0].first,
            request.batches.last().unwrap().last,
        );
        let max = request.max_records as usize;
        let mut got: Vec<i64> = self
            .records
            .iter()
            .filter(|&(&offset, record)| {
                record.is_free() && offset >= first && offset <= last && offset < request.upper
            })
            .map(|(&offset, _)| offset)
            .take(max)
            .collect();
        let mut room = i64::from(limits.max_record_locks) - self.records.len() as i64;
        let mut next = self.end() + 1;
        for batch in request.batches {
            let from = batch.first.max(next);
            let to = batch.last.min(request.upper - 1);
            if to < from {
                continue;
            }
            let hole = from - next;
            let empty = self.records.is_empty() && next == self.end() + 1;
            if room <= 0 || (hole > 0 && next < request.fetch_offset) {
                return got;
            }
            if hole > 0 && !empty {
                if hole >= room {
                    return got;
                }
                room -= hole;
            }
            for offset in from..=to {
                if room <= 0 || got.len() >= max {
                    return got;
                }
                room -= 1;
                if !contains(request.aborted, offset) {
                    got.push(offset);
                }
            }
            next = to + 1;
        }
        got
    }

    /// Checks what the machine gave and applies it.
    fn follow(
        &mut self,
        member: &str,
        limits: &Limits,
        request: &AcquireRequest<'_>,
        got: &[AcquiredRange],
        in_log: &impl Fn(i64) -> bool,
    ) {
        let lock = Lock {
            member: member.to_owned(),
            deadline: self.now + limits.lock_duration_ms,
            running: true,
            generation: self.post.generation,
        };
        let mut previous = -1;
        for range in got {
            assert!(
                previous < range.first && range.first <= range.last,
                "{got:?}"
            );
            previous = range.last;
            for offset in range.first..=range.last {
                assert!(
                    in_log(offset) && offset < request.upper,
                    "{offset} in {request:?}"
                );
                assert!(
                    !self.ended.contains(&offset),
                    "{offset} was delivered after its end"
                );
                while self.end() + 1 < offset {
                    let next = self.end() + 1;
                    assert!(!in_log(next), "{next} was skipped");
                    self.records.insert(next, Record::absent());
                }
                let record = self.records.entry(offset).or_insert(Record {
                    state: RecordState::Available,
                    ..Record::absent()
                });
                assert!(record.is_free(), "{offset} was not free");
                record.state = RecordState::Acquired;
                record.count += 1;
                record.lock = Some(lock.clone());
                assert_eq!(record.count, range.delivery_count);
            }
        }
        while self.end() < self.part.end_offset() {
            let next = self.end() + 1;
            assert!(!in_log(next), "{next} was skipped");
            self.records.insert(next, Record::absent());
        }
    }
}
