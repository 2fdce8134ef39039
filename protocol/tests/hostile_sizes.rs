//! However hostile a body is, decoding it takes no more memory than its size allows.
//!
//! One test in a process of its own: it counts every allocation.

#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use ottla_protocol::api_key;
use ottla_protocol::guard::{self, Variety};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What an error's text and a shared buffer's header may take.
const SLACK: usize = 4_096;

/// Decodes a body and compares what that took, at its peak, with the budget; tells if it was accepted.
fn decode_within_budget(key: i16, version: i16, body: Vec<u8>) -> bool {
    let length = body.len();
    let body = Bytes::from(body);
    ALLOCATED.reset_peak_usage();
    let before = ALLOCATED.current_usage();
    let accepted = guard::decode_any(key, version, body).is_ok();
    let taken = ALLOCATED.peak_usage().saturating_sub(before);
    let budget = guard::memory_budget(length) + SLACK;
    assert!(
        taken <= budget,
        "key {key} version {version}: {taken} bytes for a body of {length}"
    );
    accepted
}

/// A body with one long list of the smallest elements: the `nth` list that is met.
fn one_long_list(key: i16, version: i16, elements: u32, nth: usize, tags: u32) -> Vec<u8> {
    let mut lists = 0;
    let variety = Variety {
        tags: false,
        elements,
        string: 0,
    };
    let mut choose = |bound: u32| match bound {
        3 => tags,
        4 => 1,
        n if n == elements + 1 => {
            lists += 1;
            // The lists around the long one have one element each.
            if lists - 1 == nth {
                elements
            } else {
                u32::from(lists <= nth)
            }
        }
        _ => 0,
    };
    guard::sample(key, version, variety, &mut choose)
        .unwrap()
        .body
}

#[test]
fn decoding_takes_no_more_memory_than_the_budget() {
    let (mut accepted, mut refused) = (0, 0);
    for key in (0..=api_key::MAX).chain(api_key::OWN) {
        let Some((min, max)) = guard::versions(key) else {
            continue;
        };
        for (version, elements, tags) in [(min, 2_000, 0), (max, 1_000, 2), (max, 25_000, 0)] {
            for nth in 0..3 {
                let body = one_long_list(key, version, elements, nth, tags);
                if decode_within_budget(key, version, body) {
                    accepted += 1;
                } else {
                    refused += 1;
                }
            }
        }
    }
    assert!(
        accepted > 500 && refused > 40,
        "{accepted} accepted, {refused} refused"
    );

    // Counts without elements behind them: the process lives, and nothing is reserved.
    for key in (0..=api_key::MAX).chain(api_key::OWN) {
        let Some((min, max)) = guard::versions(key) else {
            continue;
        };
        for version in min..=max {
            let variety = Variety {
                tags: true,
                elements: 2,
                string: 4,
            };
            let sample = guard::sample(key, version, variety, &mut |n| n - 1).unwrap();
            for length in &sample.lengths {
                let huge: &[u8] = match (length.compact, length.width) {
                    (true, _) => &[0xff, 0xff, 0xff, 0xff, 0x07],
                    (false, 2) => &[0x7f, 0xff],
                    (false, _) => &[0x7f, 0xff, 0xff, 0xff],
                };
                let (before, after) = sample.body.split_at(length.at);
                let body = [before, huge, &after[length.width..]].concat();
                assert!(
                    !decode_within_budget(key, version, body),
                    "key {key} version {version}"
                );
            }
        }
    }
}
