//! `--describe --dlq-topology`: where the dead letters of every group go, and what is wrong with that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::describe_share_group_delivery_response::DescribedShareGroupDelivery;
use serde_json::{Value, json};

use super::args::Groups;
use super::report::{Report, add, meant};
use super::table::{Column, NAME, table};
use crate::client::{Cluster, Error, Resource};

const DLQ_NAME: &str = "errors.deadletterqueue.topic.name";
const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";
const AUTO_CREATE: &str = "errors.deadletterqueue.auto.create.topics.enable";
const FLAG: &str = "errors.deadletterqueue.group.enable";
const CLEANUP: &str = "cleanup.policy";
const ISOLATION: &str = "share.group.dlq.strict.isolation";
const LOOP: &str = "ottla.share.dlq.allow.loop";

const COLUMNS: &[Column] = &[
    ("GROUP", NAME),
    ("SOURCE-TOPICS", NAME),
    ("DLQ-TOPIC", NAME),
    ("EXISTS", 6),
    ("FLAG", 4),
    ("PREFIX", 6),
    ("COMPACTED", 9),
    ("SHARED-WITH", 11),
    ("ISOLATION", 9),
    ("WRITTEN", 8),
    ("GIVEN-UP", 8),
];

/// What the brokers say about all dead letter topics.
#[derive(Debug, Default)]
struct Rules {
    prefix: String,
    auto_create: bool,
}

/// A dead letter topic.
#[derive(Clone, Debug, Default)]
struct Topic {
    exists: bool,
    flag: bool,
    compacted: bool,
}

/// A group, and where its letters go.
#[derive(Debug, Default)]
struct Entry {
    sources: BTreeSet<String>,
    /// Empty: nowhere.
    dlq: String,
    /// `None`: the broker does not know the config.
    isolation: Option<bool>,
    loop_allowed: bool,
    /// `None`: the broker does not count.
    delivery: Option<DescribedShareGroupDelivery>,
}

/// All that was found.
#[derive(Debug, Default)]
struct Map {
    rules: Rules,
    groups: BTreeMap<String, Entry>,
    topics: BTreeMap<String, Topic>,
}

pub(super) async fn describe(cluster: &mut Cluster, groups: &Groups) -> Result<Report, Error> {
    let mut report = Report::default();
    let shown = match groups {
        Groups::Named(named) => Some(named.iter().cloned().collect::<BTreeSet<_>>()),
        Groups::All => None,
    };
    let map = gather(cluster, shown.as_ref(), &mut report).await?;
    let unknown = shown
        .iter()
        .flatten()
        .find(|group| !map.groups.contains_key(*group));
    if let Some(group) = unknown {
        let text = format!("Group {group} not found.");
        return Err(Error::refused(ErrorCode::GROUP_ID_NOT_FOUND.0, Some(&text)));
    }
    let cycles = map.cycles();
    let visible = |group: &&String| shown.as_ref().is_none_or(|shown| shown.contains(*group));
    let names: Vec<&String> = map.groups.keys().filter(visible).collect();
    report.text = map.text(&names, &cycles);
    report.json = map.json(&names, &cycles);
    Ok(report)
}

