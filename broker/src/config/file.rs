//! `server.properties`: the one reader of files outside storage, and the Java properties syntax.

use std::collections::BTreeMap;
use std::path::Path;

use super::ConfigError;
use super::statics::{Origin, is_known};

/// The settings of a file, in its order, and what looks wrong and is not.
#[derive(Debug, Default)]
pub struct FileSettings {
    /// Key, value, origin.
    pub settings: Vec<(String, String, Origin)>,
    /// A line for each key that is set twice.
    pub warnings: Vec<String>,
}

/// Reads and parses a properties file.
pub fn read(path: &Path) -> Result<FileSettings, ConfigError> {
    let shown = path.display().to_string();
    let text = text(path).map_err(|error| {
        ConfigError::invalid(format!(
            "cannot read {shown}: {error}; check the path after --config"
        ))
    })?;
    parse(&shown, &text)
}

/// The text of a file.
pub(super) fn text(path: &Path) -> std::io::Result<String> {
    std::fs::read(path).map(text_of)
}

/// UTF-8 where it is that, else the ISO-8859-1 that Java takes properties files for.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect())
}

/// Parses the Java properties syntax. Of a key that is set twice the later value holds.
///
/// A line that is no setting is an error, although Java would take its first word for a key; with a `=`
/// further on it is a setting that nobody knows.
pub fn parse(path: &str, text: &str) -> Result<FileSettings, ConfigError> {
    let mut found = FileSettings::default();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (line, logical) in logical_lines(text) {
        let broken =
            |problem: String| ConfigError::invalid(format!("{path} line {line}: {problem}"));
        let (key, value, separated) = split(&logical);
        let key = unescape(key).map_err(broken)?;
        let value = unescape(value).map_err(broken)?;
        if key.is_empty() || (!separated && !is_known(&key) && !value.contains('=')) {
            let shown: String = logical.chars().take(60).collect();
            return Err(broken(format!("{shown:?} is no setting: write KEY=VALUE")));
        }
        if let Some(earlier) = seen.insert(key.clone(), line) {
            found.warnings.push(format!(
                "{path} line {line}: {key} was set in line {earlier} too; line {line} holds"
            ));
        }
        found.settings.push((
            key,
            value,
            Origin::File {
                path: path.to_owned(),
                line,
            },
        ));
    }
    Ok(found)
}

const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

/// The lines that are neither empty nor comments, continued ones joined; with the number of their first.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut logical = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, natural) in text.split('\n').enumerate() {
        let content = natural.trim_start_matches(BLANK);
        if open.is_none() && (content.is_empty() || content.starts_with(['#', '!'])) {
            continue;
        }
        let backslashes = content.len() - content.trim_end_matches('\\').len();
        let continued = backslashes % 2 == 1;
        let kept = if continued {
            &content[..content.len() - 1]
        } else {
            content
        };
        let (line, mut joined) = open.take().unwrap_or((index + 1, String::new()));
        joined.push_str(kept);
        if continued {
            open = Some((line, joined));
        } else {
            logical.push((line, joined));
        }
    }
    logical.extend(open);
    logical
}

/// The raw key, the raw value, and whether a `=` or `:` stands between them.
fn split(line: &str) -> (&str, &str, bool) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (c == '=' || c == ':' || BLANK.contains(&c));
        escaped = !escaped && c == '\\';
        ends
    });
    let Some(end) = end else {
        return (line, "", false);
    };
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANK);
    match rest.strip_prefix(['=', ':']) {
        Some(value) => (key, value.trim_start_matches(BLANK), true),
        None => (key, rest, false),
    }
}

fn unescape(raw: &str) -> Result<String, String> {
    let mut units: Vec<u16> = Vec::with_capacity(raw.len());
    let mut chars = raw.chars();
    let push = |c: char, units: &mut Vec<u16>| {
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    };
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(c, &mut units);
            continue;
        }
        match chars.next() {
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let unit = u16::from_str_radix(&digits, 16)
                    .ok()
                    .filter(|_| digits.len() == 4);
                units.push(unit.ok_or_else(|| format!("\\u{digits} is no \\uXXXX escape"))?);
            }
            Some('t') => push('\t', &mut units),
            Some('n') => push('\n', &mut units),
            Some('r') => push('\r', &mut units),
            Some('f') => push('\u{c}', &mut units),
            Some(other) => push(other, &mut units),
            None => {}
        }
    }
    String::from_utf16(&units).map_err(|_| "a \\uXXXX escape is half of a character".to_owned())
}

/// Writes a small file whole: the ready file.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
