//! One topic, one group, one member that holds records, and a dead letter topic.

use ottla::dead_letters::{GiveUp, GroupLetters};
use ottla_protocol::ErrorCode;
use ottla_tests::{Ask, Client, Embedded, Fetched, Member, OK, Queue, REJECT, Settings};

/// The dead letter topic.
pub(crate) const DLQ: &str = "dlq.t";
/// The group's dead letter topic.
pub(crate) const NAME: &str = "errors.deadletterqueue.topic.name";
/// Whether letters carry key and value.
pub(crate) const COPY: &str = "errors.deadletterqueue.copy.record.enable";
/// Whether a topic takes letters.
pub(crate) const FLAG: &str = "errors.deadletterqueue.group.enable";
/// Whether a missing topic is made.
pub(crate) const AUTO_CREATE: &str = "errors.deadletterqueue.auto.create.topics.enable";
/// What the topic's name begins with.
pub(crate) const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";
/// Configurations of a topic that takes letters.
pub(crate) const TAKES: &[(&str, &str)] = &[(FLAG, "true")];

/// The scene.
pub(crate) struct Scene {
    pub(crate) queue: Queue,
    pub(crate) member: Member,
}

impl Scene {
    /// A dead letter topic of one partition, and a group that names it.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// The same with more configurations of the group.
    pub(crate) async fn with(group: &[(&str, &str)]) -> Self {
        let mut scene = Self::without_topic(group).await;
        scene.create(TAKES).await;
        scene
    }

    /// The same, and the dead letter topic does not exist.
    pub(crate) async fn without_topic(group: &[(&str, &str)]) -> Self {
        Self::on(Settings::new(), 1, group).await
    }

    /// The same with settings and partitions of choice.
    pub(crate) async fn on(settings: Settings, partitions: i32, group: &[(&str, &str)]) -> Self {
        let mut configs = vec![(NAME, DLQ)];
        configs.retain(|(key, _)| group.iter().all(|(own, _)| own != key));
        configs.extend(group);
        let queue = Queue::of(partitions, settings, &configs).await;
        let member = queue.member("a").await;
        Self { queue, member }
    }

    /// Makes the dead letter topic.
    pub(crate) async fn create(&mut self, configs: &[(&str, &str)]) {
        self.queue.admin.create_topic_with(DLQ, 1, configs).await;
    }

    /// Sets configurations of the topic.
    pub(crate) async fn alter_topic(&mut self, configs: &[(&str, &str)]) {
        let answer = self.queue.admin.alter_configs(2, DLQ, configs).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
    }

    /// Sets configurations of all brokers.
    pub(crate) async fn alter_brokers(&mut self, configs: &[(&str, &str)]) {
        let answer = self.queue.admin.alter_configs(4, "", configs).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
    }

    /// Produces so many records and lets the member acquire them; the first and last offset.
    pub(crate) async fn hold(&mut self, records: usize) -> (i64, i64) {
        let first = self.queue.produce(records).await;
        let last = first + records as i64 - 1;
        self.acquire(first, last).await;
        (first, last)
    }

    /// Lets the member acquire these records.
    pub(crate) async fn acquire(&mut self, first: i64, last: i64) {
        let offsets = self.member.fetch(&Ask::of(self.queue.at)).await;
        let offsets = offsets.offsets(self.queue.at);
        assert_eq!(offsets, (first..=last).collect::<Vec<i64>>());
    }

    /// Acknowledges, and waits until nothing can be written any more.
    pub(crate) async fn acknowledge(&mut self, first: i64, last: i64, kinds: &[i8]) {
        let told = self.member.acks(self.queue.at, first, last, kinds).await;
        assert_eq!(told, OK);
        self.settle().await;
    }

    /// Produces so many records, of which all are rejected.
    pub(crate) async fn reject(&mut self, records: usize) -> (i64, i64) {
        let (first, last) = self.hold(records).await;
        self.acknowledge(first, last, &[REJECT]).await;
        (first, last)
    }

    /// Waits until nothing can be written any more.
    pub(crate) async fn settle(&self) {
        self.broker().advance(0).await;
    }

    pub(crate) fn broker(&self) -> &Embedded {
        &self.queue.broker
    }

    /// The letters in a partition of the dead letter topic.
    pub(crate) async fn letters_in(&mut self, partition: i32) -> Vec<Fetched> {
        self.queue.admin.fetch_all(DLQ, partition, 0).await
    }

    /// The letters, by offset of their records: `0 1 2`.
    pub(crate) async fn letters(&mut self) -> String {
        offsets(&self.letters_in(0).await)
    }

    /// The numbers of the group.
    pub(crate) fn counts(&self) -> std::sync::Arc<GroupLetters> {
        self.broker()
            .process
            .broker
            .dead_letters
            .group(Queue::GROUP)
    }

    /// Letters written, and records given up for a reason.
    pub(crate) fn outcome(&self, why: GiveUp) -> (u64, u64) {
        let counts = self.counts();
        let all: u64 = GiveUp::ALL.map(|why| counts.given_up(why)).iter().sum();
        assert_eq!(all, counts.given_up(why), "given up for another reason");
        (counts.written(), all)
    }

    /// How many records there are from the first that is not done to the last that was delivered.
    pub(crate) fn window(&self) -> i64 {
        self.queue.in_flight()
    }

    /// A client of the group's coordinator.
    pub(crate) async fn coordinator(&mut self) -> Client {
        let found = self.queue.admin.find_coordinator(0, Queue::GROUP).await;
        self.broker().client_of(*found.node_id).await
    }
}

/// What a header of a letter says.
pub(crate) fn header(letter: &Fetched, name: &str) -> String {
    let found = letter.headers.iter().find(|(key, _)| key == name);
    let value = found.and_then(|(_, value)| value.as_deref());
    String::from_utf8_lossy(value.unwrap_or(b"?")).into_owned()
}

/// The offsets of the records that letters are of: `0 1 2`.
pub(crate) fn offsets(letters: &[Fetched]) -> String {
    let all = letters.iter().map(|l| header(l, "__dlq.errors.offset"));
    all.collect::<Vec<_>>().join(" ")
}
