//! Share groups over kill -9 and restart, and over a backlog far larger than their window.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ottla_protocol::ErrorCode;
use ottla_tests::{
    ACCEPT, Ask, At, Child, Client, Launch, Member, OK, Queue, REJECT, RELEASE, ShareFetched,
    batch_of, wall_ms,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

async fn start(dir: &Path) -> Child {
    Launch::new().data_dir(dir).start().await
}

/// The topic and the group of a fresh data directory.
async fn prepare(child: &Child) -> At {
    let mut admin = child.client().await;
    let topic = admin.create_topic(Queue::TOPIC, 1).await;
    let configs = [("share.auto.offset.reset", "earliest")];
    admin.configure_group(Queue::GROUP, &configs).await;
    At {
        topic,
        partition: 0,
    }
}

async fn member(child: &Child, id: &str) -> Member {
    Member::new(child.client().await, Queue::GROUP, id)
}

// --- What survives ---------------------------------------------------------------------------

#[derive(Debug, Clone, Copy)]
enum Ending {
    Kill,
    Terminate,
}

async fn survives(ending: Ending) {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    let at = prepare(&child).await;
    let mut a = member(&child, "a").await;
    a.join(&[Queue::TOPIC]).await;
    let values: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    a.client.produce_values(Queue::TOPIC, 0, &values).await;
    a.fetch(&Ask::of(at).exactly(15)).await;
    for (first, last, kind) in [
        (0, 1, ACCEPT),
        (4, 4, ACCEPT),
        (5, 5, RELEASE),
        (6, 6, REJECT),
    ] {
        assert_eq!(a.ack(at, first, last, kind).await, OK);
    }
    assert_eq!(
        a.fetch(&Ask::new().exactly(1)).await.acquired(at),
        "5-5#2",
        "acquired again"
    );
    assert_eq!(a.ack(at, 7, 7, ACCEPT).await, OK);
    let before = a.client.start_and_lag(Queue::GROUP, Queue::TOPIC, 0).await;
    assert_eq!(before, (2, 15));
    let (member_epoch, session_epoch) = (a.member_epoch, a.epoch);
    match ending {
        Ending::Kill => child.kill().await,
        Ending::Terminate => {
            let exited = child.terminate().await;
            assert!(exited.status.success(), "{exited:?}");
        }
    }

    let child = start(dir.path()).await;
    let mut a = member(&child, "a").await;
    let after = a.client.start_and_lag(Queue::GROUP, Queue::TOPIC, 0).await;
    assert_eq!(after, before);
    let answer = a.heartbeat(member_epoch, None).await;
    assert_eq!(
        (answer.error_code, answer.member_epoch),
        (0, member_epoch),
        "group and members survive"
    );
    assert_eq!(
        a.fetch_at(session_epoch, &Ask::new()).await.error(),
        ErrorCode::SHARE_SESSION_NOT_FOUND
    );
    assert_eq!(
        a.fetch(&Ask::of(at)).await.acquired(at),
        "2-3#1 5-5#2 8-19#1",
        "what was only acquired counts for nothing"
    );
    assert_eq!(a.ack(at, 2, 3, ACCEPT).await, OK);
    assert_eq!(a.ack(at, 5, 5, ACCEPT).await, OK);
    assert_eq!(a.ack(at, 8, 19, ACCEPT).await, OK);
    let end = a.client.start_and_lag(Queue::GROUP, Queue::TOPIC, 0).await;
    assert_eq!(end.1, 0);
    // And once more: nothing is left to deliver.
    child.kill().await;
    let child = start(dir.path()).await;
    let mut a = member(&child, "a").await;
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "");
}

#[tokio::test]
async fn share_state_survives_kill_9() {
    survives(Ending::Kill).await;
}

#[tokio::test]
async fn share_state_survives_sigterm() {
    survives(Ending::Terminate).await;
}

