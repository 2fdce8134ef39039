//! The keys of one pass and the last offset of each, in bounded memory.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A key is known by 128 bits of two hashes with secret random keys: nobody can make two keys meet,
/// and by chance two of a billion keys do so once in 10^20 times.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: [u64; 2],
    /// -1 for a free slot.
    offset: i64,
}

const FREE: Slot = Slot {
    hash: [0; 2],
    offset: -1,
};

/// Bytes of memory that a key takes.
pub(crate) const SLOT_BYTES: u64 = size_of::<Slot>() as u64;

/// See the module. Open addressing; the memory is taken once.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    hashers: [RandomState; 2],
    slots: Vec<Slot>,
    used: usize,
    max: usize,
}

impl OffsetMap {
    /// A map of up to `keys` keys, filled to `load_factor` (0 to 1) at most.
    pub(crate) fn new(keys: usize, load_factor: f64) -> Self {
        let load_factor = load_factor.clamp(0.1, 0.95);
        let slots = (keys.max(1) as f64 / load_factor).ceil() as usize + 1;
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            slots: vec![FREE; slots],
            used: 0,
            max: keys.max(1),
        }
    }

    /// The slot of `key`, or the free one where it belongs.
    fn find(&self, key: &[u8]) -> (usize, [u64; 2]) {
        let hash = [self.hashers[0].hash_one(key), self.hashers[1].hash_one(key)];
        let len = self.slots.len();
        let mut at = ((u128::from(hash[0]) * len as u128) >> 64) as usize;
        // One slot at least is free.
        while self.slots[at].offset >= 0 && self.slots[at].hash != hash {
            at += 1;
            if at == len {
                at = 0;
            }
        }
        (at, hash)
    }

    /// Takes note that `key` was written at `offset`. False if there is no room for another key.
    pub(crate) fn put(&mut self, key: &[u8], offset: i64) -> bool {
        let (at, hash) = self.find(key);
        if self.slots[at].offset < 0 {
            if self.used == self.max {
                return false;
            }
            self.used += 1;
        }
        self.slots[at] = Slot { hash, offset };
        true
    }

    /// Where `key` was written last.
    pub(crate) fn get(&self, key: &[u8]) -> Option<i64> {
        let (at, _) = self.find(key);
        Some(self.slots[at].offset).filter(|&offset| offset >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_of_each_key_is_kept_until_the_map_is_full() {
        let mut map = OffsetMap::new(1000, 0.9);
        for round in 0..3i64 {
            for key in 0..1000i64 {
                assert!(map.put(&key.to_be_bytes(), round * 1000 + key));
            }
        }
        for key in 0..1000i64 {
            assert_eq!(map.get(&key.to_be_bytes()), Some(2000 + key));
        }
        assert_eq!(map.get(b"other"), None);
        assert!(!map.put(b"other", 9999));
        assert!(map.put(&5i64.to_be_bytes(), 9999));
        assert_eq!(map.get(&5i64.to_be_bytes()), Some(9999));
    }

    #[test]
    fn the_smallest_map_works() {
        let mut map = OffsetMap::new(0, 1.0);
        assert!(map.put(b"", 0));
        assert!(!map.put(b"a", 1));
        assert_eq!((map.get(b""), map.get(b"a")), (Some(0), None));
    }
}
