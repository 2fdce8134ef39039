//! Days of a broker's life in minutes: a quarter of all records rejected, storms that trip the breaker,
//! resumes by an operator and by the clock, a DLQ topic whose broker comes and goes. Every record is
//! accepted, lettered, or given up and counted; nothing grows.
//!
//! One hour of broker time here; `cargo xtask soak [--hours N]` runs three days.

use std::collections::BTreeMap;

use ottla_protocol::messages::describe_share_group_delivery_response::DescribedShareGroupDelivery;
use ottla_tests::{
    ACCEPT, Client, Delivered, Embedded, Fetched, Flow, OK, Offsets, REJECT, RELEASE, Rule,
    Settings, http,
};

const GROUP: &str = "g";
const TOPIC: &str = "t";
const DLQ: &str = "dlq.t";
const PARTITIONS: i32 = 4;
/// The broker that has nothing but the DLQ topic.
const DLQ_BROKER: i32 = 1;
/// One step of the clock, in milliseconds: within a member's session.
const STEP_MS: i64 = 10_000;
const STEPS_AN_HOUR: i64 = 3_600_000 / STEP_MS;
/// Records of one step and partition.
const RECORDS: usize = 5;
const DELIVERY_LIMIT: i16 = 3;

/// Three quarters work; some only at their second delivery, some never.
fn ordinary(record: Delivered) -> Option<i8> {
    match record.offset % 1000 {
        // Nobody answers for it: the lock runs out.
        1 if record.count == 1 => None,
        // Released until the limit is reached.
        2 => Some(RELEASE),
        _ if record.offset % 4 == 0 => Some(REJECT),
        _ => Some(ACCEPT),
    }
}

/// Nearly nothing works.
#[allow(clippy::unnecessary_wraps, reason = "a rule like the ordinary one")]
fn storm(record: Delivered) -> Option<i8> {
    Some(if record.offset % 10 == 0 {
        ACCEPT
    } else {
        REJECT
    })
}

/// What happens in an hour, by its step.
struct Hour {
    number: i64,
}

impl Hour {
    fn rule(step: i64) -> Rule {
        if (120..150).contains(&step) {
            storm
        } else {
            ordinary
        }
    }

    /// The DLQ topic's broker is away: for five minutes, later for less than the write timeout.
    fn stops(step: i64) -> bool {
        step == 220 || step == 300
    }

    fn starts(step: i64) -> bool {
        step == 250 || step == 302
    }

    /// Every other hour an operator does not wait for the clock.
    fn resumes(&self, step: i64) -> bool {
        self.number % 2 == 1 && step == 145
    }
}

/// What must not grow: memory in KiB, descriptors, tasks.
#[derive(Debug, Clone, Copy)]
struct Footprint {
    resident_kib: u64,
    descriptors: usize,
    tasks: usize,
}

impl Footprint {
    fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        let field = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = field.and_then(|field| field.split_whitespace().next()?.parse().ok());
        Self {
            resident_kib: number.unwrap_or_else(|| panic!("no VmRSS")),
            descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            tasks: tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
        }
    }
}

/// Letters read from the DLQ topic so far.
#[derive(Default)]
struct Letters {
    next: i64,
    by_partition: Vec<Offsets>,
    count: i64,
    causes: BTreeMap<String, i64>,
}

impl Letters {
    async fn read(&mut self, broker: &Embedded) {
        let mut client = broker.client_of(DLQ_BROKER).await;
        for letter in client.fetch_all(DLQ, 0, self.next).await {
            assert_eq!(letter.offset, self.next, "a letter was deleted unread");
            self.next += 1;
            let (partition, offset) = (number(&letter, 1), number(&letter, 2));
            let new = self.by_partition[partition as usize].add(offset);
            assert!(new, "a second letter of {partition}-{offset}");
            self.count += 1;
            *self.causes.entry(header(&letter, 5)).or_default() += 1;
        }
    }
}

fn header(letter: &Fetched, index: usize) -> String {
    let (_, value) = &letter.headers[index];
    String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned()
}

