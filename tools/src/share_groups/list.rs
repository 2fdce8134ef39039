//! `--list`: the share groups, by name.

use serde_json::json;

use super::report::Report;
use super::table::{NAME, table};
use crate::client::{Cluster, Error};

pub(super) async fn run(cluster: &mut Cluster, states: Option<&[String]>) -> Result<Report, Error> {
    let found = cluster.share_groups(states.unwrap_or_default()).await?;
    let text = if states.is_some() {
        let row = |(group, state): (&String, &String)| vec![group.clone(), state.clone()];
        let rows: Vec<_> = found.iter().map(row).collect();
        table(&[("GROUP", NAME), ("STATE", NAME)], &rows)
    } else {
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        names.join("\n") + if names.is_empty() { "" } else { "\n" }
    };
    let entry = |(group, state): (&String, &String)| json!({ "group": group, "state": state });
    let groups: Vec<_> = found.iter().map(entry).collect();
    Ok(Report {
        text,
        json: json!({ "groups": groups }),
        ..Report::default()
    })
}
