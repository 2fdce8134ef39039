//! `xtask/tidy.allow`: what the size rules let through.

use anyhow::{Result, bail};

use super::Finding;

const FILE: &str = "xtask/tidy.allow";

/// What an entry lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file that is one table of data and may be of any length.
    Table,
    /// `path::name`, a function that may be long.
    Function,
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    subject: String,
    line: usize,
    used: bool,
}

#[derive(Debug)]
pub(super) struct Allow(Vec<Entry>);

impl Allow {
    /// Lines of `table PATH  # reason` or `function PATH::NAME  # reason`; empty lines and `#` lines are comments.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((rule, reason)) = line.split_once('#') else {
                bail!("{FILE}:{}: no reason", at + 1)
            };
            let (kind, subject) = match rule.split_whitespace().collect::<Vec<_>>()[..] {
                ["table", path] => (Kind::Table, path.to_owned()),
                ["function", path] if path.contains("::") => (Kind::Function, path.to_owned()),
                _ => bail!(
                    "{FILE}:{}: neither `table PATH` nor `function PATH::NAME`",
                    at + 1
                ),
            };
            if reason.trim().is_empty() {
                bail!("{FILE}:{}: no reason", at + 1);
            }
            entries.push(Entry {
                kind,
                subject,
                line: at + 1,
                used: false,
            });
        }
        Ok(Self(entries))
    }

    pub(super) fn lets(&mut self, kind: Kind, subject: &str) -> bool {
        match self
            .0
            .iter_mut()
            .find(|e| e.kind == kind && e.subject == subject)
        {
            Some(entry) => {
                entry.used = true;
                true
            }
            None => false,
        }
    }

    pub(super) fn unused(&self) -> impl Iterator<Item = Finding> {
        self.0
            .iter()
            .filter(|e| !e.used)
            .map(|e| Finding::new(FILE, e.line, format!("{} needs no exception", e.subject)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_entry_is_used_once_it_lets_something_through() {
        let mut allow =
            Allow::parse("# head\n\ntable a.rs # rows\nfunction b.rs::f # one match\n").unwrap();
        assert!(allow.lets(Kind::Table, "a.rs"));
        assert!(!allow.lets(Kind::Function, "a.rs"));
        let left: Vec<Finding> = allow.unused().collect();
        assert_eq!(left, [Finding::new(FILE, 4, "b.rs::f needs no exception")]);
    }

    #[test]
    fn an_entry_without_a_reason_or_a_kind_is_refused() {
        for line in [
            "table a.rs",
            "table a.rs #",
            "function b.rs # x",
            "file c.rs # x",
        ] {
            assert!(Allow::parse(line).is_err(), "{line}");
        }
    }
}
