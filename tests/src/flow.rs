//! A stream of work through a share group: produced, delivered, acknowledged by a rule, and kept account of.

use std::collections::BTreeMap;

use ottla_protocol::Uuid;
use ottla_protocol::messages::share_fetch_response::AcquiredRecords;

use crate::{ACCEPT, Ask, At, Client, Embedded, Member, REJECT};

/// What is to be done with a delivered record: an acknowledgement type, or nothing.
pub type Rule = fn(Delivered) -> Option<i8>;

/// A delivered record.
#[derive(Debug, Clone, Copy)]
pub struct Delivered {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Which delivery of it this is, from 1.
    pub count: i16,
}

/// A set of offsets, which are near each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offsets(Vec<u64>);

impl Offsets {
    /// Adds an offset; whether it is new.
    pub fn add(&mut self, offset: i64) -> bool {
        let (word, bit) = (offset as usize / 64, 1 << (offset % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Whether an offset is in it.
    pub fn has(&self, offset: i64) -> bool {
        let word = self.0.get(offset as usize / 64);
        word.is_some_and(|word| word & (1 << (offset % 64)) != 0)
    }

    /// How many there are.
    pub fn len(&self) -> i64 {
        self.0.iter().map(|word| i64::from(word.count_ones())).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What became of the records of one partition, as the consumer knows it.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// How many were produced.
    pub produced: i64,
    /// Accepted ones.
    pub accepted: Offsets,
    /// Rejected ones.
    pub rejected: Offsets,
}

impl Account {
    fn note(&mut self, delivered: Delivered, kind: i8) {
        let new = match kind {
            ACCEPT => self.accepted.add(delivered.offset),
            REJECT => self.rejected.add(delivered.offset),
            _ => true,
        };
        assert!(new, "{delivered:?} once more");
    }
}

fn each(partition: i32, entries: &[AcquiredRecords]) -> impl Iterator<Item = Delivered> {
    entries.iter().flat_map(move |entry| {
        let offsets = entry.first_offset..=entry.last_offset;
        offsets.map(move |offset| Delivered {
            partition,
            offset,
            count: entry.delivery_count,
        })
    })
}

/// One member of a group, with a share session at each leader.
#[derive(Debug)]
pub struct Flow {
    /// By partition.
    pub accounts: Vec<Account>,
    /// The member at its coordinator.
    pub member: Member,
    topic: String,
    id: Uuid,
    sessions: BTreeMap<i32, Member>,
    producers: BTreeMap<i32, Client>,
    /// The partitions by leader.
    led: BTreeMap<i32, Vec<i32>>,
}

impl Flow {
    /// Joins the group for a topic whose partition n is led by `leaders[n]`.
    pub async fn join(
        broker: &Embedded,
        group: &str,
        (topic, id): (&str, Uuid),
        leaders: &[i32],
    ) -> Self {
        let mut asked = broker.client_of(leaders[0]).await;
        let found = asked.find_coordinator(0, group).await;
        assert_eq!(found.error_code, 0, "{found:?}");
        let client = broker.client_of(*found.node_id).await;
        let mut member = Member::new(client, group, "flow");
        member.join(&[topic]).await;
        let mut led = BTreeMap::<i32, Vec<i32>>::new();
        for (&leader, partition) in leaders.iter().zip(0..) {
            led.entry(leader).or_default().push(partition);
        }
        let (mut sessions, mut producers) = (BTreeMap::new(), BTreeMap::new());
        for &leader in led.keys() {
            let session = Member::new(broker.client_of(leader).await, group, "flow");
            sessions.insert(leader, session);
            producers.insert(leader, broker.client_of(leader).await);
        }
        Self {
            accounts: vec![Account::default(); leaders.len()],
            member,
            topic: topic.to_owned(),
            id,
            sessions,
            producers,
            led,
        }
    }

    /// Produces one batch of so many records to each partition.
    pub async fn produce(&mut self, now: i64, records: usize) {
        let values: Vec<String> = (0..records).map(|n| format!("value {n}")).collect();
        for (leader, partitions) in &self.led {
            let Some(producer) = self.producers.get_mut(leader) else {
                continue;
            };
            producer.timestamp = now;
            for &partition in partitions {
                producer
                    .produce_values(&self.topic, partition, &values)
                    .await;
                self.accounts[partition as usize].produced += records as i64;
            }
        }
    }

    /// A heartbeat that changes nothing.
    pub async fn beat(&mut self) {
        self.member.beat().await;
    }

    /// Delivers everything that can be had now, and acknowledges it by the rule; how many records came
    /// from each partition.
    pub async fn deliver(&mut self, rule: Rule) -> Vec<usize> {
        let mut came = vec![0; self.accounts.len()];
        for (leader, partitions) in &self.led {
            let Some(session) = self.sessions.get_mut(leader) else {
                continue;
            };
            let at = |partition| At {
                topic: self.id,
                partition,
            };
            let all = partitions.iter().fold(Ask::new(), |ask, &p| ask.and(at(p)));
            loop {
                let fetched = session.fetch(&all).await;
                let mut got = 0;
                let mut answer = Ask::new();
                for &partition in partitions {
                    let account = &mut self.accounts[partition as usize];
                    let entries = fetched.partition(at(partition));
                    let entries = entries.map_or(&[][..], |p| &p.acquired_records);
                    for delivered in each(partition, entries) {
                        got += 1;
                        came[partition as usize] += 1;
                        if let Some(kind) = rule(delivered) {
                            account.note(delivered, kind);
                            let offset = delivered.offset;
                            answer = answer.ack(at(partition), offset, offset, kind);
                        }
                    }
                }
                if got == 0 {
                    break;
                }
                let told = session.acknowledge(&answer).await;
                let partitions = told.0.responses.iter().flat_map(|topic| &topic.partitions);
                for partition in partitions {
                    assert_eq!(partition.error_code, 0, "{told:?}");
                }
            }
        }
        came
    }

    /// How many records were rejected.
    pub fn rejected(&self) -> i64 {
        self.accounts
            .iter()
            .map(|account| account.rejected.len())
            .sum()
    }

    /// How many records were accepted.
    pub fn accepted(&self) -> i64 {
        self.accounts
            .iter()
            .map(|account| account.accepted.len())
            .sum()
    }

    /// How many records were produced.
    pub fn produced(&self) -> i64 {
        self.accounts.iter().map(|account| account.produced).sum()
    }

    /// A partition of the topic.
    pub fn at(&self, partition: i32) -> At {
        At {
            topic: self.id,
            partition,
        }
    }
}
