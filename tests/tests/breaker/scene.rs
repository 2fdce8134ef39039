//! A group with a breaker, and work that is rejected in part.

use std::ops::Deref;

use ottla_coordinator::share::breaker::Counts;
use ottla_tests::{ACCEPT, Ask, Client, Embedded, Member, OK, Queue, REJECT, Settings, http, soon};

/// Where the dead letters go.
pub(crate) const DLQ: &str = "dlq.t";
/// How long a bucket is.
pub(crate) const BUCKET: i64 = 10_000;
/// The reason of a trip.
pub(crate) const TRIPPED: &str = "DLQ_CIRCUIT_BREAKER_TRIPPED";

/// A config of the breaker.
pub(crate) fn breaker(name: &str) -> String {
    format!("share.group.dlq.circuit.breaker.{name}")
}

/// What the group of every scene has: letters, a breaker that trips at a fifth of 20 records.
pub(crate) fn configs() -> Vec<(String, String)> {
    let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    vec![
        own("errors.deadletterqueue.topic.name", DLQ),
        own("share.auto.offset.reset", "earliest"),
        own(&breaker("enable"), "true"),
        own(&breaker("threshold"), "0.2"),
        own(&breaker("min.messages"), "20"),
    ]
}

/// Sets group configs, the scene's and then these.
pub(crate) async fn configure(admin: &mut Client, group: &str, own: &[(&str, &str)]) {
    let mut all = configs();
    all.retain(|(key, _)| own.iter().all(|(other, _)| key != other));
    let mut all: Vec<(&str, &str)> = all.iter().map(|(k, v)| (&**k, &**v)).collect();
    all.extend(own);
    admin.configure_group(group, &all).await;
}

/// Makes the topic of dead letters.
pub(crate) async fn make_dlq(admin: &mut Client) {
    let flag = [("errors.deadletterqueue.group.enable", "true")];
    admin.create_topic_with(DLQ, 1, &flag).await;
}

/// A queue with a breaker and one member.
pub(crate) struct Scene {
    pub(crate) queue: Queue,
    pub(crate) member: Member,
}

impl Scene {
    pub(crate) async fn with(own: &[(&str, &str)]) -> Self {
        Self::of(Settings::new(), own).await
    }

    pub(crate) async fn of(settings: Settings, own: &[(&str, &str)]) -> Self {
        let mut queue = Queue::of(1, settings, &[]).await;
        make_dlq(&mut queue.admin).await;
        configure(&mut queue.admin, Queue::GROUP, own).await;
        let member = queue.member("a").await;
        Self { queue, member }
    }

    /// Produces records, and has one of four rejected and the others accepted; waits for the letters.
    pub(crate) async fn work(&mut self, records: usize) {
        let before = self.counts();
        let first = self.queue.produce(records).await;
        work(&mut self.member, self.queue.at, first, records).await;
        let letters = (records / 4) as i64;
        let after = Counts {
            delivered: records as i64 - letters,
            dlq_written: letters,
            given_up: 0,
        };
        until_counted(&self.queue.broker, &before.plus(&after)).await;
    }

    /// What the window counts.
    pub(crate) fn counts(&self) -> Counts {
        counts(&self.queue.broker, Queue::GROUP)
    }

    /// Moves the clock; members live on.
    pub(crate) async fn advance(&self, ms: i64) {
        self.queue.broker.advance_holding_sessions(ms).await;
    }

    /// State, reason and since when.
    pub(crate) async fn line(&mut self) -> String {
        self.queue.admin.delivery_line(Queue::GROUP).await
    }

    /// What is acquired of the partition, without waiting.
    pub(crate) async fn acquired(&mut self) -> String {
        let at = self.queue.at;
        self.member.fetch(&Ask::of(at)).await.acquired(at)
    }

    /// Has the breaker trip at the end of the bucket: 40 records.
    pub(crate) async fn trip(&mut self) {
        self.work(40).await;
        self.advance(BUCKET).await;
        let since = self.queue.broker.now();
        assert_eq!(self.line().await, format!("PAUSED {TRIPPED} {since}"));
    }

    /// Whether a line is among the metrics.
    pub(crate) async fn shows(&self, line: &str) -> bool {
        let told = http(self.queue.broker.admin(), "GET", "/metrics").await;
        told.body.lines().any(|told| told == line)
    }
}

impl Deref for Scene {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

/// One of four is rejected, the others are accepted.
pub(crate) async fn work(member: &mut Member, at: ottla_tests::At, first: i64, records: usize) {
    let last = first + records as i64 - 1;
    let fetched = member.fetch(&Ask::of(at)).await;
    let mine: Vec<i64> = (first..=last).collect();
    assert_eq!(fetched.offsets(at), mine);
    let kind = |n: usize| if n % 4 == 3 { REJECT } else { ACCEPT };
    let kinds: Vec<i8> = (0..records).map(kind).collect();
    assert_eq!(member.acks(at, first, last, &kinds).await, OK);
}

/// What the window of a group counts.
pub(crate) fn counts(broker: &Embedded, group: &str) -> Counts {
    let inner = &broker.process.broker;
    inner
        .deliveries
        .get(inner, group)
        .view(broker.now())
        .counts()
}

/// Waits until the usual group's window counts this.
pub(crate) async fn until_counted(broker: &Embedded, wanted: &Counts) {
    until(broker, Queue::GROUP, wanted).await;
}

/// Waits until the window of a group counts this.
pub(crate) async fn until(broker: &Embedded, group: &str, wanted: &Counts) {
    let what = format!("{wanted:?} of {group}");
    soon(&what, async {
        while counts(broker, group) != *wanted {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