#[tokio::test]
async fn a_member_that_stays_away_after_a_restart_is_removed() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    prepare(&child).await;
    member(&child, "a").await.join(&[Queue::TOPIC]).await;
    child.kill().await;
    let child = start(dir.path()).await;
    let mut admin = child.client().await;
    let group = admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(group.members.len(), 1);
    child.advance(45_000).await;
    let group = admin.describe_share_group(Queue::GROUP).await;
    assert_eq!((&*group.group_state, group.members.len()), ("Empty", 0));
}

#[tokio::test]
async fn altered_offsets_and_deleted_groups_survive() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    let at = prepare(&child).await;
    let mut admin = child.client().await;
    admin
        .produce_values(Queue::TOPIC, 0, &["a", "b", "c"])
        .await;
    admin
        .alter_share_offset(Queue::GROUP, Queue::TOPIC, 0, 2)
        .await;
    admin.alter_share_offset("gone", Queue::TOPIC, 0, 1).await;
    assert_eq!(admin.delete_group("gone").await, OK);
    child.kill().await;
    let child = start(dir.path()).await;
    let mut a = member(&child, "a").await;
    assert_eq!(
        a.client.list_groups(&[], &[]).await,
        ["g share Empty share"]
    );
    a.join(&[Queue::TOPIC]).await;
    assert_eq!(a.fetch(&Ask::of(at)).await.acquired(at), "2-2#1");
}

#[tokio::test]
async fn a_stored_group_configuration_outside_the_new_range_is_brought_into_it() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    let at = prepare(&child).await;
    let mut admin = child.client().await;
    let configs = [("share.record.lock.duration.ms", "50")];
    admin.configure_group(Queue::GROUP, &configs).await;
    child.kill().await;
    let launch = Launch::new().data_dir(dir.path());
    let launch = launch.set("group.share.min.record.lock.duration.ms", "20000");
    let child = launch.start().await;
    let mut a = member(&child, "a").await;
    a.join(&[Queue::TOPIC]).await;
    let fetched = a.fetch(&Ask::of(at)).await;
    assert_eq!(fetched.0.acquisition_lock_timeout_ms, 20_000);
    assert!(
        child.stderr().contains("share.record.lock.duration.ms"),
        "a warning names it: {}",
        child.stderr()
    );
}

// --- kill -9 under load ----------------------------------------------------------------------

/// What producers and members were told by the broker so far.
#[derive(Debug, Default)]
struct Told {
    /// Value by offset, of produced records that were acknowledged.
    produced: BTreeMap<i64, String>,
    /// Offsets whose acceptance was confirmed.
    accepted: BTreeSet<i64>,
    /// Offsets for which a release was sent.
    releasing: BTreeSet<i64>,
    /// Offsets whose release was confirmed.
    released: BTreeSet<i64>,
    /// Offsets of acknowledgements that were not answered: either may be true.
    unknown: BTreeSet<i64>,
}

/// One run of the broker, until it is killed.
#[derive(Clone)]
struct Load {
    at: At,
    told: Arc<Mutex<Told>>,
    /// How many batches the producers may be ahead of the members.
    ahead: Arc<Semaphore>,
    confirmed: mpsc::UnboundedSender<()>,
}

impl Load {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Produces batches of ten until the connection is lost.
    async fn produce(self, mut client: Client, name: String) {
        for batch in 0.. {
            let Ok(permit) = self.ahead.acquire().await else {
                return;
            };
            permit.forget();
            let values: Vec<String> = (0..10).map(|n| format!("{name} {batch} {n}")).collect();
            let batch = batch_of(client.timestamp, &values);
            let request = Client::produce_request(Queue::TOPIC, 0, -1, batch);
            let Some(answer) = client.call_or_lost(12, &request).await else {
                return;
            };
            let answer = &answer.responses[0].partition_responses[0];
            assert_eq!(answer.error_code, 0, "{answer:?}");
            let records = (answer.base_offset..).zip(values);
            self.told().produced.extend(records);
        }
    }

