//! Arguments of a command: words, `--switch`, `--option VALUE`.

use anyhow::{Result, bail};
use std::collections::BTreeMap;

/// Options that take a value; every other `--word` is a switch.
const WITH_VALUE: &[&str] = &["filter", "jobs", "broker", "rounds", "records", "hours"];

#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) words: Vec<String>,
    options: BTreeMap<String, String>,
}

impl Args {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut args = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                args.words.push(word);
                continue;
            };
            let value = if WITH_VALUE.contains(&name) {
                match words.next() {
                    Some(value) => value,
                    None => bail!("--{name} needs a value"),
                }
            } else {
                String::new()
            };
            if args.options.insert(name.to_owned(), value).is_some() {
                bail!("--{name} is given twice");
            }
        }
        Ok(args)
    }

    /// Fails on an option that the command does not know.
    pub(crate) fn allow(&self, known: &[&str]) -> Result<()> {
        match self.options.keys().find(|k| !known.contains(&k.as_str())) {
            Some(name) => bail!("unknown option --{name}"),
            None => Ok(()),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64> {
        match self.value(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(n) if n > 0 => Ok(n),
                _ => bail!("--{name} {text}: not a positive number"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn parse(line: &str) -> Result<Args> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_switches_and_values_are_told_apart() {
        let args = parse("share --full --jobs 2 admin").unwrap();
        assert_eq!(args.words, ["share", "admin"]);
        assert!(args.has("full"));
        assert_eq!(args.number("jobs", 1).unwrap(), 2);
        assert_eq!(args.number("rounds", 3).unwrap(), 3);
    }

    #[test]
    fn a_missing_value_a_repeat_and_an_unknown_option_are_refused() {
        assert!(parse("--jobs").is_err());
        assert!(parse("--full --full").is_err());
        assert!(parse("--jobs 0").unwrap().number("jobs", 1).is_err());
        assert!(parse("--flul").unwrap().allow(&["full"]).is_err());
    }
}
