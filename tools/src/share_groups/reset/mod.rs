//! `--reset-offsets`: where to, for which partitions, and doing it.

mod csv;
pub(super) mod datetime;

use std::collections::BTreeMap;

use ottla_protocol::ErrorCode;
use serde_json::json;

use super::args::{Reset, Scope, Target};
use super::report::{Report, error_json};
use super::table::{NAME, table};
use crate::client::{Cluster, EARLIEST, Error, LATEST, SettingsError};

/// Topic and partition.
type At = (String, i32);
/// New offsets.
type Plan = BTreeMap<At, i64>;

pub(super) async fn run(
    cluster: &mut Cluster,
    reset: &Reset,
    json_wanted: bool,
) -> Result<Report, Error> {
    if reset.export && json_wanted {
        let text = "Option \"[export]\" can't be used with option \"[output json]\"";
        return Err(SettingsError(text.to_owned()).into());
    }
    let mut report = Report::default();
    check_group(cluster, &reset.group).await?;
    let plan = plan(cluster, reset, &mut report).await?;
    if plan.is_empty() {
        report.note(&format!(
            "Group '{}' has no offsets: nothing to reset.",
            reset.group
        ));
    }
    let mut refused = BTreeMap::new();
    if reset.execute && !plan.is_empty() {
        let outcomes = cluster.alter_share_group_offsets(&reset.group, &plan);
        for (topic, partition, outcome) in outcomes.await? {
            if let Err(error) = outcome {
                report.failed = true;
                report.note(&format!("Error: {topic}-{partition}: {error}"));
                refused.insert((topic, partition), error);
            }
        }
    }
    print(reset, &plan, &refused, &mut report);
    Ok(report)
}

/// The group must have no members; a group that is not there is made by its first offset.
async fn check_group(cluster: &mut Cluster, group: &str) -> Result<(), Error> {
    match cluster.describe_share_group(group).await {
        Ok(described) if matches!(&*described.group_state, "Empty" | "Dead") => Ok(()),
        Ok(_) => {
            let text = format!("Share group '{group}' is not empty.");
            Err(Error::refused(ErrorCode::NON_EMPTY_GROUP.0, Some(&text)))
        }
        Err(Error::Refused {
            code: ErrorCode::GROUP_ID_NOT_FOUND,
            message,
        }) => match message {
            // It is one of another kind.
            Some(text) if text.contains("is not a share group") => {
                Err(Error::refused(ErrorCode::GROUP_ID_NOT_FOUND.0, Some(&text)))
            }
            _ => Ok(()),
        },
        Err(error) => Err(error),
    }
}

async fn plan(cluster: &mut Cluster, reset: &Reset, report: &mut Report) -> Result<Plan, Error> {
    if let Target::File(path) = &reset.target {
        let wanted = csv::read(path, &reset.group)?;
        return within_bounds(cluster, wanted, report).await;
    }
    let at = match &reset.scope {
        Scope::AllTopics => current(cluster, &reset.group).await?.into_keys().collect(),
        Scope::Topics(topics) => named(cluster, topics).await?,
        Scope::File => Vec::new(),
    };
    match &reset.target {
        Target::Earliest => cluster.offsets_at(&at, EARLIEST).await,
        Target::Latest => cluster.offsets_at(&at, LATEST).await,
        Target::Offset(offset) => {
            let wanted = at.into_iter().map(|at| (at, *offset)).collect();
            within_bounds(cluster, wanted, report).await
        }
        Target::Time(ms) => from_time(cluster, &at, *ms, report).await,
        Target::Current => {
            let current = current(cluster, &reset.group).await?;
            let mut plan = cluster.offsets_at(&at, LATEST).await?;
            for (at, offset) in &mut plan {
                if let Some(known) = current.get(at).filter(|known| **known >= 0) {
                    *offset = *known;
                }
            }
            Ok(plan)
        }
        Target::File(_) => Ok(Plan::new()),
    }
}

/// Where the group is; -1 where it has not begun. Without the group: nowhere.
async fn current(cluster: &mut Cluster, group: &str) -> Result<Plan, Error> {
    let topics = match cluster.share_group_offsets(group).await {
        Err(error) if error.code() == ErrorCode::GROUP_ID_NOT_FOUND => Vec::new(),
        topics => topics?,
    };
    let mut found = Plan::new();
    for topic in topics {
        for partition in topic.partitions {
            let at = (topic.topic_name.to_string(), partition.partition_index);
            found.insert(at, partition.start_offset);
        }
    }
    Ok(found)
}

