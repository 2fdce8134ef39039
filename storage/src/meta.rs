//! The small text files of a data directory (`meta.properties`, `partition.metadata`) and names.

use std::io;
use std::path::Path;

use crate::error::OpenError;
use crate::file::{read_file, replace_file};
use crate::sys::random_id;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const ID_CHARS: usize = 22;

/// How far the character at `index` of an id is shifted: its six bits lie above bit 0, except for
/// the last, which carries two bits.
fn shift(index: usize) -> i32 {
    122 - 6 * index as i32
}

/// 16 bytes in Kafka's way: base64 for URLs without padding, 22 characters.
pub(crate) fn encode_id(id: [u8; 16]) -> String {
    let bits = u128::from_be_bytes(id);
    (0..ID_CHARS)
        .map(|index| match shift(index) {
            by @ 0.. => bits >> by,
            by => bits << -by,
        })
        .map(|six| char::from(ALPHABET[(six & 63) as usize]))
        .collect()
}

/// Reads what [`encode_id`] writes.
pub(crate) fn decode_id(text: &str) -> Option<[u8; 16]> {
    if text.len() != ID_CHARS {
        return None;
    }
    let mut bits = 0u128;
    for (index, byte) in text.bytes().enumerate() {
        let six = ALPHABET.iter().position(|&known| known == byte)? as u128;
        bits |= match shift(index) {
            by @ 0.. => six << by,
            by => six >> -by,
        };
    }
    Some(bits.to_be_bytes())
}

/// A random id that does not begin with a dash, which would look like an option of a tool.
fn new_id() -> io::Result<String> {
    loop {
        let mut id = random_id()?;
        // A random UUID of version 4.
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        let text = encode_id(id);
        if !text.starts_with('-') {
            return Ok(text);
        }
    }
}

/// Who a data directory belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_field_names,
    reason = "the names of meta.properties itself"
)]
pub(crate) struct MetaProperties {
    pub(crate) cluster_id: String,
    pub(crate) node_id: i32,
    pub(crate) directory_id: String,
}

impl MetaProperties {
    pub(crate) fn new(cluster_id: Option<&str>, node_id: i32) -> io::Result<Self> {
        Ok(Self {
            cluster_id: match cluster_id {
                Some(id) => id.to_owned(),
                None => new_id()?,
            },
            node_id,
            directory_id: new_id()?,
        })
    }

    /// Reads the file, or writes a new one.
    pub(crate) fn load_or_create(
        path: &Path,
        cluster_id: Option<&str>,
        node_id: i32,
    ) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(bytes) = read_file(path).map_err(io)? {
            return Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|reason| {
                OpenError::BadMeta {
                    path: path.to_owned(),
                    reason,
                }
            });
        }
        let made = Self::new(cluster_id, node_id).map_err(io)?;
        replace_file(path, made.text().as_bytes(), true).map_err(io)?;
        Ok(made)
    }

    fn text(&self) -> String {
        format!(
            "version=1\ncluster.id={}\nnode.id={}\ndirectory.id={}\n",
            self.cluster_id, self.node_id, self.directory_id
        )
    }

    fn parse(text: &str) -> Result<Self, String> {
        let get = |key: &str| {
            text.lines()
                .filter(|line| !line.trim_start().starts_with('#'))
                .filter_map(|line| line.split_once('='))
                .find(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim().replace('\\', ""))
        };
        let need = |key: &str| get(key).ok_or_else(|| format!("{key} is missing"));
        match need("version")?.as_str() {
            "1" => {}
            other => return Err(format!("version is {other}")),
        }
        Ok(Self {
            cluster_id: need("cluster.id")?,
            node_id: need("node.id")?
                .parse()
                .map_err(|_| "node.id is not a number".to_owned())?,
            directory_id: get("directory.id").unwrap_or_default(),
        })
    }
}

/// Writes `partition.metadata`.
pub(crate) fn store_topic_id(path: &Path, topic_id: [u8; 16]) -> io::Result<()> {
    let text = format!("version: 0\ntopic_id: {}", encode_id(topic_id));
    replace_file(path, text.as_bytes(), false)
}

