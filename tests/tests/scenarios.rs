//! docs/scenarios.md names tests: each of them exists.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

/// Names of functions below `dir`.
fn functions(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1);
            let names = names.filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_that_the_scenarios_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut known = BTreeSet::new();
    for dir in ["tests/tests", "coordinator/tests", "protocol/src"] {
        functions(&root.join(dir), &mut known);
    }
    let text = std::fs::read_to_string(root.join("docs/scenarios.md")).unwrap();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    // Names of behaviours are sentences; names of files and settings are shorter.
    let names: BTreeSet<&str> = words
        .filter(|word| word.matches('_').count() >= 3)
        .collect();
    assert!(names.len() > 60, "{} names", names.len());
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !known.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
