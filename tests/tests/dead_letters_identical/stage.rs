//! One scenario's own topics, group and connection, on whichever broker it is played.

use std::net::SocketAddr;

use bytes::Bytes;
use ottla_protocol::batch::{BatchBuilder, BatchOptions};
use ottla_protocol::compression::Compression;
use ottla_protocol::messages::DescribeConfigsRequest;
use ottla_protocol::messages::describe_configs_request::DescribeConfigsResource;
use ottla_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use ottla_protocol::{ErrorCode, StrBytes, Uuid};
use ottla_tests::{Ask, At, Client, Fetched, Member, OK, decode_batches, soon};

/// When every source record was made: long before any letter of it, in milliseconds since the epoch.
const MADE_MS: i64 = 1_000_000_000_000;

/// How long until something that a broker does in its own time is looked at again, in milliseconds.
const LOOK_MS: u64 = 25;

/// A record of a source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A record with a key and a value.
pub(crate) fn record(key: &str, value: &str) -> Source {
    Source {
        key: Some(key.into()),
        value: Some(value.into()),
        headers: vec![],
    }
}

/// `count` records whose values are `size` bytes long.
pub(crate) fn records_of(count: usize, size: usize) -> Vec<Source> {
    let one = |n: usize| {
        record(
            &format!("k{n}"),
            &char::from(b'a' + n as u8).to_string().repeat(size),
        )
    };
    (0..count).map(one).collect()
}

/// `count` small records.
pub(crate) fn small(count: usize) -> Vec<Source> {
    (0..count)
        .map(|n| record(&format!("k{n}"), &format!("v{n}")))
        .collect()
}

impl Source {
    /// Without a key.
    pub(crate) fn keyless(self) -> Self {
        Self { key: None, ..self }
    }

    /// Without a value.
    pub(crate) fn tombstone(self) -> Self {
        Self {
            value: None,
            ..self
        }
    }

    /// With one more header.
    pub(crate) fn header(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.push((name.to_owned(), value.map(Into::into)));
        self
    }
}

fn batch(records: &[Source], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        ..BatchOptions::default()
    });
    for source in records {
        let headers = source.headers.iter();
        builder.push_with_headers(
            MADE_MS,
            source.key.as_deref(),
            source.value.as_deref(),
            headers.map(|(name, value)| (name.as_bytes(), value.as_deref())),
        );
    }
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

/// A member's id as the wire wants it, made of the scenario's name.
fn member_id(name: &str, nth: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = [0; 16];
    for (at, byte) in name.bytes().chain([nth as u8 + 1]).enumerate() {
        bytes[at % 16] ^= byte.rotate_left(at as u32 / 16);
    }
    let bits = u128::from_be_bytes(bytes);
    let digit = |n: u32| {
        ALPHABET[(if n == 21 {
            bits << 4
        } else {
            bits >> (122 - 6 * n)
        } & 63) as usize]
    };
    (0..22).map(|n| char::from(digit(n))).collect()
}

/// One scenario on one broker.
pub(crate) struct Stage {
    pub(crate) admin: Client,
    pub(crate) source: String,
    pub(crate) group: String,
    pub(crate) dlq: String,
    /// What was seen.
    pub(crate) seen: Vec<String>,
    name: String,
    topic: Uuid,
    members: usize,
}

impl Stage {
    /// Source topic, group and name of a DLQ topic, which is not made; letters off until then.
    pub(crate) async fn open(at: SocketAddr, name: &str, partitions: i32) -> Self {
        let mut admin = Client::connect(at).await;
        let source = format!("{name}.source");
        let topic = admin.create_topic(&source, partitions).await;
        let mut stage = Self {
            admin,
            source,
            group: format!("{name}.group"),
            dlq: format!("dlq.{name}"),
            seen: vec![],
            name: name.to_owned(),
            topic,
            members: 0,
        };
        let dlq = stage.dlq.clone();
        stage
            .configure(&[
                ("share.auto.offset.reset", "earliest"),
                ("errors.deadletterqueue.topic.name", &dlq),
            ])
            .await;
        stage
    }

    /// The DLQ topic, open for letters, with more configurations.
    pub(crate) async fn dlq_topic(&mut self, partitions: i32, configs: &[(&str, &str)]) {
        let mut all = vec![("errors.deadletterqueue.group.enable", "true")];
        all.extend(configs);
        self.topic_with(partitions, &all).await;
    }

    /// The DLQ topic with just these configurations.
    pub(crate) async fn topic_with(&mut self, partitions: i32, configs: &[(&str, &str)]) {
        let dlq = self.dlq.clone();
        self.admin
            .create_topic_with(&dlq, partitions, configs)
            .await;
        self.known(&dlq, partitions).await;
    }