fn number(letter: &Fetched, index: usize) -> i64 {
    let text = header(letter, index);
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The broker, the group at work, and what was seen.
struct Soak {
    broker: Embedded,
    _dir: tempfile::TempDir,
    flow: Flow,
    /// A client of the group's coordinator.
    admin: Client,
    letters: Letters,
    footprints: Vec<Footprint>,
    trips: i64,
    was_paused: bool,
}

impl Soak {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let broker = Settings::new()
            .brokers(2)
            .data_dir(dir.path())
            .set("offsets.topic.replication.factor", "2")
            .set("offsets.topic.num.partitions", "1")
            .set("share.coordinator.state.topic.replication.factor", "2")
            .set("share.coordinator.state.topic.num.partitions", "4")
            .set("log.segment.bytes", "1048576")
            .start()
            .await;
        let mut admin = broker.client_of(0).await;
        let replicas: Vec<&[i32]> = vec![&[0]; PARTITIONS as usize];
        let id = admin.create_topic_on(TOPIC, &replicas).await;
        admin.create_topic_on(DLQ, &[&[DLQ_BROKER]]).await;
        let kept = ("retention.ms", "7200000");
        let rolled = ("segment.ms", "1800000");
        let flag = ("errors.deadletterqueue.group.enable", "true");
        let altered = admin.alter_configs(2, DLQ, &[flag, kept, rolled]).await;
        assert_eq!(altered.error_code, 0, "{altered:?}");
        let altered = admin.alter_configs(2, TOPIC, &[kept, rolled]).await;
        assert_eq!(altered.error_code, 0, "{altered:?}");
        let limit = DELIVERY_LIMIT.to_string();
        let configs = [
            ("share.auto.offset.reset", "earliest"),
            ("share.delivery.count.limit", &limit),
            ("errors.deadletterqueue.topic.name", DLQ),
            ("errors.deadletterqueue.copy.record.enable", "true"),
            ("share.group.dlq.write.timeout.ms", "25000"),
            ("share.group.dlq.circuit.breaker.enable", "true"),
            ("share.group.dlq.circuit.breaker.threshold", "0.5"),
            ("share.group.dlq.circuit.breaker.auto.resume.enable", "true"),
        ];
        admin.configure_group(GROUP, &configs).await;
        let flow = Flow::join(&broker, GROUP, (TOPIC, id), &[0; PARTITIONS as usize]).await;
        let found = admin.find_coordinator(0, GROUP).await;
        let admin = broker.client_of(*found.node_id).await;
        Self {
            broker,
            _dir: dir,
            flow,
            admin,
            letters: Letters {
                by_partition: vec![Offsets::default(); PARTITIONS as usize],
                ..Letters::default()
            },
            footprints: vec![],
            trips: 0,
            was_paused: false,
        }
    }

    async fn hour(&mut self, number: i64) {
        let hour = Hour { number };
        for step in 0..STEPS_AN_HOUR {
            if Hour::stops(step) {
                self.broker.stop_node(DLQ_BROKER).await;
            }
            if Hour::starts(step) {
                self.broker.start_node(DLQ_BROKER).await;
            }
            if hour.resumes(step) && self.was_paused {
                assert_eq!(self.admin.resume(GROUP, Some("soak")).await, OK);
                // The storm goes on: it trips again before the next look.
                self.was_paused = false;
            }
            self.flow.produce(self.broker.now(), RECORDS).await;
            self.flow.deliver(Hour::rule(step)).await;
            self.broker.advance(STEP_MS).await;
            self.flow.beat().await;
            let paused = self.admin.paused(GROUP).await;
            if paused.is_some() && !self.was_paused {
                assert_eq!(paused.as_deref(), Some("DLQ_CIRCUIT_BREAKER_TRIPPED"));
                self.trips += 1;
            }
            self.was_paused = paused.is_some();
        }
        self.letters.read(&self.broker).await;
        self.footprints.push(Footprint::now());
    }

    /// Works until nothing is left of what was produced.
    async fn finish(&mut self) {
        for _ in 0..120 {
            self.flow.deliver(ordinary).await;
            self.broker.advance(STEP_MS).await;
            self.flow.beat().await;
        }
        self.letters.read(&self.broker).await;
        for partition in 0..PARTITIONS {
            let (_, lag) = self.admin.start_and_lag(GROUP, TOPIC, partition).await;
            assert_eq!(lag, 0, "partition {partition}");
        }
    }

    /// Every record is accepted, lettered, or given up and counted.
    async fn settle_accounts(&mut self) -> DescribedShareGroupDelivery {
        let told = self.admin.delivery(GROUP).await;
        let (mut ended, mut lettered_rejects) = (0, 0);
        for (account, letters) in self.flow.accounts.iter().zip(&self.letters.by_partition) {
            for offset in 0..account.produced {
                let (accepted, rejected) =
                    (account.accepted.has(offset), account.rejected.has(offset));
                assert!(!(accepted && rejected), "{offset} has two ends");
                assert!(
                    !(accepted && letters.has(offset)),
                    "a letter of {offset}, which was accepted"
                );
                // Neither: it reached the delivery limit.
                ended += i64::from(!accepted);
                lettered_rejects += i64::from(rejected && letters.has(offset));
            }
        }
        let given_up: i64 = told.given_up.iter().map(|one| one.records).sum();
        let unlettered = ended - self.letters.count;
        assert_eq!(
            given_up - unlettered,
            told.late_writes,
            "{ended} ended: {told:?}"
        );
        assert_eq!(
            told.letters_written + told.late_writes,
            self.letters.count,
            "{told:?}"
        );
        assert_eq!(
            told.write_timeouts, given_up,
            "nothing but the outages loses letters: {told:?}"
        );
        let rejected = self
            .letters
            .causes
            .get("Offset rejected by client.")
            .copied();
        assert_eq!(rejected.unwrap_or(0), lettered_rejects);
        told
    }

    /// What is exported says what the group's coordinator says.
    async fn metrics_agree(&self, told: &DescribedShareGroupDelivery) {
        let exported = http(self.broker.admin(), "GET", "/metrics").await.body;
        let sum = |name: &str| -> i64 {
            let lines = exported.lines().filter(|line| !line.starts_with('#'));
            let mine = lines.filter(|line| {
                line.split(['{', ' '])
                    .next()
                    .is_some_and(|found| found.ends_with(name))
            });
            let values = mine.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            values.map(|value| value as i64).sum()
        };
        let given_up: i64 = told.given_up.iter().map(|one| one.records).sum();
        for (name, value) in [
            ("dead_letter_queue_record_count_total", told.letters_written),
            ("dlq_write_timeouts_total", told.write_timeouts),
            ("dlq_late_writes_total", told.late_writes),
            ("dlq_given_up_total", given_up),
            ("dlq_circuit_breaker_tripped_total", self.trips),
        ] {
            assert_eq!(sum(name), value, "{name}");
        }
    }

    /// From the second quarter on, nothing grows.
    fn is_flat(&self) {
        let hours = self.footprints.len();
        if hours < 8 {
            return;
        }
        let early = &self.footprints[hours / 4..hours / 2];
        let late = &self.footprints[hours - hours / 4..];
        let most =
            |of: &[Footprint], what: fn(&Footprint) -> u64| of.iter().map(what).max().unwrap_or(0);
        let memory = |one: &Footprint| one.resident_kib;
        let (before, after) = (most(early, memory), most(late, memory));
        assert!(
            after <= before + before / 10 + 8192,
            "memory: {before} KiB, then {after} KiB"
        );
        let files = |one: &Footprint| one.descriptors as u64;
        assert!(
            most(late, files) <= most(early, files) + 8,
            "descriptors: {:?}",
            self.footprints
        );
        let tasks = |one: &Footprint| one.tasks as u64;
        assert!(
            most(late, tasks) <= most(early, tasks) + 2,
            "tasks: {:?}",
            self.footprints
        );
    }
}

