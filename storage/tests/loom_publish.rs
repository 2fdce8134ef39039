//! Loom model of `publish.rs`, the shipped kernel; the segment's bytes are atomics read and written
//! `Relaxed`, so that only the kernel's own ordering can make them visible.
//!
//! Sabotages that this model catches (each tried, each fails within the first executions):
//! - `Watermark::raise` with `Relaxed`: a reader who walks a segment sees a size and not the bytes
//!   below it;
//! - the store of `end` in `Published::append` with `Relaxed`: a reader sees an end and not the size;
//! - raising the size before `segment.write`: a reader sees unwritten bytes;
//! - storing `stable` before `end`: a reader sees a stable offset beyond the end;
//! - `bounds` loading `end` first: the same;
//! - `raise_start` after `replace` in the model's trim: a reader misses records that nobody deleted.
#![cfg(ottla_loom)]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::sync::Arc;
use loom::sync::atomic::AtomicU8;
use loom::thread;
use ottla_storage::publish::{Bounds, ByteStore, Published, Watermark};

struct Segment {
    base: i64,
    bytes: [AtomicU8; 2],
    size: Watermark,
}

impl Segment {
    fn new(base: i64) -> Arc<Self> {
        Arc::new(Self {
            base,
            bytes: [AtomicU8::new(0), AtomicU8::new(0)],
            size: Watermark::new(0),
        })
    }
}

impl ByteStore for Segment {
    type Error = Infallible;

    fn size(&self) -> &Watermark {
        &self.size
    }

    fn write(&self, at: u64, parts: [&[u8]; 2]) -> Result<(), Infallible> {
        for (i, byte) in parts.concat().into_iter().enumerate() {
            self.bytes[at as usize + i].store(byte, Relaxed);
        }
        Ok(())
    }
}

fn append(log: &Published<Segment>, segment: &Segment, offset: i64, stable: i64) {
    let byte = [offset as u8 + 1];
    let Ok(()) = log.append(segment, [&byte, &[]], |_| (offset + 1, stable));
}

/// Reads every record that is published, and checks each.
fn read(log: &Published<Segment>) {
    let bounds = log.bounds();
    assert!(bounds.start <= bounds.end, "{bounds:?}");
    assert!(bounds.stable <= bounds.end, "{bounds:?}");
    let segments = log.segments();
    for offset in bounds.start..bounds.end {
        let after = segments.partition_point(|s| s.base <= offset);
        let Some(segment) = after.checked_sub(1).map(|at| &segments[at]) else {
            assert!(log.bounds().start > offset, "offset {offset} is missing");
            continue;
        };
        let at = (offset - segment.base) as usize;
        assert!(
            (at as u64) < segment.size.get(),
            "offset {offset} is cut off"
        );
        assert_eq!(segment.bytes[at].load(Relaxed), offset as u8 + 1);
    }
}

/// Reads the last segment by its size, as walks do; that may be newer than the end.
fn walk(log: &Published<Segment>) {
    if let Some(segment) = log.segments().last() {
        for at in 0..segment.size.get() as usize {
            let byte = segment.bytes[at].load(Relaxed);
            assert_eq!(byte, segment.base as u8 + at as u8 + 1);
        }
    }
}

fn explore(name: &str, model: impl Fn() + Send + Sync + 'static) {
    static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);
    EXECUTIONS.store(0, Relaxed);
    let mut builder = loom::model::Builder::new();
    // The model runs to its end or fails: no limit may hide that it did not finish.
    builder.max_duration = None;
    builder.max_permutations = None;
    let bound = builder.preemption_bound;
    builder.check(move || {
        EXECUTIONS.fetch_add(1, Relaxed);
        model();
    });
    println!(
        "loom {name}: {} executions, preemption bound {bound:?}",
        EXECUTIONS.load(Relaxed)
    );
}

/// One after the other: the executions are counted in one place.
#[test]
fn readers_see_whole_records_only() {
    explore("publish: append, roll, append, trim; two readers", || {
        let first = Segment::new(0);
        let bounds = Bounds {
            start: 0,
            stable: 0,
            end: 0,
        };
        let log = Arc::new(Published::new(vec![Arc::clone(&first)], bounds));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let log = Arc::clone(&log);
                thread::spawn(move || read(&log))
            })
            .collect();
        append(&log, &first, 0, 1);
        let second = Segment::new(1);
        log.replace(vec![first, Arc::clone(&second)]);
        append(&log, &second, 1, 2);
        log.raise_start(1);
        log.replace(vec![second]);
        for reader in readers {
            reader.join().unwrap();
        }
        read(&log);
    });
    explore(
        "publish: an open transaction ends; a reader, then a walk",
        || {
            let first = Segment::new(0);
            let bounds = Bounds {
                start: 0,
                stable: 0,
                end: 0,
            };
            let log = Arc::new(Published::new(vec![Arc::clone(&first)], bounds));
            let reader = {
                let log = Arc::clone(&log);
                thread::spawn(move || {
                    read(&log);
                    walk(&log);
                })
            };
            append(&log, &first, 0, 0);
            append(&log, &first, 1, 2);
            reader.join().unwrap();
            assert_eq!(log.bounds().stable, 2);
        },
    );
}