    /// Waits until the topic has so many partitions with a leader.
    pub(crate) async fn known(&mut self, topic: &str, partitions: i32) {
        for _ in 0..600 {
            let told = self.admin.describe_topic(topic, false).await;
            let led = told
                .partitions
                .iter()
                .filter(|p| p.leader_id.0 >= 0)
                .count();
            if led == partitions as usize {
                return;
            }
            self.look().await;
        }
        panic!("{topic} has not got {partitions} partitions");
    }

    /// With a copy of key and value.
    pub(crate) async fn copying(&mut self) {
        self.configure(&[("errors.deadletterqueue.copy.record.enable", "true")])
            .await;
    }

    /// Configurations of the group.
    pub(crate) async fn configure(&mut self, configs: &[(&str, &str)]) {
        let group = self.group.clone();
        self.set(32, &group, configs).await;
    }

    /// Configurations of the DLQ topic.
    pub(crate) async fn configure_dlq(&mut self, configs: &[(&str, &str)]) {
        let dlq = self.dlq.clone();
        self.set(2, &dlq, configs).await;
    }

    /// Sets configurations, and waits until the broker goes by them: one of Kafka's follows the
    /// metadata log, a little behind its answer.
    pub(crate) async fn set(&mut self, kind: i8, name: &str, configs: &[(&str, &str)]) {
        let answer = self.admin.alter_configs(kind, name, configs).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        soon("configurations in force", async {
            loop {
                let told = self.configs(kind, name).await;
                let holds = |(key, value): &(&str, &str)| {
                    let one = told.iter().find(|config| &*config.name == *key);
                    one.is_some_and(|config| config.value.as_deref() == Some(*value))
                };
                self.look().await;
                if configs.iter().all(holds) {
                    break;
                }
            }
        })
        .await;
        self.look().await;
    }

    async fn configs(&mut self, kind: i8, name: &str) -> Vec<DescribeConfigsResourceResult> {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(StrBytes::from_string(name.to_owned()))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let mut answer = self.admin.call(4, &request).await;
        answer.results.swap_remove(0).configs
    }

    /// A moment, before something is looked at again.
    pub(crate) async fn look(&mut self) {
        ottla::clock::wire_sleep(LOOK_MS).await;
    }

    /// The configurations that a topic was given, with their values.
    pub(crate) async fn own_configs(&mut self, topic: &str) -> String {
        const GIVEN_TO_THE_TOPIC: i8 = 1;
        let configs = self.configs(2, topic).await;
        let own = configs
            .iter()
            .filter(|config| config.config_source == GIVEN_TO_THE_TOPIC);
        let mut lines: Vec<String> = own
            .map(|config| {
                format!(
                    "{}={}",
                    config.name,
                    config.value.as_deref().unwrap_or("null")
                )
            })
            .collect();
        lines.sort();
        lines.join(" ")
    }

    /// One batch of records.
    pub(crate) async fn produce(&mut self, partition: i32, records: &[Source]) {
        self.produce_as(partition, records, Compression::None).await;
    }

    /// One batch of records, compressed.
    pub(crate) async fn produce_as(
        &mut self,
        partition: i32,
        records: &[Source],
        codec: Compression,
    ) {
        let source = self.source.clone();
        let bytes = batch(records, codec);
        for _ in 0..200 {
            let answer = self.admin.produce(&source, partition, bytes.clone()).await;
            match ErrorCode(answer.error_code) {
                ErrorCode::NONE => return,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::NOT_LEADER_OR_FOLLOWER => {
                    self.look().await;
                }
                error => panic!("{source}-{partition}: {} {answer:?}", error.name()),
            }
        }
        panic!("{source}-{partition} takes no records");
    }

    /// A partition of the source.
    pub(crate) fn at(&self, partition: i32) -> At {
        At {
            topic: self.topic,
            partition,
        }
    }

