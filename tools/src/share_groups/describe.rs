//! `--describe` with `--offsets`, `--members` or `--state`.

use ottla_protocol::ErrorCode;
use ottla_protocol::messages::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponseTopic;
use ottla_protocol::messages::share_group_describe_response::{DescribedGroup, Member};
use serde_json::{Value, json};

use super::args::{Groups, View};
use super::delivery::told;
use super::report::{Report, add, error_json, meant, or_dash, or_null};
use super::table::{Column, NAME, table};
use crate::client::{Cluster, Error, Node};

pub(super) async fn run(
    cluster: &mut Cluster,
    view: View,
    groups: &Groups,
) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut described = Vec::new();
    for group in meant(cluster, groups, &mut report).await? {
        let outcome = one(cluster, view, &group, &mut report).await;
        match outcome {
            Ok(entry) => described.push(entry),
            // What is wrong with one group does not hide the others.
            Err(error) if error.code() != ErrorCode::NONE => {
                report.fail(&error);
                described.push(json!({ "group": group, "error": error_json(&error) }));
            }
            Err(error) => return Err(error),
        }
    }
    report.json = json!({ "groups": described });
    Ok(report)
}

async fn one(
    cluster: &mut Cluster,
    view: View,
    group: &str,
    report: &mut Report,
) -> Result<Value, Error> {
    let described = cluster.describe_share_group(group).await?;
    if let Some(line) = told(&described) {
        report.note(&line);
    }
    match view {
        View::Members { verbose } => Ok(members(group, described, verbose, report)),
        View::State { verbose } => {
            let coordinator = cluster.coordinator_of(group).await?;
            Ok(state(group, &described, &coordinator, verbose, report))
        }
        View::Offsets { verbose } => {
            let topics = cluster.share_group_offsets(group).await?;
            Ok(offsets(group, &topics, verbose, report))
        }
        View::CircuitBreaker | View::DlqTopology => Ok(Value::Null),
    }
}

fn offsets(
    group: &str,
    topics: &[DescribeShareGroupOffsetsResponseTopic],
    verbose: bool,
    report: &mut Report,
) -> Value {
    let mut rows = Vec::new();
    let mut entries = Vec::new();
    for topic in topics {
        for at in &topic.partitions {
            let name = topic.topic_name.to_string();
            if at.error_code != 0 {
                let message = at.error_message.as_deref();
                let error = Error::refused(at.error_code, message);
                report.failed = true;
                report.note(&format!("Error: {name}-{}: {error}", at.partition_index));
            }
            let mut row = vec![
                group.to_owned(),
                name.clone(),
                at.partition_index.to_string(),
            ];
            if verbose {
                row.push(or_dash(i64::from(at.leader_epoch)));
            }
            row.extend([or_dash(at.start_offset), or_dash(at.lag)]);
            rows.push(row);
            entries.push(json!({
                "topic": name,
                "partition": at.partition_index,
                "leaderEpoch": or_null(i64::from(at.leader_epoch)),
                "startOffset": or_null(at.start_offset),
                "lag": or_null(at.lag),
            }));
        }
    }
    if rows.is_empty() {
        let text = format!("\nShare group '{group}' has no offset information.\n");
        report.text.push_str(&text);
    } else {
        let mut columns = vec![("GROUP", NAME), ("TOPIC", NAME), ("PARTITION", 10)];
        if verbose {
            columns.push(("LEADER-EPOCH", 13));
        }
        columns.extend([("START-OFFSET", 13), ("LAG", 3)]);
        add(
            &mut report.text,
            format_args!("\n{}", table(&columns, &rows)),
        );
    }
    json!({ "group": group, "offsets": entries })
}

/// Kafka's words for a group without members; they go to stderr, as there.
fn nobody(group: &str) -> String {
    format!("\nShare group '{group}' has no active members.")
}

