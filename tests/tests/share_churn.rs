//! Many members at once on several threads: locks that expire, releases, lost connections, and fetches
//! that nothing but an event wakes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ottla_protocol::ErrorCode;
use ottla_tests::{ACCEPT, Ask, At, Client, Member, OK, Queue, RELEASE, Settings, soon};
use tokio::sync::Notify;
use tokio::task::JoinSet;

const RECORDS: i64 = 600;
const MEMBERS: usize = 6;

/// What was accepted so far, and that all is.
#[derive(Default)]
struct Progress {
    accepted: Mutex<BTreeSet<i64>>,
    done: Notify,
}

impl Progress {
    fn accepted(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self, first: i64, last: i64) {
        let mut accepted = self.accepted();
        accepted.extend(first..=last);
        if accepted.len() as i64 == RECORDS {
            self.done.notify_one();
        }
    }
}

/// Fetches for ever, and does with each record one of four things; from its sixth delivery on it is
/// accepted, before the limit would archive it.
async fn work(address: std::net::SocketAddr, at: At, n: usize, progress: Arc<Progress>) {
    let connect = || async {
        let client = Client::connect(address).await;
        Member::new(client, Queue::GROUP, &format!("member {n}"))
    };
    let mut member = connect().await;
    for turn in n.. {
        let ask = if member.epoch == 0 {
            Ask::of(at)
        } else {
            Ask::new()
        };
        let ask = ask.exactly(1 + (turn * 7 % 9) as i32).patient();
        let fetched = member.fetch(&ask).await;
        let entries = fetched
            .partition(at)
            .map_or(&[][..], |p| &p.acquired_records);
        for entry in entries {
            let (first, last) = (entry.first_offset, entry.last_offset);
            let what = if entry.delivery_count >= 6 {
                0
            } else {
                turn % 4
            };
            match what {
                0 | 1 => {
                    let kind = if what == 0 { ACCEPT } else { RELEASE };
                    let (code, text) = member.ack(at, first, last, kind).await;
                    // Its lock may have expired on the way.
                    let expired = ErrorCode::INVALID_RECORD_STATE.0;
                    assert!(code == 0 || code == expired, "{code} {text:?}");
                    if code == 0 && kind == ACCEPT {
                        progress.accept(first, last);
                    }
                }
                // Kept until the lock expires.
                2 => {}
                _ => {
                    member = connect().await;
                    break;
                }
            }
        }
    }
}

// D2, D5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_release_expire_and_vanish_accept_every_record_once() {
    let settings = Settings::new().real_clock();
    let configs = [
        ("share.record.lock.duration.ms", "20"),
        ("share.delivery.count.limit", "10"),
    ];
    let mut queue = Queue::of(1, settings, &configs).await;
    let _member = queue.member("initialises the group").await;
    let progress = Arc::new(Progress::default());
    let mut tasks = JoinSet::new();
    for n in 0..MEMBERS {
        let address = queue.broker.address();
        tasks.spawn(work(address, queue.at, n, Arc::clone(&progress)));
    }
    for _ in 0..RECORDS / 20 {
        queue.produce(20).await;
    }
    let all_accepted = async {
        tokio::select! {
            biased;
            () = progress.done.notified() => {}
            ended = tasks.join_next() => panic!("a member ended: {ended:?}"),
        }
    };
    soon("every record is accepted", all_accepted).await;
    assert_eq!(queue.start_and_lag().await.1, 0);
    let mut last = queue.member("last").await;
    let fetched = last.fetch(&Ask::of(queue.at)).await;
    assert_eq!(fetched.fetch_error(queue.at), OK);
    assert_eq!(fetched.acquired(queue.at), "", "nothing comes back");
}