    /// A member of the group that has all partitions of the source.
    pub(crate) async fn member(&mut self) -> Member {
        let group = self.group.clone();
        soon("the group's coordinator", async {
            while self.admin.find_coordinator(0, &group).await.error_code != 0 {
                self.look().await;
            }
        })
        .await;
        let client = Client::connect(self.admin.address).await;
        let id = member_id(&self.name, self.members);
        self.members += 1;
        let mut member = Member::new(client, &group, &id);
        let source = self.source.clone();
        let mut assigned = false;
        for _ in 0..600 {
            let topics = [source.as_str()];
            let topics = (member.member_epoch == 0).then_some(&topics[..]);
            let answer = member.heartbeat(member.member_epoch, topics).await;
            match ErrorCode(answer.error_code) {
                ErrorCode::NONE => {
                    member.member_epoch = answer.member_epoch;
                    let parts = answer.assignment.iter().flat_map(|a| &a.topic_partitions);
                    assigned |= parts.map(|t| t.partitions.len()).sum::<usize>() > 0;
                }
                ErrorCode::NOT_COORDINATOR
                | ErrorCode::COORDINATOR_NOT_AVAILABLE
                | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {}
                error => panic!("{group}: {} {answer:?}", error.name()),
            }
            if assigned {
                return member;
            }
            self.look().await;
        }
        panic!("{group} has no assignment");
    }

    /// Fetches until the member has got so many records of a partition; its offsets.
    pub(crate) async fn take(
        &mut self,
        member: &mut Member,
        partition: i32,
        count: usize,
    ) -> Vec<i64> {
        let at = self.at(partition);
        let mut got = vec![];
        for _ in 0..200 {
            let ask = Ask::of(at).max_wait(100);
            let fetched = member.fetch(&ask).await;
            got.extend(fetched.offsets(at));
            if got.len() >= count {
                assert_eq!(got.len(), count, "{}: {got:?}", self.name);
                return got;
            }
            if fetched.fetch_error(at) != OK {
                self.look().await;
            }
        }
        panic!("{}: got {got:?} of {count} records", self.name);
    }

    /// Takes `count` records and rejects all of them at once.
    pub(crate) async fn reject_all(&mut self, member: &mut Member, partition: i32, count: usize) {
        let got = self.take(member, partition, count).await;
        let code = member
            .ack(
                self.at(partition),
                got[0],
                got[count - 1],
                ottla_tests::REJECT,
            )
            .await;
        assert_eq!(code, OK, "{}", self.name);
    }

    /// Waits until nothing of a partition is left to do.
    pub(crate) async fn settled(&mut self, partition: i32) {
        let (group, source) = (self.group.clone(), self.source.clone());
        for _ in 0..1200 {
            let (_, lag) = self.admin.start_and_lag(&group, &source, partition).await;
            if lag == 0 {
                return;
            }
            self.look().await;
        }
        panic!("{source}-{partition} has not settled");
    }

    /// Notes what the DLQ topic holds.
    pub(crate) async fn letters(&mut self, what: &str, partitions: i32) {
        self.note(what, partitions, false).await;
    }

    /// Notes what the DLQ topic holds, and in which batches: where one write makes them.
    pub(crate) async fn batches(&mut self, what: &str, partitions: i32) {
        self.note(what, partitions, true).await;
    }

    async fn note(&mut self, what: &str, partitions: i32, batches: bool) {
        self.seen.push(format!("# {what}"));
        let dlq = self.dlq.clone();
        for partition in 0..partitions {
            let mut offset = 0;
            loop {
                let data = self.admin.fetch(&dlq, partition, offset).await;
                let code = ErrorCode(data.error_code);
                assert!(code.is_none(), "{dlq}-{partition}: {}", code.name());
                let found = decode_batches(data.records.as_deref().unwrap_or_default());
                let Some((last, _)) = found.last() else { break };
                offset = last.last_offset() + 1;
                for (header, records) in found {
                    if batches {
                        self.seen.push(format!(
                            "{partition} batch of {}: attributes {}, producer {} {} {}",
                            records.len(),
                            header.attributes,
                            header.producer_id,
                            header.producer_epoch,
                            header.base_sequence
                        ));
                    }
                    self.seen
                        .extend(records.iter().map(|r| letter(partition, r)));
                }
            }
        }
    }
}

/// A letter as it is compared: partition, offset, key, value, headers in order.
fn letter(partition: i32, record: &Fetched) -> String {
    let headers = record.headers.iter().map(|(name, value)| {
        format!(
            "{}={}",
            String::from_utf8_lossy(name),
            value
                .as_deref()
                .map_or("null".into(), String::from_utf8_lossy)
        )
    });
    let old = record.timestamp == MADE_MS;
    format!(
        "{partition}@{} {}{}: {}; {}",
        record.offset,
        if old { "with the source's time, " } else { "" },
        shown(record.key.as_deref()),
        shown(record.value.as_deref()),
        headers.collect::<Vec<_>>().join("; ")
    )
}

/// Bytes, the long ones by their first character and length.
fn shown(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 60 && bytes.iter().all(|byte| *byte == bytes[0]) => {
            format!("{} times {}", bytes.len(), char::from(bytes[0]))
        }
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
    }
}
