//! Random lives of a group: members that join, leave, die, change what they want and are slow.
//! No partition has two members, and when the turmoil ends everybody has an even share.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::support::{Beat, Has, Shard, beat, join};

/// A client: what it knows and what it has.
#[derive(Clone, Debug, Default)]
struct Client {
    epoch: i32,
    has: Has,
    names: Vec<&'static str>,
    /// An answer was lost: the next heartbeat says everything again.
    says_all: bool,
}

#[derive(Clone, Debug)]
enum Act {
    Join(usize, Vec<&'static str>),
    Beat(usize),
    /// A heartbeat that says nothing of what the member has.
    Quiet(usize),
    /// A heartbeat whose answer is lost.
    Lost(usize),
    Subscribe(usize, Vec<&'static str>),
    Leave(usize),
    Grow,
    Restart,
    Wait(i64),
}

const TOPICS: [&str; 3] = ["t", "u", "v"];

fn names() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(TOPICS.to_vec(), 1..=3)
}

fn act() -> impl Strategy<Value = Act> {
    let member = 0..4_usize;
    prop_oneof![
        3 => (member.clone(), names()).prop_map(|(m, n)| Act::Join(m, n)),
        8 => member.clone().prop_map(Act::Beat),
        2 => member.clone().prop_map(Act::Quiet),
        2 => member.clone().prop_map(Act::Lost),
        2 => (member.clone(), names()).prop_map(|(m, n)| Act::Subscribe(m, n)),
        1 => member.prop_map(Act::Leave),
        1 => Just(Act::Grow),
        1 => Just(Act::Restart),
        1 => (0..15_000_i64).prop_map(Act::Wait),
    ]
}

struct World {
    shard: Shard,
    clients: BTreeMap<usize, Client>,
    size: i32,
}

fn name(member: usize) -> String {
    format!("m{member}")
}

impl World {
    fn send(&mut self, member: usize, request: &Beat, is_lost: bool) {
        let Ok(response) = self.shard.send(request) else {
            // Fenced: it drops everything and joins with its next heartbeat.
            let client = self.clients.entry(member).or_default();
            client.epoch = 0;
            client.has.clear();
            return;
        };
        let client = self.clients.entry(member).or_default();
        client.says_all = is_lost;
        if is_lost {
            return;
        }
        client.epoch = response.member_epoch;
        if let Some(assignment) = response.assignment {
            client.has = crate::support::has(&assignment);
        }
        self.check();
    }

    fn beat(&mut self, member: usize, says: bool, is_lost: bool) {
        let Some(client) = self.clients.get(&member).cloned() else {
            return;
        };
        let request = if client.epoch == 0 {
            join(&name(member), &client.names)
        } else {
            let request = beat(&name(member), client.epoch);
            if client.says_all {
                let mut all = request.owns(&client.has).names(&client.names);
                all.0.rebalance_timeout_ms = 10_000;
                all
            } else if says {
                request.owns(&client.has)
            } else {
                request
            }
        };
        self.send(member, &request, is_lost);
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Join(member, names) => {
                let client = Client {
                    names: names.clone(),
                    ..Client::default()
                };
                self.clients.insert(member, client);
                self.send(member, &join(&name(member), &names), false);
            }
            Act::Beat(member) => self.beat(member, true, false),
            Act::Quiet(member) => self.beat(member, false, false),
            Act::Lost(member) => self.beat(member, true, true),
            Act::Subscribe(member, names) => {
                let Some(client) = self.clients.get_mut(&member) else {
                    return;
                };
                client.names.clone_from(&names);
                if client.says_all {
                    self.beat(member, true, false);
                } else if client.epoch != 0 {
                    let request = beat(&name(member), client.epoch);
                    let request = request.owns(&client.has.clone()).names(&names);
                    self.send(member, &request, false);
                }
            }
            Act::Leave(member) => {
                if self.clients.remove(&member).is_some() {
                    let _ = self.shard.send(&beat(&name(member), -1));
                }
            }
            Act::Grow => {
                self.size += 1;
                self.shard.topics.set("t", 1, self.size);
            }
            Act::Restart => self.shard.restart(),
            Act::Wait(ms) => self.shard.wait(ms),
        }
        self.check();
    }

    /// No partition is with two members: neither in the coordinator's view, nor in that of the
    /// members that the coordinator counts as such.
    fn check(&self) {
        let Ok(group) =
            self.shard
                .groups
                .consumer_describe("g", &self.shard.config, &self.shard.topics)
        else {
            return;
        };
        let mut seen = BTreeSet::new();
        for member in &group.members {
            for topic in &member.assignment {
                for &partition in &topic.partitions {
                    assert!(
                        seen.insert((topic.topic_id, partition)),
                        "two members have it"
                    );
                }
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..12 {
            self.shard.wait(1_000);
            for member in self.clients.clone().into_keys() {
                self.beat(member, true, false);
            }
        }
        let written = self.shard.log.len();
        for member in self.clients.clone().into_keys() {
            self.beat(member, true, false);
        }
        assert_eq!(self.shard.log.len(), written, "it converges");
        let mut given = BTreeSet::new();
        for client in self.clients.values() {
            for (topic, partitions) in &client.has {
                for partition in partitions {
                    assert!(given.insert((*topic, *partition)));
                }
            }
        }
        let counts = [self.size, 2, 5];
        let wanted: i32 = (0..3)
            .filter(|&index| {
                self.clients
                    .values()
                    .any(|c| c.names.contains(&TOPICS[index]))
            })
            .map(|index| counts[index])
            .sum();
        assert_eq!(
            given.len(),
            usize::try_from(wanted).unwrap(),
            "all is given"
        );
        if !self.clients.is_empty() {
            assert_eq!(self.shard.state().0, "Stable");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_partition_has_two_members_and_the_group_settles(
        acts in prop::collection::vec(act(), 1..60), at_once: bool,
    ) {
        let topics = [("t", 3), ("u", 2), ("v", 5)];
        let shard = if at_once { Shard::at_once(&topics) } else { Shard::new(&topics) };
        let mut world = World { shard, clients: BTreeMap::new(), size: 3 };
        for act in acts {
            world.act(act);
        }
        world.settle();
    }
}
