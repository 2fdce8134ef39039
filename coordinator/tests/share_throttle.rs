//! Deliveries near the delivery limit: the sizes that were measured on Apache Kafka 4.4.0.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::types::AcquireMode;
use support::{Bench, RELEASE};

/// All that a member gets when it releases everything it gets, `rounds` times.
fn always_released(limit: i16, rounds: usize, exact: bool) -> Vec<i64> {
    let mut bench = Bench::new(&[16]);
    bench.limits.delivery_count_limit = limit;
    let mut sizes = Vec::new();
    for _ in 0..rounds {
        let mode = if exact {
            AcquireMode::RecordLimit
        } else {
            AcquireMode::BatchOptimized
        };
        let got = bench.fetch("m", mode, 500);
        sizes.push(got.iter().map(|range| range.last - range.first + 1).sum());
        bench.release_member("m");
    }
    sizes
}

#[test]
fn deliveries_shrink_near_the_limit() {
    for exact in [false, true] {
        let mut expected = vec![16, 16, 16, 8];
        expected.extend([1; 8]);
        expected.push(8);
        expected.extend([1; 8]);
        expected.push(0);
        assert_eq!(always_released(5, expected.len(), exact), expected);
        let mut expected = vec![16, 16];
        expected.extend([1; 16]);
        expected.push(0);
        assert_eq!(always_released(3, expected.len(), exact), expected);
        assert_eq!(always_released(2, 3, exact), [16, 16, 0]);
        assert_eq!(always_released(1, 2, exact), [16, 0]);
        let sizes = always_released(10, 10, exact);
        assert_eq!(sizes, [16, 16, 16, 16, 16, 8, 4, 2, 1, 1]);
    }
}

/// Raises the counts of some records of an extent of 16, releases everything, and fetches.
fn throttled(limit: i16, raised: &[(i64, i64, i16)], more: i64, max: Option<i32>) -> Vec<String> {
    let mut bench = Bench::new(&[16, more]);
    if more == 0 {
        bench.log.truncate(1);
        bench.upper = 16;
    }
    bench.limits.delivery_count_limit = limit;
    bench.whole("m", 1);
    for &(first, last, times) in raised {
        for _ in 0..times {
            bench.acked("m", first, last, RELEASE);
            let got = bench.exact("m", (last - first + 1) as i32);
            assert!(got.starts_with(&format!("{first}-{last}#")), "{got}");
        }
    }
    bench.whole("m", 500);
    bench.release_member("m");
    let mut got = Vec::new();
    loop {
        let text = match max {
            Some(max) => bench.exact("m", max),
            None => bench.whole("m", 500),
        };
        if text.is_empty() {
            return got;
        }
        got.push(text);
    }
}

#[test]
fn a_bad_record_is_delivered_apart_from_its_neighbours() {
    assert_eq!(
        throttled(5, &[(7, 7, 3)], 0, None),
        ["0-6#2", "7-7#5", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(7, 7, 2)], 0, None),
        ["0-6#2 7-7#4", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(0, 1, 2)], 0, None),
        ["0-1#4 2-7#2", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(3, 3, 2), (7, 7, 3)], 0, None),
        ["0-2#2 3-3#4 4-6#2", "7-7#5", "8-15#2"]
    );
    assert_eq!(
        throttled(5, &[(3, 3, 3), (7, 7, 2)], 0, None),
        ["0-2#2", "3-3#5", "4-6#2 7-7#4 8-11#2", "12-15#2"]
    );
    assert_eq!(
        throttled(5, &[(3, 3, 3), (7, 7, 2)], 0, Some(5)),
        ["0-2#2", "3-3#5", "4-6#2 7-7#4 8-8#2", "9-13#2", "14-15#2"]
    );
    assert_eq!(
        throttled(10, &[(12, 12, 6)], 0, None),
        ["0-11#2 12-12#8 13-15#2"]
    );
    assert_eq!(
        throttled(10, &[(0, 1, 4), (12, 12, 6)], 0, None),
        ["0-1#6 2-7#2", "8-11#2 12-12#8 13-15#2"]
    );
    assert_eq!(
        throttled(10, &[(0, 0, 6), (5, 5, 4)], 0, None),
        ["0-0#8 1-1#2", "2-4#2 5-5#6 6-9#2", "10-15#2"]
    );
    assert_eq!(
        throttled(10, &[(3, 3, 7), (12, 12, 8)], 0, None),
        ["0-2#2 3-3#9 4-11#2", "12-12#10", "13-15#2"]
    );
    assert_eq!(
        throttled(10, &[(0, 0, 4), (1, 1, 6)], 0, None),
        ["0-0#6 1-1#8 2-7#2", "8-15#2"]
    );
}

#[test]
fn a_fetch_ends_after_a_throttled_extent() {
    assert_eq!(
        throttled(5, &[(7, 7, 3)], 16, None),
        ["0-6#2", "7-7#5", "8-15#2 16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(0, 0, 3)], 16, None),
        ["0-0#5", "1-15#2 16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(15, 15, 3)], 16, None),
        ["0-14#2", "15-15#5", "16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(15, 15, 2)], 16, None),
        ["0-14#2 15-15#4", "16-31#2"]
    );
    assert_eq!(
        throttled(5, &[(15, 15, 2)], 16, Some(12)),
        ["0-11#2", "12-14#2 15-15#4", "16-27#2", "28-31#2"]
    );
}

#[test]
fn records_whose_state_is_being_written_do_not_throttle_their_neighbours() {
    let mut bench = Bench::new(&[16]);
    for _ in 0..4 {
        bench.whole("m", 500);
        bench.release_member("m");
    }
    assert_eq!(bench.whole("m", 500), "0-0#5");
    bench.propose("m", &[(0, 0, &[RELEASE])]).unwrap();
    bench.take();
    assert_eq!(bench.window(), "0-0q*5 1-7a4 8-15a3");
    assert_eq!(bench.part.next_fetch_offset(&bench.limits), Some(1));
}

#[test]
fn a_lowered_limit_gives_one_more_delivery_to_what_is_available() {
    let mut bench = Bench::new(&[3]);
    bench.limits.delivery_count_limit = 10;
    for _ in 0..4 {
        bench.whole("m", 500);
        bench.release_member("m");
    }
    bench.limits.delivery_count_limit = 3;
    assert_eq!(bench.whole("m", 500), "0-0#5");
    bench.release_member("m");
    assert_eq!(bench.window(), "1-2a4");
}