fn members(
    group: &str,
    mut described: DescribedGroup,
    verbose: bool,
    report: &mut Report,
) -> Value {
    described
        .members
        .sort_by(|a, b| a.member_id.cmp(&b.member_id));
    if described.members.is_empty() {
        report.note(&nobody(group));
    } else {
        let row = |member: &Member| {
            let (partitions, assignment) = assigned(member);
            let mut row = vec![
                group.to_owned(),
                member.member_id.to_string(),
                member.client_host.to_string(),
                member.client_id.to_string(),
                partitions.to_string(),
            ];
            if verbose {
                row.push(member.member_epoch.to_string());
            }
            row.push(assignment);
            row
        };
        let rows: Vec<_> = described.members.iter().map(row).collect();
        let mut columns: Vec<Column> = vec![
            ("GROUP", NAME),
            ("CONSUMER-ID", NAME),
            ("HOST", NAME),
            ("CLIENT-ID", NAME),
            ("#PARTITIONS", 12),
        ];
        if verbose {
            columns.push(("MEMBER-EPOCH", 13));
        }
        columns.push(("ASSIGNMENT", NAME));
        add(
            &mut report.text,
            format_args!("\n{}", table(&columns, &rows)),
        );
    }
    let entry = |member: &Member| {
        let topics = member.assignment.topic_partitions.iter();
        let assignment: Vec<_> = topics
            .map(|topic| json!({ "topic": &**topic.topic_name, "partitions": topic.partitions }))
            .collect();
        let subscribed = member.subscribed_topic_names.iter();
        let subscribed: Vec<&str> = subscribed.map(|name| &***name).collect();
        json!({
            "consumerId": &*member.member_id,
            "host": &*member.client_host,
            "clientId": &*member.client_id,
            "rack": member.rack_id.as_deref(),
            "memberEpoch": member.member_epoch,
            "subscribedTopics": subscribed,
            "assignment": assignment,
        })
    };
    let entries: Vec<_> = described.members.iter().map(entry).collect();
    json!({ "group": group, "members": entries })
}

/// How many partitions a member has, and which: `orders:0,1;pay:0`.
fn assigned(member: &Member) -> (usize, String) {
    let mut topics: Vec<_> = member.assignment.topic_partitions.iter().collect();
    topics.sort_by(|a, b| a.topic_name.cmp(&b.topic_name));
    let count = topics.iter().map(|topic| topic.partitions.len()).sum();
    let one =
        |topic: &&ottla_protocol::messages::share_group_describe_response::TopicPartitions| {
            let mut partitions = topic.partitions.clone();
            partitions.sort_unstable();
            let listed: Vec<String> = partitions.iter().map(ToString::to_string).collect();
            format!("{}:{}", &**topic.topic_name, listed.join(","))
        };
    let listed: Vec<String> = topics.iter().map(one).collect();
    match count {
        0 => (0, "-".to_owned()),
        _ => (count, listed.join(";")),
    }
}

fn state(
    group: &str,
    described: &DescribedGroup,
    coordinator: &Node,
    verbose: bool,
    report: &mut Report,
) -> Value {
    let members = described.members.len();
    if members == 0 {
        report.note(&nobody(group));
    }
    let mut columns = vec![("GROUP", NAME), ("COORDINATOR (ID)", 25), ("STATE", NAME)];
    let mut row = vec![
        group.to_owned(),
        format!("{}  ({})", coordinator.address, coordinator.id),
        described.group_state.to_string(),
    ];
    if verbose {
        columns.extend([("GROUP-EPOCH", 12), ("ASSIGNMENT-EPOCH", 17)]);
        row.push(described.group_epoch.to_string());
        row.push(described.assignment_epoch.to_string());
    }
    columns.push(("#MEMBERS", 8));
    row.push(members.to_string());
    add(
        &mut report.text,
        format_args!("\n{}", table(&columns, &[row])),
    );
    json!({
        "group": group,
        "coordinator": { "id": coordinator.id, "address": coordinator.address },
        "state": &*described.group_state,
        "groupEpoch": described.group_epoch,
        "assignmentEpoch": described.assignment_epoch,
        "assignor": &*described.assignor_name,
        "members": members,
        "delivery": super::delivery::of(described),
    })
}
