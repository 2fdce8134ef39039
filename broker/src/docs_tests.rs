//! The parts of the documentation that are made from the code say what the code says.
//!
//! A part stands between `<!-- NAME -->` and `<!-- /NAME -->`; `UPDATE_DOCS=1 cargo test -p ottla docs_tests`
//! writes all of them anew.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;

use crate::api::TABLE;
use crate::config::docs;

fn check(page: &str, part: &str, made: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (open, close) = (format!("<!-- {part} -->\n"), format!("<!-- /{part} -->"));
    let start = text.find(&open).unwrap() + open.len();
    let end = start + text[start..].find(&close).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let next = format!("{}{made}{}", &text[..start], &text[end..]);
        std::fs::write(&path, next).unwrap();
    } else {
        assert!(
            text[start..end] == *made,
            "{part} in {page} is old: UPDATE_DOCS=1 cargo test -p ottla docs_tests"
        );
    }
}

#[test]
fn the_readme_lists_the_table_of_apis() {
    let mut made = "\n| key | API | versions |\n|---|---|---|\n".to_owned();
    for api in TABLE {
        let name = ottla_protocol::api_key::name(api.key).unwrap();
        let versions = if api.min == api.max {
            api.min.to_string()
        } else {
            format!("{} to {}", api.min, api.max)
        };
        writeln!(made, "| {} | {name} | {versions} |", api.key).unwrap();
    }
    made.push('\n');
    check("README.md", "apis", &made);
}

#[test]
fn the_list_of_differences_has_the_desk_profile() {
    let made = format!("\n{}\n", docs::desk_profile());
    check("docs/differences.md", "desk-profile", &made);
}