async fn gather(
    cluster: &mut Cluster,
    shown: Option<&BTreeSet<String>>,
    report: &mut Report,
) -> Result<Map, Error> {
    let mut map = Map {
        rules: rules(cluster).await?,
        ..Map::default()
    };
    // A topic is used by every group whose config names it, with members or without.
    let mut names: BTreeSet<String> = match cluster.configured(Resource::Group).await? {
        Some(configured) => configured.into_iter().collect(),
        None => {
            report.note("This broker does not list group configs: groups that have only configs are left out.");
            BTreeSet::new()
        }
    };
    let mut quiet = Report::default();
    let live: BTreeSet<String> = meant(cluster, &Groups::All, &mut quiet)
        .await?
        .into_iter()
        .collect();
    names.extend(live.iter().cloned());
    let mut counts = true;
    for group in names {
        let mut entry = configs_of(cluster, &group).await?;
        if entry.dlq.is_empty()
            && !live.contains(&group)
            && shown.is_none_or(|s| !s.contains(&group))
        {
            continue;
        }
        if live.contains(&group) {
            entry.sources = sources(cluster, &group).await?;
            if counts {
                match cluster.describe_share_group_delivery(&group).await {
                    Ok(found) => entry.delivery = Some(found),
                    Err(Error::Unsupported { .. }) => {
                        counts = false;
                        report.note("This broker does not count letters by group (API key 20001, Ottla's own): WRITTEN and GIVEN-UP are not known.");
                    }
                    // The group went away meanwhile.
                    Err(error) if error.code() == ErrorCode::GROUP_ID_NOT_FOUND => {}
                    Err(error) => return Err(error),
                }
            }
        }
        map.groups.insert(group, entry);
    }
    map.topics = topics(cluster, &map.groups).await?;
    Ok(map)
}

async fn rules(cluster: &mut Cluster) -> Result<Rules, Error> {
    let nodes = cluster.nodes().await?;
    let name = nodes.first().map_or_else(String::new, ToString::to_string);
    let found = cluster
        .configs(Resource::Broker, &name, Some(&[PREFIX, AUTO_CREATE]))
        .await?;
    Ok(Rules {
        prefix: found.get(PREFIX).cloned().unwrap_or_default(),
        auto_create: found.get(AUTO_CREATE).is_some_and(|value| value == "true"),
    })
}

async fn configs_of(cluster: &mut Cluster, group: &str) -> Result<Entry, Error> {
    let found = cluster.configs(Resource::Group, group, None).await?;
    let is = |key: &str| found.get(key).map(|value| value == "true");
    Ok(Entry {
        dlq: found.get(DLQ_NAME).cloned().unwrap_or_default(),
        isolation: is(ISOLATION),
        // A broker that does not know the config does not look.
        loop_allowed: is(LOOP) != Some(false),
        ..Entry::default()
    })
}

/// The topics that a group reads: what its members subscribe to, and what it has offsets for.
async fn sources(cluster: &mut Cluster, group: &str) -> Result<BTreeSet<String>, Error> {
    let gone = |error: &Error| error.code() == ErrorCode::GROUP_ID_NOT_FOUND;
    let mut found = BTreeSet::new();
    match cluster.describe_share_group(group).await {
        Err(error) if gone(&error) => return Ok(found),
        described => {
            for member in described?.members {
                let names = member.subscribed_topic_names.iter();
                found.extend(names.map(|name| name.to_string()));
            }
        }
    }
    match cluster.share_group_offsets(group).await {
        Err(error) if gone(&error) => {}
        topics => found.extend(topics?.iter().map(|topic| topic.topic_name.to_string())),
    }
    Ok(found)
}

async fn topics(
    cluster: &mut Cluster,
    groups: &BTreeMap<String, Entry>,
) -> Result<BTreeMap<String, Topic>, Error> {
    let named: BTreeSet<&String> = groups.values().map(|entry| &entry.dlq).collect();
    let mut found = BTreeMap::new();
    for name in named.into_iter().filter(|name| !name.is_empty()) {
        let asked = std::slice::from_ref(name);
        let known = cluster.topics(asked).await?.remove(name);
        let mut topic = Topic::default();
        // A name that no topic can have is that of no topic.
        if matches!(known, Some(Ok(_))) {
            let keys = Some(&[FLAG, CLEANUP][..]);
            let configs = cluster.configs(Resource::Topic, name, keys).await?;
            let cleanup = configs.get(CLEANUP).map_or("", String::as_str);
            topic = Topic {
                exists: true,
                flag: configs.get(FLAG).is_some_and(|value| value == "true"),
                compacted: cleanup.split(',').any(|policy| policy.trim() == "compact"),
            };
        }
        found.insert(name.clone(), topic);
    }
    Ok(found)
}

