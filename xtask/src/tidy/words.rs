//! Links of the documentation, and words that belong to no repository.

use super::{Finding, Tree};

/// Parts of a text that point at how or where the work was done. Assembled, so that this file does not hold them.
fn unwanted() -> Vec<(String, &'static str)> {
    let join = |parts: &[&str]| parts.concat();
    let machine = "a path of one machine";
    let host = "a registry's host";
    let work = "a word about how the work is organised";
    vec![
        (join(&["/wo", "rk/"]), machine),
        (join(&["/ro", "ot/"]), machine),
        (join(&["/tmp/", "bash_"]), machine),
        (join(&["/ho", "me/"]), machine),
        (join(&["../", "shared"]), machine),
        (join(&["repo.", "maven"]), host),
        (join(&["repo1.", "maven"]), host),
        (join(&["pypi.", "org"]), host),
        (join(&["files.python", "hosted"]), host),
        (join(&["static.crates", ".io"]), host),
        (join(&["index.crates", ".io"]), host),
        (join(&["registry.npm", "js"]), host),
        (join(&["sub", "agent"]), work),
        (join(&["coding ", "agent"]), work),
        (join(&["AI ", "assistant"]), work),
        (join(&["this ", "session"]), work),
        (join(&["previous ", "session"]), work),
    ]
}

/// The lockfile names the registry by its nature.
const EXEMPT: &[&str] = &["Cargo.lock", "xtask/src/tidy/words.rs"];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let unwanted = unwanted();
    for (path, text) in &tree.texts {
        if EXEMPT.contains(&path.as_str()) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            for (part, why) in &unwanted {
                if line.contains(part.as_str()) {
                    findings.push(Finding::new(
                        path,
                        at + 1,
                        format!("{why}: {}", line.trim()),
                    ));
                }
            }
            if names_an_issue(line) {
                findings.push(Finding::new(
                    path,
                    at + 1,
                    format!("the number of an issue: {}", line.trim()),
                ));
            }
        }
        if path.rsplit('.').next() == Some("md") {
            links(tree, path, text, findings);
        }
    }
}

/// `issue 3`, `issues #3`: numbers that mean nothing to a reader of the repository.
fn names_an_issue(line: &str) -> bool {
    let lower = line.to_lowercase();
    lower.match_indices("issue").any(|(at, word)| {
        let rest = lower[at + word.len()..].trim_start_matches('s');
        let number = rest.trim_start().trim_start_matches('#');
        rest.starts_with([' ', '#']) && number.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Links to files must lead somewhere; links to the outside are not followed.
fn links(tree: &Tree, path: &str, text: &str, findings: &mut Vec<Finding>) {
    let folder = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let wanted = resolve(folder, file);
            let inside = format!("{wanted}/");
            if !tree
                .paths
                .iter()
                .any(|p| *p == wanted || p.starts_with(&inside))
            {
                findings.push(Finding::new(
                    path,
                    at + 1,
                    format!("a link to {file}, which is not there"),
                ));
            }
        }
    }
}

/// What stands in the parentheses of `[text](target)`.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        if let Some(end) = rest.find(')') {
            found.push(rest[..end].split_whitespace().next().unwrap_or_default());
        }
    }
    found
}

fn resolve(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> usize {
        let mut found = Vec::new();
        check(&Tree::of(files), &mut found);
        found.len()
    }

    #[test]
    fn links_lead_to_tracked_files_and_folders() {
        let files = [
            (
                "docs/a.md",
                "[x](../README.md) [y](b.md#part) [z](adr) [w](https://x.y/z)",
            ),
            ("README.md", ""),
        ];
        assert_eq!(findings(&files), 2, "b.md and adr are missing");
        let all = [files[0], files[1], ("docs/b.md", ""), ("docs/adr/1.md", "")];
        assert_eq!(findings(&all), 0);
    }

    #[test]
    fn code_blocks_hold_no_links() {
        assert_eq!(findings(&[("a.md", "```\n[x](nowhere)\n```\n")]), 0);
    }

    #[test]
    fn machine_paths_hosts_and_issue_numbers_are_found() {
        for (part, _) in unwanted() {
            assert_eq!(findings(&[("a.txt", &format!("see {part}x"))]), 1, "{part}");
        }
        let numbered = ["iss", "ue 12"].concat();
        assert_eq!(findings(&[("a.txt", &format!("done in {numbered}"))]), 1);
        assert_eq!(
            findings(&[(
                "a.txt",
                "issues a share session; KAFKA-18659; open an issue"
            )]),
            0
        );
    }
}
