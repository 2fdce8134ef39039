//! The plain values that every machine of this crate speaks in.

use std::fmt;

/// Milliseconds since the Unix epoch. Always an argument: no machine reads a clock.
pub type Ts = i64;

/// A topic id (or any other Kafka uuid): 16 bytes in network order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The all-zero id, Kafka's "no topic id".
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is [`Uuid::ZERO`].
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Kafka's text form: URL-safe base64 without padding, 22 characters.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(22);
        for chunk in self.0.chunks(3) {
            let word = (u32::from(chunk[0]) << 16)
                | (u32::from(chunk.get(1).copied().unwrap_or(0)) << 8)
                | u32::from(chunk.get(2).copied().unwrap_or(0));
            for position in 0..=chunk.len() {
                let index = (word >> (18 - 6 * position)) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            }
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One partition of one topic, by topic id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's index, from 0.
    pub partition: i32,
}

/// Some partitions of one topic, ascending, each once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicPartitions {
    /// The topic's id.
    pub topic_id: Uuid,
    /// Partition indexes, ascending.
    pub partitions: Vec<i32>,
}

/// What a coordinator needs to know of the cluster's topics.
///
/// The answers must not change between the calls of one plan.
pub trait TopicImage {
    /// The id and partition count of the topic called `name`.
    fn by_name(&self, name: &str) -> Option<(Uuid, i32)>;
    /// The name and partition count of the topic with `id`.
    fn by_id(&self, id: &Uuid) -> Option<(String, i32)>;
}

#[cfg(test)]
mod tests {
    use super::Uuid;

    #[test]
    fn a_uuid_prints_as_kafka_prints_it() {
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(Uuid([0xff; 16]).to_string(), "_____________________w");
        let id = Uuid([
            0x55, 0x0e, 0x84, 0x00, 0xe2, 0x9b, 0x41, 0xd4, 0xa7, 0x16, 0x44, 0x66, 0x55, 0x44,
            0x00, 0x00,
        ]);
        assert_eq!(format!("{id:?}"), "VQ6EAOKbQdSnFkRmVUQAAA");
    }
}