impl Map {
    /// Other groups whose letters go to the same topic.
    fn sharing(&self, group: &str) -> Vec<&str> {
        let dlq = &self.groups[group].dlq;
        let others = self.groups.iter();
        let same = others.filter(|(name, entry)| *name != group && entry.dlq == *dlq);
        if dlq.is_empty() {
            return Vec::new();
        }
        same.map(|(name, _)| name.as_str()).collect()
    }

    /// Why a group's letters are not written, or come back, one sentence each.
    fn problems(&self, group: &str) -> Vec<String> {
        let entry = &self.groups[group];
        let (dlq, topic) = (&entry.dlq, self.topics.get(&entry.dlq));
        let Some(topic) = topic else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if !dlq.starts_with(&self.rules.prefix) {
            let prefix = &self.rules.prefix;
            found.push(format!(
                "{dlq} does not begin with the prefix {prefix}: no letter is written"
            ));
        }
        if !topic.exists && !self.rules.auto_create {
            found.push(format!(
                "{dlq} does not exist, and {AUTO_CREATE} is false: no letter is written"
            ));
        }
        if topic.exists && !topic.flag {
            found.push(format!(
                "{dlq} does not have {FLAG}=true: no letter is written"
            ));
        }
        if topic.compacted {
            // Ottla looks before it writes; Kafka's log refuses records without a key.
            let what = if entry.isolation.is_some() {
                "no letter is written"
            } else {
                "letters without a key cannot be written"
            };
            found.push(format!("{dlq} is compacted: {what}"));
        }
        if entry.sources.contains(dlq) {
            let what = if entry.loop_allowed {
                "its letters come back to it"
            } else {
                "no letter of it is written"
            };
            found.push(format!("the group reads {dlq} itself: {what}"));
        }
        let sharing = self.sharing(group);
        let strict = |name: &&str| self.groups[*name].isolation == Some(true);
        if !sharing.is_empty() && (entry.isolation == Some(true) || sharing.iter().any(strict)) {
            let others = sharing.join(", ");
            found.push(format!(
                "{dlq} is shared with {others}, against {ISOLATION}"
            ));
        }
        let delivery = entry.delivery.as_ref();
        if let Some(reason) = delivery.and_then(|found| found.dlq_disabled_reason.as_ref()) {
            found.push(reason.to_string());
        }
        found
    }

    /// Ways on which a record could come back as a letter of a letter: topic, group, topic and so on,
    /// ending with the first topic. Each topic on any such way is on one that is listed.
    fn cycles(&self) -> Vec<Vec<String>> {
        let mut edges: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (group, entry) in &self.groups {
            for source in entry.sources.iter().filter(|_| !entry.dlq.is_empty()) {
                edges.entry(source).or_default().push((group, &entry.dlq));
            }
        }
        let mut covered = BTreeSet::new();
        let mut found = Vec::new();
        for start in edges.keys().copied() {
            if covered.contains(start) {
                continue;
            }
            if let Some(cycle) = shortest(&edges, start) {
                covered.extend(cycle.iter().step_by(2).cloned());
                found.push(cycle);
            }
        }
        found
    }

    fn text(&self, names: &[&String], cycles: &[Vec<String>]) -> String {
        let rows: Vec<_> = names.iter().map(|group| self.row(group)).collect();
        let mut text = format!("\n{}", table(COLUMNS, &rows));
        let mut problems = String::new();
        for group in names {
            for problem in self.problems(group) {
                add(&mut problems, format_args!("  {group}: {problem}\n"));
            }
        }
        if !problems.is_empty() {
            add(&mut text, format_args!("\nProblems:\n{problems}"));
        }
        if !cycles.is_empty() {
            text.push_str("\nCycles:\n");
        }
        for cycle in cycles {
            add(&mut text, format_args!("  {}\n", arrows(cycle)));
        }
        text
    }

