//! The files of `--export` and `--from-file`: `topic,partition,offset` on each line, or
//! `group,topic,partition,offset`.

use std::collections::BTreeMap;

use crate::client::SettingsError;
use crate::files;

/// Reads the offsets that a file names for a group.
pub(super) fn read(path: &str, group: &str) -> Result<BTreeMap<(String, i32), i64>, SettingsError> {
    let text = files::read(path).map_err(|problem| file(path, &problem))?;
    parse(&text, group).map_err(|problem| file(path, &problem))
}

fn file(path: &str, problem: &str) -> SettingsError {
    SettingsError(format!("--from-file {path}: {problem}"))
}

fn parse(text: &str, group: &str) -> Result<BTreeMap<(String, i32), i64>, String> {
    let mut found = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        let cells: Vec<&str> = line.split(',').map(cell).collect();
        let (owner, cells) = match cells[..] {
            [owner, topic, partition, offset] => (owner, [topic, partition, offset]),
            [topic, partition, offset] => (group, [topic, partition, offset]),
            _ => return Err(wrong("write topic,partition,offset")),
        };
        if owner != group {
            let text = format!("it is about group '{owner}', and --group is '{group}'");
            return Err(wrong(&text));
        }
        let [topic, partition, offset] = cells;
        let number = partition.parse::<i32>().ok().filter(|n| *n >= 0);
        let (Some(partition), Ok(offset)) = (number, offset.parse::<i64>()) else {
            return Err(wrong(
                "partition and offset are numbers: topic,partition,offset",
            ));
        };
        if topic.is_empty() {
            return Err(wrong("write topic,partition,offset"));
        }
        if found
            .insert((topic.to_owned(), partition), offset)
            .is_some()
        {
            return Err(wrong(&format!("{topic}-{partition} stands there twice")));
        }
    }
    if found.is_empty() {
        return Err("there are no offsets in it; write topic,partition,offset".to_owned());
    }
    Ok(found)
}

/// A cell, without the quotes that a spreadsheet may write.
fn cell(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// Writes offsets, with the empty line at the end that Kafka's tool prints.
pub(super) fn write<'a>(offsets: impl Iterator<Item = (&'a str, i32, i64)>) -> String {
    let line = |(topic, partition, offset)| format!("{topic},{partition},{offset}\n");
    let mut text: String = offsets.map(line).collect();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_was_exported_is_read_again() {
        let offsets = [("orders", 0, 1), ("orders", 1, 2), ("pay", 0, 3)];
        let text = write(offsets.into_iter());
        assert_eq!(text, "orders,0,1\norders,1,2\npay,0,3\n\n");
        let read = parse(&text, "g").unwrap();
        let expected = offsets.map(|(topic, at, offset)| ((topic.to_owned(), at), offset));
        assert_eq!(read, BTreeMap::from(expected));
    }

    #[test]
    fn groups_and_quotes_may_stand_in_it() {
        let read = parse("g,orders,0,1\n\"pay\", 0 , 2\n", "g").unwrap();
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, says) in [
            ("", "there are no offsets in it"),
            ("orders,zero,1", "line 1: partition and offset are numbers"),
            ("a,0,1\norders;0;1", "line 2: write topic,partition,offset"),
            ("a,-1,1", "line 1: partition"),
            ("a,0,1\na,0,2", "line 2: a-0 stands there twice"),
            ("h,a,0,1", "line 1: it is about group 'h'"),
            (",0,1", "line 1: write"),
        ] {
            let refused = parse(text, "g").unwrap_err();
            assert!(refused.starts_with(says), "{text}: {refused}");
        }
    }
}
