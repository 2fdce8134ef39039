//! The topics that a group subscribes to, and their hash.

use std::collections::BTreeMap;

use crate::types::{TopicImage, Uuid};

/// Subscribed topics that exist, by name: id and partition count.
pub(super) type Topics<'a> = BTreeMap<&'a str, (Uuid, i32)>;

pub(super) fn existing<'a>(
    names: impl Iterator<Item = &'a str>,
    image: &dyn TopicImage,
) -> Topics<'a> {
    names
        .filter_map(|name| Some((name, image.by_name(name)?)))
        .collect()
}

/// Changes whenever one of the topics comes, goes, is created anew or grows. 0 for no topics.
pub(super) fn metadata_hash(topics: &Topics<'_>) -> i64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    if topics.is_empty() {
        return 0;
    }
    let mut hash = OFFSET;
    let mut feed = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    };
    for (name, (topic_id, count)) in topics {
        feed(&(name.len() as u64).to_be_bytes());
        feed(name.as_bytes());
        feed(&topic_id.0);
        feed(&count.to_be_bytes());
    }
    hash.cast_signed()
}
