//! Aborted transactions of a segment: what a `read_committed` consumer must leave out.

use std::path::Path;

use crate::file::{read_file, remove_file, write_file};

const VERSION: i16 = 0;
const ENTRY: usize = 34;

/// An aborted transaction as a fetch reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    /// Who wrote it.
    pub producer_id: i64,
    /// Its first offset.
    pub first_offset: i64,
}

/// An entry of a `.txnindex` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// Offset of the abort marker.
    pub(crate) last_offset: i64,
    /// The last stable offset once this transaction was decided.
    pub(crate) last_stable_offset: i64,
}

impl Aborted {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&VERSION.to_be_bytes());
        for field in [
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        ] {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }

    fn read(bytes: &[u8; ENTRY]) -> Self {
        let field = |at: usize| {
            let mut value = [0; 8];
            value.copy_from_slice(&bytes[2 + 8 * at..10 + 8 * at]);
            i64::from_be_bytes(value)
        };
        Self {
            producer_id: field(0),
            first_offset: field(1),
            last_offset: field(2),
            last_stable_offset: field(3),
        }
    }
}

/// Reads a `.txnindex`; no file is no aborted transaction. `None` if the content makes no sense.
pub(crate) fn load(path: &Path) -> std::io::Result<Option<Vec<Aborted>>> {
    let Some(bytes) = read_file(path)? else {
        return Ok(Some(Vec::new()));
    };
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    let sound = rest.is_empty() && entries.iter().all(|e| e[..2] == VERSION.to_be_bytes());
    Ok(sound.then(|| entries.iter().map(Aborted::read).collect()))
}

/// Writes a `.txnindex`, or removes it if there is nothing to say.
pub(crate) fn store(path: &Path, entries: &[Aborted]) -> std::io::Result<()> {
    if entries.is_empty() {
        return remove_file(path);
    }
    write_file(path, &encode(entries))
}

/// The content of a `.txnindex`.
pub(crate) fn encode(entries: &[Aborted]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * ENTRY);
    for entry in entries {
        entry.write(&mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn entries_read_back_and_nonsense_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.txnindex");
        assert_eq!(load(&path).unwrap().unwrap(), []);
        let entry = Aborted {
            producer_id: 1,
            first_offset: 2,
            last_offset: 3,
            last_stable_offset: 4,
        };
        store(&path, &[entry, entry]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 68);
        assert_eq!(load(&path).unwrap().unwrap(), [entry, entry]);
        std::fs::write(&path, [0; 35]).unwrap();
        assert_eq!(load(&path).unwrap(), None);
        store(&path, &[]).unwrap();
        assert!(!path.exists());
    }
}
