//! The table of docs/clients.md, from what the client script left of its run.

use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::{dirs, process, report};

const SECTION: &str = "matrix";

fn document() -> PathBuf {
    dirs::root().join("docs/clients.md")
}

/// The table of the last run; its lines are `client TAB version TAB capability TAB outcome`.
fn last_run() -> Result<String> {
    let file = dirs::target().join("clients/matrix.tsv");
    let lines = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    render(&lines)
}

/// Writes the last run into docs/clients.md.
pub(crate) fn write() -> Result<()> {
    let body = format!(
        "{}, `cargo xtask clients`:\n\n{}",
        process::today()?,
        last_run()?
    );
    report::write_section(&document(), "Clients", SECTION, &body)
}

/// Fails where docs/clients.md shows another table than the last run.
pub(crate) fn check() -> Result<()> {
    let file = document();
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    if !text.contains(last_run()?.trim_end()) {
        bail!("docs/clients.md shows another table than this run: `cargo xtask clients` writes it");
    }
    Ok(())
}

struct Row<'a> {
    client: &'a str,
    version: &'a str,
    /// Capability and outcome.
    outcomes: Vec<(&'a str, &'a str)>,
}

/// One row a client, one column a capability, both in the order of their first line.
fn render(lines: &str) -> Result<String> {
    let mut capabilities: Vec<&str> = Vec::new();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [client, version, capability, outcome] = fields[..] else {
            bail!("not a line of the matrix: {line}");
        };
        if !capabilities.contains(&capability) {
            capabilities.push(capability);
        }
        match rows.iter_mut().find(|row| row.client == client) {
            Some(row) => row.outcomes.push((capability, outcome)),
            None => rows.push(Row {
                client,
                version,
                outcomes: vec![(capability, outcome)],
            }),
        }
    }
    let mut table = String::from("| client | version |");
    for capability in &capabilities {
        // The codec of that name.
        let title = if *capability == "none" {
            "uncompressed"
        } else {
            capability
        };
        write!(table, " {title} |")?;
    }
    table.push_str("\n|");
    table.push_str(&" --- |".repeat(capabilities.len() + 2));
    table.push('\n');
    for row in rows {
        write!(table, "| {} | {} |", row.client, row.version)?;
        for capability in &capabilities {
            let outcome = row.outcomes.iter().find(|(name, _)| name == capability);
            write!(table, " {} |", word(outcome.map(|(_, word)| *word)))?;
        }
        table.push('\n');
    }
    Ok(table)
}

fn word(outcome: Option<&str>) -> &'static str {
    match outcome {
        Some("ok") => "yes",
        Some("none") => "–",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_row_a_client_and_a_column_a_capability() {
        let lines = "a\t1\tnone\tok\na\t1\tseek\tnone\nb\t2\tnone\tFAIL\n";
        let want = "| client | version | uncompressed | seek |\n| --- | --- | --- | --- |\n\
                    | a | 1 | yes | – |\n| b | 2 | failed | failed |\n";
        assert_eq!(render(lines).unwrap(), want);
        assert!(render("a\t1\n").is_err());
    }
}