fn hours() -> i64 {
    let hours = std::env::var("OTTLA_SOAK_HOURS").unwrap_or_else(|_| "1".to_owned());
    hours
        .parse()
        .unwrap_or_else(|error| panic!("OTTLA_SOAK_HOURS={hours}: {error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_record_is_accepted_lettered_or_given_up_and_counted() {
    let mut soak = Soak::start().await;
    let hours = hours();
    for hour in 0..hours {
        soak.hour(hour).await;
        tracing::info!(hour, footprint = ?soak.footprints.last(), "an hour is over");
    }
    soak.finish().await;
    let told = soak.settle_accounts().await;
    assert!(soak.trips >= hours, "{} trips", soak.trips);
    assert!(told.write_timeouts > 0, "no outage was felt: {told:?}");
    soak.metrics_agree(&told).await;
    soak.is_flat();
    let summary = format!(
        "{hours} h: {} produced, {} accepted, {} lettered, {} given up, {} late; {} trips; {:?}, at first {:?}",
        soak.flow.produced(),
        soak.flow.accepted(),
        soak.letters.count,
        told.write_timeouts,
        told.late_writes,
        soak.trips,
        soak.footprints.last(),
        soak.footprints.first(),
    );
    #[allow(clippy::print_stdout, reason = "what the soak is run for")]
    {
        println!("soak: {summary}");
    }
    soak.broker.shutdown().await;
}