    /// Fetches and acknowledges until the connection is lost, or, when `drain` is set, until nothing
    /// is left. Every seventh record is released when it is delivered first.
    async fn consume(self, mut a: Member, drain: bool) {
        loop {
            let ask = if a.epoch == 0 {
                Ask::of(self.at)
            } else {
                Ask::new()
            };
            let ask = ask.exactly(40).max_wait(if drain { 50 } else { 3_000 });
            let request = ask.fetch_request(&a.group, &a.id, a.epoch);
            let Some(answer) = a.client.call_or_lost(2, &request).await else {
                return;
            };
            a.epoch += 1;
            let kinds = self.check(&ShareFetched(answer));
            if kinds.is_empty() && drain {
                return;
            }
            let mut ask = Ask::new();
            for (&offset, &kind) in &kinds {
                ask = ask.ack(self.at, offset, offset, kind);
            }
            let request = ask.acknowledge_request(&a.group, &a.id, a.epoch);
            let Some(answer) = a.client.call_or_lost(2, &request).await else {
                self.told().unknown.extend(kinds.keys());
                return;
            };
            a.epoch += 1;
            let codes = answer.responses.iter().flat_map(|t| &t.partitions);
            assert!(codes.clone().all(|p| p.error_code == 0), "{answer:?}");
            self.ahead.add_permits(kinds.len() / 10 + 1);
            for (offset, kind) in kinds {
                let mut told = self.told();
                if kind == ACCEPT {
                    told.accepted.insert(offset);
                } else {
                    told.released.insert(offset);
                }
            }
            // Nobody counts any more once enough was confirmed.
            let _ = self.confirmed.send(());
        }
    }

    /// Holds delivered records against what was confirmed; how each is to be acknowledged.
    fn check(&self, fetched: &ShareFetched) -> BTreeMap<i64, i8> {
        assert_eq!(fetched.error(), ErrorCode::NONE);
        assert_eq!(fetched.fetch_error(self.at), OK);
        let mut told = self.told();
        let mut kinds = BTreeMap::new();
        let entries = fetched.partition(self.at);
        for entry in entries.map_or(&[][..], |p| &p.acquired_records) {
            let count = entry.delivery_count;
            for offset in entry.first_offset..=entry.last_offset {
                assert!(
                    !told.accepted.contains(&offset),
                    "{offset} came back after its acceptance was confirmed"
                );
                if !told.unknown.contains(&offset) {
                    let released = told.released.contains(&offset);
                    assert!(count == 2 || !released, "{offset}#{count}, was released");
                    let releasing = told.releasing.contains(&offset);
                    assert!(
                        count == 1 || releasing,
                        "{offset}#{count}, was not released"
                    );
                }
                let kind = if count == 1 && offset % 7 == 0 {
                    RELEASE
                } else {
                    ACCEPT
                };
                if kind == RELEASE {
                    told.releasing.insert(offset);
                }
                kinds.insert(offset, kind);
            }
        }
        kinds
    }
}

