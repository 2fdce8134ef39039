//! Rules of the source tree that a compiler does not hold: arrows between crates, sizes, `unsafe`, banned calls,
//! comments of API files, links and words.
//!
//! What is let through stands in `xtask/tidy.allow`, each line with its reason; a line that lets nothing through is
//! itself a finding.

mod allow;
mod api;
mod calls;
mod crates;
mod sizes;
mod source;
mod words;

use anyhow::{Context, Result, bail};
use std::path::Path;

use crate::args::Args;
use crate::{dirs, process};
use allow::Allow;
use source::Source;

/// One broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1; 0 = the file as a whole.
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

/// The tracked files of the repository, with their texts.
struct Tree {
    sources: Vec<Source>,
    /// Everything that is text, Rust included: path and content.
    texts: Vec<(String, String)>,
    /// Every tracked path.
    paths: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&[])?;
    let tree = load(&dirs::root())?;
    let mut allow = Allow::parse(&std::fs::read_to_string(
        dirs::root().join("xtask/tidy.allow"),
    )?)?;
    let mut findings = Vec::new();
    crates::check(&tree, &mut findings);
    calls::check(&tree, &mut findings);
    api::check(&tree, &mut findings);
    words::check(&tree, &mut findings);
    let long = sizes::check(&tree, &mut allow, &mut findings);
    findings.extend(allow.unused());
    for note in long {
        println!("note: {note}");
    }
    findings.sort();
    for f in &findings {
        println!("{}:{}: {}", f.path, f.line, f.text);
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    println!("tidy: {} files, no finding", tree.paths.len());
    Ok(())
}

fn load(root: &Path) -> Result<Tree> {
    let listed = process::output(process::command("git").args(["ls-files", "-z"]))?;
    let mut tree = Tree {
        sources: Vec::new(),
        texts: Vec::new(),
        paths: Vec::new(),
    };
    // A program of the client matrix is no crate of ours: it waits by the clock, as the other languages' do.
    let ours = |path: &&str| !path.is_empty() && !path.starts_with("tests/clients/rust/");
    for path in listed.split('\0').filter(ours) {
        let file = root.join(path);
        if !file.exists() {
            continue; // deleted and not yet committed
        }
        tree.paths.push(path.to_owned());
        let bytes = std::fs::read(&file).with_context(|| path.to_owned())?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        if is_rust(path) {
            tree.sources.push(Source::new(path, &text));
        }
        tree.texts.push((path.to_owned(), text));
    }
    Ok(tree)
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e == "rs")
}

#[cfg(test)]
impl Tree {
    /// A tree for tests.
    fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self {
            sources: Vec::new(),
            texts: Vec::new(),
            paths: Vec::new(),
        };
        for (path, text) in files {
            tree.paths.push((*path).to_owned());
            tree.texts.push(((*path).to_owned(), (*text).to_owned()));
            if is_rust(path) {
                tree.sources.push(Source::new(path, text));
            }
        }
        tree
    }
}