/// Reads `partition.metadata`; zeros (no topic id) without a readable file.
pub(crate) fn load_topic_id(path: &Path) -> io::Result<[u8; 16]> {
    let bytes = read_file(path)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("topic_id:"))
        .and_then(|id| decode_id(id.trim()));
    Ok(id.unwrap_or_default())
}

/// `<topic>-<partition>`, if the topic's name may be part of a path.
pub(crate) fn log_name(topic: &str, partition: i32) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let legal = !topic.is_empty()
        && topic.len() <= 249
        && topic != "."
        && topic != ".."
        && topic.chars().all(fine);
    (legal && partition >= 0).then(|| format!("{topic}-{partition}"))
}

/// What the name of a directory in the data directory says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DirName {
    /// A log.
    Log,
    /// A deleted log.
    Deleted,
    /// Something else.
    Other,
}

pub(crate) fn classify(name: &str) -> DirName {
    if name.ends_with("-delete") {
        return DirName::Deleted;
    }
    let log = name.rsplit_once('-').is_some_and(|(topic, partition)| {
        partition
            .parse()
            .is_ok_and(|number| log_name(topic, number).as_deref() == Some(name))
    });
    if log { DirName::Log } else { DirName::Other }
}

/// The name that a deleted log's directory takes: unique, and no longer than a name may be.
pub(crate) fn deleted_name(name: &str) -> io::Result<String> {
    let hex = format!("{:032x}", u128::from_be_bytes(random_id()?));
    let suffix = format!(".{hex}-delete");
    let keep = name.len().min(255 - suffix.len());
    Ok(format!("{}{suffix}", &name[..keep]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn ids_are_written_as_kafka_writes_them() {
        assert_eq!(encode_id([0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(encode_id([0xff; 16]), "_____________________w");
        let id: [u8; 16] = std::array::from_fn(|i| (i * 17) as u8);
        assert_eq!(encode_id(id), "ABEiM0RVZneImaq7zN3u_w");
        assert_eq!(decode_id("ABEiM0RVZneImaq7zN3u_w"), Some(id));
        assert_eq!(decode_id("short"), None);
        assert_eq!(decode_id("!BEiM0RVZneImaq7zN3u_w"), None);
    }

    #[test]
    fn meta_properties_are_made_once_and_kafkas_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("meta.properties");
        let made = MetaProperties::load_or_create(&path, None, 3).unwrap();
        assert_eq!(made.cluster_id.len(), 22);
        let again = MetaProperties::load_or_create(&path, Some("other"), 4).unwrap();
        assert_eq!(again, made);
        std::fs::write(
            &path,
            "#\n#Sat\ncluster.id=abc\nversion=1\ndirectory.id=x\nnode.id=1\n",
        )
        .unwrap();
        let kafkas = MetaProperties::load_or_create(&path, None, 4).unwrap();
        assert_eq!((kafkas.cluster_id.as_str(), kafkas.node_id), ("abc", 1));
        std::fs::write(&path, "version=0\n").unwrap();
        let error = MetaProperties::load_or_create(&path, None, 4).unwrap_err();
        assert!(error.to_string().contains("version is 0"));
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        assert_eq!(log_name("a.b_c-d", 7).unwrap(), "a.b_c-d-7");
        for bad in ["", ".", "..", "a/b", "a b", "\0"] {
            assert_eq!(log_name(bad, 0), None);
        }
        assert_eq!(log_name("a", -1), None);
        assert_eq!(classify("a-b-0"), DirName::Log);
        assert_eq!(classify("a-00"), DirName::Other);
        assert_eq!(classify("a"), DirName::Other);
        let deleted = deleted_name(&format!("{}-0", "x".repeat(249))).unwrap();
        assert_eq!(deleted.len(), 255);
        assert_eq!(classify(&deleted), DirName::Deleted);
    }
}