#[tokio::test]
async fn kill_9_under_load_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    let at = prepare(&child).await;
    child.kill().await;
    let all = Arc::new(Mutex::new(Told::default()));
    let load = || {
        let (confirmed, confirmations) = mpsc::unbounded_channel();
        let load = Load {
            at,
            told: Arc::clone(&all),
            ahead: Arc::new(Semaphore::new(20)),
            confirmed,
        };
        (load, confirmations)
    };
    for round in 0..4 {
        let child = start(dir.path()).await;
        let (load, mut confirmations) = load();
        verify_log(&child, &load).await;
        let mut tasks = JoinSet::new();
        for n in 0..2 {
            let name = format!("round {round} producer {n}");
            tasks.spawn(load.clone().produce(child.client().await, name));
            let mut member = member(&child, &format!("member {n}")).await;
            member.join(&[Queue::TOPIC]).await;
            tasks.spawn(load.clone().consume(member, false));
        }
        for _ in 0..25 + round * 7 {
            tokio::select! {
                biased;
                Some(()) = confirmations.recv() => {}
                ended = tasks.join_next() => panic!("before the kill: {ended:?}"),
            }
        }
        child.kill().await;
        load.ahead.close();
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    let child = start(dir.path()).await;
    let (load, _confirmations) = load();
    let end = verify_log(&child, &load).await;
    let mut last = member(&child, "last").await;
    last.join(&[Queue::TOPIC]).await;
    load.clone().consume(last, true).await;
    let missing: Vec<i64> = {
        let told = load.told();
        assert!(told.accepted.len() > 1000, "{}", told.accepted.len());
        let settled =
            |offset: &i64| told.accepted.contains(offset) || told.unknown.contains(offset);
        (0..end).filter(|offset| !settled(offset)).collect()
    };
    assert_eq!(missing, [0; 0], "neither accepted nor delivered again");
    let mut admin = child.client().await;
    let lag = admin.start_and_lag(Queue::GROUP, Queue::TOPIC, 0).await.1;
    assert_eq!(lag, 0);
}

/// Every record whose produce was acknowledged is at its offset; the end of the log.
async fn verify_log(child: &Child, load: &Load) -> i64 {
    let mut client = child.client().await;
    let all = client.fetch_all(Queue::TOPIC, 0, 0).await;
    let found: BTreeMap<i64, String> = all
        .iter()
        .map(|r| r.offset)
        .zip(ottla_tests::values(&all))
        .collect();
    for (offset, value) in &load.told().produced {
        assert_eq!(found.get(offset), Some(value), "at offset {offset}");
    }
    found.len() as i64
}

// --- A backlog far beyond the window ---------------------------------------------------------

/// Memory of its own, without mapped files, in bytes.
fn anonymous_bytes(child: &Child) -> u64 {
    let path = format!("/proc/{}/status", child.pid());
    let status = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}"));
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_else(|| panic!("no RssAnon in {status}")) << 10
}

#[tokio::test]
async fn a_backlog_of_a_hundred_windows_is_worked_off_in_flat_memory_at_a_steady_pace() {
    const WINDOW: usize = 1000;
    const STEP: usize = 500;
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let child = start(dir.path()).await;
    let at = prepare(&child).await;
    let mut admin = child.client().await;
    let window = WINDOW.to_string();
    let configs = [("share.partition.max.record.locks", window.as_str())];
    admin.configure_group(Queue::GROUP, &configs).await;
    let batch: Vec<&str> = vec!["a record of the backlog"; STEP];
    for _ in 0..100 * WINDOW / STEP {
        admin.produce_values(Queue::TOPIC, 0, &batch).await;
    }
    let mut a = member(&child, "a").await;
    a.join(&[Queue::TOPIC]).await;
    let mut ask = Ask::of(at);
    let mut next = 0;
    let mut memory = vec![];
    let mut pace = vec![];
    let mut since = wall_ms();
    while next < 100 * WINDOW as i64 {
        let fetched = a.fetch(&ask.max_records(STEP as i32)).await;
        let offsets = fetched.offsets(at);
        assert_eq!(offsets.first(), Some(&next), "in order, each once");
        let last = next + offsets.len() as i64 - 1;
        assert_eq!(offsets.last(), Some(&last));
        ask = Ask::new().ack(at, next, last, ACCEPT);
        next = last + 1;
        if next % (10 * WINDOW as i64) == 0 {
            memory.push(anonymous_bytes(&child));
            pace.push(wall_ms() - since);
            since = wall_ms();
        }
    }
    let grown = memory[memory.len() - 1].saturating_sub(memory[0]);
    assert!(grown < 4 << 20, "memory grows: {memory:?}");
    let (first, last) = (pace[0].max(20), pace[pace.len() - 1]);
    assert!(last < first * 10, "it gets slower: {pace:?} ms");
}