    fn row(&self, group: &str) -> Vec<String> {
        let yes = |is: bool| (if is { "yes" } else { "no" }).to_owned();
        let dash = || "-".to_owned();
        let list = |names: Vec<&str>| {
            if names.is_empty() {
                return dash();
            }
            names.join(",")
        };
        let entry = &self.groups[group];
        let sources = list(entry.sources.iter().map(String::as_str).collect());
        let mut row = vec![group.to_owned(), sources];
        match self.topics.get(&entry.dlq) {
            None => row.extend(std::iter::repeat_with(dash).take(6)),
            Some(topic) => row.extend([
                entry.dlq.clone(),
                match (topic.exists, self.rules.auto_create) {
                    (false, true) => "on demand".to_owned(),
                    (exists, _) => yes(exists),
                },
                if topic.exists {
                    yes(topic.flag)
                } else {
                    dash()
                },
                yes(entry.dlq.starts_with(&self.rules.prefix)),
                if topic.exists {
                    yes(topic.compacted)
                } else {
                    dash()
                },
                list(self.sharing(group)),
            ]),
        }
        let isolation = |on: bool| (if on { "strict" } else { "shared" }).to_owned();
        row.push(entry.isolation.map_or_else(dash, isolation));
        let count = |of: fn(&DescribedShareGroupDelivery) -> i64| {
            let delivery = entry.delivery.as_ref();
            delivery.map_or_else(dash, |found| of(found).to_string())
        };
        row.extend([count(|found| found.letters_written), count(given_up)]);
        row
    }

    fn json(&self, names: &[&String], cycles: &[Vec<String>]) -> Value {
        let entry = |group: &&String| {
            let entry = &self.groups[*group];
            let topic = self.topics.get(&entry.dlq);
            let dlq = topic.map(|topic| {
                json!({
                    "topic": entry.dlq,
                    "exists": topic.exists,
                    "flag": topic.exists.then_some(topic.flag),
                    "hasPrefix": entry.dlq.starts_with(&self.rules.prefix),
                    "compacted": topic.exists.then_some(topic.compacted),
                    "sharedWith": self.sharing(group),
                })
            });
            let delivery = entry.delivery.as_ref();
            json!({
                "group": group,
                "sourceTopics": entry.sources,
                "dlq": dlq,
                "strictIsolation": entry.isolation,
                "written": delivery.map(|found| found.letters_written),
                "givenUp": delivery.map(given_up),
                "problems": self.problems(group),
            })
        };
        let cycle = |cycle: &Vec<String>| {
            let topics: Vec<_> = cycle.iter().step_by(2).collect();
            let groups: Vec<_> = cycle.iter().skip(1).step_by(2).collect();
            json!({ "topics": topics, "groups": groups })
        };
        json!({
            "prefix": self.rules.prefix,
            "autoCreate": self.rules.auto_create,
            "groups": names.iter().map(entry).collect::<Vec<_>>(),
            "cycles": cycles.iter().map(cycle).collect::<Vec<_>>(),
        })
    }
}

fn given_up(found: &DescribedShareGroupDelivery) -> i64 {
    found.given_up.iter().map(|one| one.records).sum()
}

/// `orders -[workers]-> dlq.orders -[retry]-> orders`.
fn arrows(cycle: &[String]) -> String {
    let mut text = String::new();
    for (at, name) in cycle.iter().enumerate() {
        match at % 2 {
            0 => text.push_str(name),
            _ => add(&mut text, format_args!(" -[{name}]-> ")),
        }
    }
    text
}

/// The shortest way from a topic back to it, over groups.
fn shortest(edges: &BTreeMap<&str, Vec<(&str, &str)>>, start: &str) -> Option<Vec<String>> {
    // Of a topic that was reached: from which one, and over which group.
    let mut from: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(topic) = waiting.pop_front() {
        for (group, next) in edges.get(topic).into_iter().flatten() {
            if *next == start {
                let mut way = vec![start, group, topic];
                let mut at = topic;
                while let Some((before, over)) = from.get(at).filter(|_| at != start) {
                    way.extend([over, before]);
                    at = before;
                }
                way.reverse();
                return Some(way.into_iter().map(str::to_owned).collect());
            }
            if *next != start && !from.contains_key(next) {
                from.insert(next, (topic, group));
                waiting.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
