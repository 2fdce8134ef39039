//! A share group over a backlog a hundred times its window: memory stays flat, and so does the work.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::partition::SharePartition;
use ottla_coordinator::share::types::{
    AckBatch, AcquireMode, AcquireRequest, OffsetRange, PersistedState,
};
use support::{ACCEPT, RELEASE};

const WINDOW: i64 = 200;

/// Consumes `records` records in batches of 50 by two members, with the head of the window released
/// once each, and returns the most memory it took.
fn consume(records: i64) -> usize {
    let mut limits = support::limits();
    limits.max_record_locks = WINDOW as i32;
    let mut part = SharePartition::load(&PersistedState::default(), 0, 0, &limits);
    let mut most = 0;
    let mut turn = 0;
    while part.start_offset() < records {
        turn += 1;
        let member = ["a", "b"][turn % 2];
        let Some(fetch_offset) = part.next_fetch_offset(&limits) else {
            unreachable!()
        };
        let base = fetch_offset - fetch_offset % 50;
        let batches = [0, 50, 100].map(|at| OffsetRange::new(base + at, base + at + 49));
        let request = AcquireRequest {
            max_records: 120,
            batch_size: 500,
            mode: AcquireMode::BatchOptimized,
            fetch_offset,
            batches: &batches,
            upper: i64::MAX,
            aborted: &[],
            non_data: &[],
        };
        for range in part.acquire(turn as i64, member, &limits, &request) {
            let kind = if range.delivery_count == 1 {
                RELEASE
            } else {
                ACCEPT
            };
            let batch = AckBatch {
                first: range.first,
                last: range.last,
                types: &[kind],
            };
            part.acknowledge(turn as i64, member, &[batch], false, &limits)
                .unwrap();
        }
        while let Some((token, write)) = part.take_write() {
            assert!(write.batches.len() <= 8);
            part.write_done(token, true, turn as i64, &limits);
        }
        assert!(part.end_offset() - part.start_offset() < WINDOW + 50);
        most = most.max(part.heap_bytes());
    }
    assert_eq!(part.lock_count(), 0);
    most
}

#[test]
fn memory_is_that_of_the_window_whatever_the_backlog() {
    let (short, long) = (consume(10 * WINDOW), consume(1000 * WINDOW));
    assert_eq!(short, long);
    assert!(long < 16 * 1024, "{long} bytes");
}
