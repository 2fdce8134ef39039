//! Kafka's checkpoint files: a version, a number of rows, the rows.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Write as _};
use std::io;
use std::path::Path;

use crate::file::{read_file, replace_file};

const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
const START_OFFSETS: &str = "log-start-offset-checkpoint";
const CLEANED_OFFSETS: &str = "cleaner-offset-checkpoint";

/// Collects the text of a checkpoint file.
#[derive(Debug)]
pub(crate) struct Checkpoint(String);

impl Checkpoint {
    /// A file of `rows` rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self(format!("0\n{rows}\n"))
    }

    pub(crate) fn row(&mut self, row: Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.0, "{row}");
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

/// The rows of a checkpoint file; `None` if it is not a whole one of version 0.
pub(crate) fn parse_rows(bytes: &[u8]) -> Option<Vec<&str>> {
    let mut lines = std::str::from_utf8(bytes).ok()?.lines();
    if lines.next()?.trim() != "0" {
        return None;
    }
    let count: usize = lines.next()?.trim().parse().ok()?;
    let rows: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    (rows.len() == count).then_some(rows)
}

/// Offsets by directory name (`topic-partition`).
pub(crate) type Offsets = BTreeMap<String, i64>;

/// Reads `topic partition offset` rows. A damaged file counts as empty: each of these offsets only
/// saves work.
pub(crate) fn load_offsets(path: &Path) -> io::Result<Offsets> {
    let Some(bytes) = read_file(path)? else {
        return Ok(Offsets::new());
    };
    let parsed = parse_rows(&bytes).and_then(|rows| rows.into_iter().map(parse_row).collect());
    Ok(parsed.unwrap_or_else(|| {
        tracing::warn!(path = %path.display(), "ignoring a damaged checkpoint file");
        Offsets::new()
    }))
}

fn parse_row(row: &str) -> Option<(String, i64)> {
    let mut fields = row.split_whitespace();
    let (topic, partition, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let partition: u32 = partition.parse().ok()?;
    Some((format!("{topic}-{partition}"), offset.parse().ok()?))
}

/// Writes `topic partition offset` rows.
pub(crate) fn store_offsets(path: &Path, offsets: &Offsets) -> io::Result<()> {
    let mut checkpoint = Checkpoint::new(offsets.len());
    for (name, offset) in offsets {
        if let Some((topic, partition)) = name.rsplit_once('-') {
            checkpoint.row(format_args!("{topic} {partition} {offset}"));
        }
    }
    replace_file(path, &checkpoint.into_bytes(), true)
}

/// The offsets that a data directory keeps of each of its logs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoints {
    pub(crate) recovery_points: Offsets,
    pub(crate) high_watermarks: Offsets,
    pub(crate) starts: Offsets,
    /// Below these the logs are compacted.
    pub(crate) cleaned: Offsets,
}

impl Checkpoints {
    pub(crate) fn load(dir: &Path) -> io::Result<Self> {
        Ok(Self {
            recovery_points: load_offsets(&dir.join(RECOVERY_POINTS))?,
            high_watermarks: Offsets::new(),
            starts: load_offsets(&dir.join(START_OFFSETS))?,
            cleaned: load_offsets(&dir.join(CLEANED_OFFSETS))?,
        })
    }

    /// Writes the files that differ from what was `written` last.
    pub(crate) fn store(&self, dir: &Path, written: &Self) -> io::Result<()> {
        for (name, now, before) in [
            (
                RECOVERY_POINTS,
                &self.recovery_points,
                &written.recovery_points,
            ),
            (
                HIGH_WATERMARKS,
                &self.high_watermarks,
                &written.high_watermarks,
            ),
            (START_OFFSETS, &self.starts, &written.starts),
            (CLEANED_OFFSETS, &self.cleaned, &written.cleaned),
        ] {
            let path = dir.join(name);
            if now != before || !path.exists() {
                store_offsets(&path, now)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn offsets_read_back_and_damage_counts_as_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recovery-point-offset-checkpoint");
        assert!(load_offsets(&path).unwrap().is_empty());
        let offsets = Offsets::from([("a-b-0".into(), 5), ("c-12".into(), 0)]);
        store_offsets(&path, &offsets).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "0\n2\na-b 0 5\nc 12 0\n"
        );
        assert_eq!(load_offsets(&path).unwrap(), offsets);
        std::fs::write(&path, "0\n3\na-b 0 5\nc 12 0\n").unwrap();
        assert!(load_offsets(&path).unwrap().is_empty());
    }
}