/// The partitions that the command names, all of which must exist.
async fn named(cluster: &mut Cluster, topics: &[(String, Vec<i32>)]) -> Result<Vec<At>, Error> {
    let names: Vec<String> = topics.iter().map(|(topic, _)| topic.clone()).collect();
    let known = cluster.topics(&names).await?;
    let missing = |text: Option<&str>| {
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0;
        Error::refused(unknown, text)
    };
    let mut found = Vec::new();
    for (topic, partitions) in topics {
        let exist = match known.get(topic) {
            Some(Ok(exist)) => exist,
            Some(Err(error)) => return Err(Error::refused(error.code().0, Some(topic))),
            None => return Err(missing(Some(topic))),
        };
        let absent: Vec<String> = partitions
            .iter()
            .filter(|partition| !exist.contains_key(partition))
            .map(|partition| format!("{topic}-{partition}"))
            .collect();
        if !absent.is_empty() {
            let text = format!("The partitions \"{}\" do not exist", absent.join(","));
            return Err(missing(Some(&text)));
        }
        if partitions.is_empty() {
            found.extend(exist.keys().map(|partition| (topic.clone(), *partition)));
        } else {
            found.extend(partitions.iter().map(|at| (topic.clone(), *at)));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// No offset before the first or behind the last record.
async fn within_bounds(
    cluster: &mut Cluster,
    mut wanted: Plan,
    report: &mut Report,
) -> Result<Plan, Error> {
    let at: Vec<At> = wanted.keys().cloned().collect();
    let first = cluster.offsets_at(&at, EARLIEST).await?;
    let last = cluster.offsets_at(&at, LATEST).await?;
    for (at, offset) in &mut wanted {
        let bound = |bounds: &Plan| bounds.get(at).copied().unwrap_or(*offset);
        let (first, last) = (bound(&first), bound(&last));
        let (how, instead) = match *offset {
            offset if offset < first => ("lower than earliest", first),
            offset if offset > last => ("higher than latest", last),
            _ => continue,
        };
        report.note(&format!(
            "New offset ({offset}) is {how} offset for topic partition {}-{}. Value will be set to {instead}.",
            at.0, at.1
        ));
        *offset = instead;
    }
    Ok(wanted)
}

async fn from_time(
    cluster: &mut Cluster,
    at: &[At],
    ms: i64,
    report: &mut Report,
) -> Result<Plan, Error> {
    let mut found = cluster.offsets_at(at, ms).await?;
    let late: Vec<At> = found
        .iter()
        .filter(|(_, offset)| **offset < 0)
        .map(|(at, _)| at.clone())
        .collect();
    if late.is_empty() {
        return Ok(found);
    }
    for (topic, partition) in &late {
        report.note(&format!(
            "Warn: Partition {partition} from topic {topic} has no record from then on. Falling back to latest known offset."
        ));
    }
    found.extend(cluster.offsets_at(&late, LATEST).await?);
    Ok(found)
}

fn print(reset: &Reset, plan: &Plan, refused: &BTreeMap<At, Error>, report: &mut Report) {
    let done = plan.iter().filter(|(at, _)| !refused.contains_key(*at));
    report.text = if reset.export {
        csv::write(done.map(|((topic, partition), offset)| (&**topic, *partition, *offset)))
    } else {
        let row = |((topic, partition), offset): (&At, &i64)| {
            let cells = [
                &reset.group,
                topic,
                &partition.to_string(),
                &offset.to_string(),
            ];
            cells.map(Clone::clone).to_vec()
        };
        let rows: Vec<_> = done.map(row).collect();
        let columns = [
            ("GROUP", NAME),
            ("TOPIC", NAME),
            ("PARTITION", 10),
            ("NEW-OFFSET", 10),
        ];
        format!("\n{}", table(&columns, &rows))
    };
    let entry = |(at, offset): (&At, &i64)| {
        let mut entry = json!({ "topic": at.0, "partition": at.1, "newOffset": offset });
        if let Some(error) = refused.get(at) {
            entry["error"] = error_json(error);
        }
        entry
    };
    let entries: Vec<_> = plan.iter().map(entry).collect();
    report.json = json!({
        "group": reset.group,
        "executed": reset.execute,
        "offsets": entries,
    });
}
