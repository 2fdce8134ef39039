//! Loom model of `flush.rs`, the shipped kernel: two appenders that wait for the disk, one flusher.
//! The page cache and the disk are atomics accessed `Relaxed`; the flusher's queue, a crossbeam
//! channel in production and invisible to loom, is loom's channel here.
//!
//! Sabotages that this model catches (each tried, each fails):
//! - `queued = false` after the sync instead of before it: a request is swallowed, its waiter never
//!   wakes (deadlock);
//! - loading `written` after the sync: a waiter is told of bytes that the sync did not cover;
//! - leaving out `notify_all`: deadlock;
//! - not setting `failed` on an error: a later sync covers a failed one up;
//! - looking at `failed` before `synced` in `wait`: who was synced is told of a later failure.
#![cfg(ottla_loom)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::sync::atomic::AtomicI64;
use loom::sync::mpsc::{Receiver, Sender, channel};
use loom::sync::{Arc, Mutex};
use loom::thread;
use ottla_storage::flush::{GroupCommit, SyncFailed};

enum Message {
    Sync,
    /// An appender is through.
    Done,
}

struct Log {
    commit: GroupCommit,
    /// The log's lock, and its end.
    end: Mutex<i64>,
    cache: AtomicI64,
    disk: AtomicI64,
}

impl Log {
    fn new() -> Self {
        Self {
            commit: GroupCommit::new(0),
            end: Mutex::new(0),
            cache: AtomicI64::new(0),
            disk: AtomicI64::new(0),
        }
    }

    fn append(&self) -> i64 {
        let mut end = self.end.lock().unwrap();
        *end += 1;
        self.cache.store(*end, Relaxed);
        self.commit.wrote(*end);
        *end
    }

    fn append_and_wait(&self, queue: Sender<Message>) -> Result<(), SyncFailed> {
        let end = self.append();
        if self.commit.request() {
            queue.send(Message::Sync).unwrap();
        }
        let result = self.commit.wait(end);
        if result.is_ok() {
            let disk = self.disk.load(Relaxed);
            assert!(disk >= end, "told of bytes that are not on the disk");
        }
        queue.send(Message::Done).unwrap();
        result
    }

    /// Serves requests until the appenders are done; the sync number `fails` fails.
    fn run_flusher(&self, requests: Receiver<Message>, fails: usize) {
        let (mut syncs, mut done) = (0, 0);
        while done < 2 {
            if matches!(requests.recv().unwrap(), Message::Done) {
                done += 1;
                continue;
            }
            syncs += 1;
            let _ = self.commit.run(|| {
                if syncs == fails {
                    return Err(());
                }
                self.disk.store(self.cache.load(Relaxed), Relaxed);
                Ok(())
            });
        }
    }
}

fn explore(name: &str, fails: usize) {
    static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);
    EXECUTIONS.store(0, Relaxed);
    let mut builder = loom::model::Builder::new();
    // The model runs to its end or fails: no limit may hide that it did not finish.
    builder.max_duration = None;
    builder.max_permutations = None;
    let bound = builder.preemption_bound;
    builder.check(move || {
        EXECUTIONS.fetch_add(1, Relaxed);
        let log = Arc::new(Log::new());
        let (queue, requests) = channel();
        let appenders: Vec<_> = (0..2)
            .map(|_| {
                let (log, queue) = (Arc::clone(&log), queue.clone());
                thread::spawn(move || log.append_and_wait(queue))
            })
            .collect();
        drop(queue);
        log.run_flusher(requests, fails);
        let results: Vec<_> = appenders.into_iter().map(|a| a.join().unwrap()).collect();
        let failed = results.iter().filter(|result| result.is_err()).count();
        match fails {
            0 => assert_eq!((failed, log.commit.synced()), (0, 2)),
            1 => assert_eq!((failed, log.commit.synced()), (2, 0)),
            _ => assert!(failed < 2),
        }
        // A second sync may fail after the first covered everyone.
        assert!(log.commit.failed() || failed == 0);
    });
    println!(
        "loom {name}: {} executions, preemption bound {bound:?}",
        EXECUTIONS.load(Relaxed)
    );
}

/// One after the other: the executions are counted in one place.
#[test]
fn every_waiter_is_told_the_truth() {
    explore("flush: two appenders, one flusher", 0);
    explore("flush: the first sync fails", 1);
    explore("flush: the second sync fails", 2);
}
