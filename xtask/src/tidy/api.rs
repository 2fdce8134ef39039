//! The files of `broker/src/api`: each opens with the API's name, key and versions, and the table agrees.

use super::source::Source;
use super::{Finding, Tree};

const DIR: &str = "broker/src/api/";

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let files: Vec<&Source> = tree
        .sources
        .iter()
        .filter(|s| s.path.starts_with(DIR) && !s.path.ends_with("/mod.rs"))
        .collect();
    for file in &files {
        let first = file.text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") {
            findings.push(Finding::new(&file.path, 1, "no `//!` comment at the head"));
        } else if file.code.contains("fn handle(") && head(first).is_none() {
            findings.push(Finding::new(
                &file.path,
                1,
                "the head does not read `//! Name (key N), versions A-B.`",
            ));
        }
    }
    let Some(table) = tree
        .sources
        .iter()
        .find(|s| s.path == format!("{DIR}mod.rs"))
    else {
        return;
    };
    let rows = rows(table);
    for row in &rows {
        let Some(file) = files
            .iter()
            .find(|f| f.path == format!("{DIR}{}.rs", row.module))
        else {
            continue; // a module of its own folder
        };
        let first = file.text.lines().next().unwrap_or_default();
        if head(first) != Some((row.key, row.max)) {
            let text = format!(
                "the table has key {}, versions up to {}: {first}",
                row.key, row.max
            );
            findings.push(Finding::new(&file.path, 1, text));
        }
    }
    for file in files.iter().filter(|f| f.code.contains("fn handle(")) {
        let module = file.path[DIR.len()..].trim_end_matches(".rs");
        if !rows.is_empty() && !rows.iter().any(|r| r.module == module) {
            findings.push(Finding::new(
                &file.path,
                0,
                "handles an API that the table does not list",
            ));
        }
    }
}

/// Key and last version of `//! Name (key N), versions A-B...` or `version N`.
fn head(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("(key ")?;
    let (key, rest) = rest.split_once(')')?;
    let (_, rest) = rest.split_once(" version")?;
    let numbers = rest.trim_start_matches('s').trim_start();
    let range: String = numbers
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '-')
        .collect();
    Some((key.parse().ok()?, range.rsplit('-').next()?.parse().ok()?))
}

struct Row {
    key: u32,
    max: u32,
    module: String,
}

/// Lines of the table: `KEY, MIN..=MAX, module, Request;`.
fn rows(table: &Source) -> Vec<Row> {
    table
        .code
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line
                .trim()
                .strip_suffix(';')?
                .split(',')
                .map(str::trim)
                .collect();
            let [key, versions, module, _] = fields[..] else {
                return None;
            };
            let (_, max) = versions.split_once("..=")?;
            Some(Row {
                key: key.parse().ok()?,
                max: max.parse().ok()?,
                module: module.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "apis! {\n    1, 4..=18, fetch, FetchRequest;\n}\n";

    fn findings(file: &str) -> usize {
        let mut found = Vec::new();
        check(
            &Tree::of(&[
                ("broker/src/api/mod.rs", TABLE),
                ("broker/src/api/fetch.rs", file),
            ]),
            &mut found,
        );
        found.len()
    }

    #[test]
    fn the_head_and_the_table_agree() {
        assert_eq!(
            findings("//! Fetch (key 1), versions 4-18. KIP-74.\nasync fn handle() {}"),
            0
        );
        assert_eq!(
            findings("//! Fetch (key 1), versions 4-17.\nasync fn handle() {}"),
            1
        );
        assert_eq!(findings("//! Fetch.\nasync fn handle() {}"), 2);
    }

    #[test]
    fn a_handler_outside_the_table_and_a_helper_without_a_head_are_found() {
        let mut found = Vec::new();
        let tree = Tree::of(&[
            ("broker/src/api/mod.rs", TABLE),
            (
                "broker/src/api/fetch.rs",
                "//! Fetch (key 1), versions 4-18.\nasync fn handle() {}",
            ),
            (
                "broker/src/api/lost.rs",
                "//! Lost (key 7), version 0.\nasync fn handle() {}",
            ),
            (
                "broker/src/api/helper.rs",
                "//! What handlers share.\nfn help() {}",
            ),
            ("broker/src/api/bare.rs", "fn help() {}"),
        ]);
        check(&tree, &mut found);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn one_version_is_a_range_too() {
        assert_eq!(head("//! A (key 91), version 0. KIP-932."), Some((91, 0)));
        assert_eq!(
            head("//! B (key 0), versions 3-13, advertised from 0."),
            Some((0, 13))
        );
        assert_eq!(head("//! C, versions 1-2."), None);
    }
}
