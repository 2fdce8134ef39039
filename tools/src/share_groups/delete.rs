//! `--delete` and `--delete-offsets`.

use std::collections::BTreeMap;

use ottla_protocol::ErrorCode;
use serde_json::json;

use super::args::Groups;
use super::report::{Report, add, error_json, said};
use super::table::{NAME, table};
use crate::client::{Cluster, Error};

/// `--delete`. DeleteGroups knows no types: that a group is a share group, and empty, is asked before.
pub(super) async fn groups(cluster: &mut Cluster, groups: &Groups) -> Result<Report, Error> {
    let known = cluster.share_groups(&[]).await?;
    let named: Vec<String> = match groups {
        Groups::All => known.keys().cloned().collect(),
        Groups::Named(named) => named.clone(),
    };
    let mut report = Report::default();
    if named.is_empty() {
        report.note("There are no share groups.");
    }
    let mut outcomes = Vec::new();
    for group in named {
        let refusal = |code: ErrorCode, text: &str| {
            Error::refused(code.0, Some(&format!("{} '{group}' {text}", words(code))))
        };
        let outcome = match known.get(&group).map(String::as_str) {
            None => Err(refusal(
                ErrorCode::GROUP_ID_NOT_FOUND,
                "is not a share group.",
            )),
            Some("Empty" | "Dead") => cluster.delete_share_group(&group).await,
            Some(_) => Err(refusal(ErrorCode::NON_EMPTY_GROUP, "is not EMPTY.")),
        };
        if let Err(error) = &outcome
            && error.code() == ErrorCode::NONE
        {
            return Err(error.clone());
        }
        outcomes.push((group, outcome));
    }
    report.failed = outcomes.iter().any(|(_, outcome)| outcome.is_err());
    report.text = deleted(&outcomes);
    let entry = |(group, outcome): &(String, Result<(), Error>)| match outcome {
        Ok(()) => json!({ "group": group, "deleted": true }),
        Err(error) => json!({ "group": group, "deleted": false, "error": error_json(error) }),
    };
    let entries: Vec<_> = outcomes.iter().map(entry).collect();
    report.json = json!({ "groups": entries });
    Ok(report)
}

const fn words(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NON_EMPTY_GROUP => "Share group",
        _ => "Group",
    }
}

fn deleted(outcomes: &[(String, Result<(), Error>)]) -> String {
    let done: Vec<String> = outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_ok())
        .map(|(group, _)| format!("'{group}'"))
        .collect();
    let done = done.join(", ");
    let mut text = String::new();
    for (group, outcome) in outcomes {
        let Err(error) = outcome else { continue };
        if text.is_empty() {
            text.push_str("\nError: Deletion of some share groups failed:\n");
        }
        let (code, words) = (error.code().name(), said(error));
        add(
            &mut text,
            format_args!("* Group '{group}' could not be deleted due to: {code}: {words}\n"),
        );
    }
    match (text.is_empty(), done.is_empty()) {
        (true, false) => format!("Deletion of requested share groups ({done}) was successful.\n"),
        (false, false) => {
            text + &format!("\nThese share groups were deleted successfully: {done}\n")
        }
        _ => text,
    }
}

/// `--delete-offsets`.
pub(super) async fn offsets(
    cluster: &mut Cluster,
    group: &str,
    topics: &[String],
) -> Result<Report, Error> {
    let mut report = Report::default();
    let outcomes = match cluster.delete_share_group_offsets(group, topics).await {
        Ok(outcomes) => outcomes,
        // A refusal of the whole is one of each topic.
        Err(error) if error.code() != ErrorCode::NONE => {
            report.text = format!("\nError: {}\n", said(&error));
            let each = topics
                .iter()
                .map(|topic| (topic.clone(), Err(error.clone())));
            each.collect::<BTreeMap<_, _>>()
        }
        Err(error) => return Err(error),
    };
    report.failed = outcomes.values().any(Result::is_err);
    let row = |(topic, outcome): (&String, &Result<(), Error>)| {
        let status = match outcome {
            Ok(()) => "Successful".to_owned(),
            Err(error) => format!("Error: {}", said(error)),
        };
        vec![topic.clone(), status]
    };
    let rows: Vec<_> = outcomes.iter().map(row).collect();
    let columns = [("TOPIC", NAME), ("STATUS", NAME)];
    add(
        &mut report.text,
        format_args!("\n{}", table(&columns, &rows)),
    );
    let entry = |(topic, outcome): (&String, &Result<(), Error>)| match outcome {
        Ok(()) => json!({ "topic": topic, "deleted": true }),
        Err(error) => json!({ "topic": topic, "deleted": false, "error": error_json(error) }),
    };
    let entries: Vec<_> = outcomes.iter().map(entry).collect();
    report.json = json!({ "group": group, "topics": entries });
    Ok(report)
}
